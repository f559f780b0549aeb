"""A source in three stages, for workers that are killed while they read it."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import BinaryIO

from connectors.base import (
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
    File,
    Record,
    Settings,
    Text,
)

KIND = "killed"
_PAGE = 37  # no divisor of the engine's batch
_COUNT = 400


@dataclass(frozen=True, slots=True)
class Thing:
    """One thing at the source."""

    content: str
    version: str
    label: str
    is_file: bool


def world(stage: int) -> dict[str, Thing]:
    """All things at a stage: stage 2 changes, adds and removes some; stage 3 removes more."""
    if stage == 0:
        return {}
    things = {
        f"{number:04}": Thing(f"First text {number}.", "1", "a", number % 3 == 0)
        for number in range(_COUNT)
    }
    if stage == 1:
        return things
    for name, thing in list(things.items()):
        number = int(name)
        if number % 7 == 0:
            del things[name]
        elif number % 5 == 0:
            things[name] = replace(thing, content=f"Second text {number}.", version="2")
        elif number % 11 == 0:
            things[name] = replace(thing, label="b")
    things |= {f"new {n}": Thing(f"New text {n}.", "1", "a", n % 2 == 0) for n in range(60)}
    if stage == 3:
        return {name: thing for name, thing in things.items() if not name.endswith("8")}
    return things


class KilledConfig(Settings):
    """Which stage the source is in."""

    stage: int = 1


class KilledConnector(Connector[KilledConfig]):
    """Lists everything without a cursor, and what has changed with one."""

    spec = ConnectorSpec(
        kind=KIND,
        name="Killed",
        description="Is read by workers that die.",
        category=Category.CUSTOM,
        config=KilledConfig,
        capabilities=frozenset({Capability.INCREMENTAL, Capability.DELETIONS}),
    )

    def check(self) -> str:
        return KIND

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        stage = self.config.stage
        is_change = cursor.get("done", 0) >= 1 or cursor.get("changes", False)
        events = self._changes(stage) if is_change else self._listing(stage)
        first = cursor.get("page", 0)
        pages = [events[start : start + _PAGE] for start in range(0, len(events), _PAGE)]
        for number, page in enumerate(pages):
            if number >= first:
                for event in page:
                    time.sleep(0.0005)
                    yield event
                yield Checkpoint({"page": number + 1, "changes": is_change})
        if not is_change:
            yield Complete()
        yield Checkpoint({"done": stage})

    def _listing(self, stage: int) -> Sequence[Event]:
        """Some things come twice, as when a list is moved while it is read; the later word counts."""
        things = world(stage)
        events: list[Event] = []
        for name, thing in things.items():
            is_twice = stage == 1 and name.endswith("44")
            early = replace(thing, content="Early.", version="0") if is_twice else thing
            events.append(_record(name, early))
        events += [_record(name, things[name]) for name in things if name.endswith("44")]
        return [*events, Failure("broken", "Cannot be read.")] if stage == 1 else events

    def _changes(self, stage: int) -> Sequence[Event]:
        before, things = world(stage - 1), world(stage)
        gone: list[Event] = [Deletion(name) for name in before if name not in things]
        changed = [
            _record(name, thing) for name, thing in things.items() if before.get(name) != thing
        ]
        passing = [
            _record(f"passing {n}", Thing("Soon gone.", "1", "a", is_file=False)) for n in range(30)
        ]
        return [
            *passing,
            *changed,
            *gone,
            *(Deletion(one.external_id) for one in passing),
            Deletion("broken"),
        ]


def _record(name: str, thing: Thing) -> Record:
    body = (
        File(partial(_open, thing.content), f"{name}.txt") if thing.is_file else Text(thing.content)
    )
    return Record(name, name, body, version=thing.version, metadata={"label": thing.label})


@contextmanager
def _open(content: str) -> Iterator[BinaryIO]:
    time.sleep(0.002)
    yield io.BytesIO(content.encode())
