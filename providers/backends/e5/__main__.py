"""`python -m providers.backends.e5 build FOLDER` builds the model cache, for instance in an image."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from config.errors import AppError
from providers.backends.e5.build import build_cache


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m providers.backends.e5")
    commands = parser.add_subparsers(required=True)
    build = commands.add_parser(
        "build", help="build the cache for this machine, unless it is there"
    )
    build.add_argument("folder", type=Path, help="folder of the model caches")
    options = parser.parse_args(arguments)
    try:
        sys.stdout.write(f"{build_cache(options.folder)}\n")
    except AppError as error:
        sys.stderr.write(f"{error.message}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
