"""Sampled stacks without the calls into our own recorder and queue proxy."""

from __future__ import annotations

from msgspec.structs import replace

from ..records.cpu import SampledStacks
from .frame_kinds import LOOPS, MEASURING, FrameKind, frame_kind


def without_our_calls(stacks: SampledStacks) -> SampledStacks:
    """Let stacks that end in a mark or queue call of ours end in the user's line that made it.

    Waits inside one stay as they are, and so does what our own loop does between the steps.
    """
    source = stacks.source or [""] * len(stacks.frames)
    waits = [
        frame_kind(function, file, text) == FrameKind.WAIT
        for (function, file, _), text in zip(stacks.frames, source)
    ]
    files = [file for _, file, _ in stacks.frames]

    def users(stack: list[int]) -> list[int]:
        end = len(stack)
        while end and files[stack[end - 1]].startswith(MEASURING):
            end -= 1
        ours = stack[end:]
        keeps = not end or not ours or waits[ours[-1]] or any(files[one] in LOOPS for one in ours)
        return stack if keeps else stack[:end]

    return replace(stacks, stacks=[users(one) for one in stacks.stacks])
