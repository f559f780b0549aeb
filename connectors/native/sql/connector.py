"""Rows of a database query, each a document.

With a column of changes (a time or a number that grows), a later run reads the rows from the last value on, that
value included, so that rows of the same moment are not lost. Without one, and in full runs, all rows are read in
the order of their keys, and those that are gone are noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from pydantic import Field
from sqlalchemy import ColumnElement, String, and_, cast, column, or_

from config.errors import FieldError, InvalidInputError
from connectors.base import (
    NO_AUTH,
    BasicCredentials,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Deletion,
    Event,
    Failure,
    LiveHit,
    LiveSearch,
    Record,
    Refetch,
    Settings,
    Text,
    basic_auth,
)
from connectors.native.sql.database import (
    Database,
    Dialect,
    Place,
    Row,
    Tls,
)
from connectors.native.sql.errors import UnreadableRowError
from connectors.native.sql.values import (
    as_flag,
    as_moment,
    as_names,
    as_text,
    columns_in,
    filled,
    from_json,
    to_json,
)

_PAGE = 200
_MOST_WORDS = 8
_HIT_LENGTH = 2000


class SqlConfig(Settings):
    """Which database, which rows, and what they become."""

    dialect: Dialect = Field(title="Kind of database")
    host: str = Field(default="", title="Server", description="Not for SQLite.")
    port: int | None = Field(
        default=None, ge=1, le=65535, title="Port", description="Empty: the usual one."
    )
    database: str = Field(
        title="Database", description="Its name; for SQLite the path of the file."
    )
    tls: Tls = Field(
        default="verify",
        title="TLS",
        description="Verify the certificate, only encrypt, or neither.",
    )
    query: str = Field(
        title="Query",
        description="One SELECT. It is run as a part of a larger one.",
        json_schema_extra={"format": "textarea"},
    )
    key: str = Field(title="Key column", description="Never empty, and different in each row.")
    changed: str = Field(
        default="",
        title="Column of changes",
        description="A time or number that grows when a row changes; empty: all rows are read each time.",
    )
    lookback_minutes: int = Field(
        default=10, ge=0, le=10080, title="Look back",
        description="Minutes, for rows that are committed later than their time of change says.",
    )  # fmt: skip
    title: str = Field(
        default="", title="Title", description="Such as {name} ({number}); empty: the key."
    )
    body: str = Field(
        default="",
        title="Text",
        description="Markdown with columns in braces; empty: all columns, one a line.",
        json_schema_extra={"format": "textarea"},
    )
    url: str = Field(
        default="", title="Address", description="Such as https://crm.example.com/{id}."
    )
    metadata: list[str] = Field(default=[], title="Columns to filter by")
    deleted: str = Field(
        default="",
        title="Column of deletion",
        description="A flag or time that marks deleted rows.",
    )
    principals: str = Field(
        default="",
        title="Column of readers",
        description=(
            "Such as user:ana@example.com, group:sales or public, divided by commas. Empty: those "
            "named by the connection. A row without readers is read by nobody."
        ),
    )
    searched: list[str] = Field(
        default=[],
        title="Columns searched live",
        description="Empty: the source is not searched live.",
    )


class SqlConnector(Connector[SqlConfig], LiveSearch, Refetch):
    """Reads in pages by key, so that no page depends on how many rows came before it."""

    names_are_the_tenants = True
    spec = ConnectorSpec(
        kind="sql",
        name="SQL database",
        description="Rows of a query to PostgreSQL, MySQL, MariaDB or SQLite.",
        category=Category.DATABASES,
        config=SqlConfig,
        auth=(basic_auth(hint="A user who may only read."), NO_AUTH),
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS}),
    )

    def check(self) -> str:
        """The query's columns, when they are those that the configuration names."""
        columns = self._database.columns()
        self._require(columns)
        self._database.rows(limit=1)
        return f"{self.config.database}: columns {', '.join(columns)}."

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Changes since the cursor's value, or everything."""
        self._require(self._database.columns())
        if self.config.changed and "since" in cursor and "after" not in cursor:
            yield from self._changes(from_json(cursor["since"]), from_json(cursor.get("key")))
            return
        # What changes while all is read has a greater value than there was before, and is read next time.
        since = cursor.get("since")
        if self.config.changed and "after" not in cursor:
            since = to_json(self._database.greatest(self.config.changed))
        yield from self._listing(from_json(cursor.get("after")), since)
        yield Checkpoint({} if since is None else {"since": since})
        yield Complete()

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single rows."""
        for external_id in external_ids:
            yield from self._one(cast(self._key, String) == external_id, external_id)

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Rows in which each word stands in one of the searched columns. Where rows have readers of their
        own there are no hits, because hits do not say whose they are."""
        words = query.split()[:_MOST_WORDS]
        if not self.config.searched or self.config.principals or not words:
            return []
        columns = [cast(column(name), String) for name in self.config.searched]
        where = [or_(*(one.icontains(word, autoescape=True) for one in columns)) for word in words]
        rows = self._database.rows(*where, order=[self._key], limit=limit)
        return [self._hit(row) for row in rows if not self._is_deleted(row)]

    # --- reading -------------------------------------------------------------------------------

    def _listing(self, after: Any, since: Any) -> Iterator[Event]:
        where = self._key.is_not(None) if after is None else self._key > after
        while True:
            self.context.pause(0)
            events, last = self._page(where, [self.config.key])
            yield from events
            if last is None:
                return
            yield Checkpoint({"after": to_json(last[self.config.key]), "since": since})
            where = self._key > last[self.config.key]

    def _changes(self, since: Any, key: Any) -> Iterator[Event]:
        """From a value on, that value included; behind a key of that value where a run broke off."""
        changed: ColumnElement[Any] = column(self.config.changed)
        names = [self.config.changed, self.config.key]
        back = timedelta(minutes=self.config.lookback_minutes if key is None else 0)
        where = changed >= (since - back if isinstance(since, datetime) else since)
        if key is not None:
            where = or_(changed > since, and_(changed == since, self._key > key))
        while True:
            self.context.pause(0)
            events, last = self._page(where, names)
            yield from events
            if last is None:
                break
            since, key = last[self.config.changed], last[self.config.key]
            yield Checkpoint({"since": to_json(since), "key": to_json(key)})
            where = or_(changed > since, and_(changed == since, self._key > key))
        yield Checkpoint({"since": to_json(since)})

    def _page(
        self, where: ColumnElement[bool], names: Sequence[str]
    ) -> tuple[list[Event], Row | None]:
        """Rows in the order of these columns, and the last one; singly when one of them cannot be read."""
        order: list[ColumnElement[Any]] = [column(name) for name in names]
        try:
            rows = self._database.rows(where, order=order, limit=_PAGE)
            events = [self._event(row) for row in rows]
        except UnreadableRowError:
            rows = self._database.rows(where, order=order, limit=_PAGE, only=names)
            keys = [row[self.config.key] for row in rows]
            events = [one for key in keys for one in self._one(self._key == key, as_text(key))]
        return events, rows[-1] if rows else None

    def _one(self, where: ColumnElement[bool], external_id: str) -> list[Event]:
        try:
            rows = self._database.rows(where, limit=1)
        except UnreadableRowError as error:
            return [Failure(external_id, error.message)]
        # Not taken for deleted: the text of a key may be written in another way than the database has it.
        return [self._event(rows[0]) if rows else Failure(external_id, "There is no such row.")]

    def _event(self, row: Row) -> Event:
        external_id = as_text(row[self.config.key])
        if self._is_deleted(row):
            return Deletion(external_id)
        text = self._text(row)
        if len(text) > self.context.max_bytes:
            return Failure(external_id, f"Larger than {self.context.max_bytes // 1024 // 1024} MB.")
        readers = self.config.principals
        changed = row[self.config.changed] if self.config.changed else None
        return Record(
            external_id=external_id,
            title=filled(self.config.title, row).strip() or external_id,
            body=Text(text),
            url=filled(self.config.url, row),
            updated_at=as_moment(changed),
            metadata={name: _plain(row[name]) for name in self.config.metadata},
            principals=as_names(row[readers]) if readers else None,
        )

    def _hit(self, row: Row) -> LiveHit:
        key = as_text(row[self.config.key])
        return LiveHit(
            external_id=key,
            title=filled(self.config.title, row).strip() or key,
            text=self._text(row)[:_HIT_LENGTH],
            url=filled(self.config.url, row),
            updated_at=as_moment(row[self.config.changed]) if self.config.changed else None,
            metadata={name: _plain(row[name]) for name in self.config.metadata},
        )

    def _text(self, row: Row) -> str:
        if self.config.body:
            return filled(self.config.body, row)
        aside = {self.config.deleted, self.config.principals}
        shown = {name: as_text(value) for name, value in row.items() if name not in aside}
        return "\n\n".join(f"**{name}:** {value}" for name, value in shown.items() if value)

    def _is_deleted(self, row: Row) -> bool:
        return bool(self.config.deleted) and as_flag(row[self.config.deleted])

    # --- the database --------------------------------------------------------------------------

    @cached_property
    def _database(self) -> Database:
        config, proof = self.config, self.credentials
        place = Place(config.dialect, config.database, config.host, config.port, config.tls)
        if isinstance(proof, BasicCredentials):
            place = replace(place, user=proof.username, password=proof.password)
        return Database(place, config.query)

    @property
    def _key(self) -> ColumnElement[Any]:
        return column(self.config.key)

    def _require(self, columns: Sequence[str]) -> None:
        """Raise `InvalidInputError` naming the fields that name columns which are not there."""
        config = self.config
        named = {
            "key": [config.key], "changed": [config.changed], "deleted": [config.deleted],
            "principals": [config.principals], "metadata": config.metadata, "searched": config.searched,
            "title": columns_in(config.title), "body": columns_in(config.body), "url": columns_in(config.url),
        }  # fmt: skip
        faults = [
            FieldError(f"config.{field}", f"The query has no column {name!r}.")
            for field, names in named.items()
            for name in names
            if name and name not in columns
        ]
        if faults:
            message = " ".join(fault.message for fault in faults)
            raise InvalidInputError(f"{message} It has {', '.join(columns)}.", faults)


def _plain(value: Any) -> Any:
    return value if isinstance(value, bool | int | float | str | None) else as_text(value)
