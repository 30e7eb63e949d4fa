"""What the analysers find: codes, English, Korean (keyword part of C16)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from indexers.opensearch.gate import Gate, GatedSearch, RowWrite
from indexers.opensearch.rows import Index
from tests.conftest import Stack
from tests.store import document_row, opened_gate, principal

pytestmark = pytest.mark.engines

ADA = principal()
TEXTS = {
    "oracle": "Snapshot too old: ORA-01555 again, see INC-2041을 참고.",
    "release": "We shipped v1.2.3. Then payment_retry was off; src/billing/payment_retry.py has it.",
    "near": "ORA-01554 and INC-2042/INC-2043 and v1.2.4 are others.",
    "pump": "She runs the pump; Anna's restarts failed twice.",
    "ferry": "시험선 가람호는 부산에서 출항했다.",
    "boat": "배가 떴다. 서울로 간다.",
    "latin": "카프카는 Kafka를 쓴다.",
    "japanese": "東京タワーとﾃﾚﾋﾞ",
}


@pytest.fixture
async def gate(stack: Stack, prefix: str) -> AsyncIterator[Gate]:
    async with opened_gate(stack.opensearch_url, prefix) as opened:
        writes = [
            RowWrite(
                principal=ADA,
                index=Index.DOCUMENTS,
                row_id=name,
                action="index",
                row=document_row(title=name, body=text),
                version=1,
            )
            for name, text in TEXTS.items()
        ]
        await opened.write(writes)
        await opened.refresh(Index.DOCUMENTS)
        yield opened


async def found(gate: Gate, query: str) -> set[str]:
    """Names of the texts that hold all words of the query, in one of the two analyses."""
    body = {
        "query": {
            "dis_max": {
                "queries": [
                    {"match": {"body": {"query": query, "operator": "and"}}},
                    {"match": {"body.code": {"query": query, "operator": "and"}}},
                ]
            }
        }
    }
    (page,) = await gate.search_many([GatedSearch(principal=ADA, index=Index.DOCUMENTS, body=body)])
    return {hit.row_id for hit in page.hits}


async def test_what_each_query_finds(gate: Gate) -> None:
    expected = {
        "ORA-01555": {"oracle"},
        "ora-01555": {"oracle"},
        "INC-2041": {"oracle"},
        "INC-2041을": {"oracle"},
        "INC-2043": {"near"},
        "v1.2.3": {"release"},
        "payment_retry": {"release"},
        "payment retry": {"release"},
        "payment_retry를": {"release"},
        "payment_retry.py": {"release"},
        "running": {"pump"},
        "run": {"pump"},
        "Anna": {"pump"},
        "restarted": {"pump"},
        "failing": {"pump"},
        "부산": {"ferry"},
        "가람호": {"ferry"},
        "출항": {"ferry"},
        "산에": {"ferry"},
        "배": {"boat"},
        "서울": {"boat"},
        "Kafka": {"latin"},
        "kafka를": {"latin"},
        "東京": {"japanese"},
        "テレビ": {"japanese"},
        "부서": set(),
    }
    assert {query: await found(gate, query) for query in expected} == expected


async def test_the_exact_code_outranks_its_neighbours(gate: Gate) -> None:
    body = {
        "query": {
            "multi_match": {"query": "ORA-01555", "fields": ["body", "body.code"], "type": "most_fields"}
        }
    }
    (page,) = await gate.search_many([GatedSearch(principal=ADA, index=Index.DOCUMENTS, body=body)])
    assert page.hits[0].row_id == "oracle"
