"""Terms of texts that are written without spaces: Chinese and Japanese.

Every two neighbouring characters are a term, as in Lucene's CJK analyzer, and every Han character
by itself, which finds other forms of a Japanese verb by its stem and Chinese words of one
character. The engine's own segmentation depends on what stands around a word: it cuts 東京 out of
a sentence, but asked for 東京 alone it looks for 東 and 京.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

_KANA = "\u3041-\u3096\u309d\u309e\u30a1-\u30fa\u30fc-\u30fe\uff66-\uff9f"
_HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(f"[{_HAN}{_KANA}]+")
_KANA_CHARACTER = re.compile(f"[{_KANA}]")
_HAN_CHARACTER = re.compile(f"[{_HAN}]")
_HIRAGANA_SEGMENT = re.compile("[\u3041-\u3096]+")
_TO_HIRAGANA = {code: code - 0x60 for code in range(0x30A1, 0x30F7)}
"""The same word is written in either kana."""
_CHINESE_FUNCTION_CHARACTERS = frozenset(
    "的了是在我你他她它们們这這那不和与與及或也都就很吗嗎呢吧啊把被从從到對对为為以于於之其所而且但如果"
    "有没沒要会會能可个個一什么麼谁誰哪怎样樣"
)
_JAPANESE_PARTICLES = "はがをにのともでやかへねよなさ"
_JAPANESE_FUNCTION_WORDS = """
    でしょう ていました ましょう ください あります しました される された なかった
    でした ました まして ません という ている ていた ています だった だろう します
    けれど しかし そして これ それ あれ どれ ここ そこ どこ この その あの どの
    です ます てる ない ある あった あり いる いた います する した して ので
    のに から まで より だけ など でも では には とは けど また もの こと ため
    まし
"""
_WORDS = sorted(_JAPANESE_FUNCTION_WORDS.split(), key=len, reverse=True)
_FUNCTIONAL = re.compile(
    # Atomic: what has two readings must not be tried in every combination.
    f"(?>{'|'.join(_WORDS)}|[{_JAPANESE_PARTICLES}])++"
)
_FUNCTION_WORD = re.compile("|".join(_WORDS))
_JAPANESE_FUNCTION_PAIRS = frozenset(word for word in _WORDS if len(word) == 2)


def parts_of(text: str) -> tuple[list[str], str]:
    """Return the runs written without spaces, normalised, and all else with spaces for them."""
    if text.isascii():
        return [], text
    runs = _RUN.findall(text)
    if not runs:
        return [], text
    return [unicodedata.normalize("NFKC", run) for run in runs], _RUN.sub(" ", text)


def script_language(runs: Sequence[str]) -> str:
    """Return ja where there is kana, else zh."""
    return "ja" if any(_KANA_CHARACTER.search(run) for run in runs) else "zh"


def terms_of(runs: Sequence[str], language: str) -> list[str]:
    """Return the terms in order. `language`, zh or ja, decides what is a function word."""
    terms_of_run = _japanese_terms if language == "ja" else _chinese_terms
    return [term for run in runs for term in terms_of_run(run)]


def _japanese_terms(run: str) -> list[str]:
    telling = _HIRAGANA_SEGMENT.sub(_telling, run).translate(_TO_HIRAGANA)
    return [
        term
        for piece in telling.split()
        for term in _grams(piece)
        if term not in _JAPANESE_FUNCTION_PAIRS
    ]


def _telling(segment: re.Match[str]) -> str:
    """Return hiragana unless it is function words alone, as between two words in kanji."""
    text = segment.group()
    if not _FUNCTIONAL.fullmatch(text):
        return text
    # Two particles may as well be a word: もも, かに.
    return " " if len(text) == 1 or _FUNCTION_WORD.search(text) else text


def _chinese_terms(run: str) -> list[str]:
    return [term for term in _grams(run) if not _CHINESE_FUNCTION_CHARACTERS.issuperset(term)]


def _grams(piece: str) -> list[str]:
    pairs = [first + second for first, second in pairwise(piece)]
    return pairs + [character for character in piece if _HAN_CHARACTER.match(character)]
