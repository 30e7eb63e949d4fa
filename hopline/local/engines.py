"""One Kafka broker and one OpenSearch node on this machine: their files, their commands."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hopline.local.engine_homes import EngineHome, template
from hopline.local.java import Java
from hopline.local.ownership import give, keep_own
from hopline.local.ports import LOOPBACK
from hopline.local.processes import Launch, OsUser, tail
from indexers.errors import HoplineError

#: Compile once and fast: starts sooner, runs at half the speed.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1"
#: Folders of the node that its user owns, beside the configuration.
_GIVEN = ("data", "logs", "tmp")
#: Headers and keys around the largest value.
_RECORD_OVERHEAD_BYTES = 65_536


def cluster_id(random: bytes) -> str:
    """16 bytes as the 22 characters that Kafka takes; never with a leading `-`, which reads as an option there."""
    text = base64.urlsafe_b64encode(random).decode().rstrip("=")
    return "A" + text[1:] if text.startswith("-") else text


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaBroker:
    """A broker that is its own controller. `port` and the next one must be free."""

    home: EngineHome
    java: Java
    data_dir: Path
    log: Path
    port: int
    heap_mb: int
    max_message_bytes: int
    short_lived: bool = False

    @property
    def servers(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def prepare(self) -> None:
        """Write the configuration; on the first run format the storage (a JVM of its own, about 2 s)."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        values = {
            "port": self.port,
            "controller_port": self.port + 1,
            "data": self.data_dir / "data",
            "max_message_bytes": self.max_message_bytes + _RECORD_OVERHEAD_BYTES,
        }
        self._properties.write_text(_filled("kafka", "server.properties", values), encoding="utf-8")
        if (self.data_dir / "data" / "meta.properties").exists():
            return
        arguments = (
            "format",
            "-t",
            cluster_id(uuid.uuid4().bytes),
            "-c",
            str(self._properties),
            "--ignore-formatted",
        )
        command = [*self._jvm(("-Xmx128m", _SHORT_LIVED)), "kafka.tools.StorageTool", *arguments]
        with self.log.open("ab") as log:
            done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=60, check=False)  # noqa: S603 - own argv
        if done.returncode != 0:
            raise HoplineError(f"the broker's storage can't be formatted:\n{tail(self.log)}")

    def launch(self) -> Launch:
        heap = (f"-Xms{min(256, self.heap_mb)}m", f"-Xmx{self.heap_mb}m")
        short = (_SHORT_LIVED,) if self.short_lived else ()
        argv = (*self._jvm((*heap, *short)), "kafka.Kafka", str(self._properties))
        return Launch(
            name="kafka", argv=argv, cwd=self.data_dir, env=_environment(self.data_dir), log=self.log
        )

    @property
    def _properties(self) -> Path:
        return self.data_dir / "server.properties"

    def _jvm(self, flags: tuple[str, ...]) -> tuple[str, ...]:
        values = {"logs": self.data_dir, "log4j2": template("kafka", "log4j2.properties")}
        classpath = ("-cp", f"{self.home.folder / 'lib'}/*")
        return (str(self.java.executable), *flags, *_options("kafka", values), *classpath)


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchNode:
    """A single node with k-NN. `port` and the next one must be free. It has no security: loopback only."""

    home: EngineHome
    java: Java
    data_dir: Path
    log: Path
    port: int
    heap_mb: int
    user: OsUser | None = None
    short_lived: bool = False

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}"

    def prepare(self) -> None:
        """Write the configuration and give the folders to the user that will run the node."""
        self.data_dir.mkdir(parents=True, exist_ok=True)
        if self.user is not None:
            keep_own(self.data_dir)
        for name in _GIVEN:
            folder = self._folders[name]
            folder.mkdir(exist_ok=True)
            if self.user is not None:
                give(folder, self.user)
        self._replace_configuration()

    def launch(self) -> Launch:
        distribution = self.home.folder / f"opensearch-{self.home.version}"
        values = {"home": distribution, **self._folders}
        heap = (f"-Xms{self.heap_mb}m", f"-Xmx{self.heap_mb}m")
        short = (_SHORT_LIVED,) if self.short_lived else ()
        flags = (*heap, *short, *_options("opensearch", values))
        main = ("-cp", f"{distribution / 'lib'}/*", "org.opensearch.bootstrap.OpenSearch")
        argv = (str(self.java.executable), *flags, *main)
        env = _environment(self._folders["tmp"])
        return Launch(name="opensearch", argv=argv, cwd=self.data_dir, env=env, log=self.log, user=self.user)

    def _replace_configuration(self) -> None:
        """A new folder each time: the node writes its keystore into it, so the old one isn't to be trusted."""
        conf = self._folders["conf"]
        fresh = self.data_dir / ".conf"
        _remove(fresh)
        fresh.mkdir()
        values: dict[str, object] = {"port": self.port, "transport_port": self.port + 1, **self._folders}
        text = _filled("opensearch", "opensearch.yml", values)
        (fresh / "opensearch.yml").write_text(text, encoding="utf-8")
        shutil.copy(template("opensearch", "log4j2.properties"), fresh / "log4j2.properties")
        for file in fresh.iterdir():
            file.chmod(0o644)
        if self.user is not None:
            os.chown(fresh, self.user.uid, self.user.gid)
        _remove(conf)
        fresh.rename(conf)

    @property
    def _folders(self) -> dict[str, Path]:
        return {name: self.data_dir / name for name in ("conf", *_GIVEN)}


def _filled(engine: str, file: str, values: Mapping[str, object]) -> str:
    return template(engine, file).read_text(encoding="utf-8").format_map(values)


def _options(engine: str, values: Mapping[str, object]) -> tuple[str, ...]:
    lines = template(engine, "jvm.options").read_text(encoding="utf-8").splitlines()
    return tuple(line.format_map(values) for line in lines if line and not line.startswith("#"))


def _environment(home: Path) -> dict[str, str]:
    """Little of ours: JAVA_TOOL_OPTIONS and the like of a user's shell must not change an engine."""
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home), "LANG": "C.UTF-8"}


def _remove(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink(missing_ok=True)
