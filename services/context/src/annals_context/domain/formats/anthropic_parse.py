"""Anthropic's messages to canonical events.

Takes an object with `messages` and perhaps `system`, or the array of the messages. What an event
has no place for (images, signed thoughts, `cache_control`) is kept in its metadata under
`anthropic_messages`: "content", the blocks of a message or a result that was more than texts;
"before", blocks between which and a call nothing was said; "call", members of a call's or a
result's block. Rendering in this format gives them back, rendering in others leaves them out but
for images and documents.
"""

from __future__ import annotations

from collections.abc import Sequence

from annals_common.errors import FieldInvalidError
from annals_context.domain.events import Role
from annals_context.domain.formats import provider_metadata, values
from annals_context.domain.formats.parsed import Parsed
from annals_context.domain.formats.parts import anthropic_part
from annals_context.domain.formats.transcripts import Members, TurnsTranscript, rest, role_of

_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}


def parse(payload: str) -> Parsed:
    """Read a payload. Raises FieldInvalidError with the path of the first wrong member."""
    root = values.load(payload, values.ROOT)
    said = TurnsTranscript(
        provider_metadata.ANTHROPIC_MESSAGES, read=anthropic_part, is_plain=_is_text
    )
    if isinstance(root, dict):
        _add_system(said, root.get("system"), f"{values.ROOT}.system")
    for path, message in values.objects(*values.listed(root, "messages")):
        _add_message(said, message, path)
    return said.parsed()


def _add_system(said: TurnsTranscript, system: object, path: str) -> None:
    if system is not None:
        said.add_parts(Role.SYSTEM, _blocks(system, path), path)


def _add_message(said: TurnsTranscript, message: Members, path: str) -> None:
    role = role_of(message, _ROLES, path)
    for index, block in enumerate(_blocks(message.get("content"), f"{path}.content")):
        _add_block(said, block, role, f"{path}.content[{index}]")
    said.flush(role, path)


def _add_block(said: TurnsTranscript, block: Members, role: Role, path: str) -> None:
    match block["type"]:
        case "tool_use" if role is Role.ASSISTANT:
            _add_call(said, block, path)
        case "tool_result" if role is Role.USER:
            said.flush(role, path)
            _add_result(said, block, path)
        case "tool_use" | "tool_result":
            raise FieldInvalidError(
                f"{path}.type", "tool_use is the assistant's, tool_result the user's"
            )
        case _:
            said.waiting.append(block)


def _add_call(said: TurnsTranscript, block: Members, path: str) -> None:
    before = said.before_call(path)
    given_id = values.identifier(block.get("id"), f"{path}.id")
    arguments = values.members(block.get("input"), f"{path}.input")
    said.add_call(
        given_id,
        said.calls.unique(given_id),
        tool_name=values.identifier(block.get("name"), f"{path}.name"),
        tool_input=values.encoded_text(arguments, f"{path}.input"),
        kept={"before": before, "call": rest(block, "type", "id", "name", "input")},
        path=path,
    )


def _add_result(said: TurnsTranscript, block: Members, path: str) -> None:
    given_id = values.identifier(block.get("tool_use_id"), f"{path}.tool_use_id")
    blocks = _blocks(block.get("content") or "", f"{path}.content")
    words = said.words(blocks, f"{path}.content")
    call = said.calls.answer(given_id)
    if call is None:
        said.add_lone_result(given_id, words)
        return
    kept = {
        "content": [] if len(blocks) == 1 and _is_text(blocks[0]) else blocks,
        "call": rest(block, "type", "tool_use_id", "content", "is_error"),
    }
    said.add_result(call, words, kept, path, is_error=block.get("is_error") is True)


def _blocks(content: object, path: str) -> Sequence[Members]:
    if isinstance(content, str):
        return [{"type": "text", "text": values.text(content, path)}]
    if content is None:
        raise FieldInvalidError(path, "is required: a string or an array of blocks")
    values.check_parts(content, path)
    return [block for _, block in values.objects(content, path)]


def _is_text(block: Members) -> bool:
    return block.keys() == {"type", "text"}
