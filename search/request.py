"""One search as asked for, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from config.errors import FieldError, InvalidInputError
from search.retrieval.filters import Condition

MAX_QUERY_CHARS = 8000
MAX_WINDOW = 500  # results that can be paged through
MAX_LIMIT = 100
MAX_NEIGHBOURS = 5


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
    collapse_duplicates: bool = False
    recency: float = 0.0  # 0 leaves age aside, 1 lets it decide between equals
    rerank: bool = False
    neighbours: int = 0  # passages before and after each hit to return with it
    facets: Sequence[str] = ()  # fields of the filter language whose values are counted
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
        if self.offset < 0 or self.offset + self.limit > MAX_WINDOW:
            errors.append(FieldError("offset", f"offset + limit is at most {MAX_WINDOW}."))
        if not 0 <= self.recency <= 1:
            errors.append(FieldError("recency", "From 0 to 1."))
        if not 0 <= self.neighbours <= MAX_NEIGHBOURS:
            errors.append(FieldError("neighbours", f"From 0 to {MAX_NEIGHBOURS}."))
        if errors:
            raise InvalidInputError("The search cannot be run.", errors)

    @property
    def depth(self) -> int:
        """How many candidates each leg gives. More than fifty are needed only for what is beyond the
        fiftieth place, or where some will be taken out or moved."""
        selects = self.group_by_document or self.collapse_duplicates or self.recency
        return MAX_WINDOW if selects or self.offset + self.limit > 50 else 100

    @property
    def reranks(self) -> bool:
        """Whether the first results are read together with the question; names are not read."""
        return self.rerank and self.mode is not Mode.FILENAME
