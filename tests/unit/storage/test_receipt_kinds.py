"""Receipts from before something was counted go on to verify."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from annals_storage.domain.erasure import LATER_KINDS, RECEIPT_KINDS, ErasureScope, Receipt

MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
RECEIPT = Receipt(UUID(int=1), ErasureScope.CONVERSATION, "s", MOMENT, {"events": 2})


def test_a_kind_that_was_not_counted_is_not_in_the_digest() -> None:
    assert set(RECEIPT.full_counts()) == set(RECEIPT_KINDS)
    assert RECEIPT.completed(MOMENT).digest == (
        "1f981108d5c73393ad6b4036d30824dc7d2310845acf91f621cd1f520b97b5b2"
    )


def test_a_later_kind_that_was_counted_is_in_the_digest() -> None:
    counted = replace(RECEIPT, counts={"events": 2, LATER_KINDS[0]: 0})

    assert LATER_KINDS[0] in counted.full_counts()
    assert counted.completed(MOMENT).digest != RECEIPT.completed(MOMENT).digest
