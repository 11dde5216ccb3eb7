"""Objects below an fsspec URL: file:///…, s3://bucket/prefix, and whatever else fsspec knows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any, TypeVar

import fsspec
import structlog
from fsspec.implementations.local import LocalFileSystem

from annals_common.errors import ColdStorageUnavailableError

T = TypeVar("T")
log = structlog.get_logger()


class ColdStorageUrlError(Exception):
    """The URL or the options of cold storage cannot be used."""


class FsspecObjects:
    """`ObjectStore` over a file system of fsspec. Every call runs on a thread."""

    def __init__(self, url: str, options: dict[str, Any] | None = None) -> None:
        """Raises ColdStorageUrlError when no file system can be made of it."""
        try:
            # Not from fsspec's cache, which outlives whoever configured it, and with listings
            # as they are now: other processes write too.
            self._files, self._root = fsspec.core.url_to_fs(
                url, skip_instance_cache=True, use_listings_cache=False, **(options or {})
            )
        except (ImportError, TypeError, ValueError) as error:
            raise ColdStorageUrlError(f"cold storage cannot be opened: {error}") from error
        self._root = str(self._root).rstrip("/")
        self._is_local = isinstance(self._files, LocalFileSystem)

    async def write(self, path: str, data: bytes) -> None:
        """Write it durably, in whole."""
        await self._run(lambda: self._write(path, data))

    async def read(self, path: str) -> bytes | None:
        """Return the bytes, or None when there is no such object."""
        return await self._run(lambda: self._read(path))

    async def delete(self, path: str) -> None:
        """Remove it, if it is there."""
        await self._run(lambda: self._delete(path))

    async def names(self, folder: str) -> list[str]:
        """Return the names right below a folder; none when there is no such folder."""
        return await self._run(lambda: self._names(folder))

    def _at(self, path: str) -> str:
        return f"{self._root}/{path}"

    def _write(self, path: str, data: bytes) -> None:
        target = self._at(path)
        if not self._is_local:
            self._files.pipe_file(target, data)
            return
        folder = target.rpartition("/")[0]
        self._files.makedirs(folder, exist_ok=True)
        with self._files.open(target, "wb") as file:
            file.write(data)
            file.flush()
            # The words are taken out of PostgreSQL on the strength of this.
            os.fsync(file.fileno())
        _sync_folder(folder)

    def _read(self, path: str) -> bytes | None:
        try:
            return bytes(self._files.cat_file(self._at(path)))
        except FileNotFoundError:
            return None

    def _delete(self, path: str) -> None:
        target = self._at(path)
        try:
            self._files.rm_file(target)
        except FileNotFoundError:
            return
        if self._is_local:
            self._remove_empty(target.rpartition("/")[0])

    def _remove_empty(self, folder: str) -> None:
        try:
            self._files.rmdir(folder)
        except OSError:
            return

    def _names(self, folder: str) -> list[str]:
        try:
            found = self._files.ls(self._at(folder), detail=False)
        except FileNotFoundError:
            return []
        names = (str(name).rstrip("/").rpartition("/")[2] for name in found)
        return sorted(name for name in names if name)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(_attempt, work)


def _attempt(work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:
        # Every file system has errors of its own; none of them says anything about the data.
        log.warning("cold storage does not answer", cause=type(error).__name__)
        raise ColdStorageUnavailableError from error


def _sync_folder(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
