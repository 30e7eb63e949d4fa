"""What a rehearsal does with a built image: looks into it, then runs the compose file's services from it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hopline.local.ports import free_ports
from streams.admin import delete_topics
from streams.settings import KafkaSettings
from streams.topics import Topics
from tools.images.dockerfile import Stage
from tools.images.layers import Box, Layers, end, first_process, mounted, run
from tools.images.services import Mount, Service, hopline_services

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = ROOT / "deploy" / "compose" / "compose.yaml"
#: Service → what stands before HTTP_PORT in the setting of its port.
PORTS = {name: f"HOPLINE_{name.upper()}__HTTP_PORT" for name in ("ingest", "embed", "extract", "link")} | {
    "watch": "HOPLINE_WATCHER__HTTP_PORT",
    "query": "HOPLINE_API__PORT",
}
#: Asked of the example vault, and what must be found.
QUESTION, ANSWER = "ORA-01555", "ORA-01555 snapshot too old"
PATIENCE_SECONDS = 300.0
#: The compose file's `stop_grace_period`.
STOP_SECONDS = 90.0
_MODELS = """
from indexers.embedders.factory import load_embedder
from indexers.extractors.factory import load_extractor
from indexers.settings import EmbedderSettings, ExtractorSettings
print(load_embedder(EmbedderSettings()).model_id, load_extractor(ExtractorSettings()).model_id)
"""


@dataclass(kw_only=True)
class Rehearsal:
    layers: tuple[Path, ...]
    env: dict[str, str]
    stage: Stage
    work: Path
    kafka: str
    opensearch: str
    prefix: str = field(default_factory=lambda: f"rehearsal-{uuid.uuid4().hex[:8]}")
    failed: list[str] = field(default_factory=list)

    def run(self) -> int:
        shutil.rmtree(self.work / "volumes", ignore_errors=True)
        shutil.copytree(ROOT / "examples" / "vault", self.work / "volumes" / "vault")
        (self.work / "logs").mkdir(exist_ok=True)
        self.look_into_it()
        try:
            self.run_services()
        finally:
            self._remove_what_was_made()
        print(f"{len(self.failed)} failed" + "".join(f"\n  {name}" for name in self.failed))
        return 1 if self.failed else 0

    def look_into_it(self) -> None:
        with self.box("bare", ()) as box:
            self.told("hopline --version", box, "hopline", "--version")
            self.told("hopline settings", box, "hopline", "settings")
            self.told("the user", box, "/usr/bin/id")
            # Of the root file system, not of what is mounted into it.
            search = "find / -xdev -path /tmp -prune -o -writable -print 2>/dev/null | head -20"
            text = self.told("looked for what can be written", box, "/bin/sh", "-c", search)
            self.check("nothing of the root can be written", not text.strip(), text)
            self.told("models without a network", box, "python3", "-c", _MODELS, network=False)
            text = self.told(
                "the list of what is in it", box, "cat", "/opt/hopline/sbom.cdx.json", quiet=True
            )
            self._look_at_list(json.loads(text))

    def _look_at_list(self, found: dict[str, list[dict[str, str]]]) -> None:
        names = [part["name"] for part in found["components"]]
        models = [p["name"] for p in found["components"] if p["type"] == "machine-learning-model"]
        self.check(
            "both models are in the list", sorted(models) == ["e5-small-enko", "gliner-mini"], str(names)
        )
        print(f"    {len(names)} components, models {', '.join(models)}")

    def run_services(self) -> None:
        services = hopline_services(COMPOSE)
        ports: dict[str, int] = {}
        for name in PORTS:
            ports[name] = free_ports(without=set(ports.values()))
        for name in ("keys", "init"):
            with self.box(name, services[name].mounts) as box:
                self.told(name, box, *self.words(services[name]), env=self.settings(services[name], ports))
        with contextlib.ExitStack() as boxes:
            running = {}
            for name in PORTS:
                box = boxes.enter_context(self.box(name, services[name].mounts))
                log, env = self.work / "logs" / f"{name}.log", self.settings(services[name], ports)
                process = box.start(*self.words(services[name]), env=env, log=log)
                boxes.callback(end, process)
                running[name] = box, process
            for name, (box, _) in running.items():
                self.wait_well(services[name], box, ports)
            self.search(services["cli"], ports)
            for name, (_, process) in reversed(running.items()):
                self.stop(name, process)

    def wait_well(self, service: Service, box: Box, ports: dict[str, int]) -> None:
        """The service's own check, and the image's, with the port that it has here."""
        port, began = str(ports[service.name]), time.monotonic()
        image = json.loads(self.stage.last("HEALTHCHECK").text.partition(" CMD ")[2])  # type: ignore[union-attr]
        log = self.work / "logs" / f"{service.name}.health.log"
        for words in (service.health, image):
            ours = [word.replace(":9090/", f":{port}/").replace(":8470/", f":{port}/") for word in words]
            while (code := box.call(*ours, log=log)) and time.monotonic() - began < PATIENCE_SECONDS:
                time.sleep(0.5)
            if code:
                break
        seconds = time.monotonic() - began
        self.check(f"{service.name} is well", code == 0, f"after {seconds:.1f} s: {log.read_text().strip()}")

    def search(self, cli: Service, ports: dict[str, int]) -> None:
        began, text, env = time.monotonic(), "", self.settings(cli, ports)
        with self.box("cli", cli.mounts) as box:
            made = self.told(
                "a key for the vault's tenant", box, "hopline", "keys", "create", "--tenant", "local", "--agent", "me",
                "--json", env=env, quiet=True,
            )  # fmt: skip
            env["HOPLINE_API_KEY"] = json.loads(made)["key"]
            log = self.work / "logs" / "search.log"
            while ANSWER not in text and time.monotonic() - began < PATIENCE_SECONDS:
                box.call("hopline", "search", QUESTION, env=env, log=log)
                text = log.read_text()
        self.check("a note is found", ANSWER in text, f"{time.monotonic() - began:.1f} s: {text[:200]}")

    def stop(self, name: str, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        os.kill(first_process(process), signal.SIGTERM)
        try:
            code: int | str = process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            end(process)
            code = "killed"
        self.check(
            f"{name} ends on SIGTERM", code == 0, f"exit {code} after {time.monotonic() - began:.1f} s"
        )

    def words(self, service: Service) -> list[str]:
        entry = self.stage.last("ENTRYPOINT")
        return [*(entry.words if entry else ()), *service.command]

    def settings(self, service: Service, ports: dict[str, int]) -> dict[str, str]:
        """The service's, with engines and ports that are there in place of the names of containers."""
        ours = {"HOPLINE_PREFIX": self.prefix}
        for name, value in (
            ("HOPLINE_KAFKA__BOOTSTRAP_SERVERS", self.kafka),
            ("HOPLINE_OPENSEARCH__URL", self.opensearch),
            ("HOPLINE_API_URL", f"http://127.0.0.1:{ports['query']}"),
        ):
            ours |= {name: value} if name in service.env else {}
        ours |= {PORTS[service.name]: str(ports[service.name])} if service.name in PORTS else {}
        return service.env | ours

    def told(
        self, title: str, box: Box, *command: str, env: dict[str, str] | None = None, network: bool = True,
        quiet: bool = False,
    ) -> str:  # fmt: skip
        """Runs it to its end and checks that it ends well; gives its output."""
        log, began = self.work / "logs" / f"{'-'.join(title.split())}.log", time.monotonic()
        code = box.call(*command, env=env, network=network, log=log)
        text = log.read_text()
        shown = "" if quiet and not code else ": " + " ".join(text.split())[: 160 if not code else 2000]
        self.check(title, code == 0, f"exit {code} after {time.monotonic() - began:.1f} s{shown}")
        return text

    def check(self, title: str, well: bool, details: str) -> None:  # noqa: FBT001 - a check
        print(f"{'ok  ' if well else 'FAIL'} {title}: {details}", flush=True)
        if not well:
            self.failed.append(title)

    @contextlib.contextmanager
    def box(self, name: str, mounts: Sequence[Mount]) -> Iterator[Box]:
        """The image with a read-only root, /tmp, and the folders of a service."""
        root = self.work / "roots" / name
        user, folder = self.stage.last("USER"), self.stage.last("WORKDIR")
        assert user is not None, "the image names no user"  # noqa: S101 - a rehearsal is a test
        with contextlib.ExitStack() as stack:
            stack.enter_context(Layers(lower=self.layers).mounted(root))
            stack.enter_context(mounted("-t", "tmpfs", "-o", "mode=1777,size=256m", "tmpfs", root / "tmp"))
            stack.enter_context(mounted("--rbind", "/dev", root / "dev"))
            for mount in sorted(mounts, key=lambda one: one.target):
                there = root / mount.target.removeprefix("/")
                stack.enter_context(mounted("--bind", self._source(mount, there), there))
                if mount.read_only:
                    run("mount", "-o", "remount,bind,ro", str(there))
            yield Box(root=root, user=user.text, folder=folder.text if folder else "/", env=self.env)

    def _source(self, mount: Mount, there: Path) -> Path:
        """A new volume has the owner and mode of the image's folder, as an engine makes it."""
        if mount.bound:
            return self.work / "volumes" / "vault"
        source = self.work / "volumes" / mount.source
        if not source.exists():
            source.mkdir()
            like = there.stat()
            os.chown(source, like.st_uid, like.st_gid)
            source.chmod(like.st_mode & 0o7777)
        return source

    def _remove_what_was_made(self) -> None:
        topics = Topics(self.prefix)
        asyncio.run(delete_topics(KafkaSettings(), self.kafka, [*topics.retention_ms]))
        request = urllib.request.Request(f"{self.opensearch}/{self.prefix}-*", method="DELETE")  # noqa: S310 - http
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=30):  # noqa: S310 - http
            pass
