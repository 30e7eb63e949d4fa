"""What is looked for in a namespace's documents: labels of the model, patterns of its own. Pure.

The shape is that of `PUT /v1/namespaces/{ns}/labels` and of the control row, `retired` and `version` apart.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

#: Raised with every change of windows, spans, recognisers or evidence that finds other mentions in the same text.
RULES_VERSION: Final = "1"
LABELS_MAX: Final = 40
PATTERNS_MAX: Final = 20
PATTERN_MAX_CHARS: Final = 500
DESCRIPTION_MAX_CHARS: Final = 500
THRESHOLD_MIN: Final = 0.05
DEFAULT_THRESHOLD: Final = 0.5
#: Labels of the rules that stand in front of the model in every namespace (recognisers).
PATTERN_LABELS: Final = ("incident", "code", "version", "path", "url", "host", "email")
_NAME = re.compile(r"[\w][\w.-]{0,63}")
_PROMPT = re.compile(r"\w(?:[\w .,'&/()-]{0,98}[\w)])?")


class EntityLabel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A kind of thing that the model looks for."""

    name: str
    #: What the model reads in place of the name; the name where none is given.
    prompt: str = ""
    #: Least confidence of a mention, 0.05 to 1.
    threshold: float = DEFAULT_THRESHOLD
    #: For people: what counts and what doesn't.
    description: str = ""

    def __post_init__(self) -> None:
        if not self.prompt:
            msgspec.structs.force_setattr(self, "prompt", self.name)


class PatternRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A namespace's own rule: what the regular expression finds is named so, whatever the model says."""

    label: str
    pattern: str


class NamespaceLabels(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that decides which mentions a text has, but for the model. Hashable: equal ones may share a model call."""

    labels: tuple[EntityLabel, ...] = ()
    patterns: tuple[PatternRule, ...] = ()
    #: Names that stood here before: their edges of documents not extracted since still have to go.
    retired: tuple[str, ...] = ()
    #: Grows with each change that finds other mentions.
    version: int = 0

    @property
    def current(self) -> tuple[str, ...]:
        """Every label that a mention may have, in a fixed order."""
        found = (*(label.name for label in self.labels), *PATTERN_LABELS, *(p.label for p in self.patterns))
        return tuple(dict.fromkeys(found))

    @property
    def names(self) -> tuple[str, ...]:
        """`current`, then the retired ones: what a document's extraction has to tell of, if only that there is none."""
        return tuple(dict.fromkeys((*self.current, *self.retired)))

    @property
    def rules(self) -> list[list[Any]]:
        """What changes mentions, as plain values. Descriptions are for people and don't count."""
        labels = [[label.name, label.prompt, label.threshold] for label in self.labels]
        return [labels, [[rule.label, rule.pattern] for rule in self.patterns]]

    def fingerprint(self, model_id: str) -> str:
        """Another string means: extract again."""
        said = json.dumps([RULES_VERSION, model_id, self.version, self.rules], ensure_ascii=False)
        return f"{model_id}:{self.version}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"

    def to_value(self) -> dict[str, Any]:
        """As plain data; `from_value` reads it back."""
        value: dict[str, Any] = msgspec.to_builtins(self)
        return value


def from_value(value: Mapping[str, Any]) -> NamespaceLabels:
    """Checked; ValueError names the place (`$.labels[2].threshold`) or the label at fault.

    Whether a pattern is a safe regular expression is said by `patterns.compile_patterns`.
    """
    try:
        labels = msgspec.convert(value, NamespaceLabels)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    check(labels)
    return labels


def check(labels: NamespaceLabels) -> None:
    """Raises ValueError for what can't be used."""
    _check_count("labels", len(labels.labels), LABELS_MAX)
    _check_count("patterns", len(labels.patterns), PATTERNS_MAX)
    _check_distinct("label", (label.name for label in labels.labels))
    # A span's label is the prompt: two labels of one prompt couldn't be told apart.
    _check_distinct("prompt", (label.prompt for label in labels.labels))
    for label in labels.labels:
        _check_label(label)
    for rule in labels.patterns:
        _check_name(rule.label)
        if not 0 < len(rule.pattern) <= PATTERN_MAX_CHARS:
            msg = f"pattern of {rule.label!r}: give 1 to {PATTERN_MAX_CHARS} characters"
            raise ValueError(msg)


def changed(old: NamespaceLabels, new: NamespaceLabels, *, settled: bool = False) -> NamespaceLabels:
    """`new` as the successor of `old`: its version and retired labels follow from both.

    `settled`: every document has been extracted with `old`, so no edge of its retired labels is left.
    """
    if old.rules == new.rules:
        return msgspec.structs.replace(new, retired=old.retired, version=old.version)
    before = old.current if settled else old.names
    kept = set(new.current)
    retired = tuple(sorted(name for name in set(before) if name not in kept))
    return msgspec.structs.replace(new, retired=retired, version=old.version + 1)


def _check_label(label: EntityLabel) -> None:
    _check_name(label.name)
    if not _PROMPT.fullmatch(label.prompt):
        msg = f"label {label.name!r}: the prompt {label.prompt!r} isn't a few plain words, at most 100 characters"
        raise ValueError(msg)
    if not THRESHOLD_MIN <= label.threshold <= 1:
        msg = f"label {label.name!r}: threshold {label.threshold} is not between {THRESHOLD_MIN} and 1"
        raise ValueError(msg)
    if len(label.description) > DESCRIPTION_MAX_CHARS:
        msg = f"label {label.name!r}: a description has at most {DESCRIPTION_MAX_CHARS} characters"
        raise ValueError(msg)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        msg = f"{name!r} can't name a label: give letters, digits, '_', '.' and '-', at most 64"
        raise ValueError(msg)


def _check_distinct(kind: str, names: Iterable[str]) -> None:
    seen = Counter(name.casefold() for name in names)
    twice = [name for name, times in seen.items() if times > 1]
    if twice:
        msg = f"{kind} {twice[0]!r} is given more than once (capitals don't count)"
        raise ValueError(msg)


def _check_count(what: str, found: int, most: int) -> None:
    if found > most:
        msg = f"{found} {what}: a namespace has at most {most}"
        raise ValueError(msg)


def _default(name: str, description: str) -> EntityLabel:
    return EntityLabel(name=name, description=description)


DEFAULT_LABELS: Final = NamespaceLabels(
    labels=(
        _default("person", "A human being by name: Alice Novak, @ben, 김민수."),
        _default("organization", "A company, authority, school or other body: Northwind, the IETF."),
        _default("team", "A group of people within an organisation: the payments team, SRE."),
        _default("system", "A whole of several parts that is run or built: Atlas, the data warehouse."),
        _default("service", "A part that runs and answers others: checkout-api, the billing service."),
        _default("technology", "A language, product, protocol or tool: PostgreSQL, gRPC, Kubernetes."),
        _default("concept", "A named idea or method: blue-green deployment, eventual consistency."),
        _default("location", "A place: Berlin, eu-west-1, meeting room 4."),
        _default("incident", "A disturbance by its name or number: INC-2041, the March outage."),
        _default("project", "An undertaking with an end: Project Falcon, the ledger migration."),
        _default("event", "Something that is held or happens: Q3 planning, PyCon."),
        _default("date", "A day, a period or a time: 3 March 2026, last Friday, Q3."),
    )
)
