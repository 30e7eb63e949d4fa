"""Models in a folder: damaged ones, one of another space, and the threads that a loaded one has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from indexers.embedders.factory import default_model_dir
from indexers.embedders.spec import CONFIG_FILE, TOKENIZER_FILE

#: What stands in a checkout in place of a large file that wasn't fetched.
LFS_POINTER: Final = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
Damage = Callable[[Path], None]


def removed(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def written(name: str, content: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).write_text(content, encoding="utf-8")

    return damage


def threads() -> set[int]:
    """Of this process, by the system's ids."""
    return {int(task.name) for task in Path("/proc/self/task").iterdir()}


def half_model(folder: Path, *, name: str = "e5-half-int8") -> Path:
    """The shipped embedder, but only the first half of each vector: another space, which no query of the other fits."""
    shipped = default_model_dir()
    folder.mkdir(parents=True, exist_ok=True)
    spec = json.loads((shipped / CONFIG_FILE).read_bytes())
    half = spec["dimension"] // 2
    spec |= {"name": name, "base": f"test/{name}", "dimension": half, "model_file": "half.onnx"}
    (folder / CONFIG_FILE).write_text(json.dumps(spec), encoding="utf-8")
    if not (folder / TOKENIZER_FILE).exists():
        (folder / TOKENIZER_FILE).symlink_to(shipped / TOKENIZER_FILE)
    if not (folder / "half.onnx").exists():
        model = (shipped / "model_int8.onnx").read_bytes()
        (folder / "half.onnx").write_bytes(_sliced(model, spec["output"], half))
    return folder


def _sliced(model: bytes, output: str, columns: int) -> bytes:
    """ONNX is protobuf: the graph (field 7) gets one more node, and that one's output instead of its own."""
    parts: list[bytes] = []
    for number, raw in _fields(model):
        whole = _graph(raw, output, columns) if number == 7 and isinstance(raw, bytes) else raw
        parts.append(_encoded(number, whole))
    return b"".join(parts)


def _graph(graph: bytes, output: str, columns: int) -> bytes:
    kept = b"".join(_encoded(number, raw) for number, raw in _fields(graph) if number != 12)
    bounds = {"half_start": 0, "half_end": columns, "half_axis": 1}
    inputs = b"".join(_encoded(1, name.encode()) for name in (output, *bounds))
    node = inputs + _encoded(2, b"half") + _encoded(4, b"Slice")
    tensors = [
        _encoded(1, 1)
        + _encoded(2, 7)
        + _encoded(8, name.encode())
        + _encoded(9, value.to_bytes(8, "little"))
        for name, value in bounds.items()
    ]
    shape = b"".join(_encoded(1, dim) for dim in (_encoded(2, b"batch"), _encoded(1, columns)))
    kind = _encoded(1, _encoded(1, 1) + _encoded(2, shape))
    value_info = _encoded(1, b"half") + _encoded(2, kind)
    more = _encoded(1, node) + b"".join(_encoded(5, tensor) for tensor in tensors) + _encoded(12, value_info)
    return kept + more


def _fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Numbers and values of a protobuf message that has varints and length-delimited fields only."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        if key & 7 == 2:
            yield key >> 3, message[at : at + value]
            at += value
        else:
            assert key & 7 == 0, f"wire type {key & 7}"
            yield key >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _encoded(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return _as_varint(number << 3) + _as_varint(value)
    return _as_varint(number << 3 | 2) + _as_varint(len(value)) + value


def _as_varint(value: int) -> bytes:
    parts = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
