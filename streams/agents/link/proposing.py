"""Proposals as they shall be and as they are stored, of the names that were judged anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from indexers.domain.identity import ProposalId
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index, ProposalRow
from streams.agents.link.closing import TERMS_MAX, in_label
from streams.agents.link.work import LabelWork, Stored, stored_row


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalWork:
    """Rows of all proposals whose later name was judged."""

    work: LabelWork
    due: dict[ProposalId, ProposalRow]
    stored: dict[ProposalId, Stored[ProposalRow]] = field(default_factory=dict)


async def judge_proposals(gate: Gate, works: Sequence[LabelWork]) -> list[ProposalWork]:
    """Nothing is asked for places where only counts have changed."""
    judged = [
        ProposalWork(
            work=work,
            due=work.rows.proposal_rows(p for found in work.changes.proposals.values() for p in found),
        )
        for work in works
        if work.changes.proposals
    ]
    searches = [(one, wanted) for one in judged for wanted in _stored_of(one.work)]
    answers = await find_all(gate, [wanted for _, wanted in searches])
    for (one, _), rows in zip(searches, answers, strict=True):
        for row in rows:
            one.stored[ProposalId(row.row_id)] = stored_row(row, ProposalRow)
    return judged


def _stored_of(work: LabelWork) -> Iterator[Wanted]:
    keys = sorted(work.changes.proposals)
    for start in range(0, len(keys), TERMS_MAX):
        query = in_label(work, {"terms": {"other_key": keys[start : start + TERMS_MAX]}})
        yield Wanted(principal=work.principal, index=Index.PROPOSALS, query=query)
