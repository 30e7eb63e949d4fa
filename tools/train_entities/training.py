"""The training loop, after the one that made the shipped model. Needs the extra `gpu`; runs on CPU too.

Word embeddings stay as they are: a few hundred texts would bend half of the model's weights to their own words.
Focal loss (alpha 0.75, gamma 2), AdamW, warm-up and cosine, gradients clipped at 5.
"""

from __future__ import annotations

import math
import os
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from indexers.errors import ConfigurationError, WrongUsage
from indexers.telemetry import report_nothing

from .examples import Example, batches, question

#: The head learns faster than the encoder below it.
HEAD_FACTOR = 4
WARM_UP = 0.1
LAST_SHARE = 0.03
INSTALL = "fine-tuning needs the extra `gpu`: pip install torch==2.13.0 'hopline[gpu]' (5 GB)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """`learning_rate`: of the encoder. `device`: `auto`, `cpu` or `cuda`. `threads`: on CPU."""

    epochs: int
    batch: int
    learning_rate: float
    device: str
    threads: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """`loss`: per example, smoothed over the last fifty steps or so."""

    epoch: int
    step: int
    steps: int
    loss: float


def libraries() -> tuple[Any, Any]:
    """(torch, gliner), or ConfigurationError with the command that installs them."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    report_nothing()
    try:
        import gliner
        import torch
    except ImportError as exc:
        raise ConfigurationError(INSTALL) from exc
    return torch, gliner


def check_base(base: Path) -> None:
    """WrongUsage where nothing is there that can be trained on."""
    if not (base / "gliner_config.json").is_file():
        raise WrongUsage(f"--base: {base} holds no GLiNER checkpoint (no gliner_config.json)")
    if not has_torch_weights(base) and not any(base.glob("**/*.onnx")):
        raise WrongUsage(
            f"--base: {base} holds no weights (model.safetensors, pytorch_model.bin or int8 ONNX)"
        )


def has_torch_weights(base: Path) -> bool:
    return any((base / name).is_file() for name in ("model.safetensors", "pytorch_model.bin"))


def load_model(base: Path, device: str) -> Any:
    torch, gliner = libraries()
    available = bool(torch.cuda.is_available())
    if device == "cuda" and not available:
        raise WrongUsage("--device cuda: torch finds no CUDA device")
    place = "cuda" if available and device != "cpu" else "cpu"
    try:
        model = gliner.GLiNER.from_pretrained(str(base), local_files_only=True, map_location=place)
    except (OSError, ValueError, KeyError, RuntimeError, AssertionError) as exc:
        raise WrongUsage(f"--base: {base} can't be loaded: {exc}") from exc
    model.model.float().to(place)
    return model


def train(model: Any, examples: Sequence[Example], plan: Plan, tell: Callable[[Step], None]) -> None:
    """In place. The same examples, plan and machine give the same model on CPU."""
    torch, _ = libraries()
    torch.manual_seed(plan.seed)
    torch.set_num_threads(plan.threads)
    chance = random.Random(plan.seed)  # noqa: S311 - the order of the examples is no secret
    core, place = model.model, next(model.model.parameters()).device
    collate = model.data_collator_class(
        model.config, data_processor=model.data_processor, prepare_labels=True
    )
    optimiser, rates = _optimiser(torch, core, plan.learning_rate)
    steps = plan.epochs * math.ceil(len(examples) / plan.batch)
    core.train()
    done, smooth = 0, math.nan
    for epoch in range(1, plan.epochs + 1):
        for group in batches(examples, plan.batch, chance):
            for parameters, rate in zip(optimiser.param_groups, rates, strict=True):
                parameters["lr"] = rate * _share(done, steps)
            loss = _learn(torch, core, collate([question(example, chance) for example in group]), place)
            torch.nn.utils.clip_grad_norm_(core.parameters(), 5.0)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            done += 1
            smooth = loss if math.isnan(smooth) else 0.95 * smooth + 0.05 * loss
            tell(Step(epoch=epoch, step=done, steps=steps, loss=smooth))
    core.eval()


def _learn(torch: Any, core: Any, batch: dict[str, Any], place: Any) -> float:
    tensors = {name: value.to(place) for name, value in batch.items() if isinstance(value, torch.Tensor)}
    labels = tensors.pop("labels")
    with torch.autocast(place.type, dtype=torch.bfloat16, enabled=place.type == "cuda"):
        out = core(**tensors)
    loss = core.loss(
        out.logits.float(),
        labels,
        out.prompts_embedding_mask,
        tensors["span_mask"],
        alpha=0.75,
        gamma=2.0,
        reduction="sum",
    )
    loss = loss / labels.shape[0]
    loss.backward()
    return float(loss.item())


def _optimiser(torch: Any, core: Any, rate: float) -> tuple[Any, list[float]]:
    """Encoder and head, each with and without weight decay (none for biases and norms)."""
    groups: list[dict[str, Any]] = []
    for name, parameter in core.named_parameters():
        if "word_embeddings" in name:
            parameter.requires_grad_(requires_grad=False)
    for encoder in (True, False):
        for decay in (True, False):
            chosen = [
                parameter
                for name, parameter in core.named_parameters()
                if parameter.requires_grad
                and ("bert_layer" in name) == encoder
                and (parameter.ndim > 1) == decay
            ]
            if chosen:
                lr = rate if encoder else rate * HEAD_FACTOR
                groups.append({"params": chosen, "lr": lr, "weight_decay": 0.01 if decay else 0.0})
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.98), eps=1e-8)
    return optimiser, [group["lr"] for group in groups]


def _share(step: int, steps: int) -> float:
    """Of the rate: up in a line, down in half a cosine to a rest."""
    warm = max(int(steps * WARM_UP), 1)
    if step < warm:
        return (step + 1) / warm
    passed = (step - warm) / max(steps - warm, 1)
    return LAST_SHARE + (1 - LAST_SHARE) * 0.5 * (1 + math.cos(math.pi * passed))


def quiet() -> None:
    """The libraries warn of their own calls; what matters is raised."""
    warnings.simplefilter("ignore")
