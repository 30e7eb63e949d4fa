"""The example vault keeps what the README and the demo say of it."""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path, PurePath

import pytest

from indexers.domain.markdown import ParsedNote, parse

VAULT = Path(__file__).parents[2] / "examples" / "vault"


@cache
def notes() -> dict[str, ParsedNote]:
    files = sorted(VAULT.rglob("*.md"))
    paths = [(file, unicodedata.normalize("NFC", file.relative_to(VAULT).as_posix())) for file in files]
    return {
        path: parse(file.read_text(encoding="utf-8"), path=path, frontmatter_max_bytes=65_536)
        for file, path in paths
    }


def targets(path: str) -> set[str]:
    return {link.target for link in notes()[path].links}


def test_it_is_large_enough_to_search_and_small_enough_to_ship() -> None:
    assert len(notes()) >= 60
    assert sum(len(note.text.encode()) for note in notes().values()) < 400_000
    assert sum(note.language == "ko" for note in notes().values()) >= 10


@pytest.mark.parametrize(
    "form",
    [
        pytest.param("[[payout-ledger]]", id="plain"),
        pytest.param("[[Glossary|blanks]]", id="display"),
        pytest.param("[[payout-ledger\\|ledger]]", id="in a table"),
        pytest.param("[[Printer fleet restart#Roll back]]", id="heading"),
        pytest.param("[[Glossary#^payout-run|cut-off]]", id="block"),
        pytest.param("[[#Where to look]]", id="local"),
        pytest.param("![[payout-ledger#Nightly run]]", id="embed"),
        pytest.param("(../decisions/ADR-0005%20Shadow%20runs%20before%20money%20moves.md)", id="reference"),
        pytest.param('service: "[[payout-ledger]]"', id="frontmatter"),
        pytest.param("[[not-a-link]]", id="in code"),
        pytest.param("[[한소라\\|Sora]]", id="korean"),
    ],
)
def test_every_form_of_link_occurs(form: str) -> None:
    assert any(form in note.text for note in notes().values())


def test_only_notes_that_are_yet_to_be_written_are_missing() -> None:
    names = {PurePath(path).stem for path in notes()}
    aliases = {alias for note in notes().values() for alias in note.frontmatter.aliases}
    linked = {PurePath(link.target).name.removesuffix(".md") for n in notes().values() for link in n.links}
    assert linked - names - aliases == {"carrier-portal", "ADR-0010 Carrier portal", "INC-2060"}


def test_two_notes_share_a_name_and_one_link_names_both() -> None:
    assert [path for path in notes() if path.endswith("overview.md")] == [
        "payments/overview.md",
        "routing/overview.md",
    ]
    assert "overview" in targets("teams/Team Compass.md")


@pytest.mark.parametrize(
    ("incident", "service", "team", "lead"),
    [
        ("INC-2047", "payout-ledger", "Team Tally", "Mirela Voss"),
        ("INC-2049", "label-printer", "Team Gangway", "한소라"),
        ("INC-2051", "route-planner", "Team Compass", "Petra Lindqvist"),
    ],
)
def test_who_owns_the_services_that_had_incidents_last_week(
    incident: str, service: str, team: str, lead: str
) -> None:
    assert incident in targets("sessions/2026-W48 session summary.md")
    assert service in targets(f"incidents/{incident}.md")
    assert team in targets(f"services/{service}.md")
    assert lead in targets(f"teams/{team}.md")
    assert f"people/{lead}.md" in notes()


def test_nearly_yaml_is_read_and_named() -> None:
    warned = {path: note.warnings for path, note in notes().items() if note.warnings}
    assert warned == {"incidents/INC-2026.md": ("frontmatter_nearly_yaml",)}
    assert notes()["incidents/INC-2026.md"].title == "INC-2026: Korean street names in pieces"
