"""The mail of a Gmail account."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from functools import cached_property, partial
from typing import Any, BinaryIO, ClassVar, Literal

from pydantic import Field

from config.errors import InvalidInputError, RejectedError
from connectors.base import (
    Browsable,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Context,
    Cursor,
    Deletion,
    Event,
    Failure,
    File,
    LiveHit,
    LiveSearch,
    Node,
    Record,
    Refetch,
    Settings,
    Text,
)
from connectors.native.google.api import GoogleApi, google_sign_in, moment

_HEADERS = ("Subject", "From", "To", "Cc", "Message-ID")
_HISTORY = ("messageAdded", "messageDeleted", "labelAdded", "labelRemoved")
_PAGE = 500
_HIDDEN = frozenset({"SPAM", "TRASH"})


class GmailConfig(Settings):
    """Which messages."""

    labels: list[str] = Field(default=[], title="Only these labels", description="Empty: all mail.")
    exclude_labels: list[str] = Field(default=["SPAM", "TRASH", "DRAFT"], title="Not these labels")
    query: str = Field(
        default="", title="Query", description="As in Gmail's search box: from:ana newer_than:1y."
    )
    after: date | None = Field(default=None, title="Not older than")
    max_messages: int = Field(
        default=0, ge=0, title="Most messages", description="The newest ones of each label; 0: all."
    )
    content: Literal["full", "headers"] = Field(
        default="full", title="Content", description="Whole messages with attachments, or headers."
    )


class GmailConnector(Connector[GmailConfig], LiveSearch, Browsable, Refetch):
    """Messages as they were sent, attachments included. Later runs follow the mailbox's history; when Google
    no longer keeps it so far back, everything is listed anew."""

    places_field = "labels"
    spec = ConnectorSpec(
        kind="google",
        name="Gmail",
        description="Messages with their attachments.",
        category=Category.MESSAGES,
        config=GmailConfig,
        auth=(google_sign_in("gmail.readonly"),),
        capabilities=frozenset(
            {
                Capability.INCREMENTAL,
                Capability.DELETIONS,
                Capability.FILES,
                Capability.ACCESS_CONTROL,
            }
        ),
        documentation_url="https://developers.google.com/workspace/gmail/api",
        rate_limit="40/second",
    )
    root: ClassVar[str] = "https://gmail.googleapis.com"

    def __init__(self, config: GmailConfig, credentials: Settings, context: Context) -> None:
        super().__init__(config, credentials, context)
        self._api = GoogleApi(context, f"{self.root}/gmail/v1/users/me")

    def check(self) -> str:
        """Whose mailbox, and that the labels exist."""
        known = self._included | self._excluded
        return f"{self._profile['emailAddress']}: {len(known)} labels chosen or left out"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """What has happened since, or everything."""
        history = cursor.get("history")
        if history and "listing" not in cursor:
            answer = self._history(history, "")
            if answer is not None:
                yield from self._changes(history, answer)
                return
            cursor = {}
        yield from self._list(cursor)

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single messages."""
        for external_id in external_ids:
            yield self._event(external_id, asks_query=False)

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Gmail's own search, within what is configured."""
        words = re.sub(r"[(){}]", " ", query)
        answer = self._messages(f"({words}) {self._query()}", limit)
        found = (self._message(one["id"]) for one in answer.get("messages", ()))
        return [self._hit(one) for one in found if one is not None and self._wants(one)]

    def browse(self, parent: str) -> list[Node]:
        """Labels."""
        return [] if parent else [Node(key, name) for name, key in self._labels.items()]

    # --- everything ------------------------------------------------------------------------------

    def _list(self, cursor: Cursor) -> Iterator[Event]:
        """One label after the other. Only a listing that begins in this run tells what is gone."""
        history = cursor.get("history") or self._profile["historyId"]
        at = dict(cursor.get("listing") or {"label": 0, "page": "", "count": 0})
        begins = "listing" not in cursor
        labels: list[str] = sorted(self._included) or [""]
        while at["label"] < len(labels):
            answer = self._page(labels[at["label"]], at["page"])
            for one in answer.get("messages", ())[: self._left(at["count"])]:
                event = self._event(one["id"], asks_query=False)
                if not isinstance(event, Deletion):
                    at["count"] += 1
                    yield event
            at["page"] = answer.get("nextPageToken", "") if self._left(at["count"]) else ""
            if not at["page"]:
                at |= {"label": at["label"] + 1, "count": 0}
            yield Checkpoint({"history": history, "listing": dict(at)})
        if begins:
            yield Complete()
        yield Checkpoint({"history": history})

    def _page(self, label: str, page: str) -> Any:
        try:
            return self._messages(self._query(), _PAGE, label, page)
        except RejectedError as error:
            if error.status != 400 or not page:
                raise
            return self._messages(self._query(), _PAGE, label, "")  # the token has run out

    def _messages(self, query: str, limit: int, label: str = "", page: str = "") -> Any:
        params: dict[str, Any] = {"maxResults": limit}
        params |= {"q": query.strip()} if query.strip() else {}
        params |= {"labelIds": label} if label else {}
        params |= {"pageToken": page} if page else {}
        if not self._excluded >= _HIDDEN:
            params["includeSpamTrash"] = "true"
        return self._api.get("/messages", **params)

    def _query(self) -> str:
        after = f" after:{self.config.after:%Y/%m/%d}" if self.config.after else ""
        query = f"({self.config.query})" if self.config.query else ""
        return f"{query}{after}"

    def _left(self, count: int) -> int:
        return max(0, self.config.max_messages - count) if self.config.max_messages else _PAGE

    # --- changes ---------------------------------------------------------------------------------

    def _history(self, since: str, page: str) -> Any:
        """A page of what has happened; None when Google has forgotten it."""
        params = {"pageToken": page} if page else {}
        return self._api.find(
            "/history", startHistoryId=since, maxResults=_PAGE, historyTypes=_HISTORY, **params
        )

    def _changes(self, since: str, answer: Any) -> Iterator[Event]:
        while True:
            changed, gone, last = _summed(answer.get("history", ()))
            yield from (Deletion(one) for one in gone)
            for one in changed:
                yield self._event(one, asks_query=True)
            page = answer.get("nextPageToken")
            if not page:
                yield Checkpoint({"history": answer["historyId"]})
                return
            yield Checkpoint({"history": last or since})
            answer = self._history(since, page) or {"historyId": last or since}

    # --- messages --------------------------------------------------------------------------------

    def _event(self, message_id: str, *, asks_query: bool) -> Event:
        try:
            message = self._message(message_id)
            if message is None or not self._wants(message):
                return Deletion(message_id)
            if asks_query and self.config.query and not self._matches(message):
                return Deletion(message_id)
        except RejectedError as error:
            return Failure(message_id, error.message)
        return self._record(message)

    def _message(self, message_id: str) -> Mapping[str, Any] | None:
        found: Mapping[str, Any] | None = self._api.find(
            f"/messages/{message_id}", format="metadata", metadataHeaders=_HEADERS
        )
        return found

    def _wants(self, message: Mapping[str, Any]) -> bool:
        labels = set(message.get("labelIds", ()))
        if labels & self._excluded or (self._included and not labels & self._included):
            return False
        sent, after = moment(message.get("internalDate")), self.config.after
        return not after or not sent or sent >= datetime.combine(after, time(), UTC)

    def _matches(self, message: Mapping[str, Any]) -> bool:
        """Whether the configured query finds it: only Gmail can tell."""
        own = _headers(message).get("message-id", "").strip("<>")
        answer = self._messages(f"({self.config.query}) rfc822msgid:{own}", 10)
        return any(one["id"] == message["id"] for one in answer.get("messages", ()))

    def _record(self, message: Mapping[str, Any]) -> Record:
        headers, key = _headers(message), message["id"]
        subject = headers.get("subject") or "(no subject)"
        body: Text | File = Text(_summary(headers, message.get("snippet", "")))
        if self.config.content == "full":
            size = message.get("sizeEstimate")
            body = File(partial(self._opened, key), f"{key}.eml", "message/rfc822", size)
        return Record(
            external_id=key,
            title=subject,
            body=body,
            version=key,  # what was sent stays as it is
            url=self._url(message),
            author=headers.get("from", ""),
            created_at=moment(message.get("internalDate")),
            metadata={
                "thread": message["threadId"],
                "to": headers.get("to", ""),
                "labels": [self._label_name(one) for one in message.get("labelIds", ())],
            },
            principals=frozenset({f"user:{self._profile['emailAddress']}"}),
        )

    @contextmanager
    def _opened(self, message_id: str) -> Iterator[BinaryIO]:
        raw = self._api.get(f"/messages/{message_id}", format="raw")["raw"]
        yield io.BytesIO(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))

    def _hit(self, message: Mapping[str, Any]) -> LiveHit:
        headers = _headers(message)
        return LiveHit(
            external_id=message["id"],
            title=headers.get("subject") or "(no subject)",
            text=_summary(headers, message.get("snippet", "")),
            url=self._url(message),
            author=headers.get("from", ""),
            created_at=moment(message.get("internalDate")),
        )

    def _url(self, message: Mapping[str, Any]) -> str:
        account = self._profile["emailAddress"]
        return f"https://mail.google.com/mail/?authuser={account}#all/{message['id']}"

    # --- labels ----------------------------------------------------------------------------------

    @cached_property
    def _profile(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._api.get("/profile")
        return found

    @cached_property
    def _labels(self) -> dict[str, str]:
        return {one["name"]: one["id"] for one in self._api.get("/labels").get("labels", ())}

    @cached_property
    def _included(self) -> frozenset[str]:
        return frozenset(map(self._label_id, self.config.labels))

    @cached_property
    def _excluded(self) -> frozenset[str]:
        return frozenset(map(self._label_id, self.config.exclude_labels))

    def _label_id(self, name: str) -> str:
        known = {
            spelling.lower(): key
            for label, key in self._labels.items()
            for spelling in (label, key)
        }
        if (key := known.get(name.lower())) is not None:
            return key
        if name.isupper():  # a system label that the account does not show
            return name
        raise InvalidInputError(f"The mailbox has no label {name!r}.")

    def _label_name(self, key: str) -> str:
        return next((name for name, one in self._labels.items() if one == key), key)


def _summed(history: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str], str]:
    """Messages that are new or otherwise labelled, those that are gone, and the last entry's id."""
    changed: dict[str, None] = {}
    gone: dict[str, None] = {}
    for entry in history:
        for kind in ("messagesAdded", "labelsAdded", "labelsRemoved"):
            changed |= {one["message"]["id"]: None for one in entry.get(kind, ())}
        gone |= {one["message"]["id"]: None for one in entry.get("messagesDeleted", ())}
    return (
        [one for one in changed if one not in gone],
        list(gone),
        history[-1]["id"] if history else "",
    )


def _headers(message: Mapping[str, Any]) -> dict[str, str]:
    return {
        one["name"].lower(): one["value"] for one in message.get("payload", {}).get("headers", ())
    }


def _summary(headers: Mapping[str, str], snippet: str) -> str:
    lines = [f"{name}: {headers[name.lower()]}" for name in _HEADERS[:4] if name.lower() in headers]
    return "\n".join(lines) + f"\n\n{snippet}"
