WITH gone AS (
  DELETE FROM annals.memories AS m
  USING annals.conversations AS c
  WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = %(memory_id)s
    AND c.tenant_id = %(tenant_id)s AND c.conversation_id = m.conversation_id
    AND c.deleted_at IS NULL
  RETURNING m.memory_id, m.conversation_id
),
update_conversation AS (
  UPDATE annals.conversations AS c
  SET memory_count = c.memory_count - 1, version = c.version + 1, updated_at = now()
  FROM gone AS g
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = g.conversation_id
),
insert_outbox AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
  SELECT %(tenant_id)s, 'memory', memory_id, conversation_id FROM gone
  ON CONFLICT (tenant_id, kind, key) DO UPDATE
  SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
      priority = 0,
      available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
)
SELECT memory_id FROM gone
