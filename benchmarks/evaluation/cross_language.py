"""Whether a question finds what is written in another language, script or width.

XQuAD asks the same questions about the same paragraphs in every language, with the same ids: the twin of
an English paragraph is the Chinese one of its id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import fmean

import zhconv_rs

from benchmarks.evaluation.sets import JudgedSet, mix
from benchmarks.evaluation.systems import Rankings

ENGLISH, CHINESE = "xquad-en", "xquad-zh"
TWINS = "xquad-en+zh"
TWIN_SYSTEMS = ("semantic", "hybrid")
TWIN_METRICS = {ENGLISH: "twin@10 en→zh", CHINESE: "twin@10 zh→en"}  # by the questions' set

_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F)} | {0x20: 0x3000}


def pair(english: JudgedSet, chinese: JudgedSet) -> JudgedSet:
    """Both languages in one base."""
    return replace(mix(TWINS, [english, chinese]), language="en+zh")


def twin_shares(rankings: Rankings, both: JudgedSet) -> dict[str, float]:
    """By direction, the share of questions whose paragraph's twin is among the first ten documents."""
    found: dict[str, list[bool]] = {metric: [] for metric in TWIN_METRICS.values()}
    for key, ranking in rankings.items():
        part = key.partition("/")[0]
        twins = {_twin(document_id) for document_id in both.judgements[key]}
        found[TWIN_METRICS[part]].append(not twins.isdisjoint(ranking[:10]))
    return {metric: fmean(hits) for metric, hits in found.items() if hits}


def _twin(document_id: str) -> str:
    part, _, rest = document_id.partition("/")
    return f"{CHINESE if part == ENGLISH else ENGLISH}/{rest}"


def _traditional(text: str) -> str:
    return zhconv_rs.zhconv(text, "zh-Hant")


def _full_width(text: str) -> str:
    return text.translate(_FULL_WIDTH)


# Name → the set whose questions are written differently, and how.
VARIANTS: dict[str, tuple[str, Callable[[str], str]]] = {
    f"{CHINESE} traditional": (CHINESE, _traditional),
    f"{CHINESE} full-width": (CHINESE, _full_width),
    f"{ENGLISH} full-width": (ENGLISH, _full_width),
}


def rewritten(judged: JudgedSet, name: str) -> JudgedSet:
    """The set with its questions in the variant's writing."""
    write = VARIANTS[name][1]
    questions = {key: write(text) for key, text in judged.questions.items()}
    return replace(judged, name=name, questions=questions)
