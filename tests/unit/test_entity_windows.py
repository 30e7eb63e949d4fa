"""Words and windows of a text; spans of windows become the names of the text."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.domain.entities.spans import LabelledSpan, merge_windows, select_flat
from indexers.domain.entities.windows import Window, WindowLimits, Windows, cut_windows, split_words

PROSE = st.text(st.sampled_from("ab Z.!?\n-#|*é\u0301한😀()\"'1"), max_size=400)


def words_of(text: str) -> list[str]:
    return [text[word.start : word.end] for word in split_words(text)]


def cut(text: str, **limits: int) -> Windows:
    words = split_words(text)
    return cut_windows(
        text, words, [1] * len(words), WindowLimits(**{"max_tokens": 400, "full_words": 6} | limits)
    )


def texts(text: str, **limits: int) -> list[str]:
    return [text[window.start : window.end] for window in cut(text, **limits).windows]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            pytest.param("", [], id="nothing"),
            pytest.param(
                "checkout-api v2.3, ok?",
                ["checkout-api", "v2", ".", "3", ",", "ok", "?"],
                id="as the library",
            ),
            pytest.param("snake_case a--b -x", ["snake_case", "a", "-", "-", "b", "-", "x"], id="hyphens"),
            pytest.param("김민수가 왔다.", ["김민수가", "왔다", "."], id="Korean"),
            pytest.param("a😀b 👩‍💻", ["a", "😀", "b", "👩", "\u200d", "💻"], id="emoji"),
            pytest.param("Jose\u0301 A\u0301lvarez", ["Jose\u0301", "A\u0301lvarez"], id="decomposed"),
            pytest.param("שלום עולם", ["שלום", "עולם"], id="right to left"),
        ],
    )
    def test_a_word_is_what_the_model_was_trained_on(self, text: str, words: list[str]) -> None:
        assert words_of(text) == words

    @given(PROSE)
    def test_a_slice_between_words_has_the_same_words(self, text: str) -> None:
        words = split_words(text)
        for first in range(0, len(words), 3):
            for last in range(first + 1, len(words), 5):
                inner = text[words[first].start : words[last].end]
                assert words_of(inner) == [text[w.start : w.end] for w in words[first : last + 1]]

    def test_composed_or_not_a_text_has_the_same_words(self) -> None:
        text = "José Álvarez und Jürgen Groß, naïve Zoë"
        apart = unicodedata.normalize("NFD", text)
        assert [unicodedata.normalize("NFC", word) for word in words_of(apart)] == words_of(text)


class TestWindows:
    @pytest.mark.parametrize(
        ("text", "windows"),
        [
            pytest.param("", [], id="nothing"),
            pytest.param(" \n ", [], id="blank"),
            pytest.param("One two.", ["One two."], id="one"),
            pytest.param("One two. Three four.", ["One two. Three four."], id="short ones together"),
            pytest.param(
                "One two three four. Five six seven.",
                ["One two three four.", "Five six seven."],
                id="a sentence each",
            ),
            pytest.param(
                "One Dr. Two, e.g. three J. Four approx. five six",
                ["One Dr. Two, e.g. three J. Four approx. five six"],
                id="no sentence ends",
            ),
            pytest.param(
                'One two three four!" (Five) six seven.',
                ['One two three four!"', "(Five) six seven."],
                id="quoted",
            ),
            pytest.param("하나 둘 셋 넷. 다섯 여섯 일곱", ["하나 둘 셋 넷.", "다섯 여섯 일곱"], id="Korean"),
            pytest.param(
                "- one two three four\n- five six seven",
                ["- one two three four", "- five six seven"],
                id="list",
            ),
            pytest.param("one two three four\n\nfive six seven", ["one two three four", "five six seven"]),
            pytest.param("one two three four\nfive six seven", ["one two three four", "five six seven"]),
        ],
    )
    def test_whole_sentences_and_lines(self, text: str, windows: list[str]) -> None:
        assert texts(text) == windows

    def test_a_paragraph_that_an_editor_wrapped_is_not_cut_at_its_line(self) -> None:
        wrapped = (
            "The billing service that everybody had forgotten is owned by the\n"
            "Payments Platform team in Lisbon. Nobody else knows of it at all."
        )
        assert texts(wrapped, full_words=20) == [
            wrapped.split(" Nobody", maxsplit=1)[0],
            "Nobody else knows of it at all.",
        ]

    def test_a_long_sentence_is_read_in_pieces_that_overlap(self) -> None:
        text = " ".join(f"w{i}" for i in range(25))
        assert [(w.first, w.last) for w in cut(text, max_words=10, overlap=4).windows] == [
            (0, 10),
            (6, 16),
            (12, 22),
            (18, 25),
        ]

    def test_costly_words_make_a_window_smaller(self) -> None:
        text = "a b c d e f g h"
        limits = WindowLimits(max_tokens=10, max_words=6, overlap=2)
        cut_at = cut_windows(text, split_words(text), [1, 1, 9, 9, 1, 1, 1, 1], limits)
        assert [text[w.start : w.end] for w in cut_at.windows] == ["a b", "b c", "d e", "e f g h"]

    def test_a_word_that_fits_nowhere_is_left_out_and_counted(self) -> None:
        text = "Alice met MONSTER in Berlin"
        limits = WindowLimits(max_tokens=10)
        found = cut_windows(text, split_words(text), [1, 1, 11, 1, 1], limits)
        assert [text[w.start : w.end] for w in found.windows] == ["Alice met", "in Berlin"]
        assert found.skipped == 1

    def test_limits_that_leave_no_window_are_refused(self) -> None:
        for wrong in ({"max_tokens": 0}, {"max_tokens": 5, "max_words": 0}, {"max_tokens": 5, "overlap": -1}):
            with pytest.raises(ValueError, match="no window can be cut"):
                WindowLimits(**wrong)

    @given(PROSE, st.integers(1, 12), st.integers(1, 8), st.integers(1, 8), st.integers(0, 9), st.data())
    def test_every_word_that_fits_is_in_a_window_within_the_limits(
        self, text: str, max_tokens: int, max_words: int, full: int, overlap: int, data: st.DataObject
    ) -> None:
        words = split_words(text)
        tokens = data.draw(st.lists(st.integers(0, 14), min_size=len(words), max_size=len(words)))
        limits = WindowLimits(max_tokens=max_tokens, max_words=max_words, full_words=full, overlap=overlap)
        found = cut_windows(text, words, tokens, limits)
        held = {i for w in found.windows for i in range(w.first, w.last)}
        assert held == {i for i, cost in enumerate(tokens) if cost <= max_tokens}
        assert found.skipped == len(words) - len(held)
        for window in found.windows:
            assert 0 < window.last - window.first <= max_words
            assert sum(tokens[window.first : window.last]) <= max_tokens
            assert (window.start, window.end) == (words[window.first].start, words[window.last - 1].end)
        order = [(w.first, w.last) for w in found.windows]
        assert order == sorted(set(order))

    def test_a_large_text_is_cut_in_a_moment(self) -> None:
        text = "The team of Alice owns checkout-api, and so on: it was down. " * 4_300
        started = time.perf_counter()
        words = split_words(text)
        assert len(cut_windows(text, words, [1] * len(words), WindowLimits(max_tokens=400)).windows) == 4_300
        assert time.perf_counter() - started < 5


def window(first: int, last: int) -> Window:
    """Words of one letter, one blank between them."""
    return Window(first=first, last=last, start=2 * first, end=2 * last - 1)


def span(start: int, end: int, label: str = "person", score: float = 0.9) -> LabelledSpan:
    return LabelledSpan(start=start, end=end, label=label, score=score)


class TestMerging:
    LEFT, RIGHT = window(0, 20), window(10, 30)

    def test_what_two_windows_found_counts_once_with_the_higher_score(self) -> None:
        found = [(self.LEFT, [span(30, 33, score=0.6)]), (self.RIGHT, [span(30, 33, score=0.8)])]
        assert merge_windows(found) == [span(30, 33, score=0.8)]

    def test_the_window_that_saw_more_around_a_place_is_believed(self) -> None:
        cut_short, whole = span(34, 39, "team", 0.99), span(34, 45, "team", 0.7)
        assert merge_windows([(self.LEFT, [cut_short]), (self.RIGHT, [whole])]) == [whole]
        cut_short, whole = span(20, 25, "team", 0.99), span(14, 25, "team", 0.7)
        assert merge_windows([(self.LEFT, [whole]), (self.RIGHT, [cut_short])]) == [whole]

    def test_what_one_window_alone_saw_stays(self) -> None:
        found = [(self.LEFT, [span(0, 3), span(34, 37)]), (self.RIGHT, [span(50, 53)])]
        assert merge_windows(found) == [span(0, 3), span(34, 37), span(50, 53)]

    def test_labels_of_one_place_in_one_window_all_stay_for_the_choice(self) -> None:
        found = [(self.LEFT, [span(0, 3, "team", 0.6), span(0, 3, "person", 0.7)])]
        assert merge_windows(found) == [span(0, 3, "person", 0.7), span(0, 3, "team", 0.6)]


class TestChoice:
    @pytest.mark.parametrize(
        ("candidates", "chosen"),
        [
            pytest.param(
                [span(0, 5, score=0.6), span(3, 8, score=0.7)], [span(3, 8, score=0.7)], id="surest"
            ),
            pytest.param([span(0, 5), span(0, 9)], [span(0, 9)], id="longest"),
            pytest.param([span(3, 8), span(0, 5)], [span(0, 5)], id="earliest"),
            pytest.param(
                [span(0, 5, "team"), span(0, 5, "person")], [span(0, 5, "person")], id="label's name"
            ),
            pytest.param([span(5, 9), span(0, 5)], [span(0, 5), span(5, 9)], id="neighbours"),
            pytest.param(
                [span(0, 5, score=0.5), span(4, 9, score=0.6), span(8, 12, score=0.7)],
                [span(0, 5, score=0.5), span(8, 12, score=0.7)],
                id="a loser takes no place",
            ),
        ],
    )
    def test_each_place_is_named_once(
        self, candidates: list[LabelledSpan], chosen: list[LabelledSpan]
    ) -> None:
        assert select_flat([], candidates) == ([], chosen)
        assert select_flat([], candidates[::-1]) == ([], chosen)

    def test_a_pattern_beats_the_model_however_sure(self) -> None:
        pattern, model = span(0, 8, "incident", 0.1), span(4, 20, "code", 1.0)
        assert select_flat([pattern], [model, span(30, 33)]) == ([pattern], [span(30, 33)])

    @given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9), st.integers(1, 9))))
    def test_as_a_plain_greedy_choice_makes_it(self, drawn: list[tuple[int, int, int]]) -> None:
        candidates = [span(start, start + length, score=score / 10) for start, length, score in drawn]
        expected: list[LabelledSpan] = []
        for one in sorted(candidates, key=lambda s: (-s.score, s.start - s.end, s.start)):
            if not any(one.start < other.end and other.start < one.end for other in expected):
                expected.append(one)
        assert select_flat([], candidates)[1] == sorted(expected)
