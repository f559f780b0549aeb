"""The vendors' descriptions on loopback: what fits is answered, what does not is a fault."""

from __future__ import annotations

import pytest

from config.errors import CredentialsError, RateLimitedError, RejectedError
from config.http import HeaderAuth, HttpClient, Pacing
from tests.connectors.vendor import Asked, Refusal, StartVendor, pages

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])
AUTH = HeaderAuth("Authorization", "Bearer any")


def test_lists_have_pages_and_the_queries_are_kept(vendor: StartVendor) -> None:
    slack = vendor("slack")

    def users(asked: Asked, answer: dict[str, object]) -> object:
        members, after = pages(["a", "b", "c"], asked.query.get("cursor"), 2)
        example = answer["members"][0]  # type: ignore[index]
        return {
            **answer,
            "members": [{**example, "name": name} for name in members],
            "response_metadata": {"next_cursor": after},
        }

    slack.on("GET /users.list", users)
    client = HttpClient(slack.url, auth=AUTH)
    first = client.get_json("/users.list", {"limit": 2})
    second = client.get_json("/users.list", {"cursor": first["response_metadata"]["next_cursor"]})
    assert [one["name"] for one in first["members"] + second["members"]] == ["a", "b", "c"]
    assert slack.asked("GET /users.list") == [{"limit": "2"}, {"cursor": "2"}]
    assert second["response_metadata"]["next_cursor"] == ""


def test_what_does_not_fit_is_a_fault(vendor: StartVendor) -> None:
    slack = vendor("slack")
    client = HttpClient(slack.url, auth=AUTH)
    with pytest.raises(RejectedError):
        client.get_json("/users.list", {"page": 2})
    assert slack.faults.pop()["faults"] == ["query page: unknown"]
    slack.on("GET /users.list", {"members": "none"})
    with pytest.raises(RejectedError):
        client.get_json("/users.list")
    assert "answer" in slack.faults.pop()["mock_error"]


def test_refusals_are_no_faults(vendor: StartVendor) -> None:
    slack = vendor("slack")
    waits: list[float] = []
    client = HttpClient(slack.url, auth=AUTH, pacing=Pacing(pause=waits.append))
    with pytest.raises(CredentialsError):
        HttpClient(slack.url).get_json("/users.list")
    slack.refuse_next(429, Retry_After="7")
    client.get_json("/auth.test")
    assert waits == [7.0]

    def refuse(_asked: Asked, _answer: object) -> None:
        raise Refusal(429, headers={"Retry-After": "90"})

    slack.on("GET /users.list", refuse)
    with pytest.raises(RateLimitedError):
        client.get_json("/users.list")


def test_files_are_served_beside_the_description(vendor: StartVendor) -> None:
    slack = vendor("slack")
    slack.files["/files/a.txt"] = b"Herons."
    assert HttpClient(auth=AUTH).request("GET", f"{slack.url}/files/a.txt").content == b"Herons."
    assert slack.fetched == [("/files/a.txt", {"authorization": "Bearer any"})]
