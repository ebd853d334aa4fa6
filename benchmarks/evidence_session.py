"""One process of a recording: one workload, all faults."""

from __future__ import annotations

import gc
import os
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch._C._autograd import _KinetoEvent

from benchmarks import evidence_files
from benchmarks.evidence_clock import Canary
from benchmarks.evidence_dflash import DFlash
from benchmarks.evidence_faults import Chosen, Injector, iterations_for
from benchmarks.evidence_loops import SHAPES, TINY, Loop
from benchmarks.evidence_pipeline import TARGET, Pipeline
from benchmarks.evidence_sampled import sample
from benchmarks.evidence_stacks import Stacks
from benchmarks.evidence_truth import Truth, measure_truth
from pytest_tokbudget.analysis.timeline import IntArray
from pytest_tokbudget.analysis.trace_rows import COLUMNS
from pytest_tokbudget.evidence.kineto import LEAD_IN_STEPS, KinetoProbe, RawTrace
from pytest_tokbudget.records.base import Unavailable

WARMUP_STEPS = 40
STACK_SECONDS = 0.8
SAMPLED_SECONDS = 3.0
TRUTH_SHARE, TRUTH_SHARE_CUDA_ONLY = 0.45, 0.65
"""Of the time left after warming up, with both densities traced and with the first alone."""
SLOWER = {"gpu_bound": 1.3, "launch_bound": 1.3, "pipeline": 0.6, "dflash": 1.9}
"""Sleep of whoever fills the queue, of a step: the loops' loader has nothing else to do in one, the
pipeline's producer has, and the example has two targets."""
DENSITIES = {"cuda": (("cuda",), 100), "cpu_cuda": (("cpu", "cuda"), 30)}


class Session:
    """Runs the phases one after the other and keeps to its time."""

    def __init__(
        self,
        name: str,
        out: Path,
        seconds: float,
        dry_run: bool,
        cuda_only: bool,
        chosen: Chosen,
    ) -> None:
        self._until = time.monotonic() + seconds
        self._out, self._name, self._dry, self._cuda_only = out, name, dry_run, cuda_only
        device = torch.device("cpu" if dry_run else "cuda:0")
        if dry_run:
            torch.set_num_threads(1)
        self._injector = Injector(device, iterations_for(chosen.milliseconds), chosen.milliseconds)
        self._workload: Loop | Pipeline | DFlash
        if name == "dflash":
            self._workload = DFlash(self._injector)
        elif name == "pipeline":
            self._workload = Pipeline(TINY if dry_run else TARGET, self._injector)
        else:
            self._workload = Loop(TINY if dry_run else SHAPES[name], self._injector)
        self._canary = Canary(device)
        left_out = ("cache", "stream") if dry_run else ()
        self._faults = ["none", *(one for one in chosen.names if one not in left_out)]
        self._names: dict[str, int] = {}
        self._left_out: list[str] = []
        self._meta: dict[str, Any] = {"workload": name, "faults": self._faults}

    def record(self) -> None:
        """All phases; the files are written as soon as there is something for them."""
        warmup = 3 if self._dry else WARMUP_STEPS
        for _ in range(3):
            self._canary.run()
        self._workload.run(warmup)
        begin = len(self._workload.clock)
        self._workload.run(warmup)
        step_ms = float(np.mean(self._workload.clock.take(begin, begin + warmup)))
        self._injector.loader_seconds = SLOWER[self._name] * step_ms / 1e3
        self._say(f"step {step_ms:.2f} ms, {self._injector.iterations} iterations of Python")
        self._describe(step_ms)
        self._meta["truth"] = self._truths()
        self._meta["timing_pass"] = {one: self._timing_pass(one) for one in self._faults}
        self._meta["sampled"] = {one: self._sampled(one) for one in self._faults}
        stacks = Stacks()
        stacks.start(os.getpid())
        rows = self._trace_all("cuda", stack_seconds=0.1 if self._dry else STACK_SECONDS)
        spy = stacks.stop()
        self._meta |= {
            "blog": stacks.log,
            "tspawn": stacks.spawned_ns,
            "py_spy": stacks.said[-400:],
        }
        self._write("cuda", rows, spy)
        if self._dry:
            self._left_out.append("CPU operators (a dry run has nothing else)")
        elif not self._cuda_only:
            self._write("cpu_cuda", self._trace_all("cpu_cuda", stack_seconds=0.0), None)
        self._workload.close()

    def _describe(self, step_ms: float) -> None:
        cuda = self._injector.cuda
        self._meta |= {
            "torch": torch.__version__,
            "python": platform.python_version(),
            "device": torch.cuda.get_device_name(0) if cuda else "cpu",
            "cores": len(os.sched_getaffinity(0)),
            "first_step_ms": step_ms,
            "loader_seconds": self._injector.loader_seconds,
            "python_iterations": self._injector.iterations,
            "python_ms": self._python_ms(),
            "injected_ms": self._injector.milliseconds,
            "event_methods": [one for one in dir(_KinetoEvent) if not one.startswith("_")],
        }

    def _python_ms(self) -> float:
        """What the fault ``python`` takes alone in this process, before anything is measured."""
        self._injector.active = "python"
        times = []
        for _ in range(9):
            begun = time.perf_counter()
            self._injector.python()
            times.append(1e3 * (time.perf_counter() - begun))
        self._injector.active = "none"
        return float(np.median(times))

    def _truths(self) -> dict[str, Any]:
        """The truth of each fault; what one does not need of its time is left to the others."""
        found = {}
        share = TRUTH_SHARE_CUDA_ONLY if self._cuda_only else TRUTH_SHARE
        until = time.monotonic() + share * (self._until - time.monotonic())
        faults = self._faults[1:]
        for at, fault in enumerate(faults):
            left = (until - time.monotonic()) / (len(faults) - at)
            found[fault] = self._truth(fault, 0.3 if self._dry else left).plain()
        return found

    def _truth(self, fault: str, seconds: float) -> Truth:
        truth = measure_truth(
            self._workload, fault, self._canary, seconds, *((2,) if self._dry else ())
        )
        self._say(
            f"{fault}: {truth.cost_ms:.3f} ± {truth.error_ms:.3f} ms on {truth.reference_ms:.3f} ms"
        )
        return truth

    def _timing_pass(self, fault: str) -> dict[str, Any]:
        """A pass with nothing attached but the recorder, for its marks and queue calls."""
        self._injector.active = fault
        self._workload.run(self._workload.settle_steps)
        window = self._window(3 if self._dry else 30)
        self._injector.active = "none"
        return window

    def _sampled(self, fault: str) -> dict[str, Any]:
        """Stacks of a fault with no trace, as the evidence pass of a gate takes them first."""
        self._injector.active = fault
        self._workload.run(self._workload.settle_steps)
        found = sample(self._workload, 0.5 if self._dry else SAMPLED_SECONDS)
        self._injector.active = "none"
        self._say(f"{fault}: {found['ms_per_step']:.2f} ms a step; {found['sampling']}")
        return found

    def _window(self, steps: int) -> dict[str, Any]:
        """Run a window: between two synchronizations, or for the pipeline between two marks."""
        offset = time.time_ns() - time.monotonic_ns()
        cut_at_marks = self._workload.cut_at_marks
        if not cut_at_marks:
            self._synchronize()
        begun, first = time.time_ns(), len(self._marks())
        self._workload.run(steps)
        if not cut_at_marks:
            self._synchronize()
        ended = time.time_ns()
        while len(marks := self._marks()) < first + steps:
            time.sleep(0.001)  # the last step has ended and its mark is being made
        ends = [one + offset for one in marks[first : first + steps]]
        if cut_at_marks:
            begun, ended = marks[first - 1] + offset, ends[-1]
        return {
            "start_ns": begun,
            "end_ns": ended,
            "steps": steps,
            "step_ends_ns": ends,
            "ms_per_step": (ended - begun) / 1e6 / steps,
            "unix_offset_ns": offset,
        }

    def _marks(self) -> list[int]:
        counting = [one for one in self._workload.recorder.mark_series("real") if one.counts]
        return counting[0].times_ns if counting else []

    def _synchronize(self) -> None:
        if self._injector.cuda:
            torch.cuda.synchronize()

    def _trace_all(self, density: str, stack_seconds: float) -> IntArray:
        """Trace each fault that there is still time for."""
        self._meta["windows"] = {}
        parts = [np.zeros((0, len(COLUMNS)), np.int64)]
        for at, fault in enumerate(self._faults):
            if time.monotonic() > self._until:
                self._left_out.append(f"{density} trace of {fault}: out of time")
                continue
            trace = self._trace(density, fault, stack_seconds)
            if isinstance(trace, Unavailable):
                self._left_out.append(f"{density} trace of {fault}: {trace}")
                self._say(f"{density} {fault}: {trace}")
                continue
            ids = [self._names.setdefault(one, len(self._names)) for one in trace.names]
            rows = trace.rows.copy()
            rows[:, 0] = at
            rows[:, 1] = np.array(ids, np.int64)[rows[:, 1]]
            parts.append(rows)
            self._meta["threads"] = [
                [one.name, one.ident, one.native_id, one.role, one.python] for one in trace.threads
            ]
            self._meta["missing_options"] = list(trace.missing)
        return np.concatenate(parts)

    def _trace(self, density: str, fault: str, stack_seconds: float) -> RawTrace | Unavailable:
        activities, steps = (("cpu",), 3) if self._dry else DENSITIES[density]
        self._injector.active = fault
        self._workload.run(self._workload.settle_steps)
        gc.collect()
        probe = KinetoProbe(activities)
        with self._workload.held():
            self._synchronize()
            refusal = probe.start()
        if refusal is not None:
            return refusal
        self._workload.run(LEAD_IN_STEPS)
        with self._workload.held():
            canary = self._canary.run()
        self._workload.run(self._workload.settle_steps)
        window = self._window(steps)
        trace = probe.stop(self._workload.held, self._roles())
        if isinstance(trace, RawTrace):
            window |= {"canary_ns": canary, "rows": len(trace.rows)}
            window |= {"stop_seconds": trace.stop_seconds, "read_seconds": trace.read_seconds}
            self._meta["windows"][fault] = window
            self._say(
                f"{density} {fault}: {window['ms_per_step']:.2f} ms a step, {len(trace.rows)} rows,"
                f" stop {trace.stop_seconds:.2f} s, read {trace.read_seconds:.2f} s"
            )
        if stack_seconds:
            until = time.monotonic() + stack_seconds
            begun = time.time_ns()
            while time.monotonic() < until:
                self._workload.run(5)
            self._synchronize()
            self._meta.setdefault("stack_windows", {})[fault] = [begun, time.time_ns()]
        self._injector.active = "none"
        return trace

    def _roles(self) -> dict[int, str]:
        return {
            one.native_id: one.role
            for one in self._workload.recorder.streams()
            if one.role is not None
        }

    def _write(self, density: str, rows: IntArray, spy: bytes | None) -> None:
        recorder = self._workload.recorder
        series: dict[str, IntArray] = {
            f"marks:{one.worker}": np.array(one.times_ns, np.int64)
            for one in recorder.mark_series("real")
        }
        for one in recorder.queue_series():
            columns = (one.start_ns, one.end_ns, one.sequence, one.depth)
            series[f"queue:{one.queue}:{one.side}:{one.worker}"] = np.array(columns, np.int64)
        meta = self._meta | {
            "density": density,
            "names": list(self._names),
            "left_out": self._left_out,
            "memory_peak_bytes": torch.cuda.max_memory_allocated() if self._injector.cuda else None,
        }
        path = self._out / f"{self._name}_{density}.npz"
        evidence_files.write(path, rows, meta, series, spy)
        self._say(f"wrote {path}: {path.stat().st_size:,} bytes; left out: {self._left_out}")

    def _say(self, text: str) -> None:
        left = self._until - time.monotonic()
        print(f"[{self._name}, {left:.0f} s left] {text}", flush=True)
