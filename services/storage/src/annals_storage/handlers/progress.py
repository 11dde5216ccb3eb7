"""Progress of a bulk stream."""

from __future__ import annotations

from dataclasses import dataclass

from annals.storage.v1 import event_service_pb2 as pb
from annals_storage.domain.appending import AppendResult


@dataclass(slots=True)
class StreamProgress:
    """What of a stream is durable."""

    batches: int = 0
    events: int = 0
    replayed: int = 0

    def acknowledge(self, result: AppendResult) -> pb.StreamAppendEventsResponse:
        """Count one durable batch and say so."""
        self.batches += 1
        self.events += len(result.events)
        self.replayed += sum(event.replayed for event in result.events)
        return pb.StreamAppendEventsResponse(
            acknowledged_batches=self.batches,
            acknowledged_events=self.events,
            replayed_events=self.replayed,
            conversation_id=str(result.conversation_id),
            last_seq=result.last_seq,
        )
