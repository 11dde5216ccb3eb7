SELECT u.* FROM annals.usage_daily AS u
WHERE u.tenant_id = %(tenant_id)s AND u.conversation_id = %(conversation_id)s
  AND (u.day, u.model COLLATE "C") > (%(after_day)s::date, %(after_model)s COLLATE "C")
ORDER BY u.day, u.model COLLATE "C"
LIMIT %(limit)s
