"""What the centre needs from outside, as protocols. Each has one conformance suite in tests/contract/."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class TokenCounter(Protocol):
    """Counts tokens as the embedder will: special tokens excluded, nothing truncated."""

    @property
    def tokenizer_id(self) -> str: ...

    def count_tokens(self, texts: Sequence[str]) -> list[int]: ...


class Embedder(TokenCounter, Protocol):
    """Text → unit vectors. Calls block (seconds): run them off the event loop. Thread-safe.

    Prefixes ("query: ", "passage: ") belong to the model and are added inside. An empty or blank text and a text
    of more than `max_tokens` raise ValueError: nothing is cut in silence.
    """

    @property
    def model_id(self) -> str:
        """Name, quantisation included: `e5-small-enko-int8`. Vectors of two ids never meet in one query."""
        ...

    @property
    def pair_id(self) -> str:
        """Vector space: two model ids with one pair id may serve writes and queries of one index."""
        ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int: ...

    @property
    def cosine_floor(self) -> float:
        """Cosine of unrelated texts: scores are mixed as (cosine - floor) / (1 - floor)."""
        ...

    @property
    def mixes_documents(self) -> bool:
        """True where a batch may hold chunks of several documents (DESIGN §2: never on int8 CPU)."""
        ...

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """float32 [len(texts), dimension], rows of length 1, in the order given."""
        ...

    def embed_query(self, text: str) -> Vectors:
        """float32 [dimension], length 1. A query longer than `max_tokens` is cut (the caller bounds it)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What a model takes for a name in one window. Code points of the window's text, end exclusive; score 0..1."""

    start: int
    end: int
    label: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """The arguments of one `EntityExtractor.extract`."""

    windows: tuple[str, ...]
    prompts: tuple[str, ...]
    threshold: float


class EntityExtractor(Protocol):
    """Windows of text → spans. Calls block (seconds): run them off the event loop. Thread-safe.

    A window of more than `max_words` words (indexers.domain.entities.windows), or of more tokens than `max_tokens`
    leaves beside the labels' prompt, raises RefusedInput: nothing is cut in silence.
    """

    @property
    def model_id(self) -> str:
        """Name, quantisation and a hash of the weights: `gliner-mini-int8-0a1b2c3d4e5f`. Without `:`."""
        ...

    @property
    def max_words(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """Of prompt and words together, special tokens excluded."""
        ...

    def prompt_tokens(self, labels: Sequence[str]) -> int:
        """RefusedInput for a label that the model can't be asked for (blank, or one of the model's own signs)."""
        ...

    def word_tokens(self, words: Sequence[str]) -> list[int]:
        """Tokens of each word: a window costs the sum of its words."""
        ...

    @property
    def mixes_documents(self) -> bool:
        """True where a call may hold windows of several documents (DESIGN §2: never on int8 CPU)."""
        ...

    def extract(self, windows: Sequence[str], labels: Sequence[str], *, threshold: float) -> list[list[Span]]:
        """All spans whose score is over the threshold, overlapping ones included, by window in the order given.

        One model call: the caller sorts by length and bounds the number of windows. `labels`: as the model is to
        read them; a span's label is one of them.
        """
        ...

    def extract_each(self, calls: Iterable[ModelCall]) -> Iterator[list[list[Span]]]:
        """`extract` of each call, in order, with the same answers: some are made ready while the model runs others.

        Takes calls a few ahead of the answers. Raises as `extract` does: RefusedInput after the answers before, a fault
        of the model with the answers of a few calls before it lost.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """One file of a vault as listed. `path` is the identity (NFC); `vault_path` are the name's own code points."""

    path: str
    vault_path: str
    size: int
    modified_ns: int
    inode: int


#: Why a name of the vault is left out. `unreadable_*` says nothing about what is there: never deleted for it.
ProblemReason = Literal[
    "unreadable_folder",
    "unreadable_file",
    "not_utf8",
    "control_characters",
    "same_name",
    "outside_root",
    "broken_link",
    "not_a_file",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultProblem:
    """A name that can't become a document. `path` is normalised like an identity, bad bytes are escaped."""

    path: str
    reason: ProblemReason

    @property
    def hides_content(self) -> bool:
        """The path (a folder: all below it) may hold what can't be seen now."""
        return self.reason in ("unreadable_folder", "unreadable_file")


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultListing:
    """One walk: files and problems, each in path order. `leftovers`: folders with temporary files of writes."""

    entries: tuple[FileEntry, ...]
    problems: tuple[VaultProblem, ...]
    leftovers: tuple[str, ...] = ()


class VaultFiles(Protocol):
    """One vault's tree. Calls block: run them off the event loop.

    Which names are notes is said by `indexers.vault.ignore`; any other name does not exist here. Raises
    `VaultUnavailable` where the root itself can't be read, `FileNotFoundError` for a missing file,
    `PermissionError` for an unreadable one, and `ValueError` for a path that leaves the root (symlinks too).
    """

    def root_identity(self) -> str:
        """Another text when another folder or mount stands where the root was: nothing may be concluded then."""
        ...

    def entries(self) -> Iterator[FileEntry]:
        """Every Markdown file that the ignore rule leaves, in path order; loops of symlinks are walked once."""
        ...

    def listing(self, under: str = "") -> VaultListing:
        """As `entries`, with what was left out and why; `under`: only the file or folder with this path."""
        ...

    def entry(self, path: str) -> FileEntry:
        """The file with this identity, however its name is normalised on disk."""
        ...

    def open(self, path: str) -> BinaryIO:
        """The file itself, whatever is written in its place meanwhile: to read piece by piece, and to close."""
        ...

    def read(self, path: str, *, start: int = 0, max_bytes: int | None = None) -> bytes: ...

    def write_atomic(self, path: str, content: bytes) -> FileEntry:
        """Temp file in the same folder, fsync, rename: a reader sees the old bytes or the new, never half."""
        ...

    def set_aside(self, path: str) -> str:
        """Move the note to `.hopline/forgotten/<path>`, from where a person can take it back; its new place.

        What stands there from an earlier time stays: the new one goes to `.hopline/forgotten.2/<path>`, and so on.
        """
        ...

    def set_aside_copies(self, path: str) -> int:
        """How many of this note are set aside now."""
        ...

    def set_aside_paths(self, most: int = ...) -> list[str]:
        """Paths of notes that have copies set aside, in order; no more than `most` (10,000), removed ones make room."""
        ...

    def remove_leftovers(self, folder: str, *, older_seconds: float) -> int:
        """Delete what writes that were cut short left in this folder (`""`: the root), none below it; how many."""
        ...

    def remove_copies(self, path: str) -> int:
        """Delete those for good; how many."""
        ...

    def remove(self, path: str) -> None:
        """Delete the note for good."""
        ...
