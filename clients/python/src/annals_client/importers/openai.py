"""OpenAI chat messages. The server's FormatService turns them into events, nobody else."""

from __future__ import annotations

import json
from typing import Any

from annals_client.importers.documents import Document, ImportFileError

_MAX_METADATA_CHARS = 200


def payload_of(document: Document) -> str:
    """Return the messages as the JSON text that FormatService.Parse takes."""
    content = document.content
    messages = content.get("messages") if isinstance(content, dict) else content
    if not isinstance(messages, list) or not messages:
        raise ImportFileError(f"{document.place}: has no messages")
    return json.dumps(messages, ensure_ascii=False)


def metadata_of(document: Document) -> dict[str, Any]:
    """Return the short plain values beside the messages, such as a task's id."""
    content = document.content
    if not isinstance(content, dict):
        return {}
    return {name: value for name, value in content.items() if _is_plain(value)}


def title_of(document: Document) -> str:
    """Return the title in the file, else the file's name with the conversation's number."""
    content = document.content
    title = content.get("title") if isinstance(content, dict) else None
    return (
        title if isinstance(title, str) and title else f"{document.path.stem} {document.index + 1}"
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _MAX_METADATA_CHARS
    return isinstance(value, bool | int | float)
