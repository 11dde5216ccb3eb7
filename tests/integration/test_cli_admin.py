"""The `annals` command on agents, keys, signing keys and logs, against the real services."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.cli import Run
from tests.support.end_users import private_key, public_pem
from tests.support.storage import Tenant
from tests.support.valid_requests import logged_conversation
from tests.support.waiting import eventually

from annals_client import user

MISSING = "01999999-9999-7999-8999-999999999999"
OWNED_BY = "check the id, and that the key belongs to its tenant"
SIGNS = ("--issuer", "https://shop.example", "--audience", "annals")


async def test_an_agent_is_created_and_only_what_is_named_changes(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('[{"type": "function"}]', encoding="utf-8")
    (tmp_path / "nothing").write_text("", encoding="utf-8")
    made = await run(
        *("agent", "create", "shop", "--model", "gpt-4o", "--tools-file", "tools.json"),
        *("--end-user-mode", "signed", "--system-prompt", "Be kind.", "--json"),
    )
    agent_id = made["agent_id"]

    await run("agent", "update", agent_id, "--provider-logs", "--system-prompt", "Be brief.")
    await run(
        *("agent", "update", agent_id, "--tools-file", "nothing", "--temperature", "0.5"),
        *("--context-injection", '{"include_locale": true}'),
        *("--index-config", '{"summary_ratio": 0.2, "strategy": "INDEX_STRATEGY_CLUSTERED"}'),
    )
    shown = await run("agent", "show", agent_id, "--json")

    assert (made["end_user_mode"], made["provider_logs_enabled"]) == ("END_USER_MODE_SIGNED", False)
    assert made["tools_json"] == '[{"type": "function"}]'
    assert shown["context_injection"]["include_locale"]
    assert shown["index_config"]["summary_ratio"] == 0.2
    assert shown["index_config"]["strategy"] == "INDEX_STRATEGY_CLUSTERED"
    assert (shown["provider_logs_enabled"], shown["system_prompt"]) == (True, "Be brief.")
    assert (shown["tools_json"], shown["temperature"]) == ("", 0.5)
    for kept in ("display_name", "model", "end_user_mode", "output_schema_json", "create_time"):
        assert shown[kept] == made[kept]
    assert "end users      signed\n" in (await run("agent", "show", agent_id)).stdout
    assert [item["agent_id"] for item in await run("agent", "list", "--json")] == [agent_id]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("--model", "m"), 1, f"Error: no agent {MISSING}; {OWNED_BY}"),
        ((), 2, "Error: nothing to change; name a field, such as --model"),
        (
            ("--end-user-mode", "open"),
            2,
            (
                "Error: Invalid value for '--end-user-mode': 'open' is not one of "
                "'anonymous', 'trusted', 'signed'."
            ),
        ),
    ],
)
async def test_a_wrong_change_of_an_agent_says_what_is_wrong(
    run: Run, arguments: tuple[str, ...], exit_code: int, says: str
) -> None:
    failed = await run("agent", "update", MISSING, *arguments, exit_code=exit_code)

    assert failed.error == says


async def test_a_prompt_is_given_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("Be kind.", encoding="utf-8")
    prompt = ("--system-prompt-file", "prompt.txt")

    made = await run("agent", "create", "shop", *prompt, "--json")
    twice = await run(
        *("agent", "update", made["agent_id"], *prompt, "--system-prompt", "x"), exit_code=2
    )

    assert made["system_prompt"] == "Be kind."
    assert twice.error == "Error: use --system-prompt or --system-prompt-file, not both"


async def test_a_publishable_key_is_bound_to_its_agent(run: Run, tenant: Tenant) -> None:
    agent_id = (await tenant.client.agents.create("shop")).agent_id

    made = await run("key", "create", "web", "--kind", "publishable", "--agent", agent_id, "--json")
    scoped = await run("key", "create", "--scope", "data", "--scope", "tenant-admin", "--json")
    plain = await run("key", "create", "--json")
    unbound = await run("key", "create", "--kind", "publishable", exit_code=1)
    caller = await run("key", "caller", "--json")
    rows = (await run("key", "list")).stdout.splitlines()

    assert made["api_key_secret"].startswith("annals_pk_")
    assert (made["api_key"]["agent_id"], made["api_key"]["scopes"]) == (agent_id, [])
    assert len(scoped["api_key"]["scopes"]) == 2
    assert plain["api_key"]["scopes"] == ["API_KEY_SCOPE_DATA"]
    assert unbound.error == "Error: agent_id: is required: a UUID"
    assert caller["tenant_id"] == tenant.tenant_id
    assert [row.split("\t")[-2:] for row in rows if "\tweb\t" in row] == [["publishable", agent_id]]
    assert "tenant-admin" in (await run("key", "caller")).stdout


async def test_signing_keys_are_created_listed_and_revoked(run: Run, tmp_path: Path) -> None:
    pem = public_pem(private_key("ES256"))
    (tmp_path / "public.pem").write_text(pem, encoding="utf-8")

    secret = await run("signing-key", "create", "hs256", *SIGNS)
    made = await run(
        *("signing-key", "create", "es256", *SIGNS, "--public-key", "public.pem"),
        *("--name", "web", "--expires", "2099-01-01", "--json"),
    )
    key = made["signing_key"]
    revoked = await run("signing-key", "revoke", key["signing_key_id"], "--json")
    listed = await run("signing-key", "list", "--json")

    assert "\nsecret " in secret.stdout
    assert "not shown again" in secret.stderr
    assert (made["secret"], key["public_key_pem"].strip()) == ("", pem.strip())
    assert key["expire_time"] == "2099-01-01T00:00:00Z"
    assert revoked["revoke_time"]
    assert [item["display_name"] for item in listed] == ["", "web"]
    assert (await run("signing-key", "list")).stdout.count("\n") == 3


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("create", "hs256", "--audience", "a"), 2, "Error: Missing option '--issuer'."),
        (
            ("create", "md5", *SIGNS),
            2,
            (
                "Error: Invalid value for 'ALGORITHM': 'md5' is not one of "
                "'hs256', 'rs256', 'es256', 'eddsa'."
            ),
        ),
        (
            ("create", "es256", *SIGNS),
            1,
            "Error: signing_key.public_key_pem: is required: 1–8,192 characters",
        ),
        (
            ("create", "es256", *SIGNS, "--public-key", "private.pem"),
            2,
            (
                "Error: private.pem: is a private key; --public-key takes the public one, "
                "see openssl pkey -pubout"
            ),
        ),
        (("revoke", MISSING), 1, f"Error: no signing_key {MISSING}; {OWNED_BY}"),
    ],
)
async def test_a_wrong_signing_key_says_what_is_wrong(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], exit_code: int, says: str
) -> None:
    (tmp_path / "private.pem").write_text("-----BEGIN PRIVATE KEY-----\n", encoding="utf-8")

    failed = await run("signing-key", *arguments, exit_code=exit_code)

    assert failed.error == says


async def test_logs_are_listed(run: Run, tenant: Tenant) -> None:
    room = await logged_conversation(tenant)
    await tenant.client.events.append(room, user("a spare anchor"))
    asked = {"model": "m", "input": "x" * 100}
    await tenant.client.provider_logs.create(room, "openai", request=asked, latency_ms=12)

    await run("search", "anchor", "--conversation", room, "--fresh")
    found = await eventually(lambda: run("search-log", "--conversation", room, "--json"), len)
    calls = await run("provider-logs", room, "--json")

    assert [(item["query"], item["hit_count"]) for item in found] == [("anchor", 1)]
    assert "\tevents\t1\t" in (await run("search-log", "--from", "2020-01-01")).stdout
    assert await run("search-log", "--to", "2020-01-01", "--json") == []
    assert json.loads(calls[0]["request_json"]) == asked
    assert "…" in (await run("provider-logs", room)).stdout
    assert "x" * 100 in (await run("provider-logs", room, "--full")).stdout


@pytest.mark.parametrize(
    ("arguments", "exit_code", "says"),
    [
        (("provider-logs", MISSING), 1, f"Error: no conversation {MISSING}; {OWNED_BY}"),
        (("provider-logs",), 2, "Error: Missing argument 'CONVERSATION_ID'."),
        (
            ("search-log", "--from", "soon"),
            2,
            (
                "Error: Invalid value for '--from': 'soon' does not match the formats "
                "'%Y-%m-%d', '%Y-%m-%dT%H:%M:%S', '%Y-%m-%d %H:%M:%S'."
            ),
        ),
        (
            ("search-log", "--conversation", "x"),
            1,
            "Error: conversation_id: must be a UUID such as 0199c7a2-7d4e-7b1e-9c55-…",
        ),
    ],
)
async def test_a_wrong_question_for_a_log_says_what_is_wrong(
    run: Run, arguments: tuple[str, ...], exit_code: int, says: str
) -> None:
    failed = await run(*arguments, exit_code=exit_code)

    assert failed.error == says
