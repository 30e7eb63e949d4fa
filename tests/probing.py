"""Random requests over every route, and what no answer to them may show.

A world of two tenants with three scopes each, alike but for one word of each vault. Whoever asks for whatever, with
whatever ids, words, cursors and filters of anybody: the answer holds no word and no id of a vault that the asker
doesn't see, and what is asked by an id of others is answered like an id that nobody has.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from indexers.domain.identity import Principal

#: An id that is nobody's, in the form of all.
NOBODYS = "deadbeef-0000-5000-8000-000000000000"
_REQUEST_ID = re.compile(r'"request_id":\s*"[^"]*"|\(request [0-9a-f-]{36}\)')
MCP: Final = "/mcp"
_MCP_HEADERS: Final = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
_PARAMETER = re.compile(r"{(\w+)}")
#: A tool's argument that is text, whatever it says: other ids in it are other text, near to other documents.
_TEXT: Final = "query"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """`sees`: names of vaults."""

    principal: Principal
    key: str
    sees: frozenset[str]


@dataclass(slots=True, kw_only=True)
class World:
    """Words and ids by the vault that they are of, and what askers were given so far."""

    askers: list[Asker]
    words: Mapping[str, str]
    #: Vault → kind of id (doc_id, entity_id, proposal_id, event_id …) → ids.
    ids: Mapping[str, Mapping[str, list[str]]]
    #: Cursors that some asker got, by route: another may try them.
    cursors: dict[str, list[str]] = field(default_factory=dict)

    def any_id(self, rnd: random.Random, kind: str, asker: Asker) -> str:
        """Of half of the probes one that the asker sees, else anybody's or nobody's."""
        own = [one for name in sorted(asker.sees) for one in self.ids[name].get(kind, [])]
        if own and rnd.random() < 0.5:
            return rnd.choice(own)
        return rnd.choice([NOBODYS, *(one for vault in self.ids.values() for one in vault.get(kind, []))])

    def own(self, asker: Asker) -> set[str]:
        """Ids that the asker sees."""
        return {one for name in asker.sees for found in self.ids[name].values() for one in found}

    def foreign(self, asker: Asker) -> tuple[set[str], set[str]]:
        """Words and ids that the asker must not be shown."""
        others = [name for name in self.words if name not in asker.sees]
        ids = {one for name in others for found in self.ids[name].values() for one in found}
        return {self.words[name] for name in others}, ids


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    method: str
    route: str
    asker: Asker
    path_values: Mapping[str, str]
    params: Mapping[str, Any]
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return _PARAMETER.sub(lambda found: self.path_values[found[1]], self.route)

    @property
    def said(self) -> str:
        """All that the request itself says: an answer may repeat it."""
        parts = [*self.path_values.values(), *map(str, self.params.values()), *self.headers.values()]
        return " ".join(parts) + json.dumps(self.body, ensure_ascii=False)

    def with_nobodys(self, ids: set[str]) -> Probe:
        """The same about ids that nobody has: in the path, and in a tool's arguments."""
        values = {name: NOBODYS if value in ids else value for name, value in self.path_values.items()}
        body = self.body
        if self.route == MCP:
            arguments = body["params"]["arguments"]
            named = {n: NOBODYS if n != _TEXT and value in ids else value for n, value in arguments.items()}
            body = {**body, "params": {**body["params"], "arguments": named}}
        return Probe(
            method=self.method,
            route=self.route,
            asker=self.asker,
            path_values=values,
            params=self.params,
            body=body,
            headers=self.headers,
        )

    @property
    def named(self) -> set[str]:
        """Ids and other values by which it names things."""
        values = set(self.path_values.values())
        if self.route == MCP:
            arguments = self.body["params"]["arguments"].items()
            values |= {value for name, value in arguments if name != _TEXT and isinstance(value, str)}
        return values


#: Makes the body of a probe of one route.
BodyOf = Callable[[random.Random, World, Asker], Any]


@dataclass(slots=True, kw_only=True)
class Prober:
    """`bodies`: (method, route) → body; of every route that takes one. `idle`: routes that nobody probes, and why."""

    world: World
    http: httpx2.AsyncClient
    openapi: Mapping[str, Any]
    bodies: Mapping[tuple[str, str], BodyOf]
    idle: frozenset[tuple[str, str]] = frozenset()
    #: MCP tool → its arguments.
    tools: Mapping[str, BodyOf] = field(default_factory=dict)
    statuses: dict[tuple[str, str], set[int]] = field(default_factory=dict)

    @property
    def routes(self) -> list[tuple[str, str]]:
        """Of the OpenAPI document: a new route is probed without a word here, or fails for want of a body."""
        return sorted(
            (method.upper(), route)
            for route, operations in self.openapi["paths"].items()
            for method in operations
            if (method.upper(), route) not in self.idle
        ) + [(MCP, tool) for tool in sorted(self.tools)]

    @property
    def answered(self) -> set[tuple[str, str]]:
        """Routes and tools that gave somebody what was asked for."""
        return {route for route, statuses in self.statuses.items() if statuses & {200, 201, 202}}

    def probe(self, rnd: random.Random, of: tuple[str, str] | None = None) -> Probe:
        """`of`: one of `routes`; None: any."""
        method, route = of or rnd.choice(self.routes)
        if method == MCP:
            return self._tool_probe(rnd, route)
        operation = self.openapi["paths"][route][method.lower()]
        params, headers = {}, {}
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "query" and (parameter.get("required") or rnd.random() < 0.4):
                params[parameter["name"]] = self._value(rnd, route, parameter["name"])
        if rnd.random() < 0.05:
            headers["x-hopline-tenant"] = rnd.choice(["t1", "t2"])
        asker = rnd.choice(self.world.askers)
        body = self.bodies[method, route](rnd, self.world, asker) if "requestBody" in operation else None
        path_values = {name: self._path_value(rnd, name, asker) for name in _PARAMETER.findall(route)}
        if path_values.get("doc_id") in self.world.own(asker):
            # It would be waited for: nobody carries out what is asked for here.
            params.pop("erase", None)
        return Probe(
            method=method,
            route=route,
            asker=asker,
            path_values=path_values,
            params=params,
            body=body,
            headers=headers,
        )

    def _tool_probe(self, rnd: random.Random, tool: str) -> Probe:
        asker = rnd.choice(self.world.askers)
        call = {"name": tool, "arguments": self.tools[tool](rnd, self.world, asker)}
        return Probe(
            method="POST",
            route=MCP,
            asker=asker,
            path_values={},
            params={},
            body={"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
            headers=_MCP_HEADERS,
        )

    async def check(self, probe: Probe) -> None:
        """Raises AssertionError for a leak, a server's fault, or an answer that tells foreign from missing."""
        answer = await self._send(probe)
        self._note(probe, answer)
        told = f"{probe.method} {probe.path} {dict(probe.params)} {probe.body} by {probe.asker.principal}"
        assert answer.status_code < 500 or answer.status_code == 503, f"{told}: {answer.text}"
        words, ids = self.world.foreign(probe.asker)
        shown = answer.text + json.dumps(dict(answer.headers))
        leaked = [one for one in (*words, *ids) if one in shown and one not in probe.said]
        assert not leaked, f"{told} shows {leaked}"
        self._collect(probe, answer)
        foreign = probe.named & ids
        if foreign:
            await self._compare(probe, answer, foreign, told)

    def _note(self, probe: Probe, answer: httpx2.Response) -> None:
        """A tool that refuses says so within an answer of 200."""
        key, status = (probe.method, probe.route), answer.status_code
        if probe.route == MCP:
            key = (MCP, probe.body["params"]["name"])
            status = 422 if status == 200 and answer.json().get("result", {}).get("isError", True) else status
        self.statuses.setdefault(key, set()).add(status)

    async def _compare(self, probe: Probe, answer: httpx2.Response, foreign: set[str], told: str) -> None:
        other = probe.with_nobodys(foreign)
        missing = await self._send(other)
        one, two = _told(answer, probe), _told(missing, other)
        assert one == two, f"{told}: {one} where nobody's id gives {two}"

    async def _send(self, probe: Probe) -> httpx2.Response:
        headers = {"authorization": f"Bearer {probe.asker.key}", **probe.headers}
        if probe.body is None:
            return await self.http.request(
                probe.method, probe.path, params=dict(probe.params), headers=headers
            )
        return await self.http.request(
            probe.method, probe.path, params=dict(probe.params), headers=headers, json=probe.body
        )

    def _path_value(self, rnd: random.Random, name: str, asker: Asker) -> str:
        if name == "namespace":
            return rnd.choice(["shared", "agent:ada", "agent:bob", "team:ops", "team:sales", "agent:eve"])
        if name == "tenant":
            return rnd.choice(["t1", "t2", "t3", "hopline"])
        return self.world.any_id(rnd, name, asker)

    def _value(self, rnd: random.Random, route: str, name: str) -> Any:
        words = [*self.world.words.values(), "Copper", "Copper Guild", "ledger", "부산"]
        pools: dict[str, list[Any]] = {
            "q": words,
            "label": ["crew", "incident", "person"],
            "namespace": ["shared", "agent:ada", "team:ops"],
            "page_size": [1, 2, 50],
            "cursor": [*self.world.cursors.get(route, []), "x"],
            "depth": [1, 2, 3],
            "wait_for": ["ingested"],
            "timeout_seconds": [0.1],
            "erase": ["true"],
            "tenant": ["t1", "t2", "hopline"],
        }
        return rnd.choice(pools.get(name, [0, 1, 2, "true", "x"]))

    def _collect(self, probe: Probe, answer: httpx2.Response) -> None:
        if answer.status_code != 200 or "json" not in answer.headers.get("content-type", ""):
            return
        value = answer.json()
        cursor = value.get("next_cursor") if isinstance(value, dict) else None
        known = self.world.cursors.setdefault(probe.route, [])
        if cursor and len(known) < 20:
            known.append(cursor)


def _told(answer: httpx2.Response, probe: Probe) -> tuple[int, str]:
    text = _REQUEST_ID.sub("", answer.text)
    for value in probe.named:
        text = text.replace(value, "ID") if len(value) > 20 else text
    return answer.status_code, text
