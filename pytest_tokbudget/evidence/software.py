"""Versions at work, read without importing what they are versions of."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import re
import sys
from pathlib import Path

from .. import __version__
from ..records.machine import Software
from .host import os_name


def read_software(driver: str | None) -> Software:
    """Versions of Python, this package, torch and the CUDA it was built for, driver and system.

    torch is asked only if it is imported already; else its ``version.py`` is read as text, since
    importing torch takes seconds and a gigabyte of libraries.
    """
    torch, cuda = _torch_versions()
    return Software(
        python=platform.python_version(),
        tokbudget=__version__,
        torch=torch,
        cuda=cuda,
        driver=driver,
        os=os_name(),
    )


def _torch_versions() -> tuple[str | None, str | None]:
    loaded = sys.modules.get("torch")
    if loaded is not None and hasattr(loaded, "__version__"):
        cuda = getattr(getattr(loaded, "version", None), "cuda", None)
        return str(loaded.__version__), None if cuda is None else str(cuda)
    try:
        installed: str | None = importlib.metadata.version("torch")
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None, None
    if spec is None or spec.origin is None:
        return installed, None
    try:
        text = Path(spec.origin).with_name("version.py").read_text(encoding="utf-8")
    except OSError:
        return installed, None
    return written_version(text, "__version__") or installed, written_version(text, "cuda")


def written_version(text: str, name: str) -> str | None:
    """What ``version.py`` assigns to ``name``; None for None, or where it assigns nothing."""
    match = re.search(rf"^{name}(?:\s*:[^=]+)?\s*=\s*['\"]([^'\"]+)['\"]", text, re.MULTILINE)
    return match[1] if match else None
