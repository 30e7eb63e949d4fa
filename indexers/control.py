"""Labels of namespaces, kept in the control index: the one thing that neither the vault nor a rebuild brings back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from indexers.domain.entities.labels import DEFAULT_LABELS, NamespaceLabels, changed, check, from_value
from indexers.domain.entities.patterns import compile_patterns
from indexers.domain.identity import EntityNamespace, Principal
from indexers.errors import HoplineError
from indexers.opensearch.gate import Gate, RowRef, RowWrite, StoredRow
from indexers.opensearch.rows import ControlRow, Index, owner_fields

LABELS: Final = "labels"


class LabelsConflict(HoplineError):  # noqa: N818 - named as the fact
    """Somebody else changed the labels since they were read: read them again, then decide anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredLabels:
    """The labels of a namespace as last written; the defaults where nobody has."""

    namespace: EntityNamespace
    labels: NamespaceLabels = DEFAULT_LABELS
    updated_by: str | None = None
    updated_at: str | None = None
    #: What is stored can't be used, and why: nothing of the namespace may be extracted until it is mended.
    problem: str | None = None
    #: Of the row as it was read, None where there is none.
    seq_no: int | None = None
    primary_term: int | None = None


async def read_labels(
    gate: Gate, namespaces: Sequence[EntityNamespace]
) -> dict[EntityNamespace, StoredLabels]:
    """As last written, in one realtime round trip."""
    wanted = list(dict.fromkeys(namespaces))
    refs = [RowRef(principal=Principal.pipeline(ns.tenant_id), row_id=labels_id(ns)) for ns in wanted]
    rows = await gate.get_many(Index.CONTROL, refs) if refs else []
    return {ns: _stored(ns, row) for ns, row in zip(wanted, rows, strict=True)}


async def change_labels(
    gate: Gate, before: StoredLabels, wanted: NamespaceLabels, *, settled: bool, by: str, at: str
) -> StoredLabels:
    """Store `wanted` (labels and patterns of it) as the successor of what was read; `version` says if it differs.

    `settled`: see `labels.changed`. Whoever calls asks for extraction if the version grew. Raises ValueError for
    labels or patterns that can't be used, LabelsConflict where `before` is no longer what is stored.
    """
    check_labels(wanted)
    labels = changed(before.labels, wanted, settled=settled)
    namespace = before.namespace
    row = ControlRow(
        **owner_fields(namespace.namespace),
        kind=LABELS,
        name=namespace.owner,
        value=labels.to_value(),
        version=labels.version,
        updated_by=by,
        updated_at=at,
    )
    [result] = await gate.write([_write(before, row)])
    if result.status == "rejected":
        raise ValueError(result.reason)
    [stored] = (await read_labels(gate, [namespace])).values()
    # A request that was applied and whose answer got lost says conflict when it is sent again.
    if (stored.labels, stored.updated_by, stored.updated_at) != (labels, by, at):
        who = stored.updated_by or "nobody"
        msg = f"the labels of {namespace.owner} were changed meanwhile by {who} at {stored.updated_at}: read them again"
        raise LabelsConflict(msg)
    return stored


def check_labels(labels: NamespaceLabels) -> None:
    """Raises ValueError for what can't be used, patterns included."""
    check(labels)
    compile_patterns(labels.patterns)


def labels_id(namespace: EntityNamespace) -> str:
    return f"{LABELS}/{namespace.owner}"


def _write(before: StoredLabels, row: ControlRow) -> RowWrite:
    principal, row_id = Principal.pipeline(before.namespace.tenant_id), labels_id(before.namespace)
    if before.seq_no is None:
        return RowWrite(principal=principal, index=Index.CONTROL, row_id=row_id, action="create", row=row)
    return RowWrite(
        principal=principal,
        index=Index.CONTROL,
        row_id=row_id,
        action="replace_if",
        row=row,
        seq_no=before.seq_no,
        primary_term=before.primary_term,
    )


def _stored(namespace: EntityNamespace, row: StoredRow | None) -> StoredLabels:
    if row is None:
        return StoredLabels(namespace=namespace)
    labels, problem = DEFAULT_LABELS, None
    try:
        labels = from_value(row.source["value"])
    except ValueError as error:
        problem = f"the stored labels of {namespace.owner} can't be used: {error}"
    return StoredLabels(
        namespace=namespace,
        labels=labels,
        updated_by=row.source["updated_by"],
        updated_at=row.source["updated_at"],
        problem=problem,
        seq_no=row.seq_no,
        primary_term=row.primary_term,
    )
