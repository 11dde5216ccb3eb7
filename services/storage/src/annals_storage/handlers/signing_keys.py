"""TenantService: the keys that sign user tokens."""

from __future__ import annotations

from typing import Any

from annals.storage.v1 import resources_pb2 as resources
from annals.storage.v1 import tenant_service_pb2 as pb
from annals_common.errors import FieldInvalidError
from annals_common.ids import uuid7
from annals_common.paging import (
    cut_page,
    decode_page_token,
    decode_time_cursor,
    encode_page_token,
    encode_time_cursor,
)
from annals_common.validation import enum, page_size, require_text, require_uuid, text
from annals_storage.commands.signing_keys import CreateSigningKey, RevokeSigningKey
from annals_storage.domain.signing import NewSigningKey, SigningAlgorithm, canonical_public_key
from annals_storage.handlers.access import administered_tenant
from annals_storage.handlers.enums import SIGNING_ALGORITHMS
from annals_storage.handlers.expiry import future_time
from annals_storage.handlers.output import signing_key_message
from annals_storage.ports.tenancy import SigningKeyStore

MAX_NAME_CHARS = 200
MAX_CLAIM_CHARS = 256
MAX_PEM_CHARS = 8_192


class SigningKeyHandler:
    """Translates; the use cases are in commands.signing_keys."""

    def __init__(
        self, keys: SigningKeyStore, create: CreateSigningKey, revoke: RevokeSigningKey
    ) -> None:
        self._keys, self._create, self._revoke = keys, create, revoke

    async def CreateSigningKey(
        self, request: pb.CreateSigningKeyRequest, context: Any
    ) -> pb.CreateSigningKeyResponse:
        tenant_id = administered_tenant("CreateSigningKey", request.tenant_id)
        key, secret = await self._create(tenant_id, _new(request.signing_key))
        return pb.CreateSigningKeyResponse(signing_key=signing_key_message(key), secret=secret)

    async def ListSigningKeys(
        self, request: pb.ListSigningKeysRequest, context: Any
    ) -> pb.ListSigningKeysResponse:
        tenant_id = administered_tenant("ListSigningKeys", request.tenant_id)
        limit = page_size(request.page_size)
        cursor = decode_time_cursor(decode_page_token(request, tenant_id, parts=2))
        found = await self._keys.page(tenant_id, cursor=cursor, limit=limit + 1)
        page, has_more = cut_page(found, limit)
        response = pb.ListSigningKeysResponse(signing_keys=map(signing_key_message, page))
        if has_more:
            last = encode_time_cursor(page[-1].created_at, page[-1].signing_key_id)
            response.next_page_token = encode_page_token(request, tenant_id, last)
        return response

    async def RevokeSigningKey(
        self, request: pb.RevokeSigningKeyRequest, context: Any
    ) -> pb.RevokeSigningKeyResponse:
        tenant_id = administered_tenant("RevokeSigningKey", request.tenant_id)
        key_id = require_uuid(request.signing_key_id, "signing_key_id")
        key = await self._revoke(tenant_id, key_id)
        return pb.RevokeSigningKeyResponse(signing_key=signing_key_message(key))


def _new(key: resources.SigningKey) -> NewSigningKey:
    algorithm = enum(key.algorithm, SIGNING_ALGORITHMS, "signing_key.algorithm")
    expires_at = key.expire_time if key.HasField("expire_time") else None
    return NewSigningKey(
        signing_key_id=uuid7(),
        display_name=text(key.display_name, "signing_key.display_name", max_chars=MAX_NAME_CHARS),
        algorithm=algorithm,
        issuer=require_text(key.issuer, "signing_key.issuer", max_chars=MAX_CLAIM_CHARS),
        audience=require_text(key.audience, "signing_key.audience", max_chars=MAX_CLAIM_CHARS),
        public_key_pem=_public_key(key.public_key_pem, algorithm),
        expires_at=future_time(expires_at, "signing_key.expire_time"),
    )


def _public_key(pem: str, algorithm: SigningAlgorithm) -> str | None:
    field = "signing_key.public_key_pem"
    if algorithm is SigningAlgorithm.HS256:
        if pem:
            raise FieldInvalidError(field, "must be empty: the server makes the secret of HS256")
        return None
    given = require_text(pem, field, max_chars=MAX_PEM_CHARS)
    try:
        return canonical_public_key(given, algorithm)
    except ValueError as error:
        # Not echoed: by mistake it may be a private key.
        raise FieldInvalidError(field, str(error)) from error
