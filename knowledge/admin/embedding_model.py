"""The page on which a base's embedding model is changed, watched, cancelled and rolled back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminSelectWidget

from accounts.access import Action
from accounts.request import get_actor
from config.errors import AppError
from knowledge.access import access_knowledge_base
from knowledge.admin.service_forms import add_app_error, messages_for_errors
from knowledge.api.reembedding import progress_of, warnings_of
from knowledge.models import KnowledgeBase, ReEmbedding
from knowledge.services.reembedding import (
    cancel_reembedding,
    count_too_long,
    discard_spare_vectors,
    find_reembedding,
    kept_until,
    model_before,
    roll_back,
    start_reembedding,
)
from providers.registry import REMOTE_PREFIX, available_models, embedder_for

_PAGE = "admin:knowledge_knowledgebase_embedding_model"
_BADGES = {
    ReEmbedding.Status.QUEUED: "busy",
    ReEmbedding.Status.RUNNING: "busy",
    ReEmbedding.Status.READY: "busy",
    ReEmbedding.Status.SWITCHED: "ok",
    ReEmbedding.Status.FAILED: "bad",
    ReEmbedding.Status.CANCELLED: "quiet",
    ReEmbedding.Status.ROLLED_BACK: "quiet",
}


class ModelForm(forms.Form):
    """Which model to change to."""

    embedding_model = forms.ChoiceField(
        label=gettext_lazy("New embedding model"), widget=UnfoldAdminSelectWidget()
    )

    def __init__(self, *args: Any, base: KnowledgeBase, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [name for name in available_models() if name != base.embedding_model]
        field = self.fields["embedding_model"]
        field.choices = [(name, _description(base, name)) for name in names]  # type: ignore[attr-defined]


def embedding_model_view(model_admin: ModelAdmin[Any]) -> Callable[..., HttpResponse]:
    """The page, for the admin it belongs to."""

    def view(request: HttpRequest, pk: Any) -> HttpResponse:
        base = access_knowledge_base(get_actor(request), pk, Action.READ)
        is_start = request.method == "POST" and request.POST.get("do") == "start"
        form = ModelForm(request.POST if is_start else None, base=base)
        if request.method == "POST" and (not is_start or _start(request, base, form)):
            if not is_start:
                _do(request, base)
            return HttpResponseRedirect(reverse(_PAGE, args=[base.id]))
        context = {
            **model_admin.admin_site.each_context(request),
            **_state(request, base),
            "title": _("Change the embedding model"),
            "subtitle": base.name,
            "form": form,
            "is_remote": any(name.startswith(REMOTE_PREFIX) for name in available_models()),
        }
        return TemplateResponse(
            request, "admin/knowledge/knowledgebase/embedding_model.html", context
        )

    return view


def embedding_model_state_view(request: HttpRequest, pk: Any) -> HttpResponse:
    """The part of the page that changes by itself; once all is done the page is read anew."""
    base = access_knowledge_base(get_actor(request), pk, Action.READ)
    context = _state(request, base)
    response = render(request, "admin/knowledge/knowledgebase/embedding_model_state.html", context)
    if context["job"] is None or not context["job"].is_unfinished:
        response["HX-Refresh"] = "true"
    return response


def _start(request: HttpRequest, base: KnowledgeBase, form: ModelForm) -> bool:
    """Whether a change has begun; if not, the form says why."""
    if not form.is_valid():
        return False
    model = form.cleaned_data["embedding_model"]
    try:
        start_reembedding(actor=get_actor(request), base=base, model=model)
    except AppError as error:
        add_app_error(form, error)
        return False
    return True


def _do(request: HttpRequest, base: KnowledgeBase) -> None:
    actor, wanted = get_actor(request), request.POST.get("do")
    with messages_for_errors(request):
        if wanted == "cancel":
            cancel_reembedding(actor=actor, base=base)
            messages.success(request, _("Cancelled. Search goes on as before."))
        elif wanted == "roll_back":
            job = roll_back(actor=actor, base=base)
            if not job.is_unfinished:
                messages.success(request, _("Search uses %s again.") % job.to_model)
        elif wanted == "discard":
            discard_spare_vectors(actor=actor, base=base)
            messages.success(request, _("The old vectors are being removed."))


def _state(request: HttpRequest, base: KnowledgeBase) -> dict[str, Any]:
    job = find_reembedding(base)
    return {
        "base": base,
        "job": job,
        "badge": _BADGES[ReEmbedding.Status(job.status)] if job else "",
        "progress": progress_of(job) if job else None,
        "remarks": warnings_of(job) if job else [],
        "model_before": model_before(base),
        "kept_until": kept_until(base),
        "may_write": get_actor(request).may(Action.WRITE),
    }


def _description(base: KnowledgeBase, name: str) -> str:
    """The model's name and what matters of it."""
    embedder = embedder_for(name)
    facts = [_("%s numbers a vector") % embedder.dimensions]
    facts.append(_("reads up to %s tokens") % embedder.max_tokens)
    if too_long := count_too_long(base, name):
        text = ngettext("%(n)d passage is longer", "%(n)d passages are longer", too_long)
        facts.append(text % {"n": too_long})
    return f"{name} ({', '.join(facts)})"
