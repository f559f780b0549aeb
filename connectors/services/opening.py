"""Making a connector out of a connection: settings read, credentials fresh, requests paced."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from pydantic import ValidationError
from requests.auth import AuthBase

from config.errors import FieldError, InvalidInputError
from config.http import HttpClient, Pacing
from connectors.base import AuthMethod, Connector, ConnectorSpec, Context, Settings
from connectors.models import Connection
from connectors.registry import connector_class
from connectors.services.oauth_tokens import OAuthBearer
from connectors.services.pacing import admission


@dataclass(frozen=True, slots=True)
class Patience:
    """How a connector waits: `pause` sleeps and may raise to end the work; a request is tried so often, and
    read so long."""

    pause: Callable[[float], None] = time.sleep
    attempts: int = 5
    read_timeout_s: float = 60.0


def open_connector(connection: Connection, *, patience: Patience = Patience()) -> Connector[Any]:
    """A connector that is ready to work. Raises `InvalidInputError` naming what is not configured."""
    found = connector_class(connection.connector)
    config = parse_config(found.spec, connection.config)
    method = auth_method(found.spec, connection.auth_method)
    credentials = parse_credentials(method, connection.credentials)
    context = _context(connection, found.spec, method, credentials, patience)
    return found(config, credentials, context)


def cache_folder(connection: Connection) -> Path:
    """Where this machine keeps things of a connection between runs. It may be missing, or be deleted."""
    folder: Path = settings.GROUNDWORK_DATA.root / "sources" / str(connection.id)
    return folder


def parse_config(spec: ConnectorSpec, values: Mapping[str, Any]) -> Any:
    """The configuration. Raises `InvalidInputError` naming each wrong field."""
    return _parsed(spec.config, values, "config")


def parse_credentials(method: AuthMethod, values: Mapping[str, Any]) -> Settings:
    """The credentials. Raises `InvalidInputError` naming each wrong field, never a value."""
    credentials: Settings = _parsed(method.credentials, values, "credentials")
    return credentials


def auth_method(spec: ConnectorSpec, name: str) -> AuthMethod:
    """A way to authenticate. Raises `InvalidInputError`."""
    try:
        return spec.method(name)
    except KeyError as error:
        known = ", ".join(method.name for method in spec.auth)
        message = f"{spec.name} cannot be reached with {name!r}."
        raise InvalidInputError(message, [FieldError("auth_method", f"One of {known}.")]) from error


def _parsed(model: type[Settings], values: Mapping[str, Any], place: str) -> Any:
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        faults = [
            FieldError(".".join([place, *(str(part) for part in fault["loc"])]), fault["msg"] + ".")
            for fault in error.errors(include_url=False, include_input=False)
        ]
        named = " ".join(f"{fault.field}: {fault.message}" for fault in faults)
        raise InvalidInputError(f"The connection is not configured yet. {named}", faults) from None


def _context(
    connection: Connection,
    spec: ConnectorSpec,
    method: AuthMethod,
    credentials: Settings,
    patience: Patience,
) -> Context:
    auth: AuthBase | None = None
    if method.oauth is not None:
        auth = OAuthBearer(connection)
    elif method.auth is not None:
        auth = method.auth(credentials)
    pause = patience.pause
    pacing = Pacing(
        pause,
        admission(connection, spec.rate_limit, pause),
        patience.attempts,
        patience.read_timeout_s,
    )
    return Context(
        client=partial(_client, auth, pacing),
        pause=pause,
        log=logging.getLogger(f"connectors.{spec.kind}"),
        max_bytes=settings.MAX_UPLOAD_BYTES,
        cache=cache_folder(connection),
        auth=auth,
    )


def _client(
    auth: AuthBase | None, pacing: Pacing, /, base_url: str = "", **more: Any
) -> HttpClient:
    return HttpClient(base_url, auth=more.pop("auth", auth), pacing=pacing, **more)
