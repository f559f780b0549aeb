"""The child process of one extraction: `python -m knowledge.extraction.worker PATH NAME LIMITS`.

Writes the result to standard output and nothing else; see `sandbox.py` for the other side.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import asdict
from pathlib import Path

from knowledge.extraction.base import Extracted, ExtractionError, Fault, Limits, Source
from knowledge.extraction.detection import HEAD_BYTES, detect_format
from knowledge.extraction.registry import load_extractor
from knowledge.extraction.wire import dump_error, dump_extracted

_MOST_LOG_CHARS = 300
_MOST_OUTPUT_BYTES = 2 * 1024 * 1024 * 1024
_CPU_MARGIN_S = 5


def dump_limits(limits: Limits) -> str:
    """The third argument of the command."""
    return json.dumps(asdict(limits))


def extract_source(source: Source, limits: Limits) -> Extracted:
    """Detects the format and reads the file, in this process. Raises `ExtractionError` only."""
    if source.size > limits.max_bytes:
        raise ExtractionError(
            Fault.TOO_LARGE,
            f"{source.filename} has {source.size / 2**20:,.0f} MB; at most "
            f"{limits.max_bytes / 2**20:,.0f} MB are read. Split it into smaller files.",
        )
    try:
        return _extract(source, limits)
    except ExtractionError as error:
        if source.filename in error.message:
            raise
        raise ExtractionError(error.fault, f"{source.filename}: {error.message}") from error
    except (MemoryError, RecursionError) as error:
        raise _too_large(source.filename) from error
    except Exception as error:
        # Parsers fail in their own ways on damaged files; the traceback may quote the file.
        _log(f"{type(error).__module__}.{type(error).__name__} while reading a file")
        raise ExtractionError(
            Fault.CORRUPT,
            f"{source.filename} is damaged and cannot be read. Open it in the program it comes "
            "from, save it again, and upload the new copy.",
        ) from error


def _extract(source: Source, limits: Limits) -> Extracted:
    source.stream.seek(0)
    head = source.stream.read(HEAD_BYTES)
    name = detect_format(head, source.filename, stream=source.stream)
    source.stream.seek(0)
    extracted = load_extractor(name).extract(source, limits)
    if not extracted.text.strip():
        raise _no_text(source.filename, extracted)
    return extracted


def _no_text(filename: str, extracted: Extracted) -> ExtractionError:
    reasons = " ".join(extracted.warnings[:3])
    return ExtractionError(
        Fault.NO_TEXT,
        f"{filename} is readable but holds no text. {reasons or 'There is nothing to index.'}",
    )


def _too_large(filename: str) -> ExtractionError:
    return ExtractionError(
        Fault.TOO_LARGE,
        f"Reading {filename} takes more memory than is allowed. Split it into smaller files.",
    )


def _log(message: str) -> None:
    sys.stderr.write(message[:_MOST_LOG_CHARS] + "\n")


def _set_bounds(limits: Limits) -> None:
    seconds = int(limits.timeout_s) + _CPU_MARGIN_S
    for kind, most in (
        (resource.RLIMIT_AS, limits.max_memory_bytes),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, _MOST_OUTPUT_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        resource.setrlimit(
            kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
        )


def main(arguments: list[str]) -> None:
    """Reads one file and writes one JSON value."""
    path, filename, limits = Path(arguments[0]), arguments[1], Limits(**json.loads(arguments[2]))
    _set_bounds(limits)
    # What a library prints must not get into the result.
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with path.open("rb") as stream, output:
        source = Source(stream, filename, path.stat().st_size)
        try:
            result = dump_extracted(extract_source(source, limits))
        except ExtractionError as error:
            result = dump_error(error)
        except MemoryError:
            result = dump_error(_too_large(filename))
        output.write(result)


if __name__ == "__main__":
    main(sys.argv[1:])
