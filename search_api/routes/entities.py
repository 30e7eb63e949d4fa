"""Entities: found, read, walked and curated."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import AfterValidator

from search_api.entities.models import (
    CommandAnswer,
    CommandState,
    DecisionBody,
    DocumentMentionsAnswer,
    EntitiesAnswer,
    EntityAnswer,
    HistoryAnswer,
    MentionsAnswer,
    MergeBody,
    ProposalsAnswer,
    RelationsAnswer,
    RenameBody,
    UnmergeBody,
)
from search_api.problems import ProblemError, invalid_field
from search_api.requests import clean_query
from search_api.routes.documents import Cursor, DocId
from search_api.routes.shared import PrincipalDep, ServicesDep, bearer, problems, require_json

router = APIRouter(prefix="/v1/entities", tags=["entities"], dependencies=[Depends(bearer)])
of_documents = APIRouter(prefix="/v1/documents/{doc_id}", tags=["documents"], dependencies=[Depends(bearer)])

EntityId = Annotated[str, Path(description="Id of an entity, or of any of its names.")]
ProposalId = Annotated[str, Path(description="Id of a proposal.")]
PageSize = Annotated[int, Query(ge=1, le=200, description="Rows of a page.")]
Label = Annotated[str | None, Query(max_length=128, description="Only of this label.")]
Owner = Annotated[str | None, Query(max_length=256, description="Only of this namespace.")]
_READ = problems(401, 404, 422, 503)
_WRITE = problems(401, 403, 404, 413, 415, 422, 503)
_JSON = [Depends(require_json)]


@router.get("", summary="Find entities", responses=_READ)
async def list_entities(  # noqa: PLR0913 - one argument per query parameter
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    q: Annotated[
        str | None,
        Query(max_length=200, description="Words of a name; the best matches, one page without a cursor."),
        AfterValidator(clean_query),
    ] = None,
    label: Label = None,
    namespace: Owner = None,
    blocked: Annotated[
        bool, Query(description="Those that a curator blocked, instead of the others.")
    ] = False,
    page_size: PageSize = 50,
    cursor: Cursor = None,
) -> EntitiesAnswer:
    """Those with most mentions first, or with `q` those whose name or alias fits best: just these words first."""
    if q is not None and cursor is not None:
        raise ProblemError(invalid_field("query.cursor", "with `q` there is one page, and no cursor of it"))
    return await services.entities.find(
        principal, words=q, label=label, namespace=namespace, blocked=blocked, size=page_size, cursor=cursor
    )


@router.get("/proposals", summary="Names that may be one entity", responses=_READ)
async def list_proposals(
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    label: Label = None,
    namespace: Owner = None,
    page_size: PageSize = 50,
    cursor: Cursor = None,
) -> ProposalsAnswer:
    """Pairs that are alike, but not enough to be joined without a person's word; the most alike first."""
    return await services.entities.proposals(
        principal, label=label, namespace=namespace, size=page_size, cursor=cursor
    )


@router.post(
    "/proposals/{proposal_id}/accept",
    summary="They are one",
    status_code=202,
    responses=_WRITE,
    dependencies=_JSON,
)
async def accept_proposal(
    proposal_id: ProposalId, body: DecisionBody, services: ServicesDep, principal: PrincipalDep
) -> CommandAnswer:
    """As a merge of the two; `unmerge` takes it back."""
    return await services.curation.decide(principal, proposal_id, "accept", body.reason)


@router.post(
    "/proposals/{proposal_id}/reject",
    summary="They are two",
    status_code=202,
    responses=_WRITE,
    dependencies=_JSON,
)
async def reject_proposal(
    proposal_id: ProposalId, body: DecisionBody, services: ServicesDep, principal: PrincipalDep
) -> CommandAnswer:
    """The pair is neither proposed nor joined again."""
    return await services.curation.decide(principal, proposal_id, "reject", body.reason)


@router.get("/commands/{event_id}", summary="Whether a command was carried out", responses=_READ)
async def get_command(
    event_id: Annotated[str, Path(max_length=128, description="`event_id` of a command's answer.")],
    services: ServicesDep,
    principal: PrincipalDep,
) -> CommandState:
    """`accepted` until the link agent has taken it."""
    return await services.entities.command(principal, event_id)


@router.get("/{entity_id}", summary="An entity", responses=_READ)
async def get_entity(entity_id: EntityId, services: ServicesDep, principal: PrincipalDep) -> EntityAnswer:
    """Its names and how many documents mention it. The id of a merged name answers the entity it belongs to."""
    return await services.entities.get(principal, entity_id)


@router.get("/{entity_id}/mentions", summary="Where an entity is mentioned", responses=_READ)
async def get_mentions(
    entity_id: EntityId,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    page_size: PageSize = 50,
    cursor: Cursor = None,
) -> MentionsAnswer:
    """Documents with the sentence that names it, the most certain first. A page may be shorter than asked."""
    return await services.walks.mentions(principal, entity_id, size=page_size, cursor=cursor)


@router.get("/{entity_id}/relations", summary="What is said of an entity", responses=_READ)
async def get_relations(
    entity_id: EntityId,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    page_size: PageSize = 50,
    cursor: Cursor = None,
) -> RelationsAnswer:
    """Relations that somebody wrote, each with the quote that says so."""
    return await services.walks.relations(principal, entity_id, size=page_size, cursor=cursor)


@router.get("/{entity_id}/history", summary="What curators did", responses=_READ)
async def get_history(entity_id: EntityId, services: ServicesDep, principal: PrincipalDep) -> HistoryAnswer:
    """Commands about any of its names: who, when, why."""
    return await services.entities.history(principal, entity_id)


@router.post(
    "/{entity_id}/merge", summary="Join two entities", status_code=202, responses=_WRITE, dependencies=_JSON
)
async def merge_entities(
    entity_id: EntityId, body: MergeBody, services: ServicesDep, principal: PrincipalDep
) -> CommandAnswer:
    """The earlier of the two canonical names stays canonical, whichever was named first; all names are kept."""
    return await services.curation.merge(principal, entity_id, body)


@router.post(
    "/{entity_id}/unmerge", summary="Take a merge back", status_code=202, responses=_WRITE, dependencies=_JSON
)
async def unmerge_entities(
    entity_id: EntityId, body: UnmergeBody, services: ServicesDep, principal: PrincipalDep
) -> CommandAnswer:
    """Exactly the state without that merge; or a name leaves the entity that it had joined by likeness."""
    return await services.curation.unmerge(principal, entity_id, body)


@router.post(
    "/{entity_id}/rename",
    summary="Choose the name shown",
    status_code=202,
    responses=_WRITE,
    dependencies=_JSON,
)
async def rename_entity(
    entity_id: EntityId, body: RenameBody, services: ServicesDep, principal: PrincipalDep
) -> CommandAnswer:
    """For display only: what the notes say still finds it."""
    return await services.curation.rename(principal, entity_id, body)


@router.post(
    "/{entity_id}/block", summary="This name is noise", status_code=202, responses=_WRITE, dependencies=_JSON
)
async def block_entity(
    entity_id: EntityId, body: DecisionBody, services: ServicesDep, principal: PrincipalDep
) -> CommandAnswer:
    """Listed and walked no more, until it is unblocked."""
    return await services.curation.block(principal, entity_id, body.reason)


@router.post(
    "/{entity_id}/unblock",
    summary="It is a name after all",
    status_code=202,
    responses=_WRITE,
    dependencies=_JSON,
)
async def unblock_entity(
    entity_id: EntityId, body: DecisionBody, services: ServicesDep, principal: PrincipalDep
) -> CommandAnswer:
    """Takes a block back."""
    return await services.curation.unblock(principal, entity_id, body.reason)


@of_documents.get("/mentions", summary="What a document mentions", responses=_READ)
async def get_document_mentions(
    doc_id: DocId,
    services: ServicesDep,
    principal: PrincipalDep,
    *,
    page_size: PageSize = 50,
    cursor: Cursor = None,
) -> DocumentMentionsAnswer:
    """Entities that the document's present version names, the most certain first, each with its sentence."""
    return await services.walks.mentioned_in(principal, doc_id, size=page_size, cursor=cursor)
