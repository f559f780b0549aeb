"""A round over all streams: what is listed, from where on, and when something counts as complete.

The cursor is `{"since": {unit: moment}, "done": [unit], "at": {…}, "partial": [stream]}`. A unit is a stream,
or a stream for one value of the configuration. All but `since` is there while a round is under way only. A
round may be cut and gone on with: the engine knows what was met before the cut, and `partial` what was missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from config.errors import RejectedError
from connectors.base import Checkpoint, Complete, Cursor, Event, Notice
from connectors.manifest.listing import Listing, family_of
from connectors.manifest.schema import Stream
from connectors.manifest.source import Source


@dataclass(frozen=True, slots=True)
class _Unit:
    stream: Stream
    each: str = ""

    @property
    def name(self) -> str:
        return f"{self.stream.name}/{self.each}" if self.stream.each else self.stream.name


@dataclass(slots=True)
class Round:
    """Goes on where the cursor says. A listing that fails is told of and begun anew in the next round;
    only when all fail, the round does."""

    source: Source
    since: dict[str, str]
    done: list[str]
    at: dict[str, Any]
    partial: set[str] = field(default_factory=set)  # streams of which a part was not seen

    @classmethod
    def of(cls, source: Source, cursor: Cursor) -> Round:
        """The round that a cursor belongs to; a new one when the last has ended."""
        return cls(
            source,
            dict(cursor.get("since", {})),
            list(cursor.get("done", [])),
            dict(cursor.get("at", {})),
            set(cursor.get("partial", [])),
        )

    def events(self) -> Iterator[Event]:
        """Everything of the round that is left."""
        errors: list[RejectedError] = []
        units = self._units()
        for number, unit in enumerate(units):
            if unit.name in self.done:
                continue
            try:
                yield from self._listed(unit)
            except RejectedError as error:
                errors.append(error)
                self._miss(unit.stream)
                yield Notice(f"{unit.name} could not be read: {error.message}")
            self.at = {}
            if number + 1 == len(units) or units[number + 1].stream.name != unit.stream.name:
                yield from self._completions(unit.stream)
            if number + 1 < len(units):
                yield Checkpoint(self._cursor())
        if errors and len(errors) == len(units):
            raise errors[0]
        self.done, self.partial = [], set()
        yield Checkpoint(self._cursor())

    def _units(self) -> list[_Unit]:
        config = self.source.scope["config"]
        found: list[_Unit] = []
        for stream in self.source.manifest.streams:
            if stream.each:
                found += [_Unit(stream, value) for value in dict.fromkeys(config[stream.each])]
            elif not stream.parent:
                found.append(_Unit(stream))
        return found

    def _listed(self, unit: _Unit) -> Iterator[Event]:
        """A unit to its end. A position that the source no longer knows is given up for the beginning."""
        at = self.at if self.at.get("unit") == unit.name else {}
        begun = False
        try:
            for event in self._pages(unit, at):
                begun = True
                yield event
        except RejectedError:
            if begun or not at:
                raise
            yield from self._pages(unit, {})

    def _pages(self, unit: _Unit, at: dict[str, Any]) -> Iterator[Event]:
        listing = self._listing(unit, at)
        started = at.get("started") or timezone.now().isoformat()
        position, before = dict(at.get("position", {})), int(at.get("pages", 0))
        for pages, page in enumerate(listing.pages(position, before), start=before + 1):
            yield from page.found
            self.partial |= listing.damaged
            if page.next is not None:
                self.at = {
                    "unit": unit.name, "position": page.next, "pages": pages, "started": started,
                    "newest": listing.newest.isoformat() if listing.newest else None,
                    "interrupted": listing.interrupted, "count": listing.count,
                }  # fmt: skip
                yield Checkpoint(self._cursor())
        yield from (Notice(note) for note in sorted(listing.notes))
        self._end(unit, listing, datetime.fromisoformat(started))

    def _listing(self, unit: _Unit, at: dict[str, Any]) -> Listing:
        incremental, known = unit.stream.incremental, self.since.get(unit.name)
        since = None
        if incremental is not None and known:
            overlap = timedelta(seconds=incremental.overlap_seconds)
            since = datetime.fromisoformat(known) - overlap
        return Listing(
            self.source,
            self.source.manifest.streams,
            unit.stream,
            unit.each,
            since,
            newest=datetime.fromisoformat(at["newest"]) if at.get("newest") else None,
            interrupted=bool(at.get("interrupted")),
            count=int(at.get("count", 0)),
        )

    def _end(self, unit: _Unit, listing: Listing, started: datetime) -> None:
        """What changes while a listing goes on may have been passed already: the next one begins no later
        than this one did."""
        self.at = {}
        self.done.append(unit.name)
        if listing.since is not None:
            self._miss(unit.stream)
        if listing.newest and not listing.interrupted:
            newest = min(listing.newest.astimezone(UTC), started.astimezone(UTC))
            before = self.since.get(unit.name)
            if before is None or newest > datetime.fromisoformat(before):
                self.since[unit.name] = newest.isoformat()

    def _miss(self, stream: Stream) -> None:
        """Note that not everything of a stream is seen in this round."""
        self.partial |= {one.name for one in family_of(stream, self.source.manifest.streams)}

    def _completions(self, stream: Stream) -> Iterator[Complete]:
        for one in family_of(stream, self.source.manifest.streams):
            if one.complete and one.name not in self.partial:
                yield Complete(one.name)

    def _cursor(self) -> dict[str, Any]:
        parts = {
            "since": dict(self.since), "done": list(self.done), "at": dict(self.at),
            "partial": sorted(self.partial),
        }  # fmt: skip
        return {name: part for name, part in parts.items() if part}
