"""The invented vaults of the benches: what a larger one has more of, and what stays."""

from __future__ import annotations

from collections import Counter
from statistics import mean

from bench import notes

SMALL, LARGE = 10_000, 200_000


def test_a_small_vault_does_not_depend_on_how_many_notes_it_has() -> None:
    for number in range(0, 10_000, 997):
        assert notes.query(number, 3_000) == notes.query(number)
        assert notes.said_names(number, 3_000) == notes.said_names(number)
        assert notes.topic_of(number, 3_000) == notes.topic_of(number) == number % notes.TOPICS


def test_a_large_vault_has_more_subjects_of_as_many_notes() -> None:
    assert notes.topics(LARGE) == 20 * notes.topics(SMALL)
    per_subject = Counter(notes.topic_of(number, LARGE) for number in range(LARGE))
    assert set(per_subject.values()) == {25}


def test_a_note_has_as_many_links_and_names_in_a_large_vault() -> None:
    numbers = range(0, SMALL, 10)
    for count in (SMALL, LARGE):
        assert 4.7 < mean(len(notes.linked(number, count)) for number in numbers) <= 5
        assert 4.9 < mean(len(notes.said_names(number, count)) for number in numbers) <= 5


def test_notes_of_one_subject_share_words_in_a_large_vault() -> None:
    subjects = [set(notes.said_names(number, LARGE)[:3]) for number in range(7, LARGE, notes.topics(LARGE))]
    assert len(subjects) == 25
    assert len(set.union(*subjects)) <= notes.TOPIC_WORDS


def test_a_note_is_the_same_each_time() -> None:
    assert notes.note(3, LARGE) == notes.note(3, LARGE)
    assert notes.note(3, LARGE) != notes.note(3, SMALL)
