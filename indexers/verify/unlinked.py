"""Unlinked mentions: looked up once more from the files, and compared with the rows that the index has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from indexers.domain.identity import DocumentId, TenantId
from indexers.linking.unlinked_look import NamedText, look_at
from indexers.opensearch.gate import Gate
from indexers.opensearch.rows import LinkRow
from indexers.verify.report import VerifyReport

_FIELDS = ("from_path", "to_doc_id", "target", "target_key", "occurrences", "ambiguous")


async def compare_unlinked(
    report: VerifyReport,
    gate: Gate,
    tenant_id: TenantId,
    texts: Sequence[NamedText],
    stored: Mapping[DocumentId, Mapping[str, LinkRow]],
    *,
    cap: int,
) -> None:
    """`stored`: rows by document. The caller has refreshed the index."""
    looks = await look_at(gate, tenant_id, texts, cap=cap)
    for text, look in zip(texts, looks, strict=True):
        rows = stored.get(text.key.doc_id, {})
        due: dict[str, LinkRow] = {str(row_id): row for row_id, row in look.rows.items()}
        for row_id, row in due.items():
            _compare(report, text, row, rows.get(row_id))
        for row_id in sorted(set(rows) - set(due)):
            row = rows[row_id]
            # A row without a target marks a name as common: nothing leads anywhere by it.
            if row.version != text.version or row.to_doc_id is not None:
                report.add(
                    "orphan_unlinked_mention", text.key.path, f"{row.target!r} of version {row.version}"
                )
        report.unlinked_mentions += len(due)


def _compare(report: VerifyReport, text: NamedText, due: LinkRow, row: LinkRow | None) -> None:
    if row is None or row.to_doc_id is None:
        report.add("missing_unlinked_mention", text.key.path, f"{due.target!r} → {due.to_doc_id}")
        return
    fields, found = msgspec.structs.asdict(due), msgspec.structs.asdict(row)
    differing = [name for name in _FIELDS if fields[name] != found[name]]
    if differing:
        report.add(
            "wrong_unlinked_mention", text.key.path, f"{due.target!r} differs in {', '.join(differing)}"
        )
