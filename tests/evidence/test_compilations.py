from __future__ import annotations

from collections import Counter, defaultdict
from types import SimpleNamespace

from pytest_tokbudget.evidence.compilations import CompilationProbe, Compilations
from pytest_tokbudget.records.base import Unavailable


def test_only_what_was_compiled_meanwhile_counts() -> None:
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
    counters["frames"]["total"] = 4
    counters["graph_break"]["print"] = 2
    probe = CompilationProbe({"torch._dynamo.utils": SimpleNamespace(counters=counters)})
    probe.start()
    counters["frames"]["total"] = 7
    counters["graph_break"]["print"] = 3
    assert probe.stop() == Compilations(3, 1, {"print": 1})


def test_asking_leaves_the_counters_alone() -> None:
    counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
    probe = CompilationProbe({"torch._dynamo.utils": SimpleNamespace(counters=counters)})
    probe.start()
    assert probe.stop() == Compilations(0, 0)
    assert not counters


def test_without_dynamo_there_is_a_reason() -> None:
    probe = CompilationProbe({})
    probe.start()
    assert isinstance(probe.stop(), Unavailable)


def test_counters_are_means_a_step() -> None:
    assert Compilations(3, 1).counters_per_step(2) == {"recompilations": 1.5, "graph_breaks": 0.5}
