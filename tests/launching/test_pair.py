"""Pairs of real workers that step in turn, and how a pair ends when one of them does."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pytest_tokbudget.errors import MeasureError
from pytest_tokbudget.launching import pair
from pytest_tokbudget.launching.blocks import BlockClient, BlockServer, Message
from pytest_tokbudget.launching.launcher import ProcessLauncher
from pytest_tokbudget.launching.progress import WORKER_PID, ProgressBlock
from pytest_tokbudget.ports import Launcher
from pytest_tokbudget.records.launch import WorkerOutcome, WorkerResult, WorkerSpec

from . import behaviours
from .conftest import SpecFor

Behaviour = Callable[[BlockClient, "Log"], WorkerOutcome]


class Log:
    """Who stepped, in order, and whether two ever did at once."""

    def __init__(self) -> None:
        self.blocks: list[tuple[str, int]] = []
        self.at_work = threading.Lock()

    def step(self, name: str, steps: int) -> None:
        assert self.at_work.acquire(blocking=False), "both sides at once"
        self.blocks.append((name, steps))
        self.at_work.release()


class FakeLauncher:
    """Runs a behaviour instead of a process."""

    def __init__(self, behaviours: dict[str, Behaviour], log: Log, look: Callable[[], None]):
        self._behaviours, self._log, self._look = behaviours, log, look

    def run(self, spec: WorkerSpec) -> WorkerOutcome:
        client = BlockClient(spec.blocks)
        try:
            return self._behaviours[spec.nodeid](client, self._log)
        except MeasureError as error:
            self._look()
            return WorkerOutcome(result=WorkerResult(status="failed", reason=str(error)))
        finally:
            client.close()


def stepping(name: str, ns: int = 5_000_000, step_ns: int = 10_000_000) -> Behaviour:
    def run(client: BlockClient, log: Log) -> WorkerOutcome:
        client.await_warm_up()
        log.step(f"{name} warms up", 0)
        client.warmed_up(step_ns)
        while steps := client.next_block():
            log.step(name, steps)
            client.block_done(steps, ns)
        return WorkerOutcome(result=WorkerResult(status="passed", reason=name))

    return run


def dying(kind: str = "ValueError", failure: str = "") -> Behaviour:
    def run(client: BlockClient, _log: Log) -> WorkerOutcome:
        client.await_warm_up()
        if failure:
            return WorkerOutcome(result=None, failure=failure)
        return WorkerOutcome(result=WorkerResult(status="failed", exception_mro=[f"torch.{kind}"]))

    return run


def unheld(client: BlockClient, _log: Log) -> WorkerOutcome:
    client.cannot("it runs itself")


def gone(_client: BlockClient, _log: Log) -> WorkerOutcome:
    return WorkerOutcome(result=WorkerResult(status="skipped", reason="no GPU"))


def specs(spec_for: SpecFor, tmp_path: Path) -> tuple[WorkerSpec, WorkerSpec]:
    found = []
    for name in ("ref", "head"):
        directory = tmp_path / name
        directory.mkdir()
        spec = msgspec.structs.replace(spec_for(name), result_path=str(directory / "result"))
        found.append(spec)
    return found[0], found[1]


def run(
    spec_for: SpecFor,
    tmp_path: Path,
    log: Log,
    ref: Behaviour,
    head: Behaviour,
    *,
    ref_first: bool = True,
) -> pair.PairOutcome:
    behaviours = {"ref": ref, "head": head}
    return pair.run_pair(
        *specs(spec_for, tmp_path),
        lambda look: FakeLauncher(behaviours, log, look),
        ref_first=ref_first,
        rng=random.Random(1),
        stepping_ns=200_000_000,
    )


@pytest.mark.parametrize("ref_first", [True, False])
def test_the_sides_step_in_turn(spec_for: SpecFor, tmp_path: Path, ref_first: bool) -> None:
    log = Log()
    outcome = run(spec_for, tmp_path, log, stepping("ref"), stepping("head"), ref_first=ref_first)

    assert outcome.ref.result is not None
    assert outcome.head.result is not None
    assert (outcome.ref.result.reason, outcome.head.result.reason) == ("ref", "head")
    assert not outcome.culprit
    assert not outcome.unheld
    names = [name for name, _ in log.blocks]
    order = ["ref warms up", "head warms up"]
    assert names[:2] == (order if ref_first else order[::-1])
    # 2 × 5 ms a round, 200 ms in all: 20 rounds, each of one block a side, equally long
    rounds = list(zip(log.blocks[2::2], log.blocks[3::2], strict=True))
    assert len(rounds) == 20
    assert all({one[0], other[0]} == {"ref", "head"} for one, other in rounds)
    assert all(one[1] == other[1] for one, other in rounds)
    assert {one[1] for one, _ in rounds} == {2, 3}
    assert {one[0] for one, _ in rounds} == {"ref", "head"}


@pytest.mark.parametrize("told_ns", [0, 1_000_000])
def test_short_steps_are_gathered_into_longer_blocks(
    spec_for: SpecFor, tmp_path: Path, told_ns: int
) -> None:
    log = Log()
    sides = [stepping(name, step_ns=told_ns) for name in ("ref", "head")]
    run(spec_for, tmp_path, log, *sides)

    steps = [steps for _, steps in log.blocks[2:]]
    if told_ns:
        assert set(steps) == {20}
    else:
        # two or three steps in 5 ms: 8 or 12 then make 20 ms
        assert set(steps[:2]) <= {2, 3}
        assert set(steps[2:]) <= {8, 12, 13}


@pytest.mark.parametrize("side", ["ref", "head"])
def test_a_side_that_fails_ends_the_other(spec_for: SpecFor, tmp_path: Path, side: str) -> None:
    good, bad = stepping("good"), dying()
    sides = (bad, good) if side == "ref" else (good, bad)
    outcome = run(spec_for, tmp_path, Log(), *sides)

    assert outcome.culprit == side
    assert not outcome.unheld
    other = outcome.head if side == "ref" else outcome.ref
    assert other.result is not None
    assert "broken off" in other.result.reason


def test_a_side_that_never_measures_ends_the_other(spec_for: SpecFor, tmp_path: Path) -> None:
    outcome = run(spec_for, tmp_path, Log(), stepping("ref"), gone)

    assert outcome.culprit == "head"
    assert outcome.head.result is not None
    assert outcome.head.result.status == "skipped"


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (unheld, "it runs itself"),
        (dying("OutOfMemoryError"), "both sides together do not fit into memory"),
        (dying(failure="killed: out of memory: …"), "both sides together do not fit into memory"),
    ],
)
def test_a_pair_that_cannot_be_is_told_from_a_failure(
    spec_for: SpecFor, tmp_path: Path, behaviour: Behaviour, why: str
) -> None:
    assert run(spec_for, tmp_path, Log(), stepping("ref"), behaviour).unheld == why


def test_a_launcher_that_raises_ends_both(spec_for: SpecFor, tmp_path: Path) -> None:
    def broken(_client: BlockClient, _log: Log) -> WorkerOutcome:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(spec_for, tmp_path, Log(), stepping("ref"), broken)


def test_the_side_that_is_held_stands_still_as_a_whole(spec_for: SpecFor, tmp_path: Path) -> None:
    ref, head = specs(spec_for, tmp_path)
    progress_path = str(tmp_path / "ref" / "progress")
    ref = msgspec.structs.replace(ref, nodeid="paced", progress_path=progress_path)
    seen: list[str] = []

    def watching(client: BlockClient, _log: Log) -> WorkerOutcome:
        client.await_warm_up()
        client.warmed_up(10_000_000)
        progress = ProgressBlock(progress_path)
        worker = progress.slots[WORKER_PID]
        progress.close()
        while steps := client.next_block():
            stat = Path(f"/proc/{worker}/stat").read_text()
            seen.append(stat.rpartition(")")[2].split()[0])
            client.block_done(steps, 10_000_000)
        return WorkerOutcome(result=WorkerResult(status="passed"))

    launchers: list[Launcher] = [
        ProcessLauncher(behaviours.__name__),
        FakeLauncher({"head": watching}, Log(), lambda: None),
    ]
    outcome = pair.run_pair(
        ref,
        head,
        lambda _look: launchers.pop(0),
        ref_first=True,
        rng=random.Random(1),
        stepping_ns=200_000_000,
    )

    assert seen == ["T"] * 10
    assert outcome.ref.result is not None
    assert outcome.ref.result.status == "passed"


def test_a_long_directory_name_is_no_hindrance(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    server = BlockServer(deep)

    def work() -> None:
        client = BlockClient(server.path)
        client.warmed_up(7)
        client.close()

    thread = threading.Thread(target=work)
    thread.start()

    assert server.receive(lambda: False) == Message(kind="steady", ns=7)
    thread.join()
    server.close()


def test_a_worker_without_its_controller_says_so(tmp_path: Path) -> None:
    server = BlockServer(tmp_path)
    client = BlockClient(server.path)
    server.close()

    with pytest.raises(MeasureError, match="broken off"):
        client.await_warm_up()
    with pytest.raises(MeasureError, match="cannot be reached"):
        BlockClient(server.path)
