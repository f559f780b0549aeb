"""A 64-bit fingerprint of a passage, equal or close for passages that say the same.

The upper 16 bits are a hash of the telling terms in the passage, the lower 48 a SimHash (Charikar, STOC
2002) of its pairs of neighbouring terms. Passages are near-duplicates when their telling terms agree
exactly and their SimHashes differ in at most three bits (Manku, Jain, Das Sarma, WWW 2007): another layout,
another letter case, a word in a hundred. Telling are numbers and codes in every language, and in English and
Chinese also number words, months and negations: forms that differ in an amount or a date, and a rule and
its opposite, are not taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

import numpy as np

from knowledge.lexical.analyzer import Token

_BITS = 48
_MASK = (1 << _BITS) - 1
_CLOSE = 3  # bits
_LEAST_TERMS = (
    8  # in a shorter passage one word is much of what it says: only equals are duplicates
)
# English stems, and signs of Chinese.
_TELLING = frozenset(
    "no not nor none never neither without cannot cant couldnt didnt doesnt dont hadnt hasnt havent isnt "  # noqa: SIM905 (a word list)
    "arent mustnt neednt shouldnt wasnt werent wont wouldnt "
    "one two three four five six seven eight nine ten eleven twelv thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenti thirti forti fifti sixti seventi eighti nineti hundr thousand "
    "million billion half twice januari februari march april june juli august septemb octob novemb "
    "decemb".split()
)
_TELLING_SIGNS = frozenset("不未没无非勿禁两")
_POWERS = np.arange(_BITS, dtype=np.uint64)


def fingerprint(tokens: Sequence[Token]) -> int:
    """The fingerprint as a signed 64-bit number; 0 for a passage without terms."""
    terms = [token.term for token in tokens]
    if not terms:
        return 0
    upper = _hash("\0".join(sorted(filter(_is_telling, terms)))) >> 48
    is_short = len(terms) < _LEAST_TERMS
    lower = _hash("\0".join(terms)) & _MASK if is_short else _simhash(terms)
    value = upper << _BITS | lower
    return value - (1 << 64) if value >= 1 << 63 else value


def is_near_duplicate(one: int, other: int) -> bool:
    """Whether two fingerprints belong to passages that say the same."""
    if not one or not other:
        return False
    difference = (one ^ other) & 0xFFFFFFFFFFFFFFFF
    return difference >> _BITS == 0 and (difference & _MASK).bit_count() <= _CLOSE


def _is_telling(term: str) -> bool:
    signs = not term.isascii() or not term.isalpha()
    return term in _TELLING or (
        signs and any(sign.isnumeric() or sign in _TELLING_SIGNS for sign in term)
    )


def _simhash(terms: Sequence[str]) -> int:
    hashes = np.array(
        [_pair_hash(one, other) for one, other in pairwise(terms)],
        dtype=np.uint64,
    )
    votes = (hashes[:, np.newaxis] >> _POWERS & np.uint64(1)).sum(axis=0, dtype=np.int64)
    bits = np.flatnonzero(2 * votes > len(hashes))
    return sum(1 << int(bit) for bit in bits)


@lru_cache(maxsize=200_000)
def _pair_hash(one: str, other: str) -> int:
    return _hash(f"{one}\0{other}")


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
