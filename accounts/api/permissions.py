"""Every view says which right it needs; a view that says nothing is closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from rest_framework.exceptions import MethodNotAllowed, NotAuthenticated
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from accounts.access import Action, Actor
from config.errors import ForbiddenError

ANY_ACTOR: Final = "any"
Right = Action | Literal["any"]


class ActionPermission(BasePermission):
    """Compares the view's `required_action` or `action_for[method]` with the actor's rights.

    `ANY_ACTOR` opens a route to every authenticated actor. Denials are recorded by the exception handler.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """True, or an error that says what is missing."""
        actor = request.auth
        if not isinstance(actor, Actor):
            raise NotAuthenticated
        method = (request.method or "").lower()
        if method not in view.http_method_names or not hasattr(view, method):
            raise MethodNotAllowed(request.method or "")
        right = needed_right(view, method)
        if right is None:
            raise ForbiddenError("This route declares no right, so it is closed.")
        if isinstance(right, Action):
            actor.require(right)
        return True


def needed_right(view: Any, method: str) -> Right | None:
    """The right a view (class or instance) asks for. HEAD needs what GET needs."""
    required: Right | None = getattr(view, "required_action", None)
    if required is not None:
        return required
    action_for: Mapping[str, Right] = getattr(view, "action_for", {})
    name = method.upper()
    return action_for.get("GET" if name == "HEAD" else name)
