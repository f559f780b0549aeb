"""The people of a workspace, by their ids."""

from __future__ import annotations

from typing import Any

from config.errors import RejectedError
from connectors.native.slack.web_api import SlackApi


class People:
    """Names and mail addresses, read once; strangers of shared channels are asked for singly."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._strangers: dict[str, dict[str, Any]] = {}
        self.problem = ""
        self._known = self._list()

    @property
    def have_emails(self) -> bool:
        """Whether the token may see mail addresses."""
        return any(_email(user) for user in self._known.values())

    def name_of(self, user_id: str) -> str:
        """How others see this person; the id when that cannot be known."""
        user = self._known.get(user_id) or self._stranger(user_id)
        profile = user.get("profile") or {}
        names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"))
        return str(next((name for name in names if name), user.get("name") or user_id))

    def email_of(self, user_id: str) -> str:
        """The mail address of a person who is active; empty when there is none."""
        user = self._known.get(user_id) or self._stranger(user_id)
        return "" if user.get("deleted") or user.get("is_bot") else _email(user)

    def _list(self) -> dict[str, dict[str, Any]]:
        try:
            pages = self._api.pages("users.list", "members")
            return {str(user["id"]): user for page in pages for user in page}
        except RejectedError as error:
            self.problem = error.message
            return {}

    def _stranger(self, user_id: str) -> dict[str, Any]:
        if user_id not in self._strangers:
            self._strangers[user_id] = {} if self.problem else self._ask(user_id)
        return self._strangers[user_id]

    def _ask(self, user_id: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = self._api.call("users.info", user=user_id).get("user") or {}
        except RejectedError:
            return {}
        return found


def _email(user: dict[str, Any]) -> str:
    return str((user.get("profile") or {}).get("email") or "")
