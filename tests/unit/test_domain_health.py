"""Health of a document: which rules a text breaks, and what that costs."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import ValidationError

from indexers.domain.frontmatter import DOC_TYPES
from indexers.domain.health import Health, HealthRules, Reason, Rule, assess, columns
from indexers.domain.sources import SOURCE_RANKS, source_of, weight
from indexers.settings import HealthSettings, IndexingSettings

RULES = HealthSettings().rules
FINE = "The crane of pier 9 lifts twelve tons, and no more."


def memory(body: str, *, tags: tuple[str, ...] = ("ops",), rules: HealthRules = RULES) -> Health:
    return assess("memory", body, tags, rules)


def broken(body: str) -> list[str]:
    """Names of the rules but for length and tags."""
    return [r.rule for r in memory(body).reasons if r.rule not in ("short", "long")]


def rules_of(**settings: Any) -> HealthRules:
    return HealthSettings.model_validate(settings).rules


@pytest.mark.parametrize(
    ("body", "tags", "expected"),
    [
        pytest.param(FINE, ("ops",), Health(value=1.0, reasons=()), id="fine"),
        pytest.param("x" * 30, ("ops",), Health(value=1.0, reasons=()), id="30 characters"),
        pytest.param(
            "x" * 29,
            ("ops",),
            Health(value=0.6, reasons=(Reason(rule="short", penalty=0.4),)),
            id="29 characters",
        ),
        pytest.param(
            "x " * 14 + "\n" * 40 + "x",
            ("ops",),
            Health(value=0.6, reasons=(Reason(rule="short", penalty=0.4),)),
            id="white space is one",
        ),
        pytest.param("y" * 500, ("ops",), Health(value=1.0, reasons=()), id="500 characters"),
        pytest.param(
            "y" * 501,
            ("ops",),
            Health(value=0.8, reasons=(Reason(rule="long", penalty=0.2),)),
            id="501 characters",
        ),
        pytest.param(
            FINE, (), Health(value=0.85, reasons=(Reason(rule="untagged", penalty=0.15),)), id="no tags"
        ),
        pytest.param(
            "git push, see PR #12",
            (),
            Health(
                value=0.1,
                reasons=(
                    Reason(rule="short", penalty=0.4),
                    Reason(rule="transient", penalty=0.35),
                    Reason(rule="reference", penalty=0.4),
                    Reason(rule="untagged", penalty=0.15),
                ),
            ),
            id="the floor",
        ),
    ],
)
def test_health_of_a_memory(body: str, tags: tuple[str, ...], expected: Health) -> None:
    assert memory(body, tags=tags) == expected


def test_a_korean_syllable_counts_as_two_letters() -> None:
    assert (columns("가람호는 부산에"), columns("가 나\n\n다"), columns("crane")) == (15, 8, 5)
    assert memory("부산 담당자는 김민준 과장이다").reasons == (Reason(rule="short", penalty=0.4),)
    assert memory("부산 물류센터의 담당자는 김민준이다.").reasons == ()
    assert [r.rule for r in memory("가" * 251).reasons] == ["long"]


@pytest.mark.parametrize("doc_type", ["note", "skill", "context", "session_summary"])
def test_only_memories_are_judged_by_default(doc_type: str) -> None:
    for body in ("", "git push", "commit 3f2a91c", "word " * 10_000):
        assert assess(doc_type, body, (), RULES) == Health(value=1.0, reasons=())


@pytest.mark.parametrize(
    "body",
    [
        "git status",
        "ran `npm install`",
        "Ran git push origin main",
        "$ ls -la",
        "```bash\ngit rebase -i HEAD~3\n```",
        "make test",
        "cd ~/harbour && pytest -q",
        "Executed: `./tidy.sh --all`",
        "npm install을 실행했다",
        "`npm install` 실행함",
        "실행한 명령: docker ps -a",
    ],
)
def test_commands_that_were_merely_run_are_transient(body: str) -> None:
    assert broken(body) == ["transient"]


@pytest.mark.parametrize(
    "body",
    [
        "git push --force is forbidden on main",
        "Make sure the crane is oiled",
        "To undo a release, run `git revert`",
        "Use git rebase before merging a branch",
        "Cat photos go to the harbour channel",
        "ssh keys rotate weekly",
        "git push는 금지다",
        "배포 전에 `make test`를 꼭 돌린다",
        "committed to the defaced wall of 1234567 bricks",
        "PRs need two reviewers; the MR template helps",
        "풀 리퀘스트는 두 사람이 본다",
    ],
)
def test_what_speaks_of_commands_and_requests_is_neither(body: str) -> None:
    assert broken(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "Fixed in commit 3f2a91c by Ada",
        "reverted commit:3F2A91C".lower(),
        "see PR #12",
        "Merge request !7 waits",
        "https://git.example/harbour/crane/pull/33 waits",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709 is the good one",
        "커밋 3f2a91c에서 고쳤다",
        "PR 12에서 고침",
        "풀 리퀘스트 #34 참고",
    ],
)
def test_commits_and_pull_requests_are_references(body: str) -> None:
    assert broken(body) == ["reference"]


def test_rules_are_configured_for_all_and_for_one_type() -> None:
    rules = rules_of(
        start=0.9,
        floor=0.3,
        short={"penalty": 0.1, "characters": 10, "doc_types": ["memory", "note"]},
        transient={"penalty": 0.25, "patterns": ["(?i)tide table"]},
        overrides={
            "skill": {"long": {"characters": 20}},
            "memory": {"short": {"penalty": 0}, "reference": {"patterns": [r"JIRA-\d+"]}},
        },
    )
    assert assess("note", "tiny", (), rules) == Health(
        value=0.8, reasons=(Reason(rule="short", penalty=0.1),)
    )
    assert assess("skill", "x" * 21, (), rules) == Health(
        value=0.7, reasons=(Reason(rule="long", penalty=0.2),)
    )
    assert memory("Tide Table", rules=rules) == Health(
        value=0.65, reasons=(Reason(rule="transient", penalty=0.25),)
    )
    assert memory("JIRA-12", rules=rules) == Health(
        value=0.5, reasons=(Reason(rule="reference", penalty=0.4),)
    )
    assert memory("see PR #12", rules=rules) == Health(value=0.9, reasons=())
    assert rules.by_doc_type["session_summary"] == ()
    assert set(rules.by_doc_type) == set(DOC_TYPES)


@pytest.mark.parametrize(
    "settings",
    [
        {"shrt": {"penalty": 0.1}},
        {"short": {"penalty": 0.1, "characters": 3, "words": 3}},
        {"short": {"penalty": -0.1, "characters": 3}},
        {"untagged": {"penalty": 1.1}},
        {"untagged": {"penalty": 0.1, "characters": 3}},
        {"long": {"penalty": 0.1, "characters": 3, "doc_types": ["novel"]}},
        {"transient": {"penalty": 0.1, "patterns": ["("]}},
        {"transient": {"penalty": 0.1, "patterns": ["x*"]}},
        {"overrides": {"novel": {}}},
        {"overrides": {"note": {"short": {"patterns": ["x"]}}}},
        {"start": 0.5, "floor": 0.6},
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        HealthSettings.model_validate(settings)


def test_a_pattern_that_takes_too_long_finds_nothing_and_is_told_of() -> None:
    rules = rules_of(transient={"penalty": 0.3, "patterns": [r"(a|aa)+$"]}, floor=0.0)
    started = time.monotonic()
    found = memory("a" * 5_000 + "b", rules=rules)
    assert (found.timed_out, [r.rule for r in found.reasons]) == (("transient",), ["long"])
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    "text",
    [
        "commit " * 3_000,
        "https://a/" * 2_000,
        "`" * 20_000,
        "git " * 5_000,
        " " * 20_000,
        "ran " + " \n" * 9_000,
    ],
)
def test_the_built_in_patterns_take_no_time(text: str) -> None:
    started = time.process_time()
    assert memory(text).timed_out == ()
    assert time.process_time() - started < 0.25


def test_the_fingerprint_follows_the_rules() -> None:
    default = IndexingSettings().health.rules.fingerprint
    assert default == RULES.fingerprint == rules_of(short={"penalty": 0.4, "characters": 30}).fingerprint
    others = [
        rules_of(start=0.9),
        rules_of(floor=0.2),
        rules_of(short={"penalty": 0.4, "characters": 31}),
        rules_of(short={"penalty": 0.4, "characters": 30, "doc_types": ["memory", "note"]}),
        rules_of(overrides={"note": {"untagged": {}}}),
        rules_of(transient={"penalty": 0.35, "patterns": ["x"]}),
    ]
    assert len({default, *(rules.fingerprint for rules in others)}) == 7


@pytest.mark.parametrize("written", ["short", "short-0.4", ":-0.4", "short:-much"])
def test_what_is_no_reason(written: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Reason.parse(written)


def test_a_rule_that_costs_nothing_is_not_asked() -> None:
    rules = HealthRules(by_doc_type={"memory": (Rule(name="transient", penalty=0.0, patterns=("(",)),)})
    assert memory("anything", rules=rules) == Health(value=1.0, reasons=())


def test_sources() -> None:
    assert [source_of(*pair) for pair in (("cron", "memory"), (None, "memory"), (None, "crane"))] == [
        "cron",
        "MEMORY.md",
        "unknown",
    ]
    assert {source: round(weight(source), 4) for source in SOURCE_RANKS} == {
        "memory_tool": 1.0,
        "identity.md": 0.9889,
        "USER.md": 0.9889,
        "MEMORY.md": 0.9778,
        "session_search": 0.9778,
        "sync": 0.9667,
        "cron": 0.9556,
        "manual_fix": 0.9444,
        "test": 0.9222,
        "unknown": 0.9,
    }
    assert (weight("elsewhere"), weight("elsewhere", {"unknown": 9}), weight("a", {"a": 9})) == (
        0.9,
        1.0,
        1.0,
    )
