"""Generated chunks: the same ones every time, and in the tables what the product itself would have stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from django.db import connection
from pgvector import SparseVector

from accounts.access import Actor, operator_actor
from accounts.models import Tenant
from accounts.tenancy import tenant_scope
from benchmarks.speed.corpus import Passage, average_length, generate, read_passages
from benchmarks.speed.filling import Wanted, filled
from benchmarks.speed.loading import document_facts
from benchmarks.speed.material import Material, is_complete, read_material
from knowledge.lexical.analyzer import analyze
from knowledge.lexical.weights import DIMENSIONS, document_weights
from knowledge.models import Chunk, Document
from knowledge.services.statistics import corpus_statistics, document_frequencies
from providers.base import Embedder, Vectors

ENGLISH = (
    "The pump's valve (PPR-9087) leaks. Replace it within 3.5 hours!\nCall the engineers, who are calling back.",
    "Invoices are kept for ten years. Who keeps them? The archive does.",
    "Rain falls on the archive; the roof leaks: replace the roof. It's wet.",
)
CHINESE = (
    "发票保存十年。谁保存发票？档案室保存。",
    "打印机卡纸时,请打开后盖。取出纸张！然后合上后盖。",
    "差旅费应在三十天内报销。逾期不予报销。",
)


class Embedding(Embedder):
    """Vectors out of the lengths of texts."""

    model = "test"
    dimensions = 384
    max_tokens = 512

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        drawn = [np.random.default_rng(len(text)).standard_normal(384) for text in texts]
        return np.stack([vector / np.linalg.norm(vector) for vector in drawn]).astype(np.float32)

    embed_queries = embed_passages


def passages(texts: Sequence[str], language: str) -> list[Passage]:
    return read_passages(texts, language, Embedding())


def material(texts: Sequence[str], language: str) -> Material:
    return Material(language, tuple(texts), tuple(passages(texts, language)), (), digest=language)


def test_the_same_seed_gives_the_same_chunks() -> None:
    real = passages(ENGLISH, "en")
    assert list(generate(real, 30, seed=3)) == list(generate(real, 30, seed=3))
    assert list(generate(real, 30, seed=3)) != list(generate(real, 30, seed=4))


def test_more_chunks_begin_with_the_same_ones() -> None:
    real = passages(ENGLISH, "en")
    assert list(generate(real, 1005, seed=1))[:20] == list(generate(real, 20, seed=1))


def test_chunks_are_six_sentences_of_at_most_two_passages() -> None:
    real = passages(ENGLISH, "en")
    origin = {s.text: n for n, passage in enumerate(real) for s in passage.sentences}
    for row in generate(real, 50, seed=0):
        found = [text for text in origin if text in row.content]
        assert len({origin[text] for text in found}) <= 2
        assert sum(row.content.count(text) for text in found) == 6


def test_passages_of_one_sentence_are_left_out() -> None:
    assert len(passages(["One. Two.", "Only one."], "en")) == 1
    with pytest.raises(ValueError, match="two sentences"):
        passages(["Only one."], "en")


def test_selectivities() -> None:
    facts = document_facts(80_000)
    assert len(facts) == 10_000
    assert sum(one.metadata["half"] == 1 for one in facts) == 5_000
    assert sum(one.metadata["percent"] == 7 for one in facts) == 100
    assert sum(one.metadata["rare"] == 7 for one in facts) == 1
    assert sum(one.principals != ["public"] for one in facts) == 1_000
    assert len({one.principals[0] for one in facts}) == 1_001
    assert sorted(one.place for one in facts) == list(range(10_000))
    # Who is in one of the groups is not decided by the value that a filter asks for.
    of_seven = [one.principals != ["public"] for one in facts if one.metadata["percent"] == 7]
    assert 0 < sum(of_seven) < len(of_seven)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_without_the_sets_the_sample_has_to_do(
    language: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("benchmarks.speed.material.EVALSETS", tmp_path / "absent")
    assert not is_complete()
    read = read_material(language, 12, Embedding())
    assert read.texts
    assert read.passages
    assert all(question.text for question in read.questions)
    assert ("发票" in "".join(read.texts)) is (language == "zh")
    assert read.digest != read_material(language, 2, Embedding()).digest


@pytest.fixture
def actor(tenant: Tenant) -> Actor:
    return operator_actor(tenant.id)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("texts", "language"), [(ENGLISH, "en"), (CHINESE, "zh")])
def test_a_filled_base_is_what_the_product_would_have_stored(
    actor: Actor, texts: Sequence[str], language: str
) -> None:
    real = material(texts, language)
    [base] = filled([Wanted(actor, "generated", 60)], real)
    average = average_length(real.passages)
    frequencies: Counter[str] = Counter()
    length = 0
    with tenant_scope(actor.tenant_id):
        chunks = list(Chunk.objects.filter(knowledge_base_id=base.base.id).order_by("document__external_id", "ordinal"))  # fmt: skip
        for chunk in chunks:
            tokens = analyze(chunk.content, language)
            frequencies.update({token.term for token in tokens})
            length += len(tokens)
            assert chunk.lexical_length == len(tokens)
            stored, expected = chunk.lexical_weights, SparseVector(document_weights(tokens, average), DIMENSIONS)  # fmt: skip
            assert stored.indices() == expected.indices()
            assert stored.values() == pytest.approx(expected.values(), rel=1e-6)
        statistics = corpus_statistics([base.base.id])
        assert (statistics.chunks, statistics.length, statistics.languages) == (60, length, (language,))  # fmt: skip
        assert document_frequencies([base.base.id], list(frequencies)) == frequencies
        documents = list(Document.objects.filter(knowledge_base_id=base.base.id))
    assert sorted(document.chunk_count for document in documents) == [4, *[8] * 7]
    assert {tuple(chunk.principals) for chunk in chunks} == {tuple(document.principals) for document in documents}  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_words_and_phrases_are_found_in_generated_chunks(actor: Actor) -> None:
    [base] = filled([Wanted(actor, "generated", 40)], material(ENGLISH, "en"))
    counted = "SELECT count(*) FROM knowledge_chunk WHERE knowledge_base_id = %s AND "
    with connection.cursor() as cursor:
        cursor.execute(counted + "lexemes @@ %s::tsquery", [base.base.id, "'ten' <-> 'year'"])
        by_phrase = cursor.fetchone()[0]
        cursor.execute(counted + "content LIKE '%%ten years%%'", [base.base.id])
        assert by_phrase == cursor.fetchone()[0] > 0
        cursor.execute(
            "SELECT min(vector_norm(embedding::vector)), max(vector_norm(embedding::vector)) "
            "FROM knowledge_chunk WHERE knowledge_base_id = %s",
            [base.base.id],
        )
        assert cursor.fetchone() == pytest.approx((1.0, 1.0), abs=0.002)


@pytest.mark.django_db(transaction=True)
def test_a_base_is_filled_once_unless_its_content_would_differ(actor: Actor) -> None:
    real = material(ENGLISH, "en")
    [first] = filled([Wanted(actor, "generated", 16)], real)
    assert filled([Wanted(actor, "generated", 16)], real)[0].base.id == first.base.id
    assert first.facts["rows/s"] > 0
    with tenant_scope(actor.tenant_id):
        Chunk.objects.filter(knowledge_base_id=first.base.id, ordinal=0).delete()
    [second] = filled([Wanted(actor, "generated", 16)], real)
    assert second.base.id != first.base.id
    [third] = filled([Wanted(actor, "generated", 16)], material(CHINESE, "zh"))
    assert third.base.id != second.base.id


@pytest.mark.django_db(transaction=True)
def test_indexes_are_the_products_own(actor: Actor) -> None:
    wanted = [Wanted(actor, "without", 16), Wanted(actor, "with", 16, indexed=True)]
    without, indexed = filled(wanted, material(ENGLISH, "en"))
    assert without.base.own_indexes == []
    assert indexed.base.own_indexes == ["embedding", "lexemes"]
    assert {"build_words_s", "build_vectors_s"} <= set(indexed.facts)
