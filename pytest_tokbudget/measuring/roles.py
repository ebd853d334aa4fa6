"""Which workers' marks count."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import UsageError
from .streams import Stream


def choose_counting(streams: Iterable[Stream], *, bare: bool = False) -> list[Stream]:
    """Return the workers declared ``counts=True``; else those of the only role that marks tokens.

    With ``bare`` (the author declared a constant) marks need not carry tokens. Workers without a
    role are one role of their own. Empty when there is no such mark yet. Raises ``UsageError`` when
    several roles mark tokens and none was declared.
    """
    streams = list(streams)
    declared = [stream for stream in streams if stream.declared]
    if declared:
        return declared
    bearing = [stream for stream in streams if stream.counts_tokens(bare)]
    roles = sorted({stream.role or "" for stream in bearing})
    if len(roles) > 1:
        named = ", ".join(repr(role) if role else "(no role)" for role in roles)
        raise UsageError(
            f"several roles mark tokens: {named}. Counting them all would count tokens twice; "
            'declare the one that counts: "with recorder.worker(name, role=…, counts=True)"'
        )
    return [stream for stream in streams if roles and (stream.role or "") == roles[0]]
