"""Telling other programs what happens: over real sockets, verified with the library receivers use."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from standardwebhooks import Webhook, WebhookVerificationError

from accounts import tasks
from accounts.access import Actor, actor_for_key, actor_for_member, operator_actor
from accounts.models import (
    AuditEvent,
    Membership,
    Tenant,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookEvent,
)
from accounts.services.webhook_delivery import due_deliveries, forget_old_deliveries
from accounts.services.webhooks import (
    create_webhook,
    emit_event,
    replay_delivery,
    rotate_webhook_secrets,
    update_webhook,
)
from accounts.tenancy import new_id, tenant_scope
from config.errors import ConflictError, ForbiddenError, InvalidInputError
from tests.conftest import ApiFactory, BrowserFactory
from tests.factories import make_key
from tests.loopback import Answer, LoopbackServer, loopback_server

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

FAILED, READY = WebhookEvent.SYNC_FAILED, WebhookEvent.DOCUMENT_READY


@pytest.fixture
def receiver(settings: Any) -> Iterator[LoopbackServer]:
    """A receiver that the operator has opened."""
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    with loopback_server() as running:
        yield running


@pytest.fixture
def actor(tenant: Tenant) -> Actor:
    return operator_actor(tenant.id)


class Sender:
    """Emits in a tenant and works off what was queued."""

    def __init__(self, actor: Actor, commits: Any, monkeypatch: Any) -> None:
        self.actor, self._commits = actor, commits
        self.queued: list[tuple[str, str]] = []
        monkeypatch.setattr(
            tasks.deliver_webhook_task, "delay", lambda *ids: self.queued.append(ids)
        )

    def make(self, receiver: LoopbackServer, *events: str) -> tuple[WebhookEndpoint, str]:
        with tenant_scope(self.actor.tenant_id):
            return create_webhook(
                actor=self.actor, url=f"{receiver.url}/hook", event_types=events or [FAILED]
            )

    def emit(self, event: WebhookEvent = FAILED, **data: Any) -> None:
        with self._commits(execute=True), tenant_scope(self.actor.tenant_id):
            emit_event(self.actor.tenant_id, event, data)

    def work(self) -> None:
        waiting, self.queued = self.queued, []
        for ids in waiting:
            tasks.deliver_webhook_task.run(*ids)

    def delivery(self) -> WebhookDelivery:
        with tenant_scope(self.actor.tenant_id):
            found: WebhookDelivery = WebhookDelivery.objects.select_related("endpoint").get()
        return found

    def endpoint(self) -> WebhookEndpoint:
        with tenant_scope(self.actor.tenant_id):
            found: WebhookEndpoint = WebhookEndpoint.objects.get()
        return found


@pytest.fixture
def sender(actor: Actor, django_capture_on_commit_callbacks: Any, monkeypatch: Any) -> Sender:
    return Sender(actor, django_capture_on_commit_callbacks, monkeypatch)


# --- sending -------------------------------------------------------------------------------------


def test_an_event_arrives_signed(receiver: LoopbackServer, sender: Sender) -> None:
    _, secret = sender.make(receiver, FAILED, READY)
    sender.emit(READY, title="苍鹭")
    sender.work()
    asked = receiver.asked[0]
    assert (asked.method, asked.path) == ("POST", "/hook")
    message = Webhook(secret).verify(asked.body, dict(asked.headers))
    assert (message["type"], message["data"]) == ("document.ready", {"title": "苍鹭"})
    assert asked.headers["webhook-id"].startswith("msg_")
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(asked.body.replace(b"ready", b"READY"), dict(asked.headers))
    found = sender.delivery()
    assert (found.status, found.status_code, found.attempts) == ("succeeded", 200, 1)
    assert found.next_attempt_at is None


def test_only_those_that_want_it_are_told(
    receiver: LoopbackServer, sender: Sender, stranger: Membership
) -> None:
    endpoint, _ = sender.make(receiver, READY)
    sender.emit(FAILED)
    with tenant_scope(stranger.tenant_id):
        emit_event(stranger.tenant_id, READY, {})
    with tenant_scope(sender.actor.tenant_id):
        update_webhook(actor=sender.actor, endpoint=endpoint, enabled=False)
    sender.emit(READY)
    assert sender.queued == []


def test_what_is_rolled_back_is_told_to_nobody(receiver: LoopbackServer, sender: Sender) -> None:
    def fail() -> None:
        with tenant_scope(sender.actor.tenant_id):
            emit_event(sender.actor.tenant_id, FAILED, {})
            raise ZeroDivisionError

    sender.make(receiver)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert sender.queued == []
    with tenant_scope(sender.actor.tenant_id):
        assert not WebhookDelivery.objects.exists()


def test_what_does_not_arrive_is_sent_again_later_each_time(
    receiver: LoopbackServer, sender: Sender
) -> None:
    sender.make(receiver)
    receiver.default = lambda _asked: Answer(500)
    sender.emit()
    sender.work()
    waits = []
    for _ in range(9):
        found = sender.delivery()
        if found.next_attempt_at is None:
            break
        waits.append((found.next_attempt_at - timezone.now()).total_seconds())
        assert due_deliveries() == []
        _make_due(found)
        tasks.deliver_due_webhooks_task.run()
        sender.work()
    assert [round(wait / 10) * 10 >= least for wait, least in zip(waits, (10, 60, 300, 1800, 7200, 21600, 43200, 86400), strict=True)] == [True] * 8  # fmt: skip
    assert waits[-1] < 86400 * 1.11
    found = sender.delivery()
    assert (found.status, found.attempts, found.status_code) == ("failed", 9, 500)
    assert len({asked.headers["webhook-id"] for asked in receiver.asked}) == 1
    assert sender.endpoint().failing_since is not None


def test_the_receiver_may_ask_for_time(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    receiver.answers = [Answer(429, headers={"Retry-After": "600"})]
    sender.emit()
    sender.work()
    wait = sender.delivery().next_attempt_at
    assert wait is not None
    assert wait > timezone.now() + timedelta(seconds=590)


def test_an_event_is_sent_by_one_worker(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    sender.emit()
    sender.queued *= 3
    sender.work()
    assert len(receiver.asked) == 1


def test_what_a_worker_dropped_is_found_again(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    sender.emit()
    sender.queued.clear()
    with time_machine.travel(timezone.now() + timedelta(minutes=1)):
        tasks.deliver_due_webhooks_task.run()
        sender.work()
    assert sender.delivery().status == "succeeded"


def test_a_failing_endpoint_is_tried_now_and_then(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    receiver.default = lambda _asked: Answer(503)
    sender.emit()
    sender.work()
    for _ in range(5):
        sender.emit()
    sender.work()
    assert len(receiver.asked) == 2, "the first failure, and one probe"
    assert due_deliveries() == []
    receiver.default = lambda _asked: Answer(204)
    with time_machine.travel(timezone.now() + timedelta(minutes=2)):
        tasks.deliver_due_webhooks_task.run()
        sender.work()
        tasks.deliver_due_webhooks_task.run()
        sender.work()
    with tenant_scope(sender.actor.tenant_id):
        assert set(WebhookDelivery.objects.values_list("status", flat=True)) == {"succeeded"}
    assert len(receiver.asked) == 8


def test_a_dead_endpoint_is_disabled(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    receiver.default = lambda _asked: Answer(502)
    sender.emit()
    sender.work()
    with tenant_scope(sender.actor.tenant_id):
        WebhookEndpoint.objects.update(failing_since=timezone.now() - timedelta(days=6))
    _make_due(sender.delivery())
    tasks.deliver_due_webhooks_task.run()
    sender.work()
    endpoint = sender.endpoint()
    assert not endpoint.enabled
    assert "502" in endpoint.disabled_reason
    with tenant_scope(sender.actor.tenant_id):
        assert AuditEvent.objects.filter(action="webhook.disabled").exists()
        update_webhook(actor=sender.actor, endpoint=endpoint, enabled=True)
    assert sender.endpoint().failing_since is None


def test_an_address_that_is_gone_is_disabled_at_once(
    receiver: LoopbackServer, sender: Sender
) -> None:
    sender.make(receiver)
    receiver.default = lambda _asked: Answer(410)
    sender.emit()
    sender.work()
    assert not sender.endpoint().enabled


def test_a_success_forgets_the_failures(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    receiver.answers = [Answer(500)]
    sender.emit()
    sender.work()
    _make_due(sender.delivery())
    tasks.deliver_due_webhooks_task.run()
    sender.work()
    assert sender.endpoint().failing_since is None


def test_a_redirect_is_not_followed(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    receiver.default = lambda _asked: Answer(307, headers={"Location": "/elsewhere"})
    sender.emit()
    sender.work()
    assert [asked.path for asked in receiver.asked] == ["/hook"]
    assert sender.delivery().error == "The receiver answered 307."


def test_a_private_address_is_refused(
    receiver: LoopbackServer, sender: Sender, settings: Any
) -> None:
    sender.make(receiver)
    settings.GROUNDWORK_PRIVATE_HOSTS = []
    sender.emit()
    sender.work()
    assert "private network" in sender.delivery().error
    assert receiver.asked == []


def test_an_event_is_replayed_under_its_id(
    receiver: LoopbackServer, sender: Sender, django_capture_on_commit_callbacks: Any
) -> None:
    sender.make(receiver)
    sender.emit()
    with pytest.raises(ConflictError), tenant_scope(sender.actor.tenant_id):
        replay_delivery(actor=sender.actor, delivery=sender.delivery())
    sender.work()
    with django_capture_on_commit_callbacks(execute=True), tenant_scope(sender.actor.tenant_id):
        replay_delivery(actor=sender.actor, delivery=sender.delivery())
    sender.work()
    first, second = receiver.asked
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.body == second.body


def test_the_log_is_kept_for_a_month(receiver: LoopbackServer, sender: Sender) -> None:
    sender.make(receiver)
    sender.emit()
    with time_machine.travel(timezone.now() + timedelta(days=29)):
        forget_old_deliveries()
    sender.delivery()
    with time_machine.travel(timezone.now() + timedelta(days=31)):
        forget_old_deliveries()
    with tenant_scope(sender.actor.tenant_id):
        assert not WebhookDelivery.objects.exists()


def test_secrets_are_sealed_and_rotated(
    receiver: LoopbackServer, sender: Sender, settings: Any
) -> None:
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["old"]
    _, secret = sender.make(receiver)
    assert secret not in sender.endpoint().sealed_secret
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["new", "old"]
    assert rotate_webhook_secrets() == (1, 0)
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["new"]
    assert sender.endpoint().secret == secret
    settings.GROUNDWORK_ENCRYPTION_KEYS = ["other"]
    assert rotate_webhook_secrets() == (0, 1)
    sender.emit()
    sender.work()
    assert "GROUNDWORK_ENCRYPTION_KEYS" in sender.delivery().error


# --- keeping -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example/", "ftp://hooks.example/", "https://", "hooks.example", "https://a:b@hooks.example/",
        "https://hooks.example:port/", "javascript:alert(1)", "",
    ],
)  # fmt: skip
def test_addresses_are_checked(url: str, actor: Actor, settings: Any) -> None:
    settings.DEVELOPMENT = False
    with pytest.raises(InvalidInputError) as caught, tenant_scope(actor.tenant_id):
        create_webhook(actor=actor, url=url, event_types=[FAILED])
    assert caught.value.errors[0].field == "url"


@pytest.mark.parametrize("events", [[], ["ping"], ["everything"]])
def test_events_are_checked(events: list[str], actor: Actor) -> None:
    with pytest.raises(InvalidInputError) as caught, tenant_scope(actor.tenant_id):
        create_webhook(actor=actor, url="https://hooks.example/", event_types=events)
    assert caught.value.errors[0].field == "event_types"


def test_editors_and_keys_of_some_bases_make_none(editor: Membership, tenant: Tenant) -> None:
    key, _ = make_key(tenant=tenant, knowledge_base_ids=[new_id()])
    for actor in (actor_for_member(editor), actor_for_key(key)):
        with pytest.raises(ForbiddenError), tenant_scope(tenant.id):
            create_webhook(actor=actor, url="https://hooks.example/", event_types=[FAILED])


def test_the_api_keeps_webhooks(
    api: ApiFactory,
    receiver: LoopbackServer,
    sender: Sender,
    django_capture_on_commit_callbacks: Any,
) -> None:
    client = api("admin")
    body = {"url": f"{receiver.url}/hook", "event_types": ["sync.failed"]}
    made = client.post("/api/v1/webhooks/", body).json()
    secret, path = made.pop("secret"), f"/api/v1/webhooks/{made['id']}/"
    assert client.get(path).json() == made
    assert secret not in client.get("/api/v1/webhooks/").content.decode()
    assert client.patch(path, {"description": "Mine"}).json()["description"] == "Mine"
    with django_capture_on_commit_callbacks(execute=True):
        ping = client.post(f"{path}ping/")
    assert (ping.status_code, ping.json()["status"]) == (202, "pending")
    sender.work()
    assert Webhook(secret).verify(receiver.asked[0].body, dict(receiver.asked[0].headers))
    found = client.get(f"{path}deliveries/").json()["results"]
    assert [(one["event_type"], one["status"]) for one in found] == [("ping", "succeeded")]
    one = f"/api/v1/webhook-deliveries/{found[0]['id']}/"
    assert client.get(one).json()["payload"]["data"] == {"webhook_id": made["id"]}
    assert client.post(f"{one}replay/").status_code == 202
    assert client.delete(path).status_code == 204
    assert client.get(one).status_code == 404
    events = json.dumps(client.get("/api/v1/audit-events/").json())
    assert "webhook.created" in events
    assert "/hook" not in events


def test_the_admin_shows_the_secret_once(
    browser: BrowserFactory,
    admin: Membership,
    editor: Membership,
    receiver: LoopbackServer,
    sender: Sender,
) -> None:
    client, pages = browser(admin), "/admin/accounts/webhookendpoint/"
    assert client.get(f"{pages}add/").status_code == 200
    body = {"url": f"{receiver.url}/hook", "event_types": ["sync.failed"], "description": "Pager"}
    answer = client.post(f"{pages}add/", body)
    secret = answer.context["secret"]
    assert secret.startswith("whsec_")
    assert "no-store" in answer["Cache-Control"]
    endpoint = sender.endpoint()
    assert endpoint.secret == secret
    page = client.get(f"{pages}{endpoint.id}/change/")
    assert page.status_code == 200
    assert secret.encode() not in page.content
    changed = {**body, "event_types": ["document.ready"]}
    assert client.post(f"{pages}{endpoint.id}/change/", changed).status_code == 302
    assert (sender.endpoint().event_types, sender.endpoint().enabled) == (["document.ready"], False)
    assert (
        client.post(f"{pages}{endpoint.id}/change/", {**changed, "enabled": "on"}).status_code
        == 302
    )
    action = {"action": "ping", "_selected_action": [str(endpoint.id)]}
    assert client.post(pages, action).status_code == 302
    assert client.get("/admin/accounts/webhookdelivery/").status_code == 200
    delivery = sender.delivery()
    assert delivery.event_type == "ping"
    assert client.get(f"/admin/accounts/webhookdelivery/{delivery.id}/change/").status_code == 200
    with tenant_scope(admin.tenant_id):
        WebhookDelivery.objects.update(status="failed")
    action = {"action": "replay", "_selected_action": [str(delivery.id)]}
    assert client.post("/admin/accounts/webhookdelivery/", action).status_code == 302
    assert sender.delivery().status == "pending"
    assert browser(editor).get(pages).status_code == 403
    assert client.post(f"{pages}{endpoint.id}/delete/", {"post": "yes"}).status_code == 302
    with tenant_scope(admin.tenant_id):
        assert not WebhookEndpoint.objects.exists()


def _make_due(delivery: WebhookDelivery) -> None:
    with tenant_scope(delivery.tenant_id):
        WebhookDelivery.objects.filter(id=delivery.id).update(next_attempt_at=timezone.now())
        WebhookEndpoint.objects.update(probed_at=None)
