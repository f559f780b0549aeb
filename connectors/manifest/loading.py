"""Reading manifests. What is wrong in one is named by its place in the file."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from config.errors import FieldError, InvalidInputError
from connectors.manifest.connector import ManifestConnector, connector_from
from connectors.manifest.schema import Manifest


class _StrictLoader(yaml.SafeLoader):
    """A key that stands twice is a mistake, not a matter of order."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:  # noqa: FBT001, FBT002 - as the base has it
        own = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        names = [self.construct_object(key, deep=True) for key in own]
        for number, name in enumerate(names):
            if name in names[:number]:
                line = own[number].start_mark.line + 1
                raise yaml.YAMLError(f"line {line}: {name} stands there twice")
        return super().construct_mapping(node, deep=deep)


def read_connector(path: Path) -> type[ManifestConnector]:
    """The connector of a manifest. Raises `InvalidInputError` naming each wrong place."""
    return connector_from(read_manifest(path))


def read_manifest(path: Path) -> Manifest:
    """A manifest. Raises `InvalidInputError` naming each wrong place."""
    try:
        data = yaml.load(path.read_text("utf-8"), _StrictLoader)  # noqa: S506 - it is a SafeLoader
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInputError(f"{path.name} cannot be read: {reason}.") from error
    manifest = parse_manifest(data, path.name)
    if manifest.kind != path.stem:
        fault = FieldError("kind", f"It must be {path.stem!r}, as the file is called.")
        raise InvalidInputError(f"{path.name} is no valid manifest.", [fault])
    return manifest


def parse_manifest(data: Any, name: str) -> Manifest:
    """A manifest out of data. Raises `InvalidInputError` naming each wrong place."""
    try:
        return Manifest.model_validate(data)
    except ValidationError as error:
        faults = [
            FieldError(_place(fault["loc"], data), fault["msg"].removeprefix("Value error, ") + ".")
            for fault in error.errors(include_url=False, include_input=False)
        ]
        raise InvalidInputError(f"{name} is no valid manifest.", faults) from None


def _place(loc: tuple[int | str, ...], data: Any) -> str:
    """`streams[issues].mapping.title`: lists by the names of what they hold; without the kind of thing
    that pydantic took something for."""
    place, at = "", data
    for part in loc:
        if isinstance(part, int):
            at = at[part] if isinstance(at, list) and part < len(at) else None
            known = at if isinstance(at, dict) else {}
            place += f"[{known.get('name') or known.get('type') or part}]"
        elif isinstance(at, dict) and part in (at.get("type"), at.get("style")):
            continue
        else:
            at = at.get(part) if isinstance(at, dict) else None
            place += f".{part}"
    return place.lstrip(".") or "the file"
