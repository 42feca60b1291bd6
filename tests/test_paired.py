"""Judges in pairs: sign flips against their enumeration, the level under the hypothesis, faults that would show."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, ttest_1samp

import secondorder as so
from secondorder.cli import main
from secondorder.core import sign_flip_test
from secondorder.core._multiplicity import holm
from secondorder.errors import InputError, SecondOrderError


def differences(items: int, pairs: int, columns: int, seed: int, shift: float = 0.0) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1.0, size=(items, pairs, columns)).round(1)


def t_of(values: np.ndarray) -> np.ndarray:
    """Absolute one-sample t of every column."""
    mean, spread = values.mean(0), values.std(0, ddof=1)
    return np.abs(mean) / (spread / np.sqrt(len(values)))


def test_few_items_are_enumerated() -> None:
    """Every pattern of signs, with the textbook's t in the place of mean over root mean square."""
    table = differences(9, 3, 2, seed=1, shift=0.4)
    found = sign_flip_test(table, seed=0)
    assert found.exact
    assert found.patterns == 512
    every = np.array([t_of(np.array(signs)[:, None, None] * table) for signs in product((1.0, -1.0), repeat=9)])
    observed = t_of(table) * (1 - 1e-9)
    np.testing.assert_allclose(found.pvalue, (every >= observed).mean(0))
    largest = every.max(-1)
    np.testing.assert_allclose(
        found.adjusted, np.minimum(3 * (largest[:, :, None] >= observed[None]).mean(0), 1.0), rtol=1e-12
    )
    np.testing.assert_allclose(found.pair_pvalue, (largest >= observed.max(-1)).mean(0))
    np.testing.assert_allclose(found.pair_adjusted, holm(found.pair_pvalue))
    expected = ttest_1samp(table, 0.0).statistic
    scaled = np.sqrt(8) * found.statistic / np.sqrt(1 - found.statistic**2)
    np.testing.assert_allclose(scaled, expected, rtol=1e-12)


def test_random_patterns_follow_the_enumeration() -> None:
    """10 000 patterns of 2^14: each share within five standard errors (6e-7), a probability off by a tenth is seen."""
    table = differences(14, 1, 2, seed=3, shift=0.2)
    exact = sign_flip_test(table, seed=0, n_draws=2**14)
    drawn = sign_flip_test(table, seed=5, n_draws=10_000)
    assert (exact.exact, drawn.exact, drawn.patterns) == (True, False, 10_001)
    for name in ("pvalue", "adjusted", "pair_pvalue"):
        p = getattr(exact, name)
        assert (np.abs(getattr(drawn, name) - p) <= 5 * np.sqrt(p * (1 - p) / 10_000) + 1e-4).all()


def test_ties_count_and_zeros_reject_nothing() -> None:
    table = np.zeros((6, 1, 3))
    table[:, 0, 1] = 0.25
    table[0, 0, 2] = 0.1
    found = sign_flip_test(table + 1e-12, seed=0)
    # All flips of zeros tie; equal differences are reached by two patterns of 64; a single one by all.
    assert found.pvalue[0].tolist() == [1.0, 2 / 64, 1.0]
    assert found.statistic[0].round(6).tolist() == [0.0, 1.0, round(float(1 / np.sqrt(6)), 6)]
    assert (sign_flip_test(table[:1], seed=0).pvalue == 1).all()


def test_blocks_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    from secondorder.core import _sign_flips

    table = differences(40, 3, 2, seed=2)
    enumerated = sign_flip_test(table[:8], seed=0)
    monkeypatch.setattr(_sign_flips, "BLOCK", 40 * 100)
    again = sign_flip_test(table[:8], seed=0)
    np.testing.assert_array_equal(enumerated.adjusted, again.adjusted)
    assert (sign_flip_test(table, seed=1, n_draws=250).pvalue >= 1 / 251).all()


def test_the_level_holds_for_exchangeable_judges() -> None:
    """2 000 data sets of three exchangeable judges, 7 items, two skewed components. Each pair's p is at most .05 with
    probability .05 at most, and so is any adjusted p of the family: more rejections than the limit happen with
    probability 1e-6. A level of .09 would be seen with probability .99.
    """
    generator = np.random.default_rng(11)
    limit = binom.isf(1e-6, 2000, 0.05)
    assert binom.cdf(limit, 2000, 0.09) < 0.01
    raw = family = pairs = 0
    for _ in range(2000):
        # Skewed values, one judge's components alike: what a normal law would hide.
        values = generator.exponential(size=(3, 7, 1)) ** 2 + 0.3 * generator.exponential(size=(3, 7, 2))
        table = np.stack([values[0] - values[1], values[0] - values[2], values[1] - values[2]], axis=1)
        found = sign_flip_test(table, seed=0)
        raw += found.pvalue[0, 0] <= 0.05
        family += (found.adjusted <= 0.05).any()
        pairs += (found.pair_adjusted <= 0.05).any()
    assert max(raw, family, pairs) <= limit
    # Not a test that never rejects: the raw p value is uniform on multiples of 2/128 (.047 can be reached).
    assert raw > binom.ppf(1e-6, 2000, 6 / 128)


CLASSES = ["A", "B"]


def cube(items: int = 30, judges: int = 3, repeats: int = 4, seed: int = 0):  # type: ignore[no-untyped-def]
    """Judges j0 and j1 by one law; the last one mixes in a coin."""
    generator = np.random.default_rng(seed)
    rows = []
    for item in range(items):
        lean = generator.random() * 0.2
        for prompt in ("p", "q"):
            for judge in range(judges):
                chance = 0.5 if judge == 2 else lean
                said = generator.random(repeats) < chance
                rows += [
                    {
                        "judge": f"j{judge}",
                        "item": f"i{item:02}",
                        "prompt": prompt,
                        "run": r,
                        "verdict": CLASSES[int(v)],
                    }
                    for r, v in enumerate(said)
                ]
    return so.make_cube(
        rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=CLASSES, by="judge"
    )


def test_the_judge_that_differs_is_found() -> None:
    # False failures: judges of one law have an exact p value at or below .0005 in at most 0.05 % of seeds; the other
    # two bounds were kept under all of 1,000 other seeds (largest .0012 and .0195), so they fail in less than 0.3 %.
    result = so.decompose(cube())
    found = so.paired_test(result)
    assert found.n_items == 30
    assert [(a["judge"], b["judge"]) for a, b in found.pairs] == [("j0", "j1"), ("j0", "j2"), ("j1", "j2")]
    assert (found.pair_adjusted[1:] < 0.01).all()
    assert found.pair_adjusted[0] > 0.0005
    call = found.components.index("call")
    assert (found.adjusted[1:, call] < 0.05).all()
    assert (found.adjusted >= found.pvalues).all()
    compared = result.comparison
    assert compared is not None
    wanted = {(d.component, d.a["judge"], d.b["judge"]): d.estimate for d in compared.differences}
    for k, (a, b) in enumerate(found.pairs):
        for j, name in enumerate(found.components):
            assert found.estimate[k, j] == pytest.approx(wanted[name, a["judge"], b["judge"]], abs=1e-14)
            band = next(d for d in compared.differences if d.component == name and d.a == a and d.b == b)
            assert (found.lower[k, j], found.upper[k, j]) == pytest.approx((band.lower, band.upper), abs=1e-12)
    text = " ".join(str(found).split())
    assert "Judges in pairs, on 30 shared items" in text
    assert found.to_dataset().adjusted.dims == ("pair", "component")
    apart = [result.select(judge=f"j{k}") for k in range(3)]
    np.testing.assert_array_equal(so.paired_test(*apart).pvalues, found.pvalues)


def test_unequal_calls_are_noted_and_wrong_calls_refused() -> None:
    result = so.decompose(cube(judges=2, items=4))
    other = so.decompose(cube(judges=2, items=4, repeats=2))
    assert not so.paired_test(result).notes
    mixed = so.paired_test(result.select(judge="j0"), other.select(judge="j1"))
    assert "not called equally often" in mixed.notes[-1]
    with pytest.raises(InputError, match="one group"):
        so.paired_test(result.select(judge="j0"))
    with pytest.raises(InputError, match="19"):
        so.paired_test(result, draws=10)
    with pytest.raises(SecondOrderError, match="R >= 2"):
        so.paired_test(so.decompose(cube(judges=2, items=4, repeats=1)))


def test_the_command_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = cube(items=6)
    path = tmp_path / "cube.nc"
    so.save_cube(made, path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stop:
            main(["test", str(path), "--hypothesis", "judges", *arguments])
        out, err = capsys.readouterr()
        return int(str(stop.value.code)), out, err

    code, out, _ = run("--format", "json")
    plain = json.loads(out)
    found = so.paired_test(so.decompose(made), draws=999)
    assert (code, plain["schema"], plain["exact"]) == (0, "secondorder.paired/1", True)
    assert [entry["p_holm"] for entry in plain["pairs"]] == found.pair_adjusted.tolist()
    assert plain["pairs"][1]["tests"][0]["p_adjusted"] == found.adjusted[1, 0]
    code, out, _ = run()
    assert "all sign patterns" in " ".join(out.split())
    code, out, _ = run("--effect", "prompt", "--format", "json")
    alone = json.loads(out)
    assert code == 0
    assert [[test["component"] for test in pair["tests"]] for pair in alone["pairs"]] == [["prompt"]] * 3
    # One component of three judges: what is left to adjust for are three pairs.
    test = alone["pairs"][0]["tests"][0]
    assert test["p"] == plain["pairs"][0]["tests"][found.components.index("prompt")]["p"] == alone["pairs"][0]["p"]
    assert test["p_adjusted"] == pytest.approx(min(1.0, 3 * test["p"]))
    code, _, err = run("--effect", "wording")
    assert code == 2
    assert "no component 'wording'" in err
