"""Connections, and transactions of one network round trip.

Statements of one transaction are sent as a pipeline without BEGIN and COMMIT: PostgreSQL runs
everything up to the Sync at its end as one transaction, and rolls all of it back when one
statement fails (libpq, "Pipeline Mode").
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib.resources import files
from typing import Any, cast
from uuid import UUID

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import PipelineStatus
from psycopg.rows import DictRow, TupleRow, dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from annals_common.cancellation import is_cancelled
from annals_common.errors import DependencyUnavailableError

Params = Mapping[str, Any]
Statement = tuple[str, Params]
Rows = list[DictRow]

_SET_TENANT = "SELECT set_config('annals.tenant_id', $1, true)"
_RESET_TENANT = ""
_READ_ONE_MOMENT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"


_PLACEHOLDER = re.compile(r"%\((?P<name>\w+)\)s")


@cache
def sql(name: str) -> str:
    """Return the text of `postgres/sql/<name>.sql`."""
    return files("annals_storage.postgres").joinpath("sql", f"{name}.sql").read_text()


@cache
def numbered(query: str) -> tuple[str, tuple[str, ...]]:
    """Return the query with PostgreSQL's own placeholders, and the names in their order.

    psycopg would translate a long statement at every call.
    """
    names = tuple(dict.fromkeys(match["name"] for match in _PLACEHOLDER.finditer(query)))
    numbers = {name: f"${number}" for number, name in enumerate(names, start=1)}
    return _PLACEHOLDER.sub(lambda match: numbers[match["name"]], query), names


class Database:
    """A pool of connections of the application role. Autocommit; see the module's text."""

    def __init__(
        self, conninfo: str, *, max_connections: int = 10, statement_timeout_ms: int = 30_000
    ) -> None:
        self.pool = AsyncConnectionPool(
            conninfo,
            kwargs={
                "autocommit": True,
                # Must stay 0: with a later threshold, a pipeline that aborts while psycopg
                # prepares one of its statements leaves that one counted as prepared.
                "prepare_threshold": 0,
                "cursor_factory": psycopg.AsyncRawCursor,
                "row_factory": dict_row,
                "options": f"-c statement_timeout={statement_timeout_ms} "
                "-c plan_cache_mode=force_generic_plan -c jit=off -c timezone=UTC",
            },
            min_size=1,
            max_size=max_connections,
            timeout=5.0,
            open=False,
            name="annals-storage",
        )

    async def open(self) -> None:
        """Connect. Raises DependencyUnavailableError."""
        with _translated_errors():
            await self.pool.open(wait=True, timeout=30)

    async def close(self) -> None:
        """Return when every connection is closed."""
        await self.pool.close()

    async def ping(self) -> None:
        """Answer, or raise DependencyUnavailableError."""
        await self.run_untenanted(("SELECT 1", {}))

    async def run(self, tenant_id: UUID, *statements: Statement) -> list[Rows]:
        """Run statements as the tenant, in one transaction; return the rows of each."""
        return await self._run(str(tenant_id), statements)

    async def run_untenanted(self, *statements: Statement) -> list[Rows]:
        """Run statements that no tenant owns; row-level security shows them no tenant's rows."""
        return await self._run(_RESET_TENANT, statements)

    async def run_binary(self, tenant_id: UUID, query: str, params: Params) -> list[TupleRow]:
        """Run a statement as the tenant; return its rows as tuples.

        They come in PostgreSQL's binary form: for many rows, or bytes, half the time of `run`.
        Every column must be of a type that psycopg knows, else it is given as bytes.
        """
        text, names = numbered(query)
        async with self._connection() as connection:
            async with connection.pipeline():
                await connection.execute(_SET_TENANT, [str(tenant_id)])
                cursor = connection.cursor(row_factory=tuple_row)
                await cursor.execute(text, [params[name] for name in names], binary=True)
            return await cursor.fetchall()

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID) -> AsyncIterator[Transaction]:
        """Open a transaction of several round trips, for what is rare and must read first.

        Commits at the end of the block; an exception rolls back.
        """
        async with self._connection() as connection, connection.transaction():
            await connection.execute(_SET_TENANT, [str(tenant_id)])
            yield Transaction(connection)

    @asynccontextmanager
    async def snapshot(self, tenant_id: UUID) -> AsyncIterator[Transaction]:
        """Open a transaction that only reads, all of it as of its first statement."""
        async with self._connection() as connection, connection.transaction():
            await connection.execute(_READ_ONE_MOMENT)
            await connection.execute(_SET_TENANT, [str(tenant_id)])
            yield Transaction(connection)

    async def _run(self, tenant: str, statements: Sequence[Statement]) -> list[Rows]:
        async with self._connection() as connection:
            async with connection.pipeline():
                await connection.execute(_SET_TENANT, [tenant])
                cursors = [await _execute(connection, *statement) for statement in statements]
            return [await _rows(cursor) for cursor in cursors]

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[AsyncConnection[DictRow]]:
        with _translated_errors():
            async with self.pool.connection() as connection:
                try:
                    yield cast("AsyncConnection[DictRow]", connection)
                finally:
                    if _is_in_pipeline(connection):
                        await connection.close()


class Transaction:
    """An open transaction of one tenant."""

    def __init__(self, connection: AsyncConnection[DictRow]) -> None:
        self._connection = connection

    async def run(self, query: str, params: Params) -> Rows:
        """Run a statement; return its rows."""
        return await _rows(await _execute(self._connection, query, params))

    @asynccontextmanager
    async def copy(self, statement: str) -> AsyncIterator[psycopg.AsyncCopy]:
        """Run a `COPY … FROM STDIN` or `COPY … TO STDOUT`."""
        async with self._connection.cursor().copy(statement) as copy:
            yield copy


async def _execute(
    connection: AsyncConnection[DictRow], query: str, params: Params
) -> psycopg.AsyncCursor[DictRow]:
    text, names = numbered(query)
    return await connection.execute(text, [params[name] for name in names])


async def _rows(cursor: psycopg.AsyncCursor[DictRow]) -> Rows:
    return await cursor.fetchall() if cursor.description else []


def _is_in_pipeline(connection: AsyncConnection[Any]) -> bool:
    """Whether a pipeline was begun and not ended.

    psycopg gives way to other tasks after it has entered a pipeline and before it is bound to
    leave it; a task that is cancelled there leaves the connection in the pipeline. The pool would
    hand it out again: what is run on it next would not be in the transaction it believes to be in.
    """
    # The status is a number, not a member of PipelineStatus.
    status = connection.pgconn.pipeline_status
    return status != PipelineStatus.OFF or connection._pipeline is not None  # noqa: SLF001


class _translated_errors:  # noqa: N801 - reads as a statement
    """Turns a lost PostgreSQL into DependencyUnavailableError, and a timeout into its own."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, Exception) and is_cancelled():
            # psycopg cancels the query of a cancelled task; what PostgreSQL says to that must
            # not take the place of the cancellation.
            raise asyncio.CancelledError from error
        if isinstance(error, psycopg.errors.QueryCanceled):
            raise TimeoutError("statement timeout") from error
        if isinstance(error, psycopg.OperationalError | PoolTimeout):
            if isinstance(error, psycopg.errors.DeadlockDetected):
                return
            raise DependencyUnavailableError("postgresql") from error
