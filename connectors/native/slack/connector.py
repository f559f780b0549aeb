"""Conversations of a Slack workspace: a thread is a document, and so is a day of what is said beside threads.

Slack announces neither edits nor late replies in a channel's history, so each run reads the last days of a channel
anew (`reread_days`): what was edited, answered or deleted there is noticed at once, an edited reply within a day. With
older messages it is noticed by a full run, or when a reply to a thread was sent to the channel as well.
"""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import Field, SecretStr

from config.errors import CredentialsError, RateLimitedError, RejectedError, TransientError
from connectors.base import (
    AuthMethod,
    Browsable,
    Capability,
    Category,
    Checkpoint,
    Complete,
    Connector,
    ConnectorSpec,
    Cursor,
    Event,
    LiveHit,
    LiveSearch,
    Membership,
    Memberships,
    Node,
    Notice,
    OAuthEndpoints,
    OAuthTokens,
    Refetch,
    Settings,
    TokenCredentials,
    WebhookAnswer,
    WebhookReceiver,
    token_auth,
)
from connectors.native.slack.people import People
from connectors.native.slack.reading import (
    DAY_S,
    Channel,
    State,
    day_start,
    read_again,
    read_first,
    read_one,
)
from connectors.native.slack.rendering import moment_of, render_text
from connectors.native.slack.signed_events import answer_event
from connectors.native.slack.web_api import SlackApi

_MOST_FAILING = 3  # channels in a row that cannot be read for reasons of the source end the run
_MOST_HITS = 100
_SIGNING_SECRET = Field(
    default=SecretStr(""),
    title="Signing secret",
    description="Of your Slack app, for events (Basic Information → App Credentials).",
)
_BOT_SCOPES = (
    "channels:read", "channels:history", "groups:read", "groups:history",
    "users:read", "users:read.email", "files:read",
)  # fmt: skip


class SlackConfig(Settings):
    """Which conversations, and how far back."""

    include: list[str] = Field(
        default=[],
        title="Only these channels",
        description="Names, patterns such as team-*, or ids; empty: all that the token sees.",
    )
    exclude: list[str] = Field(
        default=[], title="Not these channels", description="Names, patterns or ids."
    )
    private: bool = Field(
        default=True,
        title="Private channels",
        description="Those the token's owner is in; only their members find what is said there.",
    )
    archived: bool = Field(default=False, title="Archived channels too")
    files: bool = Field(default=False, title="Files that were shared")
    history_days: int = Field(
        default=0, ge=0, title="Days of history", description="How far back to read; 0: everything."
    )
    reread_days: int = Field(
        default=7,
        ge=1,
        le=90,
        title="Days to read again",
        description="Edits, replies and deletions in these last days are noticed in each run (edits of replies "
        "within a day), older ones in a full run.",
    )


class SlackToken(TokenCredentials):
    """A token of a Slack app, and what proves that events are Slack's."""

    signing_secret: SecretStr = _SIGNING_SECRET


class SlackSignIn(OAuthTokens):
    """The same after a sign-in."""

    signing_secret: SecretStr = _SIGNING_SECRET


_TOKEN = token_auth("Token of a Slack app")


class SlackConnector(
    Connector[SlackConfig], Memberships, Browsable, Refetch, LiveSearch, WebhookReceiver
):
    """Reads channels by a bot token (those the bot is in) or a user token (those the user sees)."""

    base_url = "https://slack.com/api"
    places_field = "include"
    spec = ConnectorSpec(
        kind="slack",
        name="Slack",
        description="Channels of a workspace: threads, days of conversation, and shared files.",
        category=Category.MESSAGES,
        config=SlackConfig,
        auth=(
            AuthMethod(
                "token",
                "Token of a Slack app",
                SlackToken,
                "xoxb-… of a bot, or xoxp-… of a user (which alone can be searched with)",
                _TOKEN.auth,
            ),
            AuthMethod(
                "oauth",
                "Sign in with Slack",
                SlackSignIn,
                oauth=OAuthEndpoints(
                    "https://slack.com/oauth/v2/authorize",
                    "https://slack.com/api/oauth.v2.access",
                    _BOT_SCOPES,
                    scope_separator=",",
                    pkce=False,
                ),
            ),
        ),
        capabilities=frozenset(
            {
                Capability.INCREMENTAL,
                Capability.DELETIONS,
                Capability.FILES,
                Capability.ACCESS_CONTROL,
            }
        ),
        documentation_url="https://api.slack.com/web",
        rate_limit="50/minute",  # its tier 3
        sync_every_minutes=30,
    )

    def check(self) -> str:
        """Workspace and user."""
        self._api.call("conversations.list", types="public_channel", limit=1)
        return f"{self._identity.get('team')}: {self._identity.get('user')}"

    def pull(self, cursor: Cursor) -> Iterator[Event]:
        """Channel by channel. One that cannot be read is a warning; one that is no longer there, or no longer
        wanted, is gone."""
        states: dict[str, State] = dict(cursor.get("channels", {}))
        channels = self._channels()
        yield from self._warnings(channels)
        for gone in states.keys() - {channel.id for channel in channels}:
            yield Complete(gone)
            del states[gone]
        failing = 0
        for channel in channels:
            try:
                yield from self._read(channel, states)
                failing = 0
            except (CredentialsError, RateLimitedError):
                raise
            except (TransientError, RejectedError) as error:
                failing += isinstance(error, TransientError)
                if failing >= _MOST_FAILING:
                    raise
                if "until" in states.get(channel.id, {}):
                    states[channel.id]["broken"] = True
                yield Notice(f"#{channel.name} was not read to its end. {error.message}")
        yield Checkpoint({"channels": states})

    def fetch(self, external_ids: Sequence[str]) -> Iterator[Event]:
        """Single threads, days and files."""
        channels = {channel.id: channel for channel in self._channels()}
        for external_id in external_ids:
            channel_id, _, name = external_id.partition(":")
            if channel_id in channels:
                yield from read_one(channels[channel_id], name)

    def browse(self, parent: str) -> list[Node]:
        """The channels."""
        return [] if parent else [Node(one.id, f"#{one.name}") for one in self._channels()]

    def memberships(self) -> Iterator[Membership]:
        """Who is in the private channels, by mail address."""
        private = [channel for channel in self._channels() if channel.is_private]
        if private and not self._people.have_emails:
            raise RejectedError(
                "The token lacks the scope users:read.email: nobody is known to be in the private channels."
            )
        for channel in private:
            for page in self._api.pages("conversations.members", "members", channel=channel.id):
                emails = (self._people.email_of(str(member)) for member in page)
                yield from (
                    Membership(f"group:{channel.id}", f"user:{email}") for email in emails if email
                )

    def search(self, query: str, limit: int) -> list[LiveHit]:
        """Slack's own search, in public channels: what is private to the token's owner stays so."""
        answer = self._api.call(
            "search.messages", query=query, count=min(max(limit, 1), _MOST_HITS)
        )
        matches = (answer.get("messages") or {}).get("matches") or []
        return [self._hit(one) for one in matches if self._is_findable(one)][:limit]

    def receive(self, headers: Mapping[str, str], body: bytes) -> WebhookAnswer:
        """Slack's Events API."""
        secret = getattr(self.credentials, "signing_secret", SecretStr("")).get_secret_value()
        return answer_event(secret, headers, body, now=time.time())

    def _read(self, channel: Channel, states: dict[str, State]) -> Iterator[Event]:
        def save(state: State) -> Event:
            states[channel.id] = state
            return Checkpoint({"channels": {**states, channel.id: dict(state)}})

        now, state = time.time(), states.get(channel.id)
        if state is None or "until" in state:
            days = self.config.history_days
            horizon = day_start(now - days * DAY_S) if days else 0.0
            yield from read_first(channel, state, now=now, horizon=horizon, save=save)
        else:
            yield from read_again(channel, state, now=now, save=save)

    def _channels(self) -> list[Channel]:
        kinds = "public_channel,private_channel" if self.config.private else "public_channel"
        found = self._api.pages(
            "conversations.list",
            "channels",
            types=kinds,
            exclude_archived=str(not self.config.archived).lower(),
        )
        channels = [
            self._channel(facts) for page in found for facts in page if self._is_open(facts)
        ]
        return [channel for channel in channels if self._is_wanted(channel.id, channel.name)]

    def _is_open(self, facts: Mapping[str, Any]) -> bool:
        """A bot reads where it is a member; a user reads every public channel."""
        is_bot = bool(self._identity.get("bot_id"))
        return bool(facts.get("is_member")) or not (is_bot or facts.get("is_private"))

    def _channel(self, facts: Mapping[str, Any]) -> Channel:
        return Channel(
            id=str(facts["id"]),
            name=str(facts.get("name") or facts["id"]),
            is_private=bool(facts.get("is_private") or facts.get("is_group")),
            api=self._api,
            name_of=self._people.name_of,
            workspace_url=str(self._identity.get("url", "")),
            with_files=self.config.files,
            max_bytes=self.context.max_bytes,
            reread_days=self.config.reread_days,
        )

    def _is_wanted(self, channel_id: str, name: str) -> bool:
        included = not self.config.include or _matches(channel_id, name, self.config.include)
        return included and not _matches(channel_id, name, self.config.exclude)

    def _warnings(self, channels: Sequence[Channel]) -> Iterator[Notice]:
        for wanted in self.config.include:
            if not any(_matches(channel.id, channel.name, [wanted]) for channel in channels):
                yield Notice(f"There is no channel {wanted}, or the token's owner is not in it.")
        if self._people.problem:
            yield Notice(f"People are shown by their ids. {self._people.problem}")

    def _is_findable(self, match: Mapping[str, Any]) -> bool:
        place = match.get("channel") or {}
        hidden = ("is_private", "is_im", "is_mpim", "is_group")
        is_public = str(place.get("id", "")).startswith("C") and not any(
            place.get(key) for key in hidden
        )
        return is_public and self._is_wanted(str(place["id"]), str(place.get("name", "")))

    def _hit(self, match: Mapping[str, Any]) -> LiveHit:
        place, ts = match["channel"], str(match["ts"])
        name_of = self._people.name_of
        author = (
            name_of(str(match["user"])) if match.get("user") else str(match.get("username") or "")
        )
        return LiveHit(
            external_id=f"{place['id']}:{ts}",
            title=f"#{place.get('name', place['id'])}: {author}",
            text=render_text(str(match.get("text") or ""), name_of),
            url=str(match.get("permalink") or ""),
            author=author,
            created_at=moment_of(ts),
            metadata={"channel": place.get("name", ""), "channel_id": place["id"]},
        )

    @cached_property
    def _api(self) -> SlackApi:
        return SlackApi(self.context, self.base_url)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        return self._api.call("auth.test")

    @cached_property
    def _people(self) -> People:
        return People(self._api)


def _matches(channel_id: str, name: str, patterns: Sequence[str]) -> bool:
    wanted = [pattern.lstrip("#") for pattern in patterns]
    return any(pattern == channel_id or fnmatch.fnmatch(name, pattern) for pattern in wanted)
