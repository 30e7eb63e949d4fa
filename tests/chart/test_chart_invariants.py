"""What must hold of every object that the chart makes, in every set-up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from hopline.settings import ENV_PREFIX, Settings, load_settings, setting_variables
from streams.topics import Topics
from streams.worker import _APP_STOP_SECONDS
from tests.rendered import AGENTS, CHART, SET_UPS, Workload, env_of, objects, of_kind, selects, workloads

DEFAULT_RUNBOOKS = "https://hopline.invalid/runbooks/"
#: Margin after the batch in flight and the stream library's end: the health page, the producer, the interpreter.
STOP_MARGIN_SECONDS = 10
SECRET_SETTINGS = ("PASSWORD", "USERNAME")

every_set_up = pytest.mark.parametrize("set_up", SET_UPS)


def containers(set_up: str) -> Iterator[tuple[Workload, Mapping[str, Any]]]:
    for workload in workloads(set_up):
        for container in workload.containers:
            yield workload, container


@every_set_up
def test_every_variable_is_a_setting_and_every_process_would_start(
    set_up: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and values: what the product itself makes of the environment of each container."""
    known = setting_variables(Settings, ENV_PREFIX)
    for workload, container in containers(set_up):
        found = env_of(container)
        assert {name for name in found if name.startswith(ENV_PREFIX)} <= set(known), container["name"]
        with monkeypatch.context() as process:
            for name, value in found.items():
                process.setenv(name, value if isinstance(value, str) else "from-a-secret")
            assert load_settings().prefix == "hopline", workload.name


@every_set_up
def test_no_variable_of_a_service_can_be_taken_for_a_setting(set_up: str) -> None:
    """Kubernetes would add HOPLINE_QUERY_SERVICE_HOST, which is no setting: no process would start."""
    assert {workload.name: workload.pod["enableServiceLinks"] for workload in workloads(set_up)} == {
        workload.name: False for workload in workloads(set_up)
    }


@every_set_up
def test_every_container_is_restricted(set_up: str) -> None:
    """The restricted Pod Security Standard, a read-only file system, no token, and bounds."""
    for workload, container in containers(set_up):
        pod, own = workload.pod["securityContext"], container["securityContext"]
        assert own == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        assert pod["runAsNonRoot"]
        assert pod["runAsUser"] > 0
        assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
        assert workload.pod["automountServiceAccountToken"] is False
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(workload.pod)
        assert {volume for entry in workload.pod["volumes"] for volume in entry} <= {
            *("name", "emptyDir", "secret", "projected", "persistentVolumeClaim")
        }
        resources = container["resources"]
        assert {"cpu", "memory"} <= set(resources["requests"])
        assert "memory" in resources["limits"]


@every_set_up
def test_what_is_written_to_is_a_volume(set_up: str) -> None:
    for workload, container in containers(set_up):
        mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in container["volumeMounts"]}
        volumes = {volume["name"] for volume in workload.pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
        assert (mounts["/tmp"], mounts["/var/lib/hopline"]) == (False, False)  # noqa: S108 - in the container
        writes = container["name"] in ("ingest", "link")
        assert mounts.get("/vault") == (None if workload.component == "init" else not writes)
        env = env_of(container)
        assert env["HOME"] in mounts
        assert env["HOPLINE_LOCAL__DATA_DIR"] in mounts
        files = [
            value for value in env.values() if isinstance(value, str) and value.startswith("/etc/hopline/")
        ]
        assert all(any(file.startswith(f"{mount}/") for mount in mounts) for file in files)


@every_set_up
def test_secrets_come_by_reference_only(set_up: str) -> None:
    assert of_kind("Secret", set_up) == []
    for _, container in containers(set_up):
        for name, value in env_of(container).items():
            if name.endswith(SECRET_SETTINGS):
                assert list(value) == ["secretKeyRef"], name


@every_set_up
def test_every_selector_takes_the_pods_it_is_meant_for_and_no_other(set_up: str) -> None:
    pods = {workload.component: workload.labels for workload in workloads(set_up)}

    def taken(selector: Mapping[str, Any]) -> set[str]:
        return {component for component, labels in pods.items() if selects(selector, labels)}

    workers = set(pods) - {"query", "init"}
    for workload in workloads(set_up):
        if workload.kind != "Job":
            assert taken(workload.spec["selector"]) == {workload.component}
        for constraint in workload.pod.get("topologySpreadConstraints", ()):
            assert taken(constraint["labelSelector"]) == {workload.component}
    for service in of_kind("Service", set_up):
        component = service["metadata"]["labels"]["app.kubernetes.io/component"]
        assert taken({"matchLabels": service["spec"]["selector"]}) == {component}
    budgets = of_kind("PodDisruptionBudget", set_up)
    assert [taken(budget["spec"]["selector"]) for budget in budgets] == [
        {name} for name in ("query", *AGENTS)
    ]
    for monitor in of_kind("PodMonitor", set_up):
        assert taken(monitor["spec"]["selector"]) == workers
    services = {
        service["metadata"]["name"]: service["metadata"]["labels"] for service in of_kind("Service", set_up)
    }
    for monitor in of_kind("ServiceMonitor", set_up):
        named = {name for name, labels in services.items() if selects(monitor["spec"]["selector"], labels)}
        assert named == {"hopline-query"}


@every_set_up
def test_no_selector_names_a_version(set_up: str) -> None:
    """Selectors can't be changed: the next version couldn't be installed over this one."""
    for workload in workloads(set_up):
        labels = workload.spec.get("selector", {}).get("matchLabels", {})
        assert not {"helm.sh/chart", "app.kubernetes.io/version"} & set(labels)


@every_set_up
def test_every_port_that_is_named_exists(set_up: str) -> None:
    ports: dict[str, set[str]] = {}
    for workload, container in containers(set_up):
        ports.setdefault(workload.component, set()).update(
            port["name"] for port in container.get("ports", ())
        )
        numbers = {port["name"]: port["containerPort"] for port in container.get("ports", ())}
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            if probe in container:
                assert container[probe]["httpGet"]["port"] in numbers
        env = env_of(container)
        told = {int(v) for k, v in env.items() if k.endswith(("__HTTP_PORT", "API__PORT"))}
        assert told == set(numbers.values())
        assert all(v == "0.0.0.0" for k, v in env.items() if k.endswith(("__HTTP_HOST", "API__HOST")))  # noqa: S104 - a pod of its own, behind the NetworkPolicy
    for service in of_kind("Service", set_up):
        component = service["spec"]["selector"]["app.kubernetes.io/component"]
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports[component]
    for monitor in of_kind("PodMonitor", set_up):
        named = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
        assert named == set().union(*(ports[name] for name in ports if name not in ("query", "init")))
    for monitor in of_kind("ServiceMonitor", set_up):
        assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ["http"]
    for ingress in of_kind("Ingress", set_up):
        for path in (path for rule in ingress["spec"]["rules"] for path in rule["http"]["paths"]):
            assert path["backend"]["service"] == {"name": "hopline-query", "port": {"name": "http"}}


@every_set_up
def test_every_long_lived_process_has_its_three_probes(set_up: str) -> None:
    asked = {"query": ("/healthz", "/healthz", "/readyz")}
    for workload, container in containers(set_up):
        probes = [
            container.get(f"{name}Probe", {}).get("httpGet", {})
            for name in ("startup", "liveness", "readiness")
        ]
        expected = asked.get(container["name"], ("/livez", "/livez", "/readyz"))
        assert tuple(probe.get("path") for probe in probes) == (
            (None,) * 3 if workload.kind == "Job" else expected
        )


@every_set_up
def test_a_worker_has_time_to_finish_and_keeps_its_name(set_up: str) -> None:
    for workload in workloads(set_up):
        if workload.component not in AGENTS:
            continue
        section = f"HOPLINE_{workload.component.upper()}__"
        env = env_of(workload.containers[0])
        grace = float(env[f"{section}STOP_GRACE_SECONDS"])
        needed = grace + _APP_STOP_SECONDS + STOP_MARGIN_SECONDS
        assert workload.pod["terminationGracePeriodSeconds"] >= needed
        assert workload.kind == "StatefulSet"
        assert workload.spec["podManagementPolicy"] == "Parallel"
        assert workload.spec["updateStrategy"] == {"type": "RollingUpdate"}
        assert env[f"{section}INSTANCE_ID"] == {"fieldRef": {"fieldPath": "metadata.name"}}
        assert workload.spec["serviceName"] in {s["metadata"]["name"] for s in of_kind("Service", set_up)}


@every_set_up
def test_only_one_of_replicas_and_autoscaler_says_how_many(set_up: str) -> None:
    scaled = {
        item["spec"]["scaleTargetRef"]["name"]: item["spec"]["scaleTargetRef"]["kind"]
        for kind in ("ScaledObject", "HorizontalPodAutoscaler")
        for item in of_kind(kind, set_up)
    }
    kinds = {workload.name: workload.kind for workload in workloads(set_up)}
    assert scaled == {name: kinds[name] for name in scaled}
    counted = {workload.name for workload in workloads(set_up) if "replicas" in workload.spec}
    assert counted & set(scaled) == set()
    assert counted | set(scaled) == {name for name, kind in kinds.items() if kind != "Job"}


@every_set_up
def test_scalers_look_at_the_lag_of_the_group_on_all_that_it_reads(set_up: str) -> None:
    topics = Topics("hopline")
    for scaler in of_kind("ScaledObject", set_up):
        agent = scaler["metadata"]["labels"]["app.kubernetes.io/component"]
        triggers = [trigger["metadata"] for trigger in scaler["spec"]["triggers"]]
        assert {trigger["topic"] for trigger in triggers} == set(topics.read_by(agent))
        assert {trigger["consumerGroup"] for trigger in triggers} == {topics.group(agent)}
        partitions = int(
            env_of(next(w for w in workloads(set_up)).containers[0])["HOPLINE_KAFKA__PARTITIONS"]
        )
        assert scaler["spec"]["maxReplicaCount"] <= partitions
        named = {
            t["authenticationRef"]["name"] for t in scaler["spec"]["triggers"] if "authenticationRef" in t
        }
        assert named == {item["metadata"]["name"] for item in of_kind("TriggerAuthentication", set_up)}


@every_set_up
def test_the_network_lets_through_what_is_needed_and_nothing_else(set_up: str) -> None:
    policies = [policy["spec"] for policy in of_kind("NetworkPolicy", set_up)]
    for workload in workloads(set_up):
        own = [policy for policy in policies if selects(policy["podSelector"], workload.labels)]
        assert {kind for policy in own for kind in policy["policyTypes"]} == {"Ingress", "Egress"}
        assert ports_of(own, "ingress") == inward(workload)
        assert ports_of(own, "egress") == outward(workload)
        metrics = [
            rule for policy in own for rule in policy.get("ingress", ()) if inward(workload) != {"http"}
        ]
        assert all(rule["from"] for rule in metrics), "metrics are for Prometheus"


def ports_of(policies: Sequence[Mapping[str, Any]], direction: str) -> set[str]:
    rules = [rule for policy in policies for rule in policy.get(direction) or ()]
    return {str(port["port"]) for rule in rules for port in rule["ports"]}


def inward(workload: Workload) -> set[str]:
    return {port["name"] for container in workload.containers for port in container.get("ports", ())}


def outward(workload: Workload) -> set[str]:
    env = env_of(workload.containers[0])
    brokers = {server.rpartition(":")[2] for server in env["HOPLINE_KAFKA__BOOTSTRAP_SERVERS"].split(",")}
    urls = [env[name] for name in ("HOPLINE_OPENSEARCH__URL", "HOPLINE_OIDC__JWKS_URL") if name in env]
    return {"53"} | brokers | {str(urlsplit(url).port or 443) for url in urls}


@every_set_up
def test_every_target_says_which_component_it_is(set_up: str) -> None:
    """Alerts and dashboards go by this label."""
    said: dict[str, Any] = {}
    for monitor in of_kind("ServiceMonitor", set_up):
        said |= {endpoint["port"]: endpoint["relabelings"] for endpoint in monitor["spec"]["endpoints"]}
    for monitor in of_kind("PodMonitor", set_up):
        said |= {
            endpoint["port"]: endpoint["relabelings"] for endpoint in monitor["spec"]["podMetricsEndpoints"]
        }
    for port, [relabeling] in said.items():
        assert relabeling["targetLabel"] == "component"
        value = {"http": "query", "watcher": "watcher"}.get(port)
        label = ["__meta_kubernetes_pod_label_app_kubernetes_io_component"]
        assert relabeling.get("replacement") == value
        assert relabeling.get("sourceLabels") == (None if value else label)


@every_set_up
def test_alerts_are_those_of_the_file_with_runbooks_where_they_are_published(set_up: str) -> None:
    text = (CHART / "files" / "rules.yaml").read_text(encoding="utf-8")
    for rule in of_kind("PrometheusRule", set_up):
        base = "https://docs.example.com/hopline/runbooks/" if set_up == "production" else DEFAULT_RUNBOOKS
        assert rule["spec"] == yaml.safe_load(text.replace(DEFAULT_RUNBOOKS, base))
        assert (DEFAULT_RUNBOOKS in json.dumps(rule)) == (base == DEFAULT_RUNBOOKS)


def test_dashboards_are_the_files_byte_for_byte() -> None:
    files = sorted((CHART / "files" / "dashboards").glob("*.json"))
    found = {
        name: text
        for item in of_kind("ConfigMap", "production")
        for name, text in item["data"].items()
        if item["metadata"]["labels"]["grafana_dashboard"] == "1"
    }
    assert found == {f"hopline-{file.name}": file.read_text(encoding="utf-8").rstrip("\n") for file in files}


@every_set_up
def test_names_are_unique_and_short_enough_for_what_kubernetes_adds(set_up: str) -> None:
    names = [(found["kind"], found["metadata"]["name"]) for found in objects(set_up)]
    assert len(names) == len(set(names))
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", name) for _, name in names)
    assert {found["metadata"].get("namespace") for found in objects(set_up)} == {None}


def test_mcp_answers_to_the_names_that_callers_use() -> None:
    """Any other Host header gets 421."""
    query = next(workload for workload in workloads("multi-tenant") if workload.component == "query")
    env = env_of(query.containers[0])
    hosts = json.loads(env["HOPLINE_MCP__ALLOWED_HOSTS"])
    wanted = {
        "memory.example.com",
        "memory.example.org",
        "hopline-query",
        "hopline-query.memory.svc",
        "hopline.internal",
    }
    assert wanted <= set(hosts)
    assert "hopline-query.memory.svc.cluster.local:*" in hosts
    origins = json.loads(env["HOPLINE_MCP__ALLOWED_ORIGINS"])
    assert origins == ["https://memory.example.com", "https://memory.example.org"]


def test_metrics_are_not_published() -> None:
    paths = [
        path["path"]
        for ingress in of_kind("Ingress", "production")
        for rule in ingress["spec"]["rules"]
        for path in rule["http"]["paths"]
    ]
    assert paths == ["/v1", "/mcp"]
