-- Events that finished transactions brought to an agent, from transaction %(xid)s on. A
-- transaction below the oldest one still running cannot gain rows any more: what is read here
-- is complete, whatever the order in which transactions begin and end. One statement, hence one
-- snapshot. First the observations alone, by their index; rows of other agents are looked at too,
-- so that a watch moves on past them.
WITH horizon AS MATERIALIZED (
  SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xid
),
near AS MATERIALIZED (
  SELECT o.xid, o.conversation_id, o.event_id
  FROM annals.observations AS o
  WHERE o.tenant_id = %(tenant_id)s AND o.version = 1
    AND o.xid >= %(xid)s::xid8 AND o.xid < (SELECT xid FROM horizon)
  ORDER BY o.xid
  LIMIT %(limit)s
),
facts AS (
  SELECT count(*) AS found, (SELECT xid FROM near ORDER BY xid LIMIT 1) AS first_xid,
         (SELECT xid FROM near ORDER BY xid DESC LIMIT 1) AS last_xid
  FROM near
)
SELECT i.identifier || '.' || i.timeline AS incarnation, h.xid::text AS horizon,
       f.found, f.first_xid::text AS first_xid, f.last_xid::text AS last_xid,
       e.xid::text AS xid, e.conversation_id, e.seq, e.event_id, e.text_bytes
FROM horizon AS h
CROSS JOIN facts AS f
CROSS JOIN (
  SELECT (SELECT system_identifier FROM pg_control_system())::text AS identifier,
         left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS timeline
) AS i
LEFT JOIN (
  SELECT n.xid, n.conversation_id, e.seq, n.event_id,
         coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool_input), 0)
         + coalesce(octet_length(e.tool_result), 0) + coalesce(octet_length(e.error_message), 0)
         + 256 AS text_bytes
  FROM near AS n
  CROSS JOIN LATERAL (
    SELECT * FROM annals.conversations AS c
    WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = n.conversation_id LIMIT 1
  ) AS c
  CROSS JOIN LATERAL (
    SELECT * FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = n.event_id LIMIT 1
  ) AS e
  WHERE c.agent_id = %(agent_id)s AND c.deleted_at IS NULL
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
) AS e ON true
ORDER BY e.xid, e.conversation_id, e.seq
