"""End users of a tenant's agent: publishable keys, metadata, signing keys and tokens."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, field
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from tests.support.storage import Tenant

from annals.storage.v1 import resources_pb2 as res
from annals.storage.v1 import tenant_service_pb2 as pb

ISSUER, AUDIENCE = "https://shop.example", "annals"
HOUR_S = 3_600
Metadata = tuple[tuple[str, str], ...]


def metadata_of(
    secret: str,
    *,
    session_id: str | None = None,
    user_id: str | None = None,
    token: str | None = None,
) -> Metadata:
    """Credentials and the end user of a call."""
    pairs = {
        "authorization": f"Bearer {secret}",
        "annals-session-id": session_id,
        "annals-user-id": user_id,
        "annals-user-token": token,
    }
    return tuple((key, value) for key, value in pairs.items() if value is not None)


async def create_agent(tenant: Tenant, mode: Any = res.END_USER_MODE_UNSPECIFIED) -> str:
    """An agent that takes end users of this mode; its id."""
    request = pb.CreateAgentRequest(agent=res.Agent(display_name="a", end_user_mode=mode))
    return str((await tenant.raw.call("CreateAgent", request)).agent.agent_id)


async def publishable_key(tenant: Tenant, agent_id: str) -> str:
    """The secret of a new publishable key."""
    request = pb.CreateApiKeyRequest(kind=res.API_KEY_KIND_PUBLISHABLE, agent_id=agent_id)
    return str((await tenant.raw.call("CreateApiKey", request)).api_key_secret)


@dataclass(frozen=True, slots=True)
class Signer:
    """A signing key of a tenant, and what signs with it."""

    key_id: str
    algorithm: str
    key: Any = field(repr=False)
    public_pem: str = ""

    def sign(self, subject: Any = "alice", **claims: Any) -> str:
        """A valid token, or with other claims; None leaves a claim out."""
        return self.signed({**valid_claims(), "sub": subject, **claims})

    def signed(self, claims: dict[str, Any], **headers: Any) -> str:
        """A token of exactly these claims."""
        kept = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(
            kept, self.key, algorithm=self.algorithm, headers={"kid": self.key_id, **headers}
        )


def valid_claims() -> dict[str, Any]:
    """Claims that hold for an hour."""
    now_s = int(time.time())
    return {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "iat": now_s, "exp": now_s + HOUR_S}


_NUMBERS = {
    "HS256": res.SIGNING_ALGORITHM_HS256,
    "RS256": res.SIGNING_ALGORITHM_RS256,
    "ES256": res.SIGNING_ALGORITHM_ES256,
    "EdDSA": res.SIGNING_ALGORITHM_EDDSA,
}


def private_key(algorithm: str) -> Any:
    """A fresh key pair."""
    match algorithm:
        case "RS256":
            return rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case _:
            return ed25519.Ed25519PrivateKey.generate()


def public_pem(key: Any) -> str:
    """The public half as SubjectPublicKeyInfo."""
    form = PublicFormat.SubjectPublicKeyInfo
    return str(key.public_key().public_bytes(Encoding.PEM, form).decode())


async def create_signer(tenant: Tenant, algorithm: str = "HS256", **fields: Any) -> Signer:
    """Register a signing key."""
    key = private_key(algorithm) if algorithm in _NUMBERS.keys() - {"HS256"} else None
    pem = public_pem(key) if key is not None else ""
    expire_time = fields.pop("expire_time", None)
    signing_key = res.SigningKey(
        **{
            "algorithm": _NUMBERS.get(algorithm, res.SIGNING_ALGORITHM_UNSPECIFIED),
            "public_key_pem": pem,
            "issuer": ISSUER,
            "audience": AUDIENCE,
            **fields,
        }
    )
    if expire_time is not None:
        signing_key.expire_time.FromDatetime(expire_time)
    request = pb.CreateSigningKeyRequest(signing_key=signing_key)
    made = await tenant.raw.call("CreateSigningKey", request)
    if key is None:
        key = base64.urlsafe_b64decode(made.secret + "=")
    return Signer(made.signing_key.signing_key_id, algorithm, key, pem)
