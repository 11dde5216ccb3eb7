-- Hides or shows an event, under the lock of its conversation. Nothing where it is so already,
-- where it was erased, where its conversation is deleted, or where its words are elsewhere.
WITH event AS MATERIALIZED (
  SELECT e.*, clock_timestamp() AS moment
  FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s AND e.erased_at IS NULL
    AND e.cold_segment_id IS NULL AND (e.deleted_at IS NOT NULL) <> %(deleted)s
    AND EXISTS (
      SELECT FROM annals.conversations AS c
      WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = e.conversation_id
        AND c.deleted_at IS NULL)
),
kept AS (
  INSERT INTO annals.observation_payloads (tenant_id, event_id, version, payload)
  SELECT e.tenant_id, e.event_id, e.version,
         (SELECT jsonb_object_agg(f.key, f.value)
          FROM jsonb_each(to_jsonb(e) - 'tenant_id' - 'moment') AS f
          WHERE f.value <> 'null'::jsonb)
  FROM event AS e
),
changed AS (
  UPDATE annals.events AS e
  SET deleted_at = CASE WHEN %(deleted)s THEN f.moment END, version = e.version + 1
  FROM event AS f
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = f.conversation_id AND e.seq = f.seq
),
observed AS (
  INSERT INTO annals.observations
    (tenant_id, event_id, version, conversation_id, kind, payload_hash, created_at,
     api_key_id, user_id, session_id)
  SELECT e.tenant_id, e.event_id, e.version + 1, e.conversation_id,
         CASE WHEN %(deleted)s THEN 'delete' ELSE 'restore' END, ''::bytea, e.moment,
         %(api_key_id)s, %(user_id)s, %(session_id)s
  FROM event AS e
),
counted AS (
  UPDATE annals.conversations AS c
  SET event_count = c.event_count + sign.of,
      message_count = c.message_count + CASE WHEN e.type = 'message' THEN sign.of ELSE 0 END,
      token_count = c.token_count + sign.of * e.token_count,
      version = c.version + 1, updated_at = e.moment
  FROM event AS e
  CROSS JOIN (SELECT CASE WHEN %(deleted)s THEN -1 ELSE 1 END AS of) AS sign
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = e.conversation_id
)
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
SELECT e.tenant_id, 'event', e.event_id, e.conversation_id FROM event AS e
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
    priority = 0,
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
