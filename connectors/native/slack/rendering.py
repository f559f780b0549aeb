"""From Slack's messages to Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Message = Mapping[str, Any]
NameOf = Callable[[str], str]

_MARKUP = re.compile(r"<([^<>|\n]+)(?:\|([^<>\n]*))?>")
_UNSAID = frozenset(
    f"{place}_{event}"
    for place in ("channel", "group")
    for event in ("join", "leave", "topic", "purpose", "name", "archive", "unarchive", "posting_permissions")
) | {"pinned_item", "unpinned_item", "bot_add", "bot_remove", "reminder_add", "tombstone"}  # fmt: skip
_TITLE = 90


def is_said(message: Message) -> bool:
    """Whether somebody says something: not a notice that someone has joined."""
    return message.get("subtype") not in _UNSAID and bool(
        message.get("text") or message.get("attachments") or message.get("files")
    )


def moment_of(ts: str) -> datetime:
    """A message's time; its `ts` is Unix time with a number behind the point."""
    return datetime.fromtimestamp(int(ts.partition(".")[0]), UTC)


def author_of(message: Message, name_of: NameOf) -> str:
    """Who says it."""
    if message.get("user"):
        return name_of(str(message["user"]))
    bot = message.get("bot_profile") or {}
    return str(message.get("username") or bot.get("name") or "App")


def last_change(messages: Sequence[Message]) -> datetime:
    """When something was last said or edited."""
    edited = (str((message.get("edited") or {}).get("ts", "")) for message in messages)
    return max(moment_of(ts) for ts in (*(str(one["ts"]) for one in messages), *edited) if ts)


def render_messages(messages: Iterable[Message], name_of: NameOf) -> str:
    """A conversation as Markdown, in the order of time."""
    return "\n\n".join(
        f"**{author_of(message, name_of)}** ({moment_of(str(message['ts'])):%Y-%m-%d %H:%M}): "
        f"{render_message(message, name_of)}"
        for message in sorted(messages, key=lambda one: float(one["ts"]))
    )


def render_message(message: Message, name_of: NameOf) -> str:
    """Text, what is attached, and the names of files."""
    parts = [render_text(str(message.get("text") or ""), name_of)]
    for attachment in message.get("attachments") or ():
        texts = [attachment.get(key) for key in ("pretext", "title", "text")]
        said = [render_text(str(text), name_of) for text in texts if text]
        parts.append("\n".join(said) or render_text(str(attachment.get("fallback") or ""), name_of))
    parts += [
        f"[{file.get('name') or file.get('title') or 'file'}]({file.get('permalink') or ''})"
        for file in message.get("files") or ()
    ]
    return "\n".join(part for part in parts if part)


def render_text(text: str, name_of: NameOf) -> str:
    """Slack's mark-up (https://api.slack.com/reference/surfaces/formatting) as Markdown."""
    return html.unescape(_MARKUP.sub(lambda found: _render_markup(found, name_of), text))


def title_of(message: Message, name_of: NameOf) -> str:
    """The beginning of what is said, on one line."""
    line = " ".join(_plain(message, name_of).split())
    return line if len(line) <= _TITLE else line[: _TITLE - 1].rstrip() + "…"


def _plain(message: Message, name_of: NameOf) -> str:
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", render_message(message, name_of))


def _render_markup(found: re.Match[str], name_of: NameOf) -> str:
    target, label = found.group(1), found.group(2)
    kind, name = target[0], target[1:]
    if kind == "@":
        return f"@{name_of(name)}"
    if kind == "#":
        return f"#{label or name}"
    if kind == "!":
        return label or f"@{name.partition('^')[0]}"
    if ":" not in target:
        return found.group()
    return f"[{label}]({target})" if label and label != target else target
