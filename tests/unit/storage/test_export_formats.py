"""Lines, transcripts and tables of every shape of words."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_storage.domain import transfer_lines
from annals_storage.domain.events import Event, EventBody, EventType, Role, Usage
from annals_storage.domain.export_csv import COLUMNS, CsvWriter
from annals_storage.domain.export_json import JsonWriter
from annals_storage.domain.export_markdown import MarkdownWriter, fenced, inline, quoted
from annals_storage.domain.transfer import Digest, dumped, encode, event_values, former_values, read
from annals_storage.domain.transfer_fields import LineInvalidError
from annals_storage.domain.transfer_lines import LINES, Kind
from annals_storage.domain.transfer_times import written_time
from annals_storage.handlers import conversation_input, event_input, memory_input, relationships
from annals_storage.handlers.conversation_status import MAX_SUMMARY_CHARS

ID = UUID("0199c7a2-7d4e-7b1e-9c55-000000000001")
NOW = datetime(2025, 10, 24, 9, 30, tzinfo=UTC)
TEXT = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=60)
NASTY = st.one_of(
    TEXT,
    st.text("`~#<>![]():-=\n\r \t|*&\\/ax\u2028", max_size=80),
    st.sampled_from(["```\n# x", "<!--", "\r# x", "[a]: b", "~~~\n", "\\<script>", "> ```\n"]),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


def event(**fields: Any) -> Event:
    values: dict[str, Any] = {
        "event_id": ID, "conversation_id": ID, "seq": 1, "token_count": 0, "event_time": NOW,
        "created_at": NOW, "body": EventBody(EventType.MESSAGE, role=Role.USER, content="hi"),
    }  # fmt: skip
    return Event(**{**values, **fields})


def said(content: str, **fields: Any) -> Event:
    return event(body=EventBody(EventType.MESSAGE, role=Role.USER, content=content, **fields))


def conversation(**fields: Any) -> dict[str, Any]:
    values: dict[str, Any] = {
        "conversation_id": str(ID), "title": "t", "status": "active", "end_summary": "",
        "created_at": written_time(NOW),
    }  # fmt: skip
    return {**values, **fields}


def blocks(text: str) -> tuple[list[str], list[str]]:
    """(lines outside, lines quoted) as CommonMark sees them."""
    outside: list[str] = []
    within: list[str] = []
    fence = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if len(ticks) >= len(fence) and line.strip(" \t") == ticks else fence
        elif len(ticks) >= 3:
            fence = ticks
        else:
            (within if line.startswith(">") else outside).append(line)
    assert not fence
    return outside, within


class TestMarkdown:
    @given(NASTY, NASTY, NASTY, NASTY)
    def test_nothing_leaves_its_place(self, title: str, name: str, words: str, code: str) -> None:
        writer = MarkdownWriter()
        call = EventBody(EventType.TOOL_CALL, tool_call_id="c", tool_name=name, tool_input=code)
        text = (
            writer.begin(conversation(title=title, end_summary=words), 1)
            + writer.event(said(words, author_name=name))
            + writer.event(event(body=call, seq=2))
            + writer.event(said("last", author_name="Zoe"))
            + writer.memory({"content": words, "tags": [name], "updated_at": written_time(NOW)})
            + writer.end()
        )

        outside, within = blocks(text)

        assert sum(line.startswith("# ") for line in outside) == 2
        assert sum(line.startswith("## ") for line in outside) == 4
        assert not [line for line in outside if line and line[0] not in "#-"]
        assert "> last" in within
        assert not [line for line in within if _html(line)]

    @given(NASTY)
    def test_a_fence_is_longer_than_any_inside(self, text: str) -> None:
        outside, within = blocks(fenced(text, "text") + "after")

        assert (outside, within) == (["after"], [])

    @given(NASTY)
    def test_names_stay_on_their_line(self, text: str) -> None:
        assert len(inline(text).splitlines()) <= 1

    @pytest.mark.parametrize(
        "text", ["[" * 200_000, "[\n" * 100_000, "\n" * 300_000, "<" * 300_000]
    )
    def test_long_words_take_no_longer_than_their_length(self, text: str) -> None:
        started = datetime.now(UTC)

        quoted(text)

        assert datetime.now(UTC) - started < timedelta(seconds=5)


def _html(line: str) -> bool:
    return any(f"<{char}" in line for char in "abcdefghijklmnopqrstuvwxyz/!?")


class TestCsv:
    @given(NASTY | st.text("=+-@\t\r\n ',\"x", max_size=8), TEXT)
    def test_cells_are_read_back_and_none_calculates(self, words: str, name: str) -> None:
        writer = CsvWriter()
        text = writer.begin(conversation(), 1) + writer.event(said(words, author_name=name))

        head, row = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""), strict=True)

        assert tuple(head) == COLUMNS
        found = dict(zip(head, row, strict=True))
        assert found["content"] in {words, f"'{words}"}
        assert all(cell[:1] not in set("=+-@\t\r\n") for cell in row if cell)

    def test_what_an_event_has_is_in_its_cells(self) -> None:
        one = event(usage=Usage(1, 2, 3), metadata={"b": 1, "a": "ä"}, turn_id="t")
        text = CsvWriter().begin(conversation(), 1) + CsvWriter().event(one)

        [row] = csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline=""))

        assert (row["input_tokens"], row["metadata"], row["turn_id"], row["is_error"]) == (
            "1", '{"a": "ä", "b": 1}', "t", "false",
        )  # fmt: skip


class TestJson:
    @pytest.mark.parametrize("events", [0, 1, 3])
    @pytest.mark.parametrize("memories", [0, 1, 3])
    def test_is_one_document_whatever_it_holds(self, events: int, memories: int) -> None:
        writer = JsonWriter()
        pieces = [writer.begin(conversation(creation_hash="00", next_seq=9), 1)]
        pieces += [writer.event(said(str(n))) for n in range(events)]
        pieces += [writer.memory({"content": str(n), "embedding": "x"}) for n in range(memories)]

        document = json.loads("".join([*pieces, writer.end()]))

        assert list(document) == ["conversation", "branch", "events", "memories"]
        assert [e["content"] for e in document["events"]] == [str(n) for n in range(events)]
        assert document["memories"] == [{"content": str(n)} for n in range(memories)]
        assert not {"creation_hash", "next_seq"} & set(document["conversation"])


class TestLines:
    @given(NASTY, JSON)
    def test_an_event_is_read_as_it_was_written(self, words: str, value: Any) -> None:
        values = event_values(event(
            body=EventBody(EventType.MESSAGE, role=Role.USER, content=words),
            metadata={"value": value}, usage=Usage(1),
        ))  # fmt: skip
        written = encode(Kind.EVENT, values)

        line = read(json.loads(written), 1)

        assert line.encoded() == written
        assert "\n" not in written
        assert "\r" not in written

    @given(JSON)
    def test_free_numbers_have_one_form(self, value: Any) -> None:
        """PostgreSQL reads 1e+22 as a whole number of 23 digits."""
        as_stored = json.loads(json.dumps(value), parse_float=_as_postgres)
        row = {"metadata": {"value": value}}
        stored = {"metadata": {"value": as_stored}}

        assert encode(Kind.MEMORY, dumped(Kind.MEMORY, row)) == encode(
            Kind.MEMORY, dumped(Kind.MEMORY, stored)
        )

    def test_members_stand_in_one_order(self) -> None:
        values = event_values(event(metadata={"b": {"d": 1, "c": 2}, "a": 1}))
        backwards = dict(reversed(list(values.items())))

        assert encode(Kind.EVENT, backwards) == encode(Kind.EVENT, values)
        assert '"metadata":{"a":1,"b":{"c":2,"d":1}}' in encode(Kind.EVENT, values)

    def test_times_have_one_form_whatever_the_zone(self) -> None:
        elsewhere = NOW.astimezone(timezone(timedelta(hours=5, minutes=45)))

        assert written_time(elsewhere) == written_time(NOW) == "2025-10-24T09:30:00.000000Z"

    @pytest.mark.parametrize(
        "written", ["2025-10-24T09:30:00+00:00", "2025-10-24T09:30:00.1+00:00",
                    "2025-10-24T09:30:00.123456+00:00"],
    )  # fmt: skip
    def test_times_of_former_versions_are_read_as_postgresql_writes_them(
        self, written: str
    ) -> None:
        values = former_values({"created_at": written, "conversation_id": str(ID)})

        assert values == {"created_at": written_time(datetime.fromisoformat(written))}

    def test_the_end_counts_and_hashes(self) -> None:
        one, other = Digest(), Digest()
        for digest in (one, other):
            digest.take(Kind.HEADER, "{}")
        other.take(Kind.EVENT, "{}")

        assert json.loads(other.end())["lines"] == {"event": 1, "header": 1}
        assert one.hexdigest() != other.hexdigest()

    @pytest.mark.parametrize("value", [True, 1.0, "1", None, -1, 2**62 + 1, [], math.nan])
    def test_a_seq_is_a_whole_number(self, value: Any) -> None:
        values = {**event_values(event()), "line": "event", "seq": value}

        with pytest.raises(LineInvalidError, match="seq must be a whole number"):
            read(values, 1)


def _as_postgres(digits: str) -> Any:
    value = float(digits)
    return int(value) if value.is_integer() and "e+" in digits else value


def test_the_limits_are_those_of_the_api() -> None:
    assert transfer_lines.MAX_CONTENT_BYTES == event_input.MAX_CONTENT_BYTES
    assert transfer_lines.MAX_ERROR_BYTES == event_input.MAX_ERROR_BYTES
    assert transfer_lines.MAX_METADATA_BYTES == event_input.MAX_METADATA_BYTES
    assert transfer_lines.MAX_ID_CHARS == event_input.MAX_ID_CHARS
    assert transfer_lines.MAX_NAME_CHARS == event_input.MAX_NAME_CHARS
    assert transfer_lines.MAX_REQUEST_EVENTS == event_input.MAX_EVENTS
    assert transfer_lines.MAX_TITLE_CHARS == conversation_input.MAX_TITLE_CHARS
    assert transfer_lines.CLIENT_CONTEXT_CHARS == conversation_input.CLIENT_CONTEXT_CHARS
    assert transfer_lines.MAX_SUMMARY_CHARS == MAX_SUMMARY_CHARS
    assert transfer_lines.MAX_MEMORY_CHARS == memory_input.MAX_CONTENT_CHARS
    assert transfer_lines.MAX_TAGS == memory_input.MAX_TAGS
    assert transfer_lines.MAX_TAG_CHARS == memory_input.MAX_TAG_CHARS
    assert transfer_lines.MAX_URI_CHARS == relationships.MAX_URI_CHARS
    assert transfer_lines.MAX_MEDIA_TYPE_CHARS == relationships.MAX_MEDIA_TYPE_CHARS


def test_every_kind_has_its_members() -> None:
    assert set(LINES) == set(Kind)
