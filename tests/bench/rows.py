"""Long conversations written straight into the tables, as appends would have left them.

A hundred thousand events take seconds this way. They are not handed to the indexer: what is
measured on them does not ask it.
"""

from __future__ import annotations

from typing import Any

import psycopg
from tests.bench.stack import Account, Stack
from tests.bench.texts import messages

TOKENS = 27
_EVENTS = """
INSERT INTO annals.events
  (tenant_id, conversation_id, seq, event_id, type, role, content, token_count, event_time,
   created_at, branch)
SELECT c.tenant_id, c.conversation_id, c.next_seq - 1 + n, gen_random_uuid(), 'message',
       CASE n %% 2 WHEN 1 THEN 'user' ELSE 'assistant' END,
       left((%(texts)s::text[])[1 + n %% cardinality(%(texts)s::text[])], 114) || ' ' ||
         lpad((c.next_seq - 1 + n)::text, 9, '0'),
       %(tokens)s, now() - make_interval(secs => %(count)s - n), now(), %(branch)s
FROM annals.conversations AS c, generate_series(1, %(count)s::integer) AS n
WHERE c.conversation_id = %(conversation_id)s
"""
_OBSERVATIONS = """
INSERT INTO annals.observations
  (tenant_id, event_id, version, conversation_id, kind, payload_hash, created_at)
SELECT e.tenant_id, e.event_id, 1, e.conversation_id, 'store', decode(md5(e.content), 'hex'), now()
FROM annals.events AS e
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE c.conversation_id = %(conversation_id)s AND e.seq >= c.next_seq
"""
_CONVERSATION = """
UPDATE annals.conversations
SET next_seq = next_seq + %(count)s, event_count = event_count + %(count)s,
    message_count = message_count + %(count)s,
    token_count = token_count + %(count)s::bigint * %(tokens)s, version = version + 1,
    last_event_at = now(), active_at = now(), updated_at = now()
WHERE conversation_id = %(conversation_id)s
"""
_EVENT_AT = """
SELECT event_id FROM annals.events
WHERE conversation_id = %(conversation_id)s AND seq = %(seq)s
"""
_SIZE_BYTES = """
SELECT sum(pg_total_relation_size(c.oid))::bigint FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = 'annals' AND c.relkind = 'r' AND c.relname <> 'outbox'
"""


def add_events(stack: Stack, conversation_id: str, count: int, *, branch: int = 1) -> None:
    """Add messages of 124 characters to a branch."""
    params: dict[str, Any] = {
        "conversation_id": conversation_id,
        "count": count,
        "branch": branch,
        "tokens": TOKENS,
        "texts": list(messages(min(count, 1_000), seed=branch)),
    }
    with psycopg.connect(stack.postgres.admin_url) as connection:
        for statement in (_EVENTS, _OBSERVATIONS, _CONVERSATION):
            connection.execute(statement, params)


def event_at(stack: Stack, conversation_id: str, seq: int) -> str:
    """Return the id of the event at a position."""
    with psycopg.connect(stack.postgres.admin_url) as connection:
        params = {"conversation_id": conversation_id, "seq": seq}
        row = connection.execute(_EVENT_AT, params).fetchone()
    if row is None:
        raise LookupError(f"no event at {seq}")
    return str(row[0])


def settle(stack: Stack) -> None:
    """Do what autovacuum does within a minute: plans need statistics."""
    with psycopg.connect(stack.postgres.admin_url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def tables_bytes(stack: Stack) -> int:
    """Return what the tables and their indexes occupy, but for what waits to be indexed."""
    with psycopg.connect(stack.postgres.admin_url) as connection:
        row = connection.execute(_SIZE_BYTES).fetchone()
    return int(row[0]) if row and row[0] else 0


def conversations(stack: Stack, account: Account, sizes: list[int]) -> list[str]:
    """Make conversations of these sizes; return their ids, in order."""
    with stack.client(account.api_key) as client:
        ids = [client.conversations.create().conversation_id for _ in sizes]
    for conversation_id, size in zip(ids, sizes, strict=True):
        add_events(stack, conversation_id, size)
    return ids
