"""Watches the machine from another process while the timing pass runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

import pytest_tokbudget
from pytest_tokbudget.records.base import Unavailable
from pytest_tokbudget.records.telemetry import MachineWatch

from .nvml import Device, DriverReader, Nvml
from .telemetry_summary import summarize
from .visible_devices import visible_devices

INTERVAL_MS = 200.0
_MODULE = "pytest_tokbudget.evidence.telemetry_sampler"
_ENDS_WITHIN_S = 10.0


class Telemetry:
    """Samples the devices that CUDA shows to this process, by UUID, and the host's CPUs.

    Without NVML the host is watched all the same, and the reason stands in the record.
    """

    def __init__(
        self,
        driver: DriverReader | None = None,
        environment: Mapping[str, str] | None = None,
        interval_ms: float = INTERVAL_MS,
    ) -> None:
        self._driver = Nvml() if driver is None else driver
        self._environment = dict(os.environ if environment is None else environment)
        self._interval_ms = interval_ms
        self._devices: Sequence[Device] = ()
        self._unavailable: dict[str, str] = {}
        self._samples: IO[bytes] | None = None
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> Unavailable | None:
        """Start the sampler; ``Unavailable`` when no process could be started."""
        view = self._driver.read()
        if isinstance(view, Unavailable):
            self._unavailable["nvml"] = str(view)
        else:
            visible = visible_devices(view.devices, self._environment)
            self._devices = visible.devices
            if visible.assumption:
                self._unavailable["device order"] = visible.assumption
        # Without a name, so that nothing is left behind by a process that is killed.
        self._samples = tempfile.TemporaryFile()  # noqa: SIM115 - until ``stop``
        number = self._samples.fileno()
        try:
            self._process = subprocess.Popen(
                self._command(number),
                pass_fds=(number,),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=self._environment | {"PYTHONPATH": self._python_path()},
            )
        except OSError as error:
            return Unavailable(f"the machine cannot be watched: {error}")
        return None

    def stop(self, within_unix_ns: tuple[int, int] | None = None) -> MachineWatch | Unavailable:
        """End the sampler and summarize; ``Unavailable`` when it died or saw nothing.

        With ``within_unix_ns`` only the samples taken between these two moments count.
        """
        if self._process is None or self._samples is None:
            return Unavailable("the machine was not watched")
        try:
            _, said = self._process.communicate(timeout=_ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            _, said = self._process.communicate()
        with self._samples:
            text = self._samples.read().decode()
        # The last line may be torn when the sampler was killed.
        lines = [one for one in text.splitlines(keepends=True) if one.endswith("\n")]
        if not lines:
            last = said.strip().rsplit("\n", 1)[-1]
            return Unavailable(
                f"the process that watches the machine died: {last or 'it said nothing'}"
            )
        samples = [json.loads(one) for one in lines]
        if within_unix_ns is not None:
            start_ns, end_ns = within_unix_ns
            samples = [one for one in samples if start_ns <= one["unix_ns"] <= end_ns]
            if not samples:
                return Unavailable(
                    f"the timing pass was over within {self._interval_ms:.0f} ms, the time between "
                    "two looks at the machine"
                )
        return summarize(samples, self._devices, self._unavailable)

    def _command(self, number: int) -> list[str]:
        devices = [
            f"{one.uuid}={one.parent_uuid}" if one.parent_uuid else one.uuid
            for one in self._devices
        ]
        options = ["--out", f"/dev/fd/{number}", "--pid", str(os.getpid())]
        options += ["--interval-ms", str(self._interval_ms)]
        return [sys.executable, "-m", _MODULE, *options, *devices]

    def _python_path(self) -> str:
        """So that the child finds this very package, however this process found it."""
        here = str(Path(pytest_tokbudget.__file__).parents[1])
        inherited = self._environment.get("PYTHONPATH")
        return here if not inherited else os.pathsep.join((here, inherited))
