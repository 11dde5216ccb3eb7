"""Words are looked up by functions of the owner, whom no policy stops. Nothing foreign gets out."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.support.scratch import ScratchDatabase, as_tenant

from annals_storage.domain.search import MemoryScope, SearchScope
from annals_storage.postgres.database import Database
from annals_storage.postgres.lexical import PostgresLexical

MINE, THEIRS = UUID(int=0xA), UUID(int=0xB)
TERMS = [1, 2, 3]
MODEL = "a-model"
_ROWS = """
INSERT INTO annals.tenants (tenant_id, display_name) VALUES (%(tenant)s, 't');
INSERT INTO annals.conversations (tenant_id, conversation_id) VALUES (%(tenant)s, %(room)s);
INSERT INTO annals.events (tenant_id, conversation_id, seq, event_id, type, role, content,
                           token_count, event_time, created_at)
VALUES (%(tenant)s, %(room)s, 1, %(event)s, 'message', 'user', 'words', 1, now(), now());
INSERT INTO annals.chunks (tenant_id, chunk_id, event_id, conversation_id, chunk_index, start_char,
                           end_char, token_count, content_hash, embedding, embedding_model, terms,
                           term_weights)
VALUES (%(tenant)s, %(chunk)s, %(event)s, %(room)s, 0, 0, 5, 1, '', '', 'a-model', '{1,2,3}',
        '\\x646464');
INSERT INTO annals.memories (tenant_id, memory_id, conversation_id, content, embedding,
                             embedding_model, payload_hash, terms, term_weights)
VALUES (%(tenant)s, %(memory)s, %(room)s, 'words', '\\x003c', 'a-model', '', '{1,2,3}',
        '\\x646464');
"""
_DEFINITION = "SELECT pg_get_functiondef(%s::regproc) AS text"
_FUNCTIONS = ("annals.lexical_chunks", "annals.lexical_memories")
_TENANT = re.compile(r"c\w*\.tenant_id = (annals\.)?current_tenant\(\)")


@pytest.fixture
def filled(scratch: ScratchDatabase) -> ScratchDatabase:
    """Two tenants with an event and a memory each, of the same terms, as if keys had collided."""
    with psycopg.connect(scratch.admin_url, cursor_factory=psycopg.ClientCursor) as connection:
        for tenant in (MINE, THEIRS):
            ids = {name: uuid4() for name in ("room", "event", "chunk", "memory")}
            connection.execute(_ROWS, {"tenant": tenant, **ids})
    return scratch


def without_tenant(database: ScratchDatabase) -> None:
    """Take the functions' own condition away."""
    for name in _FUNCTIONS:
        [row] = database.admin(_DEFINITION, [name])
        text = _TENANT.sub("true", row["text"])
        assert text != row["text"]
        database.admin(text)


def told(database: ScratchDatabase, name: str) -> int:
    """How many rows a function leads the first tenant to."""
    query = f"SELECT count(*) AS found FROM {name}(%s::integer[], NULL, 100)"
    [row] = as_tenant(database.app_url, str(MINE), query, [TERMS])
    return int(row["found"])


async def found(database: ScratchDatabase) -> tuple[int, int]:
    """How many chunks and memories the first tenant finds."""
    pool = Database(database.app_url, max_connections=1)
    await pool.open()
    try:
        lexical = PostgresLexical(pool)
        chunks = await lexical.find_chunks(SearchScope(MINE), TERMS, 100, MODEL)
        memories = await lexical.find_memories(MemoryScope(MINE), TERMS, 100, MODEL)
    finally:
        await pool.close()
    return len(chunks), len(memories)


@pytest.mark.parametrize("name", _FUNCTIONS)
@pytest.mark.parametrize("tenant", [None, ""])
def test_without_a_tenant_there_is_nothing(
    filled: ScratchDatabase, name: str, tenant: str | None
) -> None:
    query = f"SELECT * FROM {name}(%s::integer[], NULL, 100)"

    assert as_tenant(filled.app_url, tenant, query, [TERMS]) == []


async def test_only_the_tenants_own_are_found(filled: ScratchDatabase) -> None:
    assert [told(filled, name) for name in _FUNCTIONS] == [1, 1]
    assert await found(filled) == (1, 1)


async def test_without_the_functions_condition_the_policies_still_hold(
    filled: ScratchDatabase,
) -> None:
    without_tenant(filled)

    assert [told(filled, name) for name in _FUNCTIONS] == [2, 2], "the probe sees the leak"
    assert await found(filled) == (1, 1)


def test_they_tell_ids_and_scores_only_to_the_service(filled: ScratchDatabase) -> None:
    for name in _FUNCTIONS:
        query = f"SELECT has_function_privilege('public', '{name}', 'execute') AS public"
        [row] = filled.admin(query.replace(f"'{name}'", f"'{name}(integer[], uuid[], integer)'"))
        assert not row["public"]
