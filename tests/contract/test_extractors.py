"""The extractor port, on each adapter. torch needs the extra `gpu`: `make test-gpu` (marker `gpu`)."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from indexers.errors import ConfigurationError
from indexers.extractors.factory import default_model_dir, identify_extractor, load_extractor
from indexers.settings import ExtractorSettings
from tests.contract.extractor_suite import LABELS, WINDOWS, ExtractorConformance
from tests.model_folders import LFS_POINTER, removed, threads, written

CONFIG = "gliner_config.json"


class TestOnnx(ExtractorConformance):
    exact = False

    @staticmethod
    def extractor_settings() -> ExtractorSettings:
        return ExtractorSettings()

    def test_the_identity_says_what_is_shipped(self) -> None:
        assert identify_extractor(ExtractorSettings()) == "gliner-mini-int8-ea1dfdeb7260"


def test_another_training_in_the_same_folder_is_another_model(tmp_path: Path) -> None:
    folder = tmp_path / "ours"
    shutil.copytree(default_model_dir(), folder)
    settings = ExtractorSettings(model=str(folder))
    before = identify_extractor(settings)
    with (folder / "model_int8.onnx").open("ab") as stream:
        stream.write(b"\0")
    assert before.startswith("ours-int8-")
    assert identify_extractor(settings) != before


def test_a_hub_folder_with_its_graph_below_onnx_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "hub"
    shutil.copytree(default_model_dir(), folder)
    (folder / "onnx").mkdir()
    (folder / "model_int8.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    extractor = load_extractor(ExtractorSettings(model=str(folder)))
    assert extractor.model_id.startswith("hub-quantized-")
    assert any(extractor.extract(WINDOWS[:1], LABELS, threshold=0.5))


class TestPinning:
    def test_the_model_runs_on_the_given_core_only_and_the_caller_stays_free(self) -> None:
        free = os.sched_getaffinity(0)
        core = max(free)
        before = threads()
        extractor = load_extractor(ExtractorSettings(cpu_affinity=(core,), threads=2))
        extractor.extract(WINDOWS, LABELS, threshold=0.5)
        started = threads() - before
        assert started
        assert {frozenset(os.sched_getaffinity(thread)) for thread in started} == {frozenset({core})}
        assert os.sched_getaffinity(0) == free

    def test_a_core_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="HOPLINE_EXTRACTOR__CPU_AFFINITY names cores"):
            load_extractor(ExtractorSettings(cpu_affinity=(4_000,)))


def _say(**values: object) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        said = json.loads((folder / CONFIG).read_bytes())
        (folder / CONFIG).write_text(json.dumps(said | values), encoding="utf-8")

    return damage


def _other_tokens(folder: Path) -> None:
    said = (folder / CONFIG).read_text(encoding="utf-8")
    (folder / CONFIG).write_text(said.replace("<<ENT>>", "<<X>>"), encoding="utf-8")


def _other_graph(folder: Path) -> None:
    embedder = default_model_dir().parent / "e5-small-enko" / "model_int8.onnx"
    shutil.copy(embedder, folder / "model_int8.onnx")


class TestBrokenModels:
    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            pytest.param(removed(CONFIG), f"lacks .*{CONFIG}: set HOPLINE_EXTRACTOR__MODEL", id="config"),
            pytest.param(removed("tokenizer.json"), "lacks .*tokenizer.json", id="no tokenizer"),
            pytest.param(removed("model_int8.onnx"), "lacks .*model_int8.onnx", id="no weights"),
            pytest.param(written("model_int8.onnx", LFS_POINTER), "git lfs pull", id="pointer"),
            pytest.param(
                written("model_int8.onnx", "x" * 99), "can't be loaded .*fetch the model again", id="weights"
            ),
            pytest.param(_other_graph, "is no GLiNER span model: it takes", id="another kind of graph"),
            pytest.param(written("tokenizer.json", "{}"), "no tokenizer file", id="tokenizer"),
            pytest.param(written(CONFIG, "{"), "does not describe a GLiNER model", id="no JSON"),
            pytest.param(written(CONFIG, "{}"), "max_width", id="keys missing"),
            pytest.param(_other_tokens, "lacks the tokens <<X>>", id="tokens of another"),
            pytest.param(
                _say(span_mode="token_level"), "span_mode token_level is not supported", id="tokens"
            ),
            pytest.param(_say(labels_encoder="x"), "labels_encoder .* not supported", id="bi-encoder"),
            pytest.param(_say(relations_layer="x"), "relations_layer is not supported", id="relations"),
            pytest.param(_say(words_splitter_type="spacy"), "words_splitter_type spacy", id="splitter"),
        ],
    )
    def test_the_message_names_the_file_and_the_way_out(
        self, tmp_path: Path, damage: Callable[[Path], None], message: str
    ) -> None:
        folder = tmp_path / "model"
        shutil.copytree(default_model_dir(), folder)
        damage(folder)
        with pytest.raises(ConfigurationError, match=message):
            load_extractor(ExtractorSettings(model=str(folder)))

    def test_a_folder_that_is_not_there_says_what_to_set(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="set HOPLINE_EXTRACTOR__MODEL to a folder"):
            load_extractor(ExtractorSettings(model=str(tmp_path / "nowhere")))

    def test_torch_without_the_extra_says_how_to_get_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch", None)  # import raises ImportError, installed or not
        with pytest.raises(ConfigurationError, match=r"pip install 'hopline\[gpu\]'"):
            load_extractor(ExtractorSettings(backend="torch", model="urchade/gliner_small-v2.1"))

    def test_cuda_needs_the_torch_backend(self) -> None:
        with pytest.raises(ConfigurationError, match="BACKEND=torch"):
            load_extractor(ExtractorSettings(device="cuda"))
