"""Judged sets: documents, questions, and which document answers which question.

A set is a folder with `corpus.jsonl` (or `.gz`: id, title, text), `queries.jsonl` (id, text) and
`qrels.tsv` (query_id, doc_id, score). docs/evaluation.md says how to add one's own.
"""

from __future__ import annotations

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.ground import EVALSETS, ROOT
from knowledge.lexical.language import detect_language

SAMPLE_FOLDER = ROOT / "sample"
SAMPLE_NAME = "sample"
CODE = "code"
LANGUAGES = {
    "cacm": "en",
    "covidqa-long": "en",
    "cranfield": "en",
    "financebench-mini": "en",
    "lihua-world": "en",
    "nfcorpus-test": "en",
    "pubmedqa-l": "en",
    "rgb-en-fact": "en",
    "scifact": "en",
    "techqa-answers": "en",
    "xquad-en": "en",
    "cosqa-code": CODE,
    "cmrc2018-dev": "zh",
    "domainrag-zh": "zh",
    "dureader-checklist-dev": "zh",
    "rgb-zh": "zh",
    "xquad-zh": "zh",
    "xquad-ar": "ar",
    "xquad-de": "de",
    "xquad-es": "es",
    "xquad-hi": "hi",
    "xquad-th": "th",
    "jsquad-valid": "ja",
    "dragonball": "en+zh",
    SAMPLE_NAME: "en+zh",
}
MIXES = {
    "en-mix": tuple(name for name, language in LANGUAGES.items() if language == "en"),
    "zh-mix": tuple(name for name, language in LANGUAGES.items() if language == "zh"),
    "xling-mix": tuple(name for name in LANGUAGES if name.startswith(("xquad-", "jsquad-"))),
}
MIX_QUESTIONS = 200  # of each set in a mix


@dataclass(frozen=True, slots=True)
class JudgedDocument:
    """One document to be found. `filename` decides how it is read."""

    id: str
    title: str
    text: str
    filename: str


@dataclass(frozen=True, slots=True)
class JudgedSet:
    """Documents and questions of which at least one document is an answer; gains are above 0.

    `language` is an ISO 639-1 code, several joined by `+`, or `code`. `whole` counts the documents
    before any were left out. In a mix, ids begin with `<set>/` and `parts` names the sets' languages.
    """

    name: str
    language: str
    documents: tuple[JudgedDocument, ...]
    questions: Mapping[str, str]
    judgements: Mapping[str, Mapping[str, float]]
    whole: int
    parts: Mapping[str, str] = field(default_factory=dict)

    def language_of(self, item_id: str) -> str:
        """The language of a document or question, as far as the set tells."""
        return self.parts.get(item_id.partition("/")[0], self.language)


def load_set(name: str) -> JudgedSet:
    """A set by its name, a mix by its own, or the folder of another set by its path."""
    if name == SAMPLE_NAME:
        return load_sample()
    if name in MIXES:
        return mix(name, [first_questions(load_set(part), MIX_QUESTIONS) for part in MIXES[name]])
    folder = EVALSETS / name if name in LANGUAGES else Path(name)
    documents = tuple(read_documents(folder))
    judgements = read_judgements(folder)
    questions = {
        row["id"]: row["text"] for row in _rows(folder / "queries.jsonl") if row["id"] in judgements
    }
    language = LANGUAGES.get(name) or detect_language(
        "\n".join(document.text for document in documents[:20])
    )
    ordered = {key: text for key, text in sorted(questions.items()) if key in judgements}
    return JudgedSet(folder.name, language, documents, ordered, judgements, len(documents))


def load_sample() -> JudgedSet:
    """The questions over the documents that every installation starts with."""
    asked = json.loads((SAMPLE_FOLDER / "questions.json").read_text())
    files = sorted({row["file"] for row in asked})
    documents = tuple(
        JudgedDocument(name, "", (SAMPLE_FOLDER / name).read_text(), name) for name in files
    )
    questions = {f"q{number:02}": row["question"] for number, row in enumerate(asked, 1)}
    judgements = {f"q{number:02}": {row["file"]: 1.0} for number, row in enumerate(asked, 1)}
    return JudgedSet(SAMPLE_NAME, LANGUAGES[SAMPLE_NAME], documents, questions, judgements, len(files))  # fmt: skip


def first_questions(judged: JudgedSet, most: int) -> JudgedSet:
    """The set with its first questions, in the order of their ids, and every document."""
    kept = sorted(judged.questions)[:most]
    return replace(judged, questions={key: judged.questions[key] for key in kept})


def spread_questions(judged: JudgedSet, most: int) -> JudgedSet:
    """The set with `most` of its questions, evenly spaced in the order of their ids: in a mix, some of
    each set."""
    ordered = sorted(judged.questions)
    count = min(most, len(ordered))
    kept = [ordered[place * len(ordered) // count] for place in range(count)]
    return replace(judged, questions={key: judged.questions[key] for key in kept})


def cut(judged: JudgedSet, questions: int, documents: int) -> JudgedSet:
    """A smaller set: its first questions, all documents judged for them, and others in the order of
    their ids up to `documents`."""
    small = first_questions(judged, questions)
    needed = {key for question in small.questions for key in small.judgements[question]}
    others = sorted(document.id for document in judged.documents if document.id not in needed)
    kept = needed | set(others[: max(0, documents - len(needed))])
    return replace(
        small, documents=tuple(document for document in judged.documents if document.id in kept)
    )


def mix(name: str, parts: Sequence[JudgedSet]) -> JudgedSet:
    """One index of several sets."""
    languages = {part.name: part.language for part in parts}
    return JudgedSet(
        name,
        "+".join(sorted(set(languages.values()))),
        tuple(
            replace(document, id=f"{part.name}/{document.id}")
            for part in parts
            for document in part.documents
        ),
        {f"{part.name}/{key}": text for part in parts for key, text in part.questions.items()},
        {
            f"{part.name}/{key}": {f"{part.name}/{found}": gain for found, gain in judged.items()}
            for part in parts
            for key, judged in part.judgements.items()
        },
        sum(part.whole for part in parts),
        languages,
    )


def read_documents(folder: Path) -> Iterator[JudgedDocument]:
    """The documents of a set; of those without a text the title is all there is."""
    packed = folder / "corpus.jsonl.gz"
    for row in _rows(packed if packed.exists() else folder / "corpus.jsonl"):
        title = row.get("title") or ""
        if (title + row["text"]).strip():
            filename = f"{row['id']}.txt".replace("/", "-")
            yield JudgedDocument(row["id"], title, row["text"], filename)


def read_questions(folder: Path) -> dict[str, str]:
    """Every question of a set, those without a relevant document among them, as the file has them."""
    return {row["id"]: row["text"] for row in _rows(folder / "queries.jsonl")}


def read_judgements(folder: Path) -> dict[str, dict[str, float]]:
    """Question → relevant document → gain."""
    judgements: defaultdict[str, dict[str, float]] = defaultdict(dict)
    with (folder / "qrels.tsv").open(newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            if float(row["score"]) > 0:
                judgements[row["query_id"]][row["doc_id"]] = float(row["score"])
    return dict(judgements)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    # Not splitlines: JSON strings may hold line separators of Unicode as they are.
    return (json.loads(line) for line in data.decode().split("\n") if line)
