"""What one test measures, and how a baseline recognizes it again."""

from __future__ import annotations

from typing import Any, TypeAlias

from .base import Record

JsonValue: TypeAlias = Any
"""Plain JSON data; what a declaration may hold (msgspec has no recursive aliases)."""


class Workload(Record, frozen=True, kw_only=True):
    """The identity of a workload: ``path`` + ``qualname`` + ``param_ids``.

    ``path`` is relative to the git top level, else to the rootdir, with ``/`` between its parts.
    ``declaration`` holds what must be equal for two sessions to be comparable: token kind and
    scope, JSON-able parameter values, and the author's ``workload={…}``; never steps, warm-up,
    tolerance, floor or sessions.
    """

    path: str
    qualname: str
    param_ids: str = ""
    nodeid: str
    declaration: dict[str, JsonValue] = {}

    @property
    def identity(self) -> str:
        """The string that names this workload everywhere; hashed into its baseline's file name."""
        return f"{self.path}::{self.qualname}" + (f"[{self.param_ids}]" if self.param_ids else "")
