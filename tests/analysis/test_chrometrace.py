from __future__ import annotations

import json

import pytest

from pytest_tokbudget.analysis.chrometrace import read_chrometrace
from pytest_tokbudget.errors import UnreadableError


def event(ph: str, name: str, tid: int, ts: int, line: int = 0) -> dict[str, object]:
    place = {"filename": "/app/a.py" if line else "", "line": line}
    return {"ph": ph, "name": name, "tid": tid, "ts": ts, "pid": 1, "cat": "py-spy", "args": place}


def two_threads() -> list[dict[str, object]]:
    return [
        event("B", "thread (11): odd; name [x] (y): ü", 1, 1_000),
        event("B", "work", 1, 1_000, 5),
        event("B", "thread (12): MainThread", 2, 1_010),
        event("B", "main", 2, 1_010, 1),
        event("E", "work", 1, 11_000, 5),
        event("B", "work", 1, 11_000, 6),
        event("E", "work", 1, 31_000, 6),
        event("E", "thread (11): odd; name [x] (y): ü", 1, 31_000),
        event("E", "main", 2, 31_000, 1),
        event("E", "thread (12): MainThread", 2, 31_000),
    ]


def test_changes_become_runs_between_rounds() -> None:
    raw = read_chrometrace(json.dumps(two_threads()).encode())
    assert raw.threads == [(11, "odd; name [x] (y): ü"), (12, "MainThread")]
    assert raw.round_us == [1_000, 11_000, 31_000]
    leaf = [raw.frames[raw.stacks[one[1]][-1]] for one in raw.runs]
    assert [(one[0], one[2], one[3]) for one in raw.runs] == [(0, 0, 1), (0, 1, 2), (1, 0, 2)]
    assert leaf == [("work", "/app/a.py", 5), ("work", "/app/a.py", 6), ("main", "/app/a.py", 1)]


def test_a_thread_seen_twice_begins_a_new_round_however_soon() -> None:
    again = [event("E", "work", 1, 1_020, 5), event("B", "work", 1, 1_020, 9)]
    events = [*two_threads()[:4], *again]
    assert read_chrometrace(json.dumps(events).encode()).round_us == [1_000, 1_020]


@pytest.mark.parametrize("trace", [b"", b"[", b'[{"ph": "B"', b"{}", b'[{"ph": 3}]'])
def test_a_torn_file_is_refused(trace: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_chrometrace(trace)


def test_a_thread_without_a_name_keeps_its_number() -> None:
    events = [event("B", "thread (0x7F00)", 1, 5), event("B", "f", 1, 5, 1)]
    events.append(event("E", "f", 1, 20_000, 1))
    assert read_chrometrace(json.dumps(events).encode()).threads == [(0, "")]


def test_a_thread_without_a_frame_of_its_own_has_no_stack() -> None:
    bare = [
        event("B", "thread (13): begins", 3, 1_005),
        event("E", "thread (13): begins", 3, 2_000),
    ]
    events = sorted([*two_threads(), *bare], key=lambda one: int(str(one["ts"])))
    raw = read_chrometrace(json.dumps(events).encode())
    assert all(raw.stacks)
    assert (13, "begins") not in [raw.threads[one[0]] for one in raw.runs]
