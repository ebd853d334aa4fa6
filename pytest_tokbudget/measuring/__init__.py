"""Runs the workload and records what it did: marks, windows, steady state.

May import: ``records``, ``ports``, ``errors``, ``analysis``; torch only inside functions.
"""
