"""What holds of every ranked list, and of every id that becomes a path."""

from __future__ import annotations

from pathlib import PurePosixPath

from hypothesis import given
from hypothesis import strategies as st

from hopline.evaluation.corpus import placed, safe_path
from hopline.evaluation.metrics import estimate, ndcg, precision, recall, reciprocal_rank
from hopline.evaluation.sets import Metadata, Passage
from indexers.vault.ignore import is_note

ids = st.sampled_from([f"d{number}" for number in range(20)])
lists = st.lists(ids, max_size=25)
golds = st.dictionaries(ids, st.sampled_from([0.0, 1.0, 2.0]), min_size=1).filter(lambda g: any(g.values()))
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=120)


@given(found=lists, gold=golds, k=st.integers(1, 12))
def test_recall_is_defined_as_the_scorer_of_the_literature_defines_it(
    found: list[str], gold: dict[str, float], k: int
) -> None:
    right = {doc for doc, grade in gold.items() if grade > 0}
    assert recall(found, gold, k) == len(right & set(list(dict.fromkeys(found))[:k])) / len(right)


@given(found=lists, gold=golds)
def test_measures_stay_between_nothing_and_all(found: list[str], gold: dict[str, float]) -> None:
    for value in (
        recall(found, gold, 5),
        precision(found, gold, 5),
        reciprocal_rank(found, gold),
        ndcg(found, gold),
    ):
        assert 0.0 <= value <= 1.0 + 1e-12


@given(gold=golds)
def test_the_best_order_is_one(gold: dict[str, float]) -> None:
    best = sorted(gold, key=lambda doc: -gold[doc])
    assert abs(ndcg(best, gold) - 1.0) < 1e-12
    assert reciprocal_rank(best, gold) == 1.0


@given(found=lists, gold=golds, k=st.integers(1, 11))
def test_recall_never_falls_with_depth(found: list[str], gold: dict[str, float], k: int) -> None:
    assert recall(found, gold, k) <= recall(found, gold, k + 1)


@given(values=st.lists(st.floats(0, 1), min_size=1, max_size=30), seed=st.integers(0, 5))
def test_interval_lies_within_what_was_measured(values: list[float], seed: int) -> None:
    found = estimate(values, seed=seed, resamples=200)
    assert found.low is not None
    assert found.high is not None
    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


@given(id_=texts, conversation=st.none() | texts)
def test_every_id_becomes_the_path_of_a_note_inside_the_vault(id_: str, conversation: str | None) -> None:
    path = safe_path(Passage(id=id_, title="t", text="x", metadata=Metadata(conversation=conversation)))
    assert is_note(path)
    assert not PurePosixPath(path).is_absolute()
    assert ".." not in path.split("/")
    assert max(len(segment.encode()) for segment in path.split("/")) <= 255


@given(names=st.lists(texts, unique=True, max_size=30))
def test_no_two_passages_share_a_file(names: list[str]) -> None:
    passages = [Passage(id=name, title="t", text="x") for name in names]
    paths = [place.path.casefold() for place in placed(passages)]
    assert len(set(paths)) == len(names)
