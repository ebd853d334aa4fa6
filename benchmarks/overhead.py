"""What measuring costs: the timing pass against a bare loop, and the price of one mark.

    python benchmarks/overhead.py [--pairs 15] [--seconds 1] [--only CASE] [--seed 0] [--json FILE]

A pair runs the same number of steps twice, once as ``tokbudget(step)`` times them and once in a
bare loop between the same two synchronizations, in random order, one right after the other; its
ratio is tok/s measured / tok/s bare. Shown: the median over the pairs with its 95 % interval (order
statistics, no assumption about the noise). On CUDA a GPU-bound and a launch-bound language-model
step, else a small torch step on the CPU; marks are timed in any case.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from scipy.stats import binom

from pytest_tokbudget.measuring.clock import SystemClock
from pytest_tokbudget.measuring.devices import TorchDevices
from pytest_tokbudget.measuring.loop import measure_steps
from pytest_tokbudget.measuring.recorder import Recorder
from pytest_tokbudget.measuring.window import WindowCut
from pytest_tokbudget.records.budget import Budget

MARKS = 5_000
ROUNDS = 15


class Median(NamedTuple):
    """A median with the interval that holds it with at least 95 % confidence, where one can."""

    value: float
    low: float
    high: float
    samples: int


class Size(NamedTuple):
    """A language model's training step: ``batch`` rows of ``length`` tokens."""

    layers: int
    width: int
    batch: int
    length: int
    device: str


SIZES = {
    "gpu_bound": Size(12, 1024, 8, 1024, "cuda"),
    "launch_bound": Size(8, 512, 4, 256, "cuda"),
    "cpu": Size(2, 64, 2, 32, "cpu"),
}


def median_interval(values: list[float], confidence: float = 0.95) -> Median:
    """Return the median and the narrowest symmetric order-statistic interval around it.

    From the k-th smallest to the k-th largest value the coverage is 1 − 2·P(Binomial(n, ½) < k);
    with too few values for ``confidence`` it is the whole range.
    """
    ordered = sorted(values)
    count = len(ordered)
    rank = 1
    while 2 * (rank + 1) <= count and 1 - 2 * binom.cdf(rank, count, 0.5) >= confidence:
        rank += 1
    return Median(statistics.median(ordered), ordered[rank - 1], ordered[count - rank], count)


def training_step(size: Size) -> Callable[[], int]:
    """Return one optimizer step of a small language model as a function returning its tokens."""
    import torch
    from torch import nn

    if size.device == "cpu":
        # One thread: on a shared machine the others of a pool wait for a core, and nothing else.
        torch.set_num_threads(1)
    torch.manual_seed(0)
    vocabulary = 8192 if size.device == "cuda" else 512
    layer = nn.TransformerEncoderLayer(
        size.width, size.width // 64, 4 * size.width, dropout=0.0, batch_first=True
    )
    model = nn.Sequential(
        nn.Embedding(vocabulary, size.width),
        nn.TransformerEncoder(layer, size.layers, enable_nested_tensor=False),
        nn.Linear(size.width, vocabulary),
    ).to(size.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=True)
    ids = torch.randint(vocabulary, (size.batch, size.length), device=size.device)

    def step() -> int:
        with torch.autocast(size.device, torch.bfloat16, enabled=size.device == "cuda"):
            logits = model(ids)
            loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids.flatten())
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return size.batch * size.length

    return step


def bare_rate(step: Callable[[], int], steps: int, devices: TorchDevices) -> float:
    """Return the tok/s of a loop with nothing in it, synchronized at its two ends."""
    devices.synchronize()
    start = time.monotonic_ns()
    tokens = 0
    for _ in range(steps):
        tokens += step()
    devices.synchronize()
    return tokens * 1e9 / (time.monotonic_ns() - start)


def measured_rate(step: Callable[[], int], steps: int, devices: TorchDevices) -> float:
    """Return the tok/s of the timing pass of ``tokbudget(step)``."""
    clock = SystemClock()
    beat = memoryview(bytearray(32)).cast("q")
    budget = Budget(steps=steps, warmup_steps=0)
    found = measure_steps(step, Recorder(clock, beat=beat), budget, devices, clock)
    return found.timing.tok_s


def pair_ratios(step: Callable[[], int], pairs: int, seconds: float) -> dict[str, Any]:
    """Run the pairs; return the ratio, the bare rate, and steps per run."""
    devices = TorchDevices()
    bare_rate(step, 5, devices)
    begun = time.monotonic()
    bare_rate(step, 10, devices)
    steps = max(5, round(seconds * 10 / (time.monotonic() - begun)))
    arms = {"measured": measured_rate, "bare": bare_rate}
    for arm in arms.values():
        arm(step, steps, devices)
    rates: dict[str, list[float]] = {"measured": [], "bare": []}
    for _ in range(pairs):
        for name in random.sample(sorted(arms), 2):
            rates[name].append(arms[name](step, steps, devices))
    ratios = [a / b for a, b in zip(rates["measured"], rates["bare"], strict=True)]
    bare = statistics.median(rates["bare"])
    return {
        "ratio": median_interval(ratios)._asdict(),
        "ratios": ratios,
        "bare_tok_s": bare,
        "step_ms": 1e3 * step() / bare,
        "steps_per_run": steps,
    }


def mark_costs() -> dict[str, Any]:
    """Return ns per call of several marks and of a bare ``list.append``, interleaved.

    CPU time of the thread, so that other processes on the same cores are not counted.
    """
    clock = SystemClock()
    recorder = Recorder(clock, beat=memoryview(bytearray(32)).cast("q"))
    in_window = Recorder(clock)
    cut = WindowCut(in_window, TorchDevices(), clock, 10**12)
    kinds = {"real": 1000, "slots": 1024}
    times: dict[str, list[float]] = {}
    with recorder.worker("a", counts=True), in_window.worker("b", counts=True):
        cut.request(in_window.streams())
        for _ in range(ROUNDS):
            plain: list[int] = []
            calls: list[tuple[str, Callable[[Any], None], Any]] = [
                ("list.append", plain.append, 1024),
                ("mark", _in(recorder), 1024),
                ("mark in the timing pass", _in(in_window), 1024),
                ("mark of two kinds", _in(recorder), kinds),
            ]
            for name, call, argument in random.sample(calls, len(calls)):
                times.setdefault(name, []).append(_ns_per_call(recorder, in_window, call, argument))
    found = {name: median_interval(each) for name, each in times.items()}
    base = found["list.append"].value
    return {
        name: {**one._asdict(), "ratio_to_list_append": one.value / base}
        for name, one in found.items()
    }


def _in(recorder: Recorder) -> Callable[[Any], None]:
    return recorder.step_end


def _ns_per_call(
    recorder: Recorder, in_window: Recorder, call: Callable[[Any], None], argument: Any
) -> float:
    # Both recorders were entered by this thread; each has its own thread-local stream.
    for one in (recorder, in_window):
        for stream in one.streams():
            stream.log.clear()
    begun = time.thread_time_ns()
    for _ in range(MARKS):
        call(argument)
    return (time.thread_time_ns() - begun) / MARKS


def cases(only: str | None) -> list[str]:
    """Return the cases that this machine can run."""
    if importlib.util.find_spec("torch") is None:
        steps = []
    else:
        import torch

        steps = ["gpu_bound", "launch_bound"] if torch.cuda.is_available() else ["cpu"]
    return [name for name in [*steps, "marks"] if only in (None, name)]


def show(results: dict[str, Any], console: Console) -> None:
    """Print ``results`` as tables."""
    table = Table(title="timing pass / bare loop")
    for heading in ("case", "ratio", "95 % interval", "pairs", "step", "steps a run"):
        table.add_column(heading, justify="left" if heading == "case" else "right")
    for name, one in results.items():
        if name != "marks":
            ratio = one["ratio"]
            table.add_row(
                name,
                f"{ratio['value']:.4f}",
                f"{ratio['low']:.4f} … {ratio['high']:.4f}",
                str(ratio["samples"]),
                f"{one['step_ms']:.2f} ms",
                str(one["steps_per_run"]),
            )
    if table.row_count:
        console.print(table)
    if "marks" in results:
        marks = Table(title="one mark (CPU time)")
        for heading in ("call", "ns", "95 % interval", "× list.append"):
            marks.add_column(heading, justify="left" if heading == "call" else "right")
        for name, one in results["marks"].items():
            interval = f"{one['low']:.0f} … {one['high']:.0f}"
            marks.add_row(
                name, f"{one['value']:.0f}", interval, f"{one['ratio_to_list_append']:.1f}"
            )
        console.print(marks)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return 0, or 2 when the machine can run no case."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of one run")
    parser.add_argument("--only", choices=[*SIZES, "marks"])
    parser.add_argument("--seed", type=int, default=0, help="of the order within pairs")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args(arguments)
    random.seed(chosen.seed)
    names = cases(chosen.only)
    if not names:
        print(f"this machine cannot run the case {chosen.only!r}", file=sys.stderr)
        return 2
    results: dict[str, Any] = {}
    for name in names:
        results[name] = (
            mark_costs()
            if name == "marks"
            else pair_ratios(training_step(SIZES[name]), chosen.pairs, chosen.seconds)
        )
    show(results, Console())
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
