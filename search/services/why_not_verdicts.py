"""From what real searches found to one verdict: where on its way a searchable passage was lost."""

from __future__ import annotations

from dataclasses import dataclass

from knowledge.models import Chunk
from search.outcome import Hit, SearchOutcome
from search.request import MAX_WINDOW, Mode, SearchRequest
from search.retrieval.ranks import Standing
from search.services.passage_checks import PassageCheck


@dataclass(frozen=True, slots=True)
class Verdict:
    """One code and one sentence."""

    code: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Findings:
    """The search as asked for, the results from the first to the last asked for, and where the passage
    stands: `rank` in its answer, `fused_rank` in the
    fused list, `final_rank` after recency, grouping and the like (None also where none was asked for)."""

    request: SearchRequest
    asked: SearchOutcome
    hits: list[Hit]
    chunk: Chunk
    rank: int | None
    fused_rank: int | None
    final_rank: int | None
    legs: dict[str, Standing]
    words: str

    @property
    def end(self) -> int:
        """The last rank that was asked for."""
        return self.request.offset + self.request.limit


def decide(found: Findings) -> tuple[Verdict, list[PassageCheck]]:
    """The verdict, and the checks of legs, fusion and limit behind it."""
    checks = [_check_leg(name, leg, found.request.depth) for name, leg in found.legs.items()]
    if found.fused_rank is not None:
        detail = f"Ranked {found.fused_rank} when the legs were put together."
        lost = "" if found.fused_rank <= found.end else "lost_in_fusion"
        checks.append(PassageCheck("fusion", detail, lost))
    if found.rank is not None:
        return Verdict("returned", f"It is result {found.rank}."), checks
    if found.fused_rank is None:
        return _not_a_candidate(found), checks
    verdict = _taken_out(found) or _outranked(found)
    checks.append(PassageCheck("window", verdict.explanation, verdict.code))
    return verdict, checks


def _check_leg(name: str, leg: Standing, depth: int) -> PassageCheck:
    detail = f"Ranked {leg.rank} in the leg {name} with the score {leg.score:.4f}"
    if leg.needed is None:
        detail += ", which takes all that match."
    else:
        detail += f"; the first {depth} are taken, down to the score {leg.needed:.4f}."
    return PassageCheck(name, detail, "" if leg.rank <= depth else "ranked_too_low")


def _not_a_candidate(found: Findings) -> Verdict:
    if found.asked.degraded:
        told = "; ".join(f"{name}: {reason}" for name, reason in found.asked.degraded)
        return Verdict("incomplete", f"The search was not whole: {told}")
    if found.request.mode is Mode.FILENAME:
        named = "Neither title nor file name holds the words or resembles them"
        return Verdict("not_matched", f"{named}, or the passage is not the first of its document.")
    if not found.legs:
        return Verdict("not_matched", f"Nothing in it matches. {found.words}".strip())
    leg_name, leg = min(found.legs.items(), key=lambda pair: pair[1].rank)
    if leg.rank <= found.request.depth:
        text = f"It ranks {leg.rank} in the leg {leg_name}, but the index of this large base passed it over."
        return Verdict("passed_over", text)
    needed = f" (score {leg.score:.4f}, needed {leg.needed:.4f})" if leg.needed is not None else ""
    best = f"Its best rank is {leg.rank} in the leg {leg_name}{needed}"
    text = f"{best}; the first {found.request.depth} of a leg are taken. {found.words}"
    return Verdict("ranked_too_low", text.strip())


def _taken_out(found: Findings) -> Verdict | None:
    """Collapsed, or another passage stands for its document."""
    for rank, hit in enumerate(found.hits, start=1):
        if found.chunk.id in hit.duplicates:
            text = f"It says the same as result {rank} and was collapsed into it."
            return Verdict("duplicate", text)
        if found.request.group_by_document and hit.chunk.document_id == found.chunk.document_id:
            text = f"Result {rank}, a better passage, stands for its document."
            return Verdict("grouped", text)
    return None


def _outranked(found: Findings) -> Verdict:
    rank, end = found.fused_rank or MAX_WINDOW, found.end
    final = found.final_rank or rank
    if final <= found.request.offset:
        return Verdict("before_offset", f"It ranks {final}, before the offset asked for.")
    if rank <= end:
        moved = "recency" if found.request.recency else "reranking"
        text = f"It ranked {rank} by its words and meaning; {moved} moved it to {final}."
        return Verdict(moved, f"{text} {_asked_for(found)}")
    best = min(found.legs.items(), key=lambda pair: pair[1].rank, default=None)
    if best and best[1].rank <= end:
        text = f"It ranks {best[1].rank} in the leg {best[0]}, but {rank} when the legs are put together."
        return Verdict("lost_in_fusion", f"{text}{_boosts(found)} {_asked_for(found)}")
    return Verdict("cut_by_limit", f"It ranks {final}.{_boosts(found)} {_asked_for(found)}")


def _boosts(found: Findings) -> str:
    if all(hit.boost == 1 for hit in found.hits) and found.chunk.document.boost == 1:
        return ""
    return " Boosts that an editor gave to documents or sources take part in that."


def _asked_for(found: Findings) -> str:
    return f"The results {found.request.offset + 1} to {found.end} were asked for."
