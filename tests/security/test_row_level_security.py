"""PostgreSQL itself keeps tenants apart, whatever the service asks."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from tests.support.appending import append
from tests.support.rows import fill, tables
from tests.support.scratch import ScratchDatabase, as_tenant, run
from tests.support.storage import RunningStorage, Tenant
from tests.support.waiting import eventually

from annals_client import tool_call, tool_result, user
from annals_local.postgres import LocalPostgres
from annals_storage.postgres.database import Database
from annals_storage.postgres.guard import UnsafeRoleError, check_database

_TABLES = """
SELECT c.relname AS name, c.relrowsecurity AS enabled, c.relforcerowsecurity AS forced,
       pg_get_userbyid(c.relowner)::text AS owner
FROM pg_class AS c WHERE c.relnamespace = 'annals'::regnamespace AND c.relkind IN ('r', 'p')
ORDER BY 1
"""
_POLICIES = """
SELECT tablename, policyname, roles::text[], cmd, permissive, qual, with_check
FROM pg_policies WHERE schemaname = 'annals' AND 'annals_app' = ANY(roles)
"""
TENANT_A = "00000000-0000-7000-8000-00000000000a"
TENANT_B = "00000000-0000-7000-8000-00000000000b"


def visible(url: str, tenant_id: str | None) -> dict[str, set[str]]:
    """Whose rows a tenant's transaction sees, by table; tables without rows are left out."""
    seen = {
        name: {str(row["tenant_id"]) for row in as_tenant(
            url, tenant_id, f'SELECT DISTINCT tenant_id FROM annals."{name}"')}
        for name in tables(url)
    }  # fmt: skip
    return {name: owners for name, owners in seen.items() if owners}


def leaks(url: str, tenant_id: str | None) -> list[str]:
    """The tables that show a tenant rows of others."""
    own = {tenant_id}
    return sorted(name for name, owners in visible(url, tenant_id).items() if owners - own)


@pytest.fixture
async def full(
    storage: RunningStorage, postgres: LocalPostgres, tenant: Tenant, other_tenant: Tenant
) -> list[Tenant]:
    """Two tenants with rows in every table, the outbox aside, which empties itself."""
    for one in (tenant, other_tenant):
        agent = await one.client.agents.create("a")
        events = [user("words to index"), tool_call("c", "t"), tool_result("c", "sunny")]
        request_id = "11111111-1111-4111-8111-111111111111"
        stored = await append(one.raw, "", *events, request_id=request_id, agent_id=agent.agent_id)
        fill(postgres.app_url, one.tenant_id, stored.conversation_id)
        await eventually(one.client.index.status, lambda s: s.pending_count == 0)
    return [tenant, other_tenant]


def test_every_table_has_forced_security_and_the_isolating_policy(postgres: LocalPostgres) -> None:
    found = run(postgres.owner_url, _TABLES)
    policies = run(postgres.owner_url, _POLICIES)

    assert found
    assert [row["name"] for row in found if not (row["enabled"] and row["forced"])] == []
    assert {row["owner"] for row in found} == {"annals_owner"}
    assert {row["tablename"] for row in policies} == {row["name"] for row in found}
    for policy in policies:
        assert policy["cmd"] == "ALL"
        assert policy["qual"] == "(tenant_id = annals.current_tenant())"
        assert policy["with_check"] == "(tenant_id = annals.current_tenant())"


def test_every_key_leads_with_the_tenant(postgres: LocalPostgres) -> None:
    rows = run(
        postgres.owner_url,
        """
        SELECT i.indexrelid::regclass::text AS index, a.attname AS first
        FROM pg_index AS i
        JOIN pg_class AS c ON c.oid = i.indrelid AND c.relnamespace = 'annals'::regnamespace
        JOIN pg_attribute AS a ON a.attrelid = i.indexrelid AND a.attnum = 1
        WHERE i.indisunique
        """,
    )

    assert rows
    assert [row["index"] for row in rows if row["first"] != "tenant_id"] == []


@pytest.mark.parametrize("setting", [None, ""], ids=["not set", "empty"])
async def test_without_a_tenant_no_table_shows_a_row(
    postgres: LocalPostgres, full: list[Tenant], setting: str | None
) -> None:
    assert visible(postgres.app_url, setting) == {}


async def test_with_a_tenant_only_its_rows_show(
    postgres: LocalPostgres, full: list[Tenant]
) -> None:
    mine = full[0].tenant_id

    seen = visible(postgres.app_url, mine)

    assert set(seen) == set(tables(postgres.app_url)) - {"outbox"}
    assert all(owners == {mine} for owners in seen.values())


async def test_a_setting_does_not_outlive_its_transaction(
    postgres: LocalPostgres, full: list[Tenant]
) -> None:
    with psycopg.connect(postgres.app_url) as connection:
        connection.execute("SELECT set_config('annals.tenant_id', %s, true)", [full[0].tenant_id])
        connection.commit()
        rows = connection.execute("SELECT FROM annals.conversations").fetchall()

    assert rows == []


async def test_rows_of_another_tenant_cannot_be_written(
    postgres: LocalPostgres, full: list[Tenant]
) -> None:
    mine, theirs = (one.tenant_id for one in full)
    url = postgres.app_url

    for name in set(tables(url)) - {"observations"}:
        touched = as_tenant(
            url, mine, f"UPDATE annals.{name} SET tenant_id = tenant_id WHERE tenant_id = %s"
            " RETURNING 1", [theirs],
        )  # fmt: skip
        assert touched == [], name
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            give_away(url, mine, theirs, name)


def give_away(url: str, mine: str, theirs: str, table: str) -> None:
    """Turn own rows into another tenant's; the outbox, which empties itself, gets one first."""
    if table == "outbox":
        as_tenant(
            url,
            mine,
            "INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)"
            " VALUES (%s, 'event', gen_random_uuid(), gen_random_uuid())",
            [theirs],
        )
    as_tenant(url, mine, f"UPDATE annals.{table} SET tenant_id = %s", [theirs])


async def test_rows_cannot_be_inserted_for_another_tenant(
    postgres: LocalPostgres, full: list[Tenant]
) -> None:
    mine, theirs = (one.tenant_id for one in full)

    for name in set(tables(postgres.app_url)) - {"outbox"}:
        query = f"SELECT * FROM annals.{name} WHERE tenant_id = %s LIMIT 1"
        [copied] = run(postgres.admin_url, query, [theirs])
        for generated in generated_columns(postgres.admin_url, name):
            del copied[generated]
        columns = ", ".join(copied)
        values = ", ".join(["%s"] * len(copied))
        row = [psycopg.types.json.Jsonb(v) if isinstance(v, dict) else v
               for v in copied.values()]  # fmt: skip
        with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
            as_tenant(
                postgres.app_url, mine, f"INSERT INTO annals.{name} ({columns}) VALUES ({values})",
                row,
            )  # fmt: skip


def generated_columns(url: str, table: str) -> list[str]:
    rows = run(
        url,
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attgenerated <> ''",
        [f"annals.{table}"],
    )
    return [row["attname"] for row in rows]


async def test_observations_are_append_only(postgres: LocalPostgres, full: list[Tenant]) -> None:
    for change in (
        "UPDATE annals.observations SET version = 2",
        "DELETE FROM annals.observations",
    ):
        with pytest.raises(errors.InsufficientPrivilege):
            as_tenant(postgres.app_url, full[0].tenant_id, change)


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE annals.events DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE annals.events NO FORCE ROW LEVEL SECURITY",
        "ALTER TABLE annals.events OWNER TO annals_app",
        "DROP POLICY tenant_isolation ON annals.events",
        "CREATE POLICY mine ON annals.events TO annals_app USING (true)",
        "ALTER ROLE annals_app BYPASSRLS",
        "ALTER ROLE annals_app SUPERUSER",
        "SET ROLE annals_owner",
        "SET ROLE postgres",
        "TRUNCATE annals.events",
        "CREATE TABLE annals.stolen (x text)",
        "CREATE FUNCTION annals.mine() RETURNS uuid LANGUAGE sql RETURN gen_random_uuid()",
        "DROP TABLE annals.events",
        "UPDATE public.annals_migrations SET sha256 = ''",
    ],
)
def test_the_service_role_cannot_lift_the_guard(postgres: LocalPostgres, statement: str) -> None:
    with pytest.raises((errors.InsufficientPrivilege, errors.InvalidObjectDefinition)):
        run(postgres.app_url, statement)


def test_turning_row_security_off_shows_nothing(postgres: LocalPostgres) -> None:
    with psycopg.connect(postgres.app_url) as connection:
        connection.execute("SET row_security = off")
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM annals.events")


class TestSecurityDefinerFunctions:
    def test_are_only_these_and_pin_their_search_path(self, postgres: LocalPostgres) -> None:
        rows = run(
            postgres.owner_url,
            """
            SELECT proname AS name, proconfig AS config,
                   pg_get_function_result(oid) AS result,
                   has_function_privilege('public', oid, 'execute') AS public
            FROM pg_proc WHERE pronamespace = 'annals'::regnamespace AND prosecdef
            """,
        )

        results = {row["name"]: row["result"] for row in rows}
        assert results == {
            "list_tenants": "SETOF annals.tenants",
            "claim_outbox": "TABLE(tenant_id uuid, kind text, key uuid, conversation_id uuid, "
            "generation bigint, attempts integer)",
            "lease_outbox": "TABLE(tenant_id uuid, kind text, key uuid, conversation_id uuid, "
            "generation bigint, attempts integer, priority smallint)",
            "outbox_lanes": "TABLE(priority smallint, pending bigint, parked bigint, "
            "lag_seconds double precision)",
            # Secrets of leases that nobody has yet, with the keys of the jobs they are of.
            "lease_jobs": "TABLE(tenant_id uuid, subject uuid, kind text, generation bigint, "
            "attempts integer, leased_until timestamp with time zone, secret bytea)",
            "job_totals": "TABLE(kind text, pending bigint, parked bigint, "
            "lag_seconds double precision)",
            "release_outbox": "bigint",
            "outbox_totals": "record",
            # A count over all tenants.
            "outbox_waiting": "bigint",
            # Of the transaction's tenant alone.
            "erase_observations": "bigint",
            "forget_observer": "bigint",
            "lexical_chunks": "TABLE(chunk_id uuid, event_id uuid, chunk_index integer, "
            "score double precision)",
            "lexical_memories": "TABLE(memory_id uuid, score double precision)",
        }, "a new function that reads across tenants must be judged here"
        assert all(any("search_path=" in item for item in row["config"]) for row in rows)
        assert not any(row["public"] for row in rows)

    async def test_hand_out_keys_and_counts_but_no_content(
        self, postgres: LocalPostgres, full: list[Tenant]
    ) -> None:
        assert full
        secret_word = "words to index"
        answers = [
            run(postgres.app_url, "SELECT * FROM annals.list_tenants(NULL, NULL, 1000)"),
            run(postgres.app_url, "SELECT * FROM annals.outbox_totals()"),
            run(postgres.app_url, "SELECT * FROM annals.outbox_lanes()"),
            run(postgres.app_url, "SELECT * FROM annals.claim_outbox('probe', 0, '1 s')"),
            run(postgres.app_url, "SELECT * FROM annals.lease_outbox('probe', 0, '1 s')"),
        ]

        assert secret_word not in repr(answers)


class TestStart:
    async def test_with_the_service_role_is_allowed(self, scratch: ScratchDatabase) -> None:
        await checked(scratch.app_url)

    @pytest.mark.parametrize("role", ["postgres", "annals_owner"])
    async def test_as_superuser_or_owner_is_refused(
        self, scratch: ScratchDatabase, role: str
    ) -> None:
        with pytest.raises(UnsafeRoleError, match=f"refusing to start as {role}"):
            await checked(scratch.as_role(role))

    @pytest.mark.parametrize(
        ("grant", "reason"),
        [
            ("ALTER ROLE {role} BYPASSRLS", "BYPASSRLS"),
            ("GRANT annals_owner TO {role}", "owner annals_owner"),
            ("GRANT postgres TO {role}", "superuser|postgres"),
            ("GRANT {other} TO {role}", "BYPASSRLS|bypass"),
        ],
        ids=["bypasses", "may become owner", "may become superuser", "may bypass"],
    )
    async def test_with_a_role_that_could_bypass_is_refused(
        self, scratch: ScratchDatabase, grant: str, reason: str
    ) -> None:
        role, other = f"{scratch.name}_role", f"{scratch.name}_bypass"
        scratch.admin(f"CREATE ROLE {role} LOGIN IN ROLE annals_app")
        scratch.admin(f"CREATE ROLE {other} BYPASSRLS")
        scratch.admin(grant.format(role=role, other=other))
        try:
            with pytest.raises(UnsafeRoleError, match=reason):
                await checked(scratch.as_role(role))
        finally:
            scratch.admin(f"DROP ROLE {role}")
            scratch.admin(f"DROP ROLE {other}")

    @pytest.mark.parametrize("how", ["NO FORCE", "DISABLE"])
    async def test_with_an_unguarded_table_is_refused(
        self, scratch: ScratchDatabase, how: str
    ) -> None:
        scratch.admin(f"ALTER TABLE annals.chunks {how} ROW LEVEL SECURITY")

        with pytest.raises(UnsafeRoleError, match=r"not forced on annals\.chunks"):
            await checked(scratch.app_url)

    async def test_with_a_new_table_without_security_is_refused(
        self, scratch: ScratchDatabase
    ) -> None:
        run(scratch.owner_url, "CREATE TABLE annals.novelty (tenant_id uuid)")

        with pytest.raises(UnsafeRoleError, match=r"annals\.novelty"):
            await checked(scratch.app_url)


async def checked(url: str) -> None:
    database = Database(url, max_connections=1)
    await database.open()
    try:
        await check_database(database)
    finally:
        await database.close()


class TestTeeth:
    """The probe above detects a guard that is gone."""

    def fill(self, scratch: ScratchDatabase) -> None:
        for tenant_id in (TENANT_A, TENANT_B):
            scratch.admin("INSERT INTO annals.tenants VALUES (%s, 'x')", [tenant_id])
            scratch.admin(
                "INSERT INTO annals.conversations (tenant_id, conversation_id)"
                " VALUES (%s, gen_random_uuid())", [tenant_id],
            )  # fmt: skip

    def test_with_the_guard_nothing_leaks(self, scratch: ScratchDatabase) -> None:
        self.fill(scratch)

        assert leaks(scratch.app_url, TENANT_A) == []
        assert leaks(scratch.app_url, None) == []

    @pytest.mark.parametrize(
        "breakage",
        [
            "ALTER TABLE annals.conversations DISABLE ROW LEVEL SECURITY",
            "ALTER POLICY tenant_isolation ON annals.conversations USING (true)",
            "CREATE POLICY oops ON annals.conversations TO annals_app USING (true)",
            "ALTER ROLE annals_app BYPASSRLS",
        ],
    )
    def test_without_it_the_probe_finds_the_leak(
        self, scratch: ScratchDatabase, breakage: str
    ) -> None:
        self.fill(scratch)
        scratch.admin(breakage)
        try:
            found = leaks(scratch.app_url, TENANT_A)
        finally:
            scratch.admin("ALTER ROLE annals_app NOBYPASSRLS")

        assert "conversations" in found

    def test_a_second_observation_of_a_key_is_refused_by_the_index_alone(
        self, scratch: ScratchDatabase
    ) -> None:
        with pytest.raises(errors.UniqueViolation):
            self.observe_twice(scratch)
        scratch.admin("DROP INDEX annals.observations_idempotency_key")

        self.observe_twice(scratch)

    def observe_twice(self, scratch: ScratchDatabase) -> None:
        scratch.admin(
            "INSERT INTO annals.observations (tenant_id, event_id, version, conversation_id, kind,"
            " idempotency_key, payload_hash, created_at)"
            " SELECT %(t)s, gen_random_uuid(), 1, %(t)s, 'store', 'k', '', now()"
            " FROM generate_series(1, 2)",
            {"t": TENANT_A},
        )
