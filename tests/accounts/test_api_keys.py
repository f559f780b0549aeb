"""/api/v1/api-keys/ and what a key is worth."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.models import ApiKey, Tenant
from accounts.services.api_keys import find_valid_key
from accounts.tenancy import tenant_scope
from tests.conftest import ApiFactory
from tests.factories import make_key

URL = "/api/v1/api-keys/"
NEW = {"name": "bot", "scopes": ["search", "read"]}


def client_with(text: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def test_the_key_is_shown_once_and_works(api: ApiFactory) -> None:
    answer = api("admin").post(URL, NEW)
    assert answer.status_code == 201
    assert answer["Cache-Control"] == "no-store"
    text, prefix = answer.json()["key"], answer.json()["prefix"]
    assert text.startswith(f"gw_{prefix}_")
    assert client_with(text).get("/api/v1/me/").status_code == 200
    listed = api("admin").get(URL).json()["results"]
    assert prefix in {row["prefix"] for row in listed}
    assert all("key" not in row for row in listed)


def test_the_secret_is_nowhere_in_the_database(tenant: Tenant) -> None:
    key, text = make_key(tenant=tenant)
    secret = text.rsplit("_", 1)[1]
    row = ApiKey.unscoped.filter(id=key.id).values().get()
    assert secret not in str(row)
    assert len(row["secret_hash"]) == 64


def test_a_revoked_key_stops_at_once(api: ApiFactory) -> None:
    issued = api("admin").post(URL, NEW).json()
    assert api("admin").delete(f"{URL}{issued['id']}/").status_code == 204
    answer = client_with(issued["key"]).get("/api/v1/me/")
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == "Bearer"


def test_a_key_ends_when_it_expires(tenant: Tenant) -> None:
    _, text = make_key(tenant=tenant, expires_at=timezone.now() + timedelta(hours=1))
    assert find_valid_key(text) is not None
    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        assert find_valid_key(text) is None


@pytest.mark.parametrize(
    "text", ["", "gw_", "gw__", "gw_abc", "sk_0123_secret", "gw_000000000000_wrong", "gw_\x00_x"]
)
def test_what_is_no_key_opens_nothing(text: str, db: None) -> None:
    assert find_valid_key(text) is None


def test_a_wrong_secret_opens_nothing(tenant: Tenant) -> None:
    key, _ = make_key(tenant=tenant)
    assert find_valid_key(f"gw_{key.prefix}_wrong") is None


def test_checking_costs_the_same_with_500_keys(
    tenant: Tenant, django_assert_num_queries: Any
) -> None:
    _, text = make_key(tenant=tenant)
    find_valid_key(text)  # records the first use
    with tenant_scope(tenant.id):
        ApiKey.objects.bulk_create(
            ApiKey(
                tenant=tenant, name="x", prefix=f"{n:012x}", secret_hash="0" * 64, scopes=["read"]
            )
            for n in range(500)
        )
    with django_assert_num_queries(1):
        assert find_valid_key(text) is not None


def test_a_list_of_any_length_takes_the_same_queries(
    api: ApiFactory, tenant: Tenant, django_assert_max_num_queries: Any
) -> None:
    client = api("admin")
    with tenant_scope(tenant.id):
        ApiKey.objects.bulk_create(
            ApiKey(
                tenant=tenant, name="x", prefix=f"{n:012x}", secret_hash="0" * 64, scopes=["read"]
            )
            for n in range(250)
        )
    client.get("/api/v1/me/")
    queries: CaptureQueriesContext
    with django_assert_max_num_queries(6) as queries:
        first = client.get(URL, {"limit": 200}).json()
    assert queries.captured_queries
    assert len(first["results"]) == 200
    second = client.get(first["next"]).json()
    ids = {row["id"] for row in first["results"]} | {row["id"] for row in second["results"]}
    assert len(ids) == 251
    assert second["next"] is None


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": ""}, "name"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["fly"]}, "scopes.0"),
        ({"knowledge_bases": ["nonsense"]}, "knowledge_bases.0"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
    ],
)
def test_a_fault_names_its_field(api: ApiFactory, change: dict[str, Any], field: str) -> None:
    answer = api("admin").post(URL, {**NEW, **change})
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_bound_key_cannot_issue_an_unbound_one(tenant: Tenant) -> None:
    base = uuid4()
    _, text = make_key(tenant=tenant, scopes=["admin"], knowledge_base_ids=[base])
    client = client_with(text)
    assert client.post(URL, NEW).status_code == 403
    assert client.post(URL, {**NEW, "knowledge_bases": [str(uuid4())]}).status_code == 403
    assert client.post(URL, {**NEW, "knowledge_bases": [str(base)]}).status_code == 201
