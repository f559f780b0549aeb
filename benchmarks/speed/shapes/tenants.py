"""Many tenants, each with a small base: every question goes to another tenant than the one before."""

from __future__ import annotations

from accounts.access import operator_actor
from accounts.models import Tenant, User
from accounts.services.tenants import found_tenant
from benchmarks.progress import say
from benchmarks.speed.bench import Bench
from benchmarks.speed.comparison import Case, check_answers, compare
from benchmarks.speed.filling import Wanted, filled

SHAPE = "tenants"
CHUNKS = 100  # of each tenant
_OWNER = "speed-tenants@example.com"


def measure(bench: Bench) -> None:
    """The same questions to all of them in turn."""
    count = bench.options.tenants
    say(f"{count:,} tenants of {CHUNKS} chunks …")
    wanted = [
        Wanted(operator_actor(tenant.id), f"small {CHUNKS}", CHUNKS) for tenant in _tenants(count)
    ]
    bases = filled(wanted, bench.material("en"))
    case = Case(SHAPE, count * CHUNKS, "en", bases, bench.questions())
    compare(bench, case)
    check_answers(bench, case)


def _tenants(count: int) -> list[Tenant]:
    names = [f"speed-{number:04}" for number in range(count)]
    known = {tenant.slug: tenant for tenant in Tenant.objects.filter(slug__in=names)}
    owner = User.objects.filter(email=_OWNER).first() or User.objects.create_user(_OWNER)
    for name in names:
        if name not in known:
            known[name] = found_tenant(name=name, owner=owner, slug=name)
    return [known[name] for name in names]
