"""What the client for asyncio can do, noun by noun. `nouns` is its twin."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable

from annals.storage.v1 import event_service_pb2 as pb
from annals_client import requests as _requests
from annals_client import streams as _streams
from annals_client.binding import (
    AsyncNoun,
    async_download,
    async_listing,
    async_unary,
    async_upload,
    async_watching,
)
from annals_client.bulk import (
    BATCH_EVENTS,
    BULK_TIMEOUT_S,
    MAX_IN_FLIGHT,
    AppendProgress,
    Batcher,
    BulkOptions,
    batches_of_async,
)


class AsyncTenants(AsyncNoun):
    """Tenants; needs the admin key."""

    create = async_unary(_requests.tenants.create)
    get = async_unary(_requests.tenants.get)
    list = async_listing(_requests.tenants.list_all)


class AsyncAgents(AsyncNoun):
    """Agents of a tenant."""

    create = async_unary(_requests.agents.create)
    update = async_unary(_requests.agents.update)
    get = async_unary(_requests.agents.get)
    list = async_listing(_requests.agents.list_all)


class AsyncSearchParameters(AsyncNoun):
    """How a tenant's searches rank."""

    get = async_unary(_requests.search_parameters.get)
    update = async_unary(_requests.search_parameters.update)


class AsyncKeys(AsyncNoun):
    """API keys of a tenant."""

    caller = async_unary(_requests.keys.caller)
    create = async_unary(_requests.keys.create)
    list = async_listing(_requests.keys.list_all)
    revoke = async_unary(_requests.keys.revoke)


class AsyncConversations(AsyncNoun):
    """Conversations."""

    create = async_unary(_requests.conversations.create)
    get = async_unary(_requests.conversations.get)
    list = async_listing(_requests.conversations.list_all)
    update = async_unary(_requests.conversations.update)
    end = async_unary(_requests.conversations.end)
    delete = async_unary(_requests.conversations.delete)
    restore = async_unary(_requests.conversations.restore)
    archive = async_unary(_requests.transfer.archive)
    current = async_unary(_requests.transfer.current)
    fork = async_unary(_requests.transfer.fork)
    merge_session = async_unary(_requests.transfer.merge_session)
    export = async_download(_requests.transfer.export)
    import_file = async_upload(_requests.transfer.import_file)


class AsyncEvents(AsyncNoun):
    """Events of conversations."""

    append = async_unary(_requests.events.append)
    get = async_unary(_requests.events.get)
    batch_get = async_unary(_requests.events.batch_get)
    list = async_listing(_requests.events.list_all)
    period = async_listing(_requests.event_reads.period)
    thread = async_unary(_requests.event_reads.thread)
    tool_call = async_unary(_requests.event_reads.tool_call)
    tool_calls = async_unary(_requests.event_reads.tool_calls)
    chunks = async_unary(_requests.event_reads.chunks)
    edit = async_unary(_requests.event_changes.edit)
    delete = async_unary(_requests.event_changes.delete)
    restore = async_unary(_requests.event_changes.restore)
    store_turn = async_unary(_requests.event_changes.store_turn)
    observations = async_listing(_requests.event_changes.observations)
    revert = async_unary(_requests.event_changes.revert)
    create_branch = async_unary(_requests.event_changes.create_branch)
    branches = async_listing(_requests.event_changes.branches)
    select_branch = async_unary(_requests.event_changes.select_branch)
    watch = async_watching(_streams.watch)

    def stream_append(
        self,
        conversation_id: str,
        events: Iterable[pb.NewEvent] | AsyncIterable[pb.NewEvent],
        *,
        batch_size: int = BATCH_EVENTS,
        max_in_flight: int = MAX_IN_FLIGHT,
        timeout: float = BULK_TIMEOUT_S,
    ) -> AsyncIterator[AppendProgress]:
        """Load events in bulk; yields what is durable after each batch.

        Reads `events` lazily and holds at most `max_in_flight` batches of 1–1,000 events.
        Events without an idempotency key get one. A broken stream is resumed after the last
        acknowledged batch. `timeout`: seconds without an acknowledgement. The load runs
        while the iterator is consumed.
        """
        options = BulkOptions(batch_size, max_in_flight, timeout)
        batches = batches_of_async(events, Batcher(conversation_id, batch_size))
        return self._transport.bulk_append(batches, options)


class AsyncMemories(AsyncNoun):
    """Statements worth keeping."""

    store = async_unary(_requests.memories.store)
    get = async_unary(_requests.memories.get)
    list = async_listing(_requests.memories.list_all)
    update = async_unary(_requests.memories.update)
    delete = async_unary(_requests.memories.delete)
    search = async_unary(_requests.memories.search)


class AsyncRelationships(AsyncNoun):
    """How things refer to each other."""

    create = async_unary(_requests.relationships.create)
    list = async_listing(_requests.relationships.list_all)
    delete = async_unary(_requests.relationships.delete)
    types = async_unary(_requests.relationships.types)


class AsyncAttachments(AsyncNoun):
    """References to bytes kept elsewhere."""

    create = async_unary(_requests.attachments.create)
    get = async_unary(_requests.attachments.get)
    list = async_listing(_requests.attachments.list_all)


class AsyncUsage(AsyncNoun):
    """What providers reported, and sizes."""

    list = async_listing(_requests.usage.list_all)
    large_conversations = async_listing(_requests.usage.large_conversations)


class AsyncProviderLogs(AsyncNoun):
    """Raw requests to providers and their responses."""

    create = async_unary(_requests.provider_logs.create)
    list = async_listing(_requests.provider_logs.list_all)


class AsyncErasure(AsyncNoun):
    """Erases for good, with receipts."""

    event = async_unary(_requests.erasure.event)
    conversation = async_unary(_requests.erasure.conversation)
    user = async_unary(_requests.erasure.user)
    tenant = async_unary(_requests.erasure.tenant)
    receipt = async_unary(_requests.erasure.receipt)
    receipts = async_listing(_requests.erasure.receipts)
    verify = async_unary(_requests.erasure.verify)


class AsyncRetention(AsyncNoun):
    """What becomes of conversations as they age."""

    set = async_unary(_requests.retention.set_policy)
    get = async_unary(_requests.retention.get)
    list = async_listing(_requests.retention.list_all)
    delete = async_unary(_requests.retention.delete)
    move_to_cold = async_unary(_requests.retention.move_to_cold)
    restore_from_cold = async_unary(_requests.retention.restore_from_cold)


class AsyncSigningKeys(AsyncNoun):
    """Keys that sign the tokens of end users."""

    create = async_unary(_requests.signing_keys.create)
    list = async_listing(_requests.signing_keys.list_all)
    revoke = async_unary(_requests.signing_keys.revoke)


class AsyncSearch(AsyncNoun):
    """Search."""

    events = async_unary(_requests.search.events)
    log = async_listing(_requests.search.log)


class AsyncIndex(AsyncNoun):
    """The mirror of embeddings."""

    status = async_unary(_requests.index.status)
    parked = async_listing(_requests.index.parked)
    retry = async_unary(_requests.index.retry)


class AsyncJobs(AsyncNoun):
    """Background work on conversations."""

    status = async_unary(_requests.jobs.status)
    parked = async_listing(_requests.jobs.parked)
    retry = async_unary(_requests.jobs.retry)


class AsyncContext(AsyncNoun):
    """Prepared contexts."""

    prepare = async_unary(_requests.context.prepare)
    build_system_prompt = async_unary(_requests.context.build_system_prompt)
    expand = async_unary(_requests.drill_down.expand)
    collapse = async_unary(_requests.drill_down.collapse)
    focus_on = async_unary(_requests.drill_down.focus_on)
    snippets = async_unary(_requests.retrieval.snippets)
    retrieve = async_unary(_requests.retrieval.retrieve)
    across = async_unary(_requests.retrieval.across)


class AsyncSummaries(AsyncNoun):
    """Summaries, asked for, made and kept."""

    about = async_unary(_requests.summaries.about)
    make = async_unary(_requests.summaries.make)
    get = async_unary(_requests.summaries.get)
    list = async_listing(_requests.summaries.list_all)
    runs = async_listing(_requests.summaries.runs)
    delete = async_unary(_requests.summaries.delete)


class AsyncTopics(AsyncNoun):
    """What conversations are about."""

    overview = async_unary(_requests.topics.overview)
    cluster = async_unary(_requests.topics.cluster)
    messages = async_listing(_requests.topics.messages)


class AsyncFormats(AsyncNoun):
    """Providers' formats and token counts."""

    render = async_unary(_requests.formats.render)
    parse = async_unary(_requests.formats.parse)
    count_tokens = async_unary(_requests.formats.count_tokens)


class AsyncHealth(AsyncNoun):
    """Health of both services."""

    storage = async_unary(_requests.health.storage)
    context = async_unary(_requests.health.context)
