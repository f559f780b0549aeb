"""One search as asked for, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from config.errors import FieldError, InvalidInputError
from search.retrieval.filters import Condition
from search.retrieval.legs import DEPTH

MAX_QUERY_CHARS = 8000
MAX_LIMIT = 100


class Mode(StrEnum):
    """How much work a search may do."""

    FILENAME = "filename"  # names and titles, no content
    INSTANT = "instant"  # no model call but the query embedding


class Strategy(StrEnum):
    """Which legs take part."""

    HYBRID = "hybrid"
    LEXICAL = "lexical"
    SEMANTIC = "semantic"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """The parameters of a search; `condition` is the compiled filter."""

    query: str
    knowledge_bases: Sequence[str] | None = None
    mode: Mode = Mode.INSTANT
    strategy: Strategy = Strategy.HYBRID
    limit: int = 10
    offset: int = 0
    condition: Condition | None = None
    as_principals: Sequence[str] | None = None
    group_by_document: bool = False
    deadline_ms: int = 10_000
    explain: bool = False
    unavailable: Sequence[str] = ()  # operations asked for that this installation lacks

    def __post_init__(self) -> None:
        errors = []
        if not self.query.strip():
            errors.append(FieldError("query", "Must not be empty."))
        if len(self.query) > MAX_QUERY_CHARS:
            errors.append(FieldError("query", f"At most {MAX_QUERY_CHARS} characters."))
        if not 1 <= self.limit <= MAX_LIMIT:
            errors.append(FieldError("limit", f"From 1 to {MAX_LIMIT}."))
        if self.offset < 0 or self.offset + self.limit > DEPTH:
            errors.append(FieldError("offset", f"offset + limit is at most {DEPTH}."))
        if errors:
            raise InvalidInputError("The search cannot be run.", errors)
