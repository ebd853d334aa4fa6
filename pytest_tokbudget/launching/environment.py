"""Command line and environment of a worker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from ..records.launch import WorkerSpec
from .processes import COOKIE_VARIABLE
from .spec_file import SPEC_VARIABLE

COVERAGE_VARIABLES = ("COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")
COVERAGE_PREFIX = "COV_CORE_"
"""With these a fresh interpreter attaches coverage before any code of ours runs."""


def worker_command(module: str, spec: WorkerSpec) -> list[str]:
    """Start ``module.main()`` under the controller's interpreter, with its flags.

    ``sys.path`` is set before the first import, so that the module found is the controller's own
    whatever the flags (``-I``, ``-P``) and the directory.
    """
    code = (
        f"import sys; sys.path[:] = {list(spec.sys_path)!r}; from {module} import main; "
        "sys.exit(main())"
    )
    return [sys.executable, *_interpreter_flags(), "-c", code]


def _interpreter_flags() -> list[str]:
    """The ``-W``, ``-X``, ``-O`` … this interpreter was started with.

    The standard library's own function, as multiprocessing uses it, private though it is.
    """
    flags: list[str] = getattr(subprocess, "_args_from_interpreter_flags")()  # noqa: B009
    return flags


def worker_environment(
    spec_path: Path, cookie: str, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The controller's environment without coverage, with the names the worker needs."""
    kept = {
        name: value
        for name, value in environ.items()
        if name not in COVERAGE_VARIABLES and not name.startswith(COVERAGE_PREFIX)
    }
    return {**kept, SPEC_VARIABLE: str(spec_path), COOKIE_VARIABLE: cookie}
