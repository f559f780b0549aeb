"""The upload page. With JavaScript each file is a request of its own; without, the form sends them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO, cast
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib.admin import ModelAdmin
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Action, Actor
from accounts.request import get_actor
from config.errors import AppError
from knowledge.access import visible_knowledge_bases
from knowledge.admin.document_actions import BaseChoiceField
from knowledge.admin.document_state import render_state, state_context
from knowledge.admin.service_forms import LinesField
from knowledge.models import KnowledgeBase
from knowledge.services.documents import Added, NewDocument, Outcome, add_document

_OUTCOMES = {
    Outcome.CREATED: gettext_lazy("Added."),
    Outcome.REPLACING: gettext_lazy("A new version is being indexed."),
    Outcome.UPDATED: gettext_lazy("Same content; its facts were updated."),
    Outcome.UNCHANGED: gettext_lazy("This content is in the knowledge base already."),
    Outcome.RETRIED: gettext_lazy("It had failed before and is tried again."),
}


class UploadForm(forms.Form):
    """Into which base, and for whom."""

    base = BaseChoiceField()
    principals = LinesField(
        label=gettext_lazy("Who may find it"),
        initial="public",
        required=False,
        help_text=gettext_lazy(
            "One a line: public (everyone who may use the base), user:mail@example.com or group:name."
        ),
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bases = visible_knowledge_bases(actor).filter(status=KnowledgeBase.Status.ACTIVE)
        self.fields["base"].queryset = bases.order_by("name")  # type: ignore[attr-defined]


def upload_view(model_admin: ModelAdmin[Any]) -> Callable[[HttpRequest], HttpResponse]:
    """The page, for the admin it belongs to."""

    def view(request: HttpRequest) -> HttpResponse:
        actor = get_actor(request)
        actor.require(Action.WRITE)
        form = UploadForm(request.POST or None, actor=actor, initial=_initial(request, actor))
        results: list[dict[str, Any]] = []
        if request.method == "POST" and form.is_valid():
            files = request.FILES.getlist("file")
            results = [_add(actor, form, file) for file in files]
            if not files:
                form.add_error(None, _("Choose one or more files."))
        if request.method == "POST" and request.headers.get("Accept") == "application/json":
            return _json(form, results)
        context = {
            **model_admin.admin_site.each_context(request),
            "title": _("Upload documents"),
            "form": form,
            "results": results,
            "no_bases": not form.fields["base"].queryset.exists(),  # type: ignore[attr-defined]
            "max_bytes": settings.MAX_UPLOAD_BYTES,
        }
        return TemplateResponse(request, "admin/knowledge/document/upload.html", context)

    return view


def _initial(request: HttpRequest, actor: Actor) -> dict[str, Any]:
    """The base named in the address, or the only one there is."""
    bases = visible_knowledge_bases(actor).filter(status=KnowledgeBase.Status.ACTIVE)
    try:
        named = bases.filter(id=UUID(request.GET.get("base", ""))).first()
    except ValueError:
        named = None
    if named is None:
        first = list(bases[:2])
        named = first[0] if len(first) == 1 else None
    return {"base": named, "principals": ["public"]}


def _add(actor: Actor, form: UploadForm, file: UploadedFile[Any]) -> dict[str, Any]:
    """One file's result; a bad one leaves the others whole."""
    name = file.name or ""
    new = NewDocument(filename=name, principals=form.cleaned_data["principals"])
    try:
        with transaction.atomic():
            added = add_document(
                actor=actor,
                base=form.cleaned_data["base"],
                stream=cast(BinaryIO, file.file),
                new=new,
            )
    except AppError as error:
        return {"filename": name, "error": error.message}
    return {
        "filename": name,
        "added": added,
        "message": _OUTCOMES[added.outcome],
        **state_context(added.document),
    }


def _json(form: UploadForm, results: list[dict[str, Any]]) -> JsonResponse:
    if not form.is_valid():
        faults = [fault for faults in form.errors.values() for fault in faults]
        return JsonResponse({"error": " ".join(str(fault) for fault in faults)}, status=400)
    result = results[0]
    if "error" in result:
        return JsonResponse(result, status=400)
    added: Added = result["added"]
    return JsonResponse(
        {
            "filename": result["filename"],
            "message": str(result["message"]),
            "id": str(added.document.id),
            "url": reverse("admin:knowledge_document_change", args=[added.document.id]),
            "html": render_state(added.document),
            "changing": result["is_changing"],
        }
    )
