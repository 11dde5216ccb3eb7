"""`python -m tests.bench.ceiling`: the least a durable append can cost.

A grpc.aio service that stores the bytes of each request with one INSERT and answers with them.
Settings from the environment: BENCH_DATABASE_URL, BENCH_ADDRESS (host:port).
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

import grpc
import grpc.aio
import psycopg
import uvloop
from psycopg_pool import AsyncConnectionPool

from annals_common.server import wait_for_signal

METHOD = "/bench.Ceiling/Store"
CONNECTIONS = 10
_CREATE = """
CREATE TABLE IF NOT EXISTS public.bench_ceiling (id bigserial PRIMARY KEY, payload bytea NOT NULL);
GRANT INSERT ON public.bench_ceiling TO annals_app;
GRANT USAGE ON SEQUENCE public.bench_ceiling_id_seq TO annals_app;
"""
_INSERT = "INSERT INTO public.bench_ceiling (payload) VALUES (%b)"


def create_table(admin_url: str) -> None:
    """Make the table the service inserts into."""
    with psycopg.connect(admin_url, autocommit=True) as connection:
        connection.execute(_CREATE)


def _handler(pool: AsyncConnectionPool) -> Any:
    async def store(request: bytes, _context: Any) -> bytes:
        async with pool.connection() as connection:
            await connection.execute(_INSERT, [request])
        return request

    methods = {"Store": grpc.unary_unary_rpc_method_handler(store)}
    return grpc.method_handlers_generic_handler("bench.Ceiling", methods)


async def _serve() -> None:
    pool = AsyncConnectionPool(
        os.environ["BENCH_DATABASE_URL"],
        kwargs={"autocommit": True},
        min_size=CONNECTIONS,
        max_size=CONNECTIONS,
        open=False,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((_handler(pool),))
    server.add_insecure_port(os.environ["BENCH_ADDRESS"])
    async with pool:
        await server.start()
        await wait_for_signal()
        await server.stop(1.0)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
