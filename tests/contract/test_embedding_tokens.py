"""Token counts are tiktoken's own, offline, for any text."""

import multiprocessing
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals_common import tokenizers
from annals_common.tokenizers import (
    EncodingUnavailableError,
    count_tokens,
    encode_text,
    load_encoding,
)
from annals_storage.embedding.tokens import TiktokenCounter

ENCODINGS = ("o200k_base", "cl100k_base")
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]))
BLANKS = st.text(st.sampled_from("  \t\u3000\r\n\x1c!/a1数"), max_size=60)


@settings(deadline=None)  # the first example loads the encoding
@given(ANY_TEXT)
def test_counts_are_those_of_tiktoken(text):
    expected = len(load_encoding("o200k_base").encode(text, disallowed_special=()))
    assert TiktokenCounter().count([text]) == [expected]


def test_counts_come_in_order():
    assert TiktokenCounter().count(["", "hello world", "数据"]) == [0, 2, 1]


def test_names_of_special_tokens_are_ordinary_text():
    assert TiktokenCounter().count(["<|endoftext|>"])[0] > 1


@pytest.mark.parametrize("name", ENCODINGS)
@settings(deadline=None)
@given(text=BLANKS)
def test_long_blank_runs_split_exactly_where_tiktoken_splits(name, text):
    encoding = load_encoding(name)
    assert with_short_limit(encoding, text) == encoding.encode_ordinary(text)


def with_short_limit(encoding, text):
    """Encode as if runs of three blanks were already too long for tiktoken."""
    pattern = tokenizers._LONG_BLANK_RUN.pattern.replace(str(tokenizers.MAX_BLANK_RUN_CHARS), "3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokenizers, "_LONG_BLANK_RUN", tokenizers.re.compile(pattern))
        return tokenizers._encode_long(encoding, text)


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize(
    "text",
    [" " * 1_000_000, "a" + " " * 1_000_000 + "b", " \t" * 500_000 + "x", "\n" * 1_000_000 + "x"],
    ids=["blanks", "blanks-between", "mixed", "lines"],
)
def test_a_megabyte_of_blanks_is_counted(name, text):
    encoding = load_encoding(name)
    assert encoding.decode(encode_text(encoding, text)) == text


@pytest.mark.parametrize("char", ["a", "😀", "!", "1"])
def test_a_long_run_of_one_character_is_counted(char):
    encoding = load_encoding("o200k_base")
    text = char * 250_000
    assert encoding.decode(encode_text(encoding, text)) == text


def test_threads_share_one_encoding():
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(load_encoding, ENCODINGS * 8))
    assert len({id(encoding) for encoding in found}) == 2


def test_a_new_process_counts_the_same():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(count_in_process, ("hello world",)) == 2


def count_in_process(text):
    return count_tokens(load_encoding("o200k_base"), text)


def test_an_unknown_encoding_is_refused():
    with pytest.raises(EncodingUnavailableError, match="o200k_base"):
        load_encoding("p50k_base")


def test_a_damaged_file_is_passed_over_and_left_alone(tmp_path, monkeypatch):
    intact = tokenizers._directory_of("o200k_base")
    name = tokenizers._FILES["o200k_base"][0]
    damaged = Path(shutil.copy(intact / name, tmp_path / name))
    damaged.write_bytes(damaged.read_bytes()[:-1])
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    assert tokenizers._directory_of("o200k_base") != tmp_path
    assert damaged.exists()
