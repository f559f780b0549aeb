"""Trying a manifest without a connection: what its check says, and a few of its records as text."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic import SecretStr
from requests.auth import AuthBase

from config.errors import InvalidInputError
from config.http import HeaderAuth, HttpClient
from connectors.base import (
    AuthMethod,
    Checkpoint,
    Complete,
    Context,
    Deletion,
    Event,
    Failure,
    File,
    Notice,
    OAuthTokens,
    Record,
    Settings,
)
from connectors.manifest.connector import ManifestConnector
from connectors.manifest.loading import read_connector
from connectors.services.opening import auth_method, parse_config, parse_credentials

_SHOWN = 600  # characters of a body
_MOST_EVENTS = 2000  # looked at for the sake of a few records


@dataclass(frozen=True, slots=True)
class Trial:
    """What to try: fields as `name=value`, and a JSON file such as `{"method": "token", "token": "…"}`."""

    manifest: Path
    config: Sequence[str] = ()
    credentials: Path | None = None
    limit: int = 5


def try_manifest(trial: Trial) -> Iterator[str]:
    """Lines to print, none with a secret. Raises `InvalidInputError` and `RemoteError`."""
    found = read_connector(trial.manifest)
    streams = ", ".join(stream.name for stream in found.manifest.streams)
    yield f"{trial.manifest.name} is valid. Streams: {streams}."
    if not trial.config and trial.credentials is None and _needs_more(found):
        yield "Give --config and --credentials-file to try it."
        return
    method, credentials = _credentials(found, trial.credentials)
    connector = _opened(found, _config(found, trial.config), method, credentials)
    secrets = _secrets(credentials)
    for line in _lines(connector, trial.limit):
        yield _without(secrets, line)


def _lines(connector: ManifestConnector, limit: int) -> Iterator[str]:
    yield f"Check: {connector.check()}"
    records = 0
    for number, event in enumerate(connector.pull({})):
        yield from _shown(event)
        records += isinstance(event, Record)
        if records >= limit or number >= _MOST_EVENTS:
            yield f"Stopped after {records} records."
            return
    yield f"That is everything: {records} records."


def _shown(event: Event) -> Iterator[str]:
    match event:
        case Record():
            yield from _record(event)
        case Deletion(external_id):
            yield f"\nGone: {external_id}"
        case Failure(external_id, message):
            yield f"\nFailed: {external_id}: {message}"
        case Notice(message):
            yield f"\nWarning: {message}"
        case Complete(scope):
            yield f"\nComplete: {scope}"
        case Checkpoint():
            pass


def _record(record: Record) -> Iterator[str]:
    yield f"\n{record.external_id}: {record.title}"
    facts = {
        "url": record.url,
        "author": record.author,
        "in": " › ".join(record.breadcrumbs),
        "created": record.created_at,
        "updated": record.updated_at,
        "readers": ", ".join(sorted(record.principals or ())),
        "metadata": json.dumps(dict(record.metadata), ensure_ascii=False, default=str),
    }
    yield from (f"  {name}: {value}" for name, value in facts.items() if value not in ("", None))
    if isinstance(record.body, File):
        yield f"  file: {record.body.filename} {record.body.content_type}"
        return
    text = record.body.text[:_SHOWN] + ("…" if len(record.body.text) > _SHOWN else "")
    yield from (f"  | {line}" for line in text.splitlines())


def _needs_more(found: type[ManifestConnector]) -> bool:
    needed = any(field.is_required() for field in found.spec.config.model_fields.values())
    return needed or found.spec.auth[0].name != "none"


def _config(found: type[ManifestConnector], pairs: Sequence[str]) -> Settings:
    values: dict[str, Any] = {}
    for pair in pairs:
        name, _, value = pair.partition("=")
        known = next((one for one in found.manifest.config if one.name == name), None)
        is_list = known is not None and known.type == "list"
        values[name] = [part.strip() for part in value.split(",")] if is_list else value
    config: Settings = parse_config(found.spec, values)
    return config


def _credentials(found: type[ManifestConnector], path: Path | None) -> tuple[AuthMethod, Settings]:
    values = _read(path) if path else {}
    method = auth_method(found.spec, str(values.pop("method", found.spec.auth[0].name)))
    return method, parse_credentials(method, values)


def _read(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInputError(f"{path.name} cannot be read as JSON.") from error
    if not isinstance(values, dict):
        raise InvalidInputError(f"{path.name} holds no JSON object.")
    return values


def _opened(
    found: type[ManifestConnector], config: Settings, method: AuthMethod, credentials: Settings
) -> ManifestConnector:
    auth: AuthBase | None = method.auth(credentials) if method.auth else None
    if isinstance(credentials, OAuthTokens):
        token = credentials.access_token.get_secret_value()
        auth = HeaderAuth("Authorization", f"Bearer {token}")

    def client(base_url: str = "", **more: Any) -> HttpClient:
        return HttpClient(base_url, auth=more.pop("auth", auth), **more)

    log = logging.getLogger(f"connectors.{found.spec.kind}")
    context = Context(client, time.sleep, log, settings.MAX_UPLOAD_BYTES, auth)
    return found(config, credentials, context)


def _secrets(credentials: Settings) -> list[str]:
    values = dict(credentials).values()
    return [one.get_secret_value() for one in values if isinstance(one, SecretStr) and one]


def _without(secrets: Sequence[str], line: str) -> str:
    for secret in secrets:
        line = line.replace(secret, "•••")
    return line
