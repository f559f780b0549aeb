"""Mailboxes of Dovecot on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import (
    AppError,
    CredentialsError,
    InvalidInputError,
    RejectedError,
    TransientError,
)
from connectors.base import Checkpoint, Complete, File, Record
from connectors.models import Connection, SyncRun
from connectors.native.imap import connector as imap_module
from connectors.native.imap.connector import ImapConnector
from connectors.native.imap.messages import summary_of
from connectors.services.opening import open_connector
from knowledge.models import Chunk
from tests.connectors.conftest import Syncs
from tests.connectors.native.imap_server import (
    IS_ABSENT,
    PASSWORD,
    ImapServer,
    imap_server,
    mail,
)
from tests.connectors.native.processes import free_port

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.skipif(IS_ABSENT, reason="needs Debian's dovecot-imapd, and root to start it"),
]
Connect = Callable[..., Connection]
FULL = SyncRun.Kind.FULL


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


@pytest.fixture(scope="session")
def dovecot() -> Iterator[ImapServer]:
    with imap_server() as running:
        yield running


class User:
    """A mailbox of the test's own."""

    def __init__(self, server: ImapServer) -> None:
        self.server, self.name = server, f"u{uuid4().hex[:12]}"

    def client(self) -> AbstractContextManager[Any]:
        return self.server.client(self.name)

    def put(self, folder: str, *messages: bytes, flags: tuple[str, ...] = ()) -> None:
        with self.client() as box:
            if not box.folder_exists(folder):
                box.create_folder(folder)
            for message in messages:
                box.append(folder, message, flags)

    def delete(self, folder: str, subject: str) -> None:
        with self.client() as box:
            box.select_folder(folder)
            box.delete_messages(box.search(["SUBJECT", subject]))
            box.expunge()

    def files(self) -> list[Path]:
        place = self.server.folder / "mail" / self.name
        return [one for one in place.rglob("*") if one.parent.name in {"new", "cur"}]


@pytest.fixture
def user(dovecot: ImapServer, settings: Any) -> User:
    """Two messages, one of them in a folder."""
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    made = User(dovecot)
    made.put("INBOX", mail("Herons", "Herons wade."))
    made.put("项目/水鸟", mail("关于苍鹭", "苍鹭涉水。"))
    return made


@pytest.fixture
def reading(connect: Connect, user: User) -> Callable[..., Connection]:
    def make(password: str = PASSWORD, **config: Any) -> Connection:
        given = {"host": "127.0.0.1", "port": user.server.port, "security": "none", **config}
        proof = {"username": user.name, "password": password}
        return connect("imap", name=uuid4().hex, config=given, credentials=proof)

    return make


def titles(syncs: Syncs) -> set[str]:
    return {document.title for document in syncs.documents().values()}


def test_messages_become_documents_with_their_facts(
    reading: Connect, syncs: Syncs, user: User, keeper: Actor
) -> None:
    user.put("项目/水鸟", mail("回复:关于苍鹭", "白鹭也是。", In_Reply_To="<first@example.com>"))
    user.put("Junk", mail("Win", "Money."))
    run = syncs.run(reading())
    assert (run.status, counts(run)) == ("succeeded", (3, 0, 0, 0, 0))
    documents = {one.title: one for one in syncs.documents().values()}
    assert set(documents) == {"Herons", "关于苍鹭", "回复:关于苍鹭"}
    reply = documents["回复:关于苍鹭"]
    assert reply.breadcrumbs == ["项目", "水鸟", "关于苍鹭"]
    assert reply.author == "王安娜"
    assert reply.source_created_at == datetime(2025, 3, 1, 2, tzinfo=UTC)
    assert (reply.metadata["folder"], reply.metadata["thread"]) == (
        "项目/水鸟",
        "first@example.com",
    )
    assert reply.source_uri.startswith("mid:")
    with tenant_scope(keeper.tenant_id):
        assert Chunk.objects.filter(content__contains="苍鹭涉水").exists()
    with user.client() as box:
        box.select_folder("项目/水鸟")
        assert len(box.search("UNSEEN")) == 2, "they stay unread"


def test_later_runs_read_what_is_new_and_notice_what_is_gone(
    reading: Connect, syncs: Syncs, user: User
) -> None:
    connection = reading()
    syncs.run(connection)
    assert counts(syncs.run(connection)) == (0, 0, 0, 0, 0)
    user.put("INBOX", mail("Storks", "Storks stand."), mail("Cranes", "Cranes dance."))
    assert counts(syncs.run(connection)) == (2, 0, 0, 0, 0)
    user.delete("INBOX", "Storks")
    user.put("INBOX", mail("Egrets", "Egrets hunt."))
    assert counts(syncs.run(connection)) == (1, 0, 2, 1, 0)
    assert titles(syncs) == {"Herons", "Cranes", "Egrets", "关于苍鹭"}
    assert counts(syncs.run(connection, kind=FULL)) == (0, 0, 4, 0, 0)


def test_flags_that_change_are_facts_that_change(
    reading: Connect, syncs: Syncs, user: User
) -> None:
    connection = reading()
    syncs.run(connection)
    with user.client() as box:
        box.select_folder("INBOX")
        box.add_flags(box.search(), ["\\Flagged", "\\Seen"])
    assert counts(syncs.run(connection)) == (0, 1, 0, 0, 0)
    flags = {one.title: one.metadata["flags"] for one in syncs.documents().values()}
    assert flags == {"Herons": ["\\Flagged"], "关于苍鹭": []}


def test_a_folder_that_is_gone_takes_its_messages_along(
    reading: Connect, syncs: Syncs, user: User
) -> None:
    connection = reading()
    syncs.run(connection)
    with user.client() as box:
        box.delete_folder("项目/水鸟")
    assert counts(syncs.run(connection)) == (0, 0, 0, 1, 0)
    assert titles(syncs) == {"Herons"}


def test_a_folder_with_other_uids_brings_nothing_twice(
    reading: Connect, syncs: Syncs, user: User
) -> None:
    connection = reading()
    syncs.run(connection)
    before = {one.title: one.id for one in syncs.documents().values()}
    with user.client() as box:
        validity = box.folder_status("项目/水鸟", ["UIDVALIDITY"])
        box.select_folder("项目/水鸟", readonly=True)
        content = box.fetch(box.search(), ["RFC822"])
        box.unselect_folder()
        box.delete_folder("项目/水鸟")
        box.create_folder("项目/水鸟")
        box.append("项目/水鸟", mail("New", "New."))
        for facts in content.values():
            box.append("项目/水鸟", facts[b"RFC822"])
        assert box.folder_status("项目/水鸟", ["UIDVALIDITY"]) != validity
    assert counts(syncs.run(connection)) == (1, 0, 1, 0, 0)
    after = {one.title: one.id for one in syncs.documents().values()}
    assert {name: after[name] for name in before} == before


def test_a_forged_message_id_replaces_nothing(reading: Connect, syncs: Syncs, user: User) -> None:
    user.put("INBOX", mail("Pay here", "Account 1.", Message_ID="<pay@example.com>"))
    connection = reading()
    syncs.run(connection)
    user.put("INBOX", mail("Pay here", "Account 666.", Message_ID="<pay@example.com>"))
    run = syncs.run(connection)
    assert (run.inserted, run.updated) == (1, 0)
    assert len(syncs.documents()) == 4


def test_folders_and_days_choose(reading: Connect, syncs: Syncs, user: User) -> None:
    user.put("Lists/a", mail("List", "List."))
    user.put("Junk", mail("Junk", "Junk."))
    with user.client() as box:
        box.append("Junk", mail("Old", "Old."), msg_time=datetime(2001, 1, 1, tzinfo=UTC))
    connection = reading(include=["Lists/*", "Junk"], since="2020-01-01")
    run = syncs.run(connection)
    assert (run.inserted, titles(syncs)) == (2, {"List", "Junk"})
    assert counts(syncs.run(connection)) == (0, 0, 0, 0, 0)
    connector = open_connector(reading(exclude=["Lists/*"]))
    assert isinstance(connector, ImapConnector)
    assert [node.id for node in connector.browse("")] == ["INBOX", "项目/水鸟"]


def test_a_message_that_cannot_be_read_is_kept_and_reported(
    reading: Connect, syncs: Syncs, user: User
) -> None:
    user.put("INBOX", mail("Storks", "Storks stand."))
    connection = reading(include=["INBOX"])
    syncs.run(connection)
    file = next(one for one in user.files() if b"Storks" in one.read_bytes())
    user.put("INBOX", mail("Cranes", "Cranes dance."))
    for cache in (user.server.folder / "mail" / user.name).glob("dovecot.index*"):
        cache.unlink()
    file.chmod(0)
    run = syncs.run(connection, kind=FULL)
    assert run.status == "partial"
    assert (run.deleted, run.failed) == (0, 1)
    assert titles(syncs) == {"Herons", "Storks", "Cranes"}
    failed = [item for item in syncs.items().values() if item.status == "failed"]
    assert [item.external_id for item in failed] == ["INBOX#2"]
    file.chmod(0o600)
    run = syncs.run(connection)
    assert (run.status, run.failed) == ("succeeded", 0)
    assert titles(syncs) == {"Herons", "Storks", "Cranes"}
    assert {item.status for item in syncs.items().values()} == {"stored"}


def test_messages_that_are_too_large_are_left_out(
    reading: Connect, syncs: Syncs, user: User, settings: Any
) -> None:
    user.put("INBOX", mail("Big", "x " * 5000))
    settings.MAX_UPLOAD_BYTES = 2000
    connection = reading(include=["INBOX"])
    run = syncs.run(connection)
    assert counts(run) == (1, 0, 1, 0, 0)
    assert {item.error for item in syncs.items().values()} == {"", "Larger than 0 MB."}
    for event in open_connector(connection).pull({}):
        if isinstance(event, Record) and event.title == "Big":
            assert isinstance(event.body, File)
            with pytest.raises(RejectedError, match="Larger"), event.body.open():
                pass


def test_a_run_that_broke_off_goes_on(reading: Connect, user: User, monkeypatch: Any) -> None:
    monkeypatch.setattr(imap_module, "_PAGE", 2)
    user.put("INBOX", *[mail(f"M{number}", "x") for number in range(1, 5)])
    connector = open_connector(reading(include=["INBOX"]))
    events = list(connector.pull({}))
    cursors = [one.cursor["folders"]["INBOX"] for one in events if isinstance(one, Checkpoint)]
    assert [(one["next"], one["count"], one["partial"]) for one in cursors] == [
        (3, 2, True), (5, 4, True), (6, 5, True), (6, 5, False), (6, 5, False),
    ]  # fmt: skip
    assert [one.scope for one in events if isinstance(one, Complete)] == ["INBOX"]
    events = list(connector.pull({"folders": {"INBOX": cursors[1]}}))
    subjects = [one.title for one in events if isinstance(one, Record)]
    assert subjects == ["M4"]
    assert [one.scope for one in events if isinstance(one, Complete)] == ["INBOX"]
    gone = {"folders": {"INBOX": {**cursors[1], "count": 5}}}
    events = list(connector.pull(gone))
    subjects = [one.title for one in events if isinstance(one, Record)]
    assert subjects == ["Herons", "M1", "M2", "M3", "M4"], "from the start where some are gone"
    missed = {"folders": {"INBOX": {**cursors[1], "missed": True}}}
    events = list(connector.pull(missed))
    assert not any(isinstance(one, Complete) for one in events)
    assert list(connector.pull({"folders": {"INBOX": cursors[-1]}})) == [
        Checkpoint({"folders": {"INBOX": cursors[-1]}})
    ]


def test_a_retry_reads_messages_after_the_listing_has_ended(reading: Connect) -> None:
    events = list(open_connector(reading()).pull({}))
    for event in events:
        if isinstance(event, Record):
            assert isinstance(event.body, File)
            with event.body.open() as file:
                assert b"Subject" in file.read()


def test_a_server_that_is_down_deletes_nothing(
    reading: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = reading()
    syncs.run(connection)
    with tenant_scope(keeper.tenant_id):
        config = {**connection.config, "port": free_port()}
        Connection.objects.filter(id=connection.id).update(config=config)
    run = syncs.run(connection)
    assert (run.status, len(syncs.documents())) == ("queued", 2)
    assert "cannot be reached" in run.error


def test_certificates_are_checked(reading: Connect, user: User, monkeypatch: Any) -> None:
    ports = {"tls": user.server.tls_port, "starttls": user.server.port}
    for security, port in ports.items():
        connection = reading(security=security, port=port)
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        with pytest.raises(RejectedError, match="no valid certificate"):
            open_connector(connection).check()
        monkeypatch.setenv("SSL_CERT_FILE", str(user.server.folder / "cert.pem"))
        assert open_connector(connection).check() == "127.0.0.1: 2 folders"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"password": "wrong-密"}, CredentialsError, "user name or the password"),
        ({"host": "10.1.2.3"}, RejectedError, "private network"),
        ({"host": "no-such-host.invalid"}, TransientError, "cannot be found"),
        ({"port": 9}, TransientError, "cannot be reached"),
    ],
)
def test_check_says_what_to_mend(
    reading: Connect, change: dict[str, Any], error: type[AppError], message: str
) -> None:
    connector = open_connector(reading(**change))
    with pytest.raises(error, match=message) as raised:
        connector.check()
    assert "wrong" not in str(raised.value)


def test_passwords_are_not_sent_in_the_open(reading: Connect, settings: Any) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = []
    connector = open_connector(reading(host="93.184.216.34"))
    with pytest.raises(InvalidInputError, match="Choose TLS"):
        connector.check()


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("苍鹭".encode(), "苍鹭"),
        ("苍鹭".encode("gb18030"), "苍鹭"),
        (b"=?gb2312?B?" + b"yfrO76OpmEc=" + b"?=", None),
        (b"=?no-such-charset?Q?x=FF?=", "=?no-such-charset?Q?x=FF?="),
        (b"caf\xe9", None),
    ],
)
def test_broken_headers_are_read_as_well_as_can_be(subject: bytes, expected: str | None) -> None:
    raw = b"Subject: " + subject + b"\r\nDate: yesterday\r\n\r\n"
    found = summary_of({b"RFC822.SIZE": 10, b"BODY[HEADER.FIELDS (SUBJECT)]": raw})
    assert found.subject == expected or (expected is None and found.subject)
    assert (found.moment, found.author) == (None, "")
