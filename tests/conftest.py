"""What all tests share."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

# Without bytecode every process that a test starts would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# What a shell without job control starts in the background ignores Ctrl-C, and so would the
# controllers that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester"]

# A deadline is an absolute time, which a busy machine may exceed whatever the code does.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
