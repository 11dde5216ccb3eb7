"""Public tokenizers, offline: the encodings come from files of an installed wheel.

litellm ships the two encoding files under the names tiktoken's cache gives them. They are
located without importing litellm and checked before tiktoken sees them, because tiktoken
deletes a file whose checksum is wrong and fetches it anew.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import threading
from functools import lru_cache
from pathlib import Path

import tiktoken

_CACHE_VARIABLE = "TIKTOKEN_CACHE_DIR"

_FILES = {
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
"""Encoding → (file name in the cache, sha256 of its content)."""

MAX_BLANK_RUN_CHARS = 100_000
"""Longer runs of spaces overflow tiktoken's regex stack (at about a million) and panic."""

_BLANK = "\t\x0b\x0c \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space as tiktoken's patterns see it, line feeds and carriage returns left out."""

# The look-behind keeps the search linear: a run is tried at its first character only.
_LONG_BLANK_RUN = re.compile(
    rf"(?<![{_BLANK}])[{_BLANK}]{{{MAX_BLANK_RUN_CHARS},}}+(?P<newline>[\r\n]?)"
)

_lock = threading.Lock()


class EncodingUnavailableError(Exception):
    """An encoding is unknown, or its file is missing or damaged."""


def load_encoding(name: str) -> tiktoken.Encoding:
    """Return the encoding `o200k_base` or `cl100k_base`; loaded once per process.

    Never reaches the network. Safe to call from any thread. Raises
    `EncodingUnavailableError` with what to install.
    """
    with _lock:
        return _load(name)


def encode_text(encoding: tiktoken.Encoding, text: str) -> list[int]:
    """Return the tokens of `text`, names of special tokens being ordinary text.

    Equal to `encoding.encode_ordinary(text)`, and also works where that panics. Up to
    1.3 s for a megabyte of random letters without any word boundary, the worst found.
    The GIL is released, but not for a run of more than `MAX_BLANK_RUN_CHARS` blanks (0.5 s
    for a million).
    """
    if len(text) <= MAX_BLANK_RUN_CHARS:
        return encoding.encode_ordinary(text)
    return _encode_long(encoding, text)


def count_tokens(encoding: tiktoken.Encoding, text: str) -> int:
    """Return `len(encode_text(encoding, text))`."""
    return len(encode_text(encoding, text))


@lru_cache(maxsize=len(_FILES))
def _load(name: str) -> tiktoken.Encoding:
    if name not in _FILES:
        raise EncodingUnavailableError(f"no encoding {name!r}; known are {', '.join(_FILES)}")
    os.environ[_CACHE_VARIABLE] = str(_directory_of(name))
    return tiktoken.get_encoding(name)


def _directory_of(name: str) -> Path:
    file_name, sha256 = _FILES[name]
    for directory in _candidates():
        if _is_intact(directory / file_name, sha256):
            return directory
    raise EncodingUnavailableError(
        f"no intact file {file_name} for {name}; install litellm (see requirements-assets.lock) "
        f"or set {_CACHE_VARIABLE} to a directory that has it"
    )


def _candidates() -> list[Path]:
    configured = os.environ.get(_CACHE_VARIABLE)
    spec = importlib.util.find_spec("litellm")
    installed = spec.submodule_search_locations if spec else None
    wheel = [Path(place) / "litellm_core_utils" / "tokenizers" for place in installed or ()]
    return [Path(configured), *wheel] if configured else wheel


def _is_intact(path: Path, sha256: str) -> bool:
    return path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256


def _encode_long(encoding: tiktoken.Encoding, text: str) -> list[int]:
    """Take long blank runs out of the regex's hands.

    In both patterns a run not followed by a line end begins a piece, and all of it but its
    last character (all of it at the end of the text) is that one piece. A run followed by a
    line end is matched by an alternative that needs no stack.
    """
    tokens: list[int] = []
    done = 0
    for run in _LONG_BLANK_RUN.finditer(text):
        if run["newline"]:
            continue
        piece_end = run.end() if run.end() == len(text) else run.end() - 1
        tokens += encoding.encode_ordinary(text[done : run.start()])
        tokens += encoding._encode_single_piece(text[run.start() : piece_end])  # noqa: SLF001
        done = piece_end
    return tokens + encoding.encode_ordinary(text[done:])
