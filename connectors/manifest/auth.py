"""The ways to authenticate that a manifest lists, as the contract has them."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import requests
from pydantic import Field, SecretStr
from requests.auth import AuthBase, HTTPBasicAuth

from config.http import HeaderAuth
from connectors.base import (
    NO_AUTH,
    AuthMethod,
    BasicCredentials,
    OAuthEndpoints,
    Settings,
    oauth,
    token_auth,
)
from connectors.manifest.connection_schema import (
    ApiKeyAuth,
    Auth,
    BasicAuth,
    NoAuth,
    OAuth,
    TokenAuth,
)


class ApiKeyCredentials(Settings):
    """A key that is sent as it is."""

    api_key: SecretStr = Field(title="API key")


class QueryAuth(AuthBase):
    """Proves who asks by a parameter of the query."""

    def __init__(self, param: str, value: str) -> None:
        self.param = param
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Called by `requests` for each request."""
        parts = urlsplit(str(request.url))
        pairs = [
            pair for pair in parse_qsl(parts.query, keep_blank_values=True) if pair[0] != self.param
        ]
        request.url = urlunsplit(
            parts._replace(query=urlencode([*pairs, (self.param, self._value)]))
        )
        return request


def auth_method(auth: Auth) -> AuthMethod:
    """One of the list."""
    match auth:
        case NoAuth():
            return NO_AUTH
        case TokenAuth():
            return token_auth(auth.label, hint=auth.hint, header=auth.header, scheme=auth.scheme)
        case ApiKeyAuth():
            return _api_key(auth)
        case BasicAuth():
            return _basic(auth)
        case OAuth():
            return oauth(_endpoints(auth), auth.label, hint=auth.hint)


def _api_key(auth: ApiKeyAuth) -> AuthMethod:
    def prove(credentials: ApiKeyCredentials) -> AuthBase:
        key = credentials.api_key.get_secret_value()
        return HeaderAuth(auth.header, key) if auth.header else QueryAuth(auth.param, key)

    return AuthMethod("api_key", auth.label, ApiKeyCredentials, auth.hint, prove)


def _basic(auth: BasicAuth) -> AuthMethod:
    def prove(credentials: BasicCredentials) -> AuthBase:
        name = credentials.username.removesuffix(auth.username_suffix) + auth.username_suffix
        return HTTPBasicAuth(name.encode(), credentials.password.get_secret_value().encode())

    return AuthMethod("basic", auth.label, BasicCredentials, auth.hint, prove)


def _endpoints(auth: OAuth) -> OAuthEndpoints:
    return OAuthEndpoints(
        authorize_url=auth.authorize_url,
        token_url=auth.token_url,
        scopes=tuple(auth.scopes),
        scope_separator=auth.scope_separator,
        pkce=auth.pkce,
        extra=auth.extra,
        client_credentials=auth.client_credentials,
        basic_client=auth.basic_client,
    )
