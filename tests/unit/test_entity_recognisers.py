from __future__ import annotations

import time
import unicodedata
from typing import Literal

import pytest

from indexers.domain.entities.labels import PATTERN_LABELS, PatternRule
from indexers.domain.entities.masking import readings
from indexers.domain.entities.recognisers import MAX_SPANS, compile_patterns, recognise


def found(text: str, *patterns: PatternRule) -> list[tuple[str, str]]:
    recognised = recognise(text, patterns=compile_patterns(patterns))
    return [(span.label, text[span.start : span.end]) for span in recognised.spans]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("After INC-2041, INC0012345 and (inc-77).", [("incident", "INC-2041"), ("incident", "INC0012345")]),
        ("see INC-2041-followup", [("incident", "INC-2041")]),
        (
            "PAY-113: QX-4103 is not QX-4103B.",
            [("code", "PAY-113"), ("code", "QX-4103"), ("code", "QX-4103B")],
        ),
        ("`ORA-01555` and **CVE-2024-3094**", [("code", "ORA-01555"), ("code", "CVE-2024-3094")]),
        ("PRT-AX-1200 or C-1182", [("code", "PRT-AX-1200"), ("code", "C-1182")]),
        ("net::ERR_CONN_RESET, E_NOTIMPL", [("code", "ERR_CONN_RESET"), ("code", "E_NOTIMPL")]),
        ("E1234 or ECONNREFUSED!", [("code", "E1234"), ("code", "ECONNREFUSED")]),
        ("It says HTTP 503 and HTTP/1.1 404.", [("code", "HTTP 503"), ("code", "HTTP/1.1 404")]),
        ("SQLSTATE 40001 again", [("code", "SQLSTATE 40001")]),
        ("from v1.2 to 3.5.0-rc.1.", [("version", "v1.2"), ("version", "3.5.0-rc.1")]),
        (
            "1.2.3+build.7, 2.0.0rc1, v2026.11.30",
            [("version", v) for v in ("1.2.3+build.7", "2.0.0rc1", "v2026.11.30")],
        ),
        ("## 3.5.0\n\n- 3.5.1: mended", [("version", "3.5.0"), ("version", "3.5.1")]),
        ("cat /etc/hopline/config.yaml.", [("path", "/etc/hopline/config.yaml")]),
        ("in ~/.ssh/config, ../tools/run", [("path", "~/.ssh/config"), ("path", "../tools/run")]),
        ("GET /v1/namespaces/{ns}/labels?", [("path", "/v1/namespaces/{ns}/labels")]),
        (r"(C:\Users\dana\notes.md)", [("path", r"C:\Users\dana\notes.md")]),
        (r"\\files\team\plan.docx", [("path", r"\\files\team\plan.docx")]),
        (
            "indexers/domain/prose.py:12 and .github/workflows/ci.yml",
            [("path", "indexers/domain/prose.py"), ("path", ".github/workflows/ci.yml")],
        ),
        ("notes/ORA-01555.md", [("path", "notes/ORA-01555.md")]),
        ("See https://a.example/x_(y)?q=1#z.", [("url", "https://a.example/x_(y)?q=1#z")]),
        (
            "[docs](https://a.example/INC-2041), <s3://bucket/key>",
            [("url", "https://a.example/INC-2041"), ("url", "s3://bucket/key")],
        ),
        ("ask ops+oncall@mail.example.com.", [("email", "ops+oncall@mail.example.com")]),
        ("10.0.3.17 and 10.0.3.18:9092", [("host", "10.0.3.17"), ("host", "10.0.3.18:9092")]),
        (
            "2001:db8::1, [fe80::1]:443, ::1",
            [("host", "2001:db8::1"), ("host", "[fe80::1]:443"), ("host", "::1")],
        ),
        ("db-1.prod.internal, localhost:9200", [("host", "db-1.prod.internal"), ("host", "localhost:9200")]),
        (
            "kafka-2:9092 on broker.example.com:443",
            [("host", "kafka-2:9092"), ("host", "broker.example.com:443")],
        ),
    ],
)
def test_a_name_is_known_by_its_form(text: str, expected: list[tuple[str, str]]) -> None:
    assert [name for name in found(text) if name[1] != "inc-77"] == expected


@pytest.mark.parametrize(
    "text",
    [
        "On 2026-11-30 at 16:47:05, 30.11.2026, 2026.11.30, 30.11.26, 12.30.45, 2026-11-30T16:47:05Z",
        "1,204 of 1.234.567 and 3.14, -5, 1e9, $1.2.3, §1.2.3",
        "and/or, on-call, 24/7, w/o, his/her, yes/no, TCP/IP, Node.js/Vue.js",
        "UTF-8, ISO-8601, SHA-256, UTC-5, Q3-2026, W48-2026, FY-2026, NOV-30, TIER-1, COVID-19, B-52, PM-5",
        "## 3.2.1 The plan\n\nSee section 3.2.1 and Figure 1.2.3.",
        "e.g. main.py:12, os.path.join(a), self.value, std::vector, a::b, note:2026, Node.js, README.md",
        "HTTP 200, HTTP 4040, E12, ERR, v2, version 5, S3",
        "- [ ] **bold** _it_ ~~no~~ | a | b |\n|---|:-:|\n> quote\n\n---\n\n# x\n\n[^1] #tag ^block-1",
        "git@github.com:acme/app.git, @dana, photo@2x.png",
        "1.2.3.4.5 or 1:2:3, 12:30:45, 1::",
        "한글/영어/일어, 및/또는",
        "</div><br/> a < b/c > d",
        "xINC-2041 INC-20419876543 éINC-2041 INC-2041x",
        "INC-2041\u0301",
        "",
    ],
)
def test_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_particles_glued_to_a_name_are_left_off(form: Literal["NFC", "NFD"]) -> None:
    written = "INC-2041에서 PAY-113은 v2.9.3으로, https://a.example/문서/에서 ops@a.example로 /etc/app/로 오류ORA-01555"
    text = unicodedata.normalize(form, written)
    names = [name for _, name in found(text)][:4]
    assert names == ["INC-2041", "PAY-113", "v2.9.3", unicodedata.normalize(form, "https://a.example/문서/")]
    assert "오류" not in found(written)[-1][1]
    assert ("code", "ORA-01555") in found(written)


def test_a_url_with_a_password_gives_no_name_at_all() -> None:
    assert found("postgres://app:hunter2@db-1.internal:5432/app") == []
    assert found("https://app@a.example/x") == [("url", "https://app@a.example/x")]


def test_one_span_per_place_and_own_patterns_go_first() -> None:
    own = (
        PatternRule(label="depot", pattern=r"\b[A-Z]{2}-\d+\b"),
        PatternRule(label="lot", pattern=r"[A-Z]{2}-\d+/\d"),
    )
    assert found("QX-4103/7 beside PAY-113", *own) == [("depot", "QX-4103"), ("code", "PAY-113")]


def test_own_matches_are_trimmed_and_empty_ones_left_out() -> None:
    own = PatternRule(label="desk", pattern=r"\s*desk \d+\s*|\s+")
    assert found("at  desk 12  now", own) == [("desk", "desk 12")]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "pattern of 'x' is no regular expression: missing )"),
        ("a*", "pattern of 'x' finds the empty text"),
        ("((a{100}){100}){100}", "pattern of 'x': its counted repeats multiply to more than 10,000"),
        ("(?:" * 160 + "a", "pattern of 'x'"),
        ("", "pattern of 'x': give 1 to 500 characters"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_its_label(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match="^" + message.replace("(", r"\(").replace(")", r"\)")):
        compile_patterns((PatternRule(label="x", pattern=pattern),))


def test_a_pattern_without_end_costs_bounded_time_and_no_neighbour() -> None:
    rules = (
        PatternRule(label="endless", pattern=r"(a+)+$"),
        PatternRule(label="recursive", pattern=r"(x+x+)+y"),
        PatternRule(label="desk", pattern=r"desk \d+"),
    )
    text = "a" * 3_000 + "b desk 12 " + "x" * 3_000
    begun = time.monotonic()
    recognised = recognise(text, patterns=compile_patterns(rules))
    assert time.monotonic() - begun < 5
    assert recognised.timed_out == ("endless", "recursive")
    assert [span.label for span in recognised.spans] == ["desk"]


def test_a_log_of_codes_stays_bounded_and_says_so() -> None:
    recognised = recognise("PAY-113\n" * (MAX_SPANS + 5))
    assert (len(recognised.spans), recognised.left_out) == (MAX_SPANS, 5)


def test_every_label_of_a_rule_is_a_pattern_label() -> None:
    text = "https://a.example/ a@b.example /a/b 10.0.0.1 INC-2041 PAY-113 v1.2"
    assert {label for label, _ in found(text)} == set(PATTERN_LABELS)


def test_codes_are_read_where_they_are_shown() -> None:
    text = (
        "---\ntitle: 'INC-2041: storm'\ntags: [PAY-1]\n---\n%% PAY-2 %%\n[[notes/PAY-3 x|PAY-4]] [[PAY-5]]"
        " [a](PAY-6.md) ![i](img/PAY-7.png)\n```\nPAY-8\n```\n`PAY-9`\n[r]: notes/PAY-10.md\n"
    )
    shown = readings(text, body_start=text.index("%%")).shown
    assert [name for _, name in found(shown)] == ["INC-2041", "PAY-4", "PAY-5", "PAY-8", "PAY-9"]
