"""The throughput gate for training code, as a pytest plugin.

Importing this package loads nothing heavy; a test author needs only the ``tokbudget`` fixture.

PYTEST_DONT_REWRITE: a worker imports this package before pytest starts, and pytest would warn (an
error under ``-W error``) that it can no longer rewrite the assertions in it.
"""

__version__ = "0.1.0"
