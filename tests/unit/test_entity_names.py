"""Which names are one, as a person would judge; how keys come about."""

from __future__ import annotations

import unicodedata

import pytest

from indexers.domain.entities.names import Verdict, compare, name_key, order, shape_of, trim_particles

#: (label, name, other name). Thirty that are one and thirty that are not.
ONE = [
    # English: what a name wears in a sentence, spelling, spacing
    ("team", "Payments Team", "the payments team’s"),
    ("team", "payment team", "payments team"),
    ("service", "payments-api", "Payments API"),
    ("service", "billing_gateway", "**`billing-gateway`**"),
    ("technology", "Kubernetes", "Kubernets"),
    ("technology", "Elasticsearch", "Elastic Search"),
    ("technology", "Node.js runtime", "NodeJS runtime"),
    ("concept", "eventual consistency", "“Eventual  Consistency”"),
    ("project", "Operation Lighthouse", "Operation Lighthose"),
    ("location", "U.S.A.", "USA"),
    ("system", "ｐａｙｍｅｎｔｓ ledger", "Payments Ledger"),
    # Codes: the same one, written otherwise
    ("code", "QX-4103", "`qx-4103`"),
    ("incident", "INC-2041", "inc 2041"),
    ("version", "v1.29.3", "1.29.3"),
    ("system", "Kubernetes 1.29 cluster", "Kubernets 1.29 cluster"),
    # Korean: particles, spacing, legal forms
    ("location", "부산", "부산에서"),
    ("system", "가람호", "가람호는"),
    ("team", "결제 플랫폼팀", "결제플랫폼팀의"),
    ("organization", "㈜한빛소프트", "한빛소프트 주식회사"),
    ("organization", "주식회사 푸른바다", "푸른바다가"),
    ("person", "김민수 씨", "김민수"),
    ("service", "API 게이트웨이", "API게이트웨이를"),
    # Companies: legal forms, ampersands, articles
    ("organization", "Hollis & Rue Ltd.", "Hollis and Rue Ltd"),
    ("organization", "Brightwater GmbH", "Brightwater"),
    ("organization", "The Walton Trading Company", "Walton Trading Co."),
    ("organization", "Marlowe Shipping, Inc.", "Marlowe Shipping Incorporated"),
    ("organization", "Société Hydralis S.A.", "société hydralis"),
    # People: titles, possessives, accents written in two ways
    ("person", "Dr. Alice O’Brien", "Alice O'Brien's"),
    ("person", "Zoe\u0308 Lindqvist", "Zoë Lindqvist"),
    ("person", "Bartholomew Featherstone", "Bartholomew Fetherstone"),
]
NOT_ONE = [
    # English: words that tell things apart
    ("location", "East Gate Terminal", "West Gate Terminal"),
    ("system", "internal payments ledger", "external payments ledger"),
    ("service", "payments-api", "payouts-api"),
    ("service", "order-import-worker", "order-export-worker"),
    ("team", "platform team", "platform test"),
    ("technology", "MySQL", "NoSQL"),
    ("technology", "Java", "JavaScript"),
    ("system", "HRDV", "HRDW"),
    ("system", "HRDV Group", "HRDX Group"),
    ("concept", "strong consistency", "string consistency"),
    # Codes and numbers
    ("code", "QX-4103", "QX-4105"),
    ("code", "QX-4103", "QX-4103B"),
    ("system", "QX-4103", "QZ-4103"),
    ("incident", "INC-2041", "INC-2014"),
    ("version", "1.29.3", "1.293"),
    ("path", "src/payment_retry.py", "src/payment-retry.py"),
    ("system", "Production Cluster 1", "Production Cluster 2"),
    ("host", "db1.internal.example", "db2.internal.example"),
    ("event", "Quarterly Review 2025", "Quarterly Review 2026"),
    # Korean: a syllable is a word
    ("location", "서울남부지방법원", "서울동부지방법원"),
    ("organization", "한국전자통신연구원", "한국전기통신연구원"),
    ("person", "김민수", "김민서"),
    ("person", "김정은", "김정"),
    ("location", "경기도", "경기"),
    # Companies
    ("organization", "Hollis & Rue Ltd.", "Hollis & Roe Ltd."),
    ("organization", "Meridian Foods Inc.", "Meridian Funds Inc."),
    ("organization", "Northern Trading", "Southern Trading"),
    # People
    ("person", "Martin Weber", "Martina Weber"),
    ("person", "John Smithson", "Joan Smithson"),
    ("person", "Christine Andersson", "Christina Andersson"),
]


def joins(label: str, name: str, other: str) -> bool:
    return compare(name_key(name, label), name_key(other, label), label).verdict is Verdict.JOIN


def test_the_table_holds_sixty_pairs() -> None:
    assert (len(set(ONE)), len(set(NOT_ONE))) == (30, 30)


@pytest.mark.parametrize(("label", "name", "other"), ONE)
def test_names_that_a_person_takes_for_one_join(label: str, name: str, other: str) -> None:
    assert joins(label, name, other)
    assert joins(label, other, name)


@pytest.mark.parametrize(("label", "name", "other"), NOT_ONE)
def test_names_that_a_person_tells_apart_do_not_join(label: str, name: str, other: str) -> None:
    assert not joins(label, name, other)
    assert not joins(label, other, name)


@pytest.mark.parametrize(
    ("label", "surface", "key"),
    [
        ("organization", "Smith & Co.", "smith"),
        ("organization", "The Limited", "limited"),
        ("technology", ".NET", ".net"),
        ("technology", "C++", "c++"),
        ("technology", "C#", "c#"),
        ("technology", "node.js", "node.js"),
        ("person", "A. Larsen", "a larsen"),
        ("location", "St. John's Wood", "st johns wood"),
        ("organization", "株式会社みどり", "みどり"),
        ("location", "Санкт-Петербург", "санкт петербург"),
        ("location", "Αθήνα", "αθήνα"),
        ("person", "محمد علي", "محمد علي"),
        ("location", "दिल्ली", "दिल्ली"),
        ("location", "กรุงเทพฯ", "กรุงเทพฯ"),
        ("concept", "--- ** ---", ""),
        ("code", "``", ""),
        ("concept", "", ""),
    ],
)
def test_keys(label: str, surface: str, key: str) -> None:
    assert name_key(surface, label) == key


@pytest.mark.parametrize(
    ("surface", "label", "kept"),
    [
        ("부산에서", "location", "부산"),
        ("부산에서는", "location", "부산"),
        ("부산으로", "location", "부산"),
        ("부산이", "location", "부산"),
        ("가람호는", "system", "가람호"),
        ("가람호와", "system", "가람호"),
        ("한국전력공사의", "organization", "한국전력공사"),
        ("API를", "technology", "API"),
        ("Kafka로", "technology", "Kafka"),
        ("QX-4103은", "code", "QX-4103"),
        ("김민수가", "person", "김민수"),
        # Ends of names that look like particles
        ("부산", "location", "부산"),
        ("제주도", "location", "제주도"),
        ("충무로", "location", "충무로"),
        ("마을", "location", "마을"),
        ("작가", "concept", "작가"),
        ("주간회의", "event", "주간회의"),
        ("김정은", "person", "김정은"),
        ("의", "concept", "의"),
        ("no particle", "concept", "no particle"),
    ],
)
def test_particles_are_cut_off_the_span(surface: str, label: str, kept: str) -> None:
    assert trim_particles(surface, label) == kept
    decomposed = unicodedata.normalize("NFD", surface)
    assert trim_particles(decomposed, label) == unicodedata.normalize("NFD", kept)


@pytest.mark.parametrize(
    ("key", "label", "block"),
    [
        ("payments api", "service", "pa"),
        ("kubernetes 1.29 cluster", "system", "kc 1.29"),
        ("서울남부지방법원", "location", "cjk"),
        ("hrdv", "system", None),
        ("qx 4103", "system", None),
        ("김민수", "person", None),
        ("alexander", "person", None),
        ("src/payment_retry.py", "path", None),
        ("x" * 201, "concept", None),
    ],
)
def test_only_names_of_one_block_are_compared_by_likeness(key: str, label: str, block: str | None) -> None:
    assert shape_of(key, label).block == block


@pytest.mark.parametrize(
    ("label", "name", "other", "reason"),
    [
        ("person", "martin weber", "martina weber", "conflicting_tokens"),
        ("organization", "meridian foods", "meridian funds", "conflicting_tokens"),
        ("technology", "kubernetes", "kubernet", "similar"),
        ("person", "john q smithson", "john smithson", ""),
        ("location", "서울남부지방법원", "서울동부지방법원", "conflicting_tokens"),
        ("system", "production cluster 1", "production cluster 2", ""),
    ],
)
def test_doubts_are_proposed(label: str, name: str, other: str, reason: str) -> None:
    found = compare(name, other, label)
    assert (found.verdict is Verdict.PROPOSE, found.reason) == (reason != "", reason)


def test_longer_names_come_first() -> None:
    assert sorted(["ab", "b", "abc", "aa"], key=order) == ["abc", "aa", "ab", "b"]
