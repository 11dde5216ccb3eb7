"""Term weights of texts in several languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qdrant_edge import Bm25, Bm25Config

from annals_storage.domain.languages import LANGUAGES, language_of
from annals_storage.embedding.bm25 import AVERAGE_CHUNK_TERMS, KNOWN_LANGUAGES, Bm25Encoder
from annals_storage.embedding.language_detection import likely_languages
from annals_storage.settings import StorageSettings

ENCODER = Bm25Encoder()
FOUND = [
    ("en", "The migrations were running all night long.", "migration run"),
    ("en", "Sunny meadows", "meadow"),
    ("de", "Wir haben gestern zwei alte Häuser verkauft.", "Haus"),
    ("de", "Die Katzen schlafen auf dem Sofa.", "welche Katze schläft"),
    ("fr", "Nous avons mangé des pommes au marché.", "manger une pomme"),
    ("fr", "L'école était fermée hier.", "écoles"),
    ("es", "Los niños cantaban canciones en la playa.", "cantar"),
    ("pt", "As crianças compraram sapatos novos no mercado.", "comprar sapato"),
    ("zh", "我昨天在上海买了一台新电脑", "电脑"),
    ("zh", "数据库迁移失败了", "数据库"),
    ("ja", "昨日は友達と新宿で寿司を食べました", "食べる"),
    ("ja", "東京都に住んでいます", "東京"),
    ("ja", "東京都に住んでいます", "どこに住む"),
    ("ja", "ネコが大好きです", "ねこ"),
    ("ja", "ｶﾀｶﾅで書く", "カタカナ"),
]
STOP_WORDS = {
    "en": "what is the",
    "de": "und der die das ist",
    "fr": "est-ce que c'est la",
    "es": "de los que con la",
    "pt": "não é para os que",
    "zh": "这是我们的",
    "ja": "これはそれですか",
}


def shared(document: str, query: str, language: str | None = None) -> set[int]:
    terms = set(ENCODER.encode_document(document).indices)
    return terms & set(ENCODER.encode_query(query, language).indices)


@pytest.mark.parametrize(("language", "document", "query"), FOUND)
def test_another_form_of_a_word_meets_its_document(
    language: str, document: str, query: str
) -> None:
    assert shared(document, query)
    assert shared(document, query, language)


@pytest.mark.parametrize("language", STOP_WORDS)
def test_stop_words_alone_are_no_query(language: str) -> None:
    assert ENCODER.encode_query(STOP_WORDS[language]).indices == ()


def test_a_text_in_two_languages_is_found_by_the_words_of_both() -> None:
    document = "The meeting about 機械学習 was postponed"
    assert shared(document, "meetings")
    assert shared(document, "機械学習")
    assert not shared(document, "会議")


def test_a_short_text_whose_language_cannot_be_told_is_found_by_its_own_words() -> None:
    assert likely_languages("Gartenarbeit Samstag") == ()
    assert shared("Gartenarbeit Samstag", "Was ist mit der Gartenarbeit?")


def test_emoji_say_nothing_and_do_no_harm() -> None:
    assert ENCODER.encode_query("🎉 👩‍👩‍👧").indices == ()
    assert ENCODER.encode_document("party 🎉") == ENCODER.encode_document("party")


@pytest.mark.parametrize(
    "text",
    [
        "Hey Caroline! It was so great to hear about your painting class last week.",
        "La La Land in Los Angeles was fun",
        "Oscar night",
        "Die hard",
        "Wow!",
        "def main(): return os.path.join(a, b)  # www.example.com",
        "",
    ],
)
def test_english_is_encoded_as_by_the_engine_itself(text: str) -> None:
    """What earlier versions mirrored stays valid."""
    engine = Bm25(Bm25Config(language="english", avg_len=AVERAGE_CHUNK_TERMS))
    document, query = engine.embed_document(text), engine.embed_query(text)

    encoded = ENCODER.encode_document(text)

    assert list(encoded.indices) == document.indices
    assert list(encoded.values) == document.values
    assert set(ENCODER.encode_query(text).indices) >= set(query.indices)


def test_the_setting_is_for_what_cannot_be_told() -> None:
    german = Bm25Encoder(language="german")
    assert german.encode_document("Gartenarbeiten").indices != (
        ENCODER.encode_document("Gartenarbeiten").indices
    )
    english = "The cats were there"
    assert german.encode_document(english) == ENCODER.encode_document(english)


def test_a_service_does_not_start_with_an_unknown_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANNALS_STORAGE_DATABASE_URL", "postgresql://app@host/database")
    monkeypatch.setenv("ANNALS_STORAGE_BM25_LANGUAGE", "klingon")
    with pytest.raises(ValueError, match=r"klingon.*auto.*english.*german"):
        StorageSettings()


def test_every_supported_language_can_be_set() -> None:
    assert set(LANGUAGES.values()) <= set(KNOWN_LANGUAGES)


@pytest.mark.parametrize(
    ("tag", "language"),
    [("de", "de"), ("pt-BR", "pt"), ("ZH-Hant-TW", "zh"), ("it", None), ("english", None)]
    + [(tag, None) for tag in ("", "-", "de-", "d e", "de_DE", "\ud800")],
)
def test_a_language_is_named_by_a_tag(tag: str, language: str | None) -> None:
    assert language_of(tag) == language


WORDS = st.sampled_from(" ".join([*(d for _, d, _ in FOUND), *STOP_WORDS.values()]).split())
TEXTS = st.one_of(
    st.lists(WORDS, max_size=20).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.text("これそのまたはでもにん何東京ー的", max_size=60),
)


@given(TEXTS)
def test_encoding_is_the_same_every_time_and_indices_are_distinct(text: str) -> None:
    other = Bm25Encoder()
    for encode, encode_too in [
        (ENCODER.encode_document, other.encode_document),
        (ENCODER.encode_query, other.encode_query),
    ]:
        vector = encode(text)
        assert vector == encode_too(text)
        assert len(set(vector.indices)) == len(vector.indices) == len(vector.values)
        assert all(value > 0 for value in vector.values)


@pytest.mark.parametrize(
    "text", ["a" * 32_768, "字" * 32_768, "でも" * 16_384, "でも" * 16_383 + "ん"]
)
def test_repetition_is_one_thing_and_ends(text: str) -> None:
    assert len(ENCODER.encode_query(text).indices) <= 8
