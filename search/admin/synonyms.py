"""Synonyms in the admin."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from accounts.access import Action
from accounts.request import get_actor
from knowledge.access import visible_knowledge_bases
from knowledge.admin.service_admin import ServiceAdmin
from knowledge.admin.service_forms import LinesField, ServiceForm, messages_for_errors
from knowledge.models import KnowledgeBase
from search.models import SynonymSet
from search.services.synonyms import (
    EDITABLE,
    access_synonym_set,
    change_synonym_set,
    create_synonym_set,
    delete_synonym_set,
    visible_synonym_sets,
)


class SynonymSetForm(ServiceForm):
    """A set; one term a line."""

    terms = LinesField(
        label=gettext_lazy("Terms"),
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 6}),
        help_text=gettext_lazy(
            "Words or short phrases that mean the same, one a line: PTO, paid time off, 年假. Case, "
            "width and traditional or simplified characters make no difference."
        ),
    )
    knowledge_base = forms.ModelChoiceField(
        label=gettext_lazy("Knowledge base"),
        queryset=KnowledgeBase.unscoped.none(),
        required=False,
        empty_label=gettext_lazy("All knowledge bases"),
        widget=UnfoldAdminSelectWidget(),
        help_text=gettext_lazy("Where it holds: in one knowledge base, or in all."),
    )

    class Meta:
        model = SynonymSet
        fields = EDITABLE
        widgets = {"note": UnfoldAdminTextareaWidget(attrs={"rows": 2})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bases = visible_knowledge_bases(self.actor).order_by("name")
        self.fields["knowledge_base"].queryset = bases  # type: ignore[attr-defined]

    def write(self, values: dict[str, Any]) -> SynonymSet:
        """Create, or change what differs."""
        if self.instance._state.adding:  # noqa: SLF001 - Django documents this attribute
            return create_synonym_set(actor=self.actor, **values)
        synonyms = access_synonym_set(self.actor, self.instance.pk)
        changed = {
            name: values[name] for name in EDITABLE if getattr(synonyms, name) != values[name]
        }
        if not changed:
            return synonyms
        return change_synonym_set(actor=self.actor, synonyms=synonyms, **changed)


@admin.register(SynonymSet)
class SynonymSetAdmin(ServiceAdmin):
    """The synonyms of the tenant."""

    view_action = Action.WRITE
    form = SynonymSetForm
    list_display = ("words", "where", "state", "note", "updated_at")
    list_filter = ("knowledge_base", "enabled")
    search_fields = ("terms", "note")
    search_help_text = gettext_lazy("Search terms and notes")
    ordering = ("-created_at", "-id")
    list_per_page = 50
    readonly_fields = ("created_by", "created_at", "updated_at")
    fieldsets = (
        (
            None,
            {
                "fields": ("terms", "one_way", "knowledge_base", "enabled", "note"),
                "description": gettext_lazy(
                    "A search for one of the terms also finds passages with the others, a little "
                    "further down than those with the very word. It holds from the next search on."
                ),
            },
        ),
        (gettext_lazy("Facts"), {"fields": ("created_by", ("created_at", "updated_at"))}),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[SynonymSet]:
        """Those that the person keeps."""
        return visible_synonym_sets(get_actor(request))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """A new set has no facts yet."""
        fieldsets = super().get_fieldsets(request, obj)
        return fieldsets if obj else fieldsets[:-1]

    def delete_model(self, request: HttpRequest, obj: SynonymSet) -> None:
        """By the service."""
        with messages_for_errors(request):
            delete_synonym_set(actor=get_actor(request), synonyms=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[SynonymSet]) -> None:
        """Each by the service."""
        for synonyms in queryset:
            self.delete_model(request, synonyms)

    @admin.display(description=gettext_lazy("terms"), ordering="terms")
    def words(self, synonyms: SynonymSet) -> str:
        """How they lead to each other."""
        first, *others = synonyms.terms
        if synonyms.one_way:
            return f"{first} → {', '.join(others)}"
        return " = ".join(synonyms.terms)

    @admin.display(description=gettext_lazy("where"), ordering="knowledge_base")
    def where(self, synonyms: SynonymSet) -> str:
        """The base, or all."""
        return str(synonyms.knowledge_base or _("All knowledge bases"))

    @admin.display(description=gettext_lazy("state"), ordering="enabled")
    def state(self, synonyms: SynonymSet) -> SafeString:
        """On or off."""
        kind, label = ("ok", _("On")) if synonyms.enabled else ("quiet", _("Off"))
        return format_html('<span class="kb-badge kb-{}">{}</span>', kind, label)
