"""The subgraph as it grows, hop by hop: caps, which nodes are next, and which names are one. Pure.

Nothing depends on the order of the rows that come in.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from search_api.graph.caps import cap_documents_of_names, cap_links, cap_names_of_documents
from search_api.graph.chains import best_few, starting_documents
from search_api.graph.columns import (
    DocumentColumns,
    LinkColumns,
    MentionColumns,
    NameColumns,
    RelationColumns,
)
from search_api.graph.edges_of import link_edge, mention_edge, relation_edge, seed_row
from search_api.graph.joining import EdgeKey, join_names, rank_of, unread_names, with_joined_names
from search_api.graph.kinds import is_name, label_and_key, name_node
from search_api.graph.model import Edge, GraphRules, SeedRow, Seeds, Subgraph
from search_api.graph.standing import standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Whose edges the next hop reads: the most promising first."""

    documents: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Of the names; two labels may share one."""
        return tuple(dict.fromkeys(label_and_key(node)[1] for node in self.names))


class Growth:
    """One search's expansion. A node's strength: the best seed's score × the weights on the way to it."""

    def __init__(self, seeds: Seeds, rules: GraphRules) -> None:
        self._seeds = seeds
        self._rules = rules
        self._edges: dict[EdgeKey, tuple[int, Edge]] = {}
        self._names: dict[str, NameColumns] = {}
        self._strength: dict[str, float] = {}
        self._expanded: set[str] = set()
        self._hop = 0
        self._round_trips = 0
        #: Round trips whose edges have not spread strength yet.
        self._spreads = 0
        self._documents = 0
        self.rows: dict[str, SeedRow] = dict(seeds.rows)
        self.truncated: Counter[str] = Counter()
        self._strength |= starting_documents(seeds, rules)
        self._strength |= dict(best_few(seeds.names, rules.names_max))

    def next_frontier(self) -> Frontier:
        """The strongest nodes that weren't read yet; in the first hop all seeds."""
        self._hop += 1
        self._spread()
        rules, first = self._rules, self._hop == 1
        waiting = [(-s, node) for node, s in self._strength.items() if node not in self._expanded and s > 0]
        documents = sorted(one for one in waiting if not is_name(one[1]))
        names = sorted(one for one in waiting if is_name(one[1]))
        size = len(documents) if first else rules.frontier_max
        self._count("frontier_max", len(documents) - size)
        self._count("names_max", len(names) - rules.names_max)
        frontier = Frontier(
            documents=tuple(node for _, node in documents[:size]),
            names=tuple(node for _, node in names[: rules.names_max]),
        )
        self._expanded.update(frontier.documents, frontier.names)
        return frontier

    def waiting_names(self) -> tuple[str, ...]:
        """The strongest names that no frontier had yet, the other ends of relations among them."""
        self._spread()
        self._spread_once()
        waiting = [(-s, n) for n, s in self._strength.items() if is_name(n) and n not in self._expanded]
        return tuple(node for strength, node in sorted(waiting)[: self._rules.names_max] if strength < 0)

    def name_ids(self, names: Iterable[str]) -> list[str]:
        """Ids of these nodes' names in any namespace, as far as rows told them."""
        asked = set(names)
        told = {
            edge.key for _, edge in self._edges.values() if edge.kind == "mention" and edge.target in asked
        }
        read = {
            row.name_id[0] for row in self._names.values() if name_node(row.label[0], row.key[0]) in asked
        }
        return sorted(told | read)

    def asked(self) -> None:
        """One round trip more; what came back leads to the next nodes."""
        self._round_trips += 1
        self._spreads += 1

    def _spread(self) -> None:
        """Strength over the edges, once a round trip: only when somebody wants to know what is strong."""
        for _ in range(self._spreads):
            self._spread_once()
        self._spreads = 0

    def _spread_once(self) -> None:
        offered: defaultdict[str, float] = defaultdict(float)
        strengths = self._strength
        for _, edge in self._edges.values():
            source, target = edge.source, edge.target
            if target not in strengths:
                known, other = source, target
            elif source not in strengths:
                known, other = target, source
            else:
                continue
            if (strength := strengths.get(known, 0.0)) > 0:
                offered[other] = max(offered[other], strength * edge.weight)
        strengths |= offered

    def take_documents(self, total: int) -> None:
        self._documents = total

    def take_links(self, rows: Sequence[LinkColumns], frontier: Frontier) -> None:
        edges = [edge for row in rows if (edge := link_edge(row, self._rules)) is not None]
        self._take(cap_links(edges, frontier.documents, self._strength, self._rules), of=len(edges))

    def take_mentions_in(self, rows: Sequence[MentionColumns]) -> None:
        self._take(cap_names_of_documents(map(mention_edge, rows), self._rules), of=len(rows))

    def take_mentions_of(self, rows: Sequence[MentionColumns], frontier: Frontier) -> None:
        asked = set(frontier.names)
        edges = [edge for edge in map(mention_edge, rows) if edge.target in asked]
        self._take(cap_documents_of_names(edges, self._strength, self._rules), of=len(edges))

    def take_relations(self, rows: Sequence[RelationColumns]) -> None:
        self._take([relation_edge(row, self._rules) for row in rows], of=len(rows))

    def take_names(self, rows: Iterable[NameColumns]) -> None:
        """Names of the entities that the question names are as strong as the name that it says."""
        asked = set(self._seeds.entity_ids)
        best = max(self._seeds.names.values(), default=0.0)
        for row in rows:
            self._names[row.name_id[0]] = row
            if row.entity_id[0] in asked and not row.blocked[0]:
                self._strength.setdefault(name_node(row.label[0], row.key[0]), best)

    def take_rows(self, rows: Iterable[DocumentColumns]) -> None:
        for row in rows:
            self.rows[row.doc_id[0]] = seed_row(row)

    def take_computed(self, edges: Sequence[Edge]) -> None:
        self._take(edges, of=len(edges))

    def subgraph(self) -> Subgraph:
        """Names that were read and aren't blocked, joined; edges of versions that the seeds' rows know."""
        kept = self._within_edges_max()
        names, nodes, allowed = join_names(self._names.values())
        joined = with_joined_names(kept, nodes, allowed)
        self._count("names_unread", unread_names(kept, self._names))
        raw = Subgraph(
            edges=joined,
            names=names,
            nodes=nodes,
            documents=self._documents,
            truncated={name: count for name, count in sorted(self.truncated.items()) if count},
            round_trips=self._round_trips,
        )
        return standing(raw, {doc_id: row.version for doc_id, row in self.rows.items()})

    def _take(self, edges: Iterable[Edge], *, of: int) -> None:
        """Of one pair and kind the newest version, then the strongest, then the first key."""
        kept = 0
        for edge in edges:
            kept += 1
            key = (edge.kind, edge.source, edge.target)
            known = self._edges.get(key)
            if known is None or rank_of(edge) < rank_of(known[1]):
                self._edges[key] = (self._hop if known is None else known[0], edge)
        self._count("edges_of_node", of - kept)

    def _within_edges_max(self) -> list[Edge]:
        """The nearest, then those of the strongest nodes."""
        most = self._rules.edges_max
        if len(self._edges) <= most:
            return [edge for _, edge in self._edges.values()]
        self._count("edges_max", len(self._edges) - most)
        self._spread()
        ranked = sorted((hop, *self._worth(edge), key) for key, (hop, edge) in self._edges.items())
        return [self._edges[one[-1]][1] for one in ranked[:most]]

    def _worth(self, edge: Edge) -> tuple[float, float]:
        ends = self._strength.get(edge.source, 0.0), self._strength.get(edge.target, 0.0)
        return -max(ends) * edge.weight, -min(ends)

    def _count(self, cap: str, left_out: int) -> None:
        if left_out > 0:
            self.truncated[cap] += left_out
