"""Knowledge bases in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from unfold.widgets import UnfoldAdminTextareaWidget

from accounts.access import Action
from accounts.request import get_actor
from config.errors import InvalidInputError
from knowledge.access import access_knowledge_base, visible_knowledge_bases
from knowledge.admin.embedding_model import embedding_model_state_view, embedding_model_view
from knowledge.admin.service_admin import ServiceAdmin
from knowledge.admin.service_forms import LinesField, ServiceForm, messages_for_errors
from knowledge.counts import with_counts
from knowledge.models import KnowledgeBase
from knowledge.services.knowledge_bases import (
    check_source_boosts,
    create_knowledge_base,
    delete_knowledge_base,
    update_knowledge_base,
)

_DETAILS = "admin:knowledge_knowledgebase_change"


class FactorsField(LinesField):
    """Factors by name, one a line: `wiki: 1.5`."""

    def prepare_value(self, value: Any) -> Any:
        """One a line."""
        if isinstance(value, dict):
            return "\n".join(f"{name}: {factor:g}" for name, factor in sorted(value.items()))
        return value

    def clean(self, value: Any) -> Any:
        """The factors; what is wrong is told of each line."""
        factors, faults = {}, []
        for line in super().clean(value):
            name, _sign, factor = line.replace("：", ":").rpartition(":")
            try:
                factors[name.strip()] = float(factor)
                check_source_boosts({name.strip(): float(factor)})
            except ValueError:
                faults.append(_("%(line)s: write a source, a colon and a number.") % {"line": line})
            except InvalidInputError as error:
                faults += [f"{line}: {fault.message}" for fault in error.errors]
        if faults:
            raise forms.ValidationError(faults)
        return factors


class KnowledgeBaseForm(ServiceForm):
    """Name, address, the settings documents are cut by and what sources count."""

    source_boosts = FactorsField(
        label=_("Boosts of sources"),
        required=False,
        help_text=_(
            "A source and a factor for the scores of its documents, one a line, e.g. wiki: 1.5. From 0.1 "
            "(far down) to 10 (far up); 1 changes nothing. Works at once."
        ),
    )

    class Meta:
        model = KnowledgeBase
        widgets = {"description": UnfoldAdminTextareaWidget(attrs={"rows": 3})}
        fields = (
            "name", "slug", "description", "status", "language", "chunk_size", "chunk_overlap",
            "chunk_separator", "source_boosts",
        )  # fmt: skip

    def write(self, values: dict[str, Any]) -> KnowledgeBase:
        """Create, or change what differs."""
        if self.instance._state.adding:  # noqa: SLF001 - Django documents this attribute
            return create_knowledge_base(actor=self.actor, **values)
        base = access_knowledge_base(self.actor, self.instance.pk, Action.WRITE)
        changed = {name: values[name] for name in self.changed_data}
        return update_knowledge_base(actor=self.actor, base=base, **changed) if changed else base


@admin.register(KnowledgeBase)
class KnowledgeBaseAdmin(ServiceAdmin):
    """The bases of the tenant with what is in them."""

    form = KnowledgeBaseForm
    list_display = ("name", "slug", "state", "documents", "progress", "chunks", "open_links")
    list_filter = ("status",)
    search_fields = ("name", "slug", "description")
    ordering = ("name",)
    readonly_fields = ("embedding_model_link", "created_at", "updated_at")
    change_form_before_template = "admin/knowledge/knowledgebase/form_before.html"
    fieldsets = (
        (None, {"fields": ("name", "slug", "description", "status")}),
        (
            _("How documents are read and cut"),
            {
                "fields": ("language", ("chunk_size", "chunk_overlap"), "chunk_separator"),
                "description": _(
                    "The defaults suit most documents. Changes take effect when a document is "
                    "processed the next time: choose “Process again” in the list of documents."
                ),
            },
        ),
        (_("How results are ranked"), {"fields": ("source_boosts",)}),
        (_("Facts"), {"fields": ("embedding_model_link", "created_at", "updated_at")}),
    )

    def get_urls(self) -> list[URLPattern]:
        """The page of the embedding model beside the usual ones."""
        wrap, name = self.admin_site.admin_view, "knowledge_knowledgebase_embedding_model"
        page, state = wrap(embedding_model_view(self)), wrap(embedding_model_state_view)
        return [
            path("<uuid:pk>/embedding-model/", page, name=name),
            path("<uuid:pk>/embedding-model/state/", state, name=f"{name}_state"),
            *super().get_urls(),
        ]

    def get_queryset(self, request: HttpRequest) -> QuerySet[KnowledgeBase]:
        """The visible bases with their counts, in one query."""
        return with_counts(visible_knowledge_bases(get_actor(request))).order_by("name")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """A new base has no facts yet."""
        fieldsets = super().get_fieldsets(request, obj)
        return fieldsets if obj else fieldsets[:-1]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Says what to do while there is no base."""
        empty = not visible_knowledge_bases(get_actor(request)).exists()
        return super().changelist_view(request, {**(extra_context or {}), "no_bases": empty})

    def delete_model(self, request: HttpRequest, obj: KnowledgeBase) -> None:
        """With everything in it."""
        with messages_for_errors(request):
            delete_knowledge_base(actor=get_actor(request), base=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[KnowledgeBase]) -> None:
        """Each with everything in it."""
        for base in queryset:
            self.delete_model(request, base)

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Says how much goes with a base; the database cascades, so nothing is collected here."""
        bases: list[Any] = list(
            with_counts(visible_knowledge_bases(get_actor(request))).filter(
                id__in=[b.id for b in objs]
            )
        )
        lines = [f"{base.name}: {_contents(base)}" for base in bases]
        counts = {
            str(_("Knowledge bases")): len(bases),
            str(_("Documents")): sum(base.count_documents for base in bases),
            str(_("Chunks")): sum(base.count_chunks for base in bases),
        }
        return lines, counts, set(), []

    @admin.display(description=_("embedding model"))
    def embedding_model_link(self, base: KnowledgeBase) -> SafeString:
        """Its name, and where it is changed."""
        url = reverse("admin:knowledge_knowledgebase_embedding_model", args=[base.id])
        link = '{} · <a class="kb-link" href="{}">{}</a>'
        return format_html(link, base.embedding_model, url, _("Change or roll back"))

    @admin.display(description=_("status"), ordering="status")
    def state(self, base: KnowledgeBase) -> SafeString:
        """Active or archived."""
        kind = "ok" if base.status == KnowledgeBase.Status.ACTIVE else "quiet"
        return format_html(
            '<span class="kb-badge kb-{}">{}</span>', kind, base.get_status_display()
        )

    @admin.display(description=_("documents"), ordering="count_documents")
    def documents(self, base: Any) -> SafeString:
        """How many, as a link to them."""
        return format_html(
            '<a class="kb-link" href="{}">{}</a>', documents_url(base), base.count_documents
        )

    @admin.display(description=_("ready / unfinished / failed"))
    def progress(self, base: Any) -> SafeString:
        """Documents by state."""
        context = {"base": base, "documents_url": documents_url(base)}
        return render_to_string("admin/knowledge/knowledgebase/progress.html", context)

    @admin.display(description=_("chunks"), ordering="count_chunks")
    def chunks(self, base: Any) -> int:
        """Searchable passages."""
        return int(base.count_chunks)

    @admin.display(description="")
    def open_links(self, base: KnowledgeBase) -> SafeString:
        """Where to go from here."""
        return render_to_string("admin/knowledge/knowledgebase/links.html", {"base": base})


def documents_url(base: KnowledgeBase) -> str:
    """The list of a base's documents."""
    return f"{reverse('admin:knowledge_document_changelist')}?knowledge_base__id__exact={base.id}"


def _contents(base: Any) -> str:
    documents = ngettext("%(n)d document", "%(n)d documents", base.count_documents) % {
        "n": base.count_documents
    }
    chunks = ngettext("%(n)d chunk", "%(n)d chunks", base.count_chunks) % {"n": base.count_chunks}
    return f"{documents}, {chunks}"
