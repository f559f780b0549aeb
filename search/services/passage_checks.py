"""What can keep a passage out of every search like this one, checked one by one and said in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knowledge.lexical.analyzer import analyze
from knowledge.models import Chunk, Document, KnowledgeBase
from knowledge.services.lexical_index import text_in_context
from search.access import AccessScope
from search.retrieval.filters import filter_parts
from search.retrieval.query import Words
from search.retrieval.ranks import holds
from search.retrieval.searchable import Searchable


@dataclass(frozen=True, slots=True)
class PassageCheck:
    """One thing that should be so for a passage to be returned; `verdict` names it when it is not."""

    check: str
    detail: str
    verdict: str = ""

    @property
    def passed(self) -> bool:
        """Whether it is so."""
        return not self.verdict


def check_document(document: Document, chunk: Chunk | None) -> PassageCheck:
    """Whether the document is indexed; one that is being indexed anew is found as it was before."""
    state = document.get_status_display()
    told = f"The document is {state.lower()}" + (f": {document.error}" if document.error else ".")
    if chunk is None:
        return PassageCheck("indexed", f"{told} It has no passages yet.", "not_indexed")
    if not chunk.live:
        detail = f"{told} This passage belongs to a version that is not published yet."
        return PassageCheck("indexed", detail, "not_live")
    return PassageCheck("indexed", told)


def check_enabled(chunk: Chunk) -> PassageCheck:
    """Whether an editor switched it off."""
    name = f"Chunk #{chunk.ordinal + 1}"
    if chunk.enabled:
        return PassageCheck("enabled", f"{name} is switched on.")
    return PassageCheck("enabled", f"{name} is switched off by an editor.", "disabled")


def check_base(base: KnowledgeBase, scope: AccessScope | None) -> PassageCheck:
    """Whether its base is among the searched ones. Without a scope: whether it can be at all."""
    if base.status != KnowledgeBase.Status.ACTIVE:
        detail = f"The knowledge base {base.slug} is archived."
        return PassageCheck("knowledge_base", detail, "base_archived")
    if scope is not None and base.id not in scope.base_ids:
        searched = ", ".join(sorted(searched.slug for searched in scope.bases)) or "none"
        detail = f"It is in the knowledge base {base.slug}; searched were: {searched}."
        return PassageCheck("knowledge_base", detail, "base_not_searched")
    return PassageCheck("knowledge_base", f"The knowledge base {base.slug} is searched.")


def check_permission(principals: Sequence[str], scope: AccessScope) -> PassageCheck:
    """Whether those searched as may read it."""
    shared = sorted(set(principals) & set(scope.principals))
    if shared:
        return PassageCheck("permission", f"Open to {', '.join(shared)}.")
    readers = ", ".join(principals) or "nobody"
    detail = f"Open to {readers}; the search was made as {', '.join(scope.principals) or 'nobody'}."
    return PassageCheck("permission", detail, "not_permitted")


def check_filter(
    searchable: Searchable, chunk: Chunk, tree: Mapping[str, Any] | None
) -> PassageCheck:
    """Which of the conditions that must all hold do not."""
    parts = filter_parts(tree)
    failed = [part.text for part in parts if not holds(searchable, chunk.id, part.condition)]
    if failed:
        detail = f"Not true of it: {'; '.join(failed)}."
        return PassageCheck("filter", detail, "filtered")
    return PassageCheck("filter", "All conditions hold." if parts else "There is no filter.")


def check_words(query: str, words: Words, chunk: Chunk) -> PassageCheck:
    """Which words of the query stand in the passage, its title and headings, and which do not; and which
    synonyms of them do."""
    text = text_in_context(chunk.document.title, chunk.heading_path, chunk.content)
    present = {token.term for token in analyze(text, chunk.language)}
    standing: dict[str, bool] = {}
    for language in words.languages or ("",):
        for token in analyze(query, language):
            if token.term in words.terms:
                word = query[token.start : token.end]
                standing[word] = standing.get(word, False) or token.term in present
    there = [word for word, stands in standing.items() if stands]
    missing = [word for word, stands in standing.items() if not stands]
    if not standing:
        return PassageCheck("words", "The query has no words to look for.", "not_matched")
    told = [f"In the passage: {', '.join(there)}."] if there else []
    told += [f"Not in the passage: {', '.join(missing)}."] if missing else []
    synonyms = sorted(present & words.added)
    told += [f"By synonyms in the passage: {', '.join(synonyms)}."] if synonyms else []
    return PassageCheck("words", " ".join(told), "" if there or synonyms else "not_matched")
