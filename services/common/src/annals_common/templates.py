"""Templates for a client's context: words with fields in braces, "{{" and "}}" for braces.

Agents' templates are checked where they are written and resolved where a prompt is built.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

FIELDS = ("page_url", "referrer", "user_agent", "locale", "timezone", "custom")
CUSTOM_PREFIX = "custom."
"""Before the name of a single entry of `custom`."""
_KNOWN = ", ".join([*FIELDS, f"{CUSTOM_PREFIX}NAME"])
_MAX_SHOWN_CHARS = 100
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


class TemplateError(ValueError):
    """A template names a field there is not, or has a single brace. Says where."""


@dataclass(frozen=True, slots=True)
class Field:
    """A place for a value: a name of FIELDS, or "custom." and the name of an entry."""

    name: str


def parse_template(template: str) -> tuple[str | Field, ...]:
    """Return words and fields in their order. Raises TemplateError."""
    parts: list[str | Field] = []
    end = 0
    for match in _BRACES.finditer(template):
        parts += [template[end : match.start()], _part(match)]
        end = match.end()
    return tuple(part for part in (*parts, template[end:]) if part)


def _part(match: re.Match[str]) -> str | Field:
    name, where = match[1], f"at character {match.start() + 1}"
    if name is None and len(match[0]) == 2:
        return match[0][0]
    if name is None:
        raise TemplateError(f"has a single {match[0]} {where}; write a brace twice")
    if name not in FIELDS and not _is_entry(name):
        shown = f"{{{name[:_MAX_SHOWN_CHARS]}}}"
        raise TemplateError(f"names the unknown field {shown} {where}; known are {_KNOWN}")
    return Field(name)


def _is_entry(name: str) -> bool:
    return name.startswith(CUSTOM_PREFIX) and name != CUSTOM_PREFIX
