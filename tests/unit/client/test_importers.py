"""Files of conversations: every shape, every mistake, each conversation once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.context.v1 import format_service_pb2
from annals.storage.v1 import conversation_service_pb2, resources_pb2
from annals_client import user
from annals_client.importers import (
    Importer,
    ImportFileError,
    ImportOptions,
    dialogue,
    read_documents,
    reader,
)
from annals_client.importers.reader import JsonReader
from annals_common.errors import ResourceAlreadyExistsError

HELLO = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
OTHER = [{"role": "user", "content": "other"}]
DIALOGUE = {
    "sample_id": "conv-1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_2_date_time": "12:09 am on 13 September, 2023",
        "session_2": [
            {
                "speaker": "Bo",
                "dia_id": "D2:1",
                "text": "Look",
                "blip_caption": "a dog",
                "img_url": ["https://example.org/dog.jpg"],
            },
            {"speaker": "Ann", "dia_id": "D2:2", "text": "Cute"},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hi Bo"}],
        "session_3_date_time": "1:00 pm on 9 May, 2023",
    },
}


def write(tmp_path, text, name="chats.json"):
    path = tmp_path / name
    path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
    return path


class TestShapes:
    @pytest.mark.parametrize(
        ("text", "count"),
        [
            (json.dumps(HELLO), 1),
            (json.dumps({"messages": HELLO}), 1),
            (json.dumps([{"messages": HELLO}, {"messages": OTHER}]), 2),
            (json.dumps([HELLO, OTHER]), 2),
            (f"{json.dumps({'messages': HELLO})}\n{json.dumps({'messages': OTHER})}\n", 2),
            (f"{json.dumps(HELLO)}\n\n{json.dumps(OTHER)}\n", 2),
            ("\ufeff" + json.dumps(HELLO), 1),
            ("[]", 0),
            ("", 0),
        ],
    )
    def test_openai_messages(self, tmp_path, text, count):
        documents = list(read_documents(write(tmp_path, text)))

        assert len(documents) == count
        assert {document.format for document in documents} <= {"openai"}

    @pytest.mark.parametrize("text", [[DIALOGUE], DIALOGUE, DIALOGUE["conversation"]])
    def test_dialogues(self, tmp_path, text):
        (document,) = read_documents(write(tmp_path, text))

        assert document.format == "dialogue"

    @pytest.mark.parametrize(
        "text", ["{", '[{"role": "user"}', "[1 2]", "nonsense", "[" * 100_000, '{"a": 1}', "[3]"]
    )
    def test_what_is_neither_is_refused_with_its_file(self, tmp_path, text):
        with pytest.raises(ImportFileError, match=r"chats\.json"):
            list(read_documents(write(tmp_path, text)))

    def test_bytes_that_are_no_text_are_refused(self, tmp_path):
        path = tmp_path / "chats.json"
        path.write_bytes(b"\xff\xfe\x00[")

        with pytest.raises(ImportFileError, match=r"chats\.json"):
            list(read_documents(path))


class TestIdentity:
    def test_content_makes_the_id_and_the_file_does_not(self, tmp_path):
        (first,) = read_documents(write(tmp_path, HELLO, "a.json"))
        lines = f"{json.dumps(HELLO)}\n{json.dumps(OTHER)}"
        renamed, _added = read_documents(write(tmp_path, lines, "b.jsonl"))

        assert renamed.conversation_id == first.conversation_id

    def test_equal_conversations_of_a_file_are_told_apart(self, tmp_path):
        path = write(tmp_path, [HELLO, HELLO, OTHER])

        ids = [document.conversation_id for document in read_documents(path)]

        assert len(set(ids)) == 3
        assert ids == [document.conversation_id for document in read_documents(path)]


class TestReader:
    @given(
        st.lists(
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=10,
            )
        ),
        st.integers(1, 7),
    )
    def test_elements_are_what_json_says_however_the_file_is_cut(self, values, chars):
        text = json.dumps(values, ensure_ascii=False)

        class Dripping(StringIO):
            def read(self, size=-1):
                return super().read(min(size, chars))

        assert list(JsonReader(Dripping(text)).elements()) == values

    def test_only_what_is_needed_is_in_memory(self, monkeypatch):
        monkeypatch.setattr(reader, "CHUNK_CHARS", 64)
        text = json.dumps([{"n": number} for number in range(10_000)])
        own = JsonReader(StringIO(text))

        for _ in own.elements():
            assert len(own._text) < 1_000
        assert own.consumed_chars == len(text)


class TestDialogue:
    def test_turns_come_in_the_order_of_sessions(self, tmp_path):
        (document,) = read_documents(write(tmp_path, [DIALOGUE]))

        first, second, third = dialogue.events_of(document)

        assert (first.message.author_name, first.message.role) == ("Ann", resources_pb2.ROLE_USER)
        assert second.message.role == resources_pb2.ROLE_ASSISTANT
        assert second.message.content == "Look\n[shares a picture: a dog]"
        assert first.metadata["dia_id"] == "D1:1"
        assert (second.metadata["session"], second.metadata["dia_id"]) == (2, "D2:1")
        assert third.event_time.ToDatetime(UTC) == datetime(2023, 9, 13, 0, 9, 1, tzinfo=UTC)
        assert dialogue.title_of(document) == "Ann and Bo (conv-1)"

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            ({"session_1": [{"text": "no speaker"}]}, "session 1, turn 1: has no speaker"),
            ({"session_1_date_time": "yesterday"}, "'yesterday' is not like"),
        ],
    )
    def test_a_malformed_turn_is_named(self, tmp_path, change, says):
        broken = {**DIALOGUE, "conversation": {**DIALOGUE["conversation"], **change}}
        (document,) = read_documents(write(tmp_path, [broken]))

        with pytest.raises(ImportFileError, match=says):
            list(dialogue.events_of(document))


class TestImport:
    @pytest.fixture
    def load(self, server, client):
        def parse(request, _context):
            events = [user(item["content"]) for item in json.loads(request.payload)]
            return format_service_pb2.ParseResponse(events=events)

        def create(request, _context):
            return conversation_service_pb2.CreateConversationResponse(
                conversation=request.conversation
            )

        server.answer("Parse", parse)
        server.answer("CreateConversation", create)

        def run(path, **options):
            importer = Importer(client, ImportOptions(**options))
            importer.load(path)
            return importer.summary

        return run

    def test_messages_go_through_the_servers_own_parser(self, server, load, tmp_path):
        summary = load(write(tmp_path, [{"messages": HELLO, "task_id": 7}]))

        assert [json.loads(one.request.payload) for one in server.received["Parse"]] == [HELLO]
        created = server.received["CreateConversation"][0].request.conversation
        assert created.metadata["task_id"] == 7
        assert created.metadata["source"] == "chats.json"
        assert (summary.events, summary.replayed_events) == (2, 0)

    def test_the_same_file_again_stores_nothing(self, server, load, tmp_path):
        path = write(tmp_path, [DIALOGUE])
        first = load(path)

        server.script["CreateConversation"].clear()
        server.answer("CreateConversation", ResourceAlreadyExistsError("conversation", "c"))
        again = load(path, title="another title")

        assert again.conversation_ids == first.conversation_ids
        assert (again.events, again.replayed_events) == (3, 3)
        assert len(server.stored) == 3

    def test_a_new_copy_is_another_conversation(self, load, tmp_path):
        path = write(tmp_path, [DIALOGUE])

        assert load(path).conversation_ids != load(path, as_new=True).conversation_ids

    def test_a_conversation_without_messages_is_refused(self, load, tmp_path):
        with pytest.raises(ImportFileError, match="conversation 1: has no messages"):
            load(write(tmp_path, {"messages": []}))
