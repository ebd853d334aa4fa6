"""Names that every file system accepts, from text that people wrote."""

from __future__ import annotations

import re
import unicodedata

_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])")
"""Device names that Windows refuses as file names."""


def slug(text: str, *, most: int = 80) -> str:
    """Return ``text`` as 1 to ``most`` characters of ``a-z``, ``0-9``, ``_`` and ``-``.

    Too long a text loses its beginning: what tells two tests apart stands at the end. Different
    texts may share a slug; who needs them apart adds a hash.
    """
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii")
    plain = re.sub(r"[^a-z0-9_]+", "-", ascii_text.lower().replace("+", "plus"))
    cut = plain.strip("-")[-most:].strip("-")
    if not cut:
        return "unnamed"
    return f"x-{cut}"[:most] if _RESERVED.fullmatch(cut) else cut
