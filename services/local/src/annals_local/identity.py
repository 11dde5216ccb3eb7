"""The tenant, the agent and the keys of a local installation, made on its first start."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from annals_client import AsyncAnnalsClient, NotFoundError, UnauthenticatedError
from annals_local.files import read_json, write_private_json

TENANT_NAME = "local development"
AGENT_NAME = "assistant"
AGENT_MODEL = "gpt-4o"
SYSTEM_PROMPT = (
    "You are the assistant of a small team. Earlier parts of the conversation may be shortened "
    "to snippets; each names a handle such as #41. Rely on what was said and on what tools "
    "returned, quote figures and names exactly, and say so when the conversation does not "
    "answer a question. Be brief."
)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who acts. Ids and `api_key` are empty until storage has made them.

    `worker_key`: what background work leases its jobs by. `secrets_key`: what storage encrypts
    signing secrets with, 32 bytes in base64url; `view_key`: what context seals views with.
    """

    admin_key: str
    tenant_id: str = ""
    agent_id: str = ""
    api_key: str = ""
    secrets_key: str = ""
    worker_key: str = ""
    view_key: str = ""

    @property
    def admin_key_sha256(self) -> str:
        """What storage is told of the admin key."""
        return _sha256(self.admin_key)

    @property
    def worker_key_sha256(self) -> str:
        """What storage is told of the worker key."""
        return _sha256(self.worker_key)


def load_identity(path: Path) -> Identity:
    """Read the file, or begin one with keys of its own. What an older one lacks is added."""
    noted = Identity(**{"admin_key": secrets.token_urlsafe(32), **read_json(path)})
    if noted.secrets_key and noted.worker_key and noted.view_key:
        return noted
    identity = replace(
        noted,
        secrets_key=noted.secrets_key or secrets.token_urlsafe(32),
        worker_key=noted.worker_key or secrets.token_urlsafe(32),
        view_key=noted.view_key or secrets.token_urlsafe(32),
    )
    write_private_json(path, asdict(identity))
    return identity


async def ensure_tenant(path: Path, identity: Identity, storage: str) -> Identity:
    """Return the identity whose agent storage knows; make tenant and agent when it does not."""
    if await _is_known(identity, storage):
        return identity
    made = await _make(identity, storage)
    write_private_json(path, asdict(made))
    return made


def _sha256(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


async def _is_known(identity: Identity, storage: str) -> bool:
    if not identity.api_key:
        return False
    async with AsyncAnnalsClient(storage, api_key=identity.api_key) as client:
        try:
            await client.agents.get(identity.agent_id)
        except (NotFoundError, UnauthenticatedError):
            # The database was removed, and these with it.
            return False
    return True


async def _make(identity: Identity, storage: str) -> Identity:
    async with AsyncAnnalsClient(storage, admin_key=identity.admin_key) as admin:
        created = await admin.tenants.create(TENANT_NAME)
    api_key = created.api_key_secret
    async with AsyncAnnalsClient(storage, api_key=api_key) as client:
        agent = await client.agents.create(
            AGENT_NAME, system_prompt=SYSTEM_PROMPT, model=AGENT_MODEL
        )
    return replace(
        identity,
        tenant_id=created.tenant.tenant_id,
        agent_id=agent.agent_id,
        api_key=api_key,
    )
