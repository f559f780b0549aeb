"""Moving documents: the page that asks where to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.access import Action, Actor
from accounts.request import get_actor
from knowledge.access import visible_documents, visible_knowledge_bases
from knowledge.admin.service_forms import messages_for_errors
from knowledge.models import Document, KnowledgeBase
from knowledge.services.documents import move_documents


class BaseChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]
    """One of the bases the actor may use."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            queryset=KnowledgeBase.unscoped.none(),
            label=gettext_lazy("Knowledge base"),
            widget=UnfoldAdminSelectWidget(),
            empty_label=gettext_lazy("Choose a knowledge base"),
            **kwargs,
        )


class MoveForm(forms.Form):
    """Where to."""

    base = BaseChoiceField()

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["base"].queryset = visible_knowledge_bases(actor).order_by("name")  # type: ignore[attr-defined]


def move_view(model_admin: ModelAdmin[Any]) -> Callable[..., HttpResponse]:
    """The page; the action shows it with the selected documents, its own form posts to it."""

    def view(request: HttpRequest, selected: QuerySet[Document] | None = None) -> HttpResponse:
        actor = get_actor(request)
        actor.require(Action.WRITE)
        documents = list(_posted(request, actor) if selected is None else selected)
        form = MoveForm(request.POST if selected is None and request.POST else None, actor=actor)
        if form.is_valid():
            with messages_for_errors(request):
                base = form.cleaned_data["base"]
                moved = move_documents(actor=actor, documents=documents, base=base)
                _tell(request, moved, len(documents) - moved, base)
            return HttpResponseRedirect(reverse("admin:knowledge_document_changelist"))
        context = {
            **model_admin.admin_site.each_context(request),
            "title": _("Move to another knowledge base"),
            "form": form,
            "documents": documents,
            "checkbox": ACTION_CHECKBOX_NAME,
        }
        return TemplateResponse(request, "admin/knowledge/document/move.html", context)

    return view


def _posted(request: HttpRequest, actor: Actor) -> QuerySet[Document]:
    try:
        return visible_documents(actor).filter(id__in=request.POST.getlist(ACTION_CHECKBOX_NAME))
    except ValidationError:  # an id that is none
        return visible_documents(actor).none()


def _tell(request: HttpRequest, moved: int, left: int, base: KnowledgeBase) -> None:
    if moved:
        text = ngettext(
            "%(n)d document moves to %(base)s and is indexed there.",
            "%(n)d documents move to %(base)s and are indexed there.",
            moved,
        )
        messages.success(request, text % {"n": moved, "base": base})
    if left:
        text = ngettext(
            "%(n)d document stays where it is: %(base)s has it already.",
            "%(n)d documents stay where they are: %(base)s has them already.",
            left,
        )
        messages.warning(request, text % {"n": left, "base": base})
