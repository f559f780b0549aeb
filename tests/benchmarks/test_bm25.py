"""The reference BM25, against what was measured of the sets independently."""

from __future__ import annotations

import pytest

from benchmarks.evaluation.bm25 import bm25_rankings
from benchmarks.evaluation.metrics import mean_over_questions
from benchmarks.evaluation.sets import JudgedDocument, JudgedSet, load_set
from benchmarks.ground import EVALSETS

# nDCG@10 as the sets' own pages give it for the same kind of words.
PUBLISHED = {"xquad-en": 0.9665, "xquad-zh": 0.9705, "cacm": 0.4764}


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.skipif(not EVALSETS.is_dir(), reason="the judged sets are not beside the checkout")
@pytest.mark.parametrize("name", PUBLISHED)
def test_the_reference_reproduces_published_numbers(name: str) -> None:
    judged = load_set(name)
    measured = mean_over_questions(bm25_rankings(judged), judged.judgements)
    assert measured["ndcg@10"] == pytest.approx(PUBLISHED[name], abs=0.002)


@pytest.mark.parametrize(
    ("language", "text", "question"),
    [
        ("en", "The engines were running", "engine run"),
        ("zh", "发票保存十年", "发票"),
        ("ja", "東京都の人口", "人口"),
        ("th", "กรุงเทพมหานคร", "กรุงเทพ"),
        ("hi", "दिल्ली भारत की राजधानी है", "राजधानी"),
        ("code", "def openLogFile(path):", "log file"),
        ("de", "Die Rechnungen der Firma", "Rechnung"),
    ],
)
def test_each_language_finds_its_words(language: str, text: str, question: str) -> None:
    documents = tuple(
        JudgedDocument(key, "", content, f"{key}.txt")
        for key, content in (("other", "zzz qqq"), ("wanted", text), ("third", "xyz"))
    )
    judged = JudgedSet("own", language, documents, {"q": question}, {"q": {"wanted": 1.0}}, 3)
    assert bm25_rankings(judged) == {"q": ["wanted"]}
