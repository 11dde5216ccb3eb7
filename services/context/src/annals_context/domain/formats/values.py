"""Checks of single values in a provider's payload; errors name the path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

from annals_common.errors import FieldInvalidError
from annals_context.domain.formats.compact_json import dumps

MAX_TEXT_BYTES = 1024 * 1024
MAX_IDENTIFIER_CHARS = 256
MAX_NAME_CHARS = 200
ROOT = "payload"


def listed(root: object, *names: str) -> tuple[object, str]:
    """Return a payload, or the first of its members `names` that is there, and its path."""
    if not isinstance(root, dict):
        return root, ROOT
    name = next((one for one in names if one in root), names[-1])
    return root.get(name), f"{ROOT}.{name}"


def objects(value: object, path: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the path and the members of each object of an array."""
    for index, item in enumerate(array(value, path)):
        item_path = f"{path}[{index}]"
        yield item_path, members(item, item_path)


def members(value: object, path: str) -> Mapping[str, object]:
    """Return an object's members."""
    if not isinstance(value, dict):
        raise FieldInvalidError(path, f"must be an object, not {_kind(value)}")
    return value


def array(value: object, path: str) -> Sequence[object]:
    """Return an array's values."""
    if not isinstance(value, list):
        raise FieldInvalidError(path, f"must be an array, not {_kind(value)}")
    return value


def text(value: object, path: str) -> str:
    """Return a string that every store can hold, ≤ 1 MiB as UTF-8; it may be empty."""
    if not isinstance(value, str):
        raise FieldInvalidError(path, f"must be a string, not {_kind(value)}")
    if "\0" in value:
        raise FieldInvalidError(path, "must not hold the character U+0000")
    if len(_utf8(value, path)) > MAX_TEXT_BYTES:
        raise FieldInvalidError(path, f"must not take more than {MAX_TEXT_BYTES} bytes")
    return value


def name(value: object, path: str) -> str:
    """Return a speaker's name; null and absent mean none."""
    return _bounded(value, path, MAX_NAME_CHARS) if value is not None else ""


def identifier(value: object, path: str) -> str:
    """Return a string of 1–256 characters."""
    checked = _bounded(value, path, MAX_IDENTIFIER_CHARS)
    if not checked:
        raise FieldInvalidError(path, "must not be empty")
    return checked


def json_text(value: object, path: str) -> str:
    """Return a string that is JSON, untouched; empty stands for `{}`."""
    checked = text(value, path)
    if checked:
        encoded_text(load(checked, path), path)
    return checked


def check_parts(value: object, path: str) -> None:
    """Check the parts of a content: objects with a type; text parts have a text."""
    for index, part in enumerate(array(value, path)):
        part_path = f"{path}[{index}]"
        kind = text(members(part, part_path).get("type"), f"{part_path}.type")
        if kind == "text":
            text(members(part, part_path).get("text"), f"{part_path}.text")


def encodable(value: object, path: str) -> str:
    """Return the value as JSON that every store can hold as a value."""
    encoded = encoded_text(value, path)
    if "\\u0000" in encoded and _has_nul(value):
        raise FieldInvalidError(path, "must not hold the character U+0000")
    return encoded


def encoded_text(value: object, path: str) -> str:
    """Return the value as JSON that every store can hold as a text, ≤ 1 MiB as UTF-8."""
    try:
        encoded = dumps(value)
    except (ValueError, RecursionError) as error:
        raise FieldInvalidError(path, "holds a value that is not JSON") from error
    return text(encoded, path)


def _bounded(value: object, path: str, max_chars: int) -> str:
    checked = text(value, path)
    if len(checked) > max_chars:
        raise FieldInvalidError(path, f"must not have more than {max_chars} characters", checked)
    return checked


def load(value: str, path: str) -> object:
    """Return the value of a JSON text."""
    try:
        return json.loads(value, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FieldInvalidError(path, f"must be JSON: {error.msg} at {where}") from error
    except (ValueError, RecursionError) as error:
        raise FieldInvalidError(path, f"must be JSON: {_cause(error)}") from error


def _cause(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON value")


def _utf8(value: str, path: str) -> bytes:
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        where = f"holds half of a surrogate pair at character {error.start}"
        raise FieldInvalidError(path, f"must be valid Unicode: {where}") from error


def _has_nul(value: object) -> bool:
    if isinstance(value, dict):
        return any(_has_nul(key) or _has_nul(member) for key, member in value.items())
    if isinstance(value, list):
        return any(_has_nul(member) for member in value)
    return isinstance(value, str) and "\0" in value


def _kind(value: object) -> str:
    kinds = {type(None): "null", bool: "a boolean", str: "a string", dict: "an object"}
    return kinds.get(type(value), "an array" if isinstance(value, list) else "a number")
