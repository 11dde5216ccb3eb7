-- A worker that is at one of them writes nothing more: its lease is gone with the job. Before the
-- outbox: the locks of an indexer come in this order, too.
DELETE FROM annals.jobs
WHERE tenant_id = %(tenant_id)s AND subject = %(conversation_id)s
