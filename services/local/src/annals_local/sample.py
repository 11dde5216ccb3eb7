"""The bundled conversation: a small ferry company's team and its assistant, over nine weeks.

`samples/*.jsonl` holds one `annals.storage.v1.NewEvent` a line, as proto JSON, in order.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files

from google.protobuf.json_format import Parse

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import AlreadyExistsError, AsyncAnnalsClient, IdempotencyKeyReusedError
from annals_local.identity import Identity

TITLE = "Kittiwake Ferries: the team and its assistant"
_NAMESPACE = uuid.UUID("c5f1e0a7-6a3c-5b8e-9a55-2f0d6f3b7c11")


@dataclass(frozen=True, slots=True)
class LoadedSample:
    """Where the sample is stored. `replayed_events` were there before."""

    conversation_id: str
    events: int
    replayed_events: int


def read_events() -> Iterator[pb.NewEvent]:
    """Yield the events in order; each has a key, so that it is stored once."""
    for number, line in enumerate(_lines(), start=1):
        event = Parse(line, pb.NewEvent())
        event.idempotency_key = f"sample-{number}"
        yield event


async def load_sample(client: AsyncAnnalsClient, identity: Identity) -> LoadedSample:
    """Store the sample for the tenant; what is there already is found, not stored again."""
    conversation_id = _conversation_id(identity.tenant_id)
    await _ensure_conversation(client, conversation_id, identity.agent_id)
    stored = replayed = 0
    async for progress in client.events.stream_append(conversation_id, read_events()):
        stored, replayed = progress.events, progress.replayed_events
    return LoadedSample(conversation_id, stored, replayed)


async def _ensure_conversation(
    client: AsyncAnnalsClient, conversation_id: str, agent_id: str
) -> None:
    try:
        await client.conversations.create(
            conversation_id=conversation_id, agent_id=agent_id, title=TITLE
        )
    except (AlreadyExistsError, IdempotencyKeyReusedError):
        return


def _conversation_id(tenant_id: str) -> str:
    # Made from the content too: another version of the sample is another conversation.
    digest = hashlib.sha256("".join(_lines()).encode()).hexdigest()
    return str(uuid.uuid5(_NAMESPACE, f"{tenant_id}:{digest}"))


def _lines() -> Iterator[str]:
    folder = files("annals_local") / "samples"
    parts = sorted(folder.iterdir(), key=lambda part: part.name)
    for part in parts:
        if part.name.endswith(".jsonl"):
            yield from part.read_text(encoding="utf-8").splitlines()
