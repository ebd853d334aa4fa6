from __future__ import annotations

from pytest_tokbudget.analysis.cpu_summary import summarize_cpu
from pytest_tokbudget.analysis.frames import stack_tables
from pytest_tokbudget.analysis.role_lines import RoleLines
from tests.analysis.cpu_records import BEGIN_NS, clock_of, record_of, stacks_of

GET = "main:1>get@/usr/lib/python3.11/queue.py:171"


def lines_of(looks: dict[str, list[str]], workers: list[int]) -> list[RoleLines]:
    tables = stack_tables(record_of(stacks_of(looks), workers=workers), "/app")
    assert tables is not None
    return tables.by_line


def operators(line: str, count: int, looks: int) -> list[str]:
    return [f"main:1>step:{line}>op{at}:1" for at in range(count) for _ in range(looks)]


def test_a_loop_among_hotter_operators_is_named_by_its_line_of_the_step() -> None:
    packing = ["main:1>step:4>pack:60>loop:78"] * 6 + ["main:1>step:4>pack:63"] * 2
    looks = operators("6", 12, 14) + packing + [GET] * 24
    [found] = lines_of({"target-0": looks, "helper": [GET] * 200}, [100])
    assert (found.role, found.function, found.file) == ("target-0", "step", "step.py")
    assert [(one.line, one.samples) for one in found.lines] == [(6, 168), (4, 8)]
    assert found.sentence == (
        "target-0 by line of step (step.py): 84 % line 6, mostly op0 (op0.py:1) (n = 168); "
        "4.0 % line 4, mostly loop (loop.py:78) (n = 8)"
    )


def test_a_line_beside_one_that_has_nearly_all_is_kept_on_the_way_down() -> None:
    looks = (
        ["main:1>step:6>layer:1>op:1"] * 60
        + ["main:1>step:6>layer:2"] * 37
        + ["main:1>step:4>loop:78"] * 3
    )
    [found] = lines_of({"t": looks}, [100])
    assert found.function == "layer"
    assert found.sentence == (
        "t by line of layer (layer.py): 60 % line 1, mostly op (op.py:1) (n = 60); "
        "37 % line 2 (n = 37); 3.0 % step (step.py:4), mostly loop (loop.py:78) (n = 3)"
    )


def test_nothing_is_said_of_work_that_never_parts_nor_of_too_few_samples() -> None:
    assert lines_of({"t": ["main:1>step:6>op:1"] * 50 + [GET] * 50}, [100]) == []
    assert lines_of({"t": ["main:1>op:1"] * 98 + ["main:2>rare:1"] * 2}, [100]) == []
    assert lines_of({"t": [GET] * 50}, [100]) == []


def test_threads_of_a_role_are_one_and_threads_that_mark_nothing_are_none() -> None:
    looks = {
        "a-0": ["main:1>f:1"] * 50,
        "a-1": ["main:2>g:1"] * 50,
        "x": ["main:1>f:1", "main:2>g:1"] * 25,
    }
    clocks = [clock_of(100 + at, name, [0] * 6, role="a") for at, name in enumerate(looks)]
    record = record_of(stacks_of(looks), clocks, workers=[100, 101])
    summary = summarize_cpu(record, [], [], (BEGIN_NS, record.end_ns), "/app")
    assert summary.sentences[-1] == (
        "a by line of main (main.py): 50 % line 1, mostly f (f.py:1) (n = 50); "
        "50 % line 2, mostly g (g.py:1) (n = 50)"
    )
