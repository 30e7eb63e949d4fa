"""Where the threads around a pinned model may run."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

from indexers.pinned import PinnedThread, keep_off


def on_a_thread(work: Callable[[], None]) -> None:
    """A thread of its own, so that the test's keeps its freedom."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_other_threads_leave_the_models_cores_where_there_are_others() -> None:
    allowed = os.sched_getaffinity(0)
    core = max(allowed)
    seen: list[set[int]] = []

    def work() -> None:
        model = PinnedThread((core,), section="extractor")
        assert model.call(os.sched_getaffinity, 0) == {core}
        keep_off((core,))
        seen.append(os.sched_getaffinity(0))
        on_a_thread(lambda: seen.append(os.sched_getaffinity(0)))
        assert model.call(os.sched_getaffinity, 0) == {core}

    on_a_thread(work)
    rest = allowed - {core} or allowed
    assert seen == [rest, rest]
    assert os.sched_getaffinity(0) == allowed


def test_a_model_that_has_every_core_or_none_of_its_own_shares_them() -> None:
    allowed = os.sched_getaffinity(0)
    seen: list[set[int]] = []

    def work() -> None:
        for cores in ((), tuple(allowed)):
            keep_off(cores)
            seen.append(os.sched_getaffinity(0))

    on_a_thread(work)
    assert seen == [allowed, allowed]
