"""Health of any text under any rules: bounded, and what the stored reasons say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.frontmatter import DOC_TYPES
from indexers.domain.health import RULE_NAMES, HealthRules, Reason, Rule, assess
from indexers.settings import HealthSettings

penalties = st.floats(0, 1, allow_subnormal=True)
rules = st.builds(
    Rule,
    name=st.sampled_from(RULE_NAMES),
    penalty=penalties,
    characters=st.integers(0, 60),
    patterns=st.sampled_from([(), ("a",), (r"\d{2}", "가")]),
)
bodies = st.text(max_size=80) | st.sampled_from(["git status", "see PR #12", "커밋 3f2a91c에서", "x" * 600])


@given(
    body=bodies,
    tags=st.lists(st.text(max_size=3), max_size=2),
    doc_type=st.sampled_from(DOC_TYPES),
    own=st.lists(rules, max_size=5, unique_by=lambda rule: rule.name),
    bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)),
)
def test_health_is_bounded_and_follows_from_its_reasons(
    body: str, tags: list[str], doc_type: str, own: list[Rule], bounds: tuple[float, float]
) -> None:
    floor, start = sorted(bounds)
    known = HealthRules(start=start, floor=floor, by_doc_type={"memory": tuple(own)})
    found = assess(doc_type, body, tags, known)
    stored = [str(reason) for reason in found.reasons]
    lost = sum(Reason.parse(written).penalty for written in stored)
    assert found.value == pytest.approx(max(floor, start - lost), abs=1e-4)
    assert tuple(Reason.parse(written) for written in stored) == found.reasons
    assert set(found.reasons) <= {Reason(rule=rule.name, penalty=rule.penalty) for rule in own}
    assert found.reasons == () or doc_type == "memory"
    assert assess(doc_type, body, tags, known) == found


@given(bodies, st.lists(st.text(max_size=3), max_size=2), st.sampled_from(DOC_TYPES))
def test_no_document_is_below_the_floor(body: str, tags: list[str], doc_type: str) -> None:
    assert 0.1 <= assess(doc_type, body, tags, HealthSettings().rules).value <= 1


@given(st.text(max_size=60))
def test_more_text_never_makes_a_memory_shorter(body: str) -> None:
    shorter = {r.rule for r in assess("memory", body, ("t",), HealthSettings().rules).reasons}
    longer = {r.rule for r in assess("memory", f"{body} and more", ("t",), HealthSettings().rules).reasons}
    assert not ("short" in longer and "short" not in shorter)
    assert not ("long" in shorter and "long" not in longer)
