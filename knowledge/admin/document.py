"""Documents in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import filesizeformat
from django.template.loader import render_to_string
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminDecimalFieldWidget, UnfoldAdminTextareaWidget

from accounts.access import Action
from accounts.request import get_actor
from knowledge.access import access_document, visible_documents, visible_knowledge_bases
from knowledge.admin.document_actions import move_view
from knowledge.admin.document_page import download_view, reading_context
from knowledge.admin.document_state import coverage_text, progress_view, state_context
from knowledge.admin.service_admin import ServiceAdmin
from knowledge.admin.service_forms import (
    LinesField,
    ServiceForm,
    messages_for_errors,
)
from knowledge.admin.upload import upload_view
from knowledge.models import Document
from knowledge.services.boosts import LEAST_BOOST, MOST_BOOST
from knowledge.services.documents import delete_documents, reprocess_documents, update_document


class DocumentForm(ServiceForm):
    """The facts of a document that a person may correct."""

    principals = LinesField(
        label=gettext_lazy("Who may find it"),
        required=False,
        help_text=gettext_lazy(
            "One a line: public (everyone who may use the base), user:mail@example.com or group:name. "
            "Empty: only those who may edit see it."
        ),
    )
    metadata = forms.JSONField(
        label=gettext_lazy("Metadata"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 4, "spellcheck": "false"}),
        help_text=gettext_lazy(
            'Facts that searches can filter by, as JSON: {"department": "sales"}'
        ),
    )

    boost = forms.FloatField(
        label=gettext_lazy("Boost"),
        required=False,
        min_value=LEAST_BOOST,
        max_value=MOST_BOOST,
        widget=UnfoldAdminDecimalFieldWidget(),
        help_text=gettext_lazy(
            "Factor for the scores of its passages, from 0.1 (far down) to 10 (far up); 1 changes nothing. "
            "Works at once and outlives new versions of the document."
        ),
    )

    class Meta:
        model = Document
        fields = ("title", "principals", "metadata", "boost")

    def clean_title(self) -> str:
        """A title is not taken away; a document that has none gets it from its text."""
        title: str = self.cleaned_data["title"].strip()
        if self.instance.title and not title:
            raise forms.ValidationError(_("Must not be empty."))
        return title

    def clean_boost(self) -> float:
        """Empty is no boost."""
        boost: float | None = self.cleaned_data["boost"]
        return 1.0 if boost is None else boost

    def clean_metadata(self) -> dict[str, Any]:
        """Names with values."""
        value = self.cleaned_data["metadata"]
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise forms.ValidationError(_("Must be an object: names with values, in braces."))
        return value

    def write(self, values: dict[str, Any]) -> Document:
        """Change what differs."""
        document = access_document(self.actor, self.instance.pk, Action.WRITE)
        changed = {name: values[name] for name in values if getattr(document, name) != values[name]}
        return (
            update_document(actor=self.actor, document=document, **changed) if changed else document
        )


@admin.register(Document)
class DocumentAdmin(ServiceAdmin):
    """Documents with the live state of their ingestion, and their text beside its chunks."""

    add_action = None  # documents come by upload
    form = DocumentForm
    list_display = (
        "__str__",
        "knowledge_base",
        "state",
        "coverage",
        "chunks",
        "file_size",
        "created_at",
    )
    list_filter = ("knowledge_base", "status", "source")
    list_select_related = ("knowledge_base",)
    search_fields = ("title", "filename")
    search_help_text = gettext_lazy("Search titles and file names")
    ordering = ("-created_at", "-id")
    list_per_page = 50
    actions = ("process_again", "move")
    change_form_before_template = "admin/knowledge/document/form_before.html"
    change_form_outer_after_template = "admin/knowledge/document/reading.html"
    readonly_fields = (
        "knowledge_base", "filename", "content_type", "language", "author", "source", "source_uri",
        "external_id", "file_size", "created_at", "source_created_at", "source_updated_at", "indexed_at",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("title", "principals", "metadata", "boost")}),
        (
            gettext_lazy("Facts"),
            {
                "classes": ("collapse",),
                "fields": (
                    ("knowledge_base", "filename"), ("content_type", "language"), ("author", "file_size"),
                    ("source", "source_uri"), "external_id", ("created_at", "indexed_at"),
                    ("source_created_at", "source_updated_at"),
                ),
            },
        ),
    )  # fmt: skip

    class Media:
        js = ["js/progress.js", "js/document.js"]

    def get_urls(self) -> list[URLPattern]:
        """Upload, live progress and download beside the usual pages."""
        wrap = self.admin_site.admin_view
        return [
            path("upload/", wrap(upload_view(self)), name="knowledge_document_upload"),
            path("progress/", wrap(progress_view), name="knowledge_document_progress"),
            path("move/", wrap(move_view(self)), name="knowledge_document_move"),
            path(
                "<uuid:pk>/original/",
                wrap(download_view),
                name="knowledge_document_original",
            ),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Document]:
        """The visible documents, without their text."""
        return visible_documents(get_actor(request)).prefetch_related("replacements")

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Says what to do while there is no document."""
        actor = get_actor(request)
        context = {
            "no_documents": not visible_documents(actor).exists(),
            "no_bases": not visible_knowledge_bases(actor).exists(),
            "may_write": actor.may(Action.WRITE),
        }
        return super().changelist_view(request, {**(extra_context or {}), **context})

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """With the state above the form and the text with its chunks below."""
        document = self.get_object(request, object_id)
        context = extra_context or {}
        if document is not None:
            context |= {
                "state": state_context(document),
                "coverage": coverage_text(document),
                "may_write": get_actor(request).may(Action.WRITE),
                **reading_context(request, document),
            }
        return super().change_view(request, object_id, form_url, context)

    def delete_model(self, request: HttpRequest, obj: Document) -> None:
        """Every trace of it."""
        with messages_for_errors(request):
            delete_documents(actor=get_actor(request), documents=[obj])

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Every trace of all of them."""
        with messages_for_errors(request):
            delete_documents(actor=get_actor(request), documents=list(queryset))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """The database cascades, so nothing is collected here."""
        documents = list(objs)
        counts = {
            str(_("Documents")): len(documents),
            str(_("Chunks")): sum(document.chunk_count for document in documents),
        }
        return [str(document) for document in documents], counts, set(), []

    @admin.action(description=gettext_lazy("Process again"), permissions=["change"])
    def process_again(self, request: HttpRequest, queryset: QuerySet[Document]) -> None:
        """Read, cut and embed anew."""
        documents = list(queryset)
        with messages_for_errors(request):
            reprocess_documents(actor=get_actor(request), documents=documents)
            text = ngettext(
                "%(n)d document is processed again.",
                "%(n)d documents are processed again.",
                len(documents),
            )
            messages.success(request, text % {"n": len(documents)})

    @admin.action(
        description=gettext_lazy("Move to another knowledge base"), permissions=["change"]
    )
    def move(self, request: HttpRequest, queryset: QuerySet[Document]) -> HttpResponse:
        """Asks where to."""
        return move_view(self)(request, queryset)

    @admin.display(description=gettext_lazy("state"), ordering="status")
    def state(self, document: Document) -> SafeString:
        """Badge and live progress."""
        return render_to_string("admin/knowledge/document/state_cell.html", state_context(document))

    @admin.display(description=gettext_lazy("coverage"))
    def coverage(self, document: Document) -> SafeString:
        """How much of the source was indexed."""
        return _live("coverage", document, coverage_text(document))

    @admin.display(description=gettext_lazy("chunks"), ordering="chunk_count")
    def chunks(self, document: Document) -> SafeString:
        """Passages."""
        return _live("chunks", document, document.chunk_count)

    @admin.display(description=gettext_lazy("size"), ordering="size")
    def file_size(self, document: Document) -> str:
        """Of the original."""
        return filesizeformat(document.size)


def _live(name: str, document: Document, value: object) -> SafeString:
    return format_html('<span data-live-{}="{}">{}</span>', name, document.id, value)
