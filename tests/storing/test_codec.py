from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tokbudget.errors import NewerSchemaError, StoreError, UnreadableError
from pytest_tokbudget.records.base import SCHEMA
from pytest_tokbudget.records.baseline import Baseline, Spread
from pytest_tokbudget.records.result import RunResult
from pytest_tokbudget.records.run import RunRecord
from pytest_tokbudget.storing.codec import decode, encode_baseline, encode_compact, load

from .builders import baseline, moved, run, session, workload

FIGURES = st.floats(min_value=1e-9, max_value=1e15)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def _again(data: bytes) -> Baseline:
    return decode(data, Baseline, path=Path("b.json"), what_next="x")


@given(st.lists(FIGURES, min_size=1, max_size=6), FIGURES, st.dictionaries(st.text(), JSON))
def test_rewriting_a_baseline_changes_nothing(
    rates: list[float], variance: float, declaration: dict[str, Any]
) -> None:
    made = baseline(
        workload=workload(declaration=declaration),
        anchor=[session(rate) for rate in rates],
        learned=Spread(variance=variance, degrees=7.5, jobs=2),
        log=[moved(rates)],
    )

    once = encode_baseline(made)
    read = _again(once)

    assert encode_baseline(read) == once
    assert read.workload == made.workload
    for before, after in zip(made.anchor, read.anchor):
        assert after.tok_s == pytest.approx(before.tok_s, rel=1e-6)


def test_a_baseline_is_made_for_diffs() -> None:
    text = encode_baseline(baseline((1000.123456789,))).decode()

    assert text.endswith("}\n")
    assert '\n      "tok_s": 1000.123,\n' in text
    assert '"lr": 0.123456789012' in text
    tree = json.loads(text)
    assert list(tree) == sorted(tree)
    assert list(tree["anchor"][0]) == sorted(tree["anchor"][0])
    assert len(text) < 2500


GOOD = encode_baseline(baseline())


@given(st.integers(min_value=0, max_value=len(GOOD) - 3))
def test_every_truncation_is_called_unreadable(length: int) -> None:
    with pytest.raises(UnreadableError, match=r"b\.json: expected a Baseline, found"):
        _again(GOOD[:length])


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", "an empty file"),
        (GOOD[:300], "a truncated file of 300 bytes"),
        (b"<<<<<<< HEAD\n" + GOOD, "merge conflict markers"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"\xff\xfe\x00", "something else"),
        (b"[1]", "something else"),
        (b"{}", "missing required field `schema`"),
        (b'{"schema": "1"}', "something else"),
        (b'{"schema": 1}', "JSON that is none"),
        (encode_compact(run()), "JSON that is none"),
    ],
)
def test_what_cannot_be_used_says_what_it_is_and_what_to_do(data: bytes, found: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        decode(data, Baseline, path=Path("b.json"), what_next="do this")

    assert str(caught.value).startswith("b.json: ")
    assert found in str(caught.value)
    assert str(caught.value).endswith("do this")


def test_a_newer_schema_is_refused_whatever_else_it_holds() -> None:
    data = json.dumps({"schema": SCHEMA + 1, "unheard_of": []}).encode()

    with pytest.raises(NewerSchemaError, match=f"schema {SCHEMA + 1}.*up to {SCHEMA}.*upgrade"):
        _again(data)


@pytest.mark.parametrize("schema", [0, -1, -99])
@pytest.mark.parametrize("kind", [Baseline, RunRecord, RunResult])
def test_a_schema_that_never_was_is_refused(
    kind: type[Baseline | RunRecord | RunResult], schema: int
) -> None:
    whole = GOOD if kind is Baseline else encode_compact(run())
    data = json.dumps({**json.loads(whole), "schema": schema}).encode()

    with pytest.raises(UnreadableError) as caught:
        decode(data, kind, path=Path("b.json"), what_next="do this")

    assert str(caught.value) == (
        f"b.json: says schema {schema}, and there never was such a schema: expected 1, the only "
        "one; do this"
    )


def test_a_directory_in_the_place_of_a_file_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read"):
        load(tmp_path, Baseline, what_next="x")


def test_a_run_record_survives(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(encode_compact(run()))

    assert load(path, type(run()), what_next="x") == run()
