# ruff: noqa: F811 (fixtures are imported by name)
"""What every caller may expect of the embedder, shown on the default model."""

import asyncio
import multiprocessing
import shutil
import socket

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.contract.embedding_models import minilm, minilm_dir  # noqa: F401

from annals_storage.domain.chunking import chunk_spans
from annals_storage.domain.late_interaction import MAX_TOKENS
from annals_storage.embedding import minilm as minilm_module
from annals_storage.embedding.fastembed_model import FastembedEmbedder, batches
from annals_storage.embedding.loading import load_embedder
from annals_storage.embedding.minilm import (
    MODEL_NAME,
    ModelUnavailableError,
    ensure_minilm,
    read_verified_weights,
    source_directory,
)
from annals_storage.embedding.spans import PIECE_CHARS

ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300)


def cosines(left, right):
    return np.sum(left * right, axis=1)


async def test_vectors_are_normalised_and_in_order(minilm):
    texts = ["a much longer sentence about databases and their migrations " * 5, "short", "", "ü"]
    together = await minilm.embed(texts)
    alone = np.concatenate([await minilm.embed([text]) for text in texts])
    assert together.dtype == np.float32
    assert together.shape == (4, minilm.dimensions)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    assert cosines(together, alone).min() > 0.99999


async def test_one_pass_gives_texts_and_telling_tokens(minilm):
    texts = ["The heron eats frogs.", "", "of the", "...", "heron heron heron", "word " * 300]

    vectors, tokens = await minilm.embed_tokens(texts)

    assert [len(own) for own in tokens] == [3, 0, 2, 0, 1, 1]
    assert cosines(vectors, await minilm.embed(texts)).min() > 0.99999
    for own in tokens:
        assert own.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(own, axis=1), 1, atol=1e-5)


async def test_tokens_are_bounded(minilm):
    _, [tokens] = await minilm.embed_tokens([" ".join(map(str, range(150)))])

    assert tokens.shape == (MAX_TOKENS, minilm.dimensions)


async def test_no_texts_give_no_vectors(minilm):
    assert (await minilm.embed([])).shape == (0, 384)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\x01\x02\x7f",
        "😀" * 1000,
        "👩‍👩‍👧‍👦\ufe0f",
        "a" * 1_000_000,
        "\u202e\u200b",
        "数" * 5000,
    ],
    ids=["empty", "blank", "control", "emoji", "joined", "one-letter-1MB", "invisible", "cjk"],
)
async def test_odd_texts_have_vectors(minilm, text):
    vectors = await minilm.embed([text, "ordinary"])
    assert np.isfinite(vectors).all()
    assert float(np.linalg.norm(vectors[0])) == pytest.approx(1, abs=1e-5)


async def test_concurrent_calls_do_not_mix(minilm):
    texts = [[f"text {number} of caller {caller}" for number in range(9)] for caller in range(6)]
    answers = await asyncio.gather(*(minilm.embed(mine) for mine in texts))
    for mine, answer in zip(texts, answers, strict=True):
        assert cosines(answer, await minilm.embed(mine)).min() > 0.99999


async def test_the_event_loop_stays_free_while_a_batch_runs(minilm):
    embedding = asyncio.ensure_future(minilm.embed(["a long sentence " * 80] * 8))
    turns = 0
    while not embedding.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 100


def test_idle_threads_of_the_model_sleep(minilm):
    # Whether they do shows in CPU time only, which no test can tell from a busy machine.
    options = minilm._text_embedding.model.model.get_session_options()

    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_the_window_is_256_tokens(minilm):
    assert (minilm.model, minilm.max_tokens) == (MODEL_NAME, 256)


@given(lengths=st.lists(st.integers(0, 50), max_size=40), size=st.integers(1, 8))
def test_batches_hold_every_text_once_within_both_limits(lengths, size):
    texts = ["x" * length for length in lengths]
    found = list(batches(texts, size, max_chars=100))
    assert sorted(index for batch in found for index in batch) == list(range(len(texts)))
    for batch in found:
        assert len(batch) <= size
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= 100


def test_token_spans_are_offsets_of_characters(minilm):
    text = "Ünïcode 😀 数据 naïve_word"
    words = [text[start:end] for start, end in minilm.token_spans(text)]
    assert words == ["Ünïcode", "😀", "数", "据", "naïve", "_", "word"]


def test_a_long_text_has_the_spans_of_its_tokens_taken_in_one_piece(minilm):
    text = "Ünïcode words, 数据 and 😀 go on. " * (3 * PIECE_CHARS // 30)
    whole = minilm._tokenizer.encode(text, add_special_tokens=False).offsets
    assert minilm.token_spans(text) == whole


def test_a_text_without_any_white_space_has_spans(minilm):
    assert minilm.token_spans("a" * 1_000_000) == [(0, 1_000_000)]
    assert len(minilm.token_spans("数" * 50_000)) == 50_000


@settings(max_examples=60, deadline=None)
@given(text=ANY_TEXT.map(lambda text: text * 4), max_tokens=st.integers(100, 140))
def test_a_chunk_never_has_more_tokens_than_allowed_when_tokenised_alone(minilm, text, max_tokens):
    chunks = chunk_spans(text, minilm.token_spans(text), max_tokens=max_tokens, overlap_tokens=16)
    for chunk in chunks:
        assert len(minilm.token_spans(text[chunk.start : chunk.end])) <= max_tokens


def test_the_model_directory_is_written_once(minilm_dir):
    data_dir = minilm_dir.parents[2]
    before = (minilm_dir / "model.onnx").stat()
    assert ensure_minilm(data_dir) == minilm_dir
    assert (minilm_dir / "model.onnx").stat() == before


def test_concurrent_writers_leave_one_complete_model(tmp_path):
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        written = pool.map(ensure_minilm, [tmp_path] * 3)
    assert len(set(written)) == 1
    assert [path.name for path in written[0].parent.iterdir()] == [written[0].name]


def test_a_writer_that_dies_leaves_nothing_that_looks_complete(tmp_path, monkeypatch):
    def die(path):
        raise KeyboardInterrupt

    monkeypatch.setattr(minilm_module, "_sync_directory", die)
    with pytest.raises(KeyboardInterrupt):
        ensure_minilm(tmp_path)
    monkeypatch.undo()
    assert not list((tmp_path / "models" / "all-MiniLM-L6-v2").iterdir())


def test_weights_with_another_checksum_are_refused(tmp_path):
    damaged = bytearray((source_directory() / "model.safetensors").read_bytes())
    damaged[-1] ^= 1
    path = tmp_path / "model.safetensors"
    path.write_bytes(damaged)
    with pytest.raises(ModelUnavailableError, match="sha256"):
        read_verified_weights(path)


async def test_the_default_model_loads_without_a_network(tmp_path, monkeypatch):
    def refuse(*args):
        raise AssertionError(f"connects to {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    embedder = await load_embedder(data_dir=tmp_path, threads=1)
    assert embedder.dimensions == 384
    embedder.close()


async def test_a_local_model_of_any_name_can_be_configured(minilm, minilm_dir, tmp_path):
    model_dir = shutil.copytree(minilm_dir, tmp_path / "model")
    embedder = FastembedEmbedder("house/model", model_dir=model_dir, threads=1)
    again = FastembedEmbedder("house/model", model_dir=model_dir, threads=1)
    texts = ["one text", "another"]
    assert cosines(await embedder.embed(texts), await minilm.embed(texts)).min() > 0.99999
    assert (again.model, again.dimensions) == ("house/model", 384)
    embedder.close()
    again.close()


def test_a_directory_without_a_model_is_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 8}')
    with pytest.raises(FileNotFoundError, match=r"model\.onnx"):
        FastembedEmbedder("house/missing", model_dir=tmp_path, threads=1)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match="not supported"):
        FastembedEmbedder("house/unknown", model_dir=None, threads=1)
