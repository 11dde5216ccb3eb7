"""Wires what prepares contexts and looks further into conversations."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import grpc.aio

from annals_common.code_version import code_version
from annals_context.clients.context_bodies import Bodies
from annals_context.clients.counters import count_in, counter_for
from annals_context.clients.shared_contexts import GrpcSharedContexts
from annals_context.clients.storage import GrpcStorage
from annals_context.commands.across import GetContextFromAllConversations
from annals_context.commands.cache_options import CacheOptions
from annals_context.commands.cached_preparing import CachedContexts
from annals_context.commands.drilling import DrillDown
from annals_context.commands.fallbacks import TolerantStorage, WithFallbacks
from annals_context.commands.preparing import PrepareContext, Prepared
from annals_context.commands.prompting import BuildSystemPrompt
from annals_context.commands.retrieving import Retrieval
from annals_context.commands.snippets import GetRelevantSnippets
from annals_context.commands.view_tokens import ViewTokens
from annals_context.commands.whole_events import SearchAndRetrieve
from annals_context.handlers.context import ContextHandler
from annals_context.handlers.prompts import PromptsHandler
from annals_context.handlers.retrieval import RetrievalHandler
from annals_context.handlers.views import ViewsHandler
from annals_context.ports import Summaries, Topics
from annals_context.settings import CacheSettings, ContextSettings


@dataclass(frozen=True, slots=True)
class BackgroundPorts:
    """What contexts show of what was prepared in the background."""

    topics: Topics
    summaries: Summaries


def context_handlers(
    channel: grpc.aio.Channel,
    storage: GrpcStorage,
    background: BackgroundPorts,
    settings: ContextSettings,
    stack: AsyncExitStack,
) -> Iterable[object]:
    """Return handlers of ContextService; `stack` closes what they leave open."""
    prepare = WithFallbacks(
        PrepareContext(
            TolerantStorage(storage), counter_for, background.topics, background.summaries
        )
    )
    contexts = _cached(channel, prepare, settings.cache)
    stack.push_async_callback(contexts.close)
    tokens = ViewTokens(settings.view_key_bytes, lifetime_seconds=settings.view_lifetime_seconds)
    drill = DrillDown(storage, prepare, tokens, background.summaries)
    retrieval = Retrieval(storage, counter_for)
    yield ContextHandler(contexts, drill)
    yield PromptsHandler(BuildSystemPrompt(storage, counter_for))
    yield ViewsHandler(drill)
    yield RetrievalHandler(
        GetRelevantSnippets(retrieval),
        SearchAndRetrieve(retrieval),
        GetContextFromAllConversations(retrieval),
    )


def _cached(
    channel: grpc.aio.Channel, prepare: WithFallbacks, settings: CacheSettings
) -> CachedContexts:
    return CachedContexts(
        prepare,
        GrpcSharedContexts(channel),
        Bodies(Prepared),
        count_in,
        CacheOptions(**dict(settings), code_version=code_version("annals_context")),
    )
