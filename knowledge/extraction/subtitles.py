"""Subtitles (SubRip, WebVTT): what is said, in paragraphs with the time they begin."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TIMES = re.compile(
    r"\s*((?:\d+:)?\d{1,2}:\d{2})[.,]\d{1,3}\s*-->\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3}.*"
)
_VOICE = re.compile(r"<v(?:\.[\w.]+)?\s+([^>]+)>")
_TAG = re.compile(r"</?[A-Za-z\d:.][^<>]*>|\{\\[^{}]*\}")
_MOST_CHARS = 600  # a paragraph takes no further cue beyond this


@dataclass(frozen=True, slots=True)
class Passage:
    """Some cues as one text, the time of the first, and the line where that stands."""

    line: int
    start: str
    text: str


def iter_passages(text: str) -> Iterator[Passage]:
    """The passages of a subtitle file; nothing when it holds no cues."""
    line, start, words = 0, "", list[str]()
    for cue_line, cue_start, cue_text in _iter_cues(text.split("\n")):
        if words and sum(map(len, words)) > _MOST_CHARS:
            yield Passage(line, start, " ".join(words))
            words = []
        if not words:
            line, start = cue_line, cue_start
        words.append(cue_text)
    if words:
        yield Passage(line, start, " ".join(words))


def _iter_cues(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Line number, start time and words of each cue; a cue ends at an empty line."""
    line, start, words, speaker = 0, "", list[str](), ""
    for number, text in enumerate([*lines, ""], start=1):
        times = _TIMES.fullmatch(text)
        if times:
            line, start = number, times[1]
        elif start and text.strip():
            words.append(text)
        elif start:
            said, speaker = _spoken(" ".join(words), speaker)
            if said:
                yield line, start, said
            start, words = "", []


def _spoken(text: str, speaker: str) -> tuple[str, str]:
    """The words without tags; the speaker is named when it changes."""
    voices = _VOICE.findall(text)
    named = _VOICE.sub(lambda match: "" if match[1] == speaker else f"{match[1]}: ", text)
    return " ".join(_TAG.sub("", named).split()), voices[-1] if voices else speaker
