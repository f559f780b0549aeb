"""The box of the search test that says why a passage is not among the results."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from accounts.access import Actor
from config.errors import AppError, FieldError, InvalidInputError
from knowledge.access import visible_chunks, visible_documents
from search.request import SearchRequest
from search.services.why_not import WhyNot, explain_missing

_UUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_CHUNK = re.compile(rf"(?:[?&]chunk=|/chunk/)({_UUID})", re.IGNORECASE)
_ANY = re.compile(_UUID, re.IGNORECASE)
_SHOWN_TITLES = 5


@dataclass(frozen=True, slots=True)
class Missed:
    """The answer, or why there is none."""

    answer: WhyNot | None = None
    error: str = ""


def explain_missed(
    actor: Actor, request: SearchRequest, filter_tree: dict[str, Any] | None, text: str
) -> Missed:
    """Explain the passage or document that `text` names: by an id, the address of its page, a title or a
    file name."""
    try:
        chunk_id, document_id = _find(actor, text.strip())
        answer = explain_missing(
            actor, request, filter_tree, chunk_id=chunk_id, document_id=document_id
        )
    except InvalidInputError as error:
        return Missed(error=" ".join([error.message, *(fault.message for fault in error.errors)]))
    except AppError as error:
        return Missed(error=error.message)
    return Missed(answer)


def _find(actor: Actor, text: str) -> tuple[UUID | None, UUID | None]:
    if named := _CHUNK.search(text):
        return UUID(named.group(1)), None
    if found := _ANY.search(text):
        identity = UUID(found.group())
        is_chunk = visible_chunks(actor).filter(id=identity).exists()
        return (identity, None) if is_chunk else (None, identity)
    return None, _by_title(actor, text)


def _by_title(actor: Actor, text: str) -> UUID:
    documents = visible_documents(actor).order_by("title", "id")
    exact = documents.filter(title__iexact=text) | documents.filter(filename__iexact=text)
    like = documents.filter(title__icontains=text) | documents.filter(filename__icontains=text)
    found = list(exact[:2]) or list(like[: _SHOWN_TITLES + 1])
    if len(found) == 1:
        only: UUID = found[0].id
        return only
    titles = ", ".join(str(document) for document in found[:_SHOWN_TITLES])
    told = _("Several documents are named so: {titles}. Give the address of its page instead.")
    message = told.format(titles=titles) if found else _("No document is named so.")
    raise InvalidInputError(
        _("Which passage is missed is not clear."), [FieldError("missed", message)]
    )
