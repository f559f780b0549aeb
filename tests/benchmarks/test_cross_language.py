"""Twins and other writings."""

from __future__ import annotations

from benchmarks.evaluation.cross_language import VARIANTS, pair, rewritten, twin_shares
from benchmarks.evaluation.sets import JudgedDocument, JudgedSet


def small(name: str, language: str) -> JudgedSet:
    return JudgedSet(
        name,
        language,
        tuple(JudgedDocument(key, "", key, f"{key}.txt") for key in ("p0", "p1")),
        {"q0": "后头 42 km?"},
        {"q0": {"p0": 1.0}},
        2,
    )


def test_a_twin_is_the_same_paragraph_in_the_other_language() -> None:
    both = pair(small("xquad-en", "en"), small("xquad-zh", "zh"))
    shares = twin_shares(
        {
            "xquad-en/q0": ["xquad-en/p0", "xquad-zh/p0"],
            "xquad-zh/q0": ["xquad-zh/p0", "xquad-en/p1"],
        },
        both,
    )
    assert shares == {"twin@10 en→zh": 1.0, "twin@10 zh→en": 0.0}


def test_the_eleventh_place_is_too_late() -> None:
    both = pair(small("xquad-en", "en"), small("xquad-zh", "zh"))
    late = [*(f"xquad-zh/x{number}" for number in range(10)), "xquad-zh/p0"]
    assert twin_shares({"xquad-en/q0": late}, both) == {"twin@10 en→zh": 0.0}


def test_questions_are_rewritten_and_nothing_else() -> None:
    judged = small("xquad-zh", "zh")
    written = {name: rewritten(judged, name) for name in VARIANTS}
    assert written["xquad-zh traditional"].questions == {"q0": "後頭 42 km?"}
    assert written["xquad-zh full-width"].questions == {"q0": "后头\u3000４２\u3000ｋｍ？"}
    assert all(variant.documents == judged.documents for variant in written.values())
