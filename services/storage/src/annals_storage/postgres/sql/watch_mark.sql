-- The incarnation: this cluster, on this timeline. A backup that is restored to a point in time
-- continues on a timeline of its own.
SELECT (SELECT system_identifier FROM pg_control_system())::text || '.'
       || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) AS incarnation,
       pg_snapshot_xmin(pg_current_snapshot())::text AS horizon
