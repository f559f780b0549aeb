"""Syncs of a source that changes and fails at random: nothing is lost, and in the end all is as it is there."""

from __future__ import annotations

import json
import logging
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
import time_machine

from config.errors import RejectedError, RemoteError, TransientError
from connectors.base import Checkpoint, Complete, Context, Deletion, Failure, Record, Text
from connectors.manifest.connector import ManifestConnector, connector_from
from connectors.manifest.loading import parse_manifest
from tests.connectors.manifest.site import manifest, stream

BEGIN = datetime(2025, 3, 1, tzinfo=UTC)
SIZE = 3


@dataclass
class Source:
    """Issues with notes below them, and pages. Some requests fail."""

    dice: random.Random
    refuses: bool = True  # else failures are of the kind that passes
    failing: float = 0.0
    now: datetime = BEGIN
    steady: set[str] = field(default_factory=set)  # there all the while
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)

    def change(self) -> None:
        """Something is written, changed or deleted. Times are whole minutes, so that many are equal."""
        self.now += timedelta(seconds=self.dice.choice([0, 20, 90]))
        store = self.dice.choice([self.issues, self.pages])
        name = str(self.dice.randrange(14))
        if name in store and self.dice.random() < 0.3:
            del store[name]
            self.steady &= set(self.truth())
            return
        notes = [str(self.dice.randrange(100)) for _ in range(self.dice.randrange(3))]
        store[name] = {
            "id": name, "title": name, "body": str(self.dice.random()), "notes": notes,
            "at": self.now.replace(second=0).isoformat(),
        }  # fmt: skip
        self.steady &= set(self.truth())

    def request(self, _method: str, url: str, **parts: Any) -> requests.Response:
        """What `HttpClient` does, without a network."""
        if self.dice.random() < self.failing:
            refused = self.refuses and self.dice.random() < 0.5
            raise RejectedError("Refused.", 403) if refused else TransientError("Down.")
        params = parts["params"]
        if url.endswith("/notes"):
            issue = self.issues.get(url.split("/")[2])
            if issue is None:
                raise RejectedError("Gone.", 404)
            return _answer(
                [{"id": f"{issue['id']}-{n}", "title": "n", "body": n} for n in issue["notes"]]
            )
        store = self.issues if url == "/issues" else self.pages
        wanted = [one for _, one in sorted(store.items()) if one["at"] >= params.get("since", "")]
        after = str(params.get("cursor", ""))
        found = [one for one in wanted if one["id"] > after][:SIZE]
        more = bool(found) and found[-1]["id"] != wanted[-1]["id"]
        if self.dice.random() < self.failing:
            for _ in range(3):  # in the middle of the listing
                self.now += timedelta(minutes=self.dice.choice([0, 5]))
                self.change()
        return _answer({"items": found, "next": found[-1]["id"] if more else None})

    def truth(self) -> dict[str, str]:
        """External id → content."""
        found = {f"issue:{name}": one["body"] for name, one in self.issues.items()}
        found |= {f"page:{name}": one["body"] for name, one in self.pages.items()}
        return found | {
            f"note:{one['id']}-{note}": note
            for one in self.issues.values()
            for note in one["notes"]
        }


@dataclass
class Store:
    """What the engine does with events, in short."""

    documents: dict[str, tuple[str, str]] = field(default_factory=dict)  # id → scope, content
    cursor: dict[str, Any] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def begin(self, source: Source) -> None:
        """A new round."""
        self.seen, source.steady = set(), set(source.truth())

    def take(self, connector: ManifestConnector, source: Source) -> bool:
        """Run until an error, with the position that was stored. Whether it came to its end."""
        try:
            for event in connector.pull(self.cursor):
                self._apply(event, source.steady)
        except RemoteError:
            return False
        return True

    def texts(self) -> dict[str, str]:
        """External id → content."""
        return {name: text for name, (_, text) in self.documents.items()}

    def _apply(self, event: Any, there: set[str]) -> None:
        match event:
            case Record(external_id=name, scope=scope, body=Text(text)):
                self.seen.add(name)
                self.documents[name] = (scope, text)
            case Failure(external_id=name):
                self.seen.add(name)
            case Deletion(external_id=name):
                self.documents.pop(name, None)
            case Checkpoint(cursor):
                self.cursor = json.loads(json.dumps(cursor))
            case Complete(scope):
                gone = {
                    name for name, (of, _) in self.documents.items()
                    if of == scope and name not in self.seen
                }  # fmt: skip
                assert not gone & there, "what was there all the while is not deleted"
                for name in gone:
                    del self.documents[name]
            case _:
                pass


def _answer(data: Any) -> requests.Response:
    response = requests.Response()
    response.status_code, response._content = 200, json.dumps(data).encode()
    response.url = "https://api.example/"
    return response


def _connector(source: Source) -> ManifestConnector:
    paged = {"records": "items", "pagination": {"style": "cursor", "next": "next"}}
    data = manifest(
        stream("issue", complete=True, **paged,
               incremental={"field": "at", "param": "since", "format": "iso", "overlap_seconds": 60}),
        stream("note", complete=True, path="/issues/{{ parent.id }}/notes", parent="issue"),
        stream("page", complete=True, **paged),
        auth=[{"type": "none"}],
    )  # fmt: skip
    found = connector_from(parse_manifest(data, "any.yml"))
    client: Any = lambda *_, **__: source  # noqa: E731
    context = Context(client, lambda _: None, logging.getLogger("test"), 1)
    return found(found.spec.config(), found.spec.auth[0].credentials(), context)


@pytest.mark.parametrize("seed", range(40))
def test_all_is_as_at_the_source_in_the_end(seed: int) -> None:
    source = Source(random.Random(seed), refuses=seed % 2 == 0)
    connector, store = _connector(source), Store()
    with time_machine.travel(BEGIN, tick=False) as clock:
        for _ in range(25):
            for _ in range(source.dice.randrange(6)):
                source.change()
            clock.move_to(source.now + timedelta(seconds=5))
            source.failing = source.dice.choice([0.0, 0.05, 0.3])
            if source.dice.random() < 0.1:
                store.cursor = {}  # a full one
                store.begin(source)
            if store.take(connector, source):
                store.begin(source)  # else the next one goes on, with what this one has met
        source.failing = 0.0
        for _ in range(2):  # the round under way, and one of changes only
            assert store.take(connector, source)
            store.begin(source)
        # What was refused below an issue is read by a full sync; all else must be there already.
        due = {
            name: text for name, text in source.truth().items()
            if not (source.refuses and name.startswith("note:"))
        }  # fmt: skip
        assert due.items() <= store.texts().items()
        store.cursor = {}
        assert store.take(connector, source)
        assert store.texts() == source.truth()
