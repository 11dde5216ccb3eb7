"""Texts come apart along their structure: each example is cut by hand."""

from __future__ import annotations

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals_storage.domain.chunking import ChunkSpan, chunk_spans
from annals_storage.domain.structure import find_seams


def token_spans(text: str) -> list[tuple[int, int]]:
    """Tokens as a WordPiece model has them: words of at most four letters, all signs apart."""
    return [match.span() for match in re.finditer(r"[^\W_]{1,4}|[^\w\s]|_", text)]


def cut(text: str, max_tokens: int, overlap_tokens: int = 0, **options: int) -> list[str]:
    spans = chunk_spans(
        text, token_spans(text), max_tokens=max_tokens, overlap_tokens=overlap_tokens, **options
    )
    return [text[span.start : span.end] for span in spans]


class TestJson:
    def test_elements_stay_whole(self) -> None:
        rows = json.dumps([{"id": n, "ok": True} for n in range(4)])

        # 14 tokens a row with its comma
        assert cut(rows, 30) == [
            '[{"id": 0, "ok": true}, {"id": 1, "ok": true}, ',
            '{"id": 2, "ok": true}, {"id": 3, "ok": true}]',
        ]

    def test_the_outermost_come_first(self) -> None:
        text = "[[1, 2], [3, 4], [5, 6], [7, 8]]"

        # After ten tokens, [3 would be cut from its neighbour.
        assert cut(text, 10) == ["[[1, 2], ", "[3, 4], ", "[5, 6], ", "[7, 8]]"]

    def test_an_element_too_long_is_cut_between_its_own(self) -> None:
        text = '{"a": [1, 2, 3, 4, 5, 6, 7, 8], "b": 2}'

        assert cut(text, 12) == ['{"a": [1, 2, 3, ', "4, 5, 6, 7, 8], ", '"b": 2}']

    def test_commas_and_brackets_in_strings_are_words(self) -> None:
        text = '[{"k": "a, b] c"}, {"k": "d, {e, f"}]'

        assert cut(text, 20) == ['[{"k": "a, b] c"}, ', '{"k": "d, {e, f"}]']

    def test_lines_of_json_are_cut_between_values(self) -> None:
        text = '{"n": 1, "m": 2}\n{"n": 3, "m": 4}\n{"n": 5, "m": 6}\n'

        # After 34 tokens the last line's comma would be another place.
        assert cut(text, 34) == ['{"n": 1, "m": 2}\n{"n": 3, "m": 4}\n', '{"n": 5, "m": 6}']

    def test_a_long_string_is_cut_between_its_lines(self) -> None:
        text = json.dumps({"stdout": "one two three\nfour five. six six six\nseven eight nine ten"})

        assert cut(text, 14) == [
            '{"stdout": "one two three',
            "\\nfour five. six six six",
            '\\nseven eight nine ten"}',
        ]

    def test_whole_elements_are_repeated_and_no_halves(self) -> None:
        text = "[[1, 1], [2, 2], [3, 3], [4, 4], [5, 5], [6, 6]]"

        assert cut(text, 20, 7) == [
            "[[1, 1], [2, 2], [3, 3], ",
            "[3, 3], [4, 4], [5, 5], ",
            "[5, 5], [6, 6]]",
        ]

    def test_the_name_before_it_is_no_part_of_it(self) -> None:
        text = "find -> [[1, 1], [2, 2], [3, 3], [4, 4]]"

        assert find_seams(text).of_records is False
        assert cut(text, 19, words_start=8) == ["find -> [[1, 1], [2, 2], ", "[3, 3], [4, 4]]"]

    @pytest.mark.parametrize(
        "text", ["[1, 2", '["a', "[1}", "[1], 2", "[INFO] a, b", '[1] and "more"', "[1]]", "["]
    )
    def test_what_is_broken_is_text(self, text: str) -> None:
        assert find_seams(text).of_records is False


class TestTables:
    def test_rows_stay_whole(self) -> None:
        text = "id,name,city\n" + "".join(f"{n},Ann B. C,Rome\n" for n in range(4))

        # The heading has 5 tokens, a row 8.
        assert cut(text, 27) == [
            "id,name,city\n0,Ann B. C,Rome\n1,Ann B. C,Rome\n",
            "2,Ann B. C,Rome\n3,Ann B. C,Rome",
        ]

    def test_cells_of_several_lines_stay_in_their_row(self) -> None:
        text = 'id\ttext\tok\n1\t"one\ntwo"\ty\n2\t"one\ntwo"\ty\n3\t"x\nz"\ty\n'

        assert cut(text, 10) == [
            'id\ttext\tok\n1\t"one\ntwo"\ty\n',
            '2\t"one\ntwo"\ty\n',
            '3\t"x\nz"\ty',
        ]

    def test_rows_of_markdown_stay_whole_and_with_their_heading(self) -> None:
        text = "Prices.\n\n| a | b |\n|---|---|\n" + "| x. y | 2 |\n" * 4

        assert cut(text, 24)[0] == "Prices.\n\n| a | b |\n|---|---|\n| x. y | 2 |\n"

    def test_an_odd_quote_leaves_lines(self) -> None:
        assert find_seams('a,b,c\n1,2",3\n4,5,6\n7,8,9\n').of_records is False


class TestLogs:
    LOG = (
        "2026-01-02 10:00:00 ERROR failed\n"
        "Traceback (most recent call last):\n"
        "  File a.py, line 3\n"
        "ValueError: no\n"
        "2026-01-02 10:00:01 INFO up\n"
        "2026-01-02 10:00:02 INFO down\n"
    )

    def test_a_trace_stays_with_its_record(self) -> None:
        first = self.LOG[: self.LOG.index("2026-01-02 10:00:01")]

        assert cut(self.LOG, 48) == [first, self.LOG[len(first) :].rstrip()]

    def test_a_long_record_is_cut_between_lines_at_the_margin(self) -> None:
        text = self.LOG.replace("  File", "  at x\n  File")
        chunks = cut(text, 38)

        assert chunks[0].endswith("  File a.py, line 3\n")
        assert chunks[1].startswith("ValueError")

    @pytest.mark.parametrize(
        "stamp",
        [
            "[2026-01-02T10:00:00Z]",
            "10:00:00.123",
            "Jan  2 10:00:00 host",
            "I0102 10:00:00",
            "WARN:",
            '10.0.0.1 - - [02/Jan/2026:10:00:00 +0000] "GET /"',
        ],
    )
    def test_records_begin_with_a_stamp(self, stamp: str) -> None:
        seams = find_seams(f"{stamp} one\n  more\n" * 5)

        assert seams.of_records
        assert seams.ranks == [2, 0] * 4 + [2]

    def test_prose_with_a_time_in_it_is_no_log(self) -> None:
        text = "We met.\n" * 20 + "10:00:00 it began\n10:30:00 it ended\n11:00:00 we left\n"

        assert find_seams(text).of_records is False


class TestCode:
    CODE = "def a():\n    x = 1. + 2\n    return x\n\n\ndef b():\n    y = 3. + 4\n\n    return y\n"

    def test_a_block_is_kept_apart_from_the_prose(self) -> None:
        text = f"Look here. It works.\n```python\n{self.CODE}```\nThat was it. Good."
        chunks = cut(text, 44)

        assert chunks[0].startswith("Look here.")
        assert chunks[-1] == "That was it. Good."
        assert chunks[-2].endswith("```\n")

    def test_code_is_cut_at_the_margin_behind_an_empty_line(self) -> None:
        text = f"```python\n{self.CODE}```"

        assert cut(text, 34) == [
            "```python\ndef a():\n    x = 1. + 2\n    return x\n\n\n",
            "def b():\n    y = 3. + 4\n\n    return y\n```",
        ]

    def test_a_full_stop_in_code_ends_no_sentence(self) -> None:
        line = "x = a. b + c. d + e. f + g h + i j"

        assert cut(f"```\n{line}\n```", 12)[0] == "```\nx = a. b + c. d "
        assert cut(line, 9)[0] == "x = a. b + c. "

    def test_lines_are_repeated_whole(self) -> None:
        lines = "".join(f"call({n}, {n})\n" for n in range(8))
        chunks = cut(f"```\n{lines}```", 24, 8)

        assert chunks[1].splitlines()[0] == chunks[0].splitlines()[-1]

    def test_a_block_without_an_end_goes_on(self) -> None:
        assert find_seams("a\n```\nb\n\nc. d").code == [(2, 13)]

    def test_a_longer_fence_holds_shorter_ones(self) -> None:
        text = "````\na\n```\nb\n````\nc"

        assert find_seams(text).code == [(0, text.index("c"))]

    def test_a_comment_in_code_is_no_heading(self) -> None:
        text = "```\na\n# b\n```\n# c\nd"
        seams = find_seams(text)
        rank = dict(zip(seams.positions, seams.ranks, strict=True))

        assert rank[text.index("# c")] == 0 < rank[text.index("# b")]


def test_a_heading_begins_a_chunk() -> None:
    text = "one two\n\nthree four\n# Next\nfive\n\nsix seven eight nine"

    assert cut(text, 9)[0] == "one two\n\nthree four\n"


def test_no_more_chunks_are_cut_than_asked() -> None:
    text = "word " * 100

    assert len(cut(text, 10)) == 10
    assert cut(text, 10, max_chunks=3) == cut(text, 10)[:3]


PARTS = st.lists(
    st.sampled_from(
        ['{"a": ', "[", "]", "}", ", ", '"', "\\", "\\n", "1", "```\n", "~~~", "# ", "\n", "\n\n",
         "  ", "\t", "word. ", "2026-01-02 10:00:00 ", "INFO ", "a,b,c\n", "| a | b |\n", "---\n",
         "字", "😀\u200d😀", "\u202e", "\\ud800", "\\u0000", "\r\n", "'"]
    ),
    max_size=120,
).map("".join)  # fmt: skip


@given(text=PARTS, max_tokens=st.integers(1, 20), data=st.data())
def test_any_mixture_is_covered_exactly(text: str, max_tokens: int, data: st.DataObject) -> None:
    tokens = token_spans(text)
    overlap_tokens = data.draw(st.integers(0, max_tokens // 2))
    sizes = {"max_tokens": max_tokens, "overlap_tokens": overlap_tokens}
    chunks = chunk_spans(text, tokens, **sizes)

    assert chunks == chunk_spans(text, tokens, **sizes)
    assert bool(chunks) == bool(tokens)
    for chunk in chunks:
        assert chunk.token_count == sum(chunk.start <= s and e <= chunk.end for s, e in tokens)
        assert 1 <= chunk.token_count <= max_tokens
    check_cover(text, chunks, max_tokens)
    for left, right in pairwise(chunks):
        shared = sum(right.start <= s and e <= left.end for s, e in tokens)
        assert shared <= overlap_tokens


def check_cover(text: str, chunks: list[ChunkSpan], max_tokens: int) -> None:
    if not chunks:
        return
    assert chunks[0].start == len(text) - len(text.lstrip())
    assert chunks[-1].end == len(text.rstrip())
    for left, right in pairwise(chunks):
        assert left.start < right.start <= left.end < right.end
        assert 2 * left.token_count >= max_tokens


@given(text=PARTS)
def test_seams_ascend_inside_the_text(text: str) -> None:
    seams = find_seams(text)

    assert all(left < right for left, right in pairwise(seams.positions))
    assert all(0 <= at <= len(text) for at in seams.positions)
    assert all(start < end for start, end in seams.code)
    assert all(left[1] <= right[0] for left, right in pairwise(seams.code))


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "[" * 50_000 + "]" * 50_000, '"' * 100_000, '["\\' * 100_000, "[1," * 100_000,
     "\n" * 200_000 + "a", "a\n" * 100_000, "`" * 100_000, "```\n" * 100_000, "a," * 100_000,
     "字" * 100_000, ". " * 100_000, "'\\'" * 100_000, "[{" + '"a":1,' * 100_000],
    ids=lambda text: f"{text[:4]!r}",
)  # fmt: skip
def test_every_long_text_has_chunks(text: str) -> None:
    """Ends at all: what is not linear would take hours."""
    tokens = token_spans(text)

    chunks = chunk_spans(text, tokens)

    assert sum(chunk.token_count for chunk in chunks) >= len(tokens)
