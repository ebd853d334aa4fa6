from __future__ import annotations

import pytest

from pytest_tokbudget.analysis.limiting_role import limiting_role
from pytest_tokbudget.analysis.role_use import LimitingRole
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.marks import MarkSeries, QueueSeries, SpanSeries

MS, STEPS = 1_000_000, 200
WINDOW = (0, 2_000 * MS)


def calls(side: str, worker: str, wait_ms: float, *, depth: int = 30) -> QueueSeries:
    """A call every 10 ms that lasts ``wait_ms``."""
    starts = [at * 10 * MS for at in range(STEPS)]
    return QueueSeries(
        queue="states",
        side=side,
        worker=worker,
        capacity=60,
        low_water=10,
        start_ns=starts,
        end_ns=[one + round(wait_ms * MS) for one in starts],
        sequence=list(range(STEPS)),
        depth=[depth] * STEPS,
    )


def worker(name: str, role: str, *, counts: bool = False) -> MarkSeries:
    return MarkSeries(worker=name, role=role, counts=counts, times_ns=[1])


MARKS = [
    worker("t0", "target"),
    worker("t1", "target"),
    worker("d0", "drafter", counts=True),
]


def found(put_ms: float, get_ms: float, depth: int = 30) -> LimitingRole:
    queues = [calls("put", one, put_ms, depth=depth) for one in ("t0", "t1")]
    result = limiting_role([*queues, calls("get", "d0", get_ms, depth=depth)], MARKS, WINDOW)
    assert isinstance(result, LimitingRole)
    return result


def test_the_role_that_never_waits_limits() -> None:
    result = found(0.0, 4.0)
    assert result.limiting == "target"
    assert result.headroom == pytest.approx(1 / 0.6 - 1)
    assert result.sentences[0].startswith(
        "target limits the pipeline: its 2 workers waited 0% of the time in queues and declared "
        "waits, drafter 40%"
    )
    assert "at most 67% before drafter limits" in result.sentences[0]
    assert (
        "drafter waited 40% of its time in get of 'states' (fed by target)" in result.sentences[1]
    )


def test_back_pressure_names_the_consumer() -> None:
    result = found(6.0, 0.1)
    assert result.limiting == "drafter"
    assert result.starved == ()


def test_a_queue_that_sits_at_its_watermark_still_starves_its_readers() -> None:
    result = found(0.0, 5.0, depth=10)
    assert result.limiting == "target"
    (starved,) = result.starved
    assert (starved.queue, starved.share) == ("states", 0.5)


def test_an_even_pipeline_has_no_limiting_role() -> None:
    result = found(1.0, 1.1)
    assert result.limiting is None
    assert result.sentences[0].startswith("no role alone limits the pipeline")


def test_waiting_in_one_part_of_the_window_only_limits_nothing() -> None:
    get = calls("get", "d0", 0.0)
    ends = [one + (9_900_000 if at < 40 else 0) for at, one in enumerate(get.start_ns)]
    get = QueueSeries(
        queue="states", side="get", worker="d0", start_ns=get.start_ns, end_ns=ends,
        sequence=get.sequence, depth=get.depth,
    )  # fmt: skip
    put = calls("put", "t0", 1.0)
    result = limiting_role([put, get], MARKS, WINDOW)
    assert isinstance(result, LimitingRole)
    assert result.limiting is None


def test_one_role_alone_is_no_pipeline() -> None:
    assert isinstance(limiting_role([], MARKS, WINDOW), Unavailable)
    only = [calls("put", "t0", 1.0), calls("get", "t1", 1.0)]
    assert isinstance(limiting_role(only, MARKS, WINDOW), Unavailable)


def test_a_worker_without_a_call_in_the_window_takes_no_part() -> None:
    seed = QueueSeries(
        queue="states",
        side="put",
        worker="main",
        start_ns=[-5],
        end_ns=[-4],
        sequence=[0],
        depth=[1],
    )
    queues = [seed, calls("put", "t0", 0.0), calls("get", "d0", 4.0)]
    result = limiting_role(queues, [*MARKS, worker("main", "seeder")], WINDOW)
    assert isinstance(result, LimitingRole)
    assert [one.role for one in result.roles] == ["target", "drafter"]
    assert result.limiting == "target"


def waits(worker: str, name: str, wait_ms: float) -> SpanSeries:
    """From 1 ms after every 10 ms on."""
    starts = [at * 10 * MS + MS for at in range(STEPS)]
    ends = [one + round(wait_ms * MS) for one in starts]
    return SpanSeries(kind="wait", name=name, worker=worker, start_ns=starts, end_ns=ends)


def with_wait(name: str, *, put_ms: float = 0.0) -> LimitingRole:
    """A drafter that is in a wait for 7 ms of 10, from within its call of the queue on."""
    queues = [calls("put", "t0", put_ms), calls("get", "d0", 2.0)]
    result = limiting_role(queues, MARKS[::2], WINDOW, [waits("d0", name, 7.0)])
    assert isinstance(result, LimitingRole)
    return result


@pytest.mark.parametrize("name", ["states", "target"])
def test_a_wait_named_after_a_queue_or_another_role_is_for_others(name: str) -> None:
    result = with_wait(name)
    assert result.limiting == "target"
    assert "waited 0% of the time in queues and declared waits, drafter 80%" in result.sentences[0]


def test_a_wait_for_the_device_is_the_workers_own_work() -> None:
    assert with_wait("run-ahead of the device", put_ms=4.0).limiting == "drafter"


def test_a_wait_that_may_be_for_anybody_names_no_role_where_that_decides() -> None:
    result = with_wait("weights", put_ms=4.0)
    assert result.limiting is None
    assert result.sentences[0].startswith("no role is known to limit the pipeline: shares of")
    assert (
        "target 40% and drafter 20–80%; drafter's in wait('weights') may be"
        in (result.sentences[0])
    )
    assert with_wait("weights").limiting == "target"


def test_a_role_whose_own_wait_may_be_for_somebody_without_a_queue_is_not_named() -> None:
    assert with_wait("weights", put_ms=9.0).limiting is None
    assert with_wait("weights on the device", put_ms=9.0).limiting == "drafter"


def test_a_role_without_a_queue_that_others_wait_for_takes_part() -> None:
    marks = [*MARKS[::2], worker("s", "server")]
    queues = [calls("put", "t0", 9.0), calls("get", "d0", 0.0)]
    result = limiting_role(queues, marks, WINDOW, [waits("d0", "server", 7.0)])
    assert isinstance(result, LimitingRole)
    assert result.limiting == "server"
