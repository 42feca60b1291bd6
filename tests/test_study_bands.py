"""Every study: which items its bands cover, where there are none, and why a number is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import xarray as xr

from secondorder import studies
from secondorder.errors import InputError
from secondorder.studies import StudyResult


def panel(strata: list[str]) -> xr.Dataset:
    """Verdicts with orders, repeats, human scores and lengths; a study finds all that it needs."""
    rng = np.random.default_rng(1)
    n = len(strata)
    right = rng.integers(0, 2, n)
    verdict = (rng.random((n, 4, 2, 3)) < np.where(right, 0.7, 0.3)[:, None, None, None]).astype(int)
    return xr.Dataset(
        {"verdict": (("item", "prompt", "order", "repeat"), verdict)},
        coords={
            "class": ["1", "2"],
            "prompt": list("abcd"),
            "order": ["AB", "BA"],
            "stratum": ("item", strata),
            "gold": ("item", (right + 1).astype(float)),
            "words": ("item", rng.normal(0, 1, n)),
            "task": ("item", ["x"] * (n // 2) + ["y"] * (n - n // 2)),
        },
    )


SIMILAR = {(a, b): abs(ord(a) - ord(b)) * 0.1 for a in "abcd" for b in "abcd" if a < b}
STUDIES: dict[str, Callable[[xr.Dataset], StudyResult]] = {
    "agreement": lambda cube: studies.agreement(cube, by="task", draws=200),
    "repeats": lambda cube: studies.repeat_agreement(cube, by="task", draws=200),
    "position": lambda cube: studies.position_bias(cube, by="task", draws=200),
    "verbosity": lambda cube: studies.verbosity_bias(cube, length="words", by="task", draws=200),
    "winners": lambda cube: studies.prompt_winners(cube, by="task", draws=200),
    "similarity": lambda cube: studies.similarity_stability(cube, SIMILAR, by="task", draws=200),
    "aggregate": lambda cube: studies.aggregate(cube, by="task", draws=200, rules=["mean", "plurality"]),
    "convergence": lambda cube: studies.convergence(cube, by="task", draws=200),
    "budget": lambda cube: studies.match_budget(cube, by="task", calls=[1], draws=200),
    "designs": lambda cube: studies.judge_designs(cube, factors=["prompt", "order"], by="task", to=(1, 2), draws=200),
    "sources": lambda cube: studies.dominant_source(cube, factors=["prompt", "order"], by="task", draws=200),
    "binary": lambda cube: studies.binary_designs(
        cube, factors=["prompt"], accept="2", by="task", permutations=0, draws=200
    ),
    "reversals": lambda cube: studies.rank_reversals(cube, system="order", by="task", splits=2, draws=200),
}


@pytest.mark.parametrize("name", STUDIES)
def test_an_item_that_is_alone_in_its_stratum_leaves_no_band_to_its_own_group(name: str) -> None:
    """Such an item is in every draw once: its spread would count as 0. The other task keeps its bands."""
    cube = panel(["s"] * 11 + ["t"] + ["s"] * 12)
    cube["verdict"][11] = 2 - cube["gold"][11]  # always wrong, so that it counts in shares of errors too
    found = STUDIES[name](cube).data
    there = found["estimate"].notnull()
    lone, other = found.sel(task="x"), found.sel(task="y")
    assert bool(there.sel(task="x").any())
    assert not bool(lone["lower"].notnull().any())
    assert bool(other["lower"].notnull().any())
    said = lone["reason"].where(there.sel(task="x") & (lone["undefined_draws"] > 0), "").to_numpy().ravel().tolist()
    assert any("alone in its stratum" in text for text in said)
    assert bool(STUDIES[name](panel(["s"] * 10 + ["t"] * 2 + ["s"] * 12)).data["lower"].sel(task="x").notnull().any())


def test_an_item_that_is_alone_in_its_stratum_leaves_no_pair_sure_or_undecided() -> None:
    found = STUDIES["reversals"](panel(["s"] * 11 + ["t"] + ["s"] * 12)).data
    for name in ("sure_kept", "sure_reversed", "sure_undecided"):
        assert np.isnan(found[name].sel(task="x"))
        assert not np.isnan(found[name].sel(task="y"))


@pytest.mark.parametrize("name", ["agreement", "designs", "sources", "binary", "winners"])
def test_both_ends_of_a_band_are_named(name: str) -> None:
    columns = [column for table in STUDIES[name](panel(["s"] * 24)).tables for column in table.columns]
    assert columns.count("lower 95 %") == columns.count("upper") > 0
    assert "95 %" not in columns


def told(found: StudyResult, measure: str) -> set[str]:
    """Reasons of one measure, where it has no value."""
    one = found[measure]
    return set(one["reason"].where(one["estimate"].isnull(), "").to_numpy().ravel().tolist()) - {""}


def emptied(name: str) -> xr.Dataset:
    cube = panel(["s"] * 12)
    if name == "no calls":
        return cube.assign(verdict=cube["verdict"] * 0 - 1)
    if name == "one answer":
        return cube.assign(verdict=cube["verdict"] * 0)
    return cube.assign_coords(gold=("item", np.full(12, np.nan)))


@pytest.mark.parametrize(
    ("cube", "study", "measure", "reason"),
    [
        ("no calls", "verbosity", "slope", "no item has a score in every cell"),
        ("no calls", "similarity", "pearson", "no item has a call under every prompt"),
        ("no calls", "convergence", "default_is_clear_plurality", "no event in which every voter voted"),
        ("no calls", "reversals", "tau", "a system has no score under some prompt"),
        ("one answer", "reversals", "adjacent", "under some prompt all systems are tied"),
        ("no gold", "aggregate", "accuracy", "no item has both a vote and a right class"),
        ("no gold", "budget", "accuracy", "there are no right classes"),
        ("no gold", "designs", "alpha", "no item has both scores"),
    ],
)
def test_what_is_undefined_says_what_is_lacking(cube: str, study: str, measure: str, reason: str) -> None:
    assert reason in told(STUDIES[study](emptied(cube)), measure)


def test_designs_without_human_scores_have_no_direction_and_no_ensembles() -> None:
    """The bias of a design without items is unknown: it neither turns nor stays."""
    cube = emptied("no gold")
    effects = studies.factor_effects(cube, factors=["prompt", "order"], to=(1, 2), permutations=0)
    for measure in ("direction", "size", "error", "best"):
        assert told(effects, measure) == {"a design has no item with both scores"}
    teams = studies.ensembles(cube, factors=["prompt", "order"], vary=["prompt"], sizes=[2], to=(1, 2))
    assert told(teams, "bias") == {"a design has no item with both scores"}
    whole = studies.factor_effects(panel(["s"] * 12), factors=["prompt"], to=(1, 2), permutations=0)
    assert told(whole, "best") == {"the other factors have fewer than two settings to rank"}


def test_a_figure_that_shows_some_of_the_groups_says_so() -> None:
    cube = panel(["s"] * 24).drop_vars("task").assign_coords(task=("item", list("abcdefghijkl") * 2))
    for name, most in (("convergence", 6), ("budget", 3), ("designs", 4)):
        (figure,) = STUDIES[name](cube).figures
        assert figure.caption.endswith(f"The first {most} of 12 groups.")
        (whole,) = STUDIES[name](panel(["s"] * 24)).figures
        assert "The first" not in whole.caption


@pytest.mark.parametrize("wrong", [{"level": 1}, {"level": "high"}, {"draws": -1}, {"seed": -1}, {"seed": 1.5}])
def test_levels_draws_and_seeds_are_checked_before_any_work(wrong: dict[str, Any]) -> None:
    cube = panel(["s"] * 12)
    (name,) = wrong
    for study in (studies.agreement, studies.aggregate, studies.convergence, studies.prompt_winners):
        with pytest.raises(InputError, match=name):
            study(cube, **wrong)


def test_bands_of_few_items_say_how_much_too_narrow_they_are() -> None:
    """The variance of a resampled mean is (n - 1)/n of the unbiased one."""
    few, many = panel(["s"] * 10), panel(["s"] * 24)
    for cube, by, said in ((few, None, "With 10 items they are some 5 %"), (many, "task", "With 12 items")):
        assert said in " ".join(str(studies.agreement(cube, by=by, draws=50)).split())
    assert "too narrow" not in " ".join(str(studies.agreement(many, draws=50)).split())
    assert "too narrow" not in " ".join(str(studies.agreement(few, draws=0)).split())
