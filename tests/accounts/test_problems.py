"""Every error is an RFC 9457 problem document."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.exceptions import ValidationError as DjangoValidationError
from django.test import Client
from rest_framework.exceptions import Throttled, ValidationError

from accounts.access import Action
from accounts.api import resources
from accounts.api.permissions import needed_right
from accounts.api.problems import bad_request, permission_denied, problem_response, server_error
from accounts.api.views import TenantAPIView
from accounts.models import AuditEvent, Membership, Tenant
from config.errors import RateLimitedError
from tests.conftest import ApiFactory


def body_of(answer: Any) -> Any:
    import json

    assert answer["Content-Type"] == "application/problem+json"
    body = json.loads(answer.content)
    assert body["status"] == answer.status_code
    assert {"type", "title", "status", "detail"} <= set(body)
    return body


def answer_to(error: Exception) -> Any:
    return problem_response(error, {"request": None})


def test_unknown_routes(client: Client, db: None) -> None:
    answer = client.get("/api/v1/nonsense/")
    assert answer.status_code == 404
    assert body_of(answer)["title"] == "Not found"
    assert client.get("/nonsense/")["Content-Type"].startswith("text/html")


def test_unknown_methods(api: ApiFactory) -> None:
    answer = api("admin").put("/api/v1/me/", {})
    assert answer.status_code == 405
    assert answer["Allow"] == "GET, HEAD"
    body_of(answer)


def test_unknown_media_types(api: ApiFactory) -> None:
    answer = api("admin").generic("POST", "/api/v1/api-keys/", "<a/>", "application/xml")
    assert answer.status_code == 415
    body_of(answer)


def test_broken_json(api: ApiFactory) -> None:
    answer = api("admin").generic("POST", "/api/v1/api-keys/", "{", "application/json")
    assert answer.status_code == 400
    assert "JSON" in body_of(answer)["detail"]


def test_nested_faults_have_dotted_names() -> None:
    error = ValidationError(
        {"a": {"b": ["x"]}, "list": [{}, {"c": ["y", "z"]}], "non_field_errors": ["general"]}
    )
    assert body_of(answer_to(error))["errors"] == [
        {"field": "a.b", "message": "x"},
        {"field": "list.1.c", "message": "y"},
        {"field": "list.1.c", "message": "z"},
        {"field": "", "message": "general"},
    ]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DjangoValidationError({"name": ["wrong"]}), 400),
        (DjangoValidationError("wrong"), 400),
        (PermissionDenied(), 403),
        (SuspiciousOperation(), 400),
        (RequestDataTooBig(), 413),
        (RuntimeError("secret detail"), 500),
    ],
)
def test_errors_of_others_become_problems(error: Exception, status: int) -> None:
    answer = answer_to(error)
    assert answer.status_code == status
    assert "secret detail" not in str(body_of(answer))


@pytest.mark.parametrize("error", [Throttled(wait=7.2), RateLimitedError("Slowly.", 7.2)])
def test_waiting_times_are_told(error: Exception) -> None:
    answer = answer_to(error)
    body_of(answer)
    assert answer["Retry-After"] in {"7", "8"}


def test_django_handlers_speak_problem_under_api_only(rf: Any) -> None:
    for path, kind in (("/api/v1/x/", "application/problem+json"), ("/x/", "text/html")):
        request = rf.get(path)
        for answer, status in (
            (bad_request(request, SuspiciousOperation()), 400),
            (permission_denied(request, PermissionDenied()), 403),
            (server_error(request), 500),
        ):
            assert answer.status_code == status
            assert answer["Content-Type"].startswith(kind)


def test_a_view_without_declaration_is_closed(
    api: ApiFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources.MeView, "required_action", None)
    answer = api("admin").get("/api/v1/me/")
    assert answer.status_code == 403
    assert "declares no right" in body_of(answer)["detail"]


def test_head_needs_what_get_needs() -> None:
    class View(TenantAPIView):
        action_for = {"GET": Action.READ}

    assert needed_right(View, "head") == Action.READ
    assert needed_right(View, "post") is None


def test_an_error_rolls_the_write_back(
    api: ApiFactory, tenant: Tenant, admin: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("after the write")

    monkeypatch.setattr(resources, "InvitationSerializer", fail)
    client = api("admin")
    answer = client.post("/api/v1/members/", {"email": "n@example.com", "role": "viewer"})
    assert answer.status_code == 500
    body_of(answer)
    assert not AuditEvent.unscoped.filter(action="member.invited").exists()
