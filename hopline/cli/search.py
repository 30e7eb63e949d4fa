"""`hopline search`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from hopline.answers import Hit, SearchPage, Trace
    from hopline.calls import Part


def register(app: typer.Typer) -> None:
    app.command("search")(search_command)


def search_command(  # noqa: PLR0913 - one parameter an option
    query: Annotated[list[str], typer.Argument(help="What to look for; several words need no quotes.")],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100, help="Hits shown.")] = 10,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only with one of these tags.")] = None,
    doc_type: Annotated[list[str] | None, typer.Option("--type", help="Only of these types.")] = None,
    scope: Annotated[list[str] | None, typer.Option("--scope", help="Only personal, team or shared.")] = None,
    under: Annotated[str | None, typer.Option("--under", help="Only paths that begin with this.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Only updated since (ISO 8601).")] = None,
    keyword_only: Annotated[bool, typer.Option("--keyword", help="Words only, no vectors.")] = False,
    vector_only: Annotated[bool, typer.Option("--vector", help="Vectors only, no words.")] = False,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Where an earlier page ended.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show every factor and stage.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The service's answer as JSON.")] = False,
) -> None:
    """Search the documents that your key may see: titles, excerpts, and why each was found.

    Ends with 0 also when nothing was found.
    """
    from hopline.cli.connection import connected
    from hopline.cli.terminal import console, print_json

    filters = {
        "tags": tag,
        "doc_type": doc_type,
        "scope": scope,
        "path_prefix": under,
        "updated_from": since,
    }
    with connected() as (client, _settings):
        page = client.search(
            " ".join(query),
            filters={name: value for name, value in filters.items() if value},
            parts=_parts(keyword_only=keyword_only, vector_only=vector_only),
            page_size=limit,
            cursor=cursor,
            explain=explain,
        )
    if as_json:
        print_json(page)
        return
    _print_page(console(), page, explain=explain)


def _parts(*, keyword_only: bool, vector_only: bool) -> list[Part] | None:
    if keyword_only and vector_only:
        raise typer.BadParameter("--keyword and --vector exclude each other", param_hint="--vector")
    if keyword_only:
        return ["keyword"]
    return ["vector"] if vector_only else None


def _print_page(out: Console, page: SearchPage, *, explain: bool) -> None:
    if not page.hits:
        out.print("Nothing found.")
    for number, hit in enumerate(page.hits, start=1):
        _print_hit(out, number, hit, explain=explain)
    if page.next_cursor is not None:
        out.print(f"More: --cursor {page.next_cursor}", style="dim")
    if page.trace is not None:
        _print_trace(out, page.trace)


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
    out.print(Text("    " + _reasons(hit, explain=explain), style="dim"))
    out.print()


def _reasons(hit: Hit, *, explain: bool) -> str:
    from hopline.cli.terminal import visible

    shown: list[str] = []
    for reason in hit.reasons:
        text = f"{reason.part} {reason.contribution:.3f}"
        if explain:
            rule = f"{reason.normaliser} of {reason.raw_score:.3f}"
            text += f" = {reason.normalised:.3f} ({rule}) x {reason.weight:g}"
        if reason.matched_terms:
            text += f" [{', '.join(visible(term) for term in reason.matched_terms)}]"
        if reason.heading_path:
            text += f" in {' > '.join(visible(heading) for heading in reason.heading_path)}"
        shown.append(text)
    return "; ".join(shown) + f"  {hit.doc_id}"


def _print_trace(out: Console, trace: Trace) -> None:
    steps: dict[str, Any] = trace.steps_ms
    out.print("  ".join(f"{name} {ms:.1f} ms" for name, ms in steps.items()))
    for stage in trace.stages:
        state = "" if stage.on else " (off)"
        out.print(f"{stage.stage}{state}: {stage.candidates_in} -> {stage.candidates_out}, {stage.ms:.2f} ms")
