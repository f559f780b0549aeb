"""How the golden queries of bases stand: for the list, the dashboard and the page of a base."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse

from accounts.access import Action, Actor
from knowledge.access import visible_knowledge_bases
from knowledge.models import KnowledgeBase
from search.models import GoldenResult, GoldenRun, GoldenStatus
from search.services.golden import Tally, golden_tallies, visible_golden_runs
from search.services.golden_runs import results_of

STATUS_KINDS: dict[str, str] = {
    GoldenStatus.GREEN: "ok",
    GoldenStatus.RED: "bad",
    GoldenStatus.UNKNOWN: "quiet",
}
CHANGE_KINDS: dict[str, str] = {
    GoldenResult.Change.TURNED_RED: "bad",
    GoldenResult.Change.TURNED_GREEN: "ok",
    GoldenResult.Change.MOVED: "busy",
}


@dataclass(frozen=True, slots=True)
class GoldenState:
    """One base: its tally, its newest run and what that run found changed."""

    base: KnowledgeBase
    tally: Tally
    last_run: GoldenRun | None
    changed: list[GoldenResult]

    @property
    def kind(self) -> str:
        """The colour of the badge."""
        if self.tally.red:
            return "bad"
        return "ok" if self.tally.green == self.tally.total else "quiet"

    @property
    def url(self) -> str:
        """The golden queries of the base."""
        return f"{reverse('admin:search_goldenquery_changelist')}?knowledge_base__id__exact={self.base.id}"

    @property
    def runs_url(self) -> str:
        """The runs of the base."""
        return f"{reverse('admin:search_goldenrun_changelist')}?knowledge_base__id__exact={self.base.id}"

    @property
    def may_run(self) -> bool:
        """Whether something would be found."""
        return self.base.status == KnowledgeBase.Status.ACTIVE


def golden_states(actor: Actor) -> list[GoldenState]:
    """Every base with enabled golden queries that the actor keeps, red ones first."""
    if not actor.may(Action.WRITE):
        return []
    tallies = golden_tallies()
    bases = visible_knowledge_bases(actor).filter(id__in=tallies).order_by("name")
    states = [_state(actor, base, tallies[base.id]) for base in bases]
    return sorted(states, key=lambda state: -state.tally.red)


def golden_state(actor: Actor, base: KnowledgeBase) -> GoldenState | None:
    """The same of one base; None where it has none or the actor does not keep it."""
    return next((state for state in golden_states(actor) if state.base.id == base.id), None)


def _state(actor: Actor, base: KnowledgeBase, tally: Tally) -> GoldenState:
    runs = visible_golden_runs(actor).filter(knowledge_base=base, finished_at__isnull=False)
    last = runs.order_by("-started_at", "-id").first()
    return GoldenState(base, tally, last, changed_in(last) if last else [])


def changed_in(run: GoldenRun) -> list[GoldenResult]:
    """What turned red or green or moved in a run."""
    return [result for result in results_of(run) if result.change]
