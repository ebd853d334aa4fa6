"""From a collected test to the identity that its baseline is filed under."""

from __future__ import annotations

import enum
import hashlib
import os
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import UsageError
from ..records.workload import JsonValue, Workload
from .slugs import slug

_LONGEST_NAMED = 100
"""pytest names a longer string parameter after its argument, as it does an object."""


@dataclass(frozen=True)
class CollectedTest:
    """What pytest knows of one item.

    ``qualname`` is classes and function joined by ``::``, without parameters; ``param_ids`` the
    item's whole id string (``callspec.id``); ``params`` argument → value (``callspec.params``);
    ``argument_ids`` argument → its own id, where known.
    """

    nodeid: str
    path: Path
    qualname: str
    param_ids: str = ""
    params: Mapping[str, object] = field(default_factory=dict)
    argument_ids: Mapping[str, str] | None = None


def workload_of(
    test: CollectedTest, declaration: Mapping[str, JsonValue], *, rootdir: Path
) -> Workload:
    """The workload that ``test`` measures, with what it declares about itself.

    Raises UsageError where a parameter's id is a number in a list (``cfg0``), or the name of a
    function numbered because it came twice (``<lambda>1``): inserting one before it would give it
    the baseline of another.
    """
    for name, value in test.params.items():
        found = _numbered_id(test, name, value)
        if found is not None:
            raise UsageError(
                f"{test.nodeid}: the id {found!r} of parameter {name!r} only says where in the "
                "list its value stands, so inserting one would swap baselines; give ids= to "
                f"parametrize (or pytest.param(..., id=...)), such as {name}=small, not {found}"
            )
    return Workload(
        path=unicodedata.normalize("NFC", _relative_path(test.path, rootdir)),
        qualname=test.qualname,
        param_ids=test.param_ids,
        nodeid=test.nodeid,
        declaration=dict(declaration),
    )


def file_name(workload: Workload) -> str:
    """``<slug of at most 80 characters>-<8 hex of SHA-256 of the identity>.json``."""
    identity = workload.identity
    return f"{slug(identity)}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}.json"


def _numbered_id(test: CollectedTest, name: str, value: object) -> str | None:
    """The id of this parameter if pytest numbered it, else None.

    Where several arguments share one id string their ids are joined by ``-``; one of the parts that
    reads like this argument's number is taken for it.
    """
    stem = _numbered_stem(name, value)
    if stem is None:
        return None
    # A further number after "_" is what pytest appends to ids that came out equal.
    pattern = re.compile(rf"{re.escape(stem)}_?\d+(?:_\d+)?")
    if test.argument_ids is not None and name in test.argument_ids:
        parts = [test.argument_ids[name]]
    else:
        parts = test.param_ids.split("-")
    if stem != name and stem in parts:
        return None
    return next((part for part in parts if pattern.fullmatch(part)), None)


def _numbered_stem(name: str, value: object) -> str | None:
    """What pytest would put a number after for this value; None where the value is its own id."""
    if isinstance(value, (str, bytes)):
        return name if len(value) > _LONGEST_NAMED else None
    if value is None or isinstance(value, (bool, int, float, complex, re.Pattern, enum.Enum)):
        return None
    own_name = getattr(value, "__name__", None)
    return own_name if isinstance(own_name, str) else name


def _relative_path(path: Path, rootdir: Path) -> str:
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would leave the checkout
    for parent in absolute.parents:
        if (parent / ".git").exists():
            return absolute.relative_to(parent).as_posix()
    return Path(os.path.relpath(absolute, os.path.abspath(rootdir))).as_posix()  # noqa: PTH100
