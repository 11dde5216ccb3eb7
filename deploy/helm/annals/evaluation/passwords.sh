#!/bin/sh
# Runs once, as the server's superuser, when the data directory is made.
set -eu
psql --set=ON_ERROR_STOP=1 --username=postgres --dbname="$POSTGRES_DB" \
  --set=owner="$OWNER_PASSWORD" --set=app="$APP_PASSWORD" <<'SQL'
ALTER ROLE annals_owner PASSWORD :'owner';
ALTER ROLE annals_app PASSWORD :'app';
GRANT CREATE ON DATABASE annals TO annals_owner;
GRANT CREATE ON SCHEMA public TO annals_owner;
SQL
