"""The operator's commands: create-tenant, create-api-key, ingest, search, golden,
re-embed, rotate-keys, connector, doctor."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.access import Action, Actor, operator_actor
from accounts.models import Tenant, User
from accounts.services.api_keys import issue_key
from accounts.services.tenants import found_tenant
from accounts.services.webhooks import rotate_webhook_secrets
from accounts.tenancy import tenant_scope
from config.errors import AppError, InvalidInputError
from connectors.services.connections import rotate_credentials
from connectors.services.manifest_trial import Trial, try_manifest
from knowledge.access import access_knowledge_base
from knowledge.services.reembedding import find_reembedding, start_reembedding
from knowledge.services.reembedding_watch import watch_reembedding
from search.models import GoldenStatus
from search.request import Mode, SearchRequest, Strategy
from search.services.doctor import run_checks
from search.services.folder_ingest import ingest_paths
from search.services.golden_runs import results_of, run_golden_queries
from search.services.search import SearchOutcome, search


class Command(BaseCommand):
    """`manage.py groundwork <verb> …`; each verb has its own --help."""

    help = "Operate Groundwork from the command line."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One sub-command a verb."""
        verbs = parser.add_subparsers(dest="verb", required=True)
        self._add_accounts(verbs)
        ingest = verbs.add_parser(
            "ingest", help="Index files and folders; safe to interrupt and repeat."
        )
        ingest.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        ingest.add_argument(
            "--knowledge-base", required=True, metavar="SLUG", help="Made when missing."
        )
        ingest.add_argument("--tenant", help="Slug; needed only where there are several.")
        find = verbs.add_parser("search", help="Search as the API does.")
        find.add_argument("query")
        find.add_argument("--knowledge-base", action="append", metavar="SLUG")
        find.add_argument("--strategy", choices=[*Strategy], default=Strategy.HYBRID)
        find.add_argument("--mode", choices=[*Mode], default=Mode.INSTANT)
        find.add_argument("--limit", type=int, default=5)
        find.add_argument("--tenant", help="Slug; needed only where there are several.")
        golden = verbs.add_parser(
            "golden", help="Run the golden queries of a base; code 1 unless all are green."
        )
        golden.add_argument("--knowledge-base", required=True, metavar="SLUG")
        golden.add_argument("--tenant", help="Slug; needed only where there are several.")
        change = verbs.add_parser(
            "re-embed", help="Change the embedding model of a base; safe to interrupt and repeat."
        )
        change.add_argument("--knowledge-base", required=True, metavar="SLUG")
        change.add_argument("--model", required=True, metavar="NAME")
        change.add_argument("--tenant", help="Slug; needed only where there are several.")
        verbs.add_parser("rotate-keys", help="Encrypt stored secrets with the first key.")
        self._add_connector(verbs)
        verbs.add_parser("doctor", help="Say what is misconfigured and how to mend it.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the verb; an error of ours ends with its message and code 1."""
        verbs: dict[str, Callable[[dict[str, Any]], None]] = {
            "create-tenant": self._create_tenant,
            "create-api-key": self._create_api_key,
            "ingest": self._ingest,
            "search": self._search,
            "golden": self._golden,
            "re-embed": self._re_embed,
            "rotate-keys": self._rotate_keys,
            "connector": self._connector,
            "doctor": self._doctor,
        }
        try:
            verbs[options["verb"]](options)
        except InvalidInputError as error:
            details = "; ".join(f"{item.field}: {item.message}" for item in error.errors)
            raise CommandError(f"{error.message} {details}".strip()) from error
        except AppError as error:
            raise CommandError(error.message) from error

    def _add_accounts(self, verbs: Any) -> None:
        tenant = verbs.add_parser("create-tenant", help="Found a tenant with its owner.")
        tenant.add_argument("name")
        tenant.add_argument("--owner", required=True, metavar="MAIL", help="Made when new.")
        tenant.add_argument("--slug", default="")
        key = verbs.add_parser("create-api-key", help="Issue a key; it is printed once.")
        key.add_argument("name")
        key.add_argument("--tenant", help="Slug; needed only where there are several.")
        key.add_argument("--scopes", default="search,read", help="Comma-separated.")

    def _add_connector(self, verbs: Any) -> None:
        does = verbs.add_parser("connector", help="Work on connectors.").add_subparsers(
            dest="does", required=True
        )
        check = does.add_parser("check", help="Validate a manifest; with --config, try it.")
        check.add_argument("file", type=Path, metavar="FILE")
        check.add_argument("--config", action="append", default=[], metavar="NAME=VALUE")
        check.add_argument("--credentials-file", type=Path, metavar="JSON")
        check.add_argument("--limit", type=int, default=5, help="How many records to show.")

    def _create_tenant(self, options: dict[str, Any]) -> None:
        email = options["owner"].lower()
        owner = User.objects.filter(email=email).first() or User.objects.create_user(email)
        tenant = found_tenant(name=options["name"], owner=owner, slug=options["slug"])
        self.stdout.write(f"Tenant {tenant.slug} is founded; its owner is {owner.email}.")
        if not owner.has_usable_password():
            self.stdout.write(
                "The owner sets a password through “Forgot your password?” on the login page."
            )

    def _create_api_key(self, options: dict[str, Any]) -> None:
        actor = self._actor(options)
        with tenant_scope(actor.tenant_id):
            _, text = issue_key(
                actor=actor, name=options["name"], scopes=options["scopes"].split(",")
            )
        self.stdout.write(text)

    def _ingest(self, options: dict[str, Any]) -> None:
        report = ingest_paths(self._actor(options), options["knowledge_base"], options["paths"])
        for line in report.failures:
            self.stderr.write(self.style.ERROR(line))
        self.stdout.write(report.summary())

    def _re_embed(self, options: dict[str, Any]) -> None:
        actor = self._actor(options)
        with tenant_scope(actor.tenant_id):
            base = access_knowledge_base(actor, options["knowledge_base"], Action.WRITE)
            job = find_reembedding(base)
            if job is None or not job.is_unfinished or job.to_model != options["model"]:
                job = start_reembedding(actor=actor, base=base, model=options["model"])
        job = watch_reembedding(actor.tenant_id, job.id)
        if job.status != job.Status.SWITCHED:
            raise CommandError(job.error or job.get_status_display())
        self.stdout.write(f"{base.slug} uses {job.to_model}: {job.done} vectors.")

    def _rotate_keys(self, _options: dict[str, Any]) -> None:
        counts = rotate_credentials(), rotate_webhook_secrets()
        done, unreadable = (sum(numbers) for numbers in zip(*counts, strict=True))
        if unreadable:
            raise CommandError(
                f"{done} secrets are encrypted with the first key, but {unreadable} with none of those in "
                "GROUNDWORK_ENCRYPTION_KEYS. Add the old key and try again."
            )
        self.stdout.write(f"{done} secrets are encrypted with the first key.")

    def _search(self, options: dict[str, Any]) -> None:
        request = SearchRequest(
            query=options["query"],
            knowledge_bases=options["knowledge_base"],
            mode=Mode(options["mode"]),
            strategy=Strategy(options["strategy"]),
            limit=options["limit"],
        )
        self._print(search(self._actor(options), request))

    def _print(self, outcome: SearchOutcome) -> None:
        for number, hit in enumerate(outcome.hits, start=1):
            chunk = hit.chunk
            place = [f"page {chunk.page}"] if chunk.page else []
            place += [" › ".join(chunk.heading_path)] if chunk.heading_path else []
            self.stdout.write(
                self.style.SUCCESS(f"[{number}] {chunk.document} ({chunk.knowledge_base.slug})")
            )
            self.stdout.write(f"    {', '.join(place) or f'characters {chunk.start}-{chunk.end}'}")
            self.stdout.write(f"    {' '.join(chunk.content.split())[:300]}")
        for operation, reason in outcome.degraded:
            self.stdout.write(self.style.WARNING(f"{operation}: {reason}"))
        if not outcome.hits:
            self.stdout.write("Nothing found.")
        self.stdout.write(f"{len(outcome.hits)} results in {outcome.timings_ms['total']:.0f} ms")

    def _golden(self, options: dict[str, Any]) -> None:
        actor = self._actor(options)
        with tenant_scope(actor.tenant_id):
            base = access_knowledge_base(actor, options["knowledge_base"], Action.WRITE)
        run = run_golden_queries(actor=actor, base=base)
        styles = {GoldenStatus.GREEN: self.style.SUCCESS, GoldenStatus.RED: self.style.ERROR}
        with tenant_scope(actor.tenant_id):
            for result in results_of(run):
                style = styles.get(GoldenStatus(result.status), self.style.WARNING)
                before = f"{result.previous_rank or '-'} → {result.rank or '-'}"
                self.stdout.write(
                    f"{style(f'{result.status:8}')} {before:>9}  {result.golden_query.query[:80]}"
                )
                change = f"{result.get_change_display()}. " if result.change else ""
                self.stdout.write(f"{'':20}{change}{result.reason}")
        summary = f"{run.green} of {run.total} golden queries green"
        if run.green < run.total:
            raise CommandError(summary)
        self.stdout.write(summary)

    def _connector(self, options: dict[str, Any]) -> None:
        trial = Trial(
            options["file"], options["config"], options["credentials_file"], options["limit"]
        )
        for line in try_manifest(trial):
            self.stdout.write(line)

    def _doctor(self, _options: dict[str, Any]) -> None:
        failed = 0
        for check in run_checks():
            failed += not check.ok
            mark = self.style.SUCCESS("ok  ") if check.ok else self.style.ERROR("MEND")
            self.stdout.write(f"{mark} {check.name}: {check.message}")
        if failed:
            raise CommandError(f"{failed} of the checks need mending.")

    def _actor(self, options: dict[str, Any]) -> Actor:
        tenants = list(Tenant.objects.all()[:2])
        wanted = options.get("tenant")
        if wanted:
            tenants = list(Tenant.objects.filter(slug=wanted))
        if not tenants:
            raise CommandError(
                "There is no such tenant. Found one: groundwork create-tenant NAME --owner MAIL"
            )
        if len(tenants) > 1:
            raise CommandError("There are several tenants: say which with --tenant SLUG.")
        return operator_actor(tenants[0].id)
