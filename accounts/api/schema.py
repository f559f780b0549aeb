"""How the OpenAPI document describes our two ways of authentication."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """A bearer token."""

    target_class = "accounts.api.authentication.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """https://spec.openapis.org/oas/v3.1.0#security-scheme-object"""
        del auto_schema
        return {"type": "http", "scheme": "bearer", "bearerFormat": "gw_…"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The browser's session cookie."""

    target_class = "accounts.api.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """https://spec.openapis.org/oas/v3.1.0#security-scheme-object"""
        del auto_schema
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
