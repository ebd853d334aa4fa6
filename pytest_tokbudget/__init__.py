"""The throughput gate for training code, as a pytest plugin.

Importing this package loads nothing heavy; a test author needs only the ``tokbudget`` fixture.
"""

__version__ = "0.1.0"
