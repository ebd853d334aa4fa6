"""Pure functions: numbers in, numbers out.

May import: ``records``, ``errors``, numpy and scipy. No I/O, no clock, no pytest, no torch.
"""
