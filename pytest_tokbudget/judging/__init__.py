"""Turns run records and a baseline into a verdict. No I/O.

May import: ``records``, ``ports``, ``errors``, ``analysis``.
"""

from .against import Pair, judge_pairs
from .judge import judge

__all__ = ["Pair", "judge", "judge_pairs"]
