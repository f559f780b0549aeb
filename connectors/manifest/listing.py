"""One listing of one stream: its records, what hangs on them, and how well it went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from config.errors import RejectedError, RemoteError, TransientError
from connectors.base import Deletion, Failure, Record
from connectors.manifest.mapping import external_id, record_of
from connectors.manifest.paging import Position
from connectors.manifest.schema import Stream
from connectors.manifest.source import Source
from connectors.manifest.templates import Scope, search
from connectors.manifest.times import moment, written

_MOST_FAILING = 8  # requests in a row that fail for reasons of the source end the run

Found = Record | Deletion | Failure


def family_of(stream: Stream, streams: list[Stream]) -> list[Stream]:
    """The stream and everything below it, parents first."""
    found = [stream]
    for one in streams:
        if one.parent in {above.name for above in found}:
            found.append(one)
    return found


@dataclass(frozen=True, slots=True)
class Listed:
    """What a page held, and where the listing goes on; None at its end."""

    found: Iterator[Found]
    next: Position | None


@dataclass(slots=True)
class Listing:
    """A stream, or a stream for one value of the configuration. Iterate its pages and what they hold in
    order; the other fields then say what is to be thought of it."""

    source: Source
    streams: list[Stream]  # of the whole manifest: children are found in it
    stream: Stream
    each: str = ""
    since: datetime | None = None  # None: everything is listed
    newest: datetime | None = None
    damaged: set[str] = field(default_factory=set)  # streams that were not seen whole
    interrupted: bool = False  # something failed that a repetition may mend
    count: int = 0
    notes: set[str] = field(default_factory=set)  # about what has no id
    _failing: int = 0

    def pages(self, start: Position, counted: int) -> Iterator[Listed]:
        """From a position on."""
        stream = self.stream
        scope = {**self.source.scope, "each": self.each, "ancestors": [], "since": self._since()}
        pages = self.source.pages(
            self._endpoint(), scope, records=stream.records, paging=stream.pagination,
            name=stream.name, start=start, counted=counted,
        )  # fmt: skip
        for page in pages:
            left = None if stream.limit is None else max(stream.limit - self.count, 0)
            records = page.records[:left]
            self.count += len(records)
            is_last = self.count == stream.limit or self._reaches_the_old(records)
            found = self._emit_all(stream, records, {**scope, "answer": page.answer.data})
            yield Listed(found, None if is_last else page.next)
            if is_last:
                return

    def _endpoint(self) -> Stream:
        stream, incremental = self.stream, self.stream.incremental
        if incremental is None or not incremental.param or self.since is None:
            return stream
        return stream.model_copy(
            update={"params": {**stream.params, incremental.param: self._since()}}
        )

    def _since(self) -> str | int:
        incremental = self.stream.incremental
        if incremental is None or self.since is None:
            return ""
        return written(self.since, incremental.format)

    def _reaches_the_old(self, records: list[Any]) -> bool:
        """Whether a listing from new to old has come to what is known. Judged by the last of a page: what
        is pinned to the top may be old."""
        incremental = self.stream.incremental
        if incremental is None or not incremental.newest_first or not self.since or not records:
            return False
        last = moment(search(incremental.field, records[-1]))
        return last is not None and last < self.since

    def _emit_all(self, stream: Stream, records: list[Any], scope: Scope) -> Iterator[Found]:
        for record in records:
            yield from self._emit(stream, {**scope, "record": record, "listed": record})

    def _emit(self, stream: Stream, scope: Scope) -> Iterator[Found]:
        """A record and what hangs on it. When a part fails, the record counts as failed."""
        try:
            scope = self._with_details(stream, scope)
            if scope["record"] is None:  # listed, and gone since
                return
            self._note_time(stream, scope)
            event = self._event(stream, scope)
            if event is not None:
                yield event
            if not isinstance(event, Deletion):
                yield from self._children(stream, scope)
            self._failing = 0
        except (RejectedError, TransientError) as error:
            yield from self._failure(stream, scope, error)

    def _event(self, stream: Stream, scope: Scope) -> Found | None:
        if stream.mapping is None:
            return None
        if stream.gone_when and search(stream.gone_when, scope["record"]):
            return Deletion(external_id(stream.mapping, stream.name, scope))
        scope = {**scope, "attached": self._attached(stream, scope)}
        return record_of(stream, stream.mapping, scope, self.source)

    def _with_details(self, stream: Stream, scope: Scope) -> Scope:
        if stream.item is None:
            return scope
        answer = self.source.ask(stream.item, scope)
        return {**scope, "record": search(stream.item.record, answer.data)}

    def _attached(self, stream: Stream, scope: Scope) -> dict[str, list[Any]]:
        attached: dict[str, list[Any]] = {}
        for one in stream.attach:
            attached[one.name] = []
            if search(one.when, scope["record"]):
                pages = self.source.pages(
                    one, scope, records=one.records, paging=one.pagination,
                    name=f"{stream.name}.{one.name}",
                )  # fmt: skip
                attached[one.name] = [record for page in pages for record in page.records]
        return attached

    def _children(self, stream: Stream, scope: Scope) -> Iterator[Found]:
        for child in self.streams:
            if child.parent != stream.name:
                continue
            ancestors = [scope["record"], *scope["ancestors"]]
            below = {**scope, "parent": scope["record"], "ancestors": ancestors}
            pages = self.source.pages(
                child, below, records=child.records, paging=child.pagination, name=child.name
            )
            for page in pages:
                below["answer"] = page.answer.data
                yield from self._emit_all(child, page.records, below)

    def _failure(self, stream: Stream, scope: Scope, error: RemoteError) -> Iterator[Failure]:
        """Raises what ends the run. What hangs below the record was not seen; the record itself was, so
        that it is not taken for gone, unless it has no id."""
        if isinstance(error, TransientError):
            self.interrupted = True
            self._failing += 1
            if self._failing >= _MOST_FAILING:
                raise error
        self.damaged |= {one.name for one in family_of(stream, self.streams)} - {stream.name}
        name = _name(stream, scope)
        if name:
            yield Failure(name, error.message, stream.name)
        else:
            self.damaged.add(stream.name)
            self.notes.add(f"{stream.name}: {error.message}")

    def _note_time(self, stream: Stream, scope: Scope) -> None:
        """Of the record as it was listed, where that tells it: a filter goes by the same."""
        if stream.incremental is None:
            return
        path = stream.incremental.field
        found = moment(search(path, scope["listed"])) or moment(search(path, scope["record"]))
        if found and (self.newest is None or found > self.newest):
            self.newest = found


def _name(stream: Stream, scope: Scope) -> str:
    """The external id of a record; empty when it has none."""
    try:
        return external_id(stream.mapping, stream.name, scope) if stream.mapping else ""
    except RejectedError:
        return ""
