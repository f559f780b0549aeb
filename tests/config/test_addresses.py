"""Where connections other than HTTP may go."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from config.addresses import reachable_address, tls_context, trusted_certificates
from config.errors import RejectedError, TransientError

pytestmark = pytest.mark.allow_hosts(["127.0.0.1"])


@pytest.mark.parametrize(
    "host",
    ["10.1.2.3", "127.0.0.1", "169.254.169.254", "[::1]", "::ffff:10.0.0.1", "/run/database"],
)
def test_private_places_are_refused(host: str) -> None:
    with pytest.raises(RejectedError, match="GROUNDWORK_PRIVATE_HOSTS"):
        reachable_address(host, 5432)


def test_the_operator_opens_places_by_name(settings: Any) -> None:
    settings.GROUNDWORK_PRIVATE_HOSTS = ["db.internal:5432", "/run/database"]
    assert reachable_address("DB.internal", 5432) == "DB.internal"
    assert reachable_address("/run/database", 5432) == "/run/database"
    with pytest.raises(TransientError, match="cannot be found"):
        reachable_address("db.internal.invalid", 5433)


def test_public_addresses_are_what_is_connected_to() -> None:
    assert reachable_address("93.184.216.34", 993) == "93.184.216.34"
    assert reachable_address("[2606:2800:21f::1]", 993) == "2606:2800:21f::1"


@pytest.mark.parametrize("host", ["", "a,b", "x" * 300, "no-such-host.invalid"])
def test_names_that_cannot_be_found_are_tried_later(host: str) -> None:
    with pytest.raises(TransientError, match="cannot be found"):
        reachable_address(host, 993)


def test_certificates_are_checked_by_default() -> None:
    context = tls_context("imap.example.com")
    assert (context.check_hostname, context.verify_mode) == (True, ssl.CERT_REQUIRED)
    assert Path(trusted_certificates()).is_file()
