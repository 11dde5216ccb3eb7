"""When a key ends."""

from __future__ import annotations

from datetime import datetime

from google.protobuf.timestamp_pb2 import Timestamp

from annals_common.errors import FieldInvalidError
from annals_common.validation import timestamp
from annals_storage.commands.remembering import utc_now


def future_time(value: Timestamp | None, field: str) -> datetime | None:
    """Return the moment; None for an absent one. Raises FieldInvalidError for one that is past."""
    if value is None:
        return None
    moment = timestamp(value, field)
    if moment <= utc_now():
        raise FieldInvalidError(field, "must be in the future", moment.isoformat())
    return moment
