WITH sessions AS MATERIALIZED (
  SELECT array_agg(session_id) AS ids FROM annals.session_merges
  WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s
)
SELECT (SELECT count(*) FROM annals.conversations AS c, sessions AS s
        WHERE c.tenant_id = %(tenant_id)s
          AND (c.user_id = %(user_id)s OR c.session_id = ANY(s.ids))) AS conversations,
       (SELECT count(*) FROM annals.session_merges
        WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s) AS session_merges,
       (SELECT count(*) FROM annals.search_log AS l, sessions AS s
        WHERE l.tenant_id = %(tenant_id)s
          AND (l.user_id = %(user_id)s OR l.session_id = ANY(s.ids))) AS search_log,
       (SELECT count(*) FROM annals.observations AS o, sessions AS s
        WHERE o.tenant_id = %(tenant_id)s
          AND (o.user_id = %(user_id)s OR o.session_id = ANY(s.ids))) AS observations
