"""What the pages about sources have in common."""

from __future__ import annotations

from typing import ClassVar

from django.http import HttpRequest

from accounts.access import Action
from accounts.admin_base import TenantAdmin
from accounts.request import find_actor


class SourceAdmin(TenantAdmin):
    """For those who keep documents; readers do not see where they come from."""

    view_action: ClassVar[Action | None] = Action.WRITE
    list_per_page = 50
    show_full_result_count = False

    class Media:
        css = {"all": ["css/knowledge.css", "css/connectors.css"]}
        js = ["js/live.js"]


def may_keep_sources(request: HttpRequest) -> bool:
    """Whether the sidebar shows the sources to this person."""
    actor = find_actor(request)
    return actor is not None and actor.may(Action.WRITE)
