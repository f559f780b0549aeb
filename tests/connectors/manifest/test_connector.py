"""The connector of a manifest: facts, credentials, files, search, check."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

import pytest

from config.errors import CredentialsError, InvalidInputError, RateLimitedError, RejectedError
from connectors.base import Capability, File, LiveHit, LiveSearch, Record, Text
from connectors.manifest.connector import connector_from
from connectors.manifest.loading import parse_manifest
from tests.connectors.manifest.site import (
    Call,
    Reply,
    Site,
    ids,
    manifest,
    only,
    opened,
    pulled,
    stream,
)

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


def test_a_record_has_all_its_facts(site: Site) -> None:
    mapping = {
        "title": "name", "body": "{{ record.html | html }}", "url": "web", "author": "by.name",
        "created_at": "made", "updated_at": "changed", "breadcrumbs": ["team.name", "nothing"],
        "metadata": {"labels": "labels[].name", "none": "nothing"}, "external_id": "key",
        "principals": ["readers", "{{ 'group:' ~ record.team.name }}"],
    }  # fmt: skip
    site.routes["/issues"] = [{
        "key": "K-1", "name": "  Reiher\n{{ 7*7 }} ", "html": "<h1>苍鹭</h1>", "web": "https://x.example/1",
        "by": {"name": "Ana"}, "made": 1740823200, "changed": "2025-03-02T00:00:00Z",
        "team": {"name": "鸟"}, "labels": [{"name": "a"}, {"name": "b"}], "readers": ["user:a@x.example"],
    }]  # fmt: skip
    connector = opened(manifest(stream("issue", mapping=mapping), url=site.url))
    assert only(pulled(connector), Record) == [
        Record(
            external_id="issue:K-1", title="Reiher {{ 7*7 }}", body=Text("# 苍鹭"),
            version="2025-03-02T00:00:00Z", scope="issue", url="https://x.example/1", author="Ana",
            breadcrumbs=("鸟",), created_at=datetime(2025, 3, 1, 10, tzinfo=UTC),
            updated_at=datetime(2025, 3, 2, tzinfo=UTC), metadata={"labels": ["a", "b"]},
            principals=frozenset({"user:a@x.example", "group:鸟"}),
        )
    ]  # fmt: skip


def test_capabilities_are_what_the_manifest_does() -> None:
    file = {"url": "u", "filename": "n"}
    one = stream(
        "file", complete=True, incremental={"field": "t", "param": "since"},
        mapping={"file": file, "version": "etag", "principals": []},
    )  # fmt: skip
    del one["mapping"]["body"]
    search = {"path": "/find", "params": {"q": "{{ query }}"},
              "mapping": {"prefix": "file", "title": "t", "text": "x"}}  # fmt: skip
    found = connector_from(parse_manifest(manifest(one, search=search), "any.yml"))
    assert found.capabilities() == {
        Capability.INCREMENTAL, Capability.DELETIONS, Capability.FILES,
        Capability.ACCESS_CONTROL, Capability.LIVE_SEARCH,
    }  # fmt: skip
    assert found.spec.backend == "manifest"
    assert connector_from(parse_manifest(manifest(), "any.yml")).capabilities() == set()


def test_files_are_fetched_when_opened(site: Site) -> None:
    site.routes["/files"] = [
        {"id": 1, "url": f"{site.url}/raw/1", "size": 6},
        {"id": 2, "url": f"{site.url}/raw/2", "size": None},
        {"id": 3},
    ]
    site.routes["/raw/1"] = site.routes["/raw/2"] = Reply(b"Herons")
    mapping = {"title": "id", "version": "'1'", "external_id": "id",
               "file": {"url": "url", "filename": "{{ record.id }}.txt", "size": "size"}}  # fmt: skip
    connector = opened(
        manifest({"name": "file", "path": "/files", "mapping": mapping}, url=site.url,
                 headers={"X-Team": "birds"})
    )  # fmt: skip
    events = pulled(connector)
    assert ids(events) == ["file:1", "file:2"], "the third has nothing to fetch"
    assert len(site.calls) == 1
    first, second = (cast(File, record.body) for record in only(events, Record))
    assert (first.filename, first.size, second.size) == ("1.txt", 6, None)
    with first.open() as content:
        assert content.read() == b"Herons"
    assert site.calls[-1].headers["authorization"] == "Bearer s3cret"


@pytest.mark.parametrize(
    ("auth", "secrets", "name", "value"),
    [
        ({"type": "token", "scheme": ""}, {"token": "s3cret"}, "authorization", "s3cret"),
        ({"type": "token"}, {"token": "s3cret"}, "authorization", "Bearer s3cret"),
        ({"type": "api_key", "header": "X-Key"}, {"api_key": "s3cret"}, "x-key", "s3cret"),
        ({"type": "basic", "username_suffix": "/token"}, {"username": "a", "password": "b"},
         "authorization", "Basic YS90b2tlbjpi"),
    ],
)  # fmt: skip
def test_each_way_to_authenticate(
    site: Site, auth: dict[str, Any], secrets: dict[str, str], name: str, value: str
) -> None:
    site.routes["/me"] = {"name": "Ana"}
    data = manifest(auth=[auth], url=site.url)
    assert opened(data, {}, method=auth["type"], **secrets).check() == "Ana"
    assert site.calls[0].headers[name] == value


def test_a_key_in_the_query_is_kept_out_of_positions(site: Site) -> None:
    site.routes["/issues"] = lambda call: {
        "items": [{"id": len(site.calls), "title": "x"}],
        "next": f"/issues?key={call.query['key']}&at=2" if "at" not in call.query else None,
    }
    one = stream("issue", records="items", pagination={"style": "next_link", "next": "next"})
    data = manifest(one, auth=[{"type": "api_key", "param": "key"}], url=site.url)
    events = pulled(opened(data, method="api_key"))
    assert site.asked("/issues") == [{"key": "s3cret"}, {"at": "2", "key": "s3cret"}]
    assert "s3cret" not in str(events)


def test_an_oauth_method_is_the_engines_to_prove() -> None:
    auth = {"type": "oauth", "authorize_url": "https://x.example/a",
            "token_url": "https://x.example/t", "scopes": ["read"]}  # fmt: skip
    found = connector_from(parse_manifest(manifest(auth=[auth]), "any.yml"))
    endpoints = found.spec.method("oauth").oauth
    assert endpoints is not None
    assert (endpoints.token_url, endpoints.scopes) == ("https://x.example/t", ("read",))


def test_searching_at_the_source(site: Site) -> None:
    def find(call: Call) -> Any:
        assert call.query == {"q": "苍鹭", "n": "2"}
        return {"hits": [{"id": n, "title": f"T{n}", "text": None, "by": "Ana"} for n in range(5)]}

    site.routes["/find"] = find
    search = {
        "path": "/find", "params": {"q": "{{ query }}", "n": "{{ limit }}"}, "records": "hits",
        "mapping": {"prefix": "issue", "title": "title", "text": "text", "author": "by"},
    }  # fmt: skip
    connector = opened(manifest(search=search, url=site.url))
    assert isinstance(connector, LiveSearch)
    assert connector.search("苍鹭", 2) == [
        LiveHit("issue:0", "T0", "", author="Ana"),
        LiveHit("issue:1", "T1", "", author="Ana"),
    ]


def test_errors_inside_good_answers_are_errors(site: Site) -> None:
    site.routes["/me"] = {"ok": False, "reason": "no such team"}
    connector = opened(manifest(error="reason", url=site.url))
    with pytest.raises(RejectedError, match="no such team"):
        connector.check()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({"data": {"me": None}, "errors": [{"message": "Half"}]}, RejectedError),
        (Reply({"errors": [{"message": "x", "extensions": {"code": "RATELIMITED"}}]}, 400),
         RateLimitedError),
        ({"errors": [{"extensions": {"code": "AUTHENTICATION_ERROR"}}]}, CredentialsError),
        ({"errors": ["odd"]}, RejectedError),
        (Reply({}, 400), RejectedError),
        (Reply({}, 401), CredentialsError),
    ],
)  # fmt: skip
def test_graphql_errors_say_what_to_do(site: Site, reply: Any, error: type[Exception]) -> None:
    site.routes["/graphql"] = reply
    check = {"graphql": "{ me }", "message": "{{ answer.data.me }}"}
    with pytest.raises(error):
        opened(manifest(check=check, url=f"{site.url}/graphql")).check()


def test_configuration_is_checked_and_fills_the_address(site: Site) -> None:
    fields = [
        {"name": "host", "title": "Host", "required": True, "pattern": "^http"},
        {"name": "size", "title": "Size", "type": "integer", "default": 3},
        {"name": "tags", "title": "Tags", "type": "list", "choices": ["a", "b"]},
        {"name": "old", "title": "Old", "type": "boolean"},
        {"name": "most", "title": "Most", "type": "integer"},
    ]
    data = manifest(config=fields, url="{{ config.host }}/api")
    connector = opened(data, {"host": site.url, "tags": ["a"]})
    assert connector.source.base_url == f"{site.url}/api"
    assert connector.config.model_dump() == {
        "host": site.url, "size": 3, "tags": ["a"], "old": False, "most": None,
    }  # fmt: skip
    for wrong in ({}, {"host": ""}, {"host": "ftp"}, {"host": "http", "tags": ["c"]}):
        with pytest.raises(InvalidInputError):
            opened(data, wrong)
    with pytest.raises(InvalidInputError, match="no address"):
        opened(manifest(config=fields[1:], url="{{ config.size }}"))


def test_files_kept_elsewhere_are_fetched_without_credentials(site: Site) -> None:
    site.routes["/files"] = [{"id": 1, "url": f"{site.url}/raw"}]
    site.routes["/raw"] = Reply(b"Herons")
    mapping = {"title": "id", "version": "'1'", "file": {"url": "url", "filename": "id"}}
    one = {"name": "file", "path": "/files", "mapping": mapping}
    connector = opened(manifest(one, url=site.url))
    body = only(pulled(connector), Record)[0].body
    assert isinstance(body, File)
    connector.source.base_url = "https://api.example"
    with body.open() as content:
        assert content.read() == b"Herons"
    assert "authorization" in site.calls[0].headers
    assert "authorization" not in site.calls[1].headers
