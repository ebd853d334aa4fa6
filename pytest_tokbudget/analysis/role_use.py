"""How the roles of a pipeline used their time, which limits it, and the sentences on that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

LEAST_AHEAD = 0.03
MOST_HEADROOM = 4.0
"""Beyond fivefold the figure rests on hardly any work of the next role."""
MOST_STARVED = 3


@dataclass(frozen=True, slots=True)
class RoleUse:
    """One role. Shares are of its workers' time, 0 … 1: in ``get``, in ``put``, in declared waits
    for others, and in those of which it is open what they are for (``open_names``)."""

    role: str
    workers: int
    get_share: float
    put_share: float
    others_share: float = 0.0
    open_share: float = 0.0
    open_names: tuple[str, ...] = ()

    @property
    def wait_share(self) -> float:
        """Of its time, what it is known to wait for others."""
        return self.get_share + self.put_share + self.others_share

    @property
    def busy_share(self) -> float:
        """What is left of its time when it is known to wait for no other role."""
        return 1.0 - self.wait_share

    @property
    def surely_busy_share(self) -> float:
        """The same, if every open wait was for others."""
        return self.busy_share - self.open_share


@dataclass(frozen=True, slots=True)
class StarvedQueue:
    """A queue whose readers waited: ``share`` of the time of the workers of ``role``."""

    queue: str
    role: str
    fed_by: tuple[str, ...]
    share: float


@dataclass(frozen=True, slots=True)
class LimitingRole:
    """``limiting`` is ``None`` where no role stands out. ``headroom`` is by which share the rate
    could grow if that role were faster, until the next one limits; ``agreeing`` of ``BLOCKS`` equal
    parts of the window say the same. ``roles`` are the busiest first."""

    limiting: str | None
    headroom: float
    agreeing: int
    roles: tuple[RoleUse, ...]
    starved: tuple[StarvedQueue, ...]

    @property
    def sentences(self) -> list[str]:
        """One sentence on the limiting role, and one on the starved queues where there are any."""
        return [_sentence(self), *([_starved_sentence(self.starved)] if self.starved else [])]


def _sentence(found: LimitingRole) -> str:
    first, second = found.roles[0], found.roles[1]
    waits = [f"{one.role} {_waited(one)}" for one in found.roles]
    if found.limiting is None:
        return f"no role {_why_none(found.roles)}{_and(waits)}{_told_names(found.roles)}"
    more = (
        f"by at most {found.headroom:.0%}" if found.headroom <= MOST_HEADROOM else "many times over"
    )
    return (
        f"{first.role} limits the pipeline: its {first.workers} "
        f"worker{'s' if first.workers != 1 else ''} waited {_waited(first)} of the time "
        f"in queues and declared waits, {_and(waits[1:])}; a faster {first.role} could raise the "
        f"rate {more} before {second.role} limits"
    )


def _waited(role: RoleUse) -> str:
    """``"40%"``, or ``"0–68%"`` where it is open what a part of its waits is for."""
    least, most = round(100 * role.wait_share), round(100 * (role.wait_share + role.open_share))
    return f"{least}%" if most == least else f"{least}–{most}%"


def _why_none(roles: Sequence[RoleUse]) -> str:
    known = "is known to limit" if _open(roles) else "alone limits"
    return f"{known} the pipeline: shares of time in queues and declared waits: "


def _told_names(roles: Sequence[RoleUse]) -> str:
    """The waits that leave the question open, and how their author closes it."""
    open_waits = [f"{one.role}'s in wait({one.open_names[0]!r})" for one in _open(roles)]
    if not open_waits:
        return ""
    return (
        f"; {_and(open_waits)} may be its own work: name such a wait after the queue or role it "
        "waits for, or give it the word device"
    )


def _open(roles: Sequence[RoleUse]) -> list[RoleUse]:
    return [one for one in roles if one.open_share >= LEAST_AHEAD]


def _starved_sentence(starved: Sequence[StarvedQueue]) -> str:
    """Queues between the same roles are told together, with the share of the most starved; their
    depths stand in the table of queues."""
    alike: dict[tuple[str, tuple[str, ...]], list[StarvedQueue]] = defaultdict(list)
    for one in starved:
        alike[one.role, one.fed_by].append(one)
    parts: list[str] = []
    for group in list(alike.values())[:MOST_STARVED]:
        one = group[0]
        fed = f" (fed by {_and(one.fed_by)})" if one.fed_by else ""
        others = f" and {len(group) - 1} like it" if len(group) > 1 else ""
        unit = "" if parts else " of its time"
        verb = "" if parts else "waited "
        parts.append(f"{one.role} {verb}{one.share:.0%}{unit} in get of {one.queue!r}{others}{fed}")
    return ", ".join(parts)


def _and(words: Sequence[str]) -> str:
    return (
        ", ".join(words[:-1]) + (" and " if len(words) > 1 else "") + (words[-1] if words else "")
    )
