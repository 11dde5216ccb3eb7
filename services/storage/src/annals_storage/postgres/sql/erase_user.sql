-- What names a user, or a session merged into the user, outside of the user's conversations.
WITH gone_merges AS (
  DELETE FROM annals.session_merges
  WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s RETURNING session_id
),
sessions AS MATERIALIZED (SELECT array_agg(session_id) AS ids FROM gone_merges),
gone_searches AS (
  DELETE FROM annals.search_log AS l USING sessions AS s
  WHERE l.tenant_id = %(tenant_id)s AND (l.user_id = %(user_id)s OR l.session_id = ANY(s.ids))
  RETURNING 1
)
SELECT (SELECT count(*) FROM gone_merges) AS session_merges,
       (SELECT count(*) FROM gone_searches) AS search_log,
       annals.forget_observer(%(user_id)s, s.ids) AS observations
FROM sessions AS s
