"""Registration: what the catalog holds is known, proven at start, and tried from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import CommandError, call_command

from config.errors import InvalidInputError, NotFoundError
from connectors import registry
from connectors.base import NO_AUTH
from connectors.checks import check_connectors, manifest_faults
from tests.connectors.manifest.site import Reply, Site, manifest, stream

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.fixture
def catalog(monkeypatch: Any, tmp_path: Path) -> Any:
    """A catalog of the test's own."""
    monkeypatch.setattr(registry, "CATALOG", tmp_path)
    monkeypatch.setattr(registry, "NATIVE", {"folder": registry.NATIVE["folder"]})
    registry.connector_class.cache_clear()
    yield tmp_path
    registry.connector_class.cache_clear()


def write(folder: Path, data: Any, name: str = "any") -> Path:
    path = folder / f"{name}.yml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True))
    return path


def test_every_connector_loads() -> None:
    assert check_connectors() == []
    assert {"linear", "hackernews"} <= set(registry.kinds())


def test_manifests_are_found_by_their_file(catalog: Path) -> None:
    write(catalog, manifest())
    assert registry.kinds() == ("any", "folder")
    assert registry.connector_class("any").spec.name == "Any"
    assert registry.connector_class("any") is registry.connector_class("any")
    with pytest.raises(NotFoundError):
        registry.connector_class("../any")


def test_a_start_names_manifests_that_are_wrong(catalog: Path) -> None:
    write(catalog, manifest(kind="sound"), "sound")
    assert manifest_faults() == []
    write(catalog, manifest(streams=[]))
    (fault,) = manifest_faults()
    assert fault.startswith("any.yml is no valid manifest. ")
    assert "streams" in fault


def test_mistakes_show_at_start(catalog: Path, monkeypatch: Any) -> None:
    write(catalog, manifest(kind="folder"), "folder")
    write(catalog, manifest(streams=[]))
    monkeypatch.setitem(registry.NATIVE, "lost", "connectors.native.lost.Lost")
    monkeypatch.setitem(registry.NATIVE, "other", registry.NATIVE["folder"])
    found = {(one.id, one.msg.split(":")[0]) for one in check_connectors()}
    assert found == {
        ("connectors.E001", "Connector folder is native and has a manifest."),
        ("connectors.E002", "Connector any"), ("connectors.E002", "Connector lost"),
        ("connectors.E002", "Connector other"),
    }  # fmt: skip
    with pytest.raises(InvalidInputError):
        registry.connector_class("any")


def run(capsys: Any, *arguments: str) -> str:
    call_command("groundwork", "connector", "check", *arguments)
    out: str = capsys.readouterr().out
    return out


def test_a_manifest_is_validated_by_command(tmp_path: Path, capsys: Any) -> None:
    out = run(capsys, str(write(tmp_path, manifest())))
    assert "any.yml is valid. Streams: issue." in out
    with pytest.raises(CommandError, match=r"streams\[issue\].mapping.title"):
        run(capsys, str(write(tmp_path, manifest(stream(mapping={"title": "["})))))


def test_a_dry_run_shows_records_and_no_secret(site: Site, tmp_path: Path, capsys: Any) -> None:
    site.routes["/me"] = {"name": "Ana with s3cret"}
    site.routes["/issues"] = [
        {"id": 1, "title": "苍鹭", "body": "Herons.\nThey wade; s3cret.", "gone": False},
        {"id": 2, "title": "x", "gone": True},
        *({"id": n, "title": "x", "body": "y"} for n in range(3, 9)),
    ]
    fields = [{"name": "host", "title": "Host", "required": True},
              {"name": "tags", "title": "Tags", "type": "list"}]  # fmt: skip
    data = manifest(stream(gone_when="gone"), config=fields, url="{{ config.host }}")
    secrets = tmp_path / "secrets.json"
    secrets.write_text(json.dumps({"method": "token", "token": "s3cret"}))
    out = run(
        capsys, str(write(tmp_path, data)), "--config", f"host={site.url}", "--config", "tags=a, b",
        "--credentials-file", str(secrets), "--limit", "2",
    )  # fmt: skip
    assert "Check: Ana with •••" in out
    assert "issue:1: 苍鹭" in out
    assert "  | They wade; •••." in out
    assert "Gone: issue:2" in out
    assert "Stopped after 2 records." in out
    assert "s3cret" not in out


def test_a_dry_run_tells_of_what_fails(site: Site, tmp_path: Path, capsys: Any) -> None:
    site.routes["/me"], site.routes["/issues"] = {"name": "x"}, [{"id": 1}]
    site.routes["/pages"] = Reply({}, 403)
    bad = stream(complete=True, mapping={"title": "{{ 1 // record.n }}"})
    data = manifest(bad, stream("page"), auth=[{"type": NO_AUTH.name}], url=site.url)
    out = run(capsys, str(write(tmp_path, data)))
    assert "Failed: issue:1" in out
    assert "Complete: issue" in out
    assert "Warning: page could not be read" in out
    assert "That is everything: 0 records." in out


@pytest.mark.parametrize(
    ("secrets", "said"),
    [
        ("[", "cannot be read as JSON"),
        ("[]", "holds no JSON object"),
        ('{"method": "basic"}', "'basic'"),
        ('{"token": 5}', "credentials.token"),
    ],
)
def test_wrong_credentials_are_told(tmp_path: Path, capsys: Any, secrets: str, said: str) -> None:
    path = tmp_path / "secrets.json"
    path.write_text(secrets)
    with pytest.raises(CommandError, match=said):
        run(capsys, str(write(tmp_path, manifest())), "--credentials-file", str(path))
