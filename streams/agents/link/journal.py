"""Commands of curators as lines of the vault that owns the namespace: written before anything follows from them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from indexers.domain.identity import DocumentKey, EntityNamespace
from indexers.errors import PoisonRecord, Transient, VaultUnavailable
from indexers.settings import VaultRoot
from indexers.vault.journal import FOLDER, Journal
from streams.agents.link.decode import decode_command
from streams.agents.vaults import Vaults
from streams.events import CurationCommand, encode
from streams.producer import OutgoingRecord
from streams.topics import Topics

T = TypeVar("T")
CURATION_FILE: Final = "curation.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class CurationJournal:
    """Blocking: off the event loop."""

    vaults: Vaults

    def append(self, namespace: EntityNamespace, commands: Sequence[CurationCommand]) -> set[str]:
        """Ids of those that stand in it now: the others were erased since they were written first.

        Raises Transient while the root is awaited, else PoisonRecord.
        """
        lines = {command.event_id: encode(command) for command in commands}

        def append(journal: Journal) -> set[str]:
            journal.append(lines)
            return set(lines) - journal.erased()

        return self._reached(namespace, append)

    def erase(self, namespace: EntityNamespace, event_ids: Collection[str]) -> int:
        """Number of lines that were overwritten. Raises as `append`."""

        def is_erased(line: bytes) -> bool:
            try:
                return decode_command(line).event_id in event_ids
            except PoisonRecord:
                return False

        return self._reached(namespace, lambda journal: journal.erase(is_erased))

    def _reached(self, namespace: EntityNamespace, work: Callable[[Journal], T]) -> T:
        files = self.vaults.files
        roots = roots_of(files.roots, namespace)
        root = roots[0] if roots else files.root_of(namespace.namespace)
        if root is None:
            owner = f"{namespace.tenant_id}/{namespace.owner}"
            raise PoisonRecord(
                "unknown_vault", f"no vault is set for {owner}: add it to HOPLINE_VAULTS, replay"
            )
        place = DocumentKey(namespace=root.namespace, path=f"{FOLDER}/{CURATION_FILE}")
        try:
            with self.vaults.reach(place) as vault:
                vault.root_identity()
                files.make(root.namespace)
                return work(Journal(root.path, CURATION_FILE))
        except FileNotFoundError as exc:
            # The root went between two looks: the next try sees it as it is then.
            raise Transient(f"{root.name}: {exc}") from exc


def roots_of(roots: Sequence[VaultRoot], namespace: EntityNamespace) -> list[VaultRoot]:
    """By name; the first one holds what is decided about the namespace's names."""
    found = [root for root in roots if EntityNamespace.of(root.namespace) == namespace]
    return sorted(found, key=lambda root: root.name)


def curation_records(root: VaultRoot, topics: Topics) -> tuple[list[OutgoingRecord], int]:
    """The journal's commands as they came, for a replay; and lines left out: none of ours, or of another owner.

    A folder that was copied from another tenant decides nothing here. Raises VaultUnavailable where it can't be read.
    """
    owner = EntityNamespace.of(root.namespace)
    records: list[OutgoingRecord] = []
    left_out = 0
    try:
        lines = list(Journal(root.path, CURATION_FILE).lines())
    except OSError as exc:
        raise VaultUnavailable(f"{root.name}: {exc}") from exc
    for line in lines:
        try:
            event = decode_command(line)
        except PoisonRecord:
            left_out += 1
            continue
        if EntityNamespace.of(event.namespace) == owner:
            key = owner.record_key(event.label)
            records.append(OutgoingRecord(topic=topics.mentions, key=key, value=line))
        else:
            left_out += 1
    return records, left_out
