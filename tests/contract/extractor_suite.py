"""What every extractor does. An adapter's test class names its settings."""

from __future__ import annotations

import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexers.domain.entities.spans import LabelledSpan, select_flat
from indexers.domain.entities.windows import split_words
from indexers.extractors.base import LOT_WINDOWS, LOTS_AHEAD
from indexers.extractors.factory import identify_extractor, load_extractor
from indexers.ports import EntityExtractor, ModelCall, Span
from indexers.settings import ExtractorSettings

LABELS = ["person", "team", "service", "technology", "location", "date"]
WINDOWS = [
    "Alice Novak leads the payments team in Berlin.",
    "Last Friday checkout-api was down, and Bob Miller restarted it in Lisbon.",
    "nothing to see here",
    "Maria moved from Madrid to Oslo in April, where she writes Rust for the search team.",
]
#: (window, what must be found in it): sure names only, so that any GLiNER model of use finds them.
SURE = [
    (
        WINDOWS[0],
        {("Alice Novak", "person"), ("payments team", "team"), ("Berlin", "location")},
    ),
    (WINDOWS[1], {("checkout-api", "service"), ("Bob Miller", "person"), ("Lisbon", "location")}),
    ("😀👩‍💻 Alice Novak met Bob Miller in Berlin 🎉", {("Alice Novak", "person"), ("Berlin", "location")}),
    ("تقرير: Alice Novak lives in Berlin\u200f שלום", {("Alice Novak", "person"), ("Berlin", "location")}),
    ("회의: Alice Novak lives in Berlin, 서울에서 왔다", {("Alice Novak", "person"), ("Berlin", "location")}),
    ("Alice Novak\r\nlives\tin \u00a0 Berlin.", {("Alice Novak", "person"), ("Berlin", "location")}),
]


class ExtractorConformance(ABC):
    """`exact`: neighbours in a call don't change what is found in a window (but for the last bits of a score)."""

    exact: ClassVar[bool]

    @staticmethod
    @abstractmethod
    def extractor_settings() -> ExtractorSettings: ...

    @pytest.fixture(scope="class")
    @classmethod
    def extractor(cls) -> EntityExtractor:
        return load_extractor(cls.extractor_settings())

    def test_its_identity_is_known_without_loading_the_model(self, extractor: EntityExtractor) -> None:
        assert extractor.model_id == identify_extractor(self.extractor_settings())
        assert ":" not in extractor.model_id
        assert extractor.mixes_documents == self.exact

    @pytest.mark.parametrize(("window", "sure"), SURE)
    def test_names_are_found_where_they_stand(
        self, extractor: EntityExtractor, window: str, sure: set[tuple[str, str]]
    ) -> None:
        [spans] = extractor.extract([window], LABELS, threshold=0.5)
        assert sure <= {(window[span.start : span.end], span.label) for span in flat(spans)}

    @pytest.mark.parametrize("window", [window for window, _ in SURE])
    def test_a_span_is_words_a_label_asked_for_and_a_score(
        self, extractor: EntityExtractor, window: str
    ) -> None:
        [spans] = extractor.extract([window], LABELS, threshold=0.1)
        words = split_words(window)
        starts, ends = {word.start for word in words}, {word.end for word in words}
        assert spans
        assert all(span.start in starts and span.end in ends and span.start < span.end for span in spans)
        assert {span.label for span in spans} <= set(LABELS)
        assert all(0.1 < span.score <= 1 for span in spans)
        assert len({(span.start, span.end, span.label) for span in spans}) == len(spans)

    def test_a_name_in_decomposed_letters_is_found_whole(self, extractor: EntityExtractor) -> None:
        window = "José Álvarez lives in Málaga."
        apart = unicodedata.normalize("NFD", window)
        found = [
            {(unicodedata.normalize("NFC", text[s.start : s.end]), s.label) for s in flat(spans)}
            for text in (window, apart)
            for spans in extractor.extract([text], LABELS, threshold=0.5)
        ]
        assert ("José Álvarez", "person") in found[0]
        assert found[0] == found[1]

    def test_a_higher_threshold_leaves_out_the_unsure(self, extractor: EntityExtractor) -> None:
        [many], [few] = (extractor.extract([WINDOWS[3]], LABELS, threshold=t) for t in (0.1, 0.6))
        assert keys(few) == keys([span for span in many if span.score > 0.6])
        assert len(few) < len(many)

    def test_labels_may_be_in_any_script_and_come_back_as_asked(self, extractor: EntityExtractor) -> None:
        labels = ["사람", "Person oder Gruppe", "localização", "人名"]
        [spans] = extractor.extract([WINDOWS[0]], labels, threshold=0.01)
        assert spans
        assert {span.label for span in spans} <= set(labels)

    @pytest.mark.parametrize("blank", ["", " ", "\n\t \r\n", "\u2003"])
    def test_a_blank_window_holds_nothing(self, extractor: EntityExtractor, blank: str) -> None:
        assert extractor.extract([blank], LABELS, threshold=0.5) == [[]]
        alone, mixed = (
            extractor.extract(w, LABELS, threshold=0.5) for w in ([WINDOWS[0]], [blank, WINDOWS[0]])
        )
        assert mixed == [[], *alone]

    def test_nothing_in_or_nothing_asked_gives_nothing(self, extractor: EntityExtractor) -> None:
        assert extractor.extract([], LABELS, threshold=0.5) == []
        assert extractor.extract(WINDOWS, [], threshold=0.5) == [[], [], [], []]

    @pytest.mark.parametrize("label", ["", "  ", "<<ENT>>", "a <<SEP>> b", "\u200b"])
    def test_a_label_that_says_nothing_is_refused(self, extractor: EntityExtractor, label: str) -> None:
        with pytest.raises(ValueError, match="says nothing to the model"):
            extractor.prompt_tokens(["person", label])
        with pytest.raises(ValueError, match="says nothing to the model"):
            extractor.extract(WINDOWS, ["person", label], threshold=0.5)

    def test_a_label_asked_twice_and_a_threshold_out_of_range_are_refused(
        self, extractor: EntityExtractor
    ) -> None:
        with pytest.raises(ValueError, match="asked for twice"):
            extractor.extract(WINDOWS, ["person", "person"], threshold=0.5)
        for threshold in (0.0, -1.0, 1.5):
            with pytest.raises(ValueError, match="threshold"):
                extractor.extract(WINDOWS, LABELS, threshold=threshold)

    def test_the_longest_window_is_read_to_its_end_and_a_longer_one_refused(
        self, extractor: EntityExtractor
    ) -> None:
        end = "Alice Novak lives in Berlin"
        longest = " ".join([*["so"] * (extractor.max_words - 5), end])
        [spans] = extractor.extract([longest], LABELS, threshold=0.01)
        assert max(span.end for span in spans) == len(longest)
        with pytest.raises(ValueError, match=f"window 1 has {extractor.max_words + 1} words"):
            extractor.extract(["fine", f"so {longest}"], LABELS, threshold=0.5)

    def test_a_window_of_too_many_tokens_is_refused_and_one_that_fits_taken(
        self, extractor: EntityExtractor
    ) -> None:
        costly = "qzxvkjwqpfgh" * 3
        [cost] = extractor.word_tokens([costly])
        room = extractor.max_tokens - extractor.prompt_tokens(LABELS)
        fits = " ".join([*[costly] * (room // cost), *["so"] * (room % cost)])
        assert sum(extractor.word_tokens(fits.split())) == room
        extractor.extract([fits], LABELS, threshold=0.5)
        with pytest.raises(ValueError, match=f"window 0 has {room + 1} tokens"):
            extractor.extract([f"{fits} so"], LABELS, threshold=0.5)

    def test_words_are_counted_one_by_one(self, extractor: EntityExtractor) -> None:
        assert extractor.word_tokens([]) == []
        words = ["Alice", "checkout-api", "서울에서", "x"]
        assert extractor.word_tokens(words) == [extractor.word_tokens([word])[0] for word in words]

    def test_lone_surrogates_are_refused(self, extractor: EntityExtractor) -> None:
        with pytest.raises(ValueError, match="surrogates"):
            extractor.extract(["a \ud800 b"], LABELS, threshold=0.5)

    def test_the_same_call_gives_the_same_spans(self, extractor: EntityExtractor) -> None:
        first = extractor.extract(WINDOWS, LABELS, threshold=0.3)
        assert extractor.extract(WINDOWS, LABELS, threshold=0.3) == first

    def test_windows_may_share_a_call(self, extractor: EntityExtractor) -> None:
        together = extractor.extract(WINDOWS, LABELS, threshold=0.3)
        alone = [extractor.extract([window], LABELS, threshold=0.3)[0] for window in WINDOWS]
        if self.exact:
            assert [keys(spans) for spans in together] == [keys(spans) for spans in alone]
            assert same_scores(together, alone, within=1e-3)
        else:
            sure = [[span for span in spans if span.score > 0.7] for spans in alone]
            assert all(keys(a) <= keys(b) for a, b in zip(sure, together, strict=True))

    def test_threads_may_call_at_once(self, extractor: EntityExtractor) -> None:
        expected = extractor.extract(WINDOWS, LABELS, threshold=0.5)
        with ThreadPoolExecutor(4) as pool:
            calls = [pool.submit(extractor.extract, WINDOWS, LABELS, threshold=0.5) for _ in range(8)]
        assert all(
            [keys(spans) for spans in call.result()] == [keys(spans) for spans in expected] for call in calls
        )

    def test_calls_in_a_row_are_answered_as_one_by_one(self, extractor: EntityExtractor) -> None:
        calls = [call_of(window, "", labels=labels) for window in WINDOWS for labels in (LABELS, LABELS[:2])]
        calls += [call_of(window) for window in WINDOWS]
        calls[3:3] = [call_of("\n"), call_of(), call_of(*WINDOWS, labels=[])]
        alone = [extractor.extract(c.windows, c.prompts, threshold=c.threshold) for c in calls]
        assert [alone[4], alone[3], alone[5]] == [[], [[]], [[], [], [], []]]
        assert list(extractor.extract_each(calls)) == alone
        assert list(extractor.extract_each([])) == []

    def test_calls_are_taken_a_few_ahead_and_no_more_are_made_once_nobody_asks(
        self, extractor: EntityExtractor
    ) -> None:
        taken: list[int] = []

        def calls() -> Iterator[ModelCall]:
            for number in range(100):
                taken.append(number)
                yield call_of(WINDOWS[0])

        answers = extractor.extract_each(calls())
        for _ in range(LOT_WINDOWS):
            next(answers)
        first = list(range((1 + LOTS_AHEAD) * LOT_WINDOWS))
        assert taken == first
        next(answers)
        more = [*first, *range(len(first), len(first) + LOT_WINDOWS)]
        assert taken == more
        del answers
        assert extractor.extract([WINDOWS[0]], LABELS, threshold=0.5)
        assert taken == more

    @pytest.mark.parametrize("before", [0, 2, LOT_WINDOWS, 4 * LOT_WINDOWS + 1])
    def test_a_refused_call_takes_no_answer_of_those_before_it(
        self, extractor: EntityExtractor, before: int
    ) -> None:
        good, bad = call_of(WINDOWS[0]), call_of(" ".join(["so"] * (extractor.max_words + 1)))
        answers = extractor.extract_each([*[good] * before, bad, good])
        expected = extractor.extract(good.windows, good.prompts, threshold=good.threshold)
        assert list(islice(answers, before)) == [expected] * before
        with pytest.raises(ValueError, match="cut it first"):
            next(answers)

    @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(text=st.text(max_size=80))
    def test_any_text_has_spans_or_a_reason(self, extractor: EntityExtractor, text: str) -> None:
        try:
            [spans] = extractor.extract([text], LABELS, threshold=0.05)
        except ValueError:
            assert any("\ud800" <= char <= "\udfff" for char in text)
        else:
            assert all(0 <= span.start < span.end <= len(text) for span in spans)


def call_of(*windows: str, labels: Sequence[str] = LABELS) -> ModelCall:
    return ModelCall(windows=windows, prompts=tuple(labels), threshold=0.3)


def flat(spans: list[Span]) -> list[LabelledSpan]:
    """One name a place, the surest first, as the library chooses."""
    found = [LabelledSpan(start=s.start, end=s.end, label=s.label, score=s.score) for s in spans]
    return select_flat([], found)[1]


def keys(spans: list[Span]) -> set[tuple[int, int, str]]:
    return {(span.start, span.end, span.label) for span in spans}


def same_scores(left: list[list[Span]], right: list[list[Span]], *, within: float) -> bool:
    scores = [
        {(i, s.start, s.end, s.label): s.score for i, spans in enumerate(side) for s in spans}
        for side in (left, right)
    ]
    return all(abs(scores[0][key] - scores[1][key]) <= within for key in scores[0].keys() & scores[1].keys())
