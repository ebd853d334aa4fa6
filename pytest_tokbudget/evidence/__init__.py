"""Probes: one file each, everything that looks at the machine or attaches to a process.

May import: ``records``, ``ports``, ``errors``, ``analysis``; torch and pynvml inside functions.
"""
