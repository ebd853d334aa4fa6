"""How figures are written for people. Numbers in, text out; nothing is computed but rounding."""

from __future__ import annotations

import re

from ..records.machine import Commit, MachineRecord

_ASCII = str.maketrans(
    {
        "−": "-",
        "–": "-",
        "—": "-",
        "·": "|",
        "…": "~",
        "×": "x",
        "→": ">",
        "≥": ">",
        "≤": "<",
        "µ": "u",
        "§": "S",
        "’": "'",
        "“": '"',
        "”": '"',
        "\u00a0": " ",
        "\u202f": " ",
        **dict.fromkeys("█▉▊▋▌▍▎▏▐▕", "#"),
    }
)
"""One character for one, so that a translated text keeps its layout."""

_CPU_NOISE = re.compile(r"\((?:R|TM)\)|\b\d+-Core\b|\bProcessor\b|\bCPU\b|@.*$", re.IGNORECASE)

_STEERS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters, line separators and those that turn the direction of writing."""


def fitting(text: str, encoding: str) -> str:
    """Return ``text`` as it can be written in ``encoding``: unchanged if that holds all of it."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def fitting_evidence(text: str, encoding: str) -> str:
    """As ``fitting``, but an arrow becomes a word and a shortened path no home directory.

    Characters that would steer the terminal, as a thread's name may hold, are shown escaped.
    """
    text = _STEERS.sub(lambda one: one[0].encode("unicode_escape").decode(), text)
    if fitting(text, encoding) == text:
        return text
    return fitting(text.replace(" → ", " to ").replace("…/", ".../"), encoding)


def rate(tok_s: float) -> str:
    """Write a rate without its unit: ``"14,500"``, ``"102.4"``."""
    return f"{tok_s:,.0f}" if tok_s >= 999.5 else f"{tok_s:.4g}"


def percent(value: float) -> str:
    """Write a percentage to two significant digits: ``"0.38 %"``, ``"5.1 %"``, ``"12 %"``."""
    size = abs(value)
    digits = 0 if size >= 9.95 else 1 if size >= 0.995 else 2
    text = f"{size:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} %"


def signed(value: float) -> str:
    """Write a change with its sign: ``"−5.1 %"``, ``"+0.4 %"``, ``"0 %"``."""
    return _with_sign(value, percent(value))


def interval(low_high: tuple[float, float]) -> str:
    """Write ``"−6.4 … −3.8 %"``, both ends to the same digit, or ``"without bound"``."""
    size = max(abs(one) for one in low_high)
    if not size <= 1000:
        return "without bound"
    digits = 1 if size < 9.95 else 0
    low, high = (_with_sign(one, f"{abs(one):.{digits}f}") for one in low_high)
    return f"{low} … {high} %"


def _with_sign(value: float, size: str) -> str:
    nothing = float(size.removesuffix(" %")) == 0
    return size if nothing else f"{'−' if value < 0 else '+'}{size}"


def milliseconds(value: float) -> str:
    """Write three significant digits at least: ``"0.0412 ms"``, ``"15.8 ms"``, ``"1,204 ms"``."""
    return f"{value:,.0f} ms" if value >= 99.95 else f"{value:.3g} ms"


def count(number: int, noun: str) -> str:
    """Write ``"1 session"``, ``"1,200 steps"``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def machine_line(machine: MachineRecord) -> str:
    """Write accelerators, CPU and usable cores, and the pool on one line."""
    cpu = " ".join(_CPU_NOISE.sub(" ", machine.cpu_model).split()) or "unknown CPU"
    parts = [*_accelerators(machine), f"{cpu}, {count(machine.usable_cores, 'core')}"]
    return " · ".join([*parts, *([f"pool {machine.pool}"] if machine.pool else [])])


def versions_line(machine: MachineRecord) -> str:
    """Write the versions that move a rate, and the commit."""
    software = machine.software
    named = (
        ("Python", software.python),
        ("torch", software.torch),
        ("CUDA", software.cuda),
        ("driver", software.driver),
    )
    versions = ", ".join(f"{name} {version}" for name, version in named if version)
    return " · ".join(part for part in (versions, commit_name(machine.commit)) if part)


def commit_name(commit: Commit) -> str:
    """Write ``"commit a1b2c3d4e, 2 files changed"``, ``""`` outside git."""
    if commit.sha is None:
        return ""
    changed = len(commit.dirty_paths)
    return f"commit {commit.sha[:9]}" + (f", {count(changed, 'file')} changed" if changed else "")


def _accelerators(machine: MachineRecord) -> list[str]:
    names: dict[str, int] = {}
    for one in machine.accelerators:
        said = one.form_factor and one.form_factor.lower() not in one.product.lower()
        name = f"{one.product} {one.form_factor}" if said else one.product
        name += f" MIG {one.mig_profile}" if one.mig_profile else ""
        names[name] = names.get(name, 0) + 1
    return [f"{number} × {name}" for name, number in names.items()]
