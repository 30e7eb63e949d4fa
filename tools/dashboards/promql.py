"""What a PromQL expression asks for: its metrics, the labels that it uses, and what it compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as promql

_SETS = frozenset({"and", "or", "unless"})
_COMPARISONS = frozenset({"==", "!=", ">", "<", ">=", "<="})


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A metric as an expression names it, with the labels that it matches, and their values where it says `=`."""

    metric: str
    labels: frozenset[str]
    equal: tuple[tuple[str, str], ...] = ()


def parse(text: str) -> promql.Expr:
    """Raises ValueError with the place where `text` is no PromQL."""
    expression: promql.Expr = promql.parse(text)
    return expression


def nodes(root: promql.Expr) -> list[promql.Expr]:
    """All parts of an expression, itself included."""
    found: list[promql.Expr] = []
    promql.walk(root, pre_visit=found.append)
    return found


def selectors(root: promql.Expr) -> list[Selector]:
    return [
        Selector(
            metric=node.name or "",
            labels=frozenset(matcher.name for matcher in node.matchers.matchers),
            equal=tuple((m.name, m.value) for m in node.matchers.matchers if m.op == promql.MatchOp.Equal),
        )
        for node in nodes(root)
        if isinstance(node, promql.VectorSelector)
    ]


def grouped_labels(root: promql.Expr) -> list[tuple[promql.Expr, list[str]]]:
    """Each `by (…)` of an expression, with what it stands around."""
    return [
        (node.expr, list(node.modifier.labels))
        for node in nodes(root)
        if isinstance(node, promql.AggregateExpr) and node.modifier is not None
    ]


def without_comparisons(root: promql.Expr) -> Iterator[promql.Expr]:
    """The sides of `and`, `or`, `unless` and what is compared: each must have a value on a healthy installation.

    `absent(X)` and `label_replace(X, …)` stand for X.
    """
    match root:
        case promql.ParenExpr():
            yield from without_comparisons(root.expr)
        case promql.BinaryExpr() if str(root.op) in _SETS:
            yield from without_comparisons(root.lhs)
            yield from without_comparisons(root.rhs)
        case promql.BinaryExpr() if str(root.op) in _COMPARISONS:
            yield from (side for side in (root.lhs, root.rhs) if not _is_number(side))
        case promql.Call() if root.func.name in {"absent", "label_replace"}:
            yield from without_comparisons(root.args[0])
        case _:
            yield root


def _is_number(side: promql.Expr) -> bool:
    """Of numbers alone: a limit."""
    return all(isinstance(node, promql.NumberLiteral | promql.BinaryExpr) for node in nodes(side))
