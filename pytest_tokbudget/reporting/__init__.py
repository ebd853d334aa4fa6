"""Renders results: one format, one file. Returns text or bytes and never computes.

May import: ``records``, ``ports``, ``errors``, ``analysis``.
"""
