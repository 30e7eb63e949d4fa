"""What is looked for in a namespace's documents, and how far its extraction is."""

from __future__ import annotations

import re
from typing import Final

from indexers.control import LabelsConflict, StoredLabels, change_labels, check_labels, read_labels
from indexers.domain.entities.labels import NamespaceLabels, from_value
from indexers.domain.identity import EntityNamespace, Principal, Scope
from indexers.extracted import extraction_progress
from indexers.opensearch.gate import Gate
from search_api.entities.curating import reach, require_curator, send
from search_api.entities.models import LabelsAnswer, LabelsBody, ProgressAnswer
from search_api.problems import Problem, ProblemError, invalid_field, no_such
from streams.events import now_iso
from streams.extract_requests import request_record
from streams.producer import EventProducer
from streams.topics import Topics

#: Which label a fault speaks of, by its name.
_LABEL_AT_FAULT: Final = re.compile(
    r"label '(?P<name>[^']*)': (?P<what>prompt|the prompt|threshold|a description)"
)
_UNASKED: Final = (
    "The labels are stored, but the broker didn't confirm the request to extract by them. Send them again."
)


class Labelling:
    """Raises ProblemError. `model_id`: of the extractor that the agents run with."""

    def __init__(self, gate: Gate, producer: EventProducer, topics: Topics, *, model_id: str) -> None:
        self._gate = gate
        self._producer = producer
        self._topics = topics
        self._model_id = model_id

    async def get(self, principal: Principal, owner: str) -> LabelsAnswer:
        namespace = visible_namespace(principal, owner)
        [stored] = (await read_labels(self._gate, [namespace])).values()
        return await self._answer(stored)

    async def put(self, principal: Principal, owner: str, body: LabelsBody) -> LabelsAnswer:
        """Stored first, then asked for. The same labels may be sent again, whatever version they are based on."""
        require_curator(principal)
        namespace = visible_namespace(principal, owner)
        wanted = _wanted(body)
        [before] = (await read_labels(self._gate, [namespace])).values()
        if body.version not in (None, before.labels.version) and not _says_the_same(wanted, before.labels):
            raise ProblemError(_conflict(f"the labels are at version {before.labels.version} by now"))
        await reach(self._producer)
        progress = await extraction_progress(self._gate, namespace, self._model_id)
        try:
            stored = await change_labels(
                self._gate, before, wanted, settled=progress.finished, by=principal.agent_id, at=now_iso()
            )
        except LabelsConflict as conflict:
            raise ProblemError(_conflict(str(conflict))) from conflict
        request = request_record(self._topics, namespace, reason="labels_changed")
        await send(self._producer, [request], unconfirmed=_UNASKED)
        return await self._answer(stored)

    async def _answer(self, stored: StoredLabels) -> LabelsAnswer:
        progress = await extraction_progress(self._gate, stored.namespace, self._model_id)
        value = stored.labels.to_value()
        return LabelsAnswer(
            namespace=stored.namespace.owner,
            labels=value["labels"],
            patterns=value["patterns"],
            retired=value["retired"],
            version=stored.labels.version,
            updated_by=stored.updated_by,
            updated_at=stored.updated_at,
            problem=stored.problem,
            progress=ProgressAnswer(done=progress.done, total=progress.total),
        )


def visible_namespace(principal: Principal, owner: str) -> EntityNamespace:
    """Of the principal's own tenant; a team's to its members, an agent's to itself. Else 404."""
    try:
        namespace = EntityNamespace(tenant_id=principal.tenant_id, owner=owner)
    except ValueError as exc:
        raise no_such("namespace") from exc
    owned = namespace.namespace
    allowed = {
        Scope.SHARED: True,
        Scope.TEAM: owned.team_id in principal.teams,
        Scope.PERSONAL: owned.agent_id == principal.agent_id,
    }[namespace.scope]
    if not allowed:
        raise no_such("namespace")
    return namespace


def _wanted(body: LabelsBody) -> NamespaceLabels:
    """Raises 422 that names the field."""
    try:
        labels = from_value(body.model_dump(include={"labels", "patterns"}))
        check_labels(labels)
    except ValueError as exc:
        raise ProblemError(invalid_field(_field_at_fault(str(exc), body), str(exc))) from exc
    return labels


def _field_at_fault(fault: str, body: LabelsBody) -> str:
    found = _LABEL_AT_FAULT.match(fault)
    names = [label.name for label in body.labels]
    if found is not None and found["name"] in names:
        field = found["what"].split()[-1]
        return f"body.labels.{names.index(found['name'])}.{field}"
    if fault.startswith("pattern of "):
        at = [
            place
            for place, rule in enumerate(body.patterns)
            if fault.startswith(f"pattern of {rule.label!r}")
        ]
        return f"body.patterns.{at[0]}.pattern" if len(at) == 1 else "body.patterns"
    return "body.labels"


def _says_the_same(wanted: NamespaceLabels, stored: NamespaceLabels) -> bool:
    return (wanted.labels, wanted.patterns) == (stored.labels, stored.patterns)


def _conflict(detail: str) -> Problem:
    return Problem(
        kind="labels-conflict", detail=f"{detail[:1].upper()}{detail[1:]}. Read them again, then decide."
    )
