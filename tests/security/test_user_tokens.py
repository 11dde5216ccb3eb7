"""User tokens: what proves a user, and sixty tokens that prove nothing and answer alike."""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import grpc
import jwt
import psycopg
import pytest
from structlog.testing import capture_logs
from tests.support.end_users import (
    AUDIENCE,
    HOUR_S,
    ISSUER,
    Signer,
    create_agent,
    create_signer,
    metadata_of,
    private_key,
    public_pem,
    publishable_key,
    valid_claims,
)
from tests.support.raw import Failure, failure
from tests.support.storage import RunningStorage, Tenant, fresh_tenant, running_storage
from tests.support.storage import storage_settings as settings_of
from tests.support.waiting import eventually

from annals.storage.v1 import tenant_service_pb2 as pb
from annals_local.postgres import LocalPostgres
from annals_storage.domain.user_tokens import MAX_TOKEN_CHARS

ALGORITHMS = ("HS256", "RS256", "ES256", "EdDSA")
DAY_S = 24 * HOUR_S


def b64(raw: bytes | str | dict[str, Any]) -> str:
    if isinstance(raw, dict):
        raw = json.dumps(raw)
    data = raw.encode() if isinstance(raw, str) else raw
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def hs256(secret: bytes, header: dict[str, Any] | str, claims: dict[str, Any] | str) -> str:
    """A token with a right HMAC over whatever header and claims."""
    signed = f"{b64(header)}.{b64(claims)}"
    return f"{signed}.{b64(hmac.digest(secret, signed.encode(), 'sha256'))}"


@dataclass(frozen=True, slots=True)
class World:
    """A tenant with a key of every algorithm, some that are no longer good, and another tenant."""

    tenant: Tenant
    signers: dict[str, Signer]
    revoked: Signer
    expired: Signer
    theirs: Signer
    publishable: str

    @property
    def hs(self) -> Signer:
        return self.signers["HS256"]

    @property
    def header(self) -> dict[str, Any]:
        return {"alg": "HS256", "kid": self.hs.key_id, "typ": "JWT"}

    def made(self, header: dict[str, Any] | str, claims: dict[str, Any] | str) -> str:
        return hs256(self.hs.key, header, claims)


@pytest.fixture(scope="module")
async def world(storage: RunningStorage) -> Any:
    async with fresh_tenant(storage) as tenant, fresh_tenant(storage) as other:
        revoked = await create_signer(tenant)
        await tenant.raw.call(
            "RevokeSigningKey", pb.RevokeSigningKeyRequest(signing_key_id=revoked.key_id)
        )
        moment = datetime.now(UTC) + timedelta(seconds=0.3)
        expired = await create_signer(tenant, expire_time=moment)

        async def has_passed() -> bool:
            return datetime.now(UTC) > moment

        await eventually(has_passed, bool)
        yield World(
            tenant,
            {name: await create_signer(tenant, name) for name in ALGORITHMS},
            revoked,
            expired,
            await create_signer(other),
            await publishable_key(tenant, await create_agent(tenant)),
        )


async def caller(tenant: Tenant, secret: str, **end_user: Any) -> Any:
    return await tenant.raw.call("GetCaller", metadata=metadata_of(secret, **end_user))


class TestValid:
    @pytest.mark.parametrize("algorithm", ALGORITHMS)
    async def test_of_every_algorithm_prove_the_user(self, world: World, algorithm: str) -> None:
        token = world.signers[algorithm].sign("bob")

        for secret in (world.publishable, world.tenant.api_key):
            found = await caller(world.tenant, secret, token=token)
            assert (found.user_id, found.user_verified) == ("bob", True)

    @pytest.mark.parametrize(
        "claims",
        [
            {"iat": None},
            {"aud": ["another", AUDIENCE]},
            {"nbf": int(time.time()) - 5},
            {"exp": int(time.time()) + DAY_S - 60},
            {"sub": "Zoë 日本 🦉"},
            {"sub": "x" * 256},
            {"more": {"of": ["anything"]}},
        ],
        ids=["no iat", "aud in a list", "nbf", "nearly a day", "any script", "long sub", "more"],
    )
    async def test_in_every_form_that_is_meant(self, world: World, claims: dict[str, Any]) -> None:
        found = await caller(
            world.tenant, world.publishable, token=world.hs.signed({**valid_claims(), **claims})
        )

        assert found.user_verified
        assert found.user_id == claims.get("sub", "alice")

    async def test_the_clocks_may_lie_half_a_minute_apart(self, world: World) -> None:
        now_s = int(time.time())
        early = world.hs.sign(iat=now_s + 20, nbf=now_s + 20, exp=now_s + HOUR_S)
        late = world.hs.sign(iat=now_s - HOUR_S, exp=now_s - 10)

        for token in (early, late):
            assert (await caller(world.tenant, world.publishable, token=token)).user_verified

    async def test_with_the_user_id_it_proves(self, world: World) -> None:
        found = await caller(
            world.tenant,
            world.publishable,
            token=world.hs.sign("bob"),
            user_id="bob",
            session_id="s",
        )

        assert (found.user_id, found.session_id, found.user_verified) == ("bob", "s", True)


def now() -> int:
    return int(time.time())


def flip(token: str, part: int) -> str:
    parts = token.split(".")
    text = parts[part]
    middle = len(text) // 2
    parts[part] = text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :]
    return ".".join(parts)


def last_bits(token: str) -> str:
    """Another text for the same signature: the bits that base64 does not use."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return token[:-1] + alphabet[alphabet.index(token[-1]) ^ 1]


def unsigned(world: World, algorithm: str) -> str:
    return f"{b64({**world.header, 'alg': algorithm})}.{b64(valid_claims())}."


def confused(world: World, name: str) -> str:
    """HMAC under the text of a public key, which everybody knows."""
    signer = world.signers[name]
    header = {"alg": "HS256", "kid": signer.key_id, "typ": "JWT"}
    return hs256(signer.public_pem.encode(), header, valid_claims())


def without(name: str) -> Callable[[World], str]:
    return lambda world: world.hs.sign(**{name: None})


def claiming(**claims: Any) -> Callable[[World], str]:
    return lambda world: world.hs.signed({**valid_claims(), **claims})


def headed(**members: Any) -> Callable[[World], str]:
    return lambda world: world.made({**world.header, **members}, valid_claims())


def by_stranger(algorithm: str) -> Callable[[World], str]:
    """Signed with a key pair of the forger's own, under a key id of the tenant's."""
    return lambda world: Signer(
        world.signers[algorithm].key_id,
        algorithm,
        b"x" * 32 if algorithm == "HS256" else private_key(algorithm),
    ).sign()


FORGED: dict[str, Callable[[World], str]] = {
    # not signed, or not with the key it names
    "alg none": lambda w: unsigned(w, "none"),
    "alg None": lambda w: unsigned(w, "None"),
    "alg none with a signature": headed(alg="none"),
    "empty signature": lambda w: unsigned(w, "HS256"),
    "RSA public key as HMAC secret": lambda w: confused(w, "RS256"),
    "EC public key as HMAC secret": lambda w: confused(w, "ES256"),
    "Ed25519 public key as HMAC secret": lambda w: confused(w, "EdDSA"),
    "HS256 key claimed to be RS256": headed(alg="RS256"),
    "another hash": lambda w: jwt.encode(
        valid_claims(), w.hs.key * 2, algorithm="HS512", headers={"kid": w.hs.key_id}
    ),
    "PSS with an RS256 key": lambda w: jwt.encode(
        valid_claims(),
        w.signers["RS256"].key,
        algorithm="PS256",
        headers={"kid": w.signers["RS256"].key_id},
    ),
    **{f"stranger's {name}": by_stranger(name) for name in ALGORITHMS},
    "flipped header": lambda w: flip(w.hs.sign(), 0),
    "flipped claims": lambda w: flip(w.hs.sign(), 1),
    "flipped signature": lambda w: flip(w.hs.sign(), 2),
    "unused bits of the signature": lambda w: last_bits(w.hs.sign()),
    # keys
    "unknown kid": headed(kid=str(uuid4())),
    "kid in upper case": lambda w: w.made(
        {**w.header, "kid": w.header["kid"].upper()}, valid_claims()
    ),
    "no kid": lambda w: w.made({"alg": "HS256"}, valid_claims()),
    "kid of another of our keys": lambda w: w.made(
        {**w.header, "kid": w.signers["RS256"].key_id}, valid_claims()
    ),
    "kid is a path": headed(kid="../../dev/null"),
    "kid is SQL": headed(kid="' OR '1'='1"),
    "kid is a number": headed(kid=7),
    "another tenant's key": lambda w: w.theirs.sign(),
    "revoked key": lambda w: w.revoked.sign(),
    "expired key": lambda w: w.expired.sign(),
    # claims
    "no sub": without("sub"),
    "no exp": without("exp"),
    "no iss": without("iss"),
    "no aud": without("aud"),
    "empty sub": claiming(sub=""),
    "long sub": claiming(sub="x" * 257),
    "sub with NUL": claiming(sub="a\x00b"),
    "sub is a number": lambda w: w.made(w.header, {**valid_claims(), "sub": 7}),
    "sub is half a pair": lambda w: w.made(w.header, {**valid_claims(), "sub": "\ud800"}),
    "expired": lambda w: w.hs.sign(iat=now() - HOUR_S, exp=now() - 60),
    "exp negative": claiming(exp=-1),
    "exp huge": claiming(exp=10**30),
    "exp is a text": lambda w: w.hs.sign(exp=str(now() + 60)),
    "exp is a fraction": lambda w: w.hs.sign(exp=now() + 60.5),
    "exp is true": claiming(exp=True),
    "exp is infinite": lambda w: w.made(
        w.header, json.dumps({**valid_claims(), "exp": 0}).replace('"exp": 0', '"exp": 1e999')
    ),
    "valid for more than a day": lambda w: w.hs.sign(exp=now() + DAY_S + 120),
    "issued for more than a day": lambda w: w.hs.sign(iat=now() - DAY_S, exp=now() + HOUR_S),
    "issued tomorrow": lambda w: w.hs.sign(iat=now() + HOUR_S, exp=now() + 2 * HOUR_S),
    "not yet": lambda w: w.hs.sign(nbf=now() + HOUR_S),
    "nbf is a text": claiming(nbf="0"),
    "another issuer": claiming(iss=ISSUER + "/"),
    "issuers in a list": lambda w: w.made(w.header, {**valid_claims(), "iss": [ISSUER]}),
    "another audience": claiming(aud="elsewhere"),
    "audiences without ours": claiming(aud=["elsewhere", "nowhere"]),
    "no audiences": claiming(aud=[]),
    "audience inside another": claiming(aud=f"{AUDIENCE}-staging"),
    # form
    "empty": lambda _: "",
    "a word": lambda _: "token",
    "two parts": lambda w: w.hs.sign().rsplit(".", 1)[0],
    "truncated": lambda w: w.hs.sign()[:-9],
    "four parts": lambda w: w.hs.sign() + ".x",
    "oversized": lambda w: w.hs.sign(padding="x" * MAX_TOKEN_CHARS),
    "bad base64": lambda w: "!" + w.hs.sign(),
    "padded base64": lambda w: w.hs.sign().replace(".", "=.", 1),
    "with blanks": lambda w: w.hs.sign().replace(".", " ."),
    "Bearer in front": lambda w: f"Bearer {w.hs.sign()}",
    "claims are no object": lambda w: w.made(w.header, "[]"),
    "claims are no JSON": lambda w: w.made(w.header, "{'sub': 'alice'}"),
    "claims are too deep": lambda w: w.made(w.header, "[" * 2_000),
    "claim occurs twice": lambda w: w.made(
        w.header, json.dumps(valid_claims())[:-1] + ', "sub": "bob"}'
    ),
    "header occurs twice": lambda w: w.made(
        json.dumps(w.header)[:-1] + ', "alg": "HS256"}', valid_claims()
    ),
    "nested": lambda w: w.made({**w.header, "cty": "JWT"}, valid_claims()),
    "crit": headed(crit=["exp"]),
    "unencoded payload": headed(b64=False, crit=["b64"]),
    "embedded key": headed(jwk={"kty": "oct", "k": b64(b"k" * 32)}),
    "key by URL": headed(jku="https://evil.example/keys"),
    "compressed": headed(zip="DEF"),
    "of another type": headed(typ="at+jwt"),
    "JWE": lambda w: ".".join(
        [b64({"alg": "dir", "enc": "A256GCM", "kid": w.hs.key_id}), "", "AAAA", "AAAA", "AAAA"]
    ),
}


async def refusal(world: World, secret: str, token: str) -> Failure:
    return await failure(caller(world.tenant, secret, token=token))


@pytest.mark.parametrize("name", FORGED)
async def test_that_prove_nothing_answer_alike(world: World, name: str) -> None:
    token = FORGED[name](world)
    plain = await refusal(world, world.publishable, "nonsense")

    for secret in (world.publishable, world.tenant.api_key):
        refused = await refusal(world, secret, token)
        assert refused == plain
    assert (plain.code, plain.reason, plain.metadata) == (
        grpc.StatusCode.UNAUTHENTICATED,
        "USER_TOKEN_INVALID",
        (),
    )


def test_there_are_enough_of_them() -> None:
    assert len(FORGED) >= 60


async def test_of_another_user_than_claimed_are_refused(world: World) -> None:
    refused = await failure(
        caller(world.tenant, world.publishable, token=world.hs.sign("bob"), user_id="alice")
    )

    assert refused.reason == "USER_TOKEN_INVALID"


async def test_of_one_tenant_prove_nothing_to_another(
    world: World, storage: RunningStorage
) -> None:
    async with fresh_tenant(storage) as other:
        refused = await failure(caller(other, other.api_key, token=world.hs.sign()))

    assert refused.reason == "USER_TOKEN_INVALID"


async def test_sent_twice_are_refused(world: World) -> None:
    sent = metadata_of(world.publishable, token=world.hs.sign())

    refused = await failure(
        world.tenant.raw.call("GetCaller", metadata=(*sent, ("annals-user-token", "x")))
    )

    assert refused.fields == ("annals-user-token",)


class TestKeys:
    async def test_revoked_are_refused_at_once(self, tenant: Tenant) -> None:
        signer = await create_signer(tenant)
        await caller(tenant, tenant.api_key, token=signer.sign())

        request = pb.RevokeSigningKeyRequest(signing_key_id=signer.key_id)
        revoked = await tenant.raw.call("RevokeSigningKey", request)

        refused = await failure(caller(tenant, tenant.api_key, token=signer.sign()))
        assert revoked.signing_key.HasField("revoke_time")
        assert refused.reason == "USER_TOKEN_INVALID"
        assert await tenant.raw.call("RevokeSigningKey", request) == revoked

    async def test_expire_in_use(self, tenant: Tenant) -> None:
        signer = await create_signer(tenant, expire_time=datetime.now(UTC) + timedelta(seconds=0.6))
        token = signer.sign()
        await caller(tenant, tenant.api_key, token=token)

        async def reason() -> str:
            try:
                await caller(tenant, tenant.api_key, token=token)
            except Exception as error:  # noqa: BLE001
                return str(error.failure.reason)  # type: ignore[attr-defined]
            return ""

        await eventually(reason, lambda answer: answer == "USER_TOKEN_INVALID")

    async def test_are_listed_without_secrets(self, tenant: Tenant) -> None:
        made = [await create_signer(tenant, name) for name in ("HS256", "ES256")]
        request, found = pb.ListSigningKeysRequest(page_size=1), []
        while True:
            page = await tenant.raw.call("ListSigningKeys", request)
            found += page.signing_keys
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token

        assert [key.signing_key_id for key in found] == [signer.key_id for signer in made]
        assert [key.public_key_pem for key in found] == ["", made[1].public_pem]
        assert b64(made[0].key) not in repr(found)

    async def test_of_the_server_are_kept_encrypted(
        self, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        with capture_logs() as logs:
            signer = await create_signer(tenant)
        with psycopg.connect(postgres.admin_url) as connection:
            [(stored,)] = connection.execute(
                "SELECT encrypted_secret FROM annals.signing_keys WHERE signing_key_id = %s",
                [signer.key_id],
            ).fetchall()

        assert len(signer.key) == 32
        assert signer.key not in stored
        assert b64(signer.key) not in repr(logs)

    async def test_a_secret_moved_to_another_key_opens_nothing(
        self, postgres: LocalPostgres, tenant: Tenant
    ) -> None:
        mine, other = await create_signer(tenant), await create_signer(tenant)
        with psycopg.connect(postgres.admin_url) as connection:
            connection.execute(
                "UPDATE annals.signing_keys SET encrypted_secret = (SELECT encrypted_secret"
                " FROM annals.signing_keys WHERE signing_key_id = %s) WHERE signing_key_id = %s",
                [mine.key_id, other.key_id],
            )

        forged = Signer(other.key_id, "HS256", mine.key).sign()

        refused = await failure(caller(tenant, tenant.api_key, token=forged))
        assert refused.reason == "USER_TOKEN_INVALID"

    async def test_of_the_server_need_a_setting(
        self, postgres: LocalPostgres, tmp_path: Any, tenant: Tenant
    ) -> None:
        from pydantic import SecretStr

        settings = settings_of(postgres, tmp_path, secrets_key=SecretStr(""))
        signer = await create_signer(tenant)
        async with running_storage(settings) as bare, bare.raw(tenant.api_key) as raw:
            unconfigured = Tenant(tenant.tenant_id, tenant.api_key, tenant.client, raw)
            refused = await failure(create_signer(unconfigured))
            unread = await failure(caller(unconfigured, tenant.api_key, token=signer.sign()))
            es256 = await create_signer(unconfigured, "ES256")
            proved = await caller(unconfigured, tenant.api_key, token=es256.sign())

        assert (refused.reason, refused.metadata) == (
            "NOT_CONFIGURED",
            (("setting", "ANNALS_STORAGE_SECRETS_KEY"),),
        )
        assert unread.reason == "USER_TOKEN_INVALID"
        assert proved.user_verified


def small_rsa() -> str:
    from cryptography.hazmat.primitives.asymmetric import rsa

    return public_pem(rsa.generate_private_key(public_exponent=65_537, key_size=1_024))


def other_curve() -> str:
    from cryptography.hazmat.primitives.asymmetric import ec

    return public_pem(ec.generate_private_key(ec.SECP384R1()))


def private_pem() -> str:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    key = private_key("ES256")
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


@pytest.mark.parametrize(
    ("algorithm", "pem"),
    [
        ("HS256", lambda: public_pem(private_key("ES256"))),
        ("RS256", small_rsa),
        ("RS256", lambda: public_pem(private_key("ES256"))),
        ("ES256", other_curve),
        ("ES256", lambda: public_pem(private_key("EdDSA"))),
        ("EdDSA", lambda: public_pem(private_key("RS256"))),
        ("ES256", private_pem),
        ("ES256", lambda: ""),
        ("ES256", lambda: "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"),
        ("ES256", lambda: "\x00"),
        ("ES256", lambda: "x" * 9_000),
    ],
    ids=[
        *("for HS256", "small RSA", "EC for RS256", "P-384", "Ed25519 for ES256"),
        *("RSA for EdDSA", "private", "none", "nonsense", "NUL", "long"),
    ],
)
async def test_keys_that_do_not_fit_their_algorithm_are_refused(
    tenant: Tenant, algorithm: str, pem: Callable[[], str]
) -> None:
    given = pem()

    refused = await failure(create_signer(tenant, algorithm, public_key_pem=given))

    assert refused.reason in {"FIELD_INVALID", "LIMIT_EXCEEDED"}
    assert refused.fields == ("signing_key.public_key_pem",)
    assert "PRIVATE" not in repr(refused)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"algorithm": "none"}, "algorithm"),
        ({"issuer": ""}, "issuer"),
        ({"audience": ""}, "audience"),
        ({"issuer": "x" * 257}, "issuer"),
        ({"audience": "a\x00"}, "audience"),
        ({"display_name": "x" * 201}, "display_name"),
        ({"expire_time": datetime.now(UTC) - timedelta(seconds=1)}, "expire_time"),
    ],
)
async def test_bad_keys_are_refused_by_field(
    tenant: Tenant, fields: dict[str, Any], field: str
) -> None:
    refused = await failure(create_signer(tenant, **fields))

    assert refused.fields == (f"signing_key.{field}",)
