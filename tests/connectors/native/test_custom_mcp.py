"""MCP servers as sources: a real one, over HTTP and over stdio."""

from __future__ import annotations

import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from config.errors import CredentialsError, InvalidInputError, RejectedError, RemoteError
from connectors.models import Connection
from connectors.native.custom_mcp.connector import CustomMcpConnector
from tests.connectors.conftest import Syncs
from tests.connectors.native.mcp_server import make_server
from tests.connectors.vendor import make_connector

pytestmark = [
    pytest.mark.allow_hosts(["127.0.0.1"]),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:uvicorn.*"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:websockets.*"),
]

Connect = Callable[..., Connection]
SERVER = Path(__file__).with_name("mcp_server.py")
COMMAND = f"{sys.executable} {SERVER}"
NOTES = {"type": "tool", "name": "notes", "args": {"bird": "heron"}}


class Served:
    """The server over HTTP. Notes what is asked; the next answers may be scripted."""

    def __init__(self) -> None:
        self.url = ""
        self.refusals: list[tuple[int, dict[str, str]]] = []
        self.requests: list[tuple[str, dict[str, str]]] = []

    def wrapped(self, app: Any) -> Any:
        async def serve(scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            headers = {name.decode(): value.decode() for name, value in scope["headers"]}
            self.requests.append((scope["method"], headers))
            if not self.refusals:
                await app(scope, receive, send)
                return
            status, more = self.refusals.pop(0)
            named = [(name.encode(), value.encode()) for name, value in more.items()]
            await send({"type": "http.response.start", "status": status, "headers": named})
            await send({"type": "http.response.body", "body": b""})

        return serve


@pytest.fixture
def served(settings: Any) -> Iterator[Served]:
    settings.GROUNDWORK_PRIVATE_HOSTS = ["127.0.0.1"]
    known = Served()
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    app = known.wrapped(make_server().streamable_http_app())
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    known.url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    yield known
    server.should_exit = True
    thread.join(10)
    listening.close()


def over_http(served: Served, **config: Any) -> dict[str, Any]:
    return {"url": served.url, **config}


def over_stdio(**config: Any) -> dict[str, Any]:
    return {"transport": "stdio", "command": COMMAND, **config}


@pytest.fixture
def allowed(settings: Any) -> None:
    settings.GROUNDWORK_MCP_COMMANDS = [COMMAND, f"{COMMAND} --silent", "/no/such/command"]


def made(config: dict[str, Any], method: str = "none", **credentials: str) -> CustomMcpConnector:
    return make_connector(CustomMcpConnector, config, credentials, method=method)


def text_of(syncs: Syncs, title: str) -> str:
    document = next(one for one in syncs.documents().values() if one.title == title)
    with document.original.open() as file:
        return str(file.read().decode())


def test_operations_become_documents_over_http(
    served: Served, connect: Connect, syncs: Syncs
) -> None:
    operations = [
        NOTES,
        {"type": "tool", "name": "notes", "args": {"bird": "苍鹭", "language": "zh"}, "title": "苍鹭笔记"},
        {"type": "resource", "name": "birds://list", "title": "Birds"},
    ]  # fmt: skip
    connection = connect("custom-mcp", config=over_http(served, read_only_operations=operations))
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.warnings) == ("succeeded", 3, [])
    assert text_of(syncs, "Bird notes") == "# heron\n\nen: 涉水 wades."
    assert text_of(syncs, "苍鹭笔记") == "# 苍鹭\n\nzh: 涉水 wades."
    assert text_of(syncs, "Birds") == "- heron\n- 苍鹭"
    assert syncs.run(connection).kept == 3
    from accounts.tenancy import tenant_scope
    from connectors.services.connections import update_connection

    with tenant_scope(connection.tenant_id):
        config = over_http(served, read_only_operations=[NOTES])
        update_connection(actor=syncs._actor, connection=syncs.fresh(connection), config=config)
    assert syncs.run(connection).deleted == 2, "what is no longer asked for goes"


def test_every_resource_is_read_when_asked_for(
    served: Served, connect: Connect, syncs: Syncs
) -> None:
    syncs.run(connect("custom-mcp", config=over_http(served, all_resources=True)))
    assert set(syncs.documents()) == {"resource:birds://list", "resource:birds://photo"}
    assert "苍鹭,3" in text_of(syncs, "photo")


def test_what_fails_or_may_not_be_called_is_reported_and_kept(
    served: Served, connect: Connect, syncs: Syncs
) -> None:
    operations = [
        {"name": name, "args": {"bird": "heron"} if name == "forget" else {}}
        for name in ("forget", "broken", "nothing")
    ]
    operations.append({"type": "resource", "name": "birds://none"})
    connection = connect(
        "custom-mcp", config=over_http(served, read_only_operations=[*operations, NOTES])
    )
    run = syncs.run(connection)
    assert (run.status, run.inserted, run.failed) == ("partial", 1, 4)
    errors = {name.split(":")[1]: item.error for name, item in syncs.items().items() if item.error}
    assert "add it to the allowed tools" in errors["forget"]
    assert "Error executing tool" in errors["broken"]
    assert "has no tool" in errors["nothing"]
    assert "birds://none" in errors["birds"]


def test_tools_are_allowed_by_name_or_by_their_own_word(served: Served) -> None:
    assert made(over_http(served)).check() == "birds: 4 of 5 tools may be called"
    strict = over_http(served, trust_hints=False, allowed_tools=["forget"])
    nodes = made(strict).browse("")
    assert {node.id: node.selectable for node in nodes} == {
        "notes": False, "search": False, "forget": True, "broken": False, "environment": False,
    }  # fmt: skip
    assert made(strict).browse("notes") == []


def test_a_tool_searches_live(served: Served) -> None:
    config = over_http(served, search_tool="search", search_limit_argument="limit")
    hits = made(config).search("涉", 5)
    assert [(hit.title, hit.url, hit.text) for hit in hits] == [
        ("苍鹭", "https://birds.example/canglu", "苍鹭涉水。")
    ]
    with pytest.raises(RejectedError, match="allowed tools"):
        made(over_http(served, search_tool="forget", search_argument="bird")).search("heron", 5)
    with pytest.raises(InvalidInputError, match="No tool"):
        made(over_http(served)).search("heron", 5)


def test_credentials_are_sent_and_refusals_understood(served: Served) -> None:
    made(over_http(served), "token", token="secret").check()
    assert {headers["authorization"] for _, headers in served.requests} == {"Bearer secret"}
    served.requests.clear()
    made(over_http(served), "header", header="X-Bird", value="secret").check()
    assert {headers["x-bird"] for _, headers in served.requests} == {"secret"}
    served.refusals = [(401, {})]
    with pytest.raises(CredentialsError):
        made(over_http(served)).check()


def test_a_busy_server_is_waited_for(served: Served, connect: Connect, syncs: Syncs) -> None:
    waits: list[float] = []
    connector = make_connector(
        CustomMcpConnector, over_http(served), {}, method="none", pause=waits.append
    )
    served.refusals = [(429, {"Retry-After": "4"})]
    assert connector.check().startswith("birds")
    assert waits == [4.0]
    served.refusals = [(429, {"Retry-After": "400"})]
    connection = connect("custom-mcp", config=over_http(served, read_only_operations=[NOTES]))
    assert syncs.run(connection).status == "queued"


def test_what_ends_the_run_ends_a_conversation(served: Served) -> None:
    class RunEndedError(Exception):
        pass

    def pause(_: float) -> None:
        raise RunEndedError

    config = over_http(served, read_only_operations=[NOTES])
    connector = make_connector(CustomMcpConnector, config, {}, method="none", pause=pause)
    served.refusals = [(503, {})]
    with pytest.raises(RunEndedError):
        list(connector.pull({}))


def test_private_addresses_are_not_reached(served: Served, settings: Any) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = []
    with pytest.raises(RejectedError, match="private network"):
        made(over_http(served)).check()
    assert served.requests == []
    for url in ("", "file:///etc/passwd"):
        with pytest.raises(InvalidInputError, match="address"):
            made({"url": url}).check()


def test_what_is_no_server_is_said_to_be_none(served: Served) -> None:
    with pytest.raises(RemoteError):
        made({"url": served.url.replace("/mcp", "/nothing")}).check()


def test_operations_become_documents_over_stdio(
    allowed: None, connect: Connect, syncs: Syncs
) -> None:
    run = syncs.run(connect("custom-mcp", config=over_stdio(read_only_operations=[NOTES])))
    assert (run.status, run.inserted) == ("succeeded", 1)
    assert text_of(syncs, "Bird notes") == "# heron\n\nen: 涉水 wades."


def test_a_command_gets_its_variables_and_little_else(allowed: None, monkeypatch: Any) -> None:
    monkeypatch.setenv("SECRET_KEY", "ours")
    monkeypatch.setenv("DATABASE_URL", "ours")
    config = over_stdio(search_tool="environment", search_argument="query")
    given = "BIRDS_API_KEY=theirs\n\nBIRDS_TOKEN = a=b"
    connector = made(config, "environment", variables=given)
    names = set(connector.search("", 5)[0].text.split())
    assert {"BIRDS_API_KEY", "BIRDS_TOKEN", "PATH"} <= names
    assert not {"SECRET_KEY", "DATABASE_URL"} & names
    for name in ("PATH", "LD_PRELOAD", "NODE_OPTIONS", "PIP_INDEX_URL", "PYTHONPATH", "x_KEY"):
        with pytest.raises(InvalidInputError, match="may not be set"):
            made(config, "environment", variables=f"{name}=/tmp").check()


def test_only_the_operators_commands_are_run(allowed: None, settings: Any) -> None:
    for command in ("", "/bin/sh -c id", f"{COMMAND} --more", COMMAND.replace(" ", "  ")):
        with pytest.raises(InvalidInputError, match="GROUNDWORK_MCP_COMMANDS"):
            made(over_stdio(command=command)).check()
    settings.GROUNDWORK_MCP_COMMANDS = []
    with pytest.raises(InvalidInputError, match="GROUNDWORK_MCP_COMMANDS"):
        made(over_stdio()).check()


def test_commands_that_do_not_work_are_reported(allowed: None) -> None:
    with pytest.raises(RejectedError, match="cannot be started"):
        made(over_stdio(command="/no/such/command")).check()
    with pytest.raises(RemoteError):
        made(over_stdio(command=f"{COMMAND} --silent")).check()


def test_a_list_that_repeats_itself_ends() -> None:
    import anyio
    from mcp.types import ListToolsResult, Tool

    from connectors.native.custom_mcp.session import all_tools

    asked: list[str | None] = []

    class Endless:
        async def list_tools(self, cursor: str | None = None) -> ListToolsResult:
            asked.append(cursor)
            tool = Tool(name=f"t{len(asked)}", input_schema={"type": "object"})
            return ListToolsResult(tools=[tool], next_cursor="more")

    found = anyio.run(all_tools, Endless())  # type: ignore[arg-type]
    assert (len(found), asked) == (2, [None, "more"])
