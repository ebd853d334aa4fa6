"""``make gate``: measure the example on this machine and judge it.

Judged against the committed baselines (``baselines/``) where they know this class of machine. Where
they do not, a baseline is first recorded outside the committed files, without any knobs, and kept
for the next time. The exit status is pytest's; of several runs, the one that blames the code.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tokbudget.errors import StoreError
from pytest_tokbudget.evidence.machine import read_machine
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.machine import MachineClass
from pytest_tokbudget.records.workload import Workload
from pytest_tokbudget.storing.baselines import BaselineDirectory
from pytest_tokbudget.storing.machine_class import machine_class

from .config import sizes_here
from .knobs import read_knobs

ROOT = Path(__file__).resolve().parents[2]
TESTS = "examples/dflash/test_throughput.py"
COMMITTED = Path("baselines")
LOCAL = Path(".tokbudget/gate-baselines")
FIRST = "first baseline of this machine, recorded by make gate"


def main() -> int:
    """Record what is missing, judge everything, and return the exit status."""
    try:
        sizes = sizes_here()
        for size in sizes:
            read_knobs(size)
    except ValueError as error:
        print(f"gate: {error}", file=sys.stderr)  # noqa: T201 - a program that prints
        return 4
    here = machine_class(read_machine(os.environ.get("TOKBUDGET_MACHINE", ""), rootdir=ROOT))
    names = [size.name for size in sizes]
    committed = [name for name in names if is_stored(ROOT / COMMITTED, name, here)]
    local = [name for name in names if name not in committed]
    fresh = [name for name in local if not is_stored(ROOT / LOCAL, name, here)]
    if fresh:
        status = record(fresh, here)
        if status:
            return status
    statuses = [judge(committed, COMMITTED), judge(local, LOCAL)]
    return next((status for status in statuses if status not in (0, 75)), max(statuses))


def record(names: Sequence[str], here: MachineClass) -> int:
    """Record baselines for ``names`` under ``LOCAL``; return pytest's exit status."""
    print(  # noqa: T201
        f"gate: no stored baseline of {', '.join(names)} for this machine class ({here.slug}).\n"
        f"gate: recording one under {LOCAL}/, which is not committed; it takes a few minutes, once."
        "\ngate: to start anew, delete that directory.",
        flush=True,
    )
    options = ["--tokbudget-refresh", FIRST, "--tokbudget-allow-dirty"]
    return run_pytest(names, LOCAL, options, without_knobs(os.environ))


def judge(names: Sequence[str], baselines: Path) -> int:
    """Measure ``names`` and judge them against ``baselines``; return pytest's exit status."""
    if not names:
        return 0
    print(f"gate: judging {', '.join(names)} against {baselines}/", flush=True)  # noqa: T201
    return run_pytest(names, baselines, ["--tokbudget"], os.environ)


def without_knobs(environment: Mapping[str, str]) -> dict[str, str]:
    """Return ``environment`` without knobs: these must meet the baseline of the code without."""
    return {key: value for key, value in environment.items() if key != "DFLASH"}


def run_pytest(
    names: Sequence[str], baselines: Path, options: Sequence[str], environment: Mapping[str, str]
) -> int:
    """Run the throughput tests of ``names`` in a pytest of their own."""
    nodes = [f"{TESTS}::test_dflash[{name}]" for name in names]
    command = [sys.executable, "-m", "pytest", *nodes, *options]
    command += ["--tokbudget-baselines", str(baselines)]
    return subprocess.run(command, cwd=ROOT, env=dict(environment), check=False).returncode


def is_stored(directory: Path, name: str, here: MachineClass) -> bool:
    """Whether ``directory`` has a baseline of size ``name`` for this class of machine.

    A file that cannot be used counts as stored: the run then says what is wrong with it.
    """
    workload = Workload(
        path=TESTS, qualname="test_dflash", param_ids=name, nodeid=f"{TESTS}::test_dflash[{name}]"
    )
    try:
        return not isinstance(BaselineDirectory(directory).load(workload, here), Unavailable)
    except StoreError:
        return True


if __name__ == "__main__":
    sys.exit(main())
