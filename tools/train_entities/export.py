"""A trained model → the folder that HOPLINE_EXTRACTOR__MODEL names: torch weights and int8 ONNX side by side."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from indexers.errors import ConfigurationError

from .training import INSTALL

#: A text with a name, so that the traced graph has a span.
_SAMPLE = "Dana Cole restarted the billing service in Oslo after INC-2041 on Tuesday."


def export(model: Any, base: Path, out: Path, labels: Sequence[str]) -> None:
    """Writes beside `out` first: the folder is whole or not there. The tokenizer is the base's, byte for byte."""
    try:
        import onnx  # noqa: F401 - quantisation needs it, and says so late
        from onnxruntime.quantization import QuantType, quantize_dynamic
        from onnxruntime.quantization.shape_inference import quant_pre_process
    except ImportError as exc:
        raise ConfigurationError(INSTALL) from exc
    draft, work = out.with_name(f"{out.name}.draft"), out.with_name(f"{out.name}.work")
    for folder in (draft, work):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    try:
        model.model.to("cpu").eval()
        model.save_pretrained(draft, safe_serialization=True)
        for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
            if (base / name).is_file():
                shutil.copyfile(base / name, draft / name)
        model.export_to_onnx(
            work, onnx_filename="model.onnx", quantize=False, opset=17, labels=list(labels), text=_SAMPLE
        )
        quant_pre_process(str(work / "model.onnx"), str(work / "prepared.onnx"), skip_symbolic_shape=True)
        # By channel: by tensor, the libraries' default, costs a tenth of the neighbours (docs/explanation/entities.md).
        quantize_dynamic(
            str(work / "prepared.onnx"),
            str(draft / "model_int8.onnx"),
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul", "Gemm", "Gather"],
        )
        for path in draft.iterdir():
            path.chmod(0o644)
        draft.rename(out)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        shutil.rmtree(draft, ignore_errors=True)
