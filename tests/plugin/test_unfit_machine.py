"""A machine that cannot be judged on: exit status 75, what to fix, and no baseline from it."""

from __future__ import annotations

from .conftest import TEST, Project

TRACED = TEST.replace(
    "    tokbudget(step)",
    "    import os, sys\n"
    "    def somebody(frame, event, argument): return None\n"
    "    if os.environ.get('TRACED'): sys.settrace(somebody)\n"
    "    tokbudget(step)\n"
    "    sys.settrace(None)",
)


def test_an_attached_tracer_is_unfit_and_refuses_a_refresh(bare_project: Project) -> None:
    bare_project.write("test_it.py", TRACED)
    refused = bare_project.run(
        "--tokbudget-refresh", "traced", "--tokbudget-sessions", "3", TRACED="1"
    )
    assert refused.ret == 1
    refused.stdout.fnmatch_lines(["*this machine is unfit: *somebody (sys.settrace)*"])
    assert not bare_project.baseline_files

    bare_project.write("test_it.py", TEST)
    bare_project.have_baseline()
    bare_project.write("test_it.py", TRACED)
    assert set(bare_project.baseline["anchor"][0]) >= {"usable_cores"}
    unfit = bare_project.run("--tokbudget", TRACED="1", slower=4)
    assert unfit.ret == 75
    assert bare_project.only_test["outcome"] == "UNFIT"
    unfit.stdout.fnmatch_lines(["*somebody (sys.settrace) was attached*"])
