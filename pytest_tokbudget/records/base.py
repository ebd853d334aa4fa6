"""What all records share: frozen, keyword-only, unknown fields refused."""

from __future__ import annotations

import msgspec

SCHEMA = 1
"""The schema version this package writes. It reads every older one and refuses newer ones."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every record: immutable, keyword-only, strict about unknown fields."""


class Unavailable(msgspec.Struct, frozen=True, tag="unavailable", tag_field="state"):
    """Something that is not known, and why. Never stands for zero or for an empty table."""

    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.reason} ({self.remedy})" if self.remedy else self.reason
