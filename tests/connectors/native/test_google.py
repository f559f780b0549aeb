"""Gmail's own API description: a mailbox with labels and a history."""

from __future__ import annotations

import base64
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from config.errors import CredentialsError, InvalidInputError, RateLimitedError
from connectors.base import (
    Checkpoint,
    Complete,
    Cursor,
    Deletion,
    Event,
    Failure,
    File,
    Record,
    Text,
)
from connectors.models import Connection
from connectors.native.google.gmail import GmailConnector
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
_USER = "/gmail/v1/users/{userId}"
_EML = (
    "From: Ana <ana@example.com>\r\nTo: me@example.com\r\nSubject: Heron\r\nMIME-Version: 1.0\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n\r\n苍鹭在湖边涉水。\r\n"
)


class Mailbox:
    """Messages by id: their labels."""

    def __init__(self, server: Vendor) -> None:
        self.server = server
        self.messages: dict[str, list[str]] = {}
        self.history: list[dict[str, Any]] = []
        self.found: set[str] | None = None  # by the configured query
        self.broken: set[str] = set()
        self.is_forgetful = False
        labels = [{"id": one, "name": one} for one in ("INBOX", "SPAM", "TRASH", "DRAFT")]
        labels.append({"id": "Label_1", "name": "项目"})
        server.app.auth = False
        server.on(f"GET {_USER}/labels", {"labels": labels})
        server.on(
            f"GET {_USER}/profile",
            lambda _asked, _: {"emailAddress": "me@example.com", "historyId": self.now, "messagesTotal": 3},
        )  # fmt: skip
        server.on(f"GET {_USER}/messages", self._list)
        server.on(f"GET {_USER}/messages/{{id}}", self._message)
        server.on(f"GET {_USER}/history", self._history)

    @property
    def now(self) -> str:
        """The mailbox's present history id."""
        return str(100 + len(self.history))

    def add(self, key: str, *labels: str) -> None:
        """Receive a message."""
        self.messages[key] = list(labels or ("INBOX",))
        self.note("messagesAdded", key)

    def note(self, kind: str, key: str) -> None:
        """Write an entry of the history."""
        message = {"message": {"id": key, "threadId": key}}
        self.history.append({"id": str(101 + len(self.history)), kind: [message]})

    def _list(self, asked: Asked, _: Any) -> Any:
        label, query = asked.query.get("labelIds"), asked.query.get("q", "")
        found = [key for key, labels in self.messages.items() if not label or label in labels]
        if "rfc822msgid" in query:
            found = [key for key in found if f"rfc822msgid:{key}@" in query]
        if query and self.found is not None:
            found = [key for key in found if key in self.found]
        page, after = pages(found, asked.query.get("pageToken"), 2)
        messages = {"messages": [{"id": key, "threadId": key} for key in page]} if page else {}
        return messages | ({"nextPageToken": after} if after else {})

    def _message(self, asked: Asked, _: Any) -> Any:
        key = asked.path["id"]
        if key in self.broken:
            raise Refusal(400)
        if key not in self.messages:
            raise Refusal(404)
        known = {"id": key, "threadId": key, "labelIds": self.messages[key], "sizeEstimate": 300}
        if asked.query["format"] == "raw":
            return {**known, "raw": base64.urlsafe_b64encode(_EML.encode()).decode().rstrip("=")}
        headers = {
            "Subject": f"Heron {key}",
            "From": "Ana <ana@example.com>",
            "Message-ID": f"<{key}@x>",
        }
        return {
            **known, "internalDate": "1735689600000", "snippet": "苍鹭",
            "payload": {"headers": [{"name": n, "value": v} for n, v in headers.items()]},
        }  # fmt: skip

    def _history(self, asked: Asked, _: Any) -> Any:
        if self.is_forgetful:
            raise Refusal(404)
        entries = [
            one for one in self.history if int(one["id"]) > int(asked.query["startHistoryId"])
        ]
        page, after = pages(entries, asked.query.get("pageToken"), 2)
        more = {"nextPageToken": after} if after else {}
        return {"historyId": self.now} | ({"history": page} if page else {}) | more


@pytest.fixture
def mailbox(vendor: StartVendor, monkeypatch: pytest.MonkeyPatch) -> Mailbox:
    known = Mailbox(vendor("gmail"))
    monkeypatch.setattr(GmailConnector, "root", known.server.url)
    return known


def made(**config: Any) -> GmailConnector:
    """A connector to it."""
    return make_connector(GmailConnector, config, {"access_token": "t"}, method="oauth")


def pull(connector: GmailConnector, cursor: Cursor | None = None) -> list[Event]:
    """Everything of a run."""
    return list(connector.pull(cursor or {}))


def ids(events: list[Event], kind: type[Record | Deletion | Failure] = Record) -> list[str]:
    """The ids of events of a kind."""
    return [one.external_id for one in events if isinstance(one, kind)]


def end(events: list[Event]) -> Cursor:
    """The last position."""
    last = events[-1]
    assert isinstance(last, Checkpoint)
    return last.cursor


def test_all_mail_is_read_but_spam_and_drafts(mailbox: Mailbox) -> None:
    for key in ("a", "b", "c"):
        mailbox.add(key)
    mailbox.add("d", "DRAFT")
    events = pull(made())
    assert ids(events) == ["a", "b", "c"]
    assert Complete() in events
    assert end(events) == {"history": mailbox.now}
    record = next(one for one in events if isinstance(one, Record))
    assert (record.title, record.author) == ("Heron a", "Ana <ana@example.com>")
    assert record.principals == frozenset({"user:me@example.com"})
    assert isinstance(record.body, File)
    assert (record.body.content_type, record.body.filename) == ("message/rfc822", "a.eml")
    with record.body.open() as file:
        assert file.read().decode() == _EML


def test_later_runs_follow_the_history(mailbox: Mailbox) -> None:
    for key in ("a", "b", "c"):
        mailbox.add(key)
    cursor = end(pull(made()))
    mailbox.add("d")
    del mailbox.messages["a"]
    mailbox.note("messagesDeleted", "a")
    mailbox.messages["b"] = ["TRASH"]
    mailbox.note("labelsAdded", "b")
    events = pull(made(), cursor)
    assert ids(events) == ["d"]
    assert sorted(ids(events, Deletion)) == ["a", "b"]
    assert end(events) == {"history": mailbox.now}
    assert pull(made(), end(events)) == [Checkpoint({"history": mailbox.now})]


def test_a_forgotten_history_means_listing_anew(mailbox: Mailbox) -> None:
    mailbox.add("a")
    mailbox.is_forgetful = True
    events = pull(made(), {"history": "1"})
    assert ids(events) == ["a"]
    assert Complete() in events
    assert end(events) == {"history": mailbox.now}


def test_a_listing_goes_on_where_it_was_broken_off(mailbox: Mailbox) -> None:
    for key in ("a", "b", "c", "d", "e"):
        mailbox.add(key)
    first = next(one for one in made().pull({}) if isinstance(one, Checkpoint))
    events = pull(made(), first.cursor)
    assert ids(events) == ["c", "d", "e"]
    assert Complete() not in events, "what came before was not met in this run"
    assert end(events) == {"history": mailbox.now}


def test_labels_are_included_and_excluded_by_name(mailbox: Mailbox) -> None:
    mailbox.add("a", "INBOX")
    mailbox.add("b", "Label_1")
    mailbox.add("c", "Label_1", "SPAM")
    connector = made(labels=["项目"])
    events = pull(connector)
    assert ids(events) == ["b"]
    assert next(one for one in events if isinstance(one, Record)).metadata["labels"] == ["项目"]
    mailbox.messages["b"] = ["INBOX"]
    mailbox.note("labelsRemoved", "b")
    assert ids(pull(connector, end(events)), Deletion) == ["b"]
    with pytest.raises(InvalidInputError, match="Unknown"):
        made(labels=["Unknown"]).check()


def test_a_query_holds_for_changes_too(mailbox: Mailbox) -> None:
    mailbox.add("a")
    mailbox.found = {"a", "c"}
    cursor = end(pull(made(query="from:ana OR from:bo")))
    mailbox.add("b")
    mailbox.add("c")
    events = pull(made(query="from:ana OR from:bo"), cursor)
    assert ids(events) == ["c"]
    queries = [one.get("q") for one in mailbox.server.asked(f"GET {_USER}/messages")]
    assert "(from:ana OR from:bo) rfc822msgid:c@x" in queries


def test_dates_and_counts_bound_the_listing(mailbox: Mailbox) -> None:
    for key in ("a", "b", "c"):
        mailbox.add(key)
    assert ids(pull(made(max_messages=2))) == ["a", "b"]
    assert ids(pull(made(after="2026-01-01"))) == []
    asked = mailbox.server.asked(f"GET {_USER}/messages")[-1]
    assert asked["q"].strip() == "after:2026/01/01"


def test_headers_alone_are_text(mailbox: Mailbox) -> None:
    mailbox.add("a")
    record = next(one for one in pull(made(content="headers")) if isinstance(one, Record))
    assert isinstance(record.body, Text)
    assert record.body.text == "Subject: Heron a\nFrom: Ana <ana@example.com>\n\n苍鹭"


def test_one_bad_message_is_a_failure(mailbox: Mailbox) -> None:
    mailbox.add("a")
    mailbox.add("b")
    mailbox.broken = {"a"}
    events = pull(made())
    assert (ids(events), ids(events, Failure)) == (["b"], ["a"])
    mailbox.broken = set()
    assert ids(list(made().fetch(["a", "gone"]))) == ["a"]
    assert ids(list(made().fetch(["gone"])), Deletion) == ["gone"]


def test_the_mailbox_is_searched_within_what_is_chosen(mailbox: Mailbox) -> None:
    mailbox.add("a", "Label_1")
    mailbox.add("b", "INBOX")
    hits = made(labels=["项目"], query="newer_than:1y").search("heron) OR (secret", 5)
    assert [(one.external_id, one.title) for one in hits] == [("a", "Heron a")]
    asked = mailbox.server.asked(f"GET {_USER}/messages")[-1]
    assert asked["q"] == "(heron  OR  secret) (newer_than:1y)"


def test_limits_and_refusals_say_what_to_do(mailbox: Mailbox) -> None:
    connector, limit = made(), {"error": {"errors": [{"reason": "rateLimitExceeded"}]}}
    mailbox.server.refuse_next(403, limit)
    assert connector.check().startswith("me@example.com")
    mailbox.server.refuse_next(403, limit, times=4)
    with pytest.raises(RateLimitedError):
        pull(made())
    mailbox.server.refuse_next(401)
    with pytest.raises(CredentialsError):
        pull(made())


def test_a_run_renews_its_token_and_stores_the_mail(
    mailbox: Mailbox, connect: Callable[..., Connection], syncs: Syncs, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    method = GmailConnector.spec.auth[0]
    assert method.oauth is not None
    endpoints = replace(method.oauth, token_url=f"{mailbox.server.url}/token")
    spec = replace(GmailConnector.spec, auth=(replace(method, oauth=endpoints),))
    monkeypatch.setattr(GmailConnector, "spec", spec)
    mailbox.server.files["/token"] = b'{"access_token": "new", "expires_in": 3600}'
    no_lock = SimpleNamespace(lock=lambda *_, **__: nullcontext())
    monkeypatch.setattr("connectors.services.oauth_tokens.cache", no_lock)
    mailbox.server.app.auth = True
    mailbox.server.refuse_next(401)
    mailbox.add("a")
    tokens = {"access_token": "old", "refresh_token": "r", "client_id": "c", "client_secret": "s"}
    connection = connect("google", credentials=tokens)
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.error) == ("succeeded", 1, "")
    assert syncs.fresh(connection).credentials["access_token"] == "new"
    assert syncs.documents()["a"].status == "ready"
    assert syncs.documents()["a"].principals == ["user:me@example.com"]
    mailbox.messages = {}
    mailbox.note("messagesDeleted", "a")
    assert syncs.run(connection).deleted == 1
