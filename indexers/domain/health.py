"""Health of a document: 1 less a penalty for each rule that it breaks, with the reasons. Pure.

Health lowers a document's rank and never hides it. Lengths are counted in columns: a Hangul syllable or an ideograph
says about as much as two Latin letters and counts as two characters.

The time limit of a pattern is the only thing here that isn't a function of the values: one that runs out of it finds
nothing in that text, and is told of.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

import regex

from indexers.domain.entities.labels import PatternRule
from indexers.domain.entities.patterns import compile_patterns

RuleName = Literal["short", "long", "transient", "reference", "untagged"]
RULE_NAMES: Final[tuple[RuleName, ...]] = ("short", "long", "transient", "reference", "untagged")
#: Counts changes of what the rules mean.
_VERSION: Final = "health-1"
#: Patterns look at the beginning of a text, runs of white space as one, each for so many seconds at most.
_JUDGED_CHARACTERS: Final = 20_000
_PATTERN_SECONDS: Final = 0.25
_DECIMALS: Final = 4

#: A line that has one of these says something about a command: it wasn't merely run.
_NO_SENTENCE = (
    r"(?!.*(?:\b(?i:is|are|was|were|be|should|must|may|can|cannot|needs?|requires?|means?|fails?|because|when|if|after"
    r"|before|never|always|not|don't|to)\b|[은는이가]\s|[다요]\.?\s*(?:\n|\Z)))"
)
_COMMAND = (
    r"(?:sudo\s+)?"
    r"(?:git\s+(?:status|add|commit|push|pull|checkout|switch|rebase|stash|fetch|clone|merge|log|diff|reset|branch)"
    r"|(?:npm|pnpm|yarn|bun)\s+(?:i|ci|install|run|test|start|build|add)|npx\s+\S+|pip3?\s+install|uv\s+(?:sync|run|pip)"
    r"|cargo\s+(?:build|run|test|check)|go\s+(?:build|test|mod|vet)|make\s+(?:test|build|install|clean|all)"
    r"|(?:docker|podman)\s+(?:compose|run|build|ps|pull|exec)|terraform\s+(?:init|plan|apply)"
    r"|kubectl\s+(?:get|apply|delete|describe|logs|exec|rollout|scale)|helm\s+(?:install|upgrade|template)"
    r"|(?:ls|cd|cat|rm|cp|mv|mkdir|tail|head|chmod|touch)\s+[-~./]\S*|curl\s+(?:-\S*|https?:\S*)|(?:ssh|scp)\s+\S+@\S+"
    r"|(?:python3?|node|bash|sh)\s+(?:-\w+|\S+\.(?:py|js|ts|sh))|pytest|(?:apt|apt-get|brew|dnf)\s+install"
    r"|systemctl\s+\w+)(?![A-Za-z0-9_-])"
)
_RAN_KO = r"실행\s?(?:함|했음|했다|했습니다|완료)\s*\.?\s*\Z"
_FENCE = r"(?:```\w*\s+|`)?"
#: A text that is a command somebody ran. What one should run, or what a command does, is no such text.
TRANSIENT_PATTERNS: Final = (
    r"\A(?:```\w*\s+)?(?:[$❯%]|PS [A-Z]:\\\S*>)\s+\S",
    rf"\A{_NO_SENTENCE}(?:(?i:ran|executed|running|실행(?:한 명령)?)\s*:?\s+)?{_FENCE}{_COMMAND}",
    r"\A(?i:ran|executed)(?:\s+(?:the\s+)?command)?\s*:?\s*`[^`\n]{1,200}`\s*\.?\s*\Z",
    rf"\A(?:`[^`\n]{{1,200}}`|{_COMMAND}[^`\n]{{0,200}}?)\s*(?:명령어?)?[을를]?\s*{_RAN_KO}",
)
#: A commit or a pull request named by its number: the repository knows it, and soon nobody asks for it.
REFERENCE_PATTERNS: Final = (
    r"(?<!\w)(?i:commit|revision|커밋)[\s:#(`]{1,4}(?=[a-f]*\d)[0-9a-f]{7,40}(?![0-9A-Za-z_])",
    r"(?<!\w)(?=[a-f]*\d)[0-9a-f]{40}(?![0-9A-Za-z_])",
    r"(?<!\w)(?:(?i:pull|merge)[ -](?i:request)|풀\s?리퀘스트|PR|MR)\s?[#!]?\d+(?![A-Za-z_])",
    r"https?://[^\s/]+/\S{1,200}/(?:pull|pulls|commit|commits|merge_requests|pull-requests)/[0-9a-f]+",
)
#: Patterns of the rules that have some, where the settings give no others.
BUILT_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "transient": TRANSIENT_PATTERNS,
    "reference": REFERENCE_PATTERNS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """`characters`: of short and long. `patterns`: of transient and reference, of which one must be found."""

    name: RuleName
    penalty: float
    characters: int = 0
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRules:
    """0 <= floor <= start <= 1; penalties 0..1. Of a type of document that isn't named, no rule is asked."""

    start: float = 1.0
    floor: float = 0.0
    by_doc_type: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Equal for equal rules: where it changes, every document is judged again."""
        rules = {
            doc_type: [[r.name, r.penalty, r.characters, r.patterns] for r in rules]
            for doc_type, rules in self.by_doc_type.items()
        }
        said = json.dumps([self.start, self.floor, rules], sort_keys=True, ensure_ascii=True)
        return f"{_VERSION}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One rule that was broken, and by how much that lowers the health."""

    rule: str
    penalty: float

    def __str__(self) -> str:
        """As rows store it: `short:-0.4`."""
        return f"{self.rule}:-{self.penalty!r}"

    @classmethod
    def parse(cls, written: str) -> Reason:
        """ValueError where it isn't one."""
        rule, _, penalty = written.rpartition(":-")
        if not rule:
            raise ValueError(f"{written!r} is no reason like `short:-0.4`")
        return cls(rule=rule, penalty=float(penalty))


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`value` is max(floor, start - the penalties). `timed_out`: rules whose patterns took too long."""

    value: float
    reasons: tuple[Reason, ...]
    timed_out: tuple[RuleName, ...] = ()


def assess(doc_type: str, body: str, tags: Sequence[str], rules: HealthRules) -> Health:
    """`body`: the text without its frontmatter."""
    due = [rule for rule in rules.by_doc_type.get(doc_type, ()) if rule.penalty > 0]
    length = columns(body) if due else 0
    reasons: list[Reason] = []
    timed_out: list[RuleName] = []
    for rule in due:
        try:
            broken = _is_broken(rule, body, length, tags)
        except (TimeoutError, MemoryError):
            timed_out.append(rule.name)
            continue
        if broken:
            reasons.append(Reason(rule=rule.name, penalty=rule.penalty))
    value = max(rules.floor, rules.start - sum(reason.penalty for reason in reasons))
    return Health(value=round(value, _DECIMALS), reasons=tuple(reasons), timed_out=tuple(timed_out))


def columns(text: str) -> int:
    """Characters, wide ones (East Asian) counted twice, a run of white space once."""
    line = " ".join(text.split())
    if line.isascii():
        return len(line)
    return len(line) + sum(unicodedata.east_asian_width(character) in "WF" for character in line)


def check_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The same. ValueError says which pattern can't be used, and why."""
    compile_patterns(tuple(PatternRule(label=pattern[:40], pattern=pattern) for pattern in patterns))
    return patterns


def _is_broken(rule: Rule, body: str, length: int, tags: Sequence[str]) -> bool:
    match rule.name:
        case "short":
            return length < rule.characters
        case "long":
            return length > rule.characters
        case "untagged":
            return not tags
    beginning = _tidy(body[:_JUDGED_CHARACTERS])
    return any(
        _compiled(p).search(beginning, timeout=_PATTERN_SECONDS, concurrent=True) for p in rule.patterns
    )


def _tidy(text: str) -> str:
    """Each line without needless blanks, so that no pattern has to try them all; blank lines left out."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return "\n".join(line for line in lines if line)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)
