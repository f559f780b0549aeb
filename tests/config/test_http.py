"""Requests to other people's servers, over real sockets."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest
import requests
from django.utils import timezone
from requests.auth import AuthBase

from config.errors import (
    AppError,
    CredentialsError,
    RateLimitedError,
    RejectedError,
    RemoteError,
    TransientError,
)
from config.http import HeaderAuth, HttpClient, Pacing
from tests.loopback import Answer, Asked, LoopbackServer, loopback_server

pytestmark = pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])

SECRET = "s3cr3t-value"


@pytest.fixture
def server(settings: Any) -> Iterator[LoopbackServer]:
    """A server that the operator has opened."""
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    with loopback_server() as running:
        yield running


@pytest.fixture
def pauses() -> list[float]:
    """How long the client would have waited."""
    return []


@pytest.fixture
def client(server: LoopbackServer, pauses: list[float]) -> HttpClient:
    return HttpClient(server.url, pacing=Pacing(pause=pauses.append))


# --- what is asked again -------------------------------------------------------------------------


def test_a_passing_problem_is_waited_out(
    client: HttpClient, server: LoopbackServer, pauses: list[float]
) -> None:
    server.answers = [Answer(503), Answer(500), Answer(200, b'{"a": 1}')]
    assert client.get_json("/x") == {"a": 1}
    assert [0 <= wait <= most for wait, most in zip(pauses, (1, 2), strict=True)] == [True, True]


def test_a_lasting_problem_is_given_up(
    client: HttpClient, server: LoopbackServer, pauses: list[float]
) -> None:
    server.default = lambda _asked: Answer(502)
    with pytest.raises(TransientError, match=r"127\.0\.0\.1 has a problem of its own \(502\)"):
        client.get_json("/x")
    assert (len(server.asked), len(pauses)) == (5, 4)


@pytest.mark.parametrize(
    ("headers", "waits_s"),
    [
        (lambda: {"Retry-After": "7"}, 7),
        (lambda: {"Retry-After": "0.5"}, 0.5),
        (lambda: {"Retry-After": _date(30)}, 30),
        (lambda: {"Retry-After": _date(-30)}, 0),
        (lambda: {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": _unix(20)}, 20),
        (lambda: {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "12"}, 12),
    ],
)
def test_a_server_is_given_the_time_it_asks_for(
    client: HttpClient, server: LoopbackServer, pauses: list[float], headers: Any, waits_s: float
) -> None:
    server.answers = [Answer(429, headers=headers()), Answer()]
    client.get_json("/x")
    assert pauses == [pytest.approx(waits_s, abs=2)]


@pytest.mark.parametrize("text", ["soon", "²", "nan", "-5", "Wed, 99 Nov 2026", ""])
def test_a_strange_time_is_not_obeyed(
    client: HttpClient, server: LoopbackServer, pauses: list[float], text: str
) -> None:
    server.answers = [Answer(429, headers={"Retry-After": text}), Answer()]
    client.get_json("/x")
    assert 0 <= pauses[0] <= 1


def test_a_long_wait_is_the_callers(
    client: HttpClient, server: LoopbackServer, pauses: list[float]
) -> None:
    server.default = lambda _asked: Answer(429, headers={"Retry-After": "3600"})
    with pytest.raises(RateLimitedError) as caught:
        client.get_json("/x")
    assert (caught.value.retry_after_s, pauses, len(server.asked)) == (3600, [], 1)


@pytest.mark.parametrize(
    "headers",
    [{"Retry-After": "90"}, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "90"}],
)
def test_a_refusal_may_be_a_rate_limit(
    client: HttpClient, server: LoopbackServer, headers: dict[str, str]
) -> None:
    server.default = lambda _asked: Answer(403, headers=headers)
    with pytest.raises(RateLimitedError) as caught:
        client.get_json("/x")
    assert caught.value.retry_after_s == 90


def test_a_pause_may_end_the_work(server: LoopbackServer) -> None:
    class EndedError(Exception):
        pass

    def pause(_seconds: float) -> None:
        raise EndedError

    server.default = lambda _asked: Answer(500)
    with pytest.raises(EndedError):
        HttpClient(server.url, pacing=Pacing(pause=pause)).get_json("/x")


def test_every_attempt_is_admitted(server: LoopbackServer) -> None:
    admitted: list[int] = []
    pacing = Pacing(pause=lambda _s: None, admit=lambda: admitted.append(1))
    server.answers = [Answer(500), Answer(500)]
    HttpClient(server.url, pacing=pacing).get_json("/x")
    assert len(admitted) == 3


def test_an_answer_that_breaks_off_is_asked_for_again(
    client: HttpClient, server: LoopbackServer, pauses: list[float]
) -> None:
    server.answers = [Answer(200, b"[1, ", promised=100), Answer(200, b"[1, 2]")]
    assert client.get_json("/x") == [1, 2]
    server.answers = [Answer(200, b"half", promised=100), Answer(200, b"whole")]
    with client.download("/x", max_bytes=100) as file:
        assert file.read() == b"whole"
    assert len(pauses) == 2


class Renewing(AuthBase):
    """A token that can be renewed."""

    def __init__(self, *, renews: bool = True) -> None:
        self.renewed, self._renews = 0, renews

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self.renewed}"
        return request

    def renew(self) -> bool:
        self.renewed += 1
        return self._renews


def test_refused_credentials_are_renewed_once(server: LoopbackServer) -> None:
    server.default = lambda asked: Answer(
        200 if asked.headers["authorization"].endswith("1") else 401
    )
    auth = Renewing()
    HttpClient(server.url, auth=auth).get_json("/x")
    assert auth.renewed == 1
    server.default = lambda _asked: Answer(401)
    with pytest.raises(CredentialsError):
        HttpClient(server.url, auth=auth).get_json("/x")
    assert auth.renewed == 2
    with pytest.raises(CredentialsError):
        HttpClient(server.url, auth=Renewing(renews=False)).get_json("/x")


# --- what answers mean ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, RejectedError), (401, CredentialsError), (403, RejectedError), (404, RejectedError),
        (408, TransientError), (409, TransientError), (410, RejectedError), (422, RejectedError),
        (423, TransientError), (425, TransientError), (429, RateLimitedError), (451, RejectedError),
        (500, TransientError), (501, RejectedError), (502, TransientError), (503, TransientError),
        (504, TransientError), (522, TransientError), (529, TransientError),
    ],
)  # fmt: skip
def test_a_status_says_what_to_do(
    client: HttpClient, server: LoopbackServer, status: int, error: type[RemoteError]
) -> None:
    server.default = lambda _asked: Answer(status, SECRET.encode())
    with pytest.raises(error, match=f"\\({status}\\)") as caught:
        client.get_json("/x")
    if isinstance(caught.value, RejectedError):
        assert caught.value.status == status
    assert SECRET not in caught.value.message


def test_an_expected_status_is_returned(client: HttpClient, server: LoopbackServer) -> None:
    server.default = lambda _asked: Answer(404, b"none")
    assert client.request("GET", "/x", expected=frozenset({404})).content == b"none"


def test_what_is_no_json_is_a_passing_problem(client: HttpClient, server: LoopbackServer) -> None:
    server.default = lambda _asked: Answer(200, b"<html>")
    with pytest.raises(TransientError, match="did not answer with JSON"):
        client.get_json("/x")


def test_a_silent_server_is_a_passing_problem(settings: Any, pauses: list[float]) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        pacing = Pacing(pause=pauses.append, attempts=2, read_timeout_s=0.1)
        with pytest.raises(TransientError, match=r"cannot be reached \(ReadTimeout\)"):
            HttpClient(url, pacing=pacing).get_json("/x")
    with pytest.raises(TransientError, match=r"cannot be reached \(ConnectionError\)"):
        HttpClient(url, pacing=pacing).get_json("/x")
    assert len(pauses) == 2


def test_too_large_an_answer_is_refused(
    client: HttpClient, server: LoopbackServer, monkeypatch: Any
) -> None:
    monkeypatch.setattr("config.http_answers._MAX_ANSWER_BYTES", 1024 * 1024)
    server.default = lambda _asked: Answer(200, b"x" * (1024 * 1024 + 1))
    with pytest.raises(RejectedError, match="more than 1 MB"):
        client.get_json("/x")
    with (
        pytest.raises(RejectedError, match="more than 1 MB"),
        client.download("/x", max_bytes=1024 * 1024),
    ):
        pytest.fail("the download was given")
    assert len(server.asked) == 2


def test_a_download_of_the_largest_size_is_whole(
    client: HttpClient, server: LoopbackServer
) -> None:
    body = bytes(range(256)) * 12_000
    server.default = lambda _asked: Answer(200, body)
    with client.download("/x", max_bytes=len(body)) as file:
        assert file.read() == body


def test_a_relative_address_may_hold_another(client: HttpClient, server: LoopbackServer) -> None:
    client.get_json("/x?next=http://elsewhere.example/")
    assert server.asked[0].path == "/x?next=http://elsewhere.example/"


# --- redirects -----------------------------------------------------------------------------------


def _redirecting(server: LoopbackServer, target: str, status: int = 302) -> None:
    def answer(asked: Asked) -> Answer:
        if asked.path.startswith("/from"):
            return Answer(status, headers={"Location": target})
        return Answer()

    server.default = answer


def test_a_redirect_to_another_host_takes_no_secret_along(
    server: LoopbackServer, settings: Any
) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    with loopback_server() as other:
        _redirecting(server, f"{other.url}/to")
        client = HttpClient(
            server.url,
            auth=HeaderAuth("X-Own-Token", SECRET),
            headers={"Authorization": SECRET, "X-Api-Key": SECRET, "X-Kept": "kept"},
            secret_headers=("X-More",),
        )
        client.get_json("/from", headers={"X-More": SECRET, "Cookie": f"a={SECRET}"})
    assert SECRET in str(server.asked[0].headers)
    assert SECRET not in str(other.asked[0].headers)
    assert other.asked[0].headers["x-kept"] == "kept"


def test_a_redirect_on_the_same_host_keeps_them(server: LoopbackServer) -> None:
    _redirecting(server, "/to")
    HttpClient(server.url, auth=HeaderAuth("X-Own-Token", SECRET)).get_json("/from")
    assert [one.headers["x-own-token"] for one in server.asked] == [SECRET, SECRET]


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_is_not_sent_on_to_another_host(server: LoopbackServer, status: int) -> None:
    with loopback_server() as other:
        _redirecting(server, f"{other.url}/to", status)
        with pytest.raises(RejectedError, match="on to another host"):
            HttpClient(server.url).request("POST", "/from", data={"client_secret": SECRET})
    assert other.asked == []


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.2:1/to", "http://[::1]/to", "http://169.254.169.254/latest/meta-data/"],
)
def test_a_redirect_to_a_private_address_is_refused(
    client: HttpClient, server: LoopbackServer, target: str
) -> None:
    _redirecting(server, target)
    with pytest.raises(RejectedError, match="private network"):
        client.get_json("/from")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://"])
def test_a_redirect_to_something_else_is_refused(
    client: HttpClient, server: LoopbackServer, target: str
) -> None:
    _redirecting(server, target)
    with pytest.raises(RejectedError):
        client.get_json("/from")


def test_redirects_in_a_circle_end(client: HttpClient, server: LoopbackServer) -> None:
    _redirecting(server, "/from")
    with pytest.raises(RejectedError, match="in a circle"):
        client.get_json("/from")
    assert len(server.asked) < 15


def test_redirects_may_be_left_to_the_caller(server: LoopbackServer) -> None:
    _redirecting(server, "/to")
    client = HttpClient(server.url, follow_redirects=False)
    assert client.request("GET", "/from").status_code == 302


# --- addresses -----------------------------------------------------------------------------------

PRIVATE = [
    "http://127.0.0.1/", "http://127.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0177.0.0.1/", "http://0/", "http://0.0.0.0/", "http://10.1.2.3/", "http://172.16.0.1/",
    "http://192.168.1.1/", "http://169.254.169.254/", "http://100.64.0.1/", "http://[::1]/",
    "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:a00:1]/", "http://[fe80::1]/",
    "http://[fd00::1]/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/", "https://127.0.0.1/",
    "http://224.0.0.1/", "http://localhost/", "http://LOCALHOST/",
]  # fmt: skip


@pytest.mark.parametrize("url", PRIVATE)
def test_private_addresses_are_refused(url: str) -> None:
    _refused(url)


@pytest.mark.parametrize(
    "url",
    [
        "http://opened.example@127.0.0.1/", "http://opened.example:80@127.0.0.1/",
        "http://127.0.0.1#@opened.example/", "http://127.0.0.1/@opened.example/",
        "http://127.0.0.1?@opened.example/", "http://127.0.0.1:80\\.opened.example/",
        "http://opened.example%2f@127.0.0.1/", "http://opened.example.:80@127.0.0.1:80/",
    ],
)  # fmt: skip
def test_an_opened_name_opens_no_other_host(url: str, settings: Any) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = ["opened.example", "opened.example:80"]
    _refused(url)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.8", "::1", "::ffff:10.0.0.8"])
def test_names_that_lead_to_private_addresses_are_refused(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    found = [(family, socket.SOCK_STREAM, 6, "", (address, 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: found)
    _refused("http://rebind.example/")


def test_an_opened_port_opens_no_other(settings: Any, server: LoopbackServer) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = [f"127.0.0.1:{server.port}"]
    assert HttpClient(server.url).get_json("/x") == {}
    _refused(f"http://127.0.0.1:{server.port + 1}/")


def test_a_name_is_opened_in_any_case_and_on_its_usual_port(settings: Any) -> None:
    from config.http_guard import is_open_host

    settings.GROUNDWORK_PRIVATE_HOSTS = ["Wiki.Intern", "git.intern:443"]
    assert is_open_host("wiki.intern", 8080)
    assert is_open_host("git.intern", 443)
    assert not is_open_host("git.intern", 80)


def _refused(url: str) -> None:
    pacing = Pacing(pause=lambda _s: None, attempts=1, read_timeout_s=0.2)
    with pytest.raises(RejectedError):
        HttpClient(pacing=pacing).get_json(url)


# --- secrets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda server: f"http://user:{SECRET}@127.0.0.1:1/bot{SECRET}/x?token={SECRET}",
        lambda server: f"http://user:{SECRET}@127.0.0.9/bot{SECRET}/x?token={SECRET}",
        lambda server: f"{server.url}/{SECRET}?token={SECRET}",
        lambda server: f"http://[::{SECRET}/?token={SECRET}",
        lambda server: f"http:///{SECRET}",
        lambda server: f"{SECRET}://x",
        lambda server: f"http://127.0.0.1:{SECRET}/",
    ],
)
def test_no_error_and_no_log_tells_a_secret(
    make: Callable[[LoopbackServer], str], server: LoopbackServer, caplog: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="urllib3")
    server.default = lambda asked: Answer(418, asked.path.encode())
    pacing = Pacing(pause=lambda _s: None, attempts=1)
    client = HttpClient(auth=HeaderAuth("X-Token", SECRET), pacing=pacing)
    url = make(server)
    with pytest.raises(AppError) as caught:
        client.get_json(url, params={"key": SECRET})
    assert SECRET not in caught.value.message
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert f"={SECRET}" not in caplog.text


def test_a_header_that_cannot_be_sent_is_not_quoted(server: LoopbackServer) -> None:
    client = HttpClient(server.url, auth=HeaderAuth("X-Token", f"{SECRET}\n"))
    with pytest.raises(AppError) as caught:
        client.get_json("/x")
    assert SECRET not in caught.value.message


def _date(seconds: float) -> str:
    return format_datetime(timezone.now() + timedelta(seconds=seconds), usegmt=True)


def _unix(seconds: float) -> str:
    return str(int((timezone.now() + timedelta(seconds=seconds)).timestamp()))
