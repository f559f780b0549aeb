"""Slack's channels against its own API description."""

from __future__ import annotations

import dataclasses
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import time_machine

from config.errors import CredentialsError, ForbiddenError, RejectedError, TransientError
from config.http import HeaderAuth
from connectors.base import Deletion, Membership, Notice
from connectors.models import Connection, SyncRun
from connectors.native.slack.connector import SlackConnector
from connectors.native.slack.rendering import render_text
from tests.connectors.conftest import Syncs
from tests.connectors.vendor import Asked, Refusal, StartVendor, Vendor, make_connector, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])

Connect = Callable[..., Connection]
DAY = 86_400
NOW = 1_750_000_000.0  # 15 June 2025, 15:06:40 UTC
MIDNIGHT = NOW - NOW % DAY
TOKEN = {"token": "xoxb-secret"}


def ts(days_ago: float, number: int = 1) -> str:
    return f"{MIDNIGHT - days_ago * DAY + 3600:.0f}.{number:06d}"


def said(text: str, at: str, user: str = "U0ANA", **more: Any) -> dict[str, Any]:
    return {"type": "message", "text": text, "ts": at, "user": user, **more}


@dataclass
class Workspace:
    """A workspace that one can talk in."""

    vendor: Vendor
    channels: dict[str, dict[str, Any]] = field(default_factory=dict)
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    replies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    errors: dict[str, dict[str, Any]] = field(default_factory=dict)  # of channels and threads
    page: int = 2

    def open(self, channel: str, name: str, **facts: Any) -> None:
        self.channels[channel] = {"id": channel, "name": name, "is_member": True, **facts}
        self.messages.setdefault(channel, [])

    def say(self, channel: str, text: str, at: str, **more: Any) -> None:
        self.messages[channel].append(said(text, at, **more))

    def reply(self, channel: str, thread: str, text: str, at: str, **more: Any) -> None:
        parent = next(one for one in self.messages[channel] if one["ts"] == thread)
        parent |= {"thread_ts": thread, "reply_count": parent.get("reply_count", 0) + 1}
        self.replies.setdefault(thread, []).append(said(text, at, thread_ts=thread, **more))

    def list_channels(self, asked: Asked, answer: Any) -> Any:
        kinds = asked.query.get("types", "public_channel")
        wanted = [
            one
            for one in self.channels.values()
            if ("private_channel" if one.get("is_private") else "public_channel") in kinds
            and not (one.get("is_archived") and asked.query.get("exclude_archived") == "true")
        ]
        found, after = pages(wanted, asked.query.get("cursor"), self.page)
        example = answer["channels"][0]
        return {
            **answer,
            "channels": [{**example, **one} for one in found],
            "response_metadata": {"next_cursor": after},
        }

    def history(self, asked: Asked, answer: Any) -> Any:
        query = asked.query
        self._fail(query["channel"])
        oldest, latest = float(query.get("oldest", 0)), float(query.get("latest", 1e12))
        wanted = [
            one for one in self.messages[query["channel"]] if oldest < float(one["ts"]) < latest
        ]
        return self._page(sorted(wanted, key=lambda one: -float(one["ts"])), asked, answer)

    def thread(self, asked: Asked, answer: Any) -> Any:
        parent = asked.query["ts"]
        self._fail(parent)
        messages = self.messages[asked.query["channel"]]
        first = [one for one in messages if one["ts"] == parent]
        return self._page(first + self.replies.get(parent, []), asked, answer)

    def _fail(self, name: str) -> None:
        if name in self.errors:
            raise Refusal(200, {"ok": False, **self.errors[name]})

    def _page(self, messages: list[dict[str, Any]], asked: Asked, answer: Any) -> Any:
        found, after = pages(messages, asked.query.get("cursor"), self.page)
        if not found:  # the description knows no empty history
            raise Refusal(200, {"ok": True, "messages": [], "has_more": False})
        more = {"has_more": bool(after), "response_metadata": {"next_cursor": after}}
        return {**answer, "messages": found, **more}


@pytest.fixture
def workspace(vendor: StartVendor, monkeypatch: Any) -> Workspace:
    slack = Workspace(vendor("slack"))
    monkeypatch.setattr(SlackConnector, "base_url", slack.vendor.url)
    on = slack.vendor.on
    on(
        "GET /auth.test",
        lambda _, answer: {**answer, "url": "https://acme.slack.com/", "bot_id": "B0BOTBOTB"},
    )
    on("GET /conversations.list", slack.list_channels)
    on("GET /conversations.history", slack.history)
    on("GET /conversations.replies", slack.thread)
    on("GET /users.list", users)
    slack.open("C0GENERAL", "general")
    return slack


def users(_: Asked, answer: Any) -> Any:
    example = answer["members"][0]
    people = [
        ("U0ANA", "Ana", "ana@example.com"),
        ("U0WEI", "李伟", "wei@example.com"),
        ("U0GONE", "Gus", "gus@example.com"),
    ]
    return {
        **answer,
        "members": [
            {**example, "id": user, "deleted": user == "U0GONE",
             "profile": {**example["profile"], "display_name": name, "email": email}}
            for user, name, email in people
        ],
        "response_metadata": {"next_cursor": ""},
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _now() -> Any:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def text_of(syncs: Syncs, external_id: str) -> str:
    with syncs.documents()[external_id].original.open() as file:
        return str(file.read().decode())


@pytest.fixture
def connection(connect: Connect, workspace: Workspace) -> Connection:
    return connect("slack", auth_method="token", credentials=TOKEN)


def test_threads_and_days_become_documents(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    thread = ts(3)
    workspace.say("C0GENERAL", "Where do herons nest, <@U0WEI>?", thread)
    workspace.reply(
        "C0GENERAL",
        thread,
        "在高树上。See <https://birds.example/a?b=1&amp;c|the page>.",
        ts(2),
        user="U0WEI",
    )
    workspace.reply("C0GENERAL", thread, "Thanks &amp; bye", ts(2, 2))
    workspace.say("C0GENERAL", "Morning <!here>", ts(3, 5))
    workspace.say("C0GENERAL", "U0ANA has joined", ts(3, 6), subtype="channel_join")
    workspace.say("C0GENERAL", "今天开会吗？", ts(1), user="U0WEI")
    run = syncs.run(connection)
    assert (run.status, run.warnings) == ("succeeded", [])
    documents = syncs.documents()
    assert set(documents) == {f"C0GENERAL:{thread}", "C0GENERAL:2025-06-12", "C0GENERAL:2025-06-14"}
    asked = documents[f"C0GENERAL:{thread}"]
    assert asked.title == "#general: Where do herons nest, @李伟?"
    assert (
        asked.source_uri == f"https://acme.slack.com/archives/C0GENERAL/p{thread.replace('.', '')}"
    )
    assert (asked.author, asked.breadcrumbs, asked.principals) == ("Ana", ["#general"], ["public"])
    assert asked.metadata["participants"] == ["Ana", "李伟"]
    assert text_of(syncs, f"C0GENERAL:{thread}") == (
        "**Ana** (2025-06-12 01:00): Where do herons nest, @李伟?\n\n"
        "**李伟** (2025-06-13 01:00): 在高树上。See [the page](https://birds.example/a?b=1&c).\n\n"
        "**Ana** (2025-06-13 01:00): Thanks & bye"
    )
    assert text_of(syncs, "C0GENERAL:2025-06-12") == "**Ana** (2025-06-12 01:00): Morning @here"
    assert "今天开会吗" in text_of(syncs, "C0GENERAL:2025-06-14")


def test_the_next_run_reads_the_last_days_only(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    old, late = ts(30), ts(4)
    workspace.say("C0GENERAL", "Old.", old)
    workspace.say("C0GENERAL", "Question?", late)
    workspace.say("C0GENERAL", "Fresh.", ts(1))
    workspace.say("C0GENERAL", "Doomed.", ts(2))
    syncs.run(connection)
    workspace.vendor.forget()
    workspace.reply("C0GENERAL", late, "A late answer.", ts(0))
    workspace.messages["C0GENERAL"][2]["text"] = "Fresh, edited."
    del workspace.messages["C0GENERAL"][3]
    run = syncs.run(connection)
    assert (run.inserted, run.updated, run.deleted, run.failed) == (1, 1, 2, 0)
    queries = workspace.vendor.asked("GET /conversations.history")
    assert {round(float(one["oldest"])) for one in queries} == {MIDNIGHT - 7 * DAY}
    assert set(syncs.documents()) == {
        "C0GENERAL:2025-05-16",
        "C0GENERAL:2025-06-14",
        f"C0GENERAL:{late}",
    }
    assert "A late answer." in text_of(syncs, f"C0GENERAL:{late}")
    assert "edited" in text_of(syncs, "C0GENERAL:2025-06-14")
    assert syncs.run(connection).kept == 1, "and the thread is not even read"


def test_old_threads_are_read_when_answered_to_the_channel(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    old = ts(30)
    workspace.say("C0GENERAL", "Old question?", old)
    workspace.reply("C0GENERAL", old, "First.", ts(29))
    syncs.run(connection)
    workspace.reply("C0GENERAL", old, "Second.", ts(1))
    workspace.say("C0GENERAL", "Second.", ts(1), thread_ts=old, subtype="thread_broadcast")
    assert syncs.run(connection).updated == 1
    assert "Second." in text_of(syncs, f"C0GENERAL:{old}")


def test_threads_that_look_the_same_are_read_once_a_day(
    workspace: Workspace, connect: Connect, syncs: Syncs
) -> None:
    vendor, thread = workspace.vendor, ts(2)
    vendor.files = {"/files/a.txt": b"Herons."}
    file = {"id": "F0PLANPLA", "name": "a.txt", "mimetype": "text/plain", "created": 1,
            "timestamp": 1, "url_private": f"{vendor.url}/files/a.txt"}  # fmt: skip
    workspace.say("C0GENERAL", "Question?", thread)
    workspace.reply("C0GENERAL", thread, "Answer.", ts(2, 2), files=[file])
    connection = connect("slack", config={"files": True}, auth_method="token", credentials=TOKEN)
    syncs.run(connection)
    vendor.forget()
    workspace.replies[thread][0]["text"] = "Answer, edited."
    run = syncs.run(connection)
    assert (run.kept, run.deleted, vendor.asked("GET /conversations.replies")) == (0, 0, [])
    with time_machine.travel(NOW + DAY, tick=False):
        assert syncs.run(connection).updated == 1
    assert "Answer, edited." in text_of(syncs, f"C0GENERAL:{thread}")
    assert "C0GENERAL:F0PLANPLA" in syncs.documents()
    workspace.messages["C0GENERAL"].clear()
    with time_machine.travel(NOW + DAY, tick=False):
        assert syncs.run(connection).deleted == 2


def test_a_full_run_notices_what_went_long_ago(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    workspace.say("C0GENERAL", "Old.", ts(60))
    workspace.say("C0GENERAL", "Kept.", ts(50))
    syncs.run(connection)
    del workspace.messages["C0GENERAL"][0]
    assert syncs.run(connection).deleted == 0
    assert syncs.run(connection, kind=SyncRun.Kind.FULL).deleted == 1
    assert set(syncs.documents()) == {"C0GENERAL:2025-04-26"}


def test_one_bad_channel_or_thread_does_not_lose_the_others(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    for channel in ("C0BADBADB", "C0TOOTOOT"):
        workspace.open(channel, channel.lower())
        workspace.say(channel, "Herons.", ts(1))
    workspace.say("C0GENERAL", "Question?", ts(2))
    workspace.reply("C0GENERAL", ts(2), "Answer.", ts(2, 2))
    syncs.run(connection)
    workspace.reply("C0GENERAL", ts(2), "Another.", ts(0))
    workspace.errors["C0BADBADB"] = {"error": "missing_scope", "needed": "channels:history"}
    workspace.errors[ts(2)] = {"error": "thread_not_found"}
    workspace.say("C0TOOTOOT", "Storks.", ts(0))
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.deleted, run.failed) == ("partial", 1, 0, 1)
    assert "#c0badbadb was not read" in run.warnings[0]
    assert "channels:history" in run.warnings[0]
    assert syncs.items()[f"C0GENERAL:{ts(2)}"].status == "failed"
    assert len(syncs.documents()) == 4
    workspace.errors.clear()
    assert syncs.run(connection).status == "succeeded"
    assert syncs.items()[f"C0GENERAL:{ts(2)}"].status == "stored"


def test_a_first_reading_goes_on_where_it_broke_off(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    for day in range(1, 7):
        workspace.say("C0GENERAL", f"Day {day}.", ts(day))
    whole = workspace.history

    def breaking(asked: Asked, answer: Any) -> Any:
        if asked.query.get("cursor") == "4":
            raise Refusal(429, headers={"Retry-After": "600"})
        return whole(asked, answer)

    workspace.vendor.on("GET /conversations.history", breaking)
    run = syncs.run(connection)
    assert run.status == "queued", "it waits as it was asked to"
    assert run.not_before is not None
    assert 500 < (run.not_before.timestamp() - NOW) < 700
    assert len(syncs.documents()) == 3
    workspace.vendor.on("GET /conversations.history", whole)
    workspace.vendor.forget()
    with time_machine.travel(NOW + 700, tick=False):
        syncs.work()
    assert syncs.fresh(run).status == "succeeded"
    assert len(syncs.documents()) == 6
    queries = workspace.vendor.asked("GET /conversations.history")
    assert float(queries[0]["latest"]) == MIDNIGHT - 3 * DAY + DAY - DAY


def test_channels_are_chosen_and_those_no_longer_chosen_go(
    workspace: Workspace, connect: Connect, syncs: Syncs
) -> None:
    workspace.open("C0TEAMTEA", "team-birds")
    workspace.open("C0OLDOLDO", "team-old", is_archived=True)
    workspace.open("C0NOTNOTN", "team-not", is_member=False)
    workspace.open("G0SECSECS", "team-secret", is_private=True)
    for channel in workspace.channels:
        workspace.say(channel, "Herons.", ts(1))
    config = {"include": ["#team-*", "nowhere"], "private": False}
    connection = connect("slack", config=config, auth_method="token", credentials=TOKEN)
    run = syncs.run(connection)
    assert set(syncs.documents()) == {"C0TEAMTEA:2025-06-14"}
    assert run.warnings == ["There is no channel nowhere, or the token's owner is not in it."]
    workspace.channels["C0TEAMTEA"]["is_member"] = False
    assert syncs.run(connection).deleted == 1
    assert syncs.documents() == {}
    workspace.open("C0EXTRAEX", "team-extra")
    workspace.say("C0EXTRAEX", "Storks.", ts(1))
    config = {"exclude": ["team-extra", "C0GENERAL"], "archived": True}
    other = connect("slack", name="Other", config=config, auth_method="token", credentials=TOKEN)
    syncs.run(other)
    assert set(syncs.documents()) == {"C0OLDOLDO:2025-06-14", "G0SECSECS:2025-06-14"}


def test_private_channels_are_their_members(
    workspace: Workspace, connection: Connection, syncs: Syncs
) -> None:
    workspace.open("G0SECSECS", "secret", is_private=True)
    workspace.say("G0SECSECS", "秘密", ts(1))
    workspace.vendor.on(
        "GET /conversations.members",
        lambda _, answer: {**answer, "members": ["U0ANA", "U0GONE"], "response_metadata": {"next_cursor": ""}},
    )  # fmt: skip
    syncs.run(connection)
    group = f"group:slack:{connection.id.hex[:12]}:G0SECSECS"
    assert syncs.documents()["G0SECSECS:2025-06-14"].principals == [group]
    connector = make_connector(SlackConnector, credentials=TOKEN)
    assert list(connector.memberships()) == [Membership("group:G0SECSECS", "user:ana@example.com")]
    workspace.vendor.on("GET /users.list", nameless)
    with pytest.raises(RejectedError, match=r"users:read\.email"):
        list(make_connector(SlackConnector, credentials=TOKEN).memberships())


def nameless(asked: Asked, answer: Any) -> Any:
    found = users(asked, answer)
    for user in found["members"]:
        del user["profile"]["email"]
    return found


def test_shared_files_are_documents_and_the_token_stays_with_slack(
    workspace: Workspace, connect: Connect, syncs: Syncs
) -> None:
    vendor = workspace.vendor
    vendor.files = {
        "/files/plan.txt": "Die Reiher, 苍鹭.".encode(),
        "/files/no.txt": b"<!DOCTYPE html><p>Sign in",
    }
    shared = [
        {"id": name, "name": f"{name}.txt", "mimetype": "text/plain", "url_private": url, "permalink": "https://acme.slack.com/x", "size": 20}
        for name, url in (("F0PLANPLA", f"{vendor.url}/files/plan.txt"), ("F0NONONON", f"{vendor.url}/files/no.txt"), ("F0EVILEVI", "https://evil.example/x"))
    ]  # fmt: skip
    example = [{**one, "created": 1, "timestamp": 1} for one in shared]
    workspace.say("C0GENERAL", "The plan", ts(1), files=example)
    connection = connect("slack", config={"files": True}, auth_method="token", credentials=TOKEN)
    run = syncs.run(connection)
    assert set(syncs.documents()) == {"C0GENERAL:2025-06-14", "C0GENERAL:F0PLANPLA"}
    assert run.failed == 1
    assert "files:read" in syncs.items()["C0GENERAL:F0NONONON"].error
    assert vendor.fetched[0][1] == {"authorization": "Bearer xoxb-secret"}
    assert "[F0PLANPLA.txt](https://acme.slack.com/x)" in text_of(syncs, "C0GENERAL:2025-06-14")


@pytest.mark.parametrize("error", ["invalid_auth", "token_revoked"])
def test_a_refused_token_ends_the_run(
    workspace: Workspace, connection: Connection, syncs: Syncs, error: str
) -> None:
    workspace.vendor.refuse_next(200, {"ok": False, "error": error})
    run = syncs.run(connection)
    assert (run.status, run.error_code) == ("failed", "remote_credentials")
    assert "secret" not in run.error


def test_an_expired_token_is_renewed(workspace: Workspace) -> None:
    class Renewable(HeaderAuth):
        renewed = 0

        def renew(self) -> bool:
            self.renewed += 1
            return True

    auth = Renewable("Authorization", "Bearer any")
    connector = make_connector(SlackConnector, credentials=TOKEN)
    connector.context = dataclasses.replace(connector.context, auth=auth)
    workspace.vendor.refuse_next(200, {"ok": False, "error": "token_expired"})
    assert connector.check().startswith("Subarachnoid")
    assert auth.renewed == 1


def test_a_source_that_is_down_ends_the_run_and_one_channel_does_not(
    workspace: Workspace,
) -> None:
    for number in range(3):
        workspace.open(f"C0BADBAD{number}", f"bad-{number}")
        workspace.errors[f"C0BADBAD{number}"] = {"error": "internal_error"}
    connector = make_connector(SlackConnector, {"exclude": ["bad-2"]}, TOKEN)
    notices = [one for one in connector.pull({}) if isinstance(one, Notice)]
    assert len(notices) == 2
    with pytest.raises(TransientError):
        list(make_connector(SlackConnector, {}, TOKEN).pull({}))


def test_check_says_who_and_what_is_missing(workspace: Workspace) -> None:
    connector = make_connector(SlackConnector, credentials=TOKEN)
    assert connector.check() == "Subarachnoid Workspace: grace"
    workspace.vendor.refuse_next(401)
    with pytest.raises(CredentialsError):
        connector.check()
    workspace.vendor.refuse_next(
        200, {"ok": False, "error": "missing_scope", "needed": "channels:read"}
    )
    with pytest.raises(RejectedError, match="channels:read"):
        connector.check()


def test_a_short_wait_is_waited_for(workspace: Workspace) -> None:
    waits: list[float] = []
    connector = make_connector(SlackConnector, credentials=TOKEN, pause=waits.append)
    workspace.vendor.refuse_next(429, Retry_After="3")
    connector.check()
    assert waits == [3.0]


def test_single_documents_are_read_anew(workspace: Workspace) -> None:
    workspace.say("C0GENERAL", "Question?", ts(2))
    workspace.reply("C0GENERAL", ts(2), "Answer.", ts(2, 2))
    workspace.say("C0GENERAL", "Beside.", ts(2, 3))
    connector = make_connector(SlackConnector, {"files": True}, TOKEN)
    workspace.vendor.on("GET /files.info", file_facts)
    names = (ts(2), "2025-06-13", "F0PLANPLA", "F0GONEGON")
    wanted = [*(f"C0GENERAL:{name}" for name in names), "C0GONEGON:2025-06-13"]
    found = list(connector.fetch(wanted))
    assert [event.external_id for event in found] == wanted[:4]  # type: ignore[union-attr]
    assert found[3] == Deletion("C0GENERAL:F0GONEGON")


def file_facts(asked: Asked, answer: Any) -> Any:
    if asked.query["file"] != "F0PLANPLA":
        raise Refusal(200, {"ok": False, "error": "file_not_found"})
    file = {**answer["file"], "id": "F0PLANPLA", "url_private": "https://files.slack.com/x"}
    return {**answer, "file": {name: file[name] for name in file if not name.endswith("download")}}


def test_searching_finds_what_is_public(workspace: Workspace) -> None:
    connector = make_connector(SlackConnector, credentials=TOKEN)

    def matches(asked: Asked, _: Any) -> Any:
        assert asked.query["query"] == "herons"
        places = [
            {"id": "C0GENERAL", "name": "general"},
            {"id": "C0SEC", "is_private": True},
            {"id": "D0ME"},
        ]
        found = [
            {
                "channel": place,
                "ts": ts(1),
                "user": "U0WEI",
                "text": "<@U0ANA> 苍鹭",
                "permalink": "https://acme.slack.com/p",
            }
            for place in places
        ]
        return {"ok": True, "messages": {"matches": found}}

    workspace.vendor.on("GET /search.messages", matches)
    hits = connector.search("herons", 5)
    assert [(hit.external_id, hit.title, hit.text) for hit in hits] == [
        (f"C0GENERAL:{ts(1)}", "#general: 李伟", "@Ana 苍鹭")
    ]
    workspace.vendor.refuse_next(200, {"ok": False, "error": "not_allowed_token_type"})
    with pytest.raises(RejectedError, match="user token"):
        connector.search("herons", 5)


def signed(body: bytes, at: float, secret: str = "shh") -> dict[str, str]:
    digest = hmac.new(secret.encode(), b"v0:%d:" % int(at) + body, hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": str(int(at)), "X-Slack-Signature": f"v0={digest}"}


def test_events_must_be_signed_and_new() -> None:
    secrets = {**TOKEN, "signing_secret": "shh"}
    connector = make_connector(SlackConnector, credentials=secrets)
    challenge = json.dumps({"type": "url_verification", "challenge": "苍鹭1"}).encode()
    answer = connector.receive(signed(challenge, time.time()), challenge)
    assert (answer.sync, answer.body) == (False, "苍鹭1")
    event = json.dumps({"type": "event_callback", "event": {"type": "message"}}).encode()
    assert connector.receive(signed(event, time.time() - 200), event).sync
    forged = [
        signed(event, time.time() - 400),
        signed(event, time.time(), "guessed"),
        signed(challenge, time.time()),
        {},
        {"X-Slack-Request-Timestamp": "²", "X-Slack-Signature": "v0=ü"},
    ]
    for headers in forged:
        with pytest.raises(ForbiddenError):
            connector.receive(headers, event)
    with pytest.raises(ForbiddenError, match="no signing secret"):
        make_connector(SlackConnector, credentials=TOKEN).receive(
            signed(event, time.time(), ""), event
        )


@pytest.mark.parametrize(
    ("slack", "markdown"),
    [
        ("<https://a.example>", "https://a.example"),
        ("<mailto:a@b.example|a@b.example>", "[a@b.example](mailto:a@b.example)"),
        ("<#C1|general> <!subteam^S1|@eng> <!channel>", "#general @eng @channel"),
        ("<!date^1392734382^{date}|18 Feb 2014>", "18 Feb 2014"),
        ("1 &lt; 2 &amp;&amp; <b> 3", "1 < 2 && <b> 3"),
        ("&lt;@U1&gt;", "<@U1>"),
        ("你好<@U1>，看<https://例子.中国|这里>", "你好@Bo，看[这里](https://例子.中国)"),
    ],
)
def test_mark_up(slack: str, markdown: str) -> None:
    assert render_text(slack, {"U1": "Bo", "b": "?"}.__getitem__) == markdown
