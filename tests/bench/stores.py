"""Tenants loaded once: a ledger of them lets a later run ask without indexing again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.bench.stack import Stack, await_indexed

from annals_client import AnnalsClient

Fill = Callable[[AnnalsClient], list[str]]
"""Stores conversations and returns their ids in the order of the data; repeatable."""


@dataclass(slots=True)
class _Entry:
    """What the ledger knows of a tenant. Without `conversation_ids` it is not indexed yet."""

    api_key: str
    conversation_ids: list[str]


class Stores:
    """The tenants of a run, by name. Without a ledger each is made anew.

    A run that was cut short is resumed: what it had indexed is there, and the tenant that it was
    filling is filled on.
    """

    def __init__(self, stack: Stack, ledger: Path | None) -> None:
        self._stack, self._ledger = stack, ledger
        self._entries: dict[str, _Entry] = {}
        if ledger and ledger.exists():
            kept = json.loads(ledger.read_text(encoding="utf-8"))
            self._entries = {name: _Entry(**entry) for name, entry in kept.items()}

    def open(self, name: str, fill: Fill) -> tuple[AnnalsClient, list[str]]:
        """Return the tenant's client and conversations once all of it is indexed."""
        entry = self._entries.get(name) or self._new(name)
        client = self._stack.client(entry.api_key)
        if not entry.conversation_ids:
            conversation_ids = fill(client)
            await_indexed(client)
            entry.conversation_ids = conversation_ids
            self._write()
        return client, entry.conversation_ids

    def _new(self, name: str) -> _Entry:
        entry = _Entry(self._stack.create_tenant(name).api_key, [])
        self._entries[name] = entry
        self._write()
        return entry

    def _write(self) -> None:
        if not self._ledger:
            return
        entries = {name: asdict(entry) for name, entry in self._entries.items()}
        draft = self._ledger.with_suffix(".new")
        draft.touch(mode=0o600)
        draft.write_text(json.dumps(entries), encoding="utf-8")
        draft.replace(self._ledger)
