"""A document's text side by side with its chunks, and its original."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models.functions import Length, Substr
from django.http import FileResponse, HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from accounts.access import Action
from accounts.request import get_actor
from config.errors import NotFoundError
from knowledge.access import access_document, visible_chunks
from knowledge.models import Chunk, Document
from knowledge.services.documents import read_original

PAGE_CHARS = 100_000
MAX_CHUNKS = 1000


def download_view(request: HttpRequest, pk: UUID) -> HttpResponse | FileResponse:
    """The stored bytes. Always as an attachment: an uploaded page must not run in our origin."""
    document = access_document(get_actor(request), pk, Action.READ)
    try:
        stream = read_original(document)
    except FileNotFoundError as error:
        raise NotFoundError(_("The stored file is missing.")) from error
    return FileResponse(
        stream,
        as_attachment=True,
        filename=document.filename or "original",
        content_type="application/octet-stream",
    )


def reading_context(request: HttpRequest, document: Document) -> dict[str, Any]:
    """One page of the text and the chunks on it; `chunk` opens the page it is on, `part` any page."""
    chunks = visible_chunks(get_actor(request)).filter(document=document)
    chosen = _chosen(request, chunks)
    length = _text(document, 1, 0)["length"]
    parts = max(1, -(-length // PAGE_CHARS))
    part = chosen.start // PAGE_CHARS if chosen else _number(request) - 1
    part = min(max(part, 0), parts - 1)
    first, stop = part * PAGE_CHARS, (part + 1) * PAGE_CHARS
    on_page = chunks.filter(start__lt=stop, end__gt=first).order_by("ordinal")[:MAX_CHUNKS]
    return {
        "reading": {
            "text": _text(document, first + 1, PAGE_CHARS)["text"],
            "first": first,
            "length": length,
            "part": part + 1,
            "parts": parts,
            "chunks": list(on_page),
            "chosen": chosen,
        }
    }


def _chosen(request: HttpRequest, chunks: Any) -> Chunk | None:
    try:
        found: Chunk | None = chunks.filter(id=UUID(request.GET.get("chunk", ""))).first()
    except ValueError:
        return None
    return found


def _number(request: HttpRequest) -> int:
    text = request.GET.get("part", "1")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 7 else 1


def _text(document: Document, start: int, count: int) -> dict[str, Any]:
    """A piece of the text and the length of all of it, cut by the database: a text may be large."""
    row: dict[str, Any] = (
        Document.objects.filter(id=document.id)
        .annotate(text=Substr("extracted_text", start, count), length=Length("extracted_text"))
        .values("text", "length")
        .get()
    )
    return row
