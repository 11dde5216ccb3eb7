"""Messages and questions made up from parts; the same seed makes the same texts."""

from __future__ import annotations

import random
from collections.abc import Iterator

MESSAGE_CHARS = 124
_WHO = (
    "Marta", "the warehouse", "our accountant", "the new supplier", "my neighbour", "Tomás",
    "the shipping team", "a customer from Porto", "the design agency", "Ines", "the bank",
    "the landlord", "our lawyer", "the support desk", "Rui", "the garage", "the clinic",
    "the night shift", "the travel agent", "Beatriz", "the auditor", "the school", "the dentist",
)  # fmt: skip
_DID = (
    "confirmed", "cancelled", "postponed", "forgot about", "asked for", "sent", "lost", "repaired",
    "rejected", "approved", "misread", "paid for", "picked up", "returned", "translated",
    "measured", "photographed", "replaced", "doubled", "announced", "reserved", "inspected",
)  # fmt: skip
_WHAT = (
    "the invoice", "a blue bicycle", "the ferry tickets", "two oak tables", "the contract",
    "a birthday cake", "the server backup", "the tax return", "three boxes of tiles",
    "the brake pads", "a vaccination record", "the router", "the guest list", "a piano lesson",
    "the roof insulation", "the passport photo", "a crate of oranges", "the quarterly report",
    "the kitchen sink", "an export licence", "the marathon entry", "a pair of glasses",
)  # fmt: skip
_WHEN = (
    "last Tuesday", "in early March", "right after lunch", "before the holidays", "at dawn",
    "two weeks ago", "on the first of June", "during the storm", "at half past six", "yesterday",
    "in the third quarter", "over the weekend", "just before closing", "in late autumn",
)  # fmt: skip
_AND = (
    "and it has to be settled before the end of the month",
    "because nobody had read the small print",
    "which came as a relief to everyone involved",
    "so please remind me to write back to them",
    "although the price had gone up again",
    "and I still do not know whom to ask about it",
    "but the second attempt went much better",
)


def messages(number: int, *, seed: int = 1) -> Iterator[str]:
    """Yield distinct messages of exactly `MESSAGE_CHARS` characters."""
    draw = random.Random(seed)
    for index in range(number):
        parts = (draw.choice(_WHO), draw.choice(_DID), draw.choice(_WHAT), draw.choice(_WHEN))
        text = f"{' '.join(parts)}, {draw.choice(_AND)}, case {index}"
        yield f"{text:.<{MESSAGE_CHARS}}"[:MESSAGE_CHARS]


def questions(number: int, *, seed: int = 2) -> Iterator[str]:
    """Yield distinct questions about such messages."""
    draw = random.Random(seed)
    for index in range(number):
        who, what = draw.choice(_WHO), draw.choice(_WHAT)
        yield f"When was it that {who} {draw.choice(_DID)} {what}, file {index}?"
