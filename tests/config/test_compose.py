"""The deployment files agree with the settings and with themselves. Nothing is started here."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from config.env import declared_variables

CHECKOUT = Path(__file__).resolve().parents[2]
APP_SERVICES = ("migrate", "web", "worker", "sync", "beat")
# Read by libraries, or by the images of PostgreSQL and by compose itself.
FOREIGN = {
    "DJANGO_SETTINGS_MODULE",
    "OMP_NUM_THREADS",
    "PATH",
    "POSTGRES_DB",
    "POSTGRES_PASSWORD",
    "POSTGRES_USER",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
    "REMAP_SIGTERM",
    "WEB_PORT",
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded = yaml.safe_load((CHECKOUT / "docker-compose.yml").read_text())
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def image() -> str:
    """The final stage of the Dockerfile, its continued lines joined."""
    text = (CHECKOUT / "Dockerfile").read_text().replace("\\\n", " ")
    return text[text.rindex("\nFROM ") :]


def known_names() -> set[str]:
    return FOREIGN | {variable.name for variable in declared_variables()}


def example_names() -> set[str]:
    text = (CHECKOUT / ".env.example").read_text()
    return set(re.findall(r"^([A-Z0-9_]+)=", text, re.MULTILINE))


def test_every_variable_in_compose_is_a_setting(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert set(service.get("environment", {})) <= known_names()


def test_every_variable_of_the_image_is_a_setting(image: str) -> None:
    block = re.search(r"^ENV (.+)$", image, re.MULTILINE)
    assert block
    assert set(re.findall(r"([A-Z_]+)=", block[1])) <= known_names()


def test_the_example_holds_settings_and_everything_that_is_required() -> None:
    assert example_names() <= known_names()
    required = re.findall(r"\$\{([A-Z_]+):\?", (CHECKOUT / "docker-compose.yml").read_text())
    assert {"SECRET_KEY", "POSTGRES_PASSWORD"} <= set(required) <= example_names()


def test_no_secret_has_a_default(compose: dict[str, Any]) -> None:
    text = (CHECKOUT / "docker-compose.yml").read_text()
    assert not re.findall(r"\$\{[A-Z_]*(?:KEY|PASSWORD|SECRET)[A-Z_]*:?-", text)
    assert not re.findall(
        r"^(?:SECRET_KEY|.*PASSWORD)=\S+", (CHECKOUT / ".env.example").read_text(), re.MULTILINE
    )


@pytest.mark.parametrize("name", APP_SERVICES)
def test_the_app_runs_for_production_and_without_privileges(
    compose: dict[str, Any], name: str
) -> None:
    service = compose["services"][name]
    environment = service["environment"]
    assert environment["GROUNDWORK_PROFILE"] == "production"
    assert {"SECRET_KEY", "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS"} <= set(environment)
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert service.get("user", "10001") not in {"0", "root"}


def test_the_image_runs_as_an_ordinary_user(image: str) -> None:
    users = re.findall(r"^USER (\S+)", image, re.MULTILINE)
    assert users == ["10001:10001"]
    assert "HEALTHCHECK" in image


def test_long_running_services_have_health_checks(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        if name != "migrate":
            assert service["healthcheck"]["test"][0] in {"CMD", "CMD-SHELL"}, name


def test_only_web_is_reachable(compose: dict[str, Any]) -> None:
    assert [name for name, service in compose["services"].items() if "ports" in service] == ["web"]


def test_the_app_waits_for_the_schema(compose: dict[str, Any]) -> None:
    for name in ("web", "worker", "sync", "beat"):
        waits = compose["services"][name]["depends_on"]
        assert waits["migrate"] == {"condition": "service_completed_successfully"}


def test_named_volumes_are_declared(compose: dict[str, Any]) -> None:
    used = {
        mount.split(":")[0]
        for service in compose["services"].values()
        for mount in service.get("volumes", [])
    }
    assert used == set(compose["volumes"])


def test_commands_name_modules_that_exist(compose: dict[str, Any], image: str) -> None:
    commands = [" ".join(compose["services"][name].get("command", [])) for name in APP_SERVICES]
    checks = [
        " ".join(s.get("healthcheck", {}).get("test", [])) for s in compose["services"].values()
    ]
    text = " ".join([*commands, *checks, *re.findall(r"CMD \[(.*)\]", image)]).replace('", "', " ")
    modules = set(re.findall(r"-m ([a-z_.]+)|--app ([a-z_.]+)|([a-z_.]+):application", text))
    names = {name for found in modules for name in found if name}
    assert {"daphne", "celery", "config.celery", "config.readiness", "config.asgi"} <= names
    assert all(find_spec(name) for name in names)
