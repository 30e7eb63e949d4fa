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
from hopline.evaluation.results import Evaluated, Report, Run, measure
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
class _Task:
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


def evaluate(settings: Settings, wish: Wish, say: Say) -> Evaluated:
    """Raises WrongUsage before anything is started, HoplineError later; then all is stopped and removed."""
    compared = chosen(configurations(settings.search), wish.configs)
    labelled = read_set(wish.folder, queries=wish.queries, qrels=wish.qrels)
    questions = limited(labelled.questions, wish.limit)
    say(f"{labelled.name}: {len(questions)} questions, {len(compared)} configurations")
    stop_abandoned(settings, say)
    with interruptible():
        home = _open(settings, wish, labelled, say)
        own = settings_of(settings, home, home.read())
        task = _Task(
            settings=own,
            home=home,
            labelled=labelled,
            questions=questions,
            compared=compared,
            wish=wish,
            say=say,
        )
        found = _measured(task)
    if task.is_kept:
        say(f"kept: --reuse {own.prefix} asks again, --drop {own.prefix} removes it")
    return found


def drop_kept(settings: Settings, prefix: str, say: Say) -> None:
    """Remove what `--keep` left. Raises WrongUsage where there is nothing of this name."""
    home = EvalHome.of(settings, prefix)
    own = settings_of(settings, home, home.read())
    stop_abandoned(settings, say)
    require_idle(home)
    with interruptible(), EvalProcesses(own, say) as processes:
        _drop(own, home, processes, say)
    home.remove()


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


def _measured(task: _Task) -> Evaluated:
    """Whatever happens, nothing runs afterwards, and what isn't kept is gone."""
    try:
        with EvalProcesses(task.settings, task.say) as processes:
            processes.start_engines()
            try:
                _index(task, processes)
                return _ask(task, processes)
            except BaseException:
                task.say("stopping what was started")
                raise
            finally:
                if not task.is_kept:
                    _drop(task.settings, task.home, processes, task.say)
    finally:
        if not task.is_kept:
            task.home.remove()


def _index(task: _Task, processes: EvalProcesses) -> None:
    """The agents and the watcher run until nothing waits, then they leave the machine to the questions."""
    task.home.key()
    manifest = task.home.read()
    if manifest.complete:
        processes.start((QUERY_SERVICE,))
        return
    task.say("indexing")
    processes.start(ALL_SERVICES)
    asyncio.run(indexing.wait_indexed(task.settings, task.say, processes.require_running))
    processes.stop((*AGENTS, WATCHER))
    task.home.write(msgspec.structs.replace(manifest, complete=True))


def _ask(task: _Task, processes: EvalProcesses) -> Evaluated:
    manifest, wish = task.home.read(), task.wish
    documents = paths_of(Path(manifest.vault))
    indexed = asyncio.run(indexing.count_documents(task.settings, manifest))
    if indexed < len(documents):
        task.say(f"  {len(documents) - indexed} of {len(documents)} documents are not in the index")
    task.say("asking")
    with HoplineClient(processes.api_url, task.home.key(), timeout_seconds=_REQUEST_SECONDS) as client:
        place = _place(task, manifest, documents, client)
        outcomes = ask_all(place, task.questions, task.compared, task.say)
    report = Report(
        set_name=task.labelled.name,
        questions=len(task.questions),
        unjudged=task.labelled.unjudged,
        documents=len(documents),
        indexed=indexed,
        embedding_model=identify_model(task.settings.embedder).model_id,
        context_budget=wish.context_budget,
        seed=wish.seed,
        confidence=CONFIDENCE,
        configurations=[
            measure(configuration, outcomes[configuration.name], task.labelled.gold, seed=wish.seed)
            for configuration in task.compared
        ],
    )
    runs = {name: [Run(id=o.question.id, docs=o.found) for o in of] for name, of in outcomes.items()}
    return Evaluated(report=report, runs=runs)


def _place(task: _Task, manifest: Manifest, documents: Iterable[str], client: HoplineClient) -> Place:
    files = LocalVaultFiles(Path(manifest.vault))
    counted = any(configuration.name == GREP for configuration in task.compared)
    texts = ((path, files.read(path).decode(errors="replace")) for path in sorted(documents) if counted)
    return Place(
        client=client,
        ids=manifest.ids,
        prefixes=path_prefixes(task.questions, task.labelled.passages),
        grep=GrepIndex.of(texts),
        budget=task.wish.context_budget,
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
