"""The machine a session ran on, and the class of machines whose sessions are comparable."""

from __future__ import annotations

from .base import Record


class Accelerator(Record, frozen=True, kw_only=True):
    """One device as the driver describes it. ``None`` where the driver does not say.

    ``form_factor`` is ``"SXM"``, ``"PCIe"``, ``"NVL"`` … where the product name tells it.
    ``mig_profile`` is the profile of the MIG slice in use (``"1g.18gb"``), ``""`` without MIG.
    """

    index: int
    uuid: str
    product: str
    form_factor: str | None = None
    memory_bytes: int | None = None
    mig_profile: str | None = None
    power_limit_w: float | None = None


class Software(Record, frozen=True, kw_only=True):
    """Versions at work. They are shown when they differ and never forbid a comparison."""

    python: str
    tokbudget: str
    torch: str | None = None
    cuda: str | None = None
    driver: str | None = None
    os: str = ""


class Commit(Record, frozen=True, kw_only=True):
    """The checkout measured: ``sha`` is ``None`` outside git, and ``reason`` then says why.

    ``dirty_paths`` are the changed files, relative to the git top level; ``untracked_modules`` the
    Python files there that the measuring process had imported and that git neither tracks nor
    shows as changed: ignored ones. A file that only names the version is none of them.
    """

    sha: str | None = None
    branch: str | None = None
    dirty_paths: list[str] = []
    untracked_modules: list[str] = []
    reason: str = ""


class MachineRecord(Record, frozen=True, kw_only=True):
    """Everything about the machine that a judgement may need.

    ``host_hash`` tells hosts apart without naming them. ``pool`` is the name that a team gave its
    pool of equal machines (``tokbudget_machine``), ``""`` where none was given.
    """

    cpu_model: str
    usable_cores: int
    memory_bytes: int
    host_hash: str
    accelerators: list[Accelerator] = []
    software: Software
    commit: Commit
    pool: str = ""
    unavailable: dict[str, str] = {}


class MachineClass(Record, frozen=True, kw_only=True):
    """What two machines must share for their sessions to be compared.

    ``slug`` names the baseline's directory; ``fields`` are compared and shown. With a pool name the
    slug is the pool's, and ``fields`` are checked and shown, not part of the name.
    """

    slug: str
    fields: dict[str, str]
    pool: str = ""
