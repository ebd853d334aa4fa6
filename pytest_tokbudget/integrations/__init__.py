"""Adapters to training frameworks: one framework, one file.

May import: ``records``, ``ports``, ``errors``, ``analysis``; the framework only inside functions.
"""
