"""Judged sets: reading, cutting and mixing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from benchmarks.evaluation.sets import (
    JudgedDocument,
    JudgedSet,
    cut,
    load_sample,
    load_set,
    mix,
    spread_questions,
)

ENGLISH = "The quick brown fox jumps over the lazy dog while the farmer looks on."


def write_set(folder: Path, *, packed: bool) -> Path:
    rows = [
        {"id": "d1", "title": "Foxes", "text": f"{ENGLISH}\u2028Next line."},
        {"id": "a/2", "title": "Only a title", "text": ""},
        {"id": "d3", "title": "", "text": " "},
    ]
    corpus = "\n".join(json.dumps(row, ensure_ascii=False) for row in rows).encode()
    if packed:
        (folder / "corpus.jsonl.gz").write_bytes(gzip.compress(corpus))
    else:
        (folder / "corpus.jsonl").write_bytes(corpus)
    questions = [{"id": "q2", "text": "fox?"}, {"id": "q1", "text": "title?"}, {"id": "q3", "text": "?"}]  # fmt: skip
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, questions)))
    (folder / "qrels.tsv").write_text(
        "query_id\tdoc_id\tscore\nq2\td1\t2\nq1\ta/2\t1\nq1\td1\t0\nq3\td1\t-1\n"
    )
    return folder


def small_set(name: str, documents: int, *, language: str = "en") -> JudgedSet:
    ids = [f"d{number}" for number in range(documents)]
    return JudgedSet(
        name,
        language,
        tuple(JudgedDocument(key, "", f"text of {key}", f"{key}.txt") for key in ids),
        {"q0": "first", "q1": "second"},
        {"q0": {"d8": 1.0}, "q1": {"d0": 1.0, "d9": 2.0}},
        documents,
    )


@pytest.mark.parametrize("packed", [True, False])
def test_a_folder_is_read(tmp_path: Path, *, packed: bool) -> None:
    judged = load_set(str(write_set(tmp_path, packed=packed)))
    assert [document.id for document in judged.documents] == ["d1", "a/2"]
    assert judged.documents[0].text.endswith("\u2028Next line.")
    assert judged.documents[1].filename == "a-2.txt"
    assert list(judged.questions.items()) == [("q1", "title?"), ("q2", "fox?")]
    assert judged.judgements == {"q2": {"d1": 2.0}, "q1": {"a/2": 1.0}}
    assert judged.language == "en"


def test_a_cut_keeps_what_its_questions_need() -> None:
    small = cut(small_set("s", 10), questions=1, documents=3)
    assert list(small.questions) == ["q0"]
    assert [document.id for document in small.documents] == ["d0", "d1", "d8"]
    assert small.whole == 10


def test_a_cut_never_drops_judged_documents() -> None:
    small = cut(small_set("s", 10), questions=2, documents=1)
    assert [document.id for document in small.documents] == ["d0", "d8", "d9"]


def test_a_mix_prefixes_every_id() -> None:
    both = mix("m", [small_set("s", 10), small_set("t", 10, language="zh")])
    assert len(both.documents) == both.whole == 20
    assert both.judgements["t/q1"] == {"t/d0": 1.0, "t/d9": 2.0}
    assert both.questions["s/q0"] == "first"
    assert (both.language, both.language_of("t/d3"), both.language_of("s/q0")) == ("en+zh", "zh", "en")  # fmt: skip


def test_spread_questions_come_from_every_part() -> None:
    both = mix("m", [small_set("s", 10), small_set("t", 10)])
    assert list(spread_questions(both, 2).questions) == ["s/q0", "t/q0"]
    assert spread_questions(both, 9).questions == both.questions


def test_the_sample_has_questions_over_every_file_it_names() -> None:
    judged = load_sample()
    names = {document.id for document in judged.documents}
    assert len(judged.questions) == 14
    assert all(set(judged.judgements[key]) <= names for key in judged.questions)
