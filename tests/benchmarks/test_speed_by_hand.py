"""The hand-written search that speed is compared with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

import psycopg
import pytest
from django.db import connection
from pgvector.psycopg import register_vector

from accounts.access import Actor, operator_actor
from accounts.models import Tenant
from benchmarks.speed import by_hand
from benchmarks.speed.bench import request_for
from benchmarks.speed.by_hand import ByHand, mix
from benchmarks.speed.filling import Filled, Wanted, filled
from benchmarks.speed.material import Question
from benchmarks.speed.shapes.filters import by_time, by_value
from providers.registry import embedder_for
from search.services.search import search
from tests.benchmarks.test_speed_corpus import ENGLISH, material

Narrow = Callable[[Sequence[Question], str, Filled], list[Question]]
A, B, C, D = (UUID(int=number) for number in range(1, 5))
CHUNKS = 160


def test_fusion_is_the_mean_of_shares() -> None:
    # Words: 8 → 1, 4 → 0.5, 0 → 0. Vectors: 0.9 → 1, 0.7 → 0.
    mixed = mix([(A, 8.0), (B, 4.0), (C, 0.0)], [(B, 0.9), (D, 0.7)])
    assert mixed == [(B, pytest.approx(0.75)), (A, pytest.approx(0.5)), (C, 0.0), (D, 0.0)]


def test_fusion_of_a_leg_without_a_span_counts_it_whole() -> None:
    assert mix([(A, 3.0)], []) == [(A, 0.5)]
    assert mix([], []) == []


@pytest.fixture
def base(tenant: Tenant) -> Filled:
    actor: Actor = operator_actor(tenant.id)
    return filled([Wanted(actor, "by hand", CHUNKS, indexed=True)], material(ENGLISH, "en"))[0]


@pytest.fixture
def hand(base: Filled) -> ByHand:
    """On Django's own connection, which is to the database of the test."""
    connection.ensure_connection()
    link: psycopg.Connection[tuple[object, ...]] = connection.connection
    register_vector(link)
    return ByHand(link, base, embedder_for(base.base.embedding_model), "en", plain=True)


@pytest.mark.django_db(transaction=True)
def test_scans_and_indexes_find_the_same(hand: ByHand) -> None:
    question = Question("Who keeps the invoices?")
    vector = hand.embedder.embed_queries([question.text])[0]
    by_index = replace(hand, plain=False)
    budgeted = replace(by_index, budgeted=True)
    hand.link.execute("SET enable_seqscan = off")
    words = hand.words(question)
    assert [score for _, score in words] == sorted((s for _, s in words), reverse=True)
    assert {score for _, score in words} == {score for _, score in by_index.words(question)}
    assert {score for _, score in words} == {score for _, score in budgeted.words(question)}
    exact = hand.exactly_nearest(question, vector, 10)
    assert {key for key, _ in hand.nearest(question, vector, 10)} == set(exact)
    assert set(exact) <= {key for key, _ in by_index.nearest(question, vector, 100)}


@pytest.mark.django_db(transaction=True)
def test_ten_passages_come_with_their_documents(hand: ByHand) -> None:
    found = hand.search(Question("Who keeps the invoices?"))
    assert len(found) == 10
    assert "invoices" in found[0][1].lower()
    assert found[0][5].startswith("Document ")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("narrow", [by_value, by_time])
@pytest.mark.parametrize("name", ["half", "percent", "rare"])
def test_a_filter_by_hand_is_the_filter_of_the_api(
    hand: ByHand, base: Filled, narrow: Narrow, name: str
) -> None:
    questions = narrow([Question("the roof of the archive")] * 4, name, base)
    assert len({question.parameters for question in questions}) > 1
    for question in questions:
        vector = hand.embedder.embed_queries([question.text])[0]
        admitted = set(hand.exactly_nearest(question, vector, CHUNKS))
        outcome = search(base.actor, replace(request_for(question, base.base.slug), limit=100))
        found = {hit.chunk.id for hit in outcome.hits}
        assert found <= admitted
        assert len(found) == min(100, len(admitted))
        assert narrow is by_time or admitted


@pytest.mark.django_db(transaction=True)
def test_groups_see_more(hand: ByHand, base: Filled) -> None:
    public = Question("the roof of the archive")
    everyone = replace(public, principals=("public", *(f"group:{n}" for n in range(1000))))
    vector = hand.embedder.embed_queries([public.text])[0]
    assert len(hand.exactly_nearest(everyone, vector, CHUNKS)) == CHUNKS
    seen = len(hand.exactly_nearest(public, vector, CHUNKS))
    assert 0 < seen < CHUNKS
    assert request_for(everyone, "x").as_principals == list(everyone.principals[1:])


@pytest.mark.django_db(transaction=True)
def test_large_bases_are_asked_by_index(base: Filled, hand: ByHand) -> None:
    large = replace(base, chunks=by_hand.PLAIN_BELOW)
    for filled_base, plain in ((base, True), (large, False)):
        assert ByHand.as_usual(hand.link, filled_base, hand.embedder, "en").plain is plain
