"""Failures of a measured body, told by the frames of its author."""

from __future__ import annotations

from types import TracebackType

from ..analysis.frame_kinds import OURS


def without_our_frames(error: BaseException) -> BaseException:
    """Return ``error`` with a traceback that has no frame of this package."""
    kept: list[TracebackType] = []
    at = error.__traceback__
    while at is not None:
        if not at.tb_frame.f_code.co_filename.startswith(OURS):
            kept.append(at)
        at = at.tb_next
    shown = None
    for one in reversed(kept):
        shown = TracebackType(shown, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return error.with_traceback(shown)
