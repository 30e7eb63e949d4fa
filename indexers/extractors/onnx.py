"""EntityExtractor over onnxruntime on CPU, without torch: GLiNER's uni-encoder span models (markerV0)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from indexers.errors import ConfigurationError
from indexers.extractors.base import GlinerExtractor
from indexers.extractors.scores import Scores
from indexers.extractors.spec import (
    TOKENIZER_FILE,
    checked,
    onnx_file,
    onnx_model_id,
    read_spec,
    scales_over_batch,
)
from indexers.extractors.tokens import ReadWindow, read_tokenizer
from indexers.onnx_session import open_session

#: By the name of the graph's input.
Arrays = dict[str, np.ndarray]
INPUTS = {"input_ids", "attention_mask", "words_mask", "text_lengths", "span_idx", "span_mask"}


class OnnxExtractor(GlinerExtractor[Arrays]):
    """int8 activations are scaled over the whole padded batch: scores depend a little on the call's other windows.

    Hence windows of one text only in a call (`mixes_documents`), sorted and grouped by the caller in one way.
    """

    def __init__(self, folder: Path, *, threads: int = 1, cpu_affinity: tuple[int, ...] = ()) -> None:
        spec = read_spec(folder)
        tokens = read_tokenizer(checked(folder / TOKENIZER_FILE), spec)
        path = onnx_file(folder)
        super().__init__(onnx_model_id(folder), spec, tokens, cpu_affinity=cpu_affinity)
        self._mixes = not scales_over_batch(path)
        self._session = self._on_model_thread(open_session, path, threads)
        inputs = {entry.name for entry in self._session.get_inputs()}
        if inputs != INPUTS:
            raise ConfigurationError(
                f"{path} is no GLiNER span model: it takes {sorted(inputs)}, not {sorted(INPUTS)}"
            )

    @property
    def mixes_documents(self) -> bool:
        return self._mixes

    def _inputs(self, windows: Sequence[ReadWindow], labels: Sequence[str]) -> Arrays:
        prompt = self._tokens.prompt(tuple(labels))
        width = len(prompt) + max(len(window.ids) for window in windows) + 2
        ids, attention, words_mask = (np.zeros((len(windows), width), np.int64) for _ in range(3))
        for i, window in enumerate(windows):
            line = (self._tokens.opening, *prompt, *window.ids, self._tokens.closing)
            ids[i, : len(line)] = line
            attention[i, : len(line)] = 1
            # A word is known by its first token; 0 marks all others.
            of_word = np.array(window.of_word, np.int64)
            first = np.diff(of_word, prepend=-1) != 0
            begin = len(prompt) + 1
            words_mask[i, begin : begin + len(of_word)] = np.where(first, of_word + 1, 0)
        lengths = np.array([[len(window.words)] for window in windows], np.int64)
        spans, mask = self._span_table(lengths)
        return {
            "input_ids": ids,
            "attention_mask": attention,
            "words_mask": words_mask,
            "text_lengths": lengths,
            "span_idx": spans,
            "span_mask": mask,
        }

    def _run(self, inputs: Arrays) -> Scores:
        logits: Scores = self._session.run(None, inputs)[0]
        return logits

    def _span_table(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Every start with every width, [windows, words * max_width, 2]; False and (0, 0) beyond a window's end."""
        longest, widest = int(lengths.max()), self._spec.max_width
        start = np.repeat(np.arange(longest), widest)
        end = start + np.tile(np.arange(widest), longest)
        mask = end[None, :] < lengths
        spans = np.stack([start, end], axis=-1)[None] * mask[..., None]
        return spans.astype(np.int64), mask
