SELECT current_user AS role,
       coalesce(array_agg(r.rolname::text ORDER BY r.rolname) FILTER (WHERE r.rolsuper), '{}')
         AS superusers,
       coalesce(array_agg(r.rolname::text ORDER BY r.rolname) FILTER (WHERE r.rolbypassrls), '{}')
         AS bypassing,
       coalesce((SELECT array_agg(DISTINCT pg_get_userbyid(c.relowner)::text)
                 FROM pg_class AS c
                 WHERE c.relnamespace = to_regnamespace('annals') AND c.relkind IN ('r', 'p')
                   AND pg_has_role(current_user, c.relowner, 'MEMBER')), '{}') AS owned_through,
       coalesce((SELECT array_agg(c.relname::text ORDER BY c.relname)
                 FROM pg_class AS c
                 WHERE c.relnamespace = to_regnamespace('annals') AND c.relkind IN ('r', 'p')
                   AND NOT (c.relrowsecurity AND c.relforcerowsecurity)), '{}') AS unforced,
       current_setting('fsync') AS fsync,
       current_setting('full_page_writes') AS full_page_writes,
       current_setting('synchronous_commit') AS synchronous_commit
FROM pg_roles AS r
-- The role itself and every role it may become.
WHERE pg_has_role(current_user, r.oid, 'MEMBER')
