"""What the tests of native connectors share: vendors on loopback."""

from tests.connectors.vendor import vendor

__all__ = ["vendor"]
