"""Proves at start that every connector loads, so that a mistake in one shows before it is used."""

from __future__ import annotations

from typing import Any

from django.core.checks import CheckMessage, Error, register

from config.errors import AppError, InvalidInputError
from connectors import registry


@register("connectors")
def check_connectors(**_: Any) -> list[CheckMessage]:
    """Every row of the table, and every manifest of the catalog."""
    both = sorted(set(registry.NATIVE) & set(registry.manifest_kinds()))
    found: list[CheckMessage] = [
        Error(f"Connector {kind} is native and has a manifest.", id="connectors.E001")
        for kind in both
    ]
    for kind in registry.kinds():
        fault = _fault(kind)
        if fault:
            found.append(Error(f"Connector {kind}: {fault}", id="connectors.E002"))
    return found


def manifest_faults() -> list[str]:
    """What is wrong with manifests of the catalog; cheap, as no native connector is loaded."""
    return [fault for kind in registry.manifest_kinds() if (fault := _fault(kind))]


def _fault(kind: str) -> str:
    """Why a connector cannot be loaded; empty when it can."""
    try:
        spec = registry.connector_class(kind).spec
    except InvalidInputError as error:
        named = "; ".join(f"{one.field}: {one.message}" for one in error.errors)
        return f"{error.message} {named}".strip()
    except (AppError, ImportError, AttributeError) as error:
        return str(error)
    return "" if spec.kind == kind else f"it calls itself {spec.kind}"
