"""An OAuth server: django-oauth-toolkit in a process and a database of its own.

`python -m tests.connectors.oauth_server FOLDER` prints its port. Besides the usual addresses: `/api/me`
wants a token, `/log` tells which grants were asked for, `/revoke` makes every refresh token useless.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import HTTPServer
from pathlib import Path
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from config.env import child_environment

CLIENT_ID, CLIENT_SECRET = "groundwork", "client-s3cr3t"
SERVICE_ID = "service"
REDIRECT = "http://localhost:8000/connect/oauth/callback/"


@dataclass(frozen=True, slots=True)
class OAuthServer:
    """A running one."""

    url: str

    def get(self, path: str) -> Any:
        """What one of the addresses for tests answers."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
            return json.load(answer)

    def grants(self) -> list[str]:
        """The grants that were asked for since the last call."""
        found: list[str] = self.get("/log")
        return found


@contextmanager
def running_oauth_server(folder: Path) -> Iterator[OAuthServer]:
    """Starts one and stops it."""
    command = [sys.executable, "-m", "tests.connectors.oauth_server", str(folder)]
    environment = child_environment(OAUTHLIB_INSECURE_TRANSPORT="1")
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2], env=environment
    )
    assert process.stdout is not None
    try:
        yield OAuthServer(f"http://127.0.0.1:{int(process.stdout.readline())}")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


# --- the process ---------------------------------------------------------------------------------


def _configure(folder: Path) -> None:
    import django
    from django.conf import settings

    settings.configure(
        SECRET_KEY="x" * 50,
        ALLOWED_HOSTS=["*"],
        ROOT_URLCONF=__name__,
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.sqlite3",
                "NAME": folder / "oauth.sqlite3",
                "OPTIONS": {"timeout": 20},
            }
        },
        INSTALLED_APPS=[
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.sessions",
            "oauth2_provider",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {"BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True}
        ],
        OAUTH2_PROVIDER={
            "SCOPES": {"read": "Reading"},
            "PKCE_REQUIRED": lambda client_id: client_id == CLIENT_ID,
            "ROTATE_REFRESH_TOKEN": True,
            "REFRESH_TOKEN_GRACE_PERIOD_SECONDS": 0,
            "REFRESH_TOKEN_REUSE_PROTECTION": True,
        },
        LOGIN_URL="/login",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    )
    django.setup()


def _populate() -> None:
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from oauth2_provider.models import Application

    call_command("migrate", verbosity=0)
    owner = get_user_model().objects.create_user("ana", password="x")
    for client_id, grant in ((CLIENT_ID, "authorization-code"), (SERVICE_ID, "client-credentials")):
        Application.objects.create(
            name=client_id,
            client_id=client_id,
            client_secret=CLIENT_SECRET,
            client_type="confidential",
            authorization_grant_type=grant,
            redirect_uris=REDIRECT,
            skip_authorization=True,
            user=owner,
        )


_asked: list[str] = []


def _urls() -> list[Any]:
    from django.contrib.auth import get_user_model, login
    from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect, JsonResponse
    from django.urls import path
    from oauth2_provider.decorators import protected_resource
    from oauth2_provider.models import AccessToken, RefreshToken
    from oauth2_provider.views import AuthorizationView, TokenView

    class LoggedTokenView(TokenView):  # type: ignore[misc]
        def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            _asked.append(request.POST.get("grant_type", ""))
            answer: HttpResponseBase = super().dispatch(request, *args, **kwargs)
            return answer

    def sign_in(request: HttpRequest) -> HttpResponseBase:
        login(request, get_user_model().objects.get())
        return HttpResponseRedirect(request.GET["next"])

    @protected_resource(scopes=["read"])  # type: ignore[untyped-decorator]
    def guarded(request: HttpRequest) -> HttpResponseBase:
        user = getattr(request, "resource_owner", None)
        return JsonResponse({"name": user.username if user else "service"})

    def me(request: HttpRequest) -> HttpResponseBase:
        answer: HttpResponseBase = guarded(request)
        answer.status_code = 401 if answer.status_code == 403 else answer.status_code
        return answer

    def log(_request: HttpRequest) -> HttpResponseBase:
        found = list(_asked)
        _asked.clear()
        return JsonResponse(found, safe=False)

    def revoke(_request: HttpRequest) -> HttpResponseBase:
        RefreshToken.objects.all().delete()
        AccessToken.objects.all().delete()
        return JsonResponse({})

    return [
        path("o/authorize/", AuthorizationView.as_view()),
        path("o/token/", LoggedTokenView.as_view()),
        path("login", sign_in),
        path("api/me", me),
        path("log", log),
        path("revoke", revoke),
    ]


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    server_bind = HTTPServer.server_bind  # without looking up its own name

    def setup_environ(self) -> None:
        self.server_name = "127.0.0.1"
        super().setup_environ()


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Quiet."""


def _serve(folder: Path) -> None:
    from django.core.wsgi import get_wsgi_application

    with _Server(("127.0.0.1", 0), _Quiet) as server:
        server.setup_environ()
        server.set_app(get_wsgi_application())
        sys.stdout.write(f"{server.server_port}\n")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    sys.modules["tests.connectors.oauth_server"] = sys.modules["__main__"]
    _configure(Path(sys.argv[1]))
    _populate()
    urlpatterns = _urls()
    _serve(Path(sys.argv[1]))
