"""A rate limit for each connection that all workers keep together."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

from django.conf import settings
from limits import parse
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter

from connectors.models import Connection

_LONGEST_LOOK_S = 1.0


def admission(
    connection: Connection, rate_limit: str, pause: Callable[[float], None]
) -> Callable[[], None]:
    """Waits for a place within the limit (`50/minute`); without a limit there is always one."""
    if not rate_limit:
        return lambda: None
    limit = parse(rate_limit)
    name = f"connection:{connection.id}"

    def admit() -> None:
        while not _limiter().hit(limit, name):
            free_at = _limiter().get_window_stats(limit, name).reset_time
            pause(min(max(free_at - time.time(), 0.05), _LONGEST_LOOK_S))

    return admit


@cache
def _limiter() -> MovingWindowRateLimiter:
    # `limits` spells a socket's address redis+unix://.
    url = settings.REDIS_URL.replace("unix://", "redis+unix://", 1)
    return MovingWindowRateLimiter(RedisStorage(url))
