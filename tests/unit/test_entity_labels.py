"""What a namespace may look for, what makes two sets of labels different, and what is kept of the old ones."""

from __future__ import annotations

import re
from typing import Any

import pytest

from indexers.domain.entities.labels import (
    DEFAULT_LABELS,
    PATTERN_LABELS,
    EntityLabel,
    NamespaceLabels,
    PatternRule,
    changed,
    from_value,
)


def labels(*names: str, **more: Any) -> NamespaceLabels:
    return NamespaceLabels(labels=tuple(EntityLabel(name=name) for name in names), **more)


def test_the_defaults_are_valid_and_come_back_as_they_are_stored() -> None:
    assert from_value(DEFAULT_LABELS.to_value()) == DEFAULT_LABELS
    assert [label.name for label in DEFAULT_LABELS.labels] == [
        "person", "organization", "team", "system", "service", "technology", "concept", "location", "incident",
        "project", "event", "date",
    ]  # fmt: skip
    assert {label.threshold for label in DEFAULT_LABELS.labels} == {0.5}
    assert all(label.description for label in DEFAULT_LABELS.labels)


def test_a_label_is_read_by_its_prompt_else_by_its_name() -> None:
    given = from_value({"labels": [{"name": "vessel"}, {"name": "berth", "prompt": "place in a harbour"}]})
    assert [(label.name, label.prompt, label.threshold) for label in given.labels] == [
        ("vessel", "vessel", 0.5),
        ("berth", "place in a harbour", 0.5),
    ]


def test_every_label_that_a_mention_may_have_is_told_of_once_and_the_retired_ones_last() -> None:
    rule = PatternRule(label="berth", pattern=r"B-\d+")
    mine = labels("incident", "vessel", patterns=(rule,), retired=("person",))
    others = [name for name in PATTERN_LABELS if name != "incident"]
    assert mine.current == ("incident", "vessel", *others, "berth")
    assert mine.names == (*mine.current, "person")


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param({"labels": [{"name": "a", "treshold": 0.5}]}, "unknown field `treshold`", id="misspelt"),
        pytest.param({"labels": [{"name": "a", "threshold": "x"}]}, "$.labels[0].threshold", id="type"),
        pytest.param({"labels": [{"name": "a", "threshold": 0.01}]}, "between 0.05 and 1", id="too low"),
        pytest.param({"labels": [{"name": "a", "threshold": 1.5}]}, "between 0.05 and 1", id="too high"),
        pytest.param({"labels": [{"name": "two words"}]}, "can't name a label", id="name"),
        pytest.param({"labels": [{"name": "a" * 65}]}, "at most 64", id="long name"),
        pytest.param({"labels": [{"name": "a", "prompt": "<<ENT>>"}]}, "plain words", id="prompt"),
        pytest.param({"labels": [{"name": "a", "prompt": "p" * 101}]}, "100 characters", id="long prompt"),
        pytest.param({"labels": [{"name": "a"}, {"name": "A"}]}, "more than once", id="twice"),
        pytest.param(
            {"labels": [{"name": "a", "prompt": "x"}, {"name": "b", "prompt": "x"}]}, "prompt 'x'", id="one prompt"
        ),
        pytest.param({"labels": [{"name": f"l{n}"} for n in range(41)]}, "at most 40", id="many"),
        pytest.param({"labels": [{"name": "a", "description": "d" * 501}]}, "500 characters", id="description"),
        pytest.param({"patterns": [{"label": "a", "pattern": ""}]}, "1 to 500", id="empty pattern"),
        pytest.param({"patterns": [{"label": "a", "pattern": "x" * 501}]}, "1 to 500", id="long pattern"),
        pytest.param({"patterns": [{"label": "a b", "pattern": "x"}]}, "can't name", id="pattern's label"),
        pytest.param({"patterns": [{"label": "a", "pattern": "x"}] * 21}, "at most 20", id="many patterns"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_refused_by_name(value: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        from_value(value)


def test_the_fingerprint_is_another_where_other_mentions_may_be_found() -> None:
    base = labels("vessel", "berth")
    rule = PatternRule(label="berth", pattern=r"B-\d+")
    others = [
        base,
        labels("vessel"),
        labels("berth", "vessel"),
        NamespaceLabels(labels=(EntityLabel(name="vessel", threshold=0.6), EntityLabel(name="berth"))),
        NamespaceLabels(labels=(EntityLabel(name="vessel", prompt="ship"), EntityLabel(name="berth"))),
        labels("vessel", "berth", patterns=(rule,)),
        labels("vessel", "berth", version=1),
    ]
    assert len({one.fingerprint("m") for one in others} | {base.fingerprint("m2")}) == len(others) + 1
    described = NamespaceLabels(
        labels=(EntityLabel(name="vessel", description="any ship"), EntityLabel(name="berth"))
    )
    assert described.fingerprint("m") == base.fingerprint("m")
    assert labels("vessel", "berth", retired=("x",)).fingerprint("m") == base.fingerprint("m")


def test_labels_that_go_are_remembered_until_every_document_was_extracted_without_them() -> None:
    first = labels("vessel", "berth")
    second = changed(first, labels("vessel", "crane"))
    assert second == labels("vessel", "crane", retired=("berth",), version=1)
    third = changed(second, labels("gate"))
    assert third == labels("gate", retired=("berth", "crane", "vessel"), version=2)
    assert changed(second, labels("gate"), settled=True) == labels(
        "gate", retired=("crane", "vessel"), version=2
    )
    back = changed(third, labels("vessel"))
    assert back == labels("vessel", retired=("berth", "crane", "gate"), version=3)


def test_a_pattern_that_goes_retires_its_label_and_one_of_every_namespace_never_retires() -> None:
    before = labels("code", patterns=(PatternRule(label="berth", pattern=r"B-\d+"),))
    assert changed(before, labels()) == labels(retired=("berth",), version=1)


def test_a_description_is_no_change_of_what_is_found() -> None:
    before = labels("vessel", retired=("berth",), version=4)
    after = changed(before, NamespaceLabels(labels=(EntityLabel(name="vessel", description="any ship"),)))
    assert (after.version, after.retired, after.labels[0].description) == (4, ("berth",), "any ship")
