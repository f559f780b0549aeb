"""Which folders of this machine may be read."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings

from config.errors import InvalidInputError


def allowed_folder(path: str) -> Path:
    """The real place of a folder. Raises `InvalidInputError` unless it lies in one that the operator named."""
    try:
        folder = Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a circle of links, no such home, a null
        raise InvalidInputError("The path of the folder cannot be read.") from error
    allowed = [Path(one).resolve() for one in settings.GROUNDWORK_LOCAL_FOLDERS]
    if not any(folder == one or one in folder.parents for one in allowed):
        raise InvalidInputError(
            f"{folder} may not be connected. The operator names the folders that may be in "
            "GROUNDWORK_LOCAL_FOLDERS."
        )
    return folder
