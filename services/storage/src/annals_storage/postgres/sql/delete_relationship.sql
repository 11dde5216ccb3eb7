-- delete_relationship
DELETE FROM annals.relationships
WHERE tenant_id = %(tenant_id)s AND relationship_id = %(relationship_id)s
RETURNING relationship_id
