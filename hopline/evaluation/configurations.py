"""What is compared: the ways to ask, from counting words to the whole pipeline as it is set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from indexers.errors import WrongUsage
from search_api.graph.kinds import GRAPH_PARTS, GraphPart

if TYPE_CHECKING:
    from search_api.ranking_settings import RankingRules

GREP: Final = "grep"
DEFAULT: Final = "default"
_HYBRID: Final = ("keyword", "vector")
#: What a part of the graph weighs alone where the settings give it no weight.
TRIED_WEIGHT: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """`body`: what a request says beside the question. `what`: for the reader of a table."""

    name: str
    what: str
    body: Mapping[str, Any] = field(default_factory=dict)


def configurations(ranking: RankingRules) -> tuple[Configuration, ...]:
    """In the order of the table. `ranking`: the settings, for the weights of what is tried alone."""
    names = ranking.entities_weight or TRIED_WEIGHT
    return (
        Configuration(name=GREP, what="words of the question, counted in the files"),
        Configuration(name="bm25", what="words only", body={"parts": ["keyword"]}),
        Configuration(name="vector", what="vectors only", body={"parts": ["vector"]}),
        Configuration(name="hybrid", what="words and vectors", body={"parts": [*_HYBRID]}),
        Configuration(
            name="hybrid+names",
            what="hybrid, and names of entities that the question says",
            body={"parts": [*_HYBRID, "names"], "options": {"entities_weight": names}},
        ),
        *(
            Configuration(
                name=f"hybrid+{part}", what=f"hybrid, and {part} of the graph", body=_alone(part, ranking)
            )
            for part in GRAPH_PARTS
        ),
        Configuration(name=DEFAULT, what="as the settings have it"),
    )


def chosen(known: tuple[Configuration, ...], names: str | None) -> tuple[Configuration, ...]:
    """Those named, with commas between; None: all. Raises WrongUsage for a name that is none."""
    if names is None:
        return known
    by_name = {configuration.name: configuration for configuration in known}
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    wrong = [name for name in wanted if name not in by_name]
    if wrong or not wanted:
        msg = (
            f"--configs: {', '.join(wrong) or 'nothing'} is no configuration; there are: {', '.join(by_name)}"
        )
        raise WrongUsage(msg)
    return tuple(by_name[name] for name in dict.fromkeys(wanted))


def _alone(part: GraphPart, ranking: RankingRules) -> Mapping[str, Any]:
    own = f"{part}_weight"
    others = {f"{other}_weight": 0 for other in GRAPH_PARTS if other != part}
    graph = {"enabled": True, **others, own: getattr(ranking.graph, own) or TRIED_WEIGHT}
    return {"parts": [*_HYBRID, "graph"], "options": {"graph": graph}}
