"""The torch extractor, the library itself, and what int8 costs. Needs the extra `gpu`: `make test-gpu`."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from indexers.domain.entities.labels import DEFAULT_LABELS
from indexers.errors import ConfigurationError
from indexers.extraction import Extracted, extract_texts
from indexers.extractors.checkpoint import CHECKPOINT_FILE, write_checkpoint
from indexers.extractors.factory import default_model_dir, load_extractor
from indexers.extractors.onnx import OnnxExtractor
from indexers.extractors.torch import TorchExtractor
from indexers.model_calls import TextToExtract, model_calls
from indexers.ports import EntityExtractor
from indexers.settings import ExtractorSettings
from tests.contract.extractor_suite import LABELS, WINDOWS, ExtractorConformance, flat
from tests.labelled import AGENT_MEMORY, Place, labels_of, micro_f1, read_labelled

pytestmark = [
    pytest.mark.gpu,
    # The library and torch warn of their own future.
    pytest.mark.filterwarnings("ignore"),
]
TEXTS = [text.text for text in read_labelled(AGENT_MEMORY)]
ASKED = labels_of(read_labelled(AGENT_MEMORY))


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


class TestTorch(ExtractorConformance):
    exact = True

    @staticmethod
    def extractor_settings() -> ExtractorSettings:
        return ExtractorSettings(backend="torch")


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    write_checkpoint(default_model_dir(), folder)
    return folder


def ours(extractor: EntityExtractor, text: str) -> set[Place]:
    [spans] = extractor.extract([text], ASKED, threshold=0.5)
    return {(span.start, span.end, span.label) for span in flat(spans)}


def theirs(library: Any, text: str) -> set[Place]:
    [found] = library.inference([text], ASKED, threshold=0.5)
    return {(entity["start"], entity["end"], entity["label"]) for entity in found}


class TestAsTheLibrary:
    def test_torch_finds_what_the_library_finds(self, checkpoint: Path) -> None:
        from gliner import GLiNER

        library = GLiNER.from_pretrained(str(checkpoint), local_files_only=True).eval()
        extractor = TorchExtractor(str(checkpoint), device="cpu")
        assert [ours(extractor, text) for text in TEXTS] == [theirs(library, text) for text in TEXTS]

    def test_onnx_finds_what_the_library_finds_with_the_same_graph(self) -> None:
        from gliner import GLiNER

        library = GLiNER.from_pretrained(
            str(default_model_dir()),
            local_files_only=True,
            load_onnx_model=True,
            onnx_model_file="model_int8.onnx",
        )
        extractor = OnnxExtractor(default_model_dir())
        assert [ours(extractor, text) for text in TEXTS] == [theirs(library, text) for text in TEXTS]


def test_int8_costs_no_more_than_the_rounding(checkpoint: Path) -> None:
    labelled = read_labelled(AGENT_MEMORY)
    onnx, torch = OnnxExtractor(default_model_dir()), TorchExtractor(str(checkpoint), device="cpu")
    f1 = [
        micro_f1((text.names, ours(extractor, text.text)) for text in labelled) for extractor in (onnx, torch)
    ]
    assert min(f1) > 68
    assert abs(f1[0] - f1[1]) < 4
    agreement = micro_f1((ours(onnx, text), ours(torch, text)) for text in TEXTS)
    assert agreement > 90


def test_cuda_is_used_where_it_is_and_refused_where_it_is_not() -> None:
    import torch

    if torch.cuda.is_available():
        there, here = (load_extractor(ExtractorSettings(backend="torch", device=d)) for d in ("cuda", "cpu"))
        assert micro_f1((ours(there, text), ours(here, text)) for text in TEXTS) > 98
    else:
        with pytest.raises(ConfigurationError, match="torch finds no CUDA device"):
            load_extractor(ExtractorSettings(backend="torch", device="cuda"))


def test_texts_share_calls_on_torch_and_find_what_they_find_alone(checkpoint: Path) -> None:
    extractor = TorchExtractor(str(checkpoint), device="cpu")
    jobs = [TextToExtract(text=text, labels=DEFAULT_LABELS) for text in TEXTS]
    calls = model_calls(jobs, extractor=extractor)
    assert [len(call.windows) for call in calls[:-1]] == [16] * (len(calls) - 1)
    together = extract_texts(jobs, extractor=extractor)
    alone = [extract_texts([job], extractor=extractor)[0] for job in jobs]
    assert [names_of(one) for one in together] == [names_of(one) for one in alone]


def names_of(extracted: Extracted) -> list[tuple[int, int, str]]:
    return [(mention.start, mention.end, mention.label) for mention in extracted.mentions]


class TestBrokenCheckpoints:
    def test_a_hub_id_that_is_not_in_the_cache_says_what_to_set(self) -> None:
        with pytest.raises(ConfigurationError, match="set HOPLINE_EXTRACTOR__MODEL to a folder"):
            load_extractor(ExtractorSettings(backend="torch", model="nobody/no-such-model"))

    def test_weights_that_cannot_be_read_say_what_to_set(self, tmp_path: Path, checkpoint: Path) -> None:
        folder = tmp_path / "broken"
        shutil.copytree(checkpoint, folder)
        (folder / CHECKPOINT_FILE).write_bytes(b"x" * 99)
        with pytest.raises(ConfigurationError, match="can't be loaded"):
            load_extractor(ExtractorSettings(backend="torch", model=str(folder)))

    def test_a_folder_of_another_kind_names_the_file_it_lacks(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match=r"lacks .*\.onnx"):
            load_extractor(ExtractorSettings(backend="torch", model=str(tmp_path)))


def test_the_checkpoint_of_a_folder_has_its_own_identity(checkpoint: Path) -> None:
    extractor = load_extractor(ExtractorSettings(backend="torch", model=str(checkpoint)))
    shipped = load_extractor(ExtractorSettings(backend="torch"))
    assert extractor.model_id != shipped.model_id
    assert shipped.model_id.startswith("gliner-mini-fp32-")
    assert extractor.extract(WINDOWS, LABELS, threshold=0.5) == shipped.extract(
        WINDOWS, LABELS, threshold=0.5
    )
