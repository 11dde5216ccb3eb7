-- find_relationship_path
-- Whether relationships of the type lead from the target to the source: one more, from source to
-- target, would close a cycle.
WITH RECURSIVE reached (kind, id) AS (
  VALUES (%(target_kind)s::text, %(target_id)s::text)
  UNION
  SELECT r.target_kind, r.target_id
  FROM reached AS n
  JOIN annals.relationships AS r
    ON r.tenant_id = %(tenant_id)s AND r.source_kind = n.kind
   AND r.source_key = md5(n.id) AND r.source_id = n.id AND r.type = %(type)s
)
SELECT EXISTS (
  SELECT FROM reached WHERE kind = %(source_kind)s AND id = %(source_id)s
) AS found
