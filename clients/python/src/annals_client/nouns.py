"""What the client for threads can do, noun by noun. `aio_nouns` is its twin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import requests as _requests
from annals_client import streams as _streams
from annals_client.binding import (
    Noun,
    download,
    listing,
    unary,
    upload,
    watching,
)
from annals_client.bulk import (
    BATCH_EVENTS,
    BULK_TIMEOUT_S,
    MAX_IN_FLIGHT,
    AppendProgress,
    Batcher,
    BulkOptions,
    batches_of,
)


class Tenants(Noun):
    """Tenants; needs the admin key."""

    create = unary(_requests.tenants.create)
    get = unary(_requests.tenants.get)
    list = listing(_requests.tenants.list_all)


class Agents(Noun):
    """Agents of a tenant."""

    create = unary(_requests.agents.create)
    update = unary(_requests.agents.update)
    get = unary(_requests.agents.get)
    list = listing(_requests.agents.list_all)


class SearchParameters(Noun):
    """How a tenant's searches rank."""

    get = unary(_requests.search_parameters.get)
    update = unary(_requests.search_parameters.update)


class Keys(Noun):
    """API keys of a tenant."""

    caller = unary(_requests.keys.caller)
    create = unary(_requests.keys.create)
    list = listing(_requests.keys.list_all)
    revoke = unary(_requests.keys.revoke)


class Conversations(Noun):
    """Conversations."""

    create = unary(_requests.conversations.create)
    get = unary(_requests.conversations.get)
    list = listing(_requests.conversations.list_all)
    update = unary(_requests.conversations.update)
    end = unary(_requests.conversations.end)
    delete = unary(_requests.conversations.delete)
    restore = unary(_requests.conversations.restore)
    archive = unary(_requests.transfer.archive)
    current = unary(_requests.transfer.current)
    fork = unary(_requests.transfer.fork)
    merge_session = unary(_requests.transfer.merge_session)
    export = download(_requests.transfer.export)
    import_file = upload(_requests.transfer.import_file)


class Events(Noun):
    """Events of conversations."""

    append = unary(_requests.events.append)
    get = unary(_requests.events.get)
    batch_get = unary(_requests.events.batch_get)
    list = listing(_requests.events.list_all)
    period = listing(_requests.event_reads.period)
    thread = unary(_requests.event_reads.thread)
    tool_call = unary(_requests.event_reads.tool_call)
    tool_calls = unary(_requests.event_reads.tool_calls)
    chunks = unary(_requests.event_reads.chunks)
    edit = unary(_requests.event_changes.edit)
    delete = unary(_requests.event_changes.delete)
    restore = unary(_requests.event_changes.restore)
    store_turn = unary(_requests.event_changes.store_turn)
    observations = listing(_requests.event_changes.observations)
    revert = unary(_requests.event_changes.revert)
    create_branch = unary(_requests.event_changes.create_branch)
    branches = listing(_requests.event_changes.branches)
    select_branch = unary(_requests.event_changes.select_branch)
    watch = watching(_streams.watch)

    def stream_append(
        self,
        conversation_id: str,
        events: Iterable[pb.NewEvent],
        *,
        batch_size: int = BATCH_EVENTS,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float = BULK_TIMEOUT_S,
    ) -> Iterator[AppendProgress]:
        """Load events in bulk; yields what is durable after each batch.

        Reads `events` lazily and holds at most `max_in_flight` batches of 1–1,000 events.
        Events without an idempotency key get one. A broken stream is resumed after the last
        acknowledged batch. `timeout`: seconds without an acknowledgement. The load runs
        while the iterator is consumed.
        """
        options = BulkOptions(batch_size, max_in_flight, timeout)
        batches = batches_of(events, Batcher(conversation_id, batch_size))
        return self._transport.bulk_append(batches, options)


class Memories(Noun):
    """Statements worth keeping."""

    store = unary(_requests.memories.store)
    get = unary(_requests.memories.get)
    list = listing(_requests.memories.list_all)
    update = unary(_requests.memories.update)
    delete = unary(_requests.memories.delete)
    search = unary(_requests.memories.search)


class Relationships(Noun):
    """How things refer to each other."""

    create = unary(_requests.relationships.create)
    list = listing(_requests.relationships.list_all)
    delete = unary(_requests.relationships.delete)
    types = unary(_requests.relationships.types)


class Attachments(Noun):
    """References to bytes kept elsewhere."""

    create = unary(_requests.attachments.create)
    get = unary(_requests.attachments.get)
    list = listing(_requests.attachments.list_all)


class Usage(Noun):
    """What providers reported, and sizes."""

    list = listing(_requests.usage.list_all)
    large_conversations = listing(_requests.usage.large_conversations)


class ProviderLogs(Noun):
    """Raw requests to providers and their responses."""

    create = unary(_requests.provider_logs.create)
    list = listing(_requests.provider_logs.list_all)


class Erasure(Noun):
    """Erases for good, with receipts."""

    event = unary(_requests.erasure.event)
    conversation = unary(_requests.erasure.conversation)
    user = unary(_requests.erasure.user)
    tenant = unary(_requests.erasure.tenant)
    receipt = unary(_requests.erasure.receipt)
    receipts = listing(_requests.erasure.receipts)
    verify = unary(_requests.erasure.verify)


class Retention(Noun):
    """What becomes of conversations as they age."""

    set = unary(_requests.retention.set_policy)
    get = unary(_requests.retention.get)
    list = listing(_requests.retention.list_all)
    delete = unary(_requests.retention.delete)
    move_to_cold = unary(_requests.retention.move_to_cold)
    restore_from_cold = unary(_requests.retention.restore_from_cold)


class SigningKeys(Noun):
    """Keys that sign the tokens of end users."""

    create = unary(_requests.signing_keys.create)
    list = listing(_requests.signing_keys.list_all)
    revoke = unary(_requests.signing_keys.revoke)


class Search(Noun):
    """Search."""

    events = unary(_requests.search.events)
    log = listing(_requests.search.log)


class Index(Noun):
    """The mirror of embeddings."""

    status = unary(_requests.index.status)
    parked = listing(_requests.index.parked)
    retry = unary(_requests.index.retry)


class Jobs(Noun):
    """Background work on conversations."""

    status = unary(_requests.jobs.status)
    parked = listing(_requests.jobs.parked)
    retry = unary(_requests.jobs.retry)


class Context(Noun):
    """Prepared contexts."""

    prepare = unary(_requests.context.prepare)
    build_system_prompt = unary(_requests.context.build_system_prompt)
    expand = unary(_requests.drill_down.expand)
    collapse = unary(_requests.drill_down.collapse)
    focus_on = unary(_requests.drill_down.focus_on)
    snippets = unary(_requests.retrieval.snippets)
    retrieve = unary(_requests.retrieval.retrieve)
    across = unary(_requests.retrieval.across)


class Summaries(Noun):
    """Summaries, asked for, made and kept."""

    about = unary(_requests.summaries.about)
    make = unary(_requests.summaries.make)
    get = unary(_requests.summaries.get)
    list = listing(_requests.summaries.list_all)
    runs = listing(_requests.summaries.runs)
    delete = unary(_requests.summaries.delete)


class Topics(Noun):
    """What conversations are about."""

    overview = unary(_requests.topics.overview)
    cluster = unary(_requests.topics.cluster)
    messages = listing(_requests.topics.messages)


class Formats(Noun):
    """Providers' formats and token counts."""

    render = unary(_requests.formats.render)
    parse = unary(_requests.formats.parse)
    count_tokens = unary(_requests.formats.count_tokens)


class Health(Noun):
    """Health of both services."""

    storage = unary(_requests.health.storage)
    context = unary(_requests.health.context)
