"""The search test: runs a search as the API does and shows why each result ranks where it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from accounts.access import Action, Actor
from accounts.request import get_actor
from config.errors import AppError, InvalidInputError
from knowledge.access import visible_documents, visible_knowledge_bases
from knowledge.admin.chunk import place_of
from knowledge.models import Chunk, KnowledgeBase
from search.admin.why_not_box import Missed, explain_missed
from search.api.serializers import SearchBodySerializer
from search.models import GoldenQuery
from search.request import MAX_LIMIT, MAX_QUERY_CHARS, Mode, Strategy
from search.services.golden import golden_queries_for, wants
from search.services.history import record_search
from search.services.search import Hit, SearchOutcome, search
from search.snippets import make_snippet

_MODES = [
    (Mode.INSTANT.value, gettext_lazy("Instant: the content")),
    (Mode.FILENAME.value, gettext_lazy("File name: names and titles only")),
]
STRATEGIES = [
    (Strategy.HYBRID.value, gettext_lazy("Hybrid: words and meaning")),
    (Strategy.LEXICAL.value, gettext_lazy("Lexical: words only")),
    (Strategy.SEMANTIC.value, gettext_lazy("Semantic: meaning only")),
]
# The form's name of each field of the API's body.
_FIELDS = {"knowledge_bases": "bases", "as_principals": "as_principals"}


class FilterField(forms.JSONField):
    """JSON, or nothing."""

    def prepare_value(self, value: Any) -> Any:
        """No filter is an empty field."""
        return "" if value is None else super().prepare_value(value)


class SearchTestForm(forms.Form):
    """The parameters of a search; whatever is left empty has the API's default."""

    query = forms.CharField(
        label=gettext_lazy("Query"),
        max_length=MAX_QUERY_CHARS,
        widget=UnfoldAdminTextInputWidget(attrs={"autofocus": True, "type": "search"}),
    )
    bases = forms.MultipleChoiceField(
        label=gettext_lazy("Knowledge bases"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
        help_text=gettext_lazy("None chosen: all that are active."),
    )
    mode = forms.ChoiceField(
        label=gettext_lazy("Mode"), choices=_MODES, required=False, widget=UnfoldAdminSelectWidget()
    )
    strategy = forms.ChoiceField(
        label=gettext_lazy("Strategy"),
        choices=STRATEGIES,
        required=False,
        widget=UnfoldAdminSelectWidget(),
    )
    limit = forms.IntegerField(
        label=gettext_lazy("Results"),
        required=False,
        initial=10,
        min_value=1,
        max_value=MAX_LIMIT,
        widget=UnfoldAdminIntegerFieldWidget(),
    )
    as_principals = forms.CharField(
        label=gettext_lazy("On behalf of"),
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text=gettext_lazy(
            "Principals, separated by commas: user:mail@example.com, group:sales."
        ),
    )
    filter = FilterField(
        label=gettext_lazy("Filter"),
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3, "spellcheck": "false"}),
        help_text=gettext_lazy(
            'As in the API, e.g. {"field": "language", "op": "eq", "value": "en"}'
        ),
    )

    missed = forms.CharField(
        label=gettext_lazy("Passage or document"),
        required=False,
        widget=UnfoldAdminTextInputWidget(),
        help_text=gettext_lazy(
            "A title, a file name, an id, or the address of the document's or chunk's page: the "
            "search then says why it is not among the results."
        ),
    )

    def __init__(self, *args: Any, actor: Actor, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        bases = (
            visible_knowledge_bases(actor)
            .filter(status=KnowledgeBase.Status.ACTIVE)
            .order_by("name")
        )
        self.fields["bases"].choices = list(bases.values_list("slug", "name"))  # type: ignore[attr-defined]

    def body(self) -> dict[str, Any]:
        """What the API would have been sent."""
        values = self.cleaned_data
        principals = [part.strip() for part in values["as_principals"].split(",") if part.strip()]
        asked = {
            "query": values["query"],
            "knowledge_bases": values["bases"],
            "mode": values["mode"],
            "strategy": values["strategy"],
            "limit": values["limit"],
            "filter": values["filter"],
            "as_principals": principals,
        }
        return {name: value for name, value in asked.items() if value}


@dataclass(frozen=True, slots=True)
class Leg:
    """Where a result ranked in one leg."""

    name: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Result:
    """One result as the page shows it; `snippet` is escaped."""

    rank: int
    chunk: Chunk
    snippet: SafeString
    place: str
    score: float
    legs: list[Leg]
    boost: float
    golden: GoldenQuery | None  # the golden query that wants this passage for this question


def search_test_view(model_admin: ModelAdmin[Any]) -> Callable[[HttpRequest], HttpResponse]:
    """The page, for the admin it belongs to."""

    def view(request: HttpRequest) -> HttpResponse:
        actor = get_actor(request)
        actor.require(Action.SEARCH)
        asked = "query" in request.GET
        form = SearchTestForm(
            _with_defaults(request) if asked else None,
            actor=actor,
            initial={"bases": request.GET.getlist("bases")},
        )
        outcome = _run(actor, form) if asked and form.is_valid() else None
        context = {
            **model_admin.admin_site.each_context(request),
            "title": _("Search test"),
            "form": form,
            "outcome": outcome,
            "results": _results(actor, outcome) if outcome else [],
            "may_save": outcome is not None and _may_save(actor, outcome),
            "filter": json.dumps(form.cleaned_data["filter"]) if outcome else "",
            "missed": _missed(actor, form, outcome) if outcome else None,
            "timings": list(outcome.timings_ms.items()) if outcome else [],
            "has_documents": visible_documents(actor).exists(),
        }
        return TemplateResponse(request, "admin/search/test.html", context)

    return view


def _with_defaults(request: HttpRequest) -> Any:
    """A linked search may name the query only; the form then shows what applied."""
    data = request.GET.copy()
    for name, value in (
        ("mode", Mode.INSTANT),
        ("strategy", Strategy.HYBRID),
        ("limit", "10"),
        ("filter", ""),
    ):
        if not data.get(name):
            data[name] = str(value)
    return data


def _run(actor: Actor, form: SearchTestForm) -> SearchOutcome | None:
    """The search, recorded like any other; a refusal becomes the form's error."""
    asked = form.body()
    body = SearchBodySerializer(data=asked)
    if not body.is_valid():
        for name, faults in body.errors.items():
            _add_error(form, name, " ".join(str(fault) for fault in faults))
        return None
    try:
        outcome = search(actor, body.to_request())
    except InvalidInputError as error:
        for fault in error.errors:
            _add_error(form, fault.field, fault.message)
        if not error.errors:
            form.add_error(None, error.message)
        return None
    except AppError as error:
        form.add_error(None, error.message)
        return None
    record_search(actor, outcome, json.loads(json.dumps(asked)))
    return outcome


def _missed(actor: Actor, form: SearchTestForm, outcome: SearchOutcome) -> Missed | None:
    values = form.cleaned_data
    if not values["missed"]:
        return None
    return explain_missed(actor, outcome.request, values["filter"], values["missed"])


def _add_error(form: SearchTestForm, name: str, message: str) -> None:
    """`filter.and[0].op` belongs to the field `filter`."""
    top = name.split(".", maxsplit=1)[0].split("[", maxsplit=1)[0]
    field = _FIELDS.get(top, top)
    where = f"{name}: " if name != top else ""
    form.add_error(field if field in form.fields else None, f"{where}{message}")


def _may_save(actor: Actor, outcome: SearchOutcome) -> bool:
    """Golden queries ask for content."""
    return actor.may(Action.WRITE) and outcome.request.mode is Mode.INSTANT


def _results(actor: Actor, outcome: SearchOutcome) -> list[Result]:
    golden = golden_queries_for(actor, outcome.request.query) if actor.may(Action.WRITE) else []
    return [_result(rank, hit, outcome, golden) for rank, hit in enumerate(outcome.hits, start=1)]


def _result(rank: int, hit: Hit, outcome: SearchOutcome, golden: Sequence[GoldenQuery]) -> Result:
    snippet = make_snippet(hit.chunk.content, outcome.terms, outcome.languages)
    return Result(
        rank=outcome.request.offset + rank,
        chunk=hit.chunk,
        snippet=mark_safe(snippet),  # noqa: S308 - make_snippet escapes all but its <mark>s
        place=place_of(hit.chunk),
        score=hit.fused.score,
        legs=[Leg(name, place, score) for name, (place, score) in sorted(hit.fused.legs.items())],
        boost=hit.boost,
        golden=next((query for query in golden if wants(query, hit.chunk)), None),
    )
