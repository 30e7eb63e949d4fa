"""The embedder port, on each adapter. torch needs the extra `gpu`: `make test-gpu` (marker `gpu`)."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from indexers.embedders.factory import default_model_dir, identify_model, load_embedder, load_token_counter
from indexers.embedders.onnx import OnnxEmbedder
from indexers.embedders.spec import read_spec
from indexers.errors import ConfigurationError
from indexers.ports import Embedder
from indexers.settings import EmbedderSettings
from tests.contract.embedder_suite import TEXTS, EmbedderConformance, margins
from tests.model_folders import LFS_POINTER, removed, threads, written

KOREAN = [
    ("결제 서비스가 중단되었습니다.", "고객이 결제를 할 수 없습니다.", "빵집은 금요일에 호밀빵을 판다."),
    ("데이터베이스 복구 절차", "백업에서 데이터를 되살리는 방법", "고양이가 창가에서 잠을 잔다."),
]
ACROSS = [
    ("결제 서비스가 중단되었습니다.", "The payment service is down.", "The cat sleeps by the window."),
    ("How do I restore a backup?", "백업을 복원하는 방법", "오늘 점심은 비빔밥이다."),
]


class TestOnnx(EmbedderConformance):
    exact = True

    @staticmethod
    def embedder_settings() -> EmbedderSettings:
        return EmbedderSettings()

    @pytest.mark.parametrize(("text", "related", "unrelated"), KOREAN + ACROSS)
    def test_korean_and_english_share_the_space(
        self, embedder: Embedder, text: str, related: str, unrelated: str
    ) -> None:
        near, far = margins(embedder, text, related, unrelated)
        assert near > far + 0.05

    def test_queries_and_passages_carry_the_prefixes_of_the_model(self, embedder: Embedder) -> None:
        passage, query = embedder.embed_passages(["tide table"])[0], embedder.embed_query("tide table")
        assert 0.8 < float(passage @ query) < 0.9999

    def test_the_identity_says_what_is_shipped(self, embedder: Embedder) -> None:
        assert (embedder.model_id, embedder.pair_id, embedder.dimension) == (
            "e5-small-enko-int8",
            "intfloat/multilingual-e5-small",
            384,
        )

    def test_prefix_and_specials_fit_beside_the_longest_text(self, embedder: Embedder) -> None:
        spec = read_spec(default_model_dir())
        longest = " ".join(["one"] * embedder.max_tokens)
        framed = [spec.query_prefix + longest, spec.passage_prefix + longest]
        assert max(embedder.count_tokens(framed)) + 2 == spec.max_tokens


@pytest.mark.parametrize(
    "gpu",
    [
        pytest.param(EmbedderSettings(backend="torch"), id="default"),
        pytest.param(EmbedderSettings(backend="torch", precision="fp16"), id="half"),
        pytest.param(EmbedderSettings(backend="torch", model="/models/multilingual-e5-small"), id="folder"),
    ],
)
def test_the_gpu_pair_of_the_shipped_model_is_declared(gpu: EmbedderSettings) -> None:
    """Workers may write with one and queries read with the other: one space, two model ids."""
    shipped, pair = identify_model(EmbedderSettings()), identify_model(gpu)
    assert pair.pair_id == shipped.pair_id
    assert pair.model_id != shipped.model_id


class TestOnnxInGroups:
    """Groups larger than one: neighbours matter, the order of the call does not."""

    @pytest.fixture(scope="class")
    @classmethod
    def embedder(cls) -> Embedder:
        return load_embedder(EmbedderSettings(batch_texts=2))

    def test_it_wants_one_document_per_call(self, embedder: Embedder) -> None:
        assert not embedder.mixes_documents

    def test_the_same_set_of_texts_gives_the_same_vectors(self, embedder: Embedder) -> None:
        order = [3, 0, 4, 2, 1]
        shuffled = embedder.embed_passages([TEXTS[i] for i in order])
        assert np.array_equal(shuffled, embedder.embed_passages(TEXTS)[order])

    def test_vectors_stay_close_to_those_of_single_texts(self, embedder: Embedder) -> None:
        alone = load_embedder(EmbedderSettings()).embed_passages(TEXTS)
        assert np.sum(alone * embedder.embed_passages(TEXTS), axis=1).min() > 0.97


class TestPinning:
    def test_the_model_runs_on_the_given_core_only_and_the_caller_stays_free(self) -> None:
        free = os.sched_getaffinity(0)
        core = max(free)
        before = threads()
        embedder = load_embedder(EmbedderSettings(cpu_affinity=(core,), threads=2))
        embedder.embed_passages(TEXTS)
        started = threads() - before
        assert started
        assert {frozenset(os.sched_getaffinity(thread)) for thread in started} == {frozenset({core})}
        assert os.sched_getaffinity(0) == free

    def test_a_core_that_is_not_there_is_refused(self) -> None:
        with pytest.raises(ConfigurationError, match="CPU_AFFINITY names cores"):
            load_embedder(EmbedderSettings(cpu_affinity=(4_000,)))


class TestBrokenModels:
    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            pytest.param(
                removed("config.json"), "lacks .*config.json: set HOPLINE_EMBEDDER__MODEL", id="config"
            ),
            pytest.param(removed("tokenizer.json"), "lacks .*tokenizer.json", id="no tokenizer"),
            pytest.param(removed("model_int8.onnx"), "lacks .*model_int8.onnx", id="no weights"),
            pytest.param(written("model_int8.onnx", LFS_POINTER), "git lfs pull", id="pointer"),
            pytest.param(
                written("model_int8.onnx", "x" * 99), "can't be loaded .*fetch the model again", id="weights"
            ),
            pytest.param(written("tokenizer.json", "{}"), "no tokenizer file", id="tokenizer"),
            pytest.param(written("config.json", "{"), "does not describe an embedding model", id="no JSON"),
            pytest.param(written("config.json", json.dumps({"name": "x"})), "base", id="keys missing"),
        ],
    )
    def test_the_message_names_the_file_and_the_way_out(
        self, tmp_path: Path, damage: Callable[[Path], None], message: str
    ) -> None:
        folder = tmp_path / "model"
        shutil.copytree(default_model_dir(), folder)
        damage(folder)
        with pytest.raises(ConfigurationError, match=message):
            load_embedder(EmbedderSettings(model=str(folder)))

    def test_torch_without_the_extra_says_how_to_get_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "torch", None)  # import raises ImportError, installed or not
        with pytest.raises(ConfigurationError, match=r"pip install 'hopline\[gpu\]'"):
            load_embedder(EmbedderSettings(backend="torch"))

    def test_cuda_needs_the_torch_backend(self) -> None:
        with pytest.raises(ConfigurationError, match="BACKEND=torch"):
            load_embedder(EmbedderSettings(device="cuda"))

    def test_a_hub_that_is_away_is_named(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
        with pytest.raises(ConfigurationError, match="'nobody/nothing' can't be loaded"):
            load_token_counter(EmbedderSettings(backend="torch", model="nobody/nothing"))


def test_the_tokenizer_sees_prefix_and_text_as_one_string() -> None:
    """Prefix ids are put before the text's ids: the same ids as tokenising the joined string."""
    embedder = OnnxEmbedder(default_model_dir())
    texts = [
        *TEXTS,
        "서울에서 부산까지",
        "- [ ] task",
        "#tag",
        "…",
        '"quoted"',
        "1.2.3",
        "\tindented",
        "ＦＵＬＬ",
    ]
    joined = embedder.count_tokens([f"passage: {text}" for text in texts])
    prefix = embedder.count_tokens(["passage:"])[0]
    assert joined == [prefix + count for count in embedder.count_tokens(texts)]
