"""The `annals` command and its global options."""

from __future__ import annotations

from pathlib import Path

import click

from annals_client.cli.agents import agent
from annals_client.cli.attachments import attachment
from annals_client.cli.branches import branch, branches, fork, revert
from annals_client.cli.contexts import context_command, count_tokens, system_prompt
from annals_client.cli.conversations import conversation
from annals_client.cli.drill_down import collapse, expand, focus
from annals_client.cli.erasure import erase, verify_erasure
from annals_client.cli.event_reads import chunks, thread, tool_call, tool_calls
from annals_client.cli.events import append, list_events
from annals_client.cli.failures import FriendlyGroup
from annals_client.cli.history import delete, edit, history, period, restore
from annals_client.cli.imports import import_command
from annals_client.cli.index import index
from annals_client.cli.jobs import jobs
from annals_client.cli.keys import key
from annals_client.cli.logs import provider_logs, search_log
from annals_client.cli.memories import memory
from annals_client.cli.relationships import relationship
from annals_client.cli.retention import retention
from annals_client.cli.retrieval import across, retrieve, snippets
from annals_client.cli.search import search
from annals_client.cli.signing_keys import signing_key
from annals_client.cli.state import make_state
from annals_client.cli.status import status
from annals_client.cli.summaries import summary
from annals_client.cli.tenants import tenant
from annals_client.cli.topics import topic
from annals_client.cli.transfer import export, watch
from annals_client.cli.turns import turn
from annals_client.cli.usage import usage
from annals_client.config import DEFAULT_TIMEOUT_S

HELP = """Keep conversations of language models, and ask what a model should see next.

Addresses and keys come from the options, else from ANNALS_STORAGE_ADDRESS,
ANNALS_CONTEXT_ADDRESS, ANNALS_API_KEY and ANNALS_ADMIN_KEY, else from the nearest
build/local/endpoints.json, which `make run` writes. Prefer the variables for keys: options
show in the list of processes.

\b
Examples:
  annals status
  annals import chats.json
  annals append new --role user "Where is my order 4711?"
  annals list 0199c7a2-7d4e-7b1e-9c55-0242ac120002 --last 20
  annals search "refund of order 4711" --limit 5
  annals revert 0199c7a2-… 0199c7a3-…
  annals export 0199c7a2-… -o chat.jsonl
  annals context 0199c7a2-… "What did we promise?" --budget 2000
  annals --json conversation list | jq '.[].conversation_id'

Exit codes: 0 done, 1 failed, 2 used wrongly. Errors are one line on stderr.
"""


@click.group(cls=FriendlyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--storage", metavar="HOST:PORT", help="Address of storage.")
@click.option("--context", metavar="HOST:PORT", help="Address of context.")
@click.option("--api-key", metavar="KEY", help="Key of a tenant.")
@click.option(
    "--endpoints",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of addresses and keys, instead of the environment.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout, nothing else.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_TIMEOUT_S,
    show_default=True,
    help="Deadline of each call, its retries included.",
)
@click.version_option(package_name="annals-client", prog_name="annals")
@click.pass_context
def annals(
    ctx: click.Context,
    *,
    storage: str | None,
    context: str | None,
    api_key: str | None,
    endpoints: Path | None,
    as_json: bool,
    timeout: float,
) -> None:
    """See HELP."""
    ctx.obj = make_state(
        storage, context, api_key, endpoints_path=endpoints, as_json=as_json, timeout_s=timeout
    )


for command in (
    status,
    import_command,
    export,
    watch,
    append,
    list_events,
    thread,
    chunks,
    tool_calls,
    tool_call,
    turn,
    edit,
    delete,
    restore,
    history,
    period,
    branches,
    branch,
    revert,
    fork,
    memory,
    relationship,
    attachment,
    search,
    search_log,
    index,
    jobs,
    topic,
    context_command,
    system_prompt,
    expand,
    collapse,
    focus,
    snippets,
    retrieve,
    across,
    summary,
    count_tokens,
    conversation,
    usage,
    provider_logs,
    retention,
    erase,
    verify_erasure,
    tenant,
    agent,
    key,
    signing_key,
):
    annals.add_command(command)
