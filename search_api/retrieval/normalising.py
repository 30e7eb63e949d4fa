"""Raw scores of each list → 0..1, by the rules of `indexers.domain.scores`. Pure; doesn't depend on the page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final

from msgspec.structs import replace

from indexers.domain import scores
from search_api.retrieval.candidates import Candidate, Evidence, LegPart, Ranking

#: Names of the rules, as a reason gives them.
KEYWORD_RULE: Final = "bm25/max(best,floor)"
VECTOR_RULE: Final = "(cosine-floor)/(1-floor)/max(best,floor)"
NAMES_RULE: Final = "idf*weight/max(best,floor)"
PLACE_RULE: Final = f"{scores.RRF_K + 1}/({scores.RRF_K}+place)"
#: Which `indexers.domain.prose.language` tells from each other for certain.
TOLD_LANGUAGES: Final = {"en", "ko"}
#: Of a document in another language than the query's: rule and power.
OTHER_LANGUAGE_RULE: Final = f"({KEYWORD_RULE})^"
#: Of a document that was named exactly: no list, nothing to bring to 0..1.
EXACT: Final = "exact"

#: By list: the name of its rule, and of each evidence in turn its value and what it was divided by (or its place).
Rules = dict[LegPart, tuple[str, Iterator[tuple[float, float]]]]


def normalise(candidates: Sequence[Candidate], ranking: Ranking) -> list[Candidate]:
    lists = _lists(candidates)
    if ranking.rules.fusion == "rrf":
        rules = _place_rules(candidates, lists)
    else:
        rules = {name: _score_rule(name, raw, ranking) for name, raw in lists.items()}
    found: list[Candidate] = []
    for candidate in candidates:
        evidence: tuple[Evidence, ...] = ()
        for e in candidate.evidence:
            if e.part == EXACT:
                evidence += (e,)
            else:
                name, each = rules[e.leg, e.part]
                value, scale = next(each)
                if name is KEYWORD_RULE and _is_of_other_language(candidate, ranking):
                    name, value = _in_other_language(value, ranking)
                evidence += (replace(e, normaliser=name, normalised=value, scale=scale),)
        found.append(replace(candidate, evidence=evidence))
    return found


def recomputed(evidence: Evidence, *, cosine_floor: float) -> float:
    """The normalised value from what an answer says of it: the rule, the raw score and the scale (or place)."""
    match evidence.normaliser:
        case rule if rule == PLACE_RULE:
            return (scores.RRF_K + 1) / (scores.RRF_K + evidence.scale)
        case rule if rule == VECTOR_RULE:
            lifted = (evidence.raw - cosine_floor) / (1 - cosine_floor)
            return min(max(lifted, 0.0), 1.0) / evidence.scale
        case rule if rule in (KEYWORD_RULE, NAMES_RULE):
            return max(evidence.raw, 0.0) / evidence.scale
        case rule if rule.startswith(OTHER_LANGUAGE_RULE):
            power = int(rule.removeprefix(OTHER_LANGUAGE_RULE))
            return float((max(evidence.raw, 0.0) / evidence.scale) ** power)
        case _:
            return evidence.raw


def _is_of_other_language(candidate: Candidate, ranking: Ranking) -> bool:
    """Only where it is certain: `other` holds mixtures, and Latin with many accents."""
    row = candidate.document
    return row is not None and {ranking.language, row.language} == TOLD_LANGUAGES


def _in_other_language(value: float, ranking: Ranking) -> tuple[str, float]:
    """Few of a query's words can stand in such a text, so its best match is no good one unless it holds nearly all."""
    power = ranking.rules.other_language_power
    return (KEYWORD_RULE, value) if power == 1 else (f"{OTHER_LANGUAGE_RULE}{power}", value**power)


def _score_rule(
    name: LegPart, raw: Mapping[str, float], ranking: Ranking
) -> tuple[str, Iterator[tuple[float, float]]]:
    rules = ranking.rules
    if name[1] == "vector":
        rule, found = VECTOR_RULE, scores.normalise_vector(raw, cosine_floor=ranking.cosine_floor)
    elif name[1] == "keyword":
        floor = max(rules.keyword_floor, rules.keyword_word_floor * ranking.words)
        rule, found = KEYWORD_RULE, scores.normalise_keyword(raw, floor=floor)
    else:
        rule, found = NAMES_RULE, scores.normalise_keyword(raw, floor=rules.names_floor)
    return rule, zip(found.scores.values(), repeat(found.scale))


def _place_rules(candidates: Sequence[Candidate], lists: Mapping[LegPart, Mapping[str, float]]) -> Rules:
    """Places are of documents: one with many chunks takes one place, that of its best."""
    rules: Rules = {}
    every_id = [candidate.doc_id for candidate in candidates for _ in candidate.evidence]
    for name, raw in lists.items():
        doc_ids = {key: every_id[int(key)] for key in raw}
        best: dict[str, float] = {}
        for key, score in raw.items():
            best[doc_ids[key]] = max(score, best.get(doc_ids[key], score))
        placed = scores.normalise_place(best).scores
        ordered = sorted(placed, key=lambda doc_id: scores.rank_key(placed[doc_id], doc_id))
        places = {doc_id: float(place) for place, doc_id in enumerate(ordered, start=1)}
        rules[name] = PLACE_RULE, iter([(placed[doc_id], places[doc_id]) for doc_id in doc_ids.values()])
    return rules


def _lists(candidates: Sequence[Candidate]) -> dict[LegPart, dict[str, float]]:
    """Raw scores by the evidence's number among all: a document may have many chunks."""
    lists: defaultdict[LegPart, dict[str, float]] = defaultdict(dict)
    number = 0
    for candidate in candidates:
        for evidence in candidate.evidence:
            if evidence.part != EXACT:
                lists[evidence.leg, evidence.part][str(number)] = evidence.raw
            number += 1
    return lists
