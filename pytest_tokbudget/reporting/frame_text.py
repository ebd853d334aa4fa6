"""Hot frames, of Python and native code, in the section of a test."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..records.result import COUNTING, FrameResult, NativeFrameResult, TestResult
from .figures import milliseconds, percent

LONGEST_PATH = 36
_MODULE_TAG = re.compile(r"\.(?:cpython-|abi3|pypy)[\w.-]*so$")
_TEMPLATE = re.compile(r"<[^<>]*>")

Row = tuple[str, str]


def frame_rows(frames: Sequence[FrameResult], most: int) -> Iterator[Row]:
    """What their figures are, and then ``most`` of ``frames``."""
    if frames:
        yield "frames", _heading(frames[:most])
    file = None
    for frame in frames[:most]:
        yield "", frame_text(frame, same_file=frame.file == file)
        file = frame.file


def native_rows(result: TestResult, most: int) -> Iterator[Row]:
    """What the shares are of, and then ``most`` native frames of ``result``."""
    frames = result.native_frames or []
    if frames:
        yield "native", f"of {result.native_sampling}:"
    for frame in frames[:most]:
        yield "", native_text(frame)


def place(file: str, line: int | None) -> str:
    """Return ``file:line``, a long path shortened from the left by whole directories."""
    shown = file
    while len(shown) > LONGEST_PATH and "/" in shown.removeprefix("…/"):
        shown = f"…/{shown.removeprefix('…/').lstrip('/').partition('/')[2]}"
    return shown if line is None else f"{shown}:{line}"


def _heading(frames: Sequence[FrameResult]) -> str:
    """What the figures of ``frames`` are."""
    if any(one.thread_share is None for one in frames):
        return "% of all threads' samples"
    text = "% of the named threads' time"
    if any(_costs_a_step(one) for one in frames):
        text += ", ms a step where they count the steps"
    return text


def _costs_a_step(frame: FrameResult) -> bool:
    """Of other threads than those that count the steps, a sum over threads is no part of a step."""
    return frame.threads_are == COUNTING and frame.ms_per_step is not None


def frame_text(frame: FrameResult, *, same_file: bool = False) -> str:
    """Return one hot frame: share of its threads' time, milliseconds a step where they count the
    steps, function, place (only its line if ``same_file``), threads."""
    where = f"line {frame.line}, same file" if same_file else place(frame.file, frame.line)
    share = frame.share if frame.thread_share is None else frame.thread_share
    cost = f", {milliseconds(frame.ms_per_step or 0.0)}" if _costs_a_step(frame) else ""
    text = f"{percent(100 * share)}{cost} {frame.function} ({where})"
    if frame.caller:
        text += f" from {frame.caller}"
    return text + _in_threads(frame.threads)


def native_text(frame: NativeFrameResult) -> str:
    """Return one native frame: share, function, library, the Python function that called it, the
    user's code that called that, threads."""
    library = _MODULE_TAG.sub(".so", frame.library)
    text = f"{percent(100 * frame.share)} {_native_name(frame.function)} ({library})"
    if frame.caller:
        text += f" from {frame.caller} ({place(frame.file or '', frame.line)})"
    if frame.called_from:
        text += f" from {frame.called_from}"
    return text + _in_threads(frame.threads)


def _native_name(function: str) -> str:
    """A C++ name without its template arguments, its last parts where it is still long."""
    shown = function
    while (plain := _TEMPLATE.sub("", shown)) != shown:
        shown = plain
    return shown if len(shown) <= LONGEST_PATH else f"…{shown[-LONGEST_PATH:]}"


def _in_threads(threads: Sequence[str]) -> str:
    names = ", ".join(threads[:2])
    more = f" +{len(threads) - 2}" if len(threads) > 2 else ""
    return f" in {names}{more}" if names else ""
