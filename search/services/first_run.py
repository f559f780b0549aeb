"""The first start of an installation: an operator, a tenant, a key and a knowledge base to try."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import asdict, dataclass
from pathlib import Path

from allauth.account.models import EmailAddress
from django.conf import settings
from django.db import transaction

from accounts.access import Actor, operator_actor
from accounts.models import Scope, Tenant, User
from accounts.services.api_keys import find_valid_key, issue_key
from accounts.services.tenants import found_tenant
from accounts.tenancy import tenant_scope
from knowledge.services.documents import NewDocument, add_document
from knowledge.services.knowledge_bases import create_knowledge_base

_EMAIL = "owner@example.com"
_TENANT = "Demo"
_SAMPLES = ("*.md", "*.txt", "*.csv")


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What the first start made; the content of `first-run.json`."""

    url: str
    email: str
    password: str
    tenant: str
    api_key: str
    knowledge_base: str


def ensure_first_run() -> FirstRun | None:
    """Set up an empty installation and return what was made; None if there is nothing to do.

    The file is written beside its place before the database commits and moved into it afterwards, so
    a crash between the two is finished by the next start and no password is ever lost.
    """
    file = settings.GROUNDWORK_DATA.first_run
    draft = file.with_name(f"{file.name}.new")
    made = _read_draft(draft) if Tenant.objects.exists() else _set_up(draft)
    if made is not None:
        draft.replace(file)
    return made


def _set_up(draft: Path) -> FirstRun:
    password = secrets.token_urlsafe(12)
    with transaction.atomic():
        owner = User.objects.create_superuser(_EMAIL, password)
        EmailAddress.objects.create(user=owner, email=_EMAIL, verified=True, primary=True)
        tenant = found_tenant(name=_TENANT, owner=owner)
        with tenant_scope(tenant.id):
            actor = operator_actor(tenant.id)
            _, key = issue_key(actor=actor, name="First key", scopes=list(Scope.values))
            slug = _create_sample_base(actor)
        made = FirstRun(settings.GROUNDWORK_URL, _EMAIL, password, tenant.slug, key, slug)
        _write_private(draft, json.dumps(asdict(made), indent=2, ensure_ascii=False) + "\n")
    return made


def _create_sample_base(actor: Actor) -> str:
    base = create_knowledge_base(
        actor=actor,
        name="Sample",
        description="Handbook, price list, error codes and FAQ of Marlow Press, an invented printer maker. 英文与中文。",
    )
    for path in sample_files():
        with path.open("rb") as stream:
            add_document(actor=actor, base=base, stream=stream, new=NewDocument(filename=path.name))
    return base.slug


def sample_files() -> list[Path]:
    """The documents of the sample base."""
    folder = settings.BASE_DIR / "sample"
    return sorted(path for pattern in _SAMPLES for path in folder.glob(pattern))


def _read_draft(draft: Path) -> FirstRun | None:
    """What a start that died after its commit has left, if its key is really in the database."""
    try:
        made = FirstRun(**json.loads(draft.read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
    return made if find_valid_key(made.api_key) else None


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
