"""Dockerfile and compose file, as far as files can tell; `tools.images.rehearse` carries them out."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from hopline.cli.main import build_app
from hopline.settings import ENV_PREFIX, Settings, load_settings, setting_variables
from tools.images import sbom
from tools.images.dockerfile import Stage, kept, parse, whole
from tools.images.services import hopline_services, read_compose

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "images" / "Dockerfile"
COMPOSE = ROOT / "deploy" / "compose" / "compose.yaml"
TARGETS = ("cpu", "cuda")
#: As the chart's `podSecurity`.
USER = "10001:10001"
SERVICES = hopline_services(COMPOSE)
#: Those that end when they are done, and the command line.
ONCE = {"keys", "init", "cli"}


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    return parse(DOCKERFILE.read_text())


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return read_compose(COMPOSE)


@pytest.fixture(scope="module")
def app() -> typer.Typer:
    return build_app()


def sections_with_a_port() -> dict[str, type[BaseModel]]:
    kinds = {name: field.annotation for name, field in Settings.model_fields.items()}
    return {
        name: kind
        for name, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, BaseModel) and "http_port" in kind.model_fields
    }


def scripts() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"])


def environment(stage: Stage) -> dict[str, str]:
    """Of all its ENV, later ones over earlier ones."""
    pairs = [step.pairs for step in stage.steps if step.instruction == "ENV"]
    return {name: value for pair in pairs for name, value in pair.items()}


def test_the_linter_of_dockerfiles_finds_nothing() -> None:
    linter = Path(sys.executable).with_name("hadolint")
    files = sorted(map(str, DOCKERFILE.parent.glob("Dockerfile*")))
    done = subprocess.run(
        [linter, "--failure-threshold", "style", *files], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.returncode) == ("", 0)


@pytest.mark.parametrize("target", TARGETS)
def test_an_image_runs_hopline_itself_as_a_user_without_rights(target: str, stages: dict[str, Stage]) -> None:
    """Exec form: a shell as process 1 would keep SIGTERM from it."""
    image = whole(stages, target)
    user, entry, health = (image.last(word) for word in ("USER", "ENTRYPOINT", "HEALTHCHECK"))
    assert user is not None
    assert user.text == USER
    assert entry is not None
    assert entry.text == '["hopline"]'
    assert health is not None
    words = re.findall(r'"([^"]+)"', health.text.partition(" CMD ")[2])
    assert {entry.words[0], words[0]} <= scripts()
    # The name that it has in the chart and in compose, whatever the working folder.
    assert environment(image)["PATH"].startswith("/opt/hopline/bin:")


@pytest.mark.parametrize("target", TARGETS)
def test_every_process_of_an_image_can_be_asked_from_outside(target: str, stages: dict[str, Stage]) -> None:
    found = environment(whole(stages, target))
    ports = dict.fromkeys(sections_with_a_port(), ("HTTP_", "9090")) | {"api": ("", "8470")}
    wanted: dict[str, str] = {}
    for name, (kind, port) in ports.items():
        section = f"{ENV_PREFIX}{name.upper()}__{kind}"
        wanted |= {f"{section}HOST": "0.0.0.0", f"{section}PORT": port}  # noqa: S104 - within a container
    assert {name: found.get(name) for name in wanted} == wanted


@pytest.mark.parametrize("target", TARGETS)
def test_the_settings_of_an_image_are_settings(
    target: str, stages: dict[str, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(whole(stages, target)).items():
        if name.startswith(ENV_PREFIX):
            monkeypatch.setenv(name, value)
    assert load_settings().local.data_dir == Path("/var/lib/hopline")


def test_the_base_is_named_by_version(stages: dict[str, Stage]) -> None:
    bases = {whole(stages, name).base for name in stages}
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", bases.pop())


def test_both_images_say_where_the_list_of_their_parts_is(stages: dict[str, Stage]) -> None:
    for target in TARGETS:
        labels = {
            n: v for s in whole(stages, target).steps if s.instruction == "LABEL" for n, v in s.pairs.items()
        }
        assert labels["hopline.sbom"] == f"/opt/hopline/{sbom.FILE}"
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        assert labels["org.opencontainers.image.licenses"] == project["license"]
        argument = next(
            s for s in whole(stages, target).steps if s.instruction == "ARG" and "VERSION" in s.text
        )
        assert argument.pairs == {"VERSION": project["version"]}


def test_the_licence_of_each_model_in_the_list_is_the_notice_s() -> None:
    notice = (ROOT / "NOTICE").read_text()
    assert sorted(sbom.LICENCES) == sorted(path.name for path in (ROOT / "models").iterdir() if path.is_dir())
    for name, licence in sbom.LICENCES.items():
        own = notice.split(f"models/{name} ")[1].split("\n\n")[0]
        assert re.search(re.sub(r"[- ]", "[- ]", licence), own), name


def test_what_is_copied_is_let_through_and_nothing_else_is(stages: dict[str, Stage]) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [name for name in listed.stdout.split("\0") if name]
    through = kept(ROOT / ".dockerignore", iter(files))
    sources = [
        source.rstrip("/")
        for stage in stages.values()
        for step in stage.steps
        if step.instruction == "COPY" and "--from" not in step.text
        for source in step.words[:-1]
    ]
    copied = [file for file in files if any(f"{file}/".startswith(f"{source}/") for source in sources)]
    assert [s for s in sources if not any(f"{file}/".startswith(f"{s}/") for file in through)] == []
    assert sorted(set(copied) ^ set(through)) == []


def test_rules_of_a_dockerignore_are_read_as_docker_reads_them(tmp_path: Path) -> None:
    ignore = tmp_path / ".dockerignore"
    ignore.write_text("# all\n*\n!hopline\n!a/b\n**/*.pyc\n")
    files = ["hopline/x.py", "hopline/d/x.pyc", "hopline.egg-info/y", "a/b", "a/c", ".env", "x.pyc"]
    assert kept(ignore, iter(files)) == ["hopline/x.py", "a/b"]


def test_an_instruction_that_nobody_would_rehearse_is_refused() -> None:
    with pytest.raises(ValueError, match="ADD"):
        parse("FROM a AS b\nADD x /x\n")


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_s_settings_are_accepted_and_its_command_is_there(
    name: str, app: typer.Typer, stages: dict[str, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = SERVICES[name]
    known = setting_variables(Settings, ENV_PREFIX).keys() | {"HOPLINE_API_URL"}
    assert sorted(service.env.keys() - known) == []
    for variable, value in (environment(whole(stages, "cpu")) | service.env).items():
        if variable.startswith(ENV_PREFIX):
            monkeypatch.setenv(variable, value)
    load_settings()
    words = [word for word in service.command if not word.startswith(("-", "/"))]
    shown = CliRunner().invoke(app, [*words, "--help"])
    assert (shown.exit_code, name if shown.exit_code else "") == (0, "")
    options = [word for word in service.command if word.startswith("--")]
    assert [option for option in options if option not in shown.output] == []


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_can_do_no_more_than_it_needs(name: str, compose: dict[str, Any]) -> None:
    part = compose["services"][name]
    assert part["read_only"] is True
    assert part["user"] == USER
    assert part["cap_drop"] == ["ALL"]
    assert part["security_opt"] == ["no-new-privileges:true"]
    assert set(part["deploy"]["resources"]["limits"]) == {"cpus", "memory"}
    mounts = {mount.target: mount for mount in SERVICES[name].mounts}
    writes = {target for target, mount in mounts.items() if not mount.read_only}
    assert writes == {
        "keys": {"/var/lib/hopline/keys"},
        "ingest": {"/vault", "/var/lib/hopline/memories"},
        "link": {"/vault", "/var/lib/hopline/memories"},
        "watch": {"/var/lib/hopline/watcher"},
    }.get(name, set())


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_that_stays_is_looked_after(name: str, compose: dict[str, Any]) -> None:
    part = compose["services"][name]
    if name in ONCE:
        assert (part["restart"], part["healthcheck"]) == ("no", {"disable": True})
        return
    test = part["healthcheck"]["test"]
    assert test[0] == "CMD"
    assert test[1] in scripts()
    assert part["restart"] == "unless-stopped"
    grace = max(load_settings().ingest.stop_grace_seconds, load_settings().extract.stop_grace_seconds)
    assert int(part["stop_grace_period"].removesuffix("s")) >= grace + 20


def test_services_wait_for_what_can_come_true(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, part in services.items():
        for other, how in part.get("depends_on", {}).items():
            needed = services[other]
            if how["condition"] == "service_healthy":
                assert "test" in needed.get("healthcheck", {}), (name, other)
            else:
                assert how["condition"] == "service_completed_successfully"
                assert needed["restart"] == "no", (name, other)


def test_volumes_and_networks_are_declared_and_folders_are_there(compose: dict[str, Any]) -> None:
    for name, part in compose["services"].items():
        for line in part.get("volumes", []):
            source = line["source"] if isinstance(line, dict) else line.split(":")[0]
            if source.startswith("."):
                assert (COMPOSE.parent / source).exists(), (name, source)
            else:
                assert source in compose["volumes"], (name, source)
        assert set(part["networks"]) <= set(compose["networks"])
    assert compose["networks"]["engines"] == {"internal": True}


def test_only_this_machine_can_reach_what_is_published(compose: dict[str, Any]) -> None:
    published = [port for part in compose["services"].values() for port in part.get("ports", [])]
    assert published
    assert [port for port in published if not port.startswith("127.0.0.1:")] == []


def test_the_engines_have_the_versions_that_the_tests_run_on(compose: dict[str, Any]) -> None:
    for engine in ("kafka", "opensearch"):
        pom = (ROOT / "deploy" / "engines" / engine / "pom.xml").read_text()
        version = re.search(r"<engine\.version>([^<]+)<", pom)
        assert version is not None
        assert compose["services"][engine]["image"].endswith(f"/{engine}:{version[1]}")


def test_prometheus_asks_every_process_where_it_answers() -> None:
    jobs = read_compose(COMPOSE.with_name("prometheus.yaml"))["scrape_configs"]
    named = {
        f"{name}:{found['port']}"
        for job in jobs
        for found in job.get("dns_sd_configs", [])
        for name in found["names"]
    }
    fixed = {target for job in jobs for found in job.get("static_configs", []) for target in found["targets"]}
    lasting = SERVICES.keys() - ONCE
    assert named | fixed == {f"{name}:{8470 if name == 'query' else 9090}" for name in lasting}


def test_the_images_can_send_traces(stages: dict[str, Stage]) -> None:
    """A setting that the chart offers must not need a package that isn't there. Both images go on from `packages`."""
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"][
        "tracing"
    ]
    pinned = {line.split("==")[0] for line in (ROOT / "constraints" / "tracing.txt").read_text().splitlines()}
    assert {re.split("[<>=]", wanted)[0] for wanted in extra} <= pinned
    assert any("-r constraints/tracing.txt" in step.text for step in stages["packages"].steps)
