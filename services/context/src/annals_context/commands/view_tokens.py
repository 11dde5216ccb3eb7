"""Views as clients carry them: what a step needs to go on from a context."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import TypeAdapter, ValidationError

from annals_common.errors import NotConfiguredError, ViewExpiredError, ViewInvalidError
from annals_context.commands.preparing import Prepare
from annals_context.domain.model import DetailLevel
from annals_context.domain.sealing import Seal, SealBrokenError
from annals_context.ports import Identity

MAX_VIEW_CHARS = 65_536
VIEW_KEY_SETTING = "ANNALS_CONTEXT_VIEW_KEY"


@dataclass(frozen=True, slots=True)
class View:
    """A context that was prepared, without its words.

    `request` made it, its branch resolved and its pins included; `own_query` is the query it was
    first made with. `shown` is what its items showed, by handle. `expires_at`: Unix seconds.
    """

    request: Prepare
    own_query: str
    conversation_version: int
    shown: Mapping[str, DetailLevel]
    expires_at: int = 0


_VIEWS = TypeAdapter(View)


class ViewTokens:
    """Seals views for their owners, and opens them."""

    def __init__(
        self,
        key: bytes | None,
        *,
        lifetime_seconds: int,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._seal = Seal(key) if key else None
        self._lifetime_seconds, self._now = lifetime_seconds, now

    def issue(self, owner: Identity, view: View) -> str:
        """Return the token of a view, which begins to age now; empty without a key, and when it
        would be too long.
        """
        if self._seal is None:
            return ""
        fields = _VIEWS.dump_python(view, mode="json")
        fields["expires_at"] = int(self._now()) + self._lifetime_seconds
        content = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
        token = self._seal.seal(content, owner=_owner_bytes(owner))
        return token if len(token) <= MAX_VIEW_CHARS else ""

    def read(self, owner: Identity, token: str) -> View:
        """Return the view. Raises NotConfiguredError, ViewInvalidError, ViewExpiredError."""
        if self._seal is None:
            raise NotConfiguredError(VIEW_KEY_SETTING)
        try:
            content = self._seal.open(token, owner=_owner_bytes(owner))
            view = _VIEWS.validate_json(content)
        except (SealBrokenError, ValidationError) as error:
            # A view of a version whose requests were others is no longer one.
            raise ViewInvalidError from error
        if view.expires_at <= self._now():
            raise ViewExpiredError(datetime.fromtimestamp(view.expires_at, UTC).isoformat())
        return view


def _owner_bytes(owner: Identity) -> bytes:
    parts = (owner.tenant_id, owner.agent_id, owner.user_id, owner.session_id)
    return json.dumps(parts).encode()
