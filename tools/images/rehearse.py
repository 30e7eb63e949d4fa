"""Builds a target of the Dockerfile and runs the compose file's services without a container engine: on folders.

python -m tools.images.rehearse WORK --kafka HOST:PORT --opensearch URL [--target cpu] [--keep] [--again]

Every RUN, COPY, ENV, USER, WORKDIR, ENTRYPOINT and HEALTHCHECK is carried out as it stands there, with a Debian made by
`debootstrap` in place of the base image. The services run as user 10001, each as process 1 of its own, without
capabilities, on a read-only root. For root on Linux; a quarter of an hour the first time, 2 GB in WORK.

Exit 0: all of it worked. The engines may be in use: topics and indices have a prefix of their own and go at the end.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from tools.images.build import Builder, Built
from tools.images.dockerfile import parse, whole
from tools.images.layers import run
from tools.images.scenes import Rehearsal

ROOT = Path(__file__).resolve().parents[2]
DOCKERFILE = ROOT / "deploy" / "images" / "Dockerfile"
#: Its Python is 3.11, as the base image's.
RELEASE = "bookworm"
_INSIDE = "REHEARSAL_NAMESPACE"


def main() -> int:
    asked = arguments()
    if os.geteuid() != 0 or not sys.platform.startswith("linux"):
        print("for root on Linux", file=sys.stderr)
        return 2
    if _INSIDE not in os.environ:
        # Whatever is mounted goes with the process.
        os.environ[_INSIDE] = "1"
        words = [
            "unshare",
            "--mount",
            "--propagation",
            "private",
            sys.executable,
            "-m",
            "tools.images.rehearse",
        ]
        os.execvp(words[0], [*words, *sys.argv[1:]])  # noqa: S606 - ourselves
    work: Path = asked.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    builder = Builder(
        stages=parse(DOCKERFILE.read_text()),
        context=ROOT,
        base=ensure_base(work / RELEASE),
        work=work,
        again=asked.again,
    )
    built = built_target(builder, asked.target)
    stage = whole(builder.stages, asked.target)
    rehearsal = Rehearsal(
        layers=built.layers.all,
        env=built.env,
        stage=stage,
        work=work,
        kafka=asked.kafka,
        opensearch=asked.opensearch,
    )
    try:
        return rehearsal.run()
    finally:
        if not asked.keep:
            shutil.rmtree(work / "stages", ignore_errors=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.images.rehearse", description=__doc__)
    parser.add_argument("work", type=Path, help="folder for the base and the stages; the base stays")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--kafka", required=True, metavar="HOST:PORT")
    parser.add_argument("--opensearch", required=True, metavar="URL")
    parser.add_argument("--again", action="store_true", help="run what an earlier run has built and kept")
    parser.add_argument("--keep", action="store_true", help="leave the stages, to look at them")
    return parser.parse_args()


def ensure_base(folder: Path) -> Path:
    if not (folder / "usr" / "bin" / "python3").exists():
        print(f"debootstrap: a {RELEASE} for the base", flush=True)
        packages = "--include=python3,python3-venv,ca-certificates"
        run("debootstrap", "--variant=minbase", packages, RELEASE, str(folder))
    return folder


def built_target(builder: Builder, target: str) -> Built:
    if not builder.again:
        shutil.rmtree(builder.work / "stages", ignore_errors=True)
    began = time.monotonic()
    built = builder.build(target)
    for stage, step, seconds in builder.done:
        if seconds >= 1:
            print(f"{seconds:7.1f} s  {stage}: {shlex.join(step.split())[:100]}")
    print(f"built in {time.monotonic() - began:.0f} s", flush=True)
    return built


if __name__ == "__main__":
    sys.exit(main())
