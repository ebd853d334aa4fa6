"""What the installed plugin adds to a pytest start: ``--collect-only`` of an empty project.

Interleaved with ``-p no:tokbudget`` in random order, so that both see the same machine. Run it on
a quiet machine: ``python benchmarks/startup.py --pairs 30``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from rich.console import Console
from rich.table import Table

VARIANTS = {"with": (), "without": ("-p", "no:tokbudget")}


def start_ms(directory: Path, *args: str) -> float:
    """Milliseconds of one ``pytest --collect-only`` in an empty directory."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    begin = time.perf_counter()
    # Other people's plugins only add noise; ours is loaded the way its entry point loads it.
    subprocess.run(
        [*command, "-p", "pytest_tokbudget.plugin", *args] if not args else [*command, *args],
        cwd=directory,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        check=False,
    )
    return 1000 * (time.perf_counter() - begin)


def measure(pairs: int) -> dict[str, list[float]]:
    """``pairs`` starts of each variant, in random order within a pair."""
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    with tempfile.TemporaryDirectory() as directory:
        for args in VARIANTS.values():
            start_ms(Path(directory), *args)
        for _ in range(pairs):
            for name in random.sample(list(VARIANTS), k=len(VARIANTS)):
                times[name].append(start_ms(Path(directory), *VARIANTS[name]))
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    times = measure(options.pairs)
    more = np.subtract(times["with"], times["without"])
    low, high = np.quantile(
        np.median(np.random.default_rng(0).choice(more, (2000, len(more))), axis=1), [0.025, 0.975]
    )
    table = Table(title=f"pytest --collect-only of an empty project, {options.pairs} pairs")
    table.add_column("")
    table.add_column("median ms", justify="right")
    for name, series in times.items():
        table.add_row(f"{name} the plugin", f"{median(series):.1f}")
    table.add_row("more, paired", f"{median(more):.1f} ({low:.1f} … {high:.1f}, 95 %)")
    Console().print(table)
    if options.json:
        options.json.write_text(json.dumps(times))


if __name__ == "__main__":
    main()
