"""What reading a provider's payload gives."""

from __future__ import annotations

from dataclasses import dataclass

from annals_context.domain.events import Event
from annals_context.domain.model import Repair


@dataclass(frozen=True, slots=True)
class Parsed:
    """Events in order, not stored yet, and what had to be mended."""

    events: tuple[Event, ...]
    repairs: tuple[Repair, ...]
