"""The tools that read. Their docstrings and arguments are what a model is told."""

from __future__ import annotations

from typing import Annotated, Any, Final

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, TextContent
from pydantic import Field

from search_api.mcp import answers
from search_api.mcp.answers import (
    AssembledContext,
    Backlinks,
    ContextDocument,
    EntityCard,
    EntityMention,
    EntityName,
    FilePage,
    Found,
    RelatedDocuments,
    ToolAnswer,
)
from search_api.mcp.arguments import Cursor, DocId, Limit, Query, Scopes, Tags, Types, Under
from search_api.mcp.rest import Ask, Rest, document_path, segment

#: Most code points that one call of read_file gives: some 8,000 tokens of English.
_FILE_CHARS: Final = 32_000
#: Longest text of a resource; longer ones are read in parts.
_RESOURCE_CHARS: Final = 500_000


class ReadingTools:
    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def search(  # noqa: PLR0913 - one parameter an argument
        self,
        query: Query,
        ctx: Context,
        *,
        tags: Tags = None,
        doc_type: Types = None,
        scope: Scopes = None,
        path_prefix: Under = None,
        limit: Limit = 10,
        cursor: Cursor = None,
    ) -> Found:
        """Search the notes and memories that you may see, by words and meaning. read_file gives the text."""
        body = {"query": query, "page_size": limit, "cursor": cursor}
        filters = _filters(tags=tags, doc_type=doc_type, scope=scope, path_prefix=path_prefix)
        found = await self._rest.send(ctx, Ask(method="POST", path="/v1/search", json=body | filters))
        return Found(
            documents=[answers.found_document(hit) for hit in found["hits"]],
            words_found=found["words_found"],
            next_cursor=found["next_cursor"],
        )

    async def context(
        self,
        query: Query,
        ctx: Context,
        *,
        budget_tokens: Annotated[
            int | None, Field(ge=1, description="Most tokens of the text; without: the service's default.")
        ] = None,
        tags: Tags = None,
        doc_type: Types = None,
        scope: Scopes = None,
        path_prefix: Under = None,
    ) -> Annotated[CallToolResult, AssembledContext]:
        """What is known about a question as one Markdown text: the best documents' paragraphs within a token budget."""
        body = {"query": query, "budget_tokens": budget_tokens}
        filters = _filters(tags=tags, doc_type=doc_type, scope=scope, path_prefix=path_prefix)
        found = await self._rest.send(ctx, Ask(method="POST", path="/v1/context", json=body | filters))
        documents = [ContextDocument(**_named(d), number=d["number"]) for d in found["documents"]]
        return _with_text(AssembledContext(**{**found, "documents": documents}))

    async def read_file(
        self,
        doc_id: DocId,
        ctx: Context,
        *,
        start: Annotated[int, Field(ge=0, le=2**53, description="First character.")] = 0,
        max_chars: Annotated[int, Field(ge=1, le=_FILE_CHARS, description="Most characters.")] = _FILE_CHARS,
    ) -> Annotated[CallToolResult, FilePage]:
        """Read a document's text, exactly as it stands. A long one comes in pages: go on at next_start."""
        path = document_path(doc_id, "/content")
        page = await self._rest.send(
            ctx, Ask(method="GET", path=path, params={"start": start, "max_chars": max_chars})
        )
        return _with_text(FilePage(**page, next_start=page["next"]))

    async def related(self, doc_id: DocId, ctx: Context, *, limit: Limit = 20) -> RelatedDocuments:
        """Documents one step from this one, each with its reason: links both ways, shared names, tags."""
        ask = Ask(method="GET", path=document_path(doc_id, "/related"), params={"page_size": limit})
        return RelatedDocuments.model_validate(await self._rest.send(ctx, ask))

    async def backlinks(
        self, doc_id: DocId, ctx: Context, *, limit: Limit = 20, cursor: Cursor = None
    ) -> Backlinks:
        """Who links to this document, with the text around each link."""
        params = {"page_size": limit, "cursor": cursor}
        found = await self._rest.send(
            ctx, Ask(method="GET", path=document_path(doc_id, "/backlinks"), params=params)
        )
        links = [answers.backlink(link) for link in found["links"]]
        return Backlinks(links=links, next_cursor=found["next_cursor"])

    async def entity(
        self,
        name: Annotated[str, Field(min_length=1, max_length=200, description="Name, or entity_id.")],
        ctx: Context,
        *,
        label: Annotated[
            str | None,
            Field(max_length=128, description="Only of this label: person, team, service, incident, …"),
        ] = None,
        limit: Limit = 10,
    ) -> EntityCard:
        """A person, team, service, incident … by name: other names, the sentences that mention it, its relations."""
        params = {"q": name, "label": label, "page_size": 6}
        lines = (await self._rest.send(ctx, Ask(method="GET", path="/v1/entities", params=params)))[
            "entities"
        ]
        entity_id = lines[0]["entity_id"] if lines else name
        try:
            card = await self._rest.send(ctx, Ask(method="GET", path=f"/v1/entities/{segment(entity_id)}"))
        except ToolError as exc:
            if lines:
                raise
            msg = f"No entity is called so. Try search with the same words, or another spelling. ({exc})"
            raise ToolError(msg) from exc
        return await self._card(ctx, card, lines[1:], limit)

    async def text(self, doc_id: str, ctx: Context) -> str:
        """The whole text, for the resource. Raises ToolError: where it changes meanwhile, or is very long."""
        pages: list[dict[str, Any]] = []
        start: int | None = 0
        while start is not None:
            ask = Ask(method="GET", path=document_path(doc_id, "/content"), params={"start": start})
            pages.append(await self._rest.send(ctx, ask))
            start = pages[-1]["next"]
            if len({page["content_hash"] for page in pages}) > 1:
                msg = "The document changed while it was read: read it again."
                raise ToolError(msg)
            if start is not None and start > _RESOURCE_CHARS:
                msg = f"The document has {pages[-1]['total_chars']} characters: read it in parts with read_file."
                raise ToolError(msg)
        return "".join(page["text"] for page in pages)

    async def _card(
        self, ctx: Context, card: dict[str, Any], others: list[dict[str, Any]], limit: int
    ) -> EntityCard:
        path, params = f"/v1/entities/{card['entity_id']}", {"page_size": limit}
        said = await self._rest.send(ctx, Ask(method="GET", path=f"{path}/mentions", params=params))
        related = await self._rest.send(ctx, Ask(method="GET", path=f"{path}/relations", params=params))
        return EntityCard(
            entity=EntityName(**card),
            aliases=[alias["name"] for alias in card["aliases"]],
            mentions=[EntityMention(**mention) for mention in said["mentions"]],
            relations=[answers.relation(one) for one in related["relations"]],
            others=[EntityName(**line) for line in others],
        )


def _filters(**filters: Any) -> dict[str, Any]:
    given = {name: value for name, value in filters.items() if value}
    return {"filters": given} if given else {}


def _named(document: dict[str, Any]) -> dict[str, str]:
    return {name: document[name] for name in ("doc_id", "title", "path")}


def _with_text(answer: AssembledContext | FilePage) -> CallToolResult:
    """The text as it is, which JSON would escape, and what stands beside it as JSON."""
    beside: ToolAnswer = answer
    return CallToolResult(
        content=[
            TextContent(type="text", text=answer.text),
            TextContent(type="text", text=beside.model_dump_json(exclude={"text"})),
        ],
        structured_content=answer.model_dump(mode="json"),
    )
