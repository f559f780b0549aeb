"""The gallery: every connector as a card, to be found by words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.access import Action
from accounts.request import get_actor
from connectors.admin.specs import find_connector
from connectors.base import Capability, ConnectorSpec
from connectors.registry import kinds

CAPABILITY_WORDS: dict[Capability, Promise] = {
    Capability.INCREMENTAL: gettext_lazy("Fetches only changes"),
    Capability.DELETIONS: gettext_lazy("Notices deletions"),
    Capability.FILES: gettext_lazy("Reads files"),
    Capability.ACCESS_CONTROL: gettext_lazy("Keeps permissions"),
    Capability.LIVE_SEARCH: gettext_lazy("Can be searched live"),
    Capability.BROWSE: gettext_lazy("Shows its places"),
    Capability.WEBHOOKS: gettext_lazy("Reports changes at once"),
    Capability.AGENTIC_DISCOVERY: gettext_lazy("Offers tools to agents"),
}


@dataclass(frozen=True, slots=True)
class Card:
    """One connector; `words` is what the search looks in."""

    spec: ConnectorSpec
    capabilities: list[Promise]
    words: str


def gallery_view(model_admin: ModelAdmin[Any]) -> Callable[[HttpRequest], HttpResponse]:
    """The page, for the admin it belongs to."""

    def view(request: HttpRequest) -> HttpResponse:
        get_actor(request).require(Action.WRITE)
        wanted = request.GET.get("q", "").strip()
        cards = [card for card in _cards() if _fits(card, wanted)]
        context = {
            **model_admin.admin_site.each_context(request),
            "title": _("Connector gallery"),
            "wanted": wanted,
            "categories": [
                (category, list(group))
                for category, group in groupby(cards, key=lambda card: card.spec.category)
            ],
        }
        return TemplateResponse(request, "admin/connectors/gallery.html", context)

    return view


def capability_words(kind: str) -> list[Promise]:
    """What a connector can do, in plain words and a fixed order."""
    connector = find_connector(kind)
    capabilities = connector.capabilities() if connector else frozenset()
    return [words for capability, words in CAPABILITY_WORDS.items() if capability in capabilities]


def _cards() -> Iterator[Card]:
    specs = [connector.spec for kind in kinds() if (connector := find_connector(kind))]
    for spec in sorted(specs, key=lambda spec: (spec.category.casefold(), spec.name.casefold())):
        capabilities = capability_words(spec.kind)
        told = [spec.name, spec.kind, spec.description, spec.category, *map(str, capabilities)]
        yield Card(spec, capabilities, " ".join(told).casefold())


def _fits(card: Card, wanted: str) -> bool:
    return all(word in card.words for word in wanted.casefold().split())
