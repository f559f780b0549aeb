"""Passages: nothing lost, nothing too long, everything where it says it is."""

from __future__ import annotations

import io
import random
import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest

from config.errors import InvalidInputError
from knowledge.extraction.base import Coverage, Extracted, Limits, Source
from knowledge.extraction.builder import TextBuilder
from knowledge.extraction.markdown import MarkdownExtractor
from knowledge.services.chunking import ChunkDraft, ChunkingOptions, chunk_text
from providers.base import Tokenizer
from providers.registry import embedder_for


class CharacterTokenizer(Tokenizer):
    """Counts characters, so that limits can be checked by eye; remembers how much it counted."""

    def __init__(self, max_tokens: int = 500) -> None:
        self.max_tokens = max_tokens
        self.counted = 0

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        self.counted += sum(map(len, texts))
        return [len(text) for text in texts]


class ByteTokenizer(Tokenizer):
    """The worst there is: one token for each byte."""

    max_tokens = 500

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.encode()) for text in texts]


def built(fill: Callable[[TextBuilder], object]) -> Extracted:
    builder = TextBuilder(Limits())
    fill(builder)
    return builder.finish(Coverage("parts", 1, 1))


def from_markdown(text: str) -> Extracted:
    data = text.encode()
    return MarkdownExtractor().extract(Source(io.BytesIO(data), "a.md", len(data)), Limits())


def chunks_of(
    extracted: Extracted,
    *,
    size: int = 100,
    overlap: int = 0,
    separator: str = "",
    tokenizer: Tokenizer | None = None,
    context: str = "",
) -> list[ChunkDraft]:
    """The chunks, after checking what must hold for all."""
    tokenizer = tokenizer or CharacterTokenizer()
    options = ChunkingOptions(size, overlap, separator)
    drafts = chunk_text(extracted, options, tokenizer, context)
    assert [draft.ordinal for draft in drafts] == list(range(len(drafts)))
    counts = tokenizer.count_tokens([draft.content for draft in drafts])
    assert [draft.token_count for draft in drafts] == counts
    assert max(counts, default=0) <= size
    for draft in drafts:
        body = extracted.text[draft.start : draft.end]
        assert draft.content == body or draft.content.endswith("\n" + body)
        assert body.strip()
    if not separator:
        assert uncovered(extracted.text, drafts) == ""
    return drafts


def uncovered(text: str, drafts: Sequence[ChunkDraft]) -> str:
    place, missing = 0, ""
    for draft in drafts:
        missing += text[place : draft.start].strip()
        place = max(place, draft.end)
    return missing + text[place:].strip()


ENGLISH = (
    "The badge opens the gate. Dr. J. Smith signs for it, e.g. on Mondays! Is it lost? Tell us. "
)
CHINESE = "差旅费报销期限为三十天。逾期须经主管批准；发票应当真实、合法、完整！门禁卡每年更换吗？"


def mixed(builder: TextBuilder) -> None:
    builder.paragraph("Before any heading.")
    builder.heading("Handbook", 1)
    builder.paragraph(ENGLISH * 6)
    builder.heading("报销", 2)
    builder.paragraph(CHINESE * 9)
    for number in range(30):
        builder.list_item(f"entry {number} with some words", depth=number % 3)
    builder.code("\n".join(f"    line_{number} = {number}" for number in range(60)))
    builder.table_header(["Code", "Name"])
    for number in range(40):
        builder.table_row([f"SB-{number}", "word " * (number % 30)])
    builder.paragraph("x" * 700)
    builder.paragraph("字" * 700)
    builder.paragraph("\U0001f469\u200d\U0001f4bb" * 200)


@pytest.mark.parametrize("size", [32, 50, 100, 256, 499])
@pytest.mark.parametrize("overlap", [0, 15])
@pytest.mark.parametrize("tokenizer", [CharacterTokenizer(), ByteTokenizer()])
def test_nothing_is_lost_or_too_long(size: int, overlap: int, tokenizer: Tokenizer) -> None:
    assert len(chunks_of(built(mixed), size=size, overlap=overlap, tokenizer=tokenizer)) > 10


def add_any(builder: TextBuilder, text: str, chance: random.Random) -> None:
    adders: list[Callable[[], object]] = [
        lambda: builder.heading(text, chance.randrange(1, 7)),
        lambda: builder.paragraph(text, page=chance.choice([None, 1, 2])),
        lambda: builder.list_item(text),
        lambda: builder.code(text),
        lambda: builder.table_header([text[:20], "b"]),
        lambda: builder.table_row([text, "c"]),
    ]
    chance.choice(adders)()


@pytest.mark.parametrize("seed", range(12))
def test_nothing_is_lost_of_random_text(seed: int) -> None:
    chance = random.Random(seed)
    alphabet = "ab C.!?。；，、报销字 \n\n\t,:|#-'é\U0001f600"

    def fill(builder: TextBuilder) -> None:
        for _ in range(40):
            add_any(builder, "".join(chance.choices(alphabet, k=chance.randrange(1, 300))), chance)

    size = chance.choice([32, 60, 200])
    chunks_of(built(fill), size=size, overlap=chance.randrange(0, size // 2))


def test_empty_text_has_no_chunks() -> None:
    assert chunks_of(built(lambda builder: None)) == []


def test_short_text_is_one_chunk() -> None:
    (chunk,) = chunks_of(built(lambda builder: builder.paragraph("Row A is for guests.", line=3)))
    assert chunk.content == "Row A is for guests."
    assert (chunk.line, chunk.page, chunk.heading_path) == (3, None, ())


def test_long_paragraph_is_cut_between_sentences() -> None:
    drafts = chunks_of(built(lambda builder: builder.paragraph(ENGLISH * 5)), size=120)
    assert all(draft.content[-1] in ".!?" for draft in drafts)
    assert not any(draft.content.endswith(("Dr.", "J.", "e.g.")) for draft in drafts)


def test_chinese_is_cut_between_sentences() -> None:
    drafts = chunks_of(built(lambda builder: builder.paragraph(CHINESE * 5)), size=60)
    assert all(draft.content[-1] in "。；！？" for draft in drafts)


def test_sentence_beyond_the_limit_is_cut_at_clauses_then_words_then_characters() -> None:
    clauses = "in the morning by the north gate, " * 8
    drafts = chunks_of(built(lambda builder: builder.paragraph(clauses)))
    assert all(draft.content.endswith("gate,") for draft in drafts)
    drafts = chunks_of(built(lambda builder: builder.paragraph("morning " * 60)))
    assert all(draft.content.endswith("morning") for draft in drafts)
    drafts = chunks_of(built(lambda builder: builder.paragraph("m" * 450)))
    assert len(drafts) <= 6


def test_passages_are_of_like_length() -> None:
    drafts = chunks_of(built(lambda builder: builder.paragraph("A short note here. " * 11)))
    assert [draft.token_count for draft in drafts] == [75, 75, 56]


def test_overlap_repeats_whole_sentences() -> None:
    text = built(lambda builder: builder.paragraph("One is here. Two is here. Six is here. " * 4))
    drafts = chunks_of(text, size=60, overlap=20)
    assert len(drafts) > 2
    for before, after in pairwise(drafts):
        shared = text.text[after.start : before.end]
        assert shared in {"One is here.", "Two is here.", "Six is here."}


def test_overlap_of_a_long_sentence_is_whole_words() -> None:
    text = built(lambda builder: builder.paragraph("alpha beta gamma delta " * 20))
    drafts = chunks_of(text, size=100, overlap=20)
    for before, after in pairwise(drafts):
        assert 0 < before.end - after.start <= 20
        assert after.content.split()[0] in {"alpha", "beta", "gamma", "delta"}


def test_overlap_crosses_no_heading() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.paragraph("Before the heading. It ends.")
        builder.heading("Next", 1)
        builder.paragraph("After the heading.")

    drafts = chunks_of(built(fill), overlap=40)
    assert [draft.content for draft in drafts][1] == "Next\n\nAfter the heading."


def test_heading_stays_with_what_follows() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.heading("Rules", 1)
        builder.heading("Gate", 2)
        builder.paragraph("w" * 20 + " " + "word " * 18)

    drafts = chunks_of(built(fill), size=100)
    assert drafts[0].content.startswith("Rules\n\nGate\n\nwwww")
    assert {draft.heading_path for draft in drafts} == {("Rules", "Gate")}


def test_heading_path_follows_the_levels() -> None:
    text = from_markdown("# A\n\n### C\n\none\n\n## B\n\ntwo\n\n# D\n\nthree")
    assert [draft.heading_path for draft in chunks_of(text)] == [("A", "C"), ("A", "B"), ("D",)]


def test_context_and_headings_count_towards_the_limit() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.heading("A heading of some length", 1)
        builder.paragraph(ENGLISH * 10)

    tokenizer = CharacterTokenizer(200)
    context = "A title of thirty characters.."
    for draft in chunks_of(built(fill), size=200, tokenizer=tokenizer, context=context):
        embedded = " › ".join([context, *draft.heading_path]) + "\n" + draft.content
        assert len(embedded) <= tokenizer.max_tokens


def test_chunk_crosses_no_page_and_no_sheet() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.paragraph("On the first page.", page=1)
        builder.paragraph("On the second page.", page=2)
        builder.heading("Stock", 1)
        builder.paragraph("In the sheet.", sheet="Stock")
        builder.paragraph("In another.", sheet="Sold")

    drafts = chunks_of(built(fill), overlap=10)
    assert [(draft.page, draft.sheet) for draft in drafts] == [
        (1, None),
        (2, None),
        (None, "Stock"),
        (None, "Sold"),
    ]


def test_line_is_counted_within_a_block() -> None:
    code = "\n".join(f"statement_{number}()" for number in range(40))
    drafts = chunks_of(built(lambda builder: builder.code(code, line=10)))
    for draft in drafts:
        assert draft.content.startswith(f"statement_{(draft.line or 0) - 10}()")


def test_every_chunk_of_a_table_has_its_header() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.table_header(["Code", "Lamp", "Limit (C)"], sheet="S", row=1)
        for number in range(120):
            builder.table_row(
                [f"LP-{number}", "Keep dry? Yes.", str(number)], sheet="S", row=number + 2
            )

    text = built(fill)
    drafts = chunks_of(text, size=300, overlap=50)
    assert all("| Code | Lamp | Limit (C) |" in draft.content for draft in drafts)
    assert sum(draft.content.count("Keep dry? Yes.") for draft in drafts) == 120
    for draft in drafts[1:]:
        body = text.text[draft.start : draft.end]
        assert draft.content == f"{text.blocks[1].table_header}\n{body}"
        assert draft.content.split("\n")[2].startswith(f"| LP-{(draft.row or 0) - 2} |")


def test_row_beyond_the_limit_is_cut_and_keeps_the_header() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.table_header(["A", "B"])
        builder.table_row(["word " * 50, "字" * 90])

    drafts = chunks_of(built(fill))
    assert all(draft.content.startswith("| A | B |") for draft in drafts)


def test_header_beyond_half_the_limit_is_not_repeated() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.table_header(["A long name of a column", "Another long name of a column"])
        for number in range(20):
            builder.table_row([str(number), "value"])

    drafts = chunks_of(built(fill))
    assert drafts[-1].content.startswith("| ")
    assert "A long name" not in drafts[-1].content


BREAKS = """## Keys

Keep the key.

## Guests

Guests wait.

---

## Cars

Row B.

### Bikes

The shed.

---

## Fire

Only outside.
"""


def test_separator_on_its_own_line_makes_the_parts() -> None:
    drafts = chunks_of(
        from_markdown(BREAKS), size=2_000, separator="\n---\n", tokenizer=CharacterTokenizer(4_000)
    )
    assert len(drafts) == 3
    assert all(word in drafts[0].content for word in ("Keys", "Keep", "Guests wait."))
    assert not any("---" in draft.content for draft in drafts)
    assert [draft.heading_path for draft in drafts] == [(), ("Cars",), ("Fire",)]


def test_separator_within_a_line_cuts_there() -> None:
    text = built(lambda builder: builder.paragraph("one§§two § three\n§\nfour", line=1))
    drafts = chunks_of(text, separator="§")
    assert [draft.content for draft in drafts] == ["one", "two", "three", "four"]
    assert [draft.line for draft in drafts] == [1, 1, 1, 3]


def test_separator_of_blank_lines_cuts_between_blocks() -> None:
    def fill(builder: TextBuilder) -> None:
        builder.paragraph("one\ntwo")
        builder.paragraph("three\n\nfour")

    drafts = chunks_of(built(fill), separator="\n\n")
    assert [draft.content for draft in drafts] == ["one\ntwo", "three", "four"]


def test_part_that_does_not_fit_is_cut_further() -> None:
    text = from_markdown(f"# A\n\n{ENGLISH * 3}\n\n# B\n\n{ENGLISH}\n\n---\n\nEnd.")
    drafts = chunks_of(text, size=120, separator="\n---\n")
    assert len(drafts) > 4
    assert drafts[-1].content == "End."
    assert {draft.heading_path for draft in drafts} == {("A",), ("B",)}


@pytest.mark.parametrize("separator", ["---", "absent", "\n", "   ", ".*", "[", "\\", "a\nb"])
def test_any_separator_is_taken_literally(separator: str) -> None:
    drafts = chunks_of(from_markdown(BREAKS), separator=separator)
    assert "Keep the key." in "".join(draft.content for draft in drafts)


def test_number_signs_in_fenced_code_are_no_headings() -> None:
    text = from_markdown(
        "# Build\n\nHello.\n\n## Unix\n\n```sh\n# get it\nmake thing\n```\n\n## Windows\n\n~~~\n# no\nrun thing\n~~~\n"
    )
    paths = {draft.content: draft.heading_path for draft in chunks_of(text)}
    assert [path for content, path in paths.items() if "make thing" in content] == [
        ("Build", "Unix")
    ]
    assert [path for content, path in paths.items() if "run thing" in content] == [
        ("Build", "Windows")
    ]


def test_invisible_marks_hide_no_heading() -> None:
    text = from_markdown("\ufeff# Start\n\nAt noon.\n\n\u200b## List\n\nBring a lamp.\n")
    assert [draft.heading_path for draft in chunks_of(text)] == [("Start",), ("Start", "List")]


def test_text_before_the_first_heading_is_kept() -> None:
    text = from_markdown("Valid from 3 May.\n\n# Light\n\nTwo lamps.\n")
    drafts = chunks_of(text)
    assert drafts[0].content == "Valid from 3 May."
    assert drafts[0].heading_path == ()


@pytest.mark.parametrize(("size", "overlap"), [(50, 50), (50, 60), (50, -1), (0, 0), (50, 25)])
def test_impossible_sizes_are_refused_naming_both_settings(size: int, overlap: int) -> None:
    with pytest.raises(InvalidInputError) as caught:
        ChunkingOptions(size, overlap)
    fields = {error.field for error in caught.value.errors}
    assert fields == {"settings.chunk_size", "settings.chunk_overlap"}
    assert "size" in caught.value.message
    assert "overlap" in caught.value.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "fill",
    [
        lambda builder: builder.paragraph("x" * 2_000_000),
        lambda builder: builder.paragraph("字" * 1_000_000),
        lambda builder: builder.paragraph("word " * 400_000),
        lambda builder: builder.code("value = 1\n" * 200_000, line=1),
        lambda builder: [builder.heading(f"H{n}", 1 + n % 3) for n in range(20_000)],
    ],
)
def test_time_grows_with_the_text_only(fill: Callable[[TextBuilder], object]) -> None:
    text = built(fill)
    tokenizer = CharacterTokenizer()
    started = time.monotonic()
    chunk_text(text, ChunkingOptions(256, 32), tokenizer, "title")
    assert time.monotonic() - started < 30
    assert tokenizer.counted < 8 * len(text.text)


@pytest.mark.slow
@pytest.mark.parametrize("size", [64, 256])
def test_limits_hold_under_the_real_tokenizer(size: int) -> None:
    tokenizer = embedder_for("multilingual-e5-small")
    drafts = chunks_of(built(mixed), size=size, overlap=16, tokenizer=tokenizer)
    assert len(drafts) > 5
