"""The tools that change something. Their docstrings and arguments are what a model is told."""

from __future__ import annotations

from typing import Annotated, Final
from uuid import uuid4

from mcp.server.mcpserver import Context
from pydantic import Field

from search_api.mcp import answers
from search_api.mcp.answers import Change
from search_api.mcp.arguments import DocId, DocType, Scope, Statement
from search_api.mcp.rest import Ask, Rest, document_path, segment

#: So long a tool waits for what it wrote to be found; then it says how far it has come.
_WAIT: Final[dict[str, str | int | float | bool | None]] = {"wait_for": "searchable", "timeout_seconds": 5}


class WritingTools:
    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    async def write_memory(  # noqa: PLR0913 - one parameter an argument
        self,
        content: Annotated[
            str, Field(min_length=1, description="Markdown. One fact or decision, with its why.")
        ],
        ctx: Context,
        *,
        doc_id: Annotated[
            str | None, Field(max_length=512, description="Of a memory of yours: it gets this text instead.")
        ] = None,
        title: Annotated[str | None, Field(max_length=200, description="Short; names the file.")] = None,
        tags: Annotated[list[str] | None, Field(max_length=50, description="A few topics.")] = None,
        doc_type: Annotated[DocType | None, Field(description="Without: memory.")] = None,
        scope: Annotated[
            Scope | None, Field(description="Who may see it; without: personal, yours alone.")
        ] = None,
        team: Annotated[str | None, Field(description="With scope team, where you are in several.")] = None,
        category: Annotated[
            str | None, Field(max_length=64, description="One word, as others have it.")
        ] = None,
        session: Annotated[
            str | None, Field(max_length=200, description="Conversation that it is of.")
        ] = None,
        valid_from: Annotated[str | None, Field(description="ISO 8601; before, it ranks low.")] = None,
        expires_at: Annotated[str | None, Field(description="ISO 8601; after, it ranks low.")] = None,
        supersedes: Annotated[
            str | None,
            Field(description="doc_id of an older memory that this one replaces; it stays, ranked low."),
        ] = None,
        relations: Annotated[
            list[Statement] | None, Field(max_length=20, description="Relations that the content says.")
        ] = None,
    ) -> Change:
        """Remember something: it becomes a file that people can read and edit. Never secrets.

        Search first: rewrite or supersede what is there instead of writing it twice.
        """
        body = {
            "content": content,
            "title": title,
            "tags": tags,
            "doc_type": doc_type,
            "scope": scope,
            "team": team,
            "category": category,
            "session": session,
            "valid_from": valid_from,
            "expires_at": expires_at,
            "supersedes": supersedes,
            "relations": None if relations is None else [one.model_dump() for one in relations],
            "idempotency_key": str(uuid4()),
        }
        ask = Ask(method="POST", path="/v1/memories", params=_WAIT, json=body)
        if doc_id is not None:
            ask = Ask(method="PUT", path=f"/v1/memories/{segment(doc_id)}", params=_WAIT, json=body)
        return answers.change(await self._rest.send(ctx, ask))

    async def forget(self, doc_id: DocId, ctx: Context) -> Change:
        """Let one of your memories be found no more; a person can bring it back.

        Only on the person's wish, or where it is wrong.
        """
        headers = {"idempotency-key": str(uuid4())}
        ask = Ask(method="DELETE", path=document_path(doc_id), params=_WAIT, headers=headers)
        return answers.change(await self._rest.send(ctx, ask))
