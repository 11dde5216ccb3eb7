"""`annals search-log` and `annals provider-logs`."""

from __future__ import annotations

from datetime import datetime

import click

from annals.storage.v1 import search_service_pb2 as pb
from annals_client.cli.output import moment, one_line, print_json_array, print_table
from annals_client.cli.parameters import POSITIVE_INT32
from annals_client.cli.state import State, json_option, pass_state
from annals_client.values import enum_name


@click.command("search-log")
@click.option("--conversation", "conversation_id", default="", help="Only in this one.")
@click.option("--from", "start_time", type=click.DateTime(), help="At or after this (UTC).")
@click.option("--to", "end_time", type=click.DateTime(), help="Before this (UTC).")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@json_option
@pass_state
def search_log(
    state: State,
    *,
    conversation_id: str,
    start_time: datetime | None,
    end_time: datetime | None,
    limit: int | None,
) -> None:
    """List what was searched, newest first. Needs a key with tenant-admin.

    A search is logged shortly after its answer.
    """
    found = state.client().search.log(
        conversation_id=conversation_id, start_time=start_time, end_time=end_time, limit=limit
    )
    if state.as_json:
        print_json_array(found)
        return
    print_table(("when", "kind", "hits", "top score", "ms", "by", "query"), map(_row, found))


@click.command("provider-logs")
@click.argument("conversation_id")
@click.option("--limit", type=POSITIVE_INT32, help="At most so many.")
@click.option("--full", is_flag=True, help="All of requests and responses, not 80 characters.")
@json_option
@pass_state
def provider_logs(state: State, conversation_id: str, limit: int | None, *, full: bool) -> None:
    """List raw requests to model providers and their responses, newest first.

    They are kept where the agent wants them: `annals agent update AGENT --provider-logs`.
    """
    found = state.client().provider_logs.list(conversation_id, limit=limit)
    if state.as_json:
        print_json_array(found)
        return
    rows = (
        (
            moment(it.create_time),
            it.provider,
            it.model,
            it.latency_ms,
            *(text if full else one_line(text, 80) for text in (it.request_json, it.response_json)),
        )
        for it in found
    )
    print_table(("when", "provider", "model", "ms", "request", "response"), rows)


def _row(item: pb.SearchLogEntry) -> tuple[object, ...]:
    actor = item.actor
    return (
        moment(item.create_time),
        enum_name(pb.SearchLogKind, "SEARCH_LOG_KIND_", item.kind),
        item.hit_count,
        f"{item.top_score:.3f}" if item.hit_count else "",
        f"{item.search_time_ms:.1f}",
        actor.user_id or actor.session_id or actor.api_key_id,
        one_line(item.query, 80),
    )
