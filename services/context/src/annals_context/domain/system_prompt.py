"""System prompts with what an agent wants of the client's context.

What a client says is quoted, on one line, without anything that could end the quotation: line
breaks, other invisible characters, quotes, backslashes, braces, angle brackets and backquotes are
written as escapes of JSON. So it cannot begin a line, close a tag or a fence, or pose as what the
agent's author wrote. Values are not looked at for fields.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from annals_common.templates import CUSTOM_PREFIX, Field, parse_template
from annals_context.domain.snippets import ELLIPSIS, cut_to_graphemes

DELIMITER = "---"
HEADING = "User Context:"
UNKNOWN = "unknown"
"""Stands in a template for what the client did not say."""
LEFT_OUT = '"[left out: too long]"'
MAX_VALUE_CHARS = 2_048
MAX_CUSTOM_ENTRIES = 50
MAX_CUSTOM_CHARS = 500
"""Of one entry, as it is written."""
_LABELS = {
    "page_url": "Current page",
    "referrer": "Referrer",
    "locale": "Locale",
    "timezone": "Timezone",
}
_MAX_EXACT = 2**53
_ESCAPED = frozenset("<>{}`")


@dataclass(frozen=True, slots=True)
class ClientContext:
    """Where an end user's client is, in its own words. `custom` holds JSON values."""

    page_url: str = ""
    referrer: str = ""
    user_agent: str = ""
    locale: str = ""
    timezone: str = ""
    custom: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Injection:
    """What an agent wants of it: `fields` in the default layout, or those of its template."""

    fields: frozenset[str] = frozenset()
    template: str = ""


@dataclass(frozen=True, slots=True)
class SystemPrompt:
    """A prompt and the fields of the client's context that are in it."""

    text: str
    injected: tuple[str, ...] = ()


def build_system_prompt(prompt: str, wanted: Injection, client: ClientContext) -> SystemPrompt:
    """Return an agent's prompt and, below a delimiter, what it wants of the client's context.

    Nothing is added when the client said none of that. Raises TemplateError.
    """
    said = _values(client)
    section = _resolved(wanted.template, said) if wanted.template else _listed(wanted.fields, said)
    if not section.text:
        return SystemPrompt(prompt)
    above = f"{prompt}\n\n{DELIMITER}\n" if prompt else ""
    return SystemPrompt(above + section.text, section.injected)


def quoted(text: str) -> str:
    """Return a text as a JSON string that can be told from all that surrounds it."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in _ESCAPED:
        return f"\\u{ord(char):04x}"
    return char if char.isprintable() and char not in '"\\' else json.dumps(char)[1:-1]


def _values(client: ClientContext) -> dict[str, str]:
    """Return what the client said, quoted, by the name of the field; entries of `custom` last."""
    texts = {name: getattr(client, name) for name in (*_LABELS, "user_agent")}
    said = {name: _quoted_value(text, MAX_VALUE_CHARS) for name, text in texts.items() if text}
    names = sorted(client.custom)[:MAX_CUSTOM_ENTRIES]
    entries = {name: _entry(client.custom[name]) for name in names}
    if entries:
        shown = (f"{_name(name)}: {value}" for name, value in entries.items())
        said["custom"] = f"{{{', '.join(shown)}}}"
    return said | {CUSTOM_PREFIX + name: value for name, value in entries.items()}


def _listed(fields: frozenset[str], said: Mapping[str, str]) -> SystemPrompt:
    shown = {name: label for name, label in _LABELS.items() if name in fields and name in said}
    if "custom" in fields:
        custom = [name for name in said if name.startswith(CUSTOM_PREFIX)]
        shown |= {name: _name(name.removeprefix(CUSTOM_PREFIX)) for name in custom}
    if not shown:
        return SystemPrompt("")
    lines = [f"- {label}: {said[name]}" for name, label in shown.items()]
    return SystemPrompt("\n".join([HEADING, *lines]), tuple(shown))


def _resolved(template: str, said: Mapping[str, str]) -> SystemPrompt:
    parts = parse_template(template)
    names = dict.fromkeys(part.name for part in parts if isinstance(part, Field))
    injected = tuple(name for name in names if name in said)
    if names and not injected:
        return SystemPrompt("")
    shown = (said.get(part.name, UNKNOWN) if isinstance(part, Field) else part for part in parts)
    return SystemPrompt("".join(shown), injected)


def _quoted_value(text: str, max_chars: int) -> str:
    cut = cut_to_graphemes(text, max_chars)
    return quoted(cut if len(cut) == len(text) else cut + ELLIPSIS)


def _name(name: str) -> str:
    return _quoted_value(name, MAX_CUSTOM_CHARS)


def _entry(value: object) -> str:
    if isinstance(value, str):
        return _quoted_value(value, MAX_CUSTOM_CHARS)
    encoded = _encoded(value)
    return encoded if len(encoded) <= MAX_CUSTOM_CHARS else LEFT_OUT


def _encoded(value: object) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_encoded, value))}]"
    if isinstance(value, dict):
        members = (f"{quoted(name)}: {_encoded(value[name])}" for name in sorted(value))
        return f"{{{', '.join(members)}}}"
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT:
        # Numbers come as doubles; whole ones look as they were written.
        return str(int(value))
    return json.dumps(value)
