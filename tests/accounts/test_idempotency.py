"""`Idempotency-Key` on writes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from accounts.api import idempotency
from accounts.models import ApiKey, IdempotencyRecord, Invitation, Tenant
from tests.conftest import ApiFactory

URL = "/api/v1/members/"
BODY = {"email": "new@acme.example", "role": "viewer"}


def post(client: Any, body: Any = BODY, key: str = "k1", url: str = URL) -> Any:
    return client.post(url, body, headers={"Idempotency-Key": key})


def test_a_repeated_write_is_answered_again_and_done_once(
    api: ApiFactory, mailoutbox: list[Any], django_capture_on_commit_callbacks: Any
) -> None:
    client = api("admin")
    with django_capture_on_commit_callbacks(execute=True):
        first, second = post(client), post(client)
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert second["Idempotency-Replayed"] == "true"
    assert len(mailoutbox) == 1


def test_the_same_key_with_another_body_is_refused(api: ApiFactory) -> None:
    client = api("admin")
    post(client)
    answer = post(client, {**BODY, "role": "editor"})
    assert answer.status_code == 422
    assert answer["Content-Type"] == "application/problem+json"


def test_another_actor_has_keys_of_their_own(api: ApiFactory) -> None:
    post(api("admin"))
    answer = post(api("admin"), {"email": "other@acme.example", "role": "viewer"})
    assert answer.status_code == 201


def test_a_request_still_at_work_is_a_conflict(api: ApiFactory) -> None:
    client = api("admin")
    post(client)
    IdempotencyRecord.unscoped.update(completed_at=None, body=None)
    assert post(client).status_code == 409


def test_a_request_whose_process_died_can_be_sent_again(api: ApiFactory) -> None:
    client = api("admin")
    post(client)
    IdempotencyRecord.unscoped.update(
        completed_at=None, body=None, claimed_at=timezone.now() - timedelta(hours=1)
    )
    assert post(client).status_code == 201


def test_after_a_day_the_key_is_fresh(api: ApiFactory) -> None:
    client = api("admin")
    post(client)
    with time_machine.travel(timezone.now() + timedelta(hours=25), tick=True):
        answer = post(client, {**BODY, "role": "editor"})
    assert answer.status_code == 201
    assert IdempotencyRecord.unscoped.count() == 1


def test_an_error_frees_the_key(api: ApiFactory) -> None:
    client = api("admin")
    assert post(client, {"email": "nonsense", "role": "viewer"}).status_code == 400
    assert IdempotencyRecord.unscoped.count() == 0
    assert post(client).status_code == 201


def test_a_secret_answer_is_not_kept(api: ApiFactory) -> None:
    client = api("admin")
    body = {"name": "bot", "scopes": ["read"]}
    first = post(client, body, url="/api/v1/api-keys/")
    again = post(client, body, url="/api/v1/api-keys/")
    assert (first.status_code, again.status_code) == (201, 409)
    assert ApiKey.unscoped.filter(name="bot").count() == 1
    record = IdempotencyRecord.unscoped.get()
    assert record.body is None


def test_the_answer_is_kept_only_if_the_write_is(
    api: ApiFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: Any, **_options: Any) -> None:
        raise RuntimeError("disk full")

    monkeypatch.setattr(idempotency, "complete", fail)
    client = api("admin")
    assert post(client).status_code == 500
    assert Invitation.unscoped.count() == 0


def test_an_overlong_key_is_refused(api: ApiFactory) -> None:
    answer = post(api("admin"), key="x" * 300)
    assert answer.status_code == 400


def test_files_are_compared_by_their_content(api: ApiFactory, tenant: Tenant) -> None:
    client = api("admin")

    def send(content: bytes) -> int:
        file = SimpleUploadedFile("a.txt", content)
        answer = client.post(
            "/api/v1/knowledge-bases/none/documents/",
            {"file": file},
            format="multipart",
            headers={"Idempotency-Key": "file"},
        )
        return int(answer.status_code)

    assert send(b"one") == 404
    assert send(b"two") == 404, "an error frees the key"
