"""Rows of SQLite, of the test run's PostgreSQL, and of MariaDB on loopback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from config.errors import (
    AppError,
    CredentialsError,
    InvalidInputError,
    RejectedError,
    TransientError,
)
from connectors.base import Checkpoint, Complete, Failure, Record
from connectors.models import Connection, SyncRun
from connectors.native.sql import connector as sql_module
from connectors.native.sql import database as database_module
from connectors.native.sql.connector import SqlConnector
from connectors.native.sql.errors import error_of
from connectors.native.sql.values import as_flag, as_moment, as_names, as_text, from_json, to_json
from connectors.services.opening import open_connector
from knowledge.models import Chunk
from tests.connectors.conftest import Syncs
from tests.connectors.native.mariadb_server import IS_ABSENT, MariadbServer, mariadb_server
from tests.connectors.native.processes import free_port
from tests.connectors.native.sql_sources import (
    Source,
    mariadb_source,
    postgresql_source,
    sqlite_source,
)

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
Connect = Callable[..., Connection]
FULL, RETRY = SyncRun.Kind.FULL, SyncRun.Kind.RETRY
LATER = "2025-03-05 10:00:00"


def counts(run: SyncRun) -> tuple[int, int, int, int, int]:
    return run.inserted, run.updated, run.kept, run.deleted, run.failed


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    if IS_ABSENT:
        pytest.skip("needs Debian's mariadb-server, and root to start it")
    with mariadb_server() as running:
        yield running


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def source(request: Any, settings: Any, tmp_path: Path, db: None) -> Iterator[Source]:
    """Three rows."""
    settings.GROUNDWORK_LOCAL_FOLDERS = [str(tmp_path)]
    if request.param == "sqlite":
        made = sqlite_source(tmp_path)
    elif request.param == "postgresql":
        made = postgresql_source()
    else:
        made = mariadb_source(request.getfixturevalue("mariadb"))
    settings.GROUNDWORK_PRIVATE_HOSTS = [made.config.get("host", "")]
    made.fill()
    yield made
    made.run("DROP TABLE birds")


def of(*kinds: str) -> pytest.MarkDecorator:
    """Of these databases only."""
    return pytest.mark.parametrize("source", kinds, indirect=True)


@pytest.fixture
def reading(connect: Connect, source: Source) -> Callable[..., Connection]:
    def make(proof: dict[str, str] | None = None, **config: Any) -> Connection:
        given = {
            **source.config, "query": f"SELECT * FROM {source.table} -- all of them\n;", "key": "id",
            "title": "{name}", "body": "# {name}\n\n{note} {no_column}", **config,
        }  # fmt: skip
        proof = {**source.proof, **(proof or {})}
        return connect(
            "sql", name=uuid4().hex, config=given, access="fixed",
            auth_method="basic" if proof else "none", credentials=proof,
        )  # fmt: skip

    return make


def test_rows_become_documents_with_their_facts(
    reading: Connect, syncs: Syncs, source: Source, keeper: Actor
) -> None:
    connection = reading(
        body="# {name}\n\n{note}", url="https://birds.example/{id}", metadata=["name"],
        changed="updated",
    )  # fmt: skip
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("succeeded", (3, 0, 0, 0, 0))
    documents = syncs.documents()
    assert set(documents) == {"5000000001", "5000000002", "5000000003"}
    chinese = documents["5000000002"]
    assert (chinese.title, chinese.source_uri) == ("苍鹭", "https://birds.example/5000000002")
    assert chinese.metadata["name"] == "苍鹭"
    assert chinese.source_updated_at == datetime(2025, 3, 1, 10, tzinfo=UTC)
    with tenant_scope(keeper.tenant_id):
        contents = "\n".join(Chunk.objects.values_list("content", flat=True))
    assert "苍鹭涉水" in contents
    assert "100% of them, {all} :of." in contents, "values are data"


def test_all_rows_are_compared_where_no_column_says_what_changed(
    reading: Connect, syncs: Syncs, source: Source
) -> None:
    connection = reading(body="{note}", title="")
    syncs.run(connection)
    source.run(
        "UPDATE birds SET note = 'They stand.' WHERE id = 5000000003",
        "DELETE FROM birds WHERE id = 5000000001",
        "INSERT INTO birds (id, name, note) VALUES (5000000004, 'Cranes', 'Cranes dance.')",
    )
    assert counts(syncs.run(connection)) == (1, 1, 1, 1, 0)
    assert set(syncs.documents()) == {"5000000002", "5000000003", "5000000004"}


def test_later_runs_read_what_has_changed(reading: Connect, syncs: Syncs, source: Source) -> None:
    connection = reading(changed="updated", body="{note}", lookback_minutes=0)
    syncs.run(connection)
    assert counts(syncs.run(connection)) == (0, 0, 1, 0, 0), "the last moment is read again"
    source.run(
        "INSERT INTO birds (id, name, note, updated) VALUES (5000000000, 'Egrets', 'Egrets.', '2025-03-02 10:00:00')",
        f"UPDATE birds SET note = 'They wade.', updated = '{LATER}' WHERE id = 5000000001",
        "DELETE FROM birds WHERE id = 5000000002",
    )
    assert counts(syncs.run(connection)) == (1, 1, 1, 0, 0), "of the same moment, and not lost"
    assert counts(syncs.run(connection, kind=FULL)) == (0, 0, 3, 1, 0)
    assert set(syncs.documents()) == {"5000000000", "5000000001", "5000000003"}


def test_rows_marked_as_deleted_go(reading: Connect, syncs: Syncs, source: Source) -> None:
    connection = reading(changed="updated", deleted="gone", body="{note}")
    syncs.run(connection)
    source.run(f"UPDATE birds SET gone = 1, updated = '{LATER}' WHERE id = 5000000002")
    assert syncs.run(connection).deleted == 1
    assert set(syncs.documents()) == {"5000000001", "5000000003"}


def test_a_run_that_broke_off_goes_on(reading: Connect, source: Source, monkeypatch: Any) -> None:
    monkeypatch.setattr(sql_module, "_PAGE", 1)
    connector = open_connector(reading(changed="updated", body="{note}", lookback_minutes=0))

    def ids(events: list[Any]) -> list[int]:
        return [int(one.external_id) - 5000000000 for one in events if isinstance(one, Record)]

    events = list(connector.pull({}))
    cursors = [one.cursor for one in events if isinstance(one, Checkpoint)]
    assert [cursor.get("after") for cursor in cursors] == [5000000001, 5000000002, 5000000003, None]
    assert isinstance(events[-1], Complete)
    events = list(connector.pull(cursors[1]))
    assert ids(events) == [3]
    assert isinstance(events[-1], Complete)
    source.run(f"UPDATE birds SET updated = '{LATER}' WHERE id < 5000000003")
    events = list(connector.pull(cursors[-1]))
    assert (ids(events), Complete() in events) == ([3, 1, 2], False)
    middle = [one.cursor for one in events if isinstance(one, Checkpoint)][1]
    assert ids(list(connector.pull(middle))) == [2]


@of("postgresql", "mariadb")
def test_the_time_looked_back_finds_late_rows(reading: Connect, source: Source) -> None:
    connector = open_connector(reading(changed="updated", body="{note}"))
    cursor = next(
        one.cursor
        for one in connector.pull({})
        if isinstance(one, Checkpoint) and "after" not in one.cursor
    )
    source.run(
        "INSERT INTO birds (id, note, updated) VALUES (5000000009, 'Late.', '2025-03-02 09:51:00')"
    )
    found = [one.external_id for one in connector.pull(cursor) if isinstance(one, Record)]
    assert found == ["5000000009", "5000000003"]


@of("sqlite", "postgresql")
def test_a_row_that_cannot_be_read_is_kept_and_reported(
    reading: Connect, syncs: Syncs, source: Source
) -> None:
    connection = reading(body="{note}")
    syncs.run(connection)
    spoil = {
        "sqlite": "UPDATE birds SET note = CAST(x'ff' AS TEXT) WHERE id = 5000000002",
        "postgresql": "ALTER TABLE birds ADD seen TIMESTAMPTZ; UPDATE birds SET seen = 'infinity' WHERE id = 5000000002",
    }[source.config["dialect"]]  # fmt: skip
    source.run(spoil)
    run = syncs.run(connection)
    assert (run.status, counts(run)) == ("partial", (0, 0, 2, 0, 1))
    assert "cannot be read" in syncs.items()["5000000002"].error
    assert len(syncs.documents()) == 3
    source.run("UPDATE birds SET note = 'Mended.' WHERE id = 5000000002")
    if source.config["dialect"] == "postgresql":
        source.run("UPDATE birds SET seen = NULL")
    run = syncs.run(connection, kind=RETRY)
    assert counts(run) == (0, 1, 0, 0, 0)


def test_single_rows_are_read_anew(reading: Connect) -> None:
    connector = open_connector(reading(body="{note}"))
    assert isinstance(connector, SqlConnector)
    first, second = connector.fetch(["5000000002", "7"])
    assert isinstance(first, Record)
    assert second == Failure("7", "There is no such row.")


def test_rows_too_large_are_failures(reading: Connect, settings: Any) -> None:
    settings.MAX_UPLOAD_BYTES = 20
    events = list(open_connector(reading(body="{note}")).pull({}))
    assert [one.external_id for one in events if isinstance(one, Failure)] == ["5000000001"]


def test_rows_say_who_may_read_them(reading: Connect, source: Source) -> None:
    source.run("UPDATE birds SET readers = 'user:ana@example.com, group:eng' WHERE id = 5000000001")
    events = open_connector(reading(principals="readers", body="")).pull({})
    found = {one.external_id: one for one in events if isinstance(one, Record)}
    assert found["5000000001"].principals == frozenset({"user:ana@example.com", "group:eng"})
    assert found["5000000003"].principals == frozenset(), "nobody"


def test_the_source_is_searched_live(reading: Connect, source: Source) -> None:
    connector = open_connector(reading(searched=["name", "note"], body="{note}", deleted="gone"))
    assert isinstance(connector, SqlConnector)
    assert [hit.title for hit in connector.search("涉水", 5)] == ["苍鹭"]
    assert [hit.title for hit in connector.search("WADE herons", 5)] == ["Herons"]
    assert connector.search("100% of", 5)[0].text.startswith("Herons wade")
    assert connector.search("100_ of", 5) == []
    assert len(connector.search("s", 1)) == 1
    assert connector.search(" ", 5) == []
    source.run("UPDATE birds SET gone = 1 WHERE id = 5000000001")
    assert connector.search("wade", 5) == []
    changes: list[dict[str, Any]] = [{"searched": []}, {"principals": "readers"}]
    for change in changes:
        other = open_connector(reading(**{"searched": ["name"], "body": "", **change}))
        assert isinstance(other, SqlConnector)
        assert other.search("Herons", 5) == []


def test_all_columns_are_shown_where_no_text_is_given(reading: Connect) -> None:
    events = open_connector(reading(body="", title="")).pull({})
    first = next(one for one in events if isinstance(one, Record))
    assert first.title == "5000000001"
    assert "**name:** Herons\n\n**note:** Herons wade" in getattr(first.body, "text", "")


def test_a_database_that_is_down_deletes_nothing(
    reading: Connect, syncs: Syncs, source: Source, keeper: Actor
) -> None:
    connection = reading(body="{note}")
    syncs.run(connection)
    where = {"database": f"{source.config['database']}.gone"}
    if source.config["dialect"] == "mariadb":
        where = {"port": str(free_port())}
    with tenant_scope(keeper.tenant_id):
        config = {**connection.config, **where}
        Connection.objects.filter(id=connection.id).update(config=config)
    run = syncs.run(connection)
    assert run.status == {"mariadb": "queued"}.get(source.config["dialect"], "failed")
    assert len(syncs.documents()) == 3


def test_check_names_the_columns(reading: Connect) -> None:
    said = open_connector(reading(body="{note}")).check()
    assert "columns id, name, note, updated, gone, readers." in said
    with pytest.raises(InvalidInputError, match="no column 'nam'"):
        open_connector(reading(body="{note}", metadata=["nam"])).check()
    with pytest.raises(InvalidInputError, match="no column 'no_column'"):
        next(open_connector(reading()).pull({}))


@pytest.mark.parametrize(
    "query",
    [
        "DELETE FROM birds",
        "",
        "UPDATE birds SET note = 'x'",
        "SELECT 1 AS id INTO OUTFILE '/tmp/x'",
        "SELECT 1 AS id /*!) x; DROP TABLE birds */",
        "SELECT 1 AS id) AS x; DELETE FROM birds; SELECT * FROM (SELECT 1 AS id",
        "WITH gone AS (DELETE FROM birds RETURNING id) SELECT id FROM gone",
        "SELECT no_such_thing AS id FROM birds",
        "SELECT 1 AS id FROM (",
    ],
)
def test_queries_do_nothing_but_read(reading: Connect, source: Source, query: str) -> None:
    with pytest.raises((InvalidInputError, RejectedError)):
        open_connector(
            reading(query=query.replace("birds", source.table), body="", title="")
        ).check()
    assert len(list(open_connector(reading(body="")).pull({}))) >= 3


@of("postgresql")
def test_functions_that_write_are_refused(reading: Connect, source: Source) -> None:
    queries = [
        "SELECT nextval('birds_seq') AS id",
        "SELECT 1 AS id FROM set_config('transaction_read_only', 'off', true), nextval('birds_seq')",
        "SELECT id FROM birds FOR UPDATE",
    ]
    source.run("CREATE SEQUENCE birds_seq OWNED BY birds.id")
    for query in queries:
        with pytest.raises(InvalidInputError, match="read"):
            open_connector(
                reading(query=query.replace("birds", source.table), body="", title="")
            ).check()


@of("sqlite")
def test_sqlite_reads_its_own_file_only(reading: Connect, source: Source) -> None:
    for query in ("SELECT * FROM pragma_database_list", "SELECT load_extension('x') AS id"):
        with pytest.raises(InvalidInputError, match="cannot be run"):
            open_connector(reading(query=query, key="id", body="", title="")).check()
    other = Path(source.config["database"]).parent / "link.db"
    other.symlink_to(source.config["database"])
    for path, error in ((str(other), RejectedError), ("/etc/passwd", InvalidInputError)):
        with pytest.raises(error):
            open_connector(reading(database=path, body="")).check()


def test_slow_queries_end(reading: Connect, source: Source, monkeypatch: Any) -> None:
    monkeypatch.setattr(database_module, "_STATEMENT_S", 1)
    slow = {
        "sqlite": "WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT max(id) AS id FROM n",
        "postgresql": "SELECT 1 AS id FROM pg_sleep(5)",
        "mariadb": "SELECT SLEEP(5) AS id",
    }[source.config["dialect"]]  # fmt: skip
    with pytest.raises(RejectedError, match="too long"):
        open_connector(reading(query=slow, body="", title="")).check()


@of("mariadb")
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"proof": {"password": "wrong-密"}}, CredentialsError, "does not accept"),
        ({"proof": {"username": "nobody"}}, CredentialsError, "does not accept"),
        ({"database": "nowhere"}, RejectedError, "cannot be opened"),
        ({"host": "10.1.2.3"}, RejectedError, "private network"),
        ({"port": 9}, TransientError, "cannot be asked"),
        ({"tls": "verify"}, RejectedError, "certificate"),
    ],
)
def test_check_says_what_to_mend(
    reading: Connect, change: dict[str, Any], error: type[AppError], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        open_connector(reading(body="", **change)).check()
    assert "wrong-密" not in str(raised.value)


@of("mariadb")
def test_certificates_are_checked_unless_one_says_otherwise(
    reading: Connect, mariadb: MariadbServer, monkeypatch: Any
) -> None:
    assert open_connector(reading(body="", tls="encrypt")).check()
    monkeypatch.setenv("SSL_CERT_FILE", str(mariadb.certificate))
    assert open_connector(reading(body="", tls="verify")).check()


@of("postgresql")
def test_postgresql_says_what_to_mend(reading: Connect, source: Source) -> None:
    cases: list[tuple[dict[str, Any], type[AppError]]] = [
        ({"proof": {"username": "nobody"}}, CredentialsError),
        ({"database": "nowhere"}, RejectedError),
        ({"host": "/var/run/other"}, RejectedError),
        ({"port": 9}, TransientError),
    ]
    for change, error in cases:
        with pytest.raises(error):
            open_connector(reading(body="", **change)).check()
    # The database of the test run trusts everybody, so what others say is played.
    said = psycopg.OperationalError('FATAL:  password authentication failed for user "geheim"')
    found = error_of(OperationalError("", {}, said), "geheim")
    assert isinstance(found, CredentialsError)
    assert "geheim" not in found.message


@pytest.mark.parametrize(
    "value",
    [
        1, "x", None, 1.5, Decimal("1.10"), UUID(int=7), b"\x00\xff", date(2025, 3, 1),
        datetime(2025, 3, 1, 10, 0, 0, 7, tzinfo=UTC),
    ],
)  # fmt: skip
def test_values_survive_a_cursor(value: Any) -> None:
    assert from_json(to_json(value)) == value


def test_values_mean_what_they_say() -> None:
    assert [as_flag(one) for one in (1, True, "yes", "2025-03-01", b"\x01", Decimal(1))] == [
        True
    ] * 6
    assert not any(map(as_flag, (0, None, "", "No", "0000-00-00 00:00:00", b"\x00", "f")))
    assert as_names('["user:a@x.org", "public"]') == {"user:a@x.org", "public"}
    assert as_names(["group:x"]) == {"group:x"}
    assert as_names(None) == frozenset()
    assert as_text({"名": [1]}) == '{"名": [1]}'
    assert as_text([1, None, b"x"]) == "1, , x"
    assert as_moment("no time") is None
    assert as_moment(date(2025, 3, 1)) == datetime(2025, 3, 1, tzinfo=UTC)
