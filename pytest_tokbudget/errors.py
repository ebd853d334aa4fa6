"""Every exception this package raises on purpose.

::

    TokbudgetError
    ├── UsageError               an option, marker or call is wrong: says which, and what is right
    │   └── QuantityError        a rate, percentage or size that cannot be read
    ├── MeasureError             the measurement itself failed; no number exists
    │   ├── StepError            a step returned something that is no token count, or never ended
    │   ├── StallError           no counting mark for too long; carries the stacks of all threads
    │   ├── WorkerDiedError      a worker of the pipeline left by an exception, or too early
    │   └── NothingMeasuredError the fixture was requested and never used, or no step was counted
    ├── StoreError               a stored file cannot be used or written
    │   ├── UnreadableError      truncated, not JSON, or not one of ours
    │   ├── NewerSchemaError     written by a newer version of this package
    │   ├── MismatchError        the file belongs to another workload or machine class
    │   └── RefreshRefusedError  what was measured must not become a baseline
    ├── LaunchError              a worker process could not be started, or died
    └── MissingLibraryError      an optional library is not installed: says which, and how to get it

Verdicts are not errors: see ``records.verdict``. The entry room turns a failing verdict into the
test's own failure.
"""

from __future__ import annotations


class TokbudgetError(Exception):
    """Base of every error of this package."""


class UsageError(TokbudgetError):
    """An option, marker keyword or call is wrong."""


class QuantityError(UsageError):
    """A rate, percentage or size that cannot be read."""


class MeasureError(TokbudgetError):
    """The measurement failed; there is no number to judge."""


class StepError(MeasureError):
    """A step returned something that is no token count."""


class StallError(MeasureError):
    """No counting mark for too long."""


class WorkerDiedError(MeasureError):
    """A worker of the measured pipeline left by an exception, or before the pass was over."""


class NothingMeasuredError(MeasureError):
    """Nothing was measured although the test asked for it."""


class StoreError(TokbudgetError):
    """A stored file cannot be used or written."""


class UnreadableError(StoreError):
    """A stored file is truncated, not JSON, or not one of ours."""


class NewerSchemaError(StoreError):
    """A stored file was written by a newer version of this package."""


class MismatchError(StoreError):
    """A stored file belongs to another workload or machine class."""


class RefreshRefusedError(StoreError):
    """What was measured must not become a baseline."""


class LaunchError(TokbudgetError):
    """A worker process could not be started, or died without a result."""


class MissingLibraryError(TokbudgetError):
    """An optional library is needed and not installed."""
