"""Which tokens of a text are worth comparing one by one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from annals_storage.domain.late_interaction import MAX_TOKENS

_PIECE = "##"
_FUNCTION_WORDS = frozenset(
    """
    a about also am an and any are as at be been but by can could did do does for from had
    has have he her hers him his how i if in into is it its just me my no not of on or our
    ours she should so some such than that the their theirs them then there these they this
    those to too us was we were what when where which who whom whose why will with would you
    your yours
    """.split()  # noqa: SIM905 - a list would take a line a word
)
"""English words that say little by themselves. Those of other languages cost only bytes."""


class TellingTokens:
    """Leaves out special tokens, punctuation, function words and what was there before."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        specials = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
        vocabulary = tokenizer.get_vocab(with_added_tokens=True)
        size = max(vocabulary.values()) + 1
        self._is_word, self._tells = np.zeros(size, bool), np.zeros(size, bool)
        for token, number in vocabulary.items():
            word = token.removeprefix(_PIECE)
            self._is_word[number] = token not in specials and any(map(str.isalnum, word))
            self._tells[number] = self._is_word[number] and word.lower() not in _FUNCTION_WORDS

    def positions(self, token_ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of the tokens to keep, in order; at most `MAX_TOKENS`.

        A text of nothing but function words keeps these.
        """
        for wanted in (self._tells, self._is_word):
            found = np.flatnonzero(wanted[token_ids])
            if len(found):
                _, first = np.unique(token_ids[found], return_index=True)
                return found[np.sort(first)[:MAX_TOKENS]]
        return np.empty(0, np.int64)
