"""Paraphrase validation: contracts, word overlap, embeddings with controls, ratings with their agreement."""

from __future__ import annotations

import sys
from types import ModuleType

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from secondorder import studies
from secondorder.errors import InputError
from secondorder.studies import coefficient, similarity_stability, validate_paraphrases
from secondorder.studies._wordings import (
    PLACEHOLDER,
    absent_answers,
    cosines,
    differing_placeholders,
    jaccard,
    words_of,
)

PROMPTS = {
    "P1": "Is {{answer}} understandable? Say Yes or No.",
    "P2": "Is {{ answer }} clear and easy to comprehend? Say Yes or No.",
    "P3": "Decide if {{answer}} can be understood. Say Yes or No.",
}


def letters(texts: list[str]) -> np.ndarray:
    """Counts of letters: an embedding that needs no model."""
    return np.array([[text.lower().count(chr(97 + k)) for k in range(26)] for text in texts], dtype=float)


def test_placeholders_are_a_set_and_spaces_inside_do_not_matter() -> None:
    assert differing_placeholders("{{a}} {{b}} {{a}}", "{{ b }} {{a}}", PLACEHOLDER) == ((), ())
    assert differing_placeholders("{a} {{c}}", "{{a}} {{b}}", PLACEHOLDER) == (("a", "b"), ("c",))
    assert differing_placeholders("{a}", "{b}", r"\{([^{}]+)\}") == (("b",), ("a",))
    found = validate_paraphrases(
        {**PROMPTS, "P4": "Is {{reply}} understandable? Say Yes or No."}, answers=["Yes", "No"]
    )
    assert found.data["placeholders_ok"].to_numpy().tolist() == [True, True, True, False]
    assert "P4: lacks answer; adds reply" in str(found)
    assert "1 of 4 prompts do not keep the contract" in str(found)


def test_answers_are_whole_words_and_a_scale_needs_its_ends() -> None:
    assert absent_answers("Answer Yes.", ["Yes", "No"]) == ("No",)
    assert absent_answers("Nothing: Yesterday", ["Yes", "No"]) == ("Yes", "No")
    assert absent_answers('Answer {"winner": "A"} or [[B]].', ["A", "B"]) == ()
    scale = [str(k) for k in range(1, 8)]
    assert absent_answers("from 1 (bad) to 7 (good)", scale) == ()
    assert absent_answers("from 1 to 5", scale) == ("2", "3", "4", "6", "7")
    own = {"P1": ["Yes", "No"], "P2": ["Yes", "No"], "P3": ["Yes"]}
    found = validate_paraphrases(PROMPTS, answers=own)
    assert found.data["answers_ok"].to_numpy().tolist() == [True, True, False]
    assert "P3: asks for Yes" in str(found)


def test_overlap_is_the_jaccard_index_of_words_without_placeholders() -> None:
    found = validate_paraphrases(PROMPTS)
    words = {name: {w.strip("?.,").lower() for w in text.replace("{{ answer }}", "").replace("{{answer}}", "").split()}
             for name, text in PROMPTS.items()}  # fmt: skip
    pairs = [("P1", "P2"), ("P1", "P3"), ("P2", "P3")]
    expected = {pair: len(words[pair[0]] & words[pair[1]]) / len(words[pair[0]] | words[pair[1]]) for pair in pairs}
    for (a, b), value in expected.items():
        assert float(found.data["overlap"].sel(prompt=a, other=b)) == pytest.approx(value)
    assert float(found["jaccard"].estimate) == pytest.approx(np.mean(list(expected.values())))
    assert float(found["jaccard_least"].estimate) == pytest.approx(min(expected.values()))
    assert float(found["jaccard_most"].estimate) == pytest.approx(max(expected.values()))
    assert str(found["cosine"].reason.item()) == "no embedding model was given"


@given(st.text(max_size=60), st.text(max_size=60))
def test_overlap_is_symmetric_and_between_0_and_1(a: str, b: str) -> None:
    first, second = words_of(a, PLACEHOLDER), words_of(b, PLACEHOLDER)
    value = jaccard(first, second)
    assert value == jaccard(second, first) or np.isnan(value)
    assert np.isnan(value) == (not first and not second)
    assert np.isnan(value) or 0 <= value <= 1
    if first:
        assert jaccard(first, first) == 1
        assert words_of(a.upper(), PLACEHOLDER) == words_of(a.upper().casefold(), PLACEHOLDER)


def test_cosines_do_not_depend_on_length_and_feed_the_lottery() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(4, 5))
    scaled = cosines(["a"] * 4, lambda texts: vectors * np.array([[1], [2], [0.1], [7]]))
    expected = vectors @ vectors.T / np.outer(*[np.linalg.norm(vectors, axis=1)] * 2)
    np.testing.assert_allclose(scaled, expected, atol=1e-12)
    found = validate_paraphrases(PROMPTS, embed=letters)
    cube = xr.Dataset(
        {"verdict": (("item", "prompt"), rng.integers(0, 2, (20, 3)))},
        coords={"class": ["No", "Yes"], "prompt": list(PROMPTS)},
    )
    similarity = found.data["similarity"].to_pandas()
    shown = [similarity.loc[a, b] for a, b in (("P1", "P2"), ("P1", "P3"), ("P2", "P3"))]
    for name, value in (("cosine", np.mean(shown)), ("cosine_least", min(shown)), ("cosine_most", max(shown))):
        assert float(found[name].estimate) == pytest.approx(value)
    assert float(similarity_stability(cube, similarity, draws=0)["pearson"].pvalue) >= 1 / 6
    empty = validate_paraphrases({"a": "???", "b": "!!!"}, embed=letters)
    assert str(empty["jaccard"].reason.item()) == "a wording has no words"
    assert str(empty["cosine"].reason.item()) == "an embedding has length 0"
    for wrong in (lambda texts: [1.0], lambda texts: np.full((3, 2), np.nan)):
        with pytest.raises(InputError, match="one row for each text"):
            validate_paraphrases(PROMPTS, embed=wrong)


def test_a_control_as_close_as_a_paraphrase_says_that_the_embedding_tells_nothing() -> None:
    flip = {"P1": "Is {{answer}} not understandable? Say Yes or No."}
    blind = validate_paraphrases(PROMPTS, embed=letters, controls=flip)
    assert float(blind["cosine_control"].estimate) > float(blind["cosine_least"].estimate)
    assert "cannot certify" in str(blind)
    assert "tells nothing" in str(blind)

    def sees(texts: list[str]) -> np.ndarray:
        return np.array([[1.0, -4.0 if " not " in text else 1.0, len(text) / 100] for text in texts])

    found = validate_paraphrases(PROMPTS, embed=sees, controls=flip)
    assert "every paraphrase is closer than every control" in str(found)


def test_families_are_compared_within_themselves() -> None:
    prompts = {**PROMPTS, "Q1": "Rate {{text}} from 1 to 5.", "Q2": "Give {{text}} a rating of 1 to 5."}
    family = {name: name[0] for name in prompts}
    answers = {name: ["Yes", "No"] if name[0] == "P" else list("12345") for name in prompts}
    found = validate_paraphrases(prompts, family=family, answers=answers, embed=letters)
    assert found.data["family"].to_numpy().tolist() == ["P", "Q"]
    assert bool(found.data["placeholders_ok"].all() & found.data["answers_ok"].all())
    assert np.isnan(float(found.data["overlap"].sel(prompt="P1", other="Q1")))
    alone = validate_paraphrases(PROMPTS, embed=letters)
    for name in ("jaccard", "cosine", "cosine_least"):
        assert float(found[name].estimate.sel(family="P")) == pytest.approx(float(alone[name].estimate))
    single = validate_paraphrases({"P1": "x"}, embed=letters)
    assert "there is no pair" in str(single["jaccard"].reason.item())


def test_ratings_have_means_and_the_agreement_of_the_agreement_study() -> None:
    values = np.array([[80, 70, 90], [75, np.nan, 85], [20, 10, 30]], dtype=float)
    human = xr.DataArray(values, dims=("prompt", "rater"), coords={"prompt": ["P2", "P3", "P4"], "rater": list("abc")})
    labels = xr.DataArray([["same", "same"], ["same", "other"], ["other", "other"]], dims=("prompt", "rater"),
                          coords={"prompt": ["P2", "P3", "P4"]})  # fmt: skip
    prompts = {**PROMPTS, "P4": "Rate {{answer}}."}
    found = validate_paraphrases(prompts, ratings={"human": human, "llm": labels}, draws=50)
    np.testing.assert_allclose(found.data["rating_human"], [np.nan, 80, 80, 20])
    assert found.data["rating_llm"].isnull().all()
    table = {row[0]: row[1] for row in found.tables[2].rows}
    assert table["mean of b"] == pytest.approx(40)
    import krippendorff

    alpha = krippendorff.alpha(values.T, level_of_measurement="interval")
    assert table["Krippendorff α of the raters"] == pytest.approx(alpha, abs=1e-12)
    kappa = coefficient("cohen", ratings=[[0, 0], [0, 1], [1, 1]]).estimate
    assert {row[0]: row[1] for row in found.tables[3].rows}["Cohen κ of the raters"] == pytest.approx(kappa)
    with pytest.raises(InputError, match="no prompt 'P9'"):
        validate_paraphrases(PROMPTS, ratings={"human": human.assign_coords(prompt=["P2", "P3", "P9"])})
    with pytest.raises(InputError, match="rater"):
        validate_paraphrases(PROMPTS, ratings={"human": human.rename(rater="person")})


def test_models_by_name_come_from_sentence_transformers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        def __init__(self, name: str) -> None:
            if name != "known":
                raise OSError("no such model")

        def encode(self, texts: list[str]) -> np.ndarray:
            return letters(texts)

    fake = ModuleType("sentence_transformers")
    fake.SentenceTransformer = Model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    named = validate_paraphrases(PROMPTS, embed="known")
    assert named.data["similarity"].equals(validate_paraphrases(PROMPTS, embed=letters).data["similarity"])
    with pytest.raises(InputError, match="no such model"):
        validate_paraphrases(PROMPTS, embed="unknown")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match="pip install sentence-transformers"):
        validate_paraphrases(PROMPTS, embed="known")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"prompts": {}}, "prompts: no prompt"),
        ({"family": {"P1": "a"}}, "'P2' has no family"),
        ({"family": {"P9": "a"}}, "family: there is no prompt 'P9'"),
        ({"controls": {"P9": "x"}}, "controls: there is no prompt 'P9'"),
        ({"answers": {"P9": ["A"]}}, "answers: there is no prompt 'P9'"),
    ],
)
def test_what_belongs_to_no_prompt_is_refused(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        validate_paraphrases(**{"prompts": PROMPTS, **wrong})  # type: ignore[arg-type]


def test_the_study_is_a_section_with_a_figure() -> None:
    found = validate_paraphrases(PROMPTS, embed=letters, controls={"P1": "Is {{answer}} confusing? Say Yes or No."})
    section = found.section()
    assert section.figures[0].svg.startswith("<svg")
    assert "a control" in section.figures[0].svg
    assert len(section.tables) == 2
    plain = found.to_dict()
    assert {row["measure"] for row in plain["estimates"]} >= {"jaccard", "cosine"}
    assert studies.StudyResult.__name__ == type(found).__name__
