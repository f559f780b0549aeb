"""Buckets of an S3 server on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from connectors.base import Checkpoint, Complete, Failure, File, Record
from connectors.models import Connection, SyncRun
from connectors.native import s3 as s3_module
from connectors.native.s3 import S3Connector
from connectors.services.opening import open_connector
from knowledge.models import Chunk
from tests.connectors.conftest import Syncs
from tests.connectors.native.processes import free_port
from tests.connectors.native.s3_server import S3Server, s3_server

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Connect = Callable[..., Connection]


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    with s3_server() as running:
        yield running


class Bucket:
    """A bucket of the test's own."""

    def __init__(self, server: S3Server) -> None:
        self.server, self.name = server, f"b-{uuid4().hex}"
        self._client = server.client()
        self._client.create_bucket(Bucket=self.name)

    def put(self, key: str, content: str, **more: Any) -> None:
        self._client.put_object(Bucket=self.name, Key=key, Body=content.encode(), **more)

    def delete(self, key: str) -> None:
        self._client.delete_object(Bucket=self.name, Key=key)


@pytest.fixture
def bucket(s3: S3Server, settings: Any, monkeypatch: Any) -> Bucket:
    """Two files, one of them in a folder, and the marker of that folder."""
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    monkeypatch.setattr(s3_module, "_ATTEMPTS", 1)
    made = Bucket(s3)
    made.put("herons.md", "# Herons\n\nHerons wade.\n")
    made.put("水鸟/", "")
    made.put("水鸟/苍 鹭+1.txt", "苍鹭涉水。")
    return made


@pytest.fixture
def reading(connect: Connect, bucket: Bucket) -> Callable[..., Connection]:
    def make(key: dict[str, str] | None = None, **config: Any) -> Connection:
        given = {
            "bucket": bucket.name, "endpoint_url": bucket.server.url, "path_style": True, **config
        }  # fmt: skip
        secrets = {"key_id": bucket.server.key_id, "secret": bucket.server.secret, **(key or {})}
        return connect("s3", config=given, auth_method="key", credentials=secrets)

    return make


def test_objects_become_documents_with_their_facts(
    reading: Connect, syncs: Syncs, bucket: Bucket, keeper: Actor
) -> None:
    run = syncs.run(reading())
    documents = syncs.documents()
    assert (run.status, counts(run)) == ("succeeded", (2, 0, 0, 0, 0))
    assert set(documents) == {"herons.md", "水鸟/苍 鹭+1.txt"}
    chinese = documents["水鸟/苍 鹭+1.txt"]
    assert (chinese.title, chinese.breadcrumbs) == ("苍 鹭+1", ["水鸟"])
    assert chinese.metadata["bucket"] == bucket.name
    assert chinese.source_updated_at is not None
    with tenant_scope(keeper.tenant_id):
        assert Chunk.objects.filter(content__contains="苍鹭涉水").exists()


def test_later_runs_read_what_has_changed(reading: Connect, syncs: Syncs, bucket: Bucket) -> None:
    connection = reading()
    syncs.run(connection)
    bucket.put("herons.md", "# Herons\n\nHerons stand.\n")
    bucket.put("storks.md", "Storks.")
    bucket.delete("水鸟/苍 鹭+1.txt")
    run = syncs.run(connection)
    assert counts(run) == (1, 1, 0, 1, 0)
    assert set(syncs.documents()) == {"herons.md", "storks.md"}
    assert counts(syncs.run(connection)) == (0, 0, 2, 0, 0)


def test_prefixes_and_patterns_choose(reading: Connect, syncs: Syncs, bucket: Bucket) -> None:
    for key in ("a/1.md", "a/2.tmp", "ab/3.md", "a/old/4.md", "c/5.md"):
        bucket.put(key, key)
    connection = reading(prefixes=["a/", "a/old/", "c/"], include=["*.md"], exclude=["a/old/*"])
    syncs.run(connection)
    assert set(syncs.documents()) == {"a/1.md", "c/5.md"}


def test_what_cannot_be_read_is_kept_and_reported(
    reading: Connect, syncs: Syncs, bucket: Bucket
) -> None:
    connection = reading()
    syncs.run(connection)
    bucket.put("herons.md", "Frozen.", StorageClass="GLACIER")
    bucket.put("geheim/a.md", "Nobody may read this.")
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("partial", (0, 0, 1, 0, 2))
    assert set(syncs.documents()) == {"herons.md", "水鸟/苍 鹭+1.txt"}
    items = syncs.items()
    assert "restore it" in items["herons.md"].error
    assert "does not allow this key to read" in items["geheim/a.md"].error


def test_objects_that_grow_too_large_are_refused(
    reading: Connect, bucket: Bucket, settings: Any
) -> None:
    bucket.put("big.txt", "x" * 3000)
    settings.MAX_UPLOAD_BYTES = 1000
    events = {
        one.external_id: one
        for one in open_connector(reading()).pull({})
        if isinstance(one, Record)
    }
    body = events["big.txt"].body
    assert isinstance(body, File)
    with pytest.raises(RejectedError, match="Larger"), body.open():
        pass


def test_a_run_that_broke_off_goes_on(reading: Connect, bucket: Bucket, monkeypatch: Any) -> None:
    monkeypatch.setattr(s3_module, "_PAGE", 2)
    for number in range(5):
        bucket.put(f"k{number}", "x")
    connector = open_connector(reading(prefixes=["k"]))
    events = list(connector.pull({}))
    first = [one.cursor for one in events if isinstance(one, Checkpoint)]
    assert first == [{"after": "k1"}, {"after": "k3"}, {"after": "k4"}, {}]
    assert isinstance(events[-1], Complete)
    events = list(connector.pull({"after": "k3"}))
    keys = [one.external_id for one in events if isinstance(one, Record)]
    assert keys == ["k4"]
    assert isinstance(events[-1], Complete)


def test_a_store_that_is_down_deletes_nothing(
    reading: Connect, syncs: Syncs, keeper: Actor
) -> None:
    connection = reading()
    syncs.run(connection)
    with tenant_scope(keeper.tenant_id):
        config = {**connection.config, "endpoint_url": f"http://127.0.0.1:{free_port()}"}
        Connection.objects.filter(id=connection.id).update(config=config)
    run = syncs.run(connection)
    assert run.status == "queued", "it is tried again later"
    assert "cannot be reached" in run.error
    assert len(syncs.documents()) == 2


def test_check_says_what_is_there(reading: Connect) -> None:
    assert open_connector(reading()).check().endswith("3 objects")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"key": {"secret": "wrong-secret"}}, CredentialsError, "does not accept the access key"),
        ({"key": {"key_id": "AKIAUNKNOWN"}}, CredentialsError, "does not accept the access key"),
        ({"bucket": "no-such-bucket"}, RejectedError, "no such bucket"),
        ({"bucket": "not a bucket"}, InvalidInputError, "name of the bucket"),
        ({"endpoint_url": "http://[::1"}, InvalidInputError, "endpoint"),
        ({"endpoint_url": "http://192.168.7.7:9000"}, RejectedError, "private network"),
        ({"endpoint_url": "http://127.0.0.1:9"}, TransientError, "cannot be reached"),
    ],
)
def test_check_says_what_to_mend(
    reading: Connect, change: dict[str, Any], error: type[AppError], message: str
) -> None:
    connector = open_connector(reading(**change))
    with pytest.raises(error, match=message) as raised:
        connector.check()
    assert "wrong-secret" not in str(raised.value)


def test_an_archived_object_is_a_failure_until_it_is_restored(reading: Connect) -> None:
    connector = open_connector(reading())
    assert isinstance(connector, S3Connector)
    facts = {
        "Key": "a.md",
        "Size": 1,
        "ETag": '"1"',
        "LastModified": None,
        "StorageClass": "GLACIER",
    }
    assert isinstance(next(connector._events(None, [facts])), Failure)
    restored = {**facts, "RestoreStatus": {"RestoreExpiryDate": "2030-01-01"}}
    assert isinstance(next(connector._events(None, [restored])), Record)
