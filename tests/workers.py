"""Runs queued tasks in the test's own process and transaction, in the order a worker would."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from accounts.access import Actor
from accounts.tenancy import tenant_scope
from knowledge.models import KnowledgeBase
from knowledge.services.documents import Added, NewDocument, add_document


class Workers:
    """A queue in place of the broker. `drain` works it off; what commits meanwhile is queued too."""

    def __init__(
        self, commits: Callable[..., AbstractContextManager[Any]], monkeypatch: Any
    ) -> None:
        from knowledge import tasks

        self._commits = commits
        self._queue: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        for task in (tasks.process_document_task, tasks.embed_slice_task):
            monkeypatch.setattr(task, "delay", self._delay(task.run))
        reembed, discard = tasks.reembed_task, tasks.discard_spare_vectors_task
        monkeypatch.setattr(discard, "delay", self._delay(discard.run))
        monkeypatch.setattr(reembed, "apply_async", self._apply_async(reembed.run))
        self.waits_s: list[float] = []  # what tasks have asked for before their next piece

    def _delay(self, run: Callable[..., None]) -> Callable[..., None]:
        return lambda *arguments: self._queue.append((run, arguments))

    def _apply_async(self, run: Callable[..., None]) -> Callable[..., None]:
        def queue(arguments: tuple[Any, ...], countdown: float | None = None) -> None:
            if countdown:
                self.waits_s.append(countdown)
            self._queue.append((run, arguments))

        return queue

    def step(self) -> None:
        """Run the next task."""
        self._run(*self._queue.popleft())

    def step_last(self) -> None:
        """Run the task that was queued last."""
        self._run(*self._queue.pop())

    def commits(self) -> AbstractContextManager[Any]:
        """What is done in this block does on commit what it asks for."""
        return self._commits(execute=True)

    def _run(self, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        with self._commits(execute=True):
            run(*arguments)

    def drain(self) -> None:
        """Run every task, and those that they queue."""
        while self._queue:
            self.step()

    def clear(self) -> None:
        """Forget what is queued, as a broker without its data would."""
        self._queue.clear()

    def __len__(self) -> int:
        return len(self._queue)

    def add(
        self,
        actor: Actor,
        base: KnowledgeBase,
        content: str | bytes,
        filename: str = "a.txt",
        **facts: Any,
    ) -> Added:
        """Add a document; nothing is processed yet."""
        data = content.encode() if isinstance(content, str) else content
        with self._commits(execute=True), tenant_scope(actor.tenant_id):
            return add_document(
                actor=actor, base=base, stream=io.BytesIO(data), new=NewDocument(filename, **facts)
            )

    def commit(self, actor: Actor, call: Callable[[], Any]) -> Any:
        """Run a service in the tenant's scope, with what it does on commit."""
        with self._commits(execute=True), tenant_scope(actor.tenant_id):
            return call()

    def ingest(
        self,
        actor: Actor,
        base: KnowledgeBase,
        content: str | bytes,
        filename: str = "a.txt",
        **facts: Any,
    ) -> Added:
        """Add a document and process it to the end."""
        added = self.add(actor, base, content, filename, **facts)
        self.drain()
        return added
