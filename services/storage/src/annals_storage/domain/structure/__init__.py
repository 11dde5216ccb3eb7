"""What a text is made of, and where it comes apart."""

from __future__ import annotations

from annals_storage.domain.structure.data import data_seams
from annals_storage.domain.structure.prose import prose_seams
from annals_storage.domain.structure.records import log_seams, table_seams
from annals_storage.domain.structure.seams import Seams


def find_seams(text: str, start: int = 0) -> Seams:
    """Return where the text comes apart from character `start` on, by what it looks like.

    JSON, logs and tables come apart between their records, everything else as Markdown. Takes
    time and memory linear in the text and never fails: what is broken counts as prose.
    """
    for look in (data_seams, log_seams, table_seams):
        if (seams := look(text, start)) is not None:
            return seams
    return prose_seams(text, start)


__all__ = ["Seams", "find_seams"]
