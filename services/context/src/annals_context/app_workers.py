"""Wires and runs the worker: what is done for which kind of job."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack

import grpc.aio

from annals_common.channels import open_aio_channel
from annals_common.health import HealthWatch, probed
from annals_common.metrics import serving_metrics
from annals_context.app_summaries import summary_use_cases
from annals_context.clients.clustering import GrpcClusteringWork
from annals_context.clients.jobs import GrpcJobs
from annals_context.commands.clustering import ClusterConversation
from annals_context.domain.topic_clusters import ClusterParameters
from annals_context.settings import ContextSettings
from annals_context.workers.host import WorkerHost
from annals_context.workers.jobs import Command


class WorkerKeyMissingError(Exception):
    """There is nothing to lease jobs by."""

    def __init__(self) -> None:
        super().__init__(
            "set ANNALS_CONTEXT_WORKER__KEY to the worker key; `annals-storage jobs key` makes one"
        )


def commands(channel: grpc.aio.Channel, settings: ContextSettings) -> Mapping[str, Command]:
    """Return what to run for each kind of job. Kinds that are not here wait for other workers."""
    parameters = ClusterParameters(settings.topics.threshold, settings.topics.min_events)
    return {
        "topics": ClusterConversation(GrpcClusteringWork(channel), parameters),
        "summaries": summary_use_cases(channel, settings.summaries).summarise,
    }


async def run_worker(settings: ContextSettings) -> None:
    """Work until cancelled. Raises WorkerKeyMissingError."""
    key = settings.worker.key.get_secret_value()
    if not key:
        raise WorkerKeyMissingError
    async with AsyncExitStack() as stack:
        health = await stack.enter_async_context(probed(settings.server.health_address))
        stack.enter_context(serving_metrics(settings.server.metrics_address))
        credentials = settings.storage_tls.channel_credentials()
        channel = open_aio_channel(settings.storage_address, credentials)
        stack.push_async_callback(channel.close, None)
        jobs = GrpcJobs(channel, key, worker_name=settings.worker.name or socket.gethostname())
        watch = HealthWatch(health, (), jobs.check)
        await watch.start()
        stack.push_async_callback(watch.stop)
        todo = commands(channel, settings)
        await WorkerHost(jobs, todo, concurrency=settings.worker.concurrency).run()
