"""Texts → mentions with the shipped model: what the windows, the rules and the evidence gate make of it."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from indexers.domain.entities.labels import DEFAULT_LABELS, EntityLabel, NamespaceLabels, PatternRule
from indexers.domain.entities.windows import split_words
from indexers.extraction import Extracted, ask_each, begin_texts, extract_texts, finish_texts
from indexers.extractors.factory import load_extractor
from indexers.model_calls import TextToExtract, model_calls
from indexers.ports import EntityExtractor
from indexers.settings import ExtractorSettings
from tests.contract.extractor_suite import flat
from tests.labelled import AGENT_MEMORY, joined, labels_of, micro_f1, read_labelled

LABELLED = read_labelled(AGENT_MEMORY)
#: As the labelled texts name them; a label's own name knows no blank.
ASKED = NamespaceLabels(
    labels=tuple(EntityLabel(name=p.replace(" ", "_"), prompt=p) for p in labels_of(LABELLED))
)
FILLER = "Nothing much happened there, and everybody went home at a good hour after a quiet day of work. "


@pytest.fixture(scope="module")
def extractor() -> EntityExtractor:
    return load_extractor(ExtractorSettings())


def extract(
    extractor: EntityExtractor, *texts: str, labels: NamespaceLabels = DEFAULT_LABELS, rules: bool = True
) -> list[Extracted]:
    return extract_texts(
        [TextToExtract(text=text, labels=labels) for text in texts], extractor=extractor, rules=rules
    )


def named(extracted: Extracted) -> set[tuple[str, str]]:
    return {(mention.surface, mention.label) for mention in extracted.mentions}


def places(extracted: Extracted) -> set[tuple[int, int, str]]:
    return {(m.start, m.end, m.label.replace("_", " ")) for m in extracted.mentions}


class TestNothingIsLost:
    """Must show 2 of the entities' issue: no loss by windows or batches."""

    @pytest.fixture(scope="class")
    @classmethod
    def direct(cls, extractor: EntityExtractor) -> list[set[tuple[int, int, str]]]:
        """One call of the adapter a text, as the library's own `inference` chooses."""
        asked = labels_of(LABELLED)
        return [
            {(s.start, s.end, s.label) for s in flat(extractor.extract([text.text], asked, threshold=0.5)[0])}
            for text in LABELLED
        ]

    def test_texts_as_in_a_direct_call(
        self, extractor: EntityExtractor, direct: list[set[tuple[int, int, str]]]
    ) -> None:
        found = extract(extractor, *(text.text for text in LABELLED), labels=ASKED, rules=False)
        ours, theirs = (
            micro_f1((text.names, names) for text, names in zip(LABELLED, side, strict=True))
            for side in ([places(one) for one in found], direct)
        )
        assert len(LABELLED) == 30
        assert theirs > 68
        assert abs(ours - theirs) < 1

    @pytest.mark.parametrize("separator", [" ", "\n", "\n\n", "\n- "])
    def test_a_long_document_as_its_sentences(
        self, extractor: EntityExtractor, direct: list[set[tuple[int, int, str]]], separator: str
    ) -> None:
        whole = joined(LABELLED, separator)
        [found] = extract(extractor, whole.text, labels=ASKED, rules=False)
        alone = micro_f1((text.names, names) for text, names in zip(LABELLED, direct, strict=True))
        assert micro_f1([(whole.names, places(found))]) > alone - 2

    def test_the_last_sentence_of_a_long_note_is_read(self, extractor: EntityExtractor) -> None:
        note = FILLER * 170 + "Alice Novak moved to Berlin, where she leads the payments team."
        assert len(note.split()) > 3_000
        [found] = extract(extractor, note)
        last = [mention for mention in found.mentions if mention.start >= len(FILLER) * 170]
        assert {("Alice Novak", "person"), ("Berlin", "location"), ("payments team", "team")} <= {
            (mention.surface, mention.label) for mention in last
        }

    def test_a_sentence_over_several_windows_is_read_whole(self, extractor: EntityExtractor) -> None:
        note = "and then we went on " * 60 + "with Alice Novak in Berlin " + "and so on and on " * 60
        [found] = extract(extractor, note)
        assert {("Alice Novak", "person"), ("Berlin", "location")} <= named(found)

    def test_texts_in_one_call_are_as_alone(self, extractor: EntityExtractor) -> None:
        texts = [text.text for text in LABELLED[:8]]
        assert extract(extractor, *texts) == [extract(extractor, text)[0] for text in texts]

    def test_a_changed_line_changes_no_other_mention(self, extractor: EntityExtractor) -> None:
        lines = "\n\n".join(text.text for text in LABELLED[:6])
        [before], [after] = (extract(extractor, text) for text in (lines, f"{lines}\n\nGreta moved to Oslo."))
        assert after.mentions[: len(before.mentions)] == before.mentions


class TestCalls:
    def test_a_call_on_int8_holds_windows_of_one_text_the_short_ones_first(
        self, extractor: EntityExtractor
    ) -> None:
        jobs = [
            TextToExtract(text=joined(LABELLED[at : at + 10], "\n\n").text, labels=DEFAULT_LABELS)
            for at in (0, 10)
        ]
        calls = model_calls(jobs, extractor=extractor, batch_windows=4)
        assert {call.prompts for call in calls} == {tuple(label.prompt for label in DEFAULT_LABELS.labels)}
        owners = [{i for i, job in enumerate(jobs) for w in call.windows if w in job.text} for call in calls]
        assert all(len(owner) == 1 for owner in owners)
        for number, job in enumerate(jobs):
            mine = [call for call, owner in zip(calls, owners, strict=True) if owner == {number}]
            assert [len(call.windows) for call in mine[:-1]] == [4] * (len(mine) - 1)
            sizes = [len(split_words(window)) for call in mine for window in call.windows]
            assert sizes == sorted(sizes)
            assert sum(sizes) == len(split_words(job.text))

    def test_one_window_a_call_unless_more_are_asked_for(self, extractor: EntityExtractor) -> None:
        job = TextToExtract(text=joined(LABELLED, "\n\n").text, labels=DEFAULT_LABELS)
        assert {len(call.windows) for call in model_calls([job], extractor=extractor)} == {1}


class TestMentions:
    def test_a_mention_says_where_it_stands_and_in_which_sentence(self, extractor: EntityExtractor) -> None:
        text = "---\ntitle: Notes\n---\n# 😀 Week\n\n- Alice Novak fixed INC-2041. It was late.\n"
        [found] = extract(extractor, text)
        [alice, incident] = [m for m in found.mentions if m.surface in ("Alice Novak", "INC-2041")]
        assert text[alice.start : alice.end] == "Alice Novak"
        assert (alice.label, alice.source, 0.5 < alice.weight < 1) == ("person", "model", True)
        assert (incident.label, incident.source, incident.weight) == ("incident", "pattern", 1.0)
        assert text[incident.start : incident.end] == "INC-2041"
        assert {alice.sentence, incident.sentence} == {"Alice Novak fixed INC-2041."}

    @pytest.mark.parametrize("text", ["", " \n\t", "---\ntitle: x\n---\n", "😀", "```\nAlice Novak\n```"])
    def test_a_text_without_names_has_none(self, extractor: EntityExtractor, text: str) -> None:
        assert extract(extractor, text) == [Extracted(mentions=(), rejected={})]

    def test_no_labels_leave_the_rules(self, extractor: EntityExtractor) -> None:
        [found] = extract(extractor, "Alice Novak fixed INC-2041.", labels=NamespaceLabels())
        assert named(found) == {("INC-2041", "incident")}

    def test_a_pattern_of_the_namespace_goes_before_the_model(self, extractor: EntityExtractor) -> None:
        labels = NamespaceLabels(
            labels=DEFAULT_LABELS.labels, patterns=(PatternRule(label="pump", pattern=r"Alice \w+"),)
        )
        [found] = extract(extractor, "Alice Novak lives in Berlin.", labels=labels)
        assert named(found) == {("Alice Novak", "pump"), ("Berlin", "location")}

    def test_the_model_is_asked_with_the_prompt_and_answers_with_the_name(
        self, extractor: EntityExtractor
    ) -> None:
        labels = NamespaceLabels(labels=(EntityLabel(name="사람", prompt="person"),))
        [found] = extract(extractor, "Alice Novak lives in Berlin.", labels=labels)
        assert named(found) == {("Alice Novak", "사람")}

    def test_each_label_has_its_threshold(self, extractor: EntityExtractor) -> None:
        def asked(threshold: float) -> NamespaceLabels:
            return NamespaceLabels(
                labels=(EntityLabel(name="person", threshold=threshold), EntityLabel(name="location"))
            )

        text = "Alice Novak lives in Berlin."
        [strict], [loose] = (extract(extractor, text, labels=asked(t)) for t in (1.0, 0.5))
        assert named(strict) == {("Berlin", "location")}
        assert named(loose) == {("Berlin", "location"), ("Alice Novak", "person")}

    def test_more_labels_than_one_prompt_holds_are_asked_in_turn(self, extractor: EntityExtractor) -> None:
        long = tuple(
            EntityLabel(
                name=f"kind{i}", prompt=f"unlikely kind of thing number {i} " + "very strange " * 5 + "x"
            )
            for i in range(39)
        )
        labels = NamespaceLabels(labels=(*long, EntityLabel(name="person")))
        assert extractor.prompt_tokens([label.prompt for label in labels.labels]) > extractor.max_tokens
        [found] = extract(extractor, "Alice Novak lives here.", labels=labels)
        assert ("Alice Novak", "person") in named(found)

    @pytest.mark.parametrize("blob", ["QzXv" * 2_000, "qz-" * 900 + "x", "한글" * 300, "/x9" * 400])
    def test_a_blob_hides_nothing_around_it(self, extractor: EntityExtractor, blob: str) -> None:
        [found] = extract(extractor, f"Alice Novak pasted {blob} here. Bob Miller lives in Berlin.")
        assert {("Bob Miller", "person"), ("Berlin", "location")} <= named(found)

    def test_a_label_that_cannot_be_asked_for_is_an_error(self, extractor: EntityExtractor) -> None:
        labels = NamespaceLabels(labels=(EntityLabel(name="x", prompt="<<ENT>>"),))
        with pytest.raises(ValueError, match="says nothing to the model"):
            extract(extractor, "Alice", labels=labels)

    def test_texts_that_are_asked_in_one_go_get_what_they_get_alone_and_a_refused_one_costs_no_other(
        self, extractor: EntityExtractor
    ) -> None:
        twice = NamespaceLabels(labels=tuple(EntityLabel(name=name, prompt="person") for name in "ab"))
        texts = [TextToExtract(text=text.text, labels=DEFAULT_LABELS) for text in LABELLED[:8]]
        refused = TextToExtract(text="Alice Novak lives here. Bob, too.", labels=twice)
        begun = [begin_texts([job], extractor=extractor) for job in (*texts[:3], refused, *texts[3:])]
        answered = [
            (one, str(why) if why else finish_texts(one)) for one, why in ask_each(iter(begun), extractor)
        ]
        assert [id(one) for one, _ in answered] == [id(one) for one in begun]
        assert [outcome for _, outcome in answered] == [
            "a label is asked for twice: ['person', 'person']"
            if job is refused
            else extract_texts([job], extractor=extractor)
            for job in (*texts[:3], refused, *texts[3:])
        ]

    @settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(st.text(st.sampled_from("Alice Novak in Berlin. 한글é\u0301😀[]|*_`#-\n\r\t<>%$"), max_size=120))
    def test_mentions_stand_where_they_say_and_apart(self, extractor: EntityExtractor, text: str) -> None:
        [found] = extract(extractor, text)
        at = 0
        for mention in found.mentions:
            assert at <= mention.start < mention.end
            assert text[mention.start : mention.end] == mention.surface
            assert 0.5 <= mention.weight <= 1
            at = mention.end
