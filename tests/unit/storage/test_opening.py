"""A server waits for what it needs; a command that an operator waits for does not."""

from __future__ import annotations

from typing import Any, cast

import pytest

from annals_common.errors import DependencyUnavailableError
from annals_storage import app_mirrors


class Absent:
    """Answers the third time it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def open(self) -> None:
        self.asked += 1
        if self.asked < 3:
            raise DependencyUnavailableError("postgresql")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app_mirrors, "RETRY_SECONDS", 0.0)


async def test_it_is_waited_for() -> None:
    absent = Absent()

    await app_mirrors.open_patiently(cast("Any", absent), None)

    assert absent.asked == 3


async def test_attempts_are_counted() -> None:
    absent = Absent()

    with pytest.raises(DependencyUnavailableError):
        await app_mirrors.open_patiently(cast("Any", absent), 2)

    assert absent.asked == 2
