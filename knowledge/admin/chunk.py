"""Chunks in the admin: found, corrected, switched on and off."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import Truncator
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.access import Action
from accounts.request import get_actor
from knowledge.access import access_chunk, visible_chunks
from knowledge.admin.service_admin import ServiceAdmin
from knowledge.admin.service_forms import ServiceForm, messages_for_errors
from knowledge.models import Chunk
from knowledge.services.chunks import edit_chunk


class ChunkForm(ServiceForm):
    """The text of a chunk and whether search sees it."""

    content = forms.CharField(
        strip=False,
        required=False,  # the service says what to do instead
        label=_("Content"),
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 14}),
        help_text=_(
            "Search finds the corrected text at once. Processing the document again undoes it."
        ),
    )

    class Meta:
        model = Chunk
        fields = ("content", "enabled")

    def clean_content(self) -> str:
        """Browsers send line ends as CRLF."""
        content: str = self.cleaned_data["content"]
        return content.replace("\r\n", "\n")

    def write(self, values: dict[str, Any]) -> Chunk:
        """Correct it."""
        chunk = access_chunk(self.actor, self.instance.pk, Action.WRITE)
        content = values["content"] if values["content"] != chunk.content else None
        return edit_chunk(actor=self.actor, chunk=chunk, content=content, enabled=values["enabled"])


@admin.register(Chunk)
class ChunkAdmin(ServiceAdmin):
    """Passages come from documents: none is added or deleted here."""

    add_action = delete_action = None  # cut from documents; switched off rather than deleted
    form = ChunkForm
    list_display = (
        "passage",
        "document_link",
        "knowledge_base",
        "enabled",
        "token_count",
        "edited_at",
    )
    list_filter = ("knowledge_base", "enabled", "language")
    list_select_related = ("document", "knowledge_base")
    list_per_page = 50
    search_fields = ("content",)
    search_help_text = _("Search the text of chunks")
    ordering = ("document", "ordinal")
    actions = ("switch_on", "switch_off")
    change_form_before_template = "admin/knowledge/chunk/form_before.html"
    readonly_fields = (
        "knowledge_base", "document_link", "place", "language", "token_count", "edited_at",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("content", "enabled")}),
        (
            _("Facts"),
            {
                "fields": (
                    ("document_link", "knowledge_base"),
                    "place",
                    ("language", "token_count"),
                    "edited_at",
                )
            },
        ),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chunk]:
        """The visible chunks, without vectors and the documents' text."""
        chunks = visible_chunks(get_actor(request)).select_related("document", "knowledge_base")
        return chunks.defer("document__extracted_text")

    @admin.action(description=_("Switch on"), permissions=["change"])
    def switch_on(self, request: HttpRequest, queryset: QuerySet[Chunk]) -> None:
        """Search sees them."""
        self._switch(request, queryset, enabled=True)

    @admin.action(description=_("Switch off"), permissions=["change"])
    def switch_off(self, request: HttpRequest, queryset: QuerySet[Chunk]) -> None:
        """Search does not see them."""
        self._switch(request, queryset, enabled=False)

    def _switch(self, request: HttpRequest, chunks: QuerySet[Chunk], *, enabled: bool) -> None:
        with messages_for_errors(request):
            changed = list(chunks.exclude(enabled=enabled))
            for chunk in changed:
                edit_chunk(actor=get_actor(request), chunk=chunk, enabled=enabled)
            if enabled:
                text = ngettext(
                    "%(n)d chunk switched on.", "%(n)d chunks switched on.", len(changed)
                )
            else:
                text = ngettext(
                    "%(n)d chunk switched off.", "%(n)d chunks switched off.", len(changed)
                )
            messages.success(request, text % {"n": len(changed)})

    @admin.display(description=_("content"))
    def passage(self, chunk: Chunk) -> str:
        """Its beginning."""
        return Truncator(chunk.content).chars(140)

    @admin.display(description=_("document"), ordering="document__title")
    def document_link(self, chunk: Chunk) -> SafeString:
        """Where it stands in the document."""
        url = reverse("admin:knowledge_document_change", args=[chunk.document_id])
        title = Truncator(str(chunk.document)).chars(60)
        number = chunk.ordinal + 1
        return format_html(
            '<a class="kb-link" href="{}?chunk={}">{} #{}</a>', url, chunk.id, title, number
        )

    @admin.display(description=_("place"))
    def place(self, chunk: Chunk) -> str:
        """Page, sheet, line and headings."""
        return place_of(chunk) or "–"


def place_of(chunk: Chunk) -> str:
    """Where a passage stands, in words."""
    parts = [
        (_("page %s"), chunk.page),
        (_("sheet %s"), chunk.sheet),
        (_("row %s"), chunk.row),
        (_("line %s"), chunk.line),
    ]
    words = [str(text) % value for text, value in parts if value not in {None, ""}]
    if chunk.heading_path:
        words.append(" › ".join(chunk.heading_path))
    return " · ".join(words)
