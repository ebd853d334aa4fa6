"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# Without bytecode every process that a test starts would compile the package anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

pytest_plugins = ["pytester"]

# A deadline is an absolute time, which a busy machine may exceed whatever the code does.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
