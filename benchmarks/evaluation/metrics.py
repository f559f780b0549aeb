"""What `make eval` computes of a ranking, as trec_eval does: nDCG with linear gains, Recall, MRR.

A ranking is a list of document ids, best first; judgements are the gains of the relevant documents of
one question. What is not judged counts as not relevant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

METRICS = ("ndcg@10", "recall@10", "recall@100", "mrr@10")
DEPTH = 100  # documents of a ranking that any metric looks at

Judgements = Mapping[str, float]


def measure(ranking: Sequence[str], wanted: Judgements) -> dict[str, float]:
    """Every metric of one question; `wanted` holds at least one document, with gains above 0."""
    gains = [wanted.get(document_id, 0.0) for document_id in ranking[:DEPTH]]
    return {
        "ndcg@10": _dcg(gains[:10]) / _dcg(sorted(wanted.values(), reverse=True)[:10]),
        "recall@10": sum(gain > 0 for gain in gains[:10]) / len(wanted),
        "recall@100": sum(gain > 0 for gain in gains) / len(wanted),
        "mrr@10": next((1 / rank for rank, gain in enumerate(gains[:10], 1) if gain > 0), 0.0),
    }


def mean_over_questions(
    rankings: Mapping[str, Sequence[str]], judgements: Mapping[str, Judgements]
) -> dict[str, float]:
    """Every metric on the mean of the ranked questions."""
    measured = [
        measure(ranking, judgements[question_id]) for question_id, ranking in rankings.items()
    ]
    return {metric: fmean(values[metric] for values in measured) for metric in METRICS}


def _dcg(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
