"""The processes of the stack as specifications: the engines, then Hopline's own."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import hopline
from hopline.local.engine_homes import EngineHome
from hopline.local.engines import KafkaBroker, OpenSearchNode
from hopline.local.folders import StackFolders
from hopline.local.java import Java
from hopline.local.ports import LOOPBACK, free_ports
from hopline.local.preflight import node_user
from hopline.local.processes import Launch
from hopline.local.readiness import kafka_answers, opensearch_answers, service_ready
from hopline.local.state import StackPlan
from hopline.local.supervised import ProcessSpec
from hopline.settings import Settings

_ENGINE_GRACE_SECONDS = 30.0
#: Beyond the grace that an agent gives its batch in flight.
_SERVICE_GRACE_SECONDS = 10.0
SECOND_EMBED = "embed-reindex"


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """One of Hopline's own commands. `port_setting`: the variable, without prefix, of its port."""

    name: str
    command: tuple[str, ...]
    port_setting: str
    port: int
    host: str = LOOPBACK
    env: Mapping[str, str]


def engine_specs(settings: Settings, plan: StackPlan) -> list[ProcessSpec]:
    """Those that the plan names a folder for."""
    folders, local = StackFolders(settings.local.data_dir), settings.local
    java = Java(home=Path(plan.java_home), version=plan.java_version)
    specs: list[ProcessSpec] = []
    if plan.kafka_home:
        broker = KafkaBroker(
            home=EngineHome(name="kafka", version=plan.kafka_version, folder=Path(plan.kafka_home)),
            java=java,
            data_dir=folders.data_dir / "kafka",
            log=folders.log("kafka"),
            port=local.kafka_port,
            heap_mb=local.kafka_heap_mb,
            max_message_bytes=settings.kafka.max_message_bytes,
            short_lived=local.short_lived,
        )
        specs.append(_engine_spec(broker))
    if plan.opensearch_home:
        node = OpenSearchNode(
            home=EngineHome(
                name="opensearch", version=plan.opensearch_version, folder=Path(plan.opensearch_home)
            ),
            java=java,
            data_dir=folders.data_dir / "opensearch",
            log=folders.log("opensearch"),
            port=local.opensearch_port,
            heap_mb=local.opensearch_heap_mb,
            user=node_user(settings),
            short_lived=local.short_lived,
        )
        specs.append(_engine_spec(node))
    return specs


def service_specs(settings: Settings, plan: StackPlan) -> list[ProcessSpec]:
    """In the order of their start; they are stopped the other way round: first those that bring new work."""
    watcher = settings.watcher.http_port
    services = (
        _agent("ingest", settings.ingest.http_port, settings.ingest.instance_id),
        _agent("embed", settings.embed.http_port, settings.embed.instance_id),
        _agent("extract", settings.extract.http_port, settings.extract.instance_id),
        _agent("link", settings.link.http_port, settings.link.instance_id),
        Service(
            name="api",
            command=("api",),
            port_setting="API__PORT",
            port=settings.api.port,
            host=settings.api.host,
            env={},
        ),
        Service(name="watch", command=("watch",), port_setting="WATCHER__HTTP_PORT", port=watcher, env={}),
    )
    agents = (settings.ingest, settings.embed, settings.extract, settings.link)
    grace = max(agent.stop_grace_seconds for agent in agents) + _SERVICE_GRACE_SECONDS
    taken: set[int] = set()
    specs = []
    for service in services:
        port = service.port or free_ports(without=taken)
        taken.add(port)
        specs.append(_service_spec(service, port, settings, plan, grace))
    return specs


def second_embed_spec(settings: Settings, plan: StackPlan, taken: set[int]) -> ProcessSpec:
    """The second group of embed workers, while a reindex is open."""
    embed = settings.embed
    service = Service(
        name=SECOND_EMBED,
        command=("agent", "embed", "--reindex"),
        port_setting="EMBED__HTTP_PORT",
        port=free_ports(without=taken),
        env={"HOPLINE_EMBED__INSTANCE_ID": "local-embed-reindex"},
    )
    return _service_spec(
        service, service.port, settings, plan, embed.stop_grace_seconds + _SERVICE_GRACE_SECONDS
    )


def own_environment(plan: StackPlan) -> dict[str, str]:
    """The caller's environment, the vaults of the plan, and this very code even if it isn't installed."""
    source = str(Path(hopline.__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    return os.environ | {
        "HOPLINE_VAULTS": plan.vaults_json,
        "PYTHONPATH": path,
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _agent(name: str, port: int, instance_id: str | None) -> Service:
    # A stable member name: after a restart its partitions come back at once, not after a time-out.
    env = {} if instance_id else {f"HOPLINE_{name.upper()}__INSTANCE_ID": f"local-{name}"}
    setting = f"{name.upper()}__HTTP_PORT"
    return Service(name=name, command=("agent", name), port_setting=setting, port=port, env=env)


def _engine_spec(engine: KafkaBroker | OpenSearchNode) -> ProcessSpec:
    if isinstance(engine, KafkaBroker):
        servers = engine.servers
        return ProcessSpec(
            launch=engine.launch(),
            ready=lambda: kafka_answers(servers),
            url=servers,
            grace_seconds=_ENGINE_GRACE_SECONDS,
            prepare=engine.prepare,
        )
    url = engine.url
    return ProcessSpec(
        launch=engine.launch(),
        ready=lambda: opensearch_answers(url),
        url=url,
        grace_seconds=_ENGINE_GRACE_SECONDS,
        prepare=engine.prepare,
    )


def _service_spec(
    service: Service, port: int, settings: Settings, plan: StackPlan, grace_seconds: float
) -> ProcessSpec:
    folders = StackFolders(settings.local.data_dir)
    # A wildcard address is for listening only.
    host = LOOPBACK if service.host in {"0.0.0.0", "::"} else service.host  # noqa: S104 - compared, not bound
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    return ProcessSpec(
        launch=Launch(
            name=service.name,
            # -P: what lies in the caller's folder must not shadow a module. The folder itself stays, for
            # relative paths in the settings.
            argv=(sys.executable, "-P", "-m", "hopline", *service.command),
            cwd=Path.cwd(),
            env=own_environment(plan) | dict(service.env) | {f"HOPLINE_{service.port_setting}": str(port)},
            log=folders.log(service.name),
        ),
        ready=lambda: service_ready(url),
        url=url,
        grace_seconds=grace_seconds,
    )
