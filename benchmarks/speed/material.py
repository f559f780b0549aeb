"""The real text that everything is made of: passages to generate chunks from, and questions.

Where the evaluation sets are not beside the checkout, the sample documents and the manual have to do.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.evaluation.sets import read_documents, read_questions
from benchmarks.ground import CHUNK_SIZE, EVALSETS, ROOT
from benchmarks.speed.corpus import Passage, read_passages
from knowledge.extraction.base import Limits
from knowledge.extraction.text import extract_plain
from knowledge.lexical.language import detect_language
from knowledge.models import KnowledgeBase
from knowledge.services.chunking import chunk_text
from knowledge.services.lexical_index import context_of, text_in_context
from providers.base import Embedder

_SETS = {"en": ("xquad-en", "scifact"), "zh": ("xquad-zh", "dureader-checklist-dev")}
_ASKED = {"en": ("xquad-en", "scifact"), "zh": ("xquad-zh",)}


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and within what: `filter` in the API's language, `sql` the same by hand over
    `c` and `d`. Without `principals` it is asked by someone who sees what is public."""

    text: str
    filter: Mapping[str, Any] | None = None
    sql: str = ""
    parameters: tuple[object, ...] = ()
    principals: tuple[str, ...] = ("public",)


@dataclass(frozen=True, slots=True)
class Material:
    """Text of one language. `digest` tells it from any other."""

    language: str
    texts: tuple[str, ...]
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    digest: str = field(default="")


def is_complete() -> bool:
    """Whether the evaluation sets are there."""
    return all((EVALSETS / name).is_dir() for names in _SETS.values() for name in names)


def read_material(language: str, most: int, embedder: Embedder) -> Material:
    """Up to `most` passages of a language, cut as the product cuts them, and its questions."""
    texts = tuple(itertools.islice(_texts(language, embedder), most))
    questions = tuple(Question(text) for text in _questions(language))
    digest = hashlib.sha256("\0".join((language, *texts)).encode()).hexdigest()
    return Material(
        language, texts, tuple(read_passages(texts, language, embedder)), questions, digest
    )


def _texts(language: str, embedder: Embedder) -> Iterator[str]:
    options = KnowledgeBase(chunk_size=CHUNK_SIZE).chunking_options()
    for title, text in _documents(language):
        extracted = extract_plain(text, Limits())
        for draft in chunk_text(extracted, options, embedder, context_of(title, ())):
            yield text_in_context(title, draft.heading_path, draft.content)


def _documents(language: str) -> Iterator[tuple[str, str]]:
    if is_complete():
        sets = [read_documents(EVALSETS / name) for name in _SETS[language]]
        yield from ((row.title, row.text) for row in itertools.chain(*sets) if row.text.strip())
        return
    for path in sorted([*(ROOT / "sample").glob("*.md"), *(ROOT / "docs").glob("*.md")]):
        text = path.read_text()
        if (detect_language(text) == "zh") == (language == "zh"):
            yield path.stem, text


def _questions(language: str) -> list[str]:
    if is_complete():
        return list(_in_turn([read_questions(EVALSETS / name).values() for name in _ASKED[language]]))  # fmt: skip
    asked = [
        row["question"] for row in json.loads((ROOT / "sample" / "questions.json").read_text())
    ]
    return [text for text in asked if (detect_language(text) == "zh") == (language == "zh")]


def _in_turn(lists: Sequence[Iterable[str]]) -> Iterator[str]:
    for together in itertools.zip_longest(*lists):
        yield from (text for text in together if text is not None)
