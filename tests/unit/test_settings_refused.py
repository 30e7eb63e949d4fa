"""A wrong setting is named with its variable, in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hopline.settings import load_settings
from indexers.errors import ConfigurationError
from indexers.settings import HealthSettings, LengthRule


@pytest.fixture(autouse=True)
def nothing_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("HOPLINE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOPLINE_LOCAL__DATA_DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("HOPLINE_VAULTS", "nonsense", "HOPLINE_VAULTS is no JSON"),
        ("HOPLINE_KAFKA", "{", "HOPLINE_KAFKA is no JSON"),
        ("HOPLINE_OPENSEARCH__DEDICATED_TENANTS", "acme", "HOPLINE_OPENSEARCH__DEDICATED_TENANTS is no JSON"),
        ("HOPLINE_EMBEDDER__CPU_AFFINITY", "0-3", "HOPLINE_EMBEDDER__CPU_AFFINITY is no JSON"),
        ("HOPLINE_API__PRT", "1", "did you mean HOPLINE_API__PORT?"),
        ("HOPLINE_LOG_LEVLE", "INFO", "did you mean HOPLINE_LOG_LEVEL?"),
        ("HOPLINE_SEARCH__PAGESIZE", "5", "HOPLINE_SEARCH__PAGESIZE is no setting; did you mean HOPLINE_"),
        ("HOPLINE_OPENSEARCH__URL", "localhost:9200", "HOPLINE_OPENSEARCH__URL .* is 'localhost:9200'"),
        ("HOPLINE_OPENSEARCH__URL", "http://127.0.0.1:port", "HOPLINE_OPENSEARCH__URL"),
        ("HOPLINE_API__PORT", "many", "api.port"),
        (
            "HOPLINE_INDEXING__HEALTH__SHORT__PENALY",
            "0.1",
            "did you mean HOPLINE_INDEXING__HEALTH__SHORT__PENALTY?",
        ),
        ("HOPLINE_INDEXING__HEALTH__SHORT__PENALTY", "2", "indexing.health.short.penalty"),
        (
            "HOPLINE_INDEXING__HEALTH__TRANSIENT__PATTERNS",
            '["("]',
            "indexing.health.transient.patterns.*no regular expression",
        ),
        ("HOPLINE_INDEXING__HEALTH__OVERRIDES", '{"novel": {}}', "indexing.health.overrides.novel"),
    ],
)
def test_wrong_setting_is_one_line_that_names_it(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=message) as refused:
        load_settings()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HOPLINE_OPENSEARCH__DEDICATED_TENANTS", '{"acme": "acme"}'),
        ("HOPLINE_OPENSEARCH__DEDICATED_TENANTS__ACME", "acme"),
        ("HOPLINE_KAFKA", '{"partitions": 3}'),
        ("HOPLINE_API__PORT", "8480"),
        ("HOPLINE_INDEXING__HEALTH__UNTAGGED__DOC_TYPES", '["note", "memory"]'),
        ("HOPLINE_INDEXING__HEALTH__OVERRIDES", '{"note": {"short": {"characters": 12}}}'),
        ("HOPLINE_CONFIG", os.devnull),
    ],
)
def test_every_way_to_write_a_right_setting_is_taken(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, variable: str, value: str
) -> None:
    if variable == "HOPLINE_CONFIG":
        (tmp_path / "empty.toml").write_text("")
        value = str(tmp_path / "empty.toml")
    monkeypatch.setenv(variable, value)
    load_settings()


def test_one_value_of_a_health_rule_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOPLINE_INDEXING__HEALTH__SHORT__PENALTY", "0.1")
    health = load_settings().indexing.health
    assert health == HealthSettings(short=LengthRule(penalty=0.1, characters=30))
