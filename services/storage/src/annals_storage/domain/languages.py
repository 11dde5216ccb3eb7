"""Languages whose words are known by their stems, and how a caller names one."""

from __future__ import annotations

import re
from collections.abc import Mapping

LANGUAGES: Mapping[str, str] = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "pt": "portuguese",
    "zh": "chinese",
    "ja": "japanese",
}
"""English names by ISO 639-1 code."""
SUPPORTED = ", ".join(f"{code} ({name})" for code, name in LANGUAGES.items())
_BCP_47 = re.compile(r"([A-Za-z]{2,3})(?:-[A-Za-z0-9]{1,8})*")


def language_of(tag: str) -> str | None:
    """Return the ISO 639-1 code a BCP 47 tag begins with ("pt-BR": pt); None: not supported."""
    matched = _BCP_47.fullmatch(tag)
    code = matched.group(1).lower() if matched else ""
    return code if code in LANGUAGES else None
