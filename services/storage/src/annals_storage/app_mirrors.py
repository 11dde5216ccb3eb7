"""Wires the generations of the mirror: engines, models, and who keeps them."""

from __future__ import annotations

import asyncio
import shutil
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from annals_common.errors import DependencyUnavailableError
from annals_storage.commands.building import BuildGeneration, BuildParts
from annals_storage.commands.generations import (
    Generations,
    GenerationUnusableError,
    OpenGeneration,
)
from annals_storage.commands.mirror_report import MirrorParts
from annals_storage.commands.removing import RemoveGeneration
from annals_storage.domain.generations import EmbeddingModel, MirrorGeneration
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.embedding.golden import GoldenMismatchError
from annals_storage.embedding.loading import load_embedder
from annals_storage.embedding.minilm import ModelUnavailableError
from annals_storage.indexer.keeper import MirrorKeeper
from annals_storage.ports.vectors import VectorIndex
from annals_storage.postgres.database import Database
from annals_storage.postgres.generations import PostgresGenerations, PostgresSources
from annals_storage.postgres.mirrored import PostgresBuiltRows, PostgresMirroredRows
from annals_storage.postgres.outbox import PostgresOutbox
from annals_storage.postgres.tenants import PostgresTenants
from annals_storage.settings import StorageSettings
from annals_storage.vectors.edge import EdgeVectorIndex
from annals_storage.vectors.edge_shard import shard_folder

if TYPE_CHECKING:
    from annals_storage.vectors.server import ServerVectorIndex

RETRY_SECONDS = 1.0
log = structlog.get_logger()


async def open_patiently(dependency: Database | VectorIndex, attempts: int | None) -> None:
    """Wait for a dependency that is not up yet: the order of start does not matter."""
    failures = 0
    while True:
        try:
            return await dependency.open()
        except DependencyUnavailableError as error:
            failures += 1
            if failures == attempts:
                raise
            log.warning("waiting", cause=error.message)
            await asyncio.sleep(RETRY_SECONDS)


async def load_model(
    settings: StorageSettings, model: str, folder: str | None
) -> FastembedEmbedder:
    """Load a model. What the settings say of one by this name goes before what is said here.

    Raises ModelUnavailableError and GoldenMismatchError.
    """
    named = model == settings.embedding_model
    directory = settings.embedding_model_dir if named else Path(folder) if folder else None
    try:
        return await load_embedder(
            model,
            data_dir=settings.data_dir,
            threads=settings.embedding_threads,
            model_dir=directory,
        )
    except (ModelUnavailableError, GoldenMismatchError):
        raise
    except Exception as error:
        # Unknown to fastembed, without a network to fetch it, no model in that directory, or a
        # damaged one: each of the libraries below has errors of its own for that.
        cause = " ".join(str(error).split())
        raise ModelUnavailableError(f"the model {model!r} cannot be loaded: {cause}") from error


class SettingsModels:
    """`Models` by fastembed."""

    def __init__(self, settings: StorageSettings) -> None:
        self._settings = settings
        self._ready: dict[str, FastembedEmbedder] = {}

    async def configured(self) -> EmbeddingModel:
        """Return the one of the settings, which is loaded then. Raises what load_model raises."""
        name, directory = self._settings.embedding_model, self._settings.embedding_model_dir
        self._ready[name] = await load_model(self._settings, name, None)
        return _model(name, directory, self._ready[name])

    async def load(self, model: EmbeddingModel) -> FastembedEmbedder:
        """Return it, ready. Raises what load_model raises."""
        ready = self._ready.pop(model.name, None)
        return ready or await load_model(self._settings, model.name, model.directory)


class EdgeEngines:
    """`MirrorEngines`: shards of the embedded engine, a folder each."""

    def __init__(self, data_dir: Path, attempts: int | None) -> None:
        self._data_dir, self._attempts = data_dir, attempts

    async def open(self, generation: MirrorGeneration) -> VectorIndex:
        """Create or open its shard. Raises DependencyUnavailableError."""
        path = shard_folder(self._data_dir, generation.number)
        shard = EdgeVectorIndex(path, dimensions=generation.model.dimensions)
        await open_patiently(shard, self._attempts)
        return shard

    async def announce(self, generation: MirrorGeneration) -> None:
        """Nothing: no other tool looks into a shard."""

    async def remove(self, generation: MirrorGeneration) -> None:
        """Delete its folder."""
        path = shard_folder(self._data_dir, generation.number)
        await asyncio.to_thread(shutil.rmtree, path, ignore_errors=True)


class ServerEngines:
    """`MirrorEngines`: collections of a Qdrant server. The alias follows the one that serves."""

    def __init__(self, settings: StorageSettings, attempts: int | None) -> None:
        self._settings, self._attempts = settings, attempts

    async def open(self, generation: MirrorGeneration) -> VectorIndex:
        """Create or open its collection. Raises DependencyUnavailableError."""
        index = self._index(generation)
        await open_patiently(index, self._attempts)
        return index

    async def announce(self, generation: MirrorGeneration) -> None:
        """Move the alias there."""
        index = self._index(generation)
        try:
            await index.announce()
        finally:
            await index.close()

    async def remove(self, generation: MirrorGeneration) -> None:
        """Delete its collection."""
        index = self._index(generation)
        try:
            await index.drop()
        finally:
            await index.close()

    def _index(self, generation: MirrorGeneration) -> ServerVectorIndex:
        # The client takes half a second to import, which the embedded engine need not wait for.
        from annals_storage.vectors.server import ServerVectorIndex, connect  # noqa: PLC0415

        api_key = self._settings.qdrant_api_key.get_secret_value() or None
        return ServerVectorIndex(
            connect(self._settings.qdrant_url, api_key=api_key),
            collection=self._settings.qdrant_collection,
            dimensions=generation.model.dimensions,
            generation=generation.number,
        )


def engines_of(settings: StorageSettings, attempts: int | None) -> EdgeEngines | ServerEngines:
    """Return the engines of the settings; `attempts`: see open_adapters."""
    if settings.vector_engine == "edge":
        return EdgeEngines(settings.data_dir, attempts)
    return ServerEngines(settings, attempts)


async def open_generations(
    settings: StorageSettings, database: Database, stack: AsyncExitStack, attempts: int | None
) -> Generations:
    """Open what is searched and written to; a new installation gets the model of the settings.

    Raises what loading the model or opening the engine raises, where it is what is searched.
    """
    store, models = PostgresGenerations(database), SettingsModels(settings)
    if not await store.all():
        await store.first(await models.configured())
    generations = Generations(store, engines_of(settings, attempts), models)
    stack.push_async_callback(generations.close)
    try:
        await generations.refresh()
    except GenerationUnusableError as error:
        if not generations.live and error.__cause__:
            raise error.__cause__ from None
        # Another one than what is searched: indexing waits for it, searching does not.
        log.warning("generations of the mirror", cause=error.message)
    _tell_of_setting(settings, generations)
    return generations


def _model(name: str, directory: Path | None, embedder: FastembedEmbedder) -> EmbeddingModel:
    folder = str(directory.absolute()) if directory else None
    return EmbeddingModel(name, folder, embedder.dimensions)


async def wanted_model(
    settings: StorageSettings, name: str, directory: Path | None
) -> EmbeddingModel:
    """Return a model to build by, once it was loaded. Raises what load_model raises."""
    embedder = await load_model(settings, name, str(directory) if directory else None)
    try:
        return _model(name, directory, embedder)
    finally:
        embedder.close()


def _tell_of_setting(settings: StorageSettings, generations: Generations) -> None:
    serving = generations.serving.generation.model.name
    if serving != settings.embedding_model:
        log.warning(
            "the setting embedding_model is for new installations; to change the model, run "
            "`annals-storage rebuild --model`",
            setting=settings.embedding_model,
            serving=serving,
        )


def parts_of(database: Database, opened: OpenGeneration) -> MirrorParts:
    """Return what a verification of a generation compares."""
    model = opened.generation.model.name
    return _parts(database, opened, PostgresMirroredRows(database, model))


def _built_parts(database: Database, opened: OpenGeneration) -> MirrorParts:
    return _parts(database, opened, PostgresBuiltRows(database, opened.generation.model.name))


def _parts(database: Database, opened: OpenGeneration, rows: PostgresMirroredRows) -> MirrorParts:
    return MirrorParts(
        tenants=PostgresTenants(database),
        outbox=PostgresOutbox(database),
        rows=rows,
        vectors=opened.vectors,
    )


def mirror_keeper(
    settings: StorageSettings, database: Database, generations: Generations, owner: str
) -> MirrorKeeper:
    """Return who builds and removes generations beside an indexer."""
    store, sources = PostgresGenerations(database), PostgresSources(database)
    tenants, engines = PostgresTenants(database), engines_of(settings, 1)
    parts = BuildParts(
        store=store,
        sources=sources,
        tenants=tenants,
        outbox=PostgresOutbox(database),
        generations=generations,
        mirror=lambda opened: _built_parts(database, opened),
    )
    remove = RemoveGeneration(
        store=store, sources=sources, tenants=tenants, engines=engines, generations=generations
    )
    return MirrorKeeper(
        store=store,
        engines=engines,
        build=BuildGeneration(parts),
        remove=remove,
        owner=owner,
        grace=timedelta(seconds=settings.mirror_grace_seconds),
    )
