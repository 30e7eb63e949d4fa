"""Labelled texts, one JSON object per line; docs/how-to/train-entities.md shows the format. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from indexers.domain.entities.windows import split_words
from indexers.errors import WrongUsage

TEXT_MAX_CHARS = 100_000
LABEL_MAX_CHARS = 100
#: Problems that one error tells of.
SHOWN_PROBLEMS = 20


class Entity(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """text[start:end], code points, is a `label`. `surface`, where given, must be that part of the text."""

    start: int
    end: int
    label: str
    surface: str | None = None


class LabelledText(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`labels`: all that were looked for in this text; None: every label of the file."""

    text: str
    entities: tuple[Entity, ...] = ()
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledData:
    """`asked[i]`: the labels that texts[i] was searched for, those of its entities included, sorted."""

    texts: tuple[LabelledText, ...]
    asked: tuple[tuple[str, ...], ...]
    #: Entities by label, most frequent first.
    counts: tuple[tuple[str, int], ...]
    #: Entities of labels that were not wanted.
    left_out: int


def read_labelled(lines: Iterable[str], *, labels: Sequence[str] = ()) -> LabelledData:
    """`labels`: those to train; none given means all. WrongUsage lists what is wrong, by line."""
    texts: list[LabelledText] = []
    problems: list[str] = []
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = list(_read_line(line, texts))
        if not found and (first := seen.setdefault(texts[-1].text, number)) != number:
            found = [f"the same text as line {first}"]
        problems += (f"line {number}: {problem}" for problem in found)
    if problems:
        raise WrongUsage(_told(problems))
    return _wanted(texts, labels)


def _read_line(line: str, texts: list[LabelledText]) -> Iterator[str]:
    try:
        labelled = msgspec.json.decode(line, type=LabelledText)
    except msgspec.ValidationError as error:
        yield str(error)
        return
    except (msgspec.DecodeError, UnicodeEncodeError) as error:
        yield f"no JSON: {error}"
        return
    texts.append(labelled)
    yield from problems_of(labelled)


def problems_of(labelled: LabelledText) -> Iterator[str]:
    """What a model couldn't learn, or what contradicts itself."""
    text = labelled.text
    if not text.strip() or len(text) > TEXT_MAX_CHARS:
        yield f"a text has 1 to {TEXT_MAX_CHARS:,} characters"
        return
    words = split_words(text)
    starts, ends = {word.start for word in words}, {word.end for word in words}
    for label in (*(entity.label for entity in labelled.entities), *(labelled.labels or ())):
        if not label.strip() or label != label.strip() or len(label) > LABEL_MAX_CHARS:
            yield f"label {label!r} is blank, has blanks around it or over {LABEL_MAX_CHARS} characters"
    for entity in labelled.entities:
        place = f"{entity.label} {entity.start}-{entity.end}"
        if not 0 <= entity.start < entity.end <= len(text):
            yield f"{place}: not within the text (0-{len(text)})"
        elif entity.surface is not None and text[entity.start : entity.end] != entity.surface:
            yield f"{place} is {text[entity.start : entity.end]!r}, not {entity.surface!r}"
        elif entity.start not in starts or entity.end not in ends:
            yield f"{place} ({text[entity.start : entity.end]!r}) begins or ends inside of a word"
    ordered = sorted(labelled.entities, key=lambda entity: (entity.start, entity.end))
    for first, second in pairwise(ordered):
        if second.start < first.end:
            yield f"{first.label} {first.start}-{first.end} and {second.label} {second.start}-{second.end} overlap"


def _wanted(texts: Sequence[LabelledText], labels: Sequence[str]) -> LabelledData:
    found = Counter(entity.label for labelled in texts for entity in labelled.entities)
    known = set(found).union(*(labelled.labels or () for labelled in texts))
    if missing := sorted(set(labels) - set(found)):
        raise WrongUsage(
            f"no text has an entity labelled {missing[0]!r}; there are: {', '.join(sorted(found))}"
        )
    wanted = set(labels) or known
    kept = tuple(
        msgspec.structs.replace(text, entities=tuple(e for e in text.entities if e.label in wanted))
        for text in texts
    )
    if not any(text.entities for text in kept):
        raise WrongUsage("the file has no entities")
    return LabelledData(
        texts=kept,
        asked=tuple(
            tuple(
                sorted(wanted & (known if t.labels is None else {*t.labels, *(e.label for e in t.entities)}))
            )
            for t in kept
        ),
        counts=tuple(
            sorted(((k, n) for k, n in found.items() if k in wanted), key=lambda item: (-item[1], item[0]))
        ),
        left_out=sum(n for label, n in found.items() if label not in wanted),
    )


def _told(problems: Sequence[str]) -> str:
    shown = "\n  ".join(problems[:SHOWN_PROBLEMS])
    more = len(problems) - SHOWN_PROBLEMS
    count = f"{len(problems)} problem{'' if len(problems) == 1 else 's'}"
    return f"{count} in the labelled texts:\n  {shown}" + (f"\n  … {more} more" if more > 0 else "")
