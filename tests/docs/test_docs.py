"""What the code has, the documentation has: generated pages are fresh, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hopline.cli.main import COMMANDS
from streams.metrics import ERROR_CLASSES
from tools import reference

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def targets(page: Path) -> list[str]:
    """Relative links of a page, those in code left out."""
    return LINK.findall(CODE.sub("", page.read_text()))


@pytest.mark.parametrize("page", sorted(reference.PAGE_WRITERS))
def test_generated_pages_say_what_the_code_says(page: str) -> None:
    assert (ROOT / "docs" / "reference" / page).read_text() == reference.PAGE_WRITERS[page](), (
        "run python -m tools.reference"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    missing = [target for target in targets(page) if not (page.parent / target).exists()]
    assert missing == []


def test_every_page_is_reachable_from_the_index() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        waiting += [(page.parent / target).resolve() for target in targets(page)]
    assert [str(page.relative_to(ROOT)) for page in PAGES if page not in seen] == []


def test_every_setting_and_metric_says_what_it_is() -> None:
    for page in ("settings.md", "metrics.md"):
        rows = [
            line
            for line in (ROOT / "docs" / "reference" / page).read_text().splitlines()
            if line.startswith("| `")
        ]
        assert rows
        assert [row for row in rows if re.search(r"\|\s*\|$", row)] == []


def test_every_metric_of_the_code_is_documented() -> None:
    """Of every process, whichever module makes it: a registry that the page forgets is found by its names."""
    page = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    source = "\n".join(
        path.read_text()
        for folder in ("indexers", "streams", "search_api", "hopline")
        for path in (ROOT / folder).rglob("*.py")
    )
    made = set(
        re.findall(
            r"(?:Counter|Gauge|Histogram|counter|gauge|histogram|GaugeMetricFamily)\(\s*\"(\w+)\"", source
        )
    )
    assert "hopline_stream_lag_seconds" in made
    assert sorted(name for name in made if f"| `{name}` |" not in page) == []


def test_every_metric_that_the_pages_name_exists() -> None:
    made = {
        name for registry in reference.registries().values() for name, *_ in reference.metric_rows(registry)
    }
    parts = {f"{name}_{part}" for name in made for part in ("bucket", "sum", "count")}
    named = {
        (str(page.relative_to(ROOT)), name)
        for page in PAGES
        for name in re.findall(r"`(hopline_[a-z_]+)[`{]", page.read_text())
    }
    assert sorted((page, name) for page, name in named if name not in made | parts) == []


def test_every_command_module_is_there() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text()
    assert sorted(module.__name__.rpartition(".")[2] for module in COMMANDS) == sorted(
        path.stem for path in (ROOT / "hopline" / "cli").glob("*.py") if "def register(" in path.read_text()
    )
    for command in ("up", "down", "status", "search", "verify", "rebuild", "dlq replay", "rescan", "write"):
        assert f"## `hopline {command}`" in text


def test_every_mcp_tool_is_documented() -> None:
    """In the reference with each of its arguments, and in words on the page that tells how to connect an agent."""
    page = (ROOT / "docs" / "reference" / "mcp.md").read_text()
    guide = (ROOT / "docs" / "how-to" / "connect-agents.md").read_text()
    tools, templates = reference.mcp_tools()
    for tool in tools:
        own = page.split(f"## `{tool.name}`\n")[1].split("\n## ")[0]
        missing = [name for name in tool.input_schema["properties"] if f"| `{name}` |" not in own]
        assert (tool.name, missing) == (tool.name, [])
    assert [tool.name for tool in tools if f"`{tool.name}`" not in guide] == []
    assert [one.uri_template for one in templates if f"`{one.uri_template}`" not in page] == []


def test_every_dead_letter_class_is_explained() -> None:
    text = (ROOT / "docs" / "how-to" / "dead-letters.md").read_text()
    assert sorted(c for c in ERROR_CLASSES if f"`{c}`" not in text) == []


def test_commands_in_the_readme_exist() -> None:
    known = (ROOT / "docs" / "reference" / "commands.md").read_text()
    named = set(re.findall(r"^\$ hopline ([a-z-]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named
    assert sorted(name for name in named if f"## `hopline {name}" not in known) == []


def test_every_poison_class_of_the_code_is_counted_by_its_name() -> None:
    source = "\n".join(
        p.read_text() for folder in ("indexers", "streams") for p in (ROOT / folder).rglob("*.py")
    )
    raised = set(re.findall(r"PoisonRecord\(\s*\"(\w+)\"", source))
    assert raised
    assert sorted(raised ^ (ERROR_CLASSES - {"other"})) == []


def example_lines() -> list[str]:
    """Calls of `hopline` in the pages' consoles, continued lines joined."""
    text = "\n".join(page.read_text().replace("\\\n", " ") for page in PAGES)
    return re.findall(r"^\$ (hopline .+)$", text, re.MULTILINE)


def test_every_option_says_its_default_or_that_it_is_required() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text()
    relate = page.split("## `hopline relate`\n")[1].split("\n## ")[0]
    rows = [line.split(" | ")[:2] for line in relate.splitlines() if line.startswith("| `")]
    assert rows == [
        *(
            ["| `" + name + "`", "required"]
            for name in ("document", "subject", "relation_type", "object_name")
        ),
        *(["| `--" + name + "`", "required"] for name in ("subject-label", "object-label", "quote")),
        *(["| `--" + name + "`", "–"] for name in ("by", "root", "json")),
    ]
    assert "| `--seed` | `0` | Of the confidence intervals. |" in page
    assert "| `letter_ids` | – | Letters to send. |" in page


def test_calls_in_the_pages_name_every_option_that_is_required() -> None:
    required = {
        " ".join(path): {p.opts[0] for p in command.params if p.required and p.param_type_name == "option"}
        for path, command in reference.commands()
    }
    lines = example_lines()
    missing = [
        line
        for line in lines
        for name, options in required.items()
        if f"{line} ".startswith(f"{name} ") and not options <= set(line.split())
    ]
    assert missing == []
    assert any(line.startswith("hopline relate ") for line in lines)
