"""``python -m examples.dflash --steps 50``: run the pipeline alone and print loss and tok/s."""

from __future__ import annotations

import argparse
import sys
import time

from .config import named_size, sizes_here
from .knobs import read_knobs
from .pipeline import DFlashPipeline, Progress


def main() -> int:
    """Run, print a line each tenth of the way, and return 0."""
    parser = argparse.ArgumentParser(prog="python -m examples.dflash", description=__doc__)
    parser.add_argument("--steps", type=int, default=50, help="steps of all drafters together")
    parser.add_argument("--size", help="a size by name (default: DFLASH_SIZE, else by the machine)")
    options = parser.parse_args()
    try:
        size = named_size(options.size) if options.size else sizes_here()[-1]
        knobs = read_knobs(size)
    except ValueError as error:
        parser.error(str(error))
    print(f"size {size.name}, {knobs}")  # noqa: T201 - a program that prints
    with DFlashPipeline(size, knobs) as pipeline:
        before, started = pipeline.progress, time.monotonic()
        for part in range(1, 11):
            after = pipeline.wait_for(max(1, options.steps * part // 10))
            now = time.monotonic()
            print(_line(before, after, now - started))  # noqa: T201
            before, started = after, now
    return 0


def _line(before: Progress, after: Progress, seconds: float) -> str:
    real = after.tokens.get("real", 0) - before.tokens.get("real", 0)
    losses = after.losses[len(before.losses) :]
    loss = (
        f"loss {sum(value for _, value in losses) / len(losses):.3f}" if losses else "loss not read"
    )
    return f"step {after.steps:6d}  {loss}  {real / max(seconds, 1e-9):,.0f} real tok/s"


if __name__ == "__main__":
    sys.exit(main())
