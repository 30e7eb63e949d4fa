"""`hopline search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from hopline.cli.asking import FIELDS, AsJson, Scopes, Tags, Types, Under, given, in_options

if TYPE_CHECKING:
    from rich.console import Console

    from hopline.answers import Hit, Match, Reason, SearchPage, Step, Trace
    from hopline.calls import Part
    from hopline.client import HoplineClient

#: What the service calls a field, and what a person gave for it.
_OPTIONS = FIELDS | {
    "filters.updated_from": "--since",
    "cursor": "--cursor",
    "page_size": "--limit",
}

Query = Annotated[list[str], typer.Argument(help="What to look for; several words need no quotes.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Hits of a page.")]
Page = Annotated[int, typer.Option("--page", min=1, max=100, help="Which page; 1 holds the best.")]
Since = Annotated[str | None, typer.Option("--since", help="Only updated since (ISO 8601).")]
KeywordOnly = Annotated[bool, typer.Option("--keyword", help="Words only, no vectors.")]
VectorOnly = Annotated[bool, typer.Option("--vector", help="Vectors only, no words.")]
Cursor = Annotated[
    str | None, typer.Option("--cursor", help="For programs: `next_cursor` of an earlier --json page.")
]
Explain = Annotated[bool, typer.Option("--explain", help="Show every factor and stage.")]


def register(app: typer.Typer) -> None:
    app.command("search")(search_command)


def search_command(  # noqa: PLR0913 - one parameter an option
    query: Query,
    *,
    limit: Limit = 10,
    page: Page = 1,
    tag: Tags = None,
    doc_type: Types = None,
    scope: Scopes = None,
    under: Under = None,
    since: Since = None,
    keyword_only: KeywordOnly = False,
    vector_only: VectorOnly = False,
    cursor: Cursor = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """Search the documents that your key may see: titles, excerpts, and why each was found.

    Ends with 0 also when nothing was found.
    """
    from hopline.cli.terminal import console, print_json

    if cursor is not None and page > 1:
        raise typer.BadParameter("--page and --cursor exclude each other", param_hint="--page")
    options = {
        "filters": given(tags=tag, doc_type=doc_type, scope=scope, path_prefix=under, updated_from=since),
        "parts": _parts(keyword_only=keyword_only, vector_only=vector_only),
        "page_size": limit,
        "explain": explain,
    }
    found = _search(" ".join(query), page, cursor, options)
    if as_json:
        print_json(found)
    else:
        _print_page(console(), found, page=page, first=(page - 1) * limit + 1, explain=explain)


def _search(query: str, page: int, cursor: str | None, options: dict[str, Any]) -> SearchPage:
    from hopline.calls import InvalidRequest
    from hopline.cli.connection import connected
    from indexers.errors import WrongUsage

    with connected() as (client, _settings):
        try:
            return _page(client, query, page, cursor, options)
        except InvalidRequest as exc:
            raise WrongUsage(in_options(exc, _OPTIONS)) from exc


def _page(
    client: HoplineClient, query: str, page: int, cursor: str | None, options: dict[str, Any]
) -> SearchPage:
    """Pages follow each other by their cursors; behind the last there is an empty one."""
    from msgspec.structs import replace

    found = client.search(query, cursor=cursor, **options)
    for _ in range(page - 1):
        if found.next_cursor is None:
            return replace(found, hits=[])
        found = client.search(query, cursor=found.next_cursor, **options)
    return found


def _parts(*, keyword_only: bool, vector_only: bool) -> list[Part] | None:
    if keyword_only and vector_only:
        raise typer.BadParameter("--keyword and --vector exclude each other", param_hint="--vector")
    if keyword_only:
        return ["keyword"]
    return ["vector"] if vector_only else None


def _print_page(out: Console, found: SearchPage, *, page: int, first: int, explain: bool) -> None:
    if not found.hits:
        out.print("Nothing found." if page == 1 else f"Page {page} is past the end.")
    elif found.words_found is False:
        out.print("No note contains these words; nearest in meaning:\n")
    for number, hit in enumerate(found.hits, start=first):
        _print_hit(out, number, hit, explain=explain)
    if found.next_cursor is not None:
        out.print(f"More: --page {page + 1}", style="dim")
    if found.trace is not None:
        _print_trace(out, found.trace)


def _print_hit(out: Console, number: int, hit: Hit, *, explain: bool) -> None:
    from rich.text import Text

    from hopline.cli.terminal import visible

    head = Text(f"{number:>2}. ")
    head.append(visible(hit.title), style="bold")
    head.append(f"  {visible(hit.path)}", style="cyan")
    head.append(f"  {hit.score:.3f}", style="dim")
    out.print(head)
    if hit.excerpt is not None:
        text = Text("    " + visible(" ".join(hit.excerpt.text.split())))
        terms = [term for reason in hit.reasons for term in reason.matched_terms]
        text.highlight_words(terms, style="bold yellow", case_sensitive=False)
        out.print(text)
    elif hit.stale_excerpt is not None:
        out.print(Text(f"    (no excerpt: {hit.stale_excerpt})", style="dim"))
    short = ["; ".join(_short(reason) for reason in hit.reasons)]
    factors = [f"x {factor.name} {factor.value:g}" for factor in hit.factors]
    reasons = [line for reason in hit.reasons for line in _factors(reason)] if explain else short
    for line in (*reasons, *([", ".join(factors)] if factors else []), hit.doc_id):
        out.print(Text(f"    {line}", style="dim"))
    out.print()


def _short(reason: Reason) -> str:
    return " ".join([f"{reason.part} {reason.contribution:.3f}", *_where(reason)])


def _factors(reason: Reason) -> list[str]:
    """Each number with its name; the words and the place below."""
    product = f"{reason.contribution:.3f} = {reason.normalised:.3f} x weight {reason.weight:g}"
    rule = f"{reason.normalised:.3f} = {reason.normaliser}, score {reason.raw_score:.3f}"
    return [f"{reason.part}: {product}", f"  {rule}", *(f"  {place}" for place in _where(reason))]


def _where(reason: Reason) -> list[str]:
    from hopline.cli.terminal import visible

    shown = []
    if reason.matches:
        shown.append(f"[{'; '.join(visible(_match(match)) for match in reason.matches)}]")
    if reason.heading_path:
        shown.append(f"in {' > '.join(visible(heading) for heading in reason.heading_path)}")
    if reason.names:
        shown.append(f"says {', '.join(visible(name.name) for name in reason.names)}")
    if reason.path:
        shown.append(visible(_path(reason.path)))
    return shown


def _path(steps: list[Step]) -> str:
    """Ferry plan -wikilink-> Pier nine <-mention- Ada."""
    walked = [f"<-{step.kind}- " if step.backward else f"-{step.kind}-> " for step in steps]
    ends = [f"{arrow}{step.to.title}" for arrow, step in zip(walked, steps, strict=True)]
    return " ".join([steps[0].from_.title, *ends])


def _match(match: Match) -> str:
    part = "" if match.part_of is None else f" of {match.part_of}"
    return f"{match.term}{part}: {', '.join(match.fields)}"


def _print_trace(out: Console, trace: Trace) -> None:
    steps: dict[str, Any] = trace.steps_ms
    out.print("Time   " + ", ".join(f"{name} {ms:.1f} ms" for name, ms in steps.items()))
    for stage in trace.stages:
        state = "" if stage.on else " (off)"
        counts = f"{stage.candidates_in:>4} -> {stage.candidates_out:>4} candidates"
        out.print(f"Stage  {stage.stage + state:<16}{counts}  {stage.ms:.2f} ms")
