"""Wires what goes on in the background: the mirror's state, jobs, and who works them off."""

from __future__ import annotations

import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from uuid import UUID

import click
import grpc.aio

from annals.storage.v1 import (
    index_service_pb2_grpc,
    job_service_pb2_grpc,
    topic_service_pb2_grpc,
)
from annals_common.composition import compose
from annals_storage.app_adapters import Shared, admin_database
from annals_storage.commands.parked import list_parked_jobs, retry_parked_jobs
from annals_storage.commands.worker_credentials import WorkerCredentials
from annals_storage.domain.tenancy import hash_secret
from annals_storage.handlers.access import Access
from annals_storage.handlers.clustering import ClusteringHandler
from annals_storage.handlers.index import IndexHandler
from annals_storage.handlers.jobs import JobHandler
from annals_storage.handlers.topics import TopicHandler
from annals_storage.postgres.conversations import PostgresConversations
from annals_storage.postgres.hits import PostgresHits
from annals_storage.postgres.jobs import PostgresJobs
from annals_storage.postgres.parked import PostgresParked
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.postgres.topics import PostgresClustering, PostgresTopics
from annals_storage.settings import StorageSettings

WORKER_KEY_PREFIX = "annals_worker_"
Run = Callable[[Callable[[StorageSettings], Awaitable[None]]], None]


def worker_credentials(shared: Shared) -> WorkerCredentials:
    """Return what workers are known by."""
    worker_key_hash = shared.settings.worker_key_hash
    return WorkerCredentials(PostgresJobs(shared.database), worker_key_hash=worker_key_hash)


def add_background(server: grpc.aio.Server, shared: Shared) -> None:
    """Serve IndexService, JobService and TopicService."""
    jobs = PostgresJobs(shared.database)
    job_service_pb2_grpc.add_JobServiceServicer_to_server(JobHandler(jobs, jobs), server)
    generations, store = shared.adapters.generations, PostgresTopics(shared.database)
    access = Access(PostgresConversations(shared.database))
    topic_service_pb2_grpc.add_TopicServiceServicer_to_server(
        compose(
            topic_service_pb2_grpc.TopicServiceServicer,
            TopicHandler(shared.warm(store), PostgresHits(shared.database), access),
            ClusteringHandler(
                store,
                PostgresClustering(shared.database),
                model=lambda: generations.serving.generation.model.name,
            ),
        ),
        server,
    )
    index_service_pb2_grpc.add_IndexServiceServicer_to_server(
        IndexHandler(
            outbox=shared.outbox,
            generations=generations,
            parked=PostgresParked(shared.database),
        ),
        server,
    )


def jobs_command(run: Run) -> click.Group:
    """Return `annals-storage jobs`, which `run`s with the settings."""

    @click.group()
    def jobs() -> None:
        """Background work of this installation."""

    @jobs.command()
    def key() -> None:
        """Make a worker key: print it, once, and its hash for the settings of storage."""
        made = WORKER_KEY_PREFIX + secrets.token_urlsafe(32)
        digest = hash_secret(made).hex()
        click.echo(json.dumps({"worker_key": made, "worker_key_sha256": digest}))

    @jobs.command()
    @click.option("--tenant", "tenant_id", type=click.UUID, help="Only this one.")
    @click.option("--retry", is_flag=True, help="Have them tried again.")
    def parked(tenant_id: UUID | None, *, retry: bool) -> None:
        """List what failed too often and was given up, one JSON object a line."""
        run(lambda settings: _parked(settings, tenant_id, is_retried=retry))

    return jobs


async def _parked(settings: StorageSettings, tenant_id: UUID | None, *, is_retried: bool) -> None:
    async with admin_database(settings) as database:
        tenants, jobs = PostgresTenants(database), PostgresJobs(database)
        async for owner, job in list_parked_jobs(tenants, jobs, tenant_id):
            click.echo(json.dumps({"tenant_id": owner, **asdict(job)}, default=str))
        if is_retried:
            count = await retry_parked_jobs(tenants, jobs, tenant_id)
            click.echo(f"{count} are tried again", err=True)
