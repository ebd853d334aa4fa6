"""What is passed between rooms and stored: frozen msgspec structs, no logic, no I/O.

May import: nothing of this package. Every stored record carries ``schema``; see ``schema.py``.
"""
