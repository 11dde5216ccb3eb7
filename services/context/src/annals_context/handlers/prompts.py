"""ContextService: system prompts."""

from __future__ import annotations

from typing import Any

from annals.context.v1 import context_service_pb2 as pb
from annals_common.validation import require_uuid, text
from annals_context.commands.prompting import BuildSystemPrompt
from annals_context.handlers.access import current_caller, refuse_publishable
from annals_context.handlers.context import MAX_MODEL_CHARS
from annals_context.handlers.output import built_prompt_response


class PromptsHandler:
    """Translates; the use case is commands.prompting."""

    def __init__(self, build_prompt: BuildSystemPrompt) -> None:
        self._build_prompt = build_prompt

    async def BuildSystemPrompt(
        self, request: pb.BuildSystemPromptRequest, context: Any
    ) -> pb.BuildSystemPromptResponse:
        refuse_publishable("BuildSystemPrompt")
        conversation_id = str(require_uuid(request.conversation_id, "conversation_id"))
        model = text(request.model, "model", max_chars=MAX_MODEL_CHARS)
        built = await self._build_prompt(current_caller(context), conversation_id, model)
        return built_prompt_response(built)
