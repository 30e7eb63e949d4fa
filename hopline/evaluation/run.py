"""`hopline eval`: index a set with the product's own processes, ask its questions, measure, leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from hopline.client import HoplineClient
from hopline.evaluation import homes, indexing
from hopline.evaluation.asking import Place, ask_all
from hopline.evaluation.configurations import GREP, Configuration, chosen, configurations
from hopline.evaluation.corpus import path_prefixes
from hopline.evaluation.grep import GrepIndex
from hopline.evaluation.homes import EvalHome, Manifest
from hopline.evaluation.metrics import CONFIDENCE
from hopline.evaluation.plot import as_svg
from hopline.evaluation.processes import (
    ALL_SERVICES,
    QUERY_SERVICE,
    WATCHER,
    EvalProcesses,
    interruptible,
    known_engines,
    require_idle,
    settings_of,
    stop_abandoned,
    uninterrupted,
)
from hopline.evaluation.results import Report, measure
from hopline.evaluation.sets import EvalSet, Question, limited, paths_of, read_set
from hopline.local.maven import Say
from hopline.settings import Settings
from indexers.embedders.factory import identify_model
from indexers.errors import HoplineError
from indexers.vault.local import LocalVaultFiles
from streams.rebuild import AGENTS

_REQUEST_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the command was asked for; docs/how-to/evaluate-retrieval.md says what each means."""

    folder: Path
    queries: Path | None = None
    qrels: Path | None = None
    configs: str | None = None
    limit: int | None = None
    keep: bool = False
    reuse: str | None = None
    context_budget: int = 0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """`settings`: the evaluation's own (`settings_of`)."""

    settings: Settings
    home: EvalHome
    labelled: EvalSet
    questions: Sequence[Question]
    compared: Sequence[Configuration]
    wish: Wish
    say: Say

    @property
    def is_kept(self) -> bool:
        """What is not whole is no use to a later run."""
        return self.wish.reuse is not None or (self.wish.keep and self.home.read().complete)


def evaluate(settings: Settings, wish: Wish, say: Say) -> Report:
    """Raises WrongUsage before anything is started, HoplineError later; then all is stopped and removed."""
    compared = chosen(configurations(settings.search), wish.configs)
    labelled = read_set(wish.folder, queries=wish.queries, qrels=wish.qrels)
    questions = limited(labelled.questions, wish.limit)
    say(f"{labelled.name}: {len(questions)} questions, {len(compared)} configurations")
    stop_abandoned(settings, say)
    with interruptible():
        home = _open(settings, wish, labelled, say)
        own = settings_of(settings, home, home.read())
        run = _Run(
            settings=own,
            home=home,
            labelled=labelled,
            questions=questions,
            compared=compared,
            wish=wish,
            say=say,
        )
        report = _measured(run)
    if run.is_kept:
        say(f"kept: --reuse {own.prefix} asks again, --drop {own.prefix} removes it")
    return report


def drop_kept(settings: Settings, prefix: str, say: Say) -> None:
    """Remove what `--keep` left. Raises WrongUsage where there is nothing of this name."""
    home = EvalHome.of(settings, prefix)
    own = settings_of(settings, home, home.read())
    stop_abandoned(settings, say)
    require_idle(home)
    with interruptible(), EvalProcesses(own, say) as processes:
        _drop(own, home, processes, say)
    home.remove()


def write_report(report: Report, folder: Path) -> tuple[Path, Path]:
    """`<set>.json` and `<set>.svg`. Raises HoplineError where they can't be written."""
    files = folder / f"{report.set_name}.json", folder / f"{report.set_name}.svg"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files[0].write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
        files[1].write_text(as_svg(report), encoding="utf-8")
    except OSError as exc:
        msg = f"the report can't be written to {folder}: {exc.strerror}"
        raise HoplineError(msg) from exc
    return files


def _open(settings: Settings, wish: Wish, labelled: EvalSet, say: Say) -> EvalHome:
    """What was kept, or a new folder with the corpus written as a vault."""
    if wish.reuse is not None:
        home = EvalHome.of(settings, wish.reuse)
        homes.require_same(home.read(), labelled)
        require_idle(home)
        return home
    home = EvalHome.of(settings, homes.new_prefix())
    kafka_servers, opensearch_url = known_engines(settings)
    say(
        f"writing the corpus to {home.folder}"
        if labelled.vault is None
        else f"reading {labelled.vault.resolve()}"
    )
    try:
        homes.prepare(home, labelled, kafka_servers=kafka_servers, opensearch_url=opensearch_url)
    except BaseException:
        home.remove()
        raise
    return home


def _measured(run: _Run) -> Report:
    """Whatever happens, nothing runs afterwards, and what isn't kept is gone."""
    try:
        with EvalProcesses(run.settings, run.say) as processes:
            processes.start_engines()
            try:
                _index(run, processes)
                return _ask(run, processes)
            except BaseException:
                run.say("stopping what was started")
                raise
            finally:
                if not run.is_kept:
                    _drop(run.settings, run.home, processes, run.say)
    finally:
        if not run.is_kept:
            run.home.remove()


def _index(run: _Run, processes: EvalProcesses) -> None:
    """The agents and the watcher run until nothing waits, then they leave the machine to the questions."""
    run.home.key()
    manifest = run.home.read()
    if manifest.complete:
        processes.start((QUERY_SERVICE,))
        return
    run.say("indexing")
    processes.start(ALL_SERVICES)
    asyncio.run(indexing.wait_indexed(run.settings, run.say, processes.require_running))
    processes.stop((*AGENTS, WATCHER))
    run.home.write(msgspec.structs.replace(manifest, complete=True))


def _ask(run: _Run, processes: EvalProcesses) -> Report:
    manifest, wish = run.home.read(), run.wish
    documents = paths_of(Path(manifest.vault))
    indexed = asyncio.run(indexing.count_documents(run.settings, manifest))
    if indexed < len(documents):
        run.say(f"  {len(documents) - indexed} of {len(documents)} documents are not in the index")
    run.say("asking")
    with HoplineClient(processes.api_url, run.home.key(), timeout_seconds=_REQUEST_SECONDS) as client:
        place = _place(run, manifest, documents, client)
        outcomes = ask_all(place, run.questions, run.compared, run.say)
    return Report(
        set_name=run.labelled.name,
        questions=len(run.questions),
        unjudged=run.labelled.unjudged,
        documents=len(documents),
        indexed=indexed,
        embedding_model=identify_model(run.settings.embedder).model_id,
        context_budget=wish.context_budget,
        seed=wish.seed,
        confidence=CONFIDENCE,
        configurations=[
            measure(configuration, outcomes[configuration.name], run.labelled.gold, seed=wish.seed)
            for configuration in run.compared
        ],
    )


def _place(run: _Run, manifest: Manifest, documents: Iterable[str], client: HoplineClient) -> Place:
    files = LocalVaultFiles(Path(manifest.vault))
    counted = any(configuration.name == GREP for configuration in run.compared)
    texts = ((path, files.read(path).decode(errors="replace")) for path in sorted(documents) if counted)
    return Place(
        client=client,
        ids=manifest.ids,
        prefixes=path_prefixes(run.questions, run.labelled.passages),
        grep=GrepIndex.of(texts),
        budget=run.wish.context_budget,
    )


def _drop(settings: Settings, home: EvalHome, processes: EvalProcesses, say: Say) -> None:
    """Indices and topics on engines of somebody else; our own go with their folder."""
    manifest = home.read()
    with uninterrupted():
        processes.stop(ALL_SERVICES)
        drop = indexing.drop(
            settings, kafka=bool(manifest.kafka_servers), store=bool(manifest.opensearch_url)
        )
        try:
            asyncio.run(drop)
        except HoplineError as exc:
            say(f"indices and topics of {manifest.prefix} could not be removed: {exc}")
