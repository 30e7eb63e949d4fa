"""Proposals as they shall be, of the names that were looked at anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from indexers.domain.entities.clusters import Proposal
from indexers.domain.identity import ProposalId
from indexers.opensearch.find import Wanted, find_all
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import Index, ProposalRow
from streams.agents.link.closing import TERMS_MAX, Closure, in_label
from streams.agents.link.work import Stored, stored_row


@dataclass(slots=True, kw_only=True)
class ProposalWork:
    """`due`: the rows that shall stand, of those that `stored` and the names looked at speak of."""

    closure: Closure
    due: dict[ProposalId, ProposalRow] = field(default_factory=dict)
    stored: dict[ProposalId, Stored[ProposalRow]] = field(default_factory=dict)


def shifted_roots(closure: Closure) -> set[str]:
    """Canonical names whose company in their entity may have changed, by merges: what they are proposed to with it."""
    work = closure.work
    if not (work.likeness or work.curated) or not (work.merged_keys or work.curated):
        return set()
    return {key for key, root in closure.roots().items() if key == root and key in closure.members} - set(
        work.proposals
    )


async def due_proposals(gate: Gate, closures: Sequence[Closure]) -> list[ProposalWork]:
    """Nothing is asked for places where only counts have changed."""
    works = [ProposalWork(closure=closure) for closure in closures if _touched(closure)]
    searches = [(work, wanted) for work in works for wanted in _stored_of(work.closure)]
    answers = await find_all(gate, [wanted for _, wanted in searches])
    for (work, _), rows in zip(searches, answers, strict=True):
        for row in rows:
            work.stored[ProposalId(row.row_id)] = stored_row(row, ProposalRow)
    for work in works:
        _decide(work)
    return works


def _touched(closure: Closure) -> set[str]:
    """Names on whose account a proposal may come, change or go."""
    work = closure.work
    if not (work.likeness or work.curated or work.come_or_gone):
        return set()
    return closure.members | set(work.likeness) | set(work.proposals)


def _stored_of(closure: Closure) -> list[Wanted]:
    keys = sorted(_touched(closure))
    wanted: list[Wanted] = []
    for start in range(0, len(keys), TERMS_MAX):
        part = keys[start : start + TERMS_MAX]
        either = {
            "bool": {
                "should": [{"terms": {"key": part}}, {"terms": {"other_key": part}}],
                "minimum_should_match": 1,
            }
        }
        query = in_label(closure.work, either)
        wanted.append(Wanted(principal=closure.work.principal, index=Index.PROPOSALS, query=query))
    return wanted


def _decide(proposing: ProposalWork) -> None:
    closure, work = proposing.closure, proposing.closure.work
    roots = closure.roots()
    found: dict[str, tuple[Proposal, ...]] = dict(work.proposals)
    for stored in proposing.stored.values():
        row = stored.row
        known = row.other_key in work.proposals or row.other_key in work.likeness
        gone = row.other_key in closure.members and row.other_key not in roots
        if known or gone or roots.get(row.key, row.key) != row.key or _is_gone(closure, row.key, roots):
            continue
        # Its later name wasn't looked at: nothing but the entities of the two may have changed.
        kept = Proposal(key=row.key, other=row.other_key, similarity=row.similarity, reason=row.reason)
        found[row.other_key] = (*found.get(row.other_key, ()), kept)
    keys = {key for proposals in found.values() for p in proposals for key in (p.key, p.other)}
    entities = {key: closure.entity_of(roots.get(key, key)) for key in keys}
    proposing.due = work.rows.proposal_rows(found, entities)


def _is_gone(closure: Closure, key: str, roots: dict[str, str]) -> bool:
    return key in closure.members and key not in roots
