"""Asks the web server of this installation whether it is well: `python -m config.readiness [healthz|readyz]`."""

from __future__ import annotations

import http.client
import sys

from config.env import set_default


def answers(path: str, *, timeout_s: float = 10.0) -> bool:
    """Whether GET `path` on this machine's web server gives 200."""
    from django.conf import settings  # noqa: PLC0415 - the module also runs by itself

    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(  # noqa: S104 - compared, not bound
        settings.GROUNDWORK_BIND, settings.GROUNDWORK_BIND
    )
    name = next(
        (known.lstrip(".") for known in settings.ALLOWED_HOSTS if known != "*"), "localhost"
    )
    connection = http.client.HTTPConnection(host, settings.GROUNDWORK_PORT, timeout=timeout_s)
    try:
        connection.request("GET", path, headers={"Host": name})
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    set_default("DJANGO_SETTINGS_MODULE", "config.settings")
    return 0 if answers(f"/{arguments[0] if arguments else 'readyz'}") else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
