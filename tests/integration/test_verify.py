"""Verification counts every kind of drift exactly, leaves what waits alone, and mends."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from tests.support.appending import append, ids
from tests.support.changing import edit
from tests.support.corrupting import (
    EVENTS,
    MEMORIES,
    MOVED,
    Corruption,
    id_of,
    kinds,
    renamed,
    rows_of,
    said,
    with_vectors,
)
from tests.support.indexing import EmbeddingWork, indexed
from tests.support.scratch import as_tenant
from tests.support.storage import RunningStorage, Tenant, fresh_tenant

from annals.storage.v1 import event_service_pb2 as pb
from annals.storage.v1 import resources_pb2 as res
from annals_client import user
from annals_common.errors import ResourceNotFoundError
from annals_local.postgres import LocalPostgres
from annals_storage.app_adapters import mirror_parts
from annals_storage.commands.mending import MendMirror
from annals_storage.commands.mirror_report import Difference, MirrorParts
from annals_storage.commands.verifying import VerifyMirror
from annals_storage.domain.mirror import Drift


@pytest.fixture
def parts(own_storage: RunningStorage) -> MirrorParts:
    return mirror_parts(own_storage.adapters)


class TestCorruption:
    async def test_a_thousand_are_counted_by_kind_and_mended(
        self, own_storage: RunningStorage, own_tenant: Tenant, parts: MirrorParts
    ) -> None:
        await said(own_tenant)
        await indexed(own_tenant)
        clean = await VerifyMirror(parts)()
        async with fresh_tenant(own_storage) as other:
            expected = await Corruption(parts, own_tenant, other).plant()

            found = await VerifyMirror(parts)()
            mended = await VerifyMirror(parts, mend=MendMirror(parts))()
            with EmbeddingWork() as work:
                await indexed(own_tenant)

            assert kinds(clean) == {}
            assert clean.chunks == EVENTS + MEMORIES
            assert kinds(found) == expected
            # While the other tenant is looked through, the indexer brings back what it was given.
            assert kinds(mended) == expected | {"extra": mended.extra}
            assert {kind: len(some) for kind, some in found.examples.items()} == dict.fromkeys(
                expected, 5
            )
            assert mended.extra >= expected["extra"] - MOVED
            assert mended.deleted == mended.extra + mended.foreign
            assert mended.enqueued >= mended.missing + mended.stale + mended.wrong_payload
            assert kinds(await VerifyMirror(parts)()) == {}
            assert await parts.vectors.audit.count() == EVENTS + MEMORIES
            assert work.embedded == 0


async def nothing() -> None:
    pass


class Once:
    """Something happens, and is mirrored, before or after the engine's points are first read."""

    def __init__(
        self, tenant: Tenant, parts: MirrorParts, method: str, patch: pytest.MonkeyPatch
    ) -> None:
        self._tenant, self._read = tenant, getattr(type(parts.vectors.audit), method)
        self.before = self.after = nothing
        self.is_done = False
        patch.setattr(type(parts.vectors.audit), method, self._call(self))

    @staticmethod
    def _call(once: Once) -> Any:
        async def call(audit: Any, *args: Any, **kwargs: Any) -> Any:
            is_first, once.is_done = not once.is_done, True
            if is_first:
                await once.before()
                await indexed(once._tenant)
            found = await once._read(audit, *args, **kwargs)
            if is_first:
                await once.after()
                await indexed(once._tenant)
            return found

        return call


async def edited(tenant: Tenant, event_id: str, content: str) -> None:
    now = pb.NewEvent(message=res.MessageBody(role=res.ROLE_USER, content=content))
    await edit(tenant.raw, event_id, now, "body")


class TestMeanwhile:
    async def test_what_is_written_while_it_walks_is_not_reported(
        self, own_tenant: Tenant, parts: MirrorParts, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        stored = await append(own_tenant.raw, "", user("one"), user("two"), user("three"))
        await indexed(own_tenant)
        walked = Once(own_tenant, parts, "page_of", monkeypatch)

        async def edit_and_append() -> None:
            # The rows were read before.
            await edited(own_tenant, ids(stored)[0], "new words")
            await append(own_tenant.raw, stored.conversation_id, user("four"))

        walked.before = edit_and_append
        report = await VerifyMirror(parts)(UUID(own_tenant.tenant_id))

        assert walked.is_done
        assert kinds(report) == {}

    @pytest.mark.parametrize("moment", ["before", "after"])
    async def test_what_is_written_while_it_looks_again_is_not_reported(
        self,
        own_tenant: Tenant,
        parts: MirrorParts,
        monkeypatch: pytest.MonkeyPatch,
        moment: str,
    ) -> None:
        stored = await append(own_tenant.raw, "", user("one"))
        await indexed(own_tenant)
        walked = Once(own_tenant, parts, "page_of", monkeypatch)
        walked.before = lambda: edited(own_tenant, ids(stored)[0], "makes it look wrong")
        looked = Once(own_tenant, parts, "get", monkeypatch)
        setattr(looked, moment, lambda: edited(own_tenant, ids(stored)[0], "once more"))

        report = await VerifyMirror(parts)(UUID(own_tenant.tenant_id))

        assert walked.is_done
        assert looked.is_done
        assert kinds(report) == {}

    @pytest.mark.parametrize("kind", ["event", "conversation"])
    async def test_what_waits_is_no_drift_and_what_is_parked_is(
        self, own_tenant: Tenant, parts: MirrorParts, own_postgres: LocalPostgres, kind: str
    ) -> None:
        stored = await append(own_tenant.raw, "", user("one"), user("two"))
        await indexed(own_tenant)
        tenant_id, url = own_tenant.tenant_id, own_postgres.app_url
        key = {"event": ids(stored)[0], "conversation": stored.conversation_id}[kind]
        as_tenant(url, tenant_id, DELAYED, [tenant_id, kind, key, stored.conversation_id])
        await parts.vectors.delete_events(UUID(tenant_id), [UUID(ids(stored)[0])])

        waiting = await VerifyMirror(parts)(UUID(tenant_id))
        as_tenant(url, tenant_id, "UPDATE annals.outbox SET parked_at = now()")
        parked = await VerifyMirror(parts)(UUID(tenant_id))
        await VerifyMirror(parts, mend=MendMirror(parts))(UUID(tenant_id))
        as_tenant(url, tenant_id, "DELETE FROM annals.outbox WHERE parked_at IS NOT NULL")
        await indexed(own_tenant)

        assert (waiting.pending, waiting.parked, kinds(waiting)) == (1, 0, {})
        assert (parked.pending, parked.parked, kinds(parked)) == (0, 1, {"missing": 1})
        assert kinds(await VerifyMirror(parts)(UUID(tenant_id))) == {}


DELAYED = """
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, available_at)
VALUES (%s, %s, %s, %s, now() + interval '1 day')
"""


class TestRepair:
    async def test_nothing_comes_back_that_was_erased_after_it_was_found(
        self, own_tenant: Tenant, parts: MirrorParts
    ) -> None:
        tenant_id = UUID(own_tenant.tenant_id)
        stored = await append(own_tenant.raw, "", user("one"), user("two"), user("three"))
        await indexed(own_tenant)
        rows = await rows_of(parts, own_tenant)
        await parts.vectors.delete_events(tenant_id, [row.source_id for row in rows])
        found = [Difference(Drift.MISSING, id_of(row.expected), row, None) for row in rows]
        await own_tenant.client.erasure.event(ids(stored)[0])
        await own_tenant.client.events.delete(ids(stored)[1])

        mended = await MendMirror(parts).tenant(tenant_id, found)
        await indexed(own_tenant)

        left = await parts.vectors.audit.page_of(tenant_id, after=None, limit=10)
        assert [UUID(ids(stored)[2]) in point.keys for point in left] == [True]
        assert mended.deleted == 0
        await own_tenant.client.erasure.conversation(stored.conversation_id)
        assert await MendMirror(parts).tenant(tenant_id, found) == (0, 0)

    async def test_a_point_that_got_its_row_before_it_is_deleted_is_written_again(
        self, own_tenant: Tenant, parts: MirrorParts
    ) -> None:
        tenant_id = UUID(own_tenant.tenant_id)
        await append(own_tenant.raw, "", user("one"))
        await indexed(own_tenant)
        [point] = await parts.vectors.audit.page_of(tenant_id, after=None, limit=10)
        # Found when there was no row, and naming an event that there never was.
        lost = replace(point, keys=(point.point_id, uuid4()))

        mended = await MendMirror(parts).tenant(
            tenant_id, [Difference(Drift.EXTRA, point.point_id, None, lost)]
        )
        await indexed(own_tenant)

        assert mended == (1, 1)
        assert await parts.vectors.audit.page_of(tenant_id, after=None, limit=10) == [point]

    async def test_a_foreign_point_that_is_anothers_by_now_stays(
        self, own_tenant: Tenant, parts: MirrorParts
    ) -> None:
        await append(own_tenant.raw, "", user("one"))
        await indexed(own_tenant)
        tenant_id = UUID(own_tenant.tenant_id)
        [point] = await parts.vectors.audit.page_of(tenant_id, after=None, limit=10)

        await MendMirror(parts).foreign([replace(point, tenant=str(uuid4()))])

        assert await parts.vectors.audit.page_of(tenant_id, after=None, limit=10) == [point]


class TestCommand:
    """`annals-storage verify`, in a process of its own."""

    async def test_tells_what_differs_and_repairs(
        self,
        own_storage: RunningStorage,
        own_tenant: Tenant,
        own_postgres: LocalPostgres,
        tmp_path: Path,
    ) -> None:
        await append(own_tenant.raw, "", user("one"))
        await indexed(own_tenant)
        # Another engine, which has nothing: the service's belongs to the service.
        (tmp_path / "models").symlink_to(own_storage.data_dir / "models")
        (tmp_path / "vectors").mkdir()
        only = ("--tenant", own_tenant.tenant_id)

        code, out, err = await verify(own_postgres, tmp_path, *only, "--repair")

        report = json.loads(out)
        assert code == 1
        assert {name: report[name] for name in ("tenants", "chunks", "missing", "enqueued")} == {
            "tenants": 1,
            "chunks": 1,
            "missing": 1,
            "enqueued": 1,
        }
        assert err == f"{own_tenant.tenant_id}: done\n"

    async def test_is_content_with_a_tenant_that_has_nothing(
        self,
        own_storage: RunningStorage,
        own_tenant: Tenant,
        own_postgres: LocalPostgres,
        tmp_path: Path,
    ) -> None:
        (tmp_path / "models").symlink_to(own_storage.data_dir / "models")
        (tmp_path / "vectors").mkdir()
        done = await verify(own_postgres, tmp_path, "--tenant", own_tenant.tenant_id)
        assert done[0] == 0

    async def test_refuses_unknown_tenants(
        self, own_storage: RunningStorage, own_postgres: LocalPostgres, tmp_path: Path
    ) -> None:
        (tmp_path / "models").symlink_to(own_storage.data_dir / "models")
        (tmp_path / "vectors").mkdir()
        code, out, err = await verify(own_postgres, tmp_path, "--tenant", str(uuid4()))
        assert (code, out) == (1, "")
        assert "Traceback" not in err
        assert "tenant" in err

    async def test_refuses_an_engine_that_serves(
        self, own_storage: RunningStorage, own_postgres: LocalPostgres
    ) -> None:
        code, out, err = await verify(own_postgres, own_storage.data_dir, "--repair")
        assert (code, out) == (1, "")
        assert "is open in another process" in err

    async def test_refuses_a_folder_without_an_engine(
        self, own_postgres: LocalPostgres, tmp_path: Path
    ) -> None:
        """Everything would seem to be missing."""
        code, out, err = await verify(own_postgres, tmp_path, "--repair")
        assert (code, out) == (1, "")
        assert "there is no vector shard" in err
        assert "ANNALS_STORAGE_DATA_DIR" in err


async def verify(
    postgres: LocalPostgres, data_dir: Path, *arguments: str
) -> tuple[int | None, str, str]:
    environ = {
        "PATH": os.environ["PATH"],
        "ANNALS_STORAGE_DATABASE_URL": postgres.app_url,
        "ANNALS_STORAGE_DATA_DIR": str(data_dir),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "annals_storage", "verify", *arguments,
        env=environ, stdout=PIPE, stderr=PIPE,
    )  # fmt: skip
    stdout, stderr = await process.communicate()
    return process.returncode, stdout.decode(), stderr.decode()


async def test_what_was_deleted_does_not_hide_points_of_nobody(
    own_tenant: Tenant, parts: MirrorParts
) -> None:
    await append(own_tenant.raw, "", user("one"))
    await indexed(own_tenant)
    [row] = await rows_of(parts, own_tenant)
    extra, nobodys = renamed(row.expected), renamed(row.expected)
    vector = np.ones(384, np.float32)
    await parts.vectors.upsert(
        [
            with_vectors(extra, vector),
            with_vectors(replace(nobodys, tenant_id=uuid4()), vector),
        ]
    )

    report = await VerifyMirror(parts, mend=MendMirror(parts))()
    await indexed(own_tenant)

    assert kinds(report) == {"extra": 1, "foreign": 1}
    assert kinds(await VerifyMirror(parts)()) == {}


async def test_a_tenant_there_is_not_is_refused(parts: MirrorParts) -> None:
    with pytest.raises(ResourceNotFoundError):
        await VerifyMirror(parts)(uuid4())


async def test_what_differs_in_others_does_not_count_for_one(
    own_storage: RunningStorage, own_tenant: Tenant, parts: MirrorParts
) -> None:
    async with fresh_tenant(own_storage) as other:
        for tenant in (own_tenant, other):
            await append(tenant.raw, "", user("one"))
            await indexed(tenant)
        [row] = await rows_of(parts, other)
        await parts.vectors.delete_events(UUID(other.tenant_id), [row.source_id])

        own = await VerifyMirror(parts)(UUID(own_tenant.tenant_id))
        theirs = await VerifyMirror(parts, mend=MendMirror(parts))(UUID(other.tenant_id))
        await indexed(other)

        assert kinds(own) == {}
        assert kinds(theirs) == {"missing": 1}
        assert theirs.examples == {"missing": [str(id_of(row.expected))]}
        assert kinds(await VerifyMirror(parts)(UUID(other.tenant_id))) == {}
