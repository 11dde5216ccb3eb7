"""Builds the system prompt of one conversation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from annals_common.errors import TemplateInvalidError
from annals_common.templates import TemplateError
from annals_context.domain.counting import Counter
from annals_context.domain.model import CounterInfo
from annals_context.domain.system_prompt import SystemPrompt, build_system_prompt
from annals_context.ports import AgentFacts, Caller, ConversationFacts, Storage


@dataclass(frozen=True, slots=True)
class BuiltPrompt:
    """The prompt of a conversation's agent, and its tokens."""

    prompt: SystemPrompt
    agent_id: str
    total_tokens: int
    counter: CounterInfo


class BuildSystemPrompt:
    """Puts what the agent wants of the client's context below its prompt."""

    def __init__(self, storage: Storage, counter_for: Callable[[str], Counter]) -> None:
        self._storage, self._counter_for = storage, counter_for

    async def __call__(self, caller: Caller, conversation_id: str, model: str) -> BuiltPrompt:
        """Raises TemplateInvalidError and what storage raises."""
        conversation, agent = await conversation_and_agent(self._storage, caller, conversation_id)
        counter = self._counter_for(model or agent.model)
        prompt = prompt_of(conversation, agent)
        info = CounterInfo(counter.encoding, counter.exact, 0)
        return BuiltPrompt(prompt, conversation.agent_id, counter.count(prompt.text), info)


async def conversation_and_agent(
    storage: Storage, caller: Caller, conversation_id: str
) -> tuple[ConversationFacts, AgentFacts]:
    """Return a conversation and its agent; one that says nothing when there is none."""
    conversation = await storage.get_conversation(caller, conversation_id)
    if not conversation.agent_id:
        return conversation, AgentFacts()
    return conversation, await storage.get_agent(caller, conversation.agent_id)


def prompt_of(conversation: ConversationFacts, agent: AgentFacts) -> SystemPrompt:
    """Return the system prompt of a conversation. Raises TemplateInvalidError."""
    try:
        return build_system_prompt(agent.system_prompt, agent.injection, conversation.client)
    except TemplateError as error:
        raise TemplateInvalidError(conversation.agent_id, str(error)) from error
