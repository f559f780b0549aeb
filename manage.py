#!/usr/bin/env python
"""Django's command line; keeps the embedded servers up while a command runs."""

from __future__ import annotations

import sys

# Commands that work without a database, and the one that holds the servers itself.
_WITHOUT_SERVERS = {
    "up",
    "makemigrations",
    "collectstatic",
    "compilemessages",
    "makemessages",
    "help",
    "startapp",
}


def main() -> None:
    """Run one command."""
    from config.env import set_default

    set_default("DJANGO_SETTINGS_MODULE", "config.settings")
    from django.conf import settings
    from django.core.management import execute_from_command_line

    from config.embedded.lease import running_servers

    needed = len(sys.argv) > 1 and sys.argv[1] not in _WITHOUT_SERVERS and "--help" not in sys.argv
    with running_servers(
        settings.GROUNDWORK_DATA,
        database=needed and settings.EMBEDDED_DATABASE,
        broker=needed and settings.EMBEDDED_BROKER,
    ):
        execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
