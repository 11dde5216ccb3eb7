"""Whose words a query asks for by their role: "what did the assistant say", "you told me that".

English only: the other languages mark who spoke in the ending of the verb.
"""

from __future__ import annotations

import re

from annals_storage.domain.events import Role

READ_CHARS = 500
"""Of a query; longer ones hold pasted texts."""
_SAY = (
    "say|said|tell|told|mention(?:ed)?|suggest(?:ed)?|recommend(?:ed)?|explain(?:ed)?|ask(?:ed)?"
    "|answer(?:ed)?|write|wrote|promise[d]?|advise[d]?|describe[d]?|list(?:ed)?"
)
_BETWEEN = r"(?:\s(?:ever|just|once|previously|already|have|had))?\s"
_ASSISTANT = re.compile(
    rf"\b(?:the (?:assistant|agent|chatbot|bot)|did you|you){_BETWEEN}(?:{_SAY})\b", re.IGNORECASE
)
_USER = re.compile(
    rf"\b(?:the (?:user|customer|human)|did i|i){_BETWEEN}(?:{_SAY})\b", re.IGNORECASE
)


def asked_role(query: str) -> Role | None:
    """Return the one role whose words are asked for; None for neither and for both."""
    text = query[:READ_CHARS]
    of_assistant, of_user = _ASSISTANT.search(text), _USER.search(text)
    if bool(of_assistant) == bool(of_user):
        return None
    return Role.ASSISTANT if of_assistant else Role.USER
