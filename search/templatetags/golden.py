"""Golden queries in templates of the apps below, which may not import this one."""

from __future__ import annotations

from typing import Any

from django import template

from accounts.request import find_actor
from knowledge.models import KnowledgeBase
from search.golden_states import golden_state

register = template.Library()


@register.inclusion_tag("admin/search/goldenquery/badge.html", takes_context=True)
def golden_badge(context: dict[str, Any], base: KnowledgeBase) -> dict[str, Any]:
    """“12 of 13 golden queries green” for those who keep the base; nothing where it has none."""
    request = context.get("request")
    actor = find_actor(request) if request else None
    return {"state": golden_state(actor, base) if actor else None}
