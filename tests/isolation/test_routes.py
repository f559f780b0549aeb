"""Every route × method × role or scope × tenant, read from the URL resolver."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.response import Response

from accounts.access import ROLE_ACTIONS, Action
from accounts.api.permissions import ANY_ACTOR, needed_right
from accounts.models import AuditEvent, Membership, Role, Scope, Tenant
from accounts.tenancy import tenant_scope
from config import urls
from tests.conftest import ApiFactory, BrowserFactory
from tests.factories import make_membership
from tests.isolation.rights import OPEN_ROUTES, ROUTES

pytestmark = pytest.mark.django_db

PREFIX = "/api/v1/"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
ACTIONS_OF_SCOPE = {
    scope: frozenset(Action) if scope == Scope.ADMIN else frozenset({scope.value})
    for scope in Scope
}
CALLS = [(route, method) for route, known in ROUTES.items() for method in known.rights]
OBJECT_CALLS = [(route, method) for route, method in CALLS if ROUTES[route].make]


def _patterns(resolver: URLResolver, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            yield path, entry.callback
        else:
            yield from _patterns(entry, path)


def _api_views() -> dict[str, Any]:
    start = PREFIX.lstrip("/")
    return {
        path.removeprefix(start): view
        for path, view in _patterns(get_resolver())
        if path.startswith(start)
    }


def _methods(view: Any) -> set[str]:
    if actions := getattr(view, "actions", None):
        return {name.upper() for name in actions} - {"HEAD"}
    return {name for name in METHODS if hasattr(view.cls, name.lower())}


def _address(route: str, identity: UUID) -> str:
    return PREFIX + re.sub(r"<\w+:\w+>", ROUTES[route].name or str(identity), route)


def _call(client: Any, route: str, method: str, identity: UUID) -> Response:
    body = dict(ROUTES[route].body) if method not in {"GET", "DELETE"} else None
    answer: Response = client.generic(
        method,
        _address(route, identity),
        data="" if body is None else json.dumps(body),
        content_type="application/json",
    )
    return answer


def test_every_route_and_method_declares_its_right() -> None:
    assert urls.api_v1
    found = {
        path: {method: needed_right(_with_initkwargs(view), method) for method in _methods(view)}
        for path, view in _api_views().items()
        if path not in OPEN_ROUTES
    }
    assert found == {path: dict(route.rights) for path, route in ROUTES.items()}


def test_open_routes_know_of_no_actor() -> None:
    views = _api_views()
    for path in OPEN_ROUTES:
        view = views[path].cls
        assert (view.authentication_classes, view.permission_classes) == ((), ())


def _with_initkwargs(view: Any) -> Any:
    return type(view.cls.__name__, (view.cls,), dict(getattr(view, "initkwargs", {})))


@pytest.mark.parametrize(("route", "method"), CALLS)
def test_a_role_opens_what_it_gives_and_nothing_else(
    route: str, method: str, tenant: Tenant, browser: BrowserFactory
) -> None:
    right = ROUTES[route].rights[method]
    for role in Role:
        client = browser(make_membership(tenant=tenant, role=role))
        status = _call(client, route, method, uuid4()).status_code
        allowed = right == ANY_ACTOR or right in ROLE_ACTIONS[role]
        _check(status, allowed=allowed, route=route)


@pytest.mark.parametrize(("route", "method"), CALLS)
def test_a_scope_opens_what_it_gives_and_nothing_else(
    route: str, method: str, api: ApiFactory
) -> None:
    right = ROUTES[route].rights[method]
    for scope, actions in ACTIONS_OF_SCOPE.items():
        status = _call(api(scope), route, method, uuid4()).status_code
        _check(status, allowed=right == ANY_ACTOR or right in actions, route=route)


def _check(status: int, *, allowed: bool, route: str) -> None:
    if not allowed:
        assert status == 403
    elif ROUTES[route].make:
        assert status == 404
    else:
        assert status in {200, 201, 202, 400}


@pytest.mark.parametrize(("route", "method"), CALLS)
def test_nobody_gets_401(route: str, method: str, client: Any) -> None:
    assert _call(client, route, method, uuid4()).status_code == 401


@pytest.mark.parametrize(("route", "method"), OBJECT_CALLS)
def test_a_foreign_object_reads_like_no_object(
    route: str, method: str, tenant: Tenant, stranger: Membership, api: ApiFactory
) -> None:
    make = ROUTES[route].make
    assert make is not None
    foreign = make(tenant)
    client = api(*Scope, tenant=stranger.tenant)
    answers = [_call(client, route, method, identity) for identity in (foreign, uuid4())]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].content == answers[1].content
    assert answers[0]["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(("route", "method"), OBJECT_CALLS)
def test_the_object_is_there_for_its_own_tenant(
    route: str, method: str, tenant: Tenant, api: ApiFactory
) -> None:
    make = ROUTES[route].make
    assert make is not None
    assert _call(api(*Scope), route, method, make(tenant)).status_code != 404


def test_a_denial_is_recorded(tenant: Tenant, api: ApiFactory) -> None:
    assert api("search").get("/api/v1/members/").status_code == 403
    with tenant_scope(tenant.id):
        event = AuditEvent.objects.get(denied=True)
    assert (event.action, event.target) == ("api.GET", "/api/v1/members/")
    assert event.actor.startswith("key test (gw_")
