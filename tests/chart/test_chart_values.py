"""Which values the chart takes, and what it says of those that it doesn't."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.rendered import CHART, SET_UPS, template, values_file
from tools.chart_readme import comments

#: Objects of Kubernetes that are handed on as they are; kubeconform judges them.
HANDED_ON = {
    "/properties/global",
    "/properties/watcher/properties/extraContainers/items",
    "/definitions/affinity/properties/nodeAffinity",
    "/definitions/affinity/properties/podAffinity",
    "/definitions/affinity/properties/podAntiAffinity",
}
BAD = {
    "unknown key": ("--set surprise=1", "additional properties 'surprise' not allowed"),
    "unknown key below": ("--set kafka.tls.caFile=x", "additional properties 'caFile' not allowed"),
    "unknown agent's key": ("--set ingest.gpu.enabled=true", "additional properties 'gpu' not allowed"),
    "no brokers": ("--set-string kafka.bootstrapServers=", "/kafka/bootstrapServers"),
    "brokers without a port": ("--set kafka.bootstrapServers=broker", "/kafka/bootstrapServers"),
    "no OpenSearch": ("--set-string opensearch.url=", "/opensearch/url"),
    "no keys": ("--set-string query.existingSecret=", "/query/existingSecret"),
    "a mechanism that is none": ("--set kafka.sasl.mechanism=GSSAPI", "/kafka/sasl/mechanism"),
    "text for a number": ("--set-string kafka.partitions=4", "/kafka/partitions"),
    "a number for a setting": ("--set settings.HOPLINE_SEARCH__PAGE_SIZE=20", "got number, want string"),
    "a setting of something else": ("--set-string settings.PAGE_SIZE=20", "'^HOPLINE_"),
    "root as the user": ("--set podSecurity.runAsUser=0", "/podSecurity/runAsUser"),
    "a root outside the volume": ("--set vault.roots[0].path=../x", "/vault/roots/0/path"),
    "a team's vault without a team": ("--set vault.roots[0].scope=team", "/vault/roots/0"),
    "an ingress without a host": ("--set ingress.enabled=true", "/ingress/hosts"),
    "tokens without an audience": ("--set query.oidc.issuer=https://x", "/query/oidc"),
    "runbooks without a slash": ("--set monitoring.runbookBaseUrl=https://x", "/monitoring/runbookBaseUrl"),
    # What a schema can't say.
    "more pods than partitions": (
        "--set ingest.replicas=5",
        "ingest.replicas (5) is more than kafka.partitions (4)",
    ),
    "scaled to more than partitions": (
        "--set embed.autoscaling.enabled=true",
        "embed.autoscaling.maxReplicas (8) is more than kafka.partitions (4)",
    ),
    "a second group of more than partitions": (
        "--set embed.reindex.replicas=5",
        "embed.reindex.replicas (5) is more than kafka.partitions (4)",
    ),
    "fewest above most": (
        "--set ingest.autoscaling.enabled=true,ingest.autoscaling.minReplicas=4,ingest.autoscaling.maxReplicas=3",
        "ingest.autoscaling.minReplicas is more than maxReplicas",
    ),
    "SASL without a secret": (
        "--set kafka.securityProtocol=SASL_SSL",
        "kafka.securityProtocol SASL_SSL needs kafka.sasl.existingSecret",
    ),
    "certificates that nothing uses": ("--set kafka.tls.caSecret=ca", "kafka.tls is set, but"),
    "certificates for plain http": ("--set opensearch.tls.caSecret=ca", "opensearch.url is not https"),
    "a watcher beside several": (
        "--set watcher.mode=sidecar,ingest.replicas=2",
        "watcher.mode sidecar stands in the ingest pod",
    ),
    "a GPU for onnx": ("--set embed.gpu.enabled=true", "embed.gpu.enabled wants embedder.backend torch"),
    "memories in a vault": ("--set memories.path=notes/memories", "lie in each other"),
}
GOOD = {
    "as part of another chart": "--set global.region=eu",
    "an IPv4 address as broker": "--set kafka.bootstrapServers=192.0.2.1:9092",
    "as many pods as partitions": "--set ingest.replicas=4",
    "no vault": "--set vault.roots=null",
    "a team's vault": "--set vault.roots[0].scope=team,vault.roots[0].team=ops",
    "everything off": "--set init.enabled=false,verifier.enabled=false,watcher.mode=none,networkPolicy.enabled=false,"
    "podDisruptionBudget.enabled=false,topologySpread.enabled=false,memories.enabled=false,serviceAccount.create=false",
}


@pytest.mark.parametrize(("option", "message"), BAD.values(), ids=BAD)
def test_a_bad_value_is_refused_with_its_place(option: str, message: str) -> None:
    done = template("minimal", *option.split(" "))
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("option", GOOD.values(), ids=GOOD)
def test_a_good_value_is_taken(option: str) -> None:
    done = template("minimal", *option.split(" "))
    assert done.returncode == 0, done.stderr


def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    return found


def object_schemas(part: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(part, dict):
        if part.get("type") == "object":
            yield place, part
        for key, below in part.items():
            yield from object_schemas(below, f"{place}/{key}")
    elif isinstance(part, list):
        for number, below in enumerate(part):
            yield from object_schemas(below, f"{place}/{number}")


def test_no_level_of_the_schema_takes_unknown_keys() -> None:
    """Where any name may stand (labels, settings), it is text or a quantity that stands there."""
    found = dict(object_schemas(schema()))
    closed = {place for place, part in found.items() if part.get("additionalProperties") is False}
    named = {place for place, part in found.items() if isinstance(part.get("additionalProperties"), dict)}
    assert set(found) - closed - named == HANDED_ON
    assert {place.rpartition("/")[2] for place in named} == {"settings", "stringMap", "quantities"}


def test_schema_and_values_have_the_same_keys() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    whole = schema()

    def differences(value: Any, part: dict[str, Any], place: str) -> Iterator[str]:
        part = whole["definitions"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part
        known = part.get("properties")
        if isinstance(value, dict) and known is not None and not place.endswith("resources"):
            yield from (f"{place}.{key}" for key in set(value) ^ (set(known) - {"global"}))
            for key in set(value) & set(known):
                yield from differences(value[key], known[key], f"{place}.{key}")

    assert sorted(differences(values, whole, "")) == [
        ".affinity.nodeAffinity",
        ".affinity.podAffinity",
        ".affinity.podAntiAffinity",
    ]


def test_every_value_is_explained() -> None:
    """Those of a map without words of its own, such as the requests of `resources`, by their key."""
    text = (CHART / "values.yaml").read_text(encoding="utf-8")
    explained = {place for place, _ in comments(text)}

    def unexplained(value: Any, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        if place in explained:
            return
        if isinstance(value, dict) and value:
            for key, below in value.items():
                yield from unexplained(below, (*place, key))
        else:
            yield place

    assert list(unexplained(yaml.safe_load(text), ())) == []


@pytest.mark.parametrize("set_up", SET_UPS)
def test_a_set_up_names_no_value_that_is_the_default(set_up: str) -> None:
    """So that a reader sees what makes it different."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    own = yaml.safe_load(values_file(set_up).read_text(encoding="utf-8"))

    def same(value: Any, default: Any, place: str) -> Iterator[str]:
        if isinstance(value, dict) and isinstance(default, dict):
            for key in value:
                yield from same(value[key], default.get(key), f"{place}.{key}")
        elif value == default:
            yield place

    assert list(same(own, defaults, "")) == []
