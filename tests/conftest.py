"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["pytester"]

# A deadline is an absolute time, which a busy machine may exceed whatever the code does.
settings.register_profile("without deadline", deadline=None)
settings.load_profile("without deadline")
