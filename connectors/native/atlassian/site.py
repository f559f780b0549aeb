"""A site of Atlassian's cloud, reached with an API token, or through the gateway after a sign-in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from pydantic import Field, SecretStr
from requests.auth import AuthBase, HTTPBasicAuth

from config.errors import InvalidInputError
from config.http import HttpClient
from connectors.base import AuthMethod, Context, OAuthEndpoints, OAuthTokens, Settings
from connectors.native.paging import follow_pages

_GONE = frozenset({404, 410})


class AtlassianToken(Settings):
    """An account's API token (https://id.atlassian.com/manage-profile/security/api-tokens)."""

    email: str = Field(title="Mail address")
    token: SecretStr = Field(title="API token")


def api_token(credentials: type[AtlassianToken] = AtlassianToken) -> AuthMethod:
    """Mail address and API token."""

    def auth(credentials: AtlassianToken) -> AuthBase:
        secret = credentials.token.get_secret_value()
        return HTTPBasicAuth(credentials.email.encode(), secret.encode())

    return AuthMethod("token", "API token", credentials, auth=auth)


def sign_in(*scopes: str, credentials: type[OAuthTokens] = OAuthTokens) -> AuthMethod:
    """OAuth 2.0 (3LO). https://developer.atlassian.com/cloud/jira/platform/oauth-2-3lo-apps/"""
    endpoints = OAuthEndpoints(
        "https://auth.atlassian.com/authorize",
        "https://auth.atlassian.com/oauth/token",
        scopes=(*scopes, "offline_access"),
        pkce=False,
        extra={"audience": "api.atlassian.com", "prompt": "consent"},
        basic_client=False,
    )
    return AuthMethod("oauth", "Sign in with Atlassian", credentials, oauth=endpoints)


class AtlassianSite:
    """One site. `product` is the gateway's word: jira or confluence."""

    gateway: ClassVar[str] = "https://api.atlassian.com"

    def __init__(self, context: Context, credentials: Settings, url: str, product: str) -> None:
        self._context, self._product = context, product
        self._is_signed_in = isinstance(credentials, OAuthTokens)
        self._url = _root(url)

    @property
    def url(self) -> str:
        """The address that people use."""
        return self._url or str(self._resource["url"])

    def get(self, path: str, **params: Any) -> Any:
        """An answer."""
        return self.client.get_json(path, params)

    def find(self, path: str, **params: Any) -> Any:
        """An answer, or None where there is nothing."""
        response = self.client.request("GET", path, params=params, expected=_GONE)
        return None if response.status_code in _GONE else response.json()

    def page(self, path: str, cursor: str, **params: Any) -> tuple[list[Mapping[str, Any]], str]:
        """A page of a list of Confluence, and the next page's cursor, which its link holds; empty at the
        end."""
        answer = self.get(path, **params, **({"cursor": cursor} if cursor else {}))
        link = (answer.get("_links") or {}).get("next") or ""
        after = parse_qs(urlsplit(link).query).get("cursor", [""])[0]
        return answer["results"], after if after != cursor else ""

    def pages(self, path: str, **params: Any) -> Iterator[list[Mapping[str, Any]]]:
        """All pages of a list."""
        return follow_pages(lambda cursor: self.page(path, cursor, **params))

    @cached_property
    def client(self) -> HttpClient:
        """Asks this site."""
        if not self._is_signed_in:
            if not self._url:
                raise InvalidInputError("Enter the address of the site.")
            return self._context.client(self._url)
        return self._context.client(f"{self.gateway}/ex/{self._product}/{self._resource['id']}")

    @cached_property
    def _resource(self) -> dict[str, Any]:
        """The site among those that the sign-in was for."""
        found = self._context.client(self.gateway).get_json("/oauth/token/accessible-resources")
        matching: list[dict[str, Any]] = [
            one for one in found if not self._url or one["url"].rstrip("/") == self._url
        ]
        if not matching:
            raise InvalidInputError(f"The sign-in was not for {self._url or 'any site'}.")
        if len({one["id"] for one in matching}) > 1:
            names = ", ".join(sorted({one["url"] for one in matching}))
            raise InvalidInputError(f"Enter the address of one of these sites: {names}.")
        return matching[0]


def moment(text: str | None) -> datetime | None:
    """A time as Atlassian writes it."""
    return datetime.fromisoformat(text) if text else None


def _root(url: str) -> str:
    """Scheme and host of what people paste."""
    url = url.strip()
    if not url:
        return ""
    scheme, _, rest = url.rpartition("://")
    return f"{scheme or 'https'}://{rest.split('/')[0]}"
