"""Cosines of turns, smoothed over the turns before and behind in their session. Pure.

A turn of a conversation is short and leaves unsaid what the one before has said, so its vector alone tells little. The
cosine of a mixture of vectors is, but for its length, the mixture of their cosines: no vector is stored twice.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from search_api.retrieval.candidates import Candidate, Evidence, Facts, Ranking

#: Leg, session (of one owner), position.
_Turn = tuple[str, str, int]


def smooth(candidates: Sequence[Candidate], ranking: Ranking) -> list[Candidate]:
    """Mix: (own + previous · `turn_previous` + next · `turn_next`) / (1 + `turn_previous` + `turn_next`).

    Of a document the best chunk speaks for its turn. A turn around that was not found counts as the last one that was.
    """
    if {c.facts.position for c in candidates if c.facts is not None} <= {None}:
        return list(candidates)
    best: dict[_Turn, float] = {}
    lowest: dict[str, float] = {}
    for candidate in candidates:
        for evidence in candidate.evidence:
            if evidence.part == "vector":
                leg, raw = evidence.leg, evidence.raw
                lowest[leg] = min(raw, lowest.get(leg, raw))
                if (turn := _turn(candidate, leg, 0)) is not None:
                    best[turn] = max(raw, best.get(turn, raw))
    if not best:
        return list(candidates)

    def smoothed(candidate: Candidate, evidence: Evidence) -> Evidence:
        leg = evidence.leg
        before, behind = _turn(candidate, leg, -1), _turn(candidate, leg, 1)
        if evidence.part != "vector" or before is None or behind is None:
            return evidence
        turns = (evidence.raw, best.get(before, lowest[leg]), best.get(behind, lowest[leg]))
        raw = mixed(turns, ranking)
        return replace(evidence, raw=raw, normalised=raw, turns=turns)

    return [replace(c, evidence=tuple([smoothed(c, e) for e in c.evidence])) for c in candidates]


def mixed(turns: tuple[float, float, float], ranking: Ranking) -> float:
    """`turns`: own, previous, next."""
    previous, following = ranking.rules.turn_previous, ranking.rules.turn_next
    return (turns[0] + turns[1] * previous + turns[2] * following) / (1 + previous + following)


def session_of(facts: Facts) -> str | None:
    """One of one owner: two agents may each call a session `monday`."""
    if facts.session is None:
        return None
    return "\n".join((facts.scope, facts.agent_id, facts.team_id or "", facts.session))


def _turn(candidate: Candidate, leg: str, step: int) -> _Turn | None:
    facts = candidate.facts
    if facts is None or facts.position is None or (session := session_of(facts)) is None:
        return None
    return leg, session, facts.position + step
