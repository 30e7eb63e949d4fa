from __future__ import annotations

import unicodedata

import pytest

from indexers.domain.identity import AgentId, Namespace, Scope, TeamId, TenantId
from indexers.domain.links import (
    Candidate,
    DocumentKeys,
    Resolution,
    TargetKeys,
    document_keys,
    may_resolve,
    resolve,
    target_keys,
)
from indexers.domain.names import LinkType, name_key, path_key, target_key, target_name_key


def candidate(path: str, *aliases: str, width: int = 2, agent: str = "me", doc_id: str = "") -> Candidate:
    keys = document_keys(path, aliases)
    return Candidate(
        doc_id=doc_id or path,
        path=path,
        path_key=keys.path_key,
        name_key=keys.name_key,
        alias_keys=keys.alias_keys,
        scope_width=width,
        agent_id=agent,
    )


def found(
    target: str, *paths: str | Candidate, from_path: str = "a/b.md", link_type: LinkType = "wikilink"
) -> Resolution:
    candidates = [candidate(path) if isinstance(path, str) else path for path in paths]
    key = target_key(target, from_path=from_path, link_type=link_type)
    return resolve(key, from_path=from_path, link_type=link_type, candidates=candidates)


def to(path: str | None, *, ambiguous: bool = False) -> Resolution:
    return Resolution(to_doc_id=path, ambiguous=ambiguous)


@pytest.mark.parametrize(
    ("target", "link_type", "key"),
    [
        ("Plan", "wikilink", "plan.md"),
        ("Plan.md", "embed", "plan.md"),
        ("v1.2.3", "wikilink", "v1.2.3.md"),
        ("Ops//Plan", "wikilink", "ops/plan.md"),
        ("/Ops/Plan", "wikilink", "/ops/plan.md"),
        ("../Plan", "wikilink", "/plan.md"),
        ("./Plan", "wikilink", "/a/plan.md"),
        ("./plan.md", "reference", "plan.md"),
        ("../x/plan.md", "reference", "/x/plan.md"),
        ("../../plan", "wikilink", "/../plan.md"),
        ("STRASSE", "wikilink", "strasse.md"),
        ("Straße", "wikilink", "strasse.md"),
        ("plan.markdown", "reference", "plan.markdown"),
    ],
)
def test_target_keys(target: str, link_type: LinkType, key: str) -> None:
    assert target_key(target, from_path="a/b.md", link_type=link_type) == key


def test_c15_name_of_a_file_in_nfd_and_a_link_in_nfc() -> None:
    decomposed = unicodedata.normalize("NFD", "회의록.md")
    assert path_key(decomposed) == path_key("회의록.md") == "회의록.md"
    assert name_key(f"폴더/{decomposed}") == target_name_key(
        target_key("회의록", from_path="목차.md", link_type="wikilink")
    )
    assert found("회의록", candidate(decomposed, doc_id="minutes"), from_path="목차.md") == to("minutes")


def test_c02_never_fuzzy() -> None:
    assert found("overview (harbour crane)", "overview of tides.md", "crane parts.md") == to(None)
    assert found("overview (harbour crane)", "crane parts.md", "overview (harbour crane).md") == to(
        "overview (harbour crane).md"
    )


def test_exact_path_goes_before_name_and_name_before_alias() -> None:
    assert found("plan", "plan.md", "a/plan.md", candidate("z.md", "plan")) == to("plan.md")
    assert found("plan", "x/plan.md", candidate("z.md", "plan")) == to("x/plan.md")
    assert found("Plan", candidate("z.md", "PLAN")) == to("z.md")
    assert found("ops/plan", "x/ops/plan.md", "plan.md") == to("x/ops/plan.md")
    assert found("ops/plan", "plan.md", "x/notops/plan.md") == to(None)


def test_reference_looks_in_its_own_folder_first() -> None:
    assert found("plan.md", "plan.md", "a/plan.md", link_type="reference") == to("a/plan.md")
    assert found("sub/plan.md", "sub/plan.md", link_type="reference") == to("sub/plan.md")
    assert found("../plan.md", "plan.md", "a/plan.md", link_type="reference") == to("plan.md")
    assert found("../plan.md", "x/plan.md", link_type="reference") == to(None)


def test_nearest_wins_and_is_flagged() -> None:
    assert found("plan", "x/plan.md", "a/c/plan.md") == to("a/c/plan.md", ambiguous=True)
    assert found("plan", candidate("x/plan.md", width=2), candidate("y/plan.md", width=0)) == to(
        "y/plan.md", ambiguous=True
    )
    assert found("plan", "y/plan.md", "x/plan.md") == to("x/plan.md", ambiguous=True)


def test_own_documents_go_before_those_of_other_agents() -> None:
    theirs, mine = candidate("a/plan.md", agent="other"), candidate("x/y/plan.md", agent="me")
    assert resolve(
        "plan.md", from_path="a/b.md", link_type="wikilink", candidates=[theirs, mine], author="me"
    ) == to("x/y/plan.md", ambiguous=True)


def test_the_same_document_twice_is_not_ambiguous() -> None:
    assert found("plan", "x/plan.md", "x/plan.md") == to("x/plan.md")


def test_keys_under_which_the_store_looks() -> None:
    assert target_keys("ops/plan.md", from_path="a/b.md", link_type="reference") == TargetKeys(
        path_keys=("a/ops/plan.md", "ops/plan.md"), name_key="plan", alias_key="ops/plan"
    )
    assert target_keys("/plan.md", from_path="a/b.md", link_type="wikilink") == TargetKeys(
        path_keys=("plan.md",), name_key=None, alias_key=None
    )
    assert document_keys("Ops/Plan.md", ["The Plan", "plan b.md", " "]) == DocumentKeys(
        path_key="ops/plan.md",
        name_key="plan",
        alias_keys=("plan b", "the plan"),
        target_keys=("plan b.md", "the plan.md"),
    )


def space(scope: Scope, agent: str = "me", team: str | None = None, tenant: str = "t") -> Namespace:
    return Namespace(
        tenant_id=TenantId(tenant),
        agent_id=AgentId(agent),
        scope=scope,
        team_id=None if team is None else TeamId(team),
    )


@pytest.mark.parametrize(
    ("author", "target", "allowed"),
    [
        (space(Scope.PERSONAL), space(Scope.PERSONAL), True),
        (space(Scope.PERSONAL), space(Scope.PERSONAL, "other"), False),
        (space(Scope.PERSONAL), space(Scope.SHARED, "other"), True),
        (space(Scope.PERSONAL), space(Scope.TEAM, team="x"), False),
        (space(Scope.TEAM, team="x"), space(Scope.TEAM, "other", "x"), True),
        (space(Scope.TEAM, team="x"), space(Scope.TEAM, team="y"), False),
        (space(Scope.TEAM, team="x"), space(Scope.PERSONAL), False),
        (space(Scope.SHARED), space(Scope.SHARED, "other"), True),
        (space(Scope.SHARED), space(Scope.PERSONAL), False),
        (space(Scope.SHARED), space(Scope.SHARED, tenant="u"), False),
    ],
)
def test_links_resolve_within_the_scope_or_a_wider_one(
    author: Namespace,
    target: Namespace,
    allowed: bool,  # noqa: FBT001 - a case of the table
) -> None:
    assert may_resolve(author, target) is allowed
