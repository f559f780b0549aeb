"""Source code → pieces with line numbers."""

from __future__ import annotations

from knowledge.extraction.base import BlockKind, Coverage
from tests.extraction.reading import read, texts


def test_pieces_begin_where_definitions_do() -> None:
    extracted = read(
        "code",
        "import os\n\n\ndef first():\n    a = 1\n\n    return a\n\n\ndef second():\n\treturn 2\n",
        "case.py",
    )
    assert texts(extracted) == [
        "import os",
        "def first():\n    a = 1\n\n    return a",
        "def second():\n    return 2",
    ]
    assert [block.line for block in extracted.blocks] == [1, 4, 10]
    assert {block.kind for block in extracted.blocks} == {BlockKind.CODE}
    assert extracted.coverage == Coverage("lines", 6, 6)


def test_closing_brackets_stay_with_their_block() -> None:
    extracted = read("code", "int f() {\n  g();\n\n}\n\nint h;\n", "case.c")
    assert texts(extracted) == ["int f() {\n  g();\n\n}", "int h;"]


def test_long_functions_are_cut_at_empty_lines_inside() -> None:
    body = "\n\n".join(f"    step({number})\n    check({number})" for number in range(60))
    extracted = read("code", f"def long():\n{body}\n", "case.py")
    assert len(extracted.blocks) > 1
    assert all(text.startswith(("def", "    step")) for text in texts(extracted))
    assert extracted.text.count("step(") == 60


def test_one_endless_run_of_lines_is_cut_too() -> None:
    extracted = read("code", "x = 1\n" * 500, "case.py")
    assert [block.line for block in extracted.blocks] == [1, 201, 401]
