"""Baseline files and their refresh rules; run artifacts. Never judges.

May import: ``records``, ``ports``, ``errors``, ``analysis``.
"""
