"""The cache that the model runs from: built once out of the weights, checked whenever it is read.

It holds the encoder with 8-bit weights, the tokenizer and its normalisation, and a manifest of their
sha256. Building takes some seconds and no network. A folder whose files differ from its manifest (a build
that was cut off, a damaged disk) is built again; several processes may do so at once.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
import platform
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from pathlib import Path

from providers.backends.e5 import MODEL
from providers.backends.e5.weights import (
    WEIGHTS_SHA256,
    ModelFilesError,
    Vocabulary,
    Weights,
    open_weights,
)

ENCODER_FILE = "encoder_int8.onnx"
TOKENIZER_FILE = "tok.model"
NORMALISATION_FILE = "norm.json"
_FILES = (ENCODER_FILE, TOKENIZER_FILE, NORMALISATION_FILE)
_MANIFEST = "manifest.json"
_FORMAT = 2  # count up when the files' making changes, so that older folders are left alone

log = logging.getLogger(__name__)


class Variant(StrEnum):
    """How far the encoder's weights are rounded."""

    FULL = "int8"
    REDUCED = "int8-reduced"


def cpu_variant() -> Variant:
    """The variant that is right on this processor.

    x86 without VNNI multiplies 8-bit numbers into 16-bit sums that saturate, so there the weights keep
    to 7 bits (`reduce_range`, https://onnxruntime.ai/docs/performance/model-optimizations/quantization.html).
    """
    if platform.machine() not in {"x86_64", "AMD64"}:
        return Variant.FULL
    try:
        cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return Variant.REDUCED
    flags = next((line.split() for line in cpu.splitlines() if line.startswith("flags")), [])
    return Variant.FULL if {"avx_vnni", "avx512_vnni"} & set(flags) else Variant.REDUCED


class ModelCache:
    """The folder of one model and variant under `root`."""

    def __init__(self, root: Path, variant: Variant | None = None) -> None:
        self._root = root
        self._variant = variant or cpu_variant()
        name = f"{MODEL}-{self._variant}-{WEIGHTS_SHA256[:8]}-v{_FORMAT}"
        self.folder = root / name

    def read(self, name: str) -> bytes:
        """A file of the cache, which is built first if need be."""
        content = self._read_checked(name)
        if content is None:
            self.build()
            content = self._read_checked(name)
        if content is None:
            raise ModelFilesError("The model cache changes while it is read.")
        return content

    def build(self) -> None:
        """Make the cache unless it is whole. One process builds, others wait for it."""
        try:
            self._root.mkdir(parents=True, exist_ok=True)
            with self._lock():
                if any(self._read_checked(name) is None for name in _FILES):
                    self._replace(_make_files(self._variant))
        except OSError as error:
            log.exception("cannot write the model cache %s", self.folder)
            raise ModelFilesError(
                "The model cache is missing or damaged and cannot be written "
                f"({error.strerror or type(error).__name__})."
            ) from error

    def _read_checked(self, name: str) -> bytes | None:
        """The file if it can be read and is the one of the manifest."""
        try:
            manifest = json.loads((self.folder / _MANIFEST).read_bytes())
            content = (self.folder / name).read_bytes()
        except (OSError, ValueError):
            return None
        expected = manifest.get(name) if isinstance(manifest, dict) else None
        return content if hashlib.sha256(content).hexdigest() == expected else None

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Held by one process at a time; the kernel lets go of it when the process dies."""
        with (self._root / f"{self.folder.name}.lock").open("w") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)
            yield

    def _replace(self, files: Mapping[str, bytes]) -> None:
        """Put a complete folder in place by renaming it. Needs the lock."""
        prefix = f".{self.folder.name}."
        for leftover in self._root.glob(f"{prefix}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        scratch = Path(tempfile.mkdtemp(prefix=prefix, dir=self._root))
        try:
            fresh = scratch / "fresh"
            fresh.mkdir()
            _write_files(fresh, files)
            if self.folder.exists():
                self.folder.rename(scratch / "old")
            fresh.rename(self.folder)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def build_cache(folder: Path) -> Path:
    """Build the cache for this machine under `folder` (at install); returns the cache's own folder."""
    cache = ModelCache(folder)
    cache.build()
    return cache.folder


def _write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    manifest = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    for name, content in {**files, _MANIFEST: json.dumps(manifest, indent=1).encode()}.items():
        with (folder / name).open("wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())


def _make_files(variant: Variant) -> dict[str, bytes]:
    weights = open_weights()
    graph = import_module("providers.backends.e5.graph")  # loads onnx, which only a build needs
    encode: Callable[..., bytes] = graph.quantised_encoder
    return {
        ENCODER_FILE: encode(weights, reduce_range=variant is Variant.REDUCED),
        TOKENIZER_FILE: _tokenizer_model(weights.vocabulary()),
        NORMALISATION_FILE: _normalisation_table(weights),
    }


def _normalisation_table(weights: Weights) -> bytes:
    return json.dumps(weights.normalisation(), ensure_ascii=False).encode()


def _tokenizer_model(vocabulary: Vocabulary) -> bytes:
    """The vocabulary as a SentencePiece model. Normalising is done before it, so here it is off."""
    protocol = import_module("sentencepiece.sentencepiece_model_pb2")
    model = protocol.ModelProto()
    model.trainer_spec.model_type = protocol.TrainerSpec.UNIGRAM
    model.trainer_spec.vocab_size = len(vocabulary.pieces)
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = True
    model.normalizer_spec.remove_extra_whitespaces = False
    model.normalizer_spec.escape_whitespaces = True
    kinds = protocol.ModelProto.SentencePiece
    control = dict.fromkeys((vocabulary.begin, vocabulary.end, vocabulary.pad), kinds.CONTROL)
    special = {**control, vocabulary.unknown: kinds.UNKNOWN}
    if vocabulary.pieces[-1] == "<mask>":
        special[len(vocabulary.pieces) - 1] = kinds.CONTROL
    for name, index in (
        ("bos", vocabulary.begin),
        ("eos", vocabulary.end),
        ("pad", vocabulary.pad),
        ("unk", vocabulary.unknown),
    ):
        setattr(model.trainer_spec, f"{name}_id", index)
        setattr(model.trainer_spec, f"{name}_piece", vocabulary.pieces[index])
    for index, piece in enumerate(vocabulary.pieces):
        kind = special.get(index, kinds.NORMAL)
        model.pieces.add(piece=piece, score=float(vocabulary.scores[index]), type=kind)
    content: bytes = model.SerializeToString()
    return content
