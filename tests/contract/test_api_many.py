"""Searches that meet many rows alike: titles that hold one another, and rows that a mass delete has left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest
import pytest_asyncio

from indexers.domain.identity import DocumentId, chunk_id
from indexers.domain.names import alias_key, name_key
from indexers.domain.title_names import name_keys, names_of
from indexers.opensearch.gate import RowWrite
from indexers.opensearch.rows import DocumentRow, Index
from tests.api import Service, embedder, principal, running_service
from tests.conftest import Stack
from tests.store import chunk_row, document_row, namespace

pytestmark = [pytest.mark.engines, pytest.mark.asyncio(loop_scope="module")]

ADA = principal("acme")
BEA = principal("birch", "bea")
#: More than a look-up by name takes (64); the one that is meant comes last by id.
TITLES = (
    *((f"plan-{n:03d}", f"Harbour plan of pier {n}") for n in range(100)),
    ("plan-zzz", "Harbour plan"),
    *((f"who-{n:03d}", f"The who of {n}") for n in range(70)),
    ("who-zzz", "The who"),
    *(
        (f"long-{n:03d}", f"One two three four five six seven eight nine ten eleven twelve {n}")
        for n in range(70)
    ),
    ("long-zzz", "One two three four five six seven eight nine ten eleven twelve thirteen"),
    *((f"ledger-{n:03d}", f"Ledger, {n}") for n in range(70)),
)
ALIASED = document_row(
    namespace(),
    doc_id="ledger-zzz",
    path="c/ledger-zzz.md",
    title="Zulu",
    aliases=["Ledger"],
    alias_keys=[alias_key("Ledger")],
    name_keys=list(name_keys(names_of("Zulu", ["Ledger"]))),
)
KEPT = tuple(f"kept-{n}" for n in range(4))
GONE = tuple(f"gone-{n:03d}" for n in range(300))
QUERY = "The marigold blooms in spring."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    folder = tmp_path_factory.mktemp("many")
    async with running_service(stack.opensearch_url, folder, principals=[ADA, BEA]) as running:
        await running.gate.write([*titled(), *deleted()])
        await running.gate.refresh()
        yield running


def titled() -> Iterable[RowWrite]:
    for doc_id, title in TITLES:
        path = f"c/{doc_id}.md"
        keys = list(name_keys(names_of(title, ())))
        row = document_row(
            namespace(),
            doc_id=doc_id,
            path=path,
            title=title,
            name_key=name_key(path),
            name_keys=keys,
            aliases=[],
        )
        yield written(row)
    yield written(ALIASED)


def deleted() -> Iterable[RowWrite]:
    """Rows of chunks that delete hasn't reached yet, nearer to the query than those of living documents."""
    gone, kept = embedder().embed_passages([QUERY, "A marigold, among other flowers."])
    home = namespace("birch", "bea")
    for doc_id in (*GONE, *KEPT):
        vector = (kept if doc_id in KEPT else gone).tolist()
        yield written(
            document_row(home, doc_id=doc_id, path=f"{doc_id}.md", title=doc_id, deleted=doc_id in GONE)
        )
        row = chunk_row(home, doc_id=doc_id, model_id=embedder().model_id, version=1, vector=vector)
        row_id = chunk_id(DocumentId(doc_id), 0)
        yield RowWrite(
            principal=home.principal, index=Index.CHUNKS, row_id=row_id, action="index", row=row, version=1
        )


def written(row: DocumentRow) -> RowWrite:
    home = namespace(row.tenant_id, row.agent_id)
    return RowWrite(
        principal=home.principal,
        index=Index.DOCUMENTS,
        row_id=row.doc_id,
        action="index",
        row=row,
        version=row.version,
    )


@pytest.mark.parametrize(
    ("said", "doc_id"),
    [
        ("Harbour plan", "plan-zzz"),
        ("harbour Plan", "plan-zzz"),
        ("The who", "who-zzz"),
        ("One two three four five six seven eight nine ten eleven twelve thirteen", "long-zzz"),
        ("Ledger", "ledger-zzz"),
        ("plan-042", "plan-042"),
    ],
)
async def test_a_quoted_title_is_found_among_any_number_that_hold_it(
    service: Service, said: str, doc_id: str
) -> None:
    for part in ("keyword", "names"):
        answer = await service.search(ADA, f'"{said}"', parts=[part])
        first = answer["hits"][0]
        assert (part, first["doc_id"], first["reasons"][0]["part"]) == (part, doc_id, "exact")


async def test_rows_that_a_mass_delete_left_are_passed_over_in_few_requests(service: Service) -> None:
    options = {"vector_candidates": 400, "graph": {"enabled": False}}
    answer = await service.search(BEA, QUERY, parts=["vector"], page_size=4, options=options, explain=True)
    assert sorted(hit["doc_id"] for hit in answer["hits"]) == list(KEPT)
    assert answer["trace"]["round_trips"] <= 6
