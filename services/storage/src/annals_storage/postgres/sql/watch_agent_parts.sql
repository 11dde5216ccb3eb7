-- What one large transaction brought to an agent, conversation by conversation. It held each
-- conversation's row lock from its first event on, so the seqs of a part have no gaps.
SELECT o.conversation_id, min(e.seq) AS first_seq, max(e.seq) AS last_seq
FROM annals.observations AS o
JOIN annals.conversations AS c
  ON c.tenant_id = o.tenant_id AND c.conversation_id = o.conversation_id
JOIN annals.events AS e ON e.tenant_id = o.tenant_id AND e.event_id = o.event_id
WHERE o.tenant_id = %(tenant_id)s AND o.version = 1 AND o.xid = %(xid)s::xid8
  AND c.agent_id = %(agent_id)s AND c.deleted_at IS NULL
GROUP BY o.conversation_id
ORDER BY o.conversation_id
