"""Fresh worker processes, each measuring one item.

May import: ``records``, ``ports``, ``errors``, ``analysis``.
"""
