"""Turns run records and a baseline into a verdict. No I/O.

May import: ``records``, ``ports``, ``errors``, ``analysis``.
"""

from .judge import judge

__all__ = ["judge"]
