"""Signs of dependence: statistics by their definition, size under independence, power on every trap, the real one."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import secondorder as so
from secondorder import core
from secondorder.cli import main
from secondorder.core._dependence import independence_tests
from secondorder.errors import InputError

NOMINAL = 1 - np.eye(3)
LAW = np.array([0.5, 0.3, 0.2])
GROWING = np.array([0.15, 0.3, 0.55])


def draw(uniform: np.ndarray, law: np.ndarray = LAW) -> np.ndarray:
    """Classes by the inverse of the law, as a server with a seed draws them."""
    return (uniform[..., None] > np.cumsum(law, axis=-1)[..., :-1]).sum(-1)


def by_name(codes: np.ndarray, **options: Any) -> dict[str, Any]:
    return {test.name: test for test in independence_tests(codes, NOMINAL, seed=1, n_draws=199, **options)}


def rejected(codes: np.ndarray, alpha: float = 0.01, **options: Any) -> set[str]:
    return {name for name, test in by_name(codes, **options).items() if test.pvalue <= alpha}


# -- definitions ------------------------------------------------------------------------------------------------------


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def brute_force(codes: np.ndarray, kernel: np.ndarray, place: np.ndarray) -> dict[str, float]:
    """Every statistic from loops over pairs of calls."""
    items, cells, repeats = codes.shape
    seen = [(i, f, r) for i, f, r in np.ndindex(codes.shape) if codes[i, f, r] >= 0]
    pairs = [(a, b, kernel[codes[a], codes[b]]) for a, b in combinations(seen, 2)]
    found = {}
    across = [(a, b, d) for a, b, d in pairs if a[0] == b[0] and a[1] != b[1]]
    found["repeat alignment"] = mean([d for a, b, d in across if a[2] != b[2]]) - mean(
        [d for a, b, d in across if a[2] == b[2]]
    )
    between = [(a, b, d) for a, b, d in pairs if a[0] != b[0] and a[1] == b[1]]
    found["repeat alignment, items"] = mean([d for a, b, d in between if a[2] != b[2]]) - mean(
        [d for a, b, d in between if a[2] == b[2]]
    )
    inside = [(a[2], b[2], d) for a, b, d in pairs if a[:2] == b[:2]]
    far = {
        "first repeat": lambda r, q: (r == 0) != (q == 0),
        "copies of the first": lambda r, q: (r == 0) == (q == 0),
        "halves, contiguous": lambda r, q: (r < repeats // 2) != (q < repeats // 2),
        "halves, interleaved": lambda r, q: r % 2 != q % 2,
        "neighbours": lambda r, q: abs(r - q) > 1,
    }
    for name, apart in far.items():
        found[name] = mean([d for r, q, d in inside if apart(r, q)]) - mean(
            [d for r, q, d in inside if not apart(r, q)]
        )
    slope, weight = np.zeros(len(kernel)), 0.0
    for i, f in np.ndindex(items, cells):
        centred = place[i, f] - place[i, f].mean()
        weight += (centred**2).sum()
        for r in range(repeats):
            slope[codes[i, f, r]] += centred[r]
    found["drift by rank"] = (-0.5 * slope @ kernel @ slope) ** 0.5 / weight
    close = [(abs(place[a] - place[b]), d) for a, b, d in pairs if a[:2] == b[:2]]
    x, y = (np.array(column) for column in zip(*close, strict=True))
    found["change by rank"] = ((x - x.mean()) * y).sum() / ((x - x.mean()) ** 2).sum()
    return found


@pytest.mark.parametrize("kernel", [NOMINAL, np.abs(np.subtract.outer(range(3), range(3))) / 2])
def test_statistics_are_differences_of_mean_disagreements(kernel: np.ndarray) -> None:
    generator = np.random.default_rng(5)
    codes, place = generator.integers(3, size=(4, 3, 5)), generator.random((4, 3, 5))
    expected = brute_force(codes, kernel, place)
    found = independence_tests(codes, kernel, seed=0, n_draws=19, when={"rank": place})
    assert {test.name for test in found} == set(expected)
    for test in found:
        assert test.statistic == pytest.approx(expected[test.name], abs=1e-12), test.name


def test_missing_calls_are_in_no_pair() -> None:
    generator = np.random.default_rng(6)
    codes = np.where(generator.random((4, 3, 5)) < 0.2, -1, generator.integers(3, size=(4, 3, 5)))
    expected = brute_force(codes, NOMINAL, np.zeros(codes.shape) + np.arange(5))
    for test in independence_tests(codes, NOMINAL, seed=0, n_draws=19):
        assert test.statistic == pytest.approx(expected[test.name], abs=1e-12), test.name


def test_small_designs_have_the_tests_that_they_can_have() -> None:
    two = {test.name for test in independence_tests(np.zeros((1, 1, 2), int), NOMINAL, seed=0, n_draws=19)}
    assert two == set()
    three = {test.name for test in independence_tests(np.zeros((1, 2, 3), int), NOMINAL, seed=0, n_draws=19)}
    assert three == {"repeat alignment", "first repeat", "copies of the first", "neighbours"}
    # A judge that never varies gives no sign: every shuffle ties.
    still = independence_tests(np.zeros((5, 2, 4), int), NOMINAL, seed=0, n_draws=19)
    assert all(test.pvalue == 1 for test in still)


# -- size: no test reacts to what another one is for ------------------------------------------------------------------

RUNS, LEVEL = 200, 0.1
# A test rejects an independent judge with probability at most .1: more than 43 of 200 come up by chance with 5e-7.
MOST = int(binom.isf(5e-7, RUNS, LEVEL))


def sizes(make: Any) -> dict[str, int]:
    generator = np.random.default_rng(11)
    counts: dict[str, int] = {}
    for number in range(RUNS):
        codes = make(generator)
        place = generator.random(codes.shape)
        for test in independence_tests(codes, NOMINAL, seed=number, n_draws=19, when={"rank": place}):
            counts[test.name] = counts.get(test.name, 0) + (test.pvalue <= LEVEL)
    return counts


def test_size_under_independence() -> None:
    counts = sizes(lambda generator: draw(generator.random((6, 4, 4))))
    assert len(counts) == 9
    assert max(counts.values()) <= MOST, counts


def test_shared_seeds_make_no_test_along_the_repeats_reject() -> None:
    # All cells of an item share the uniform number of a repeat: the trap that these tests must not answer for.
    counts = sizes(lambda generator: np.repeat(draw(generator.random((6, 1, 4))), 4, axis=1))
    assert counts.pop("repeat alignment") == RUNS
    assert max(counts.values()) <= MOST, counts


# -- power: each trap is found, and named -----------------------------------------------------------------------------


def uniforms(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(2).random(shape)


# Found under all of 2,000 other seeds, this trap and the half-filled cache below: they fail in less than 0.15 %. That
# nothing else is found is no claim of theirs: the other six tests keep their level, and one rejects in 4 to 5 %.


def test_shared_seeds() -> None:
    shared = np.broadcast_to(uniforms((50, 1, 4)), (50, 12, 4))
    touched = np.random.default_rng(3).random((50, 12, 4)) < 0.4
    assert "repeat alignment" in rejected(draw(np.where(touched, shared, uniforms((50, 12, 4)))))


def test_seeds_shared_between_items() -> None:
    # Cells have seeds of their own, but every item gets the same ones.
    assert rejected(draw(np.broadcast_to(uniforms((1, 6, 4)), (50, 6, 4)))) >= {"repeat alignment, items"}


def test_duplicated_answers() -> None:
    assert "neighbours" in rejected(np.repeat(draw(uniforms((50, 6, 2))), 2, axis=-1))


def test_a_cache_that_answers_half_of_the_calls() -> None:
    codes = draw(uniforms((50, 6, 4)))
    copied = np.random.default_rng(3).random(codes.shape) < 0.5
    assert "copies of the first" in rejected(np.where(copied, codes[..., :1], codes))


def test_warm_up() -> None:
    codes = draw(uniforms((50, 6, 4)))
    codes[..., 0] = 2
    assert "first repeat" in rejected(codes)


def test_two_servers_in_turn() -> None:
    laws = np.stack([LAW, GROWING, LAW, GROWING])
    assert "halves, interleaved" in rejected(draw(uniforms((50, 12, 4)), laws))


def test_drift() -> None:
    place = np.random.default_rng(4).permutation(50 * 6 * 4).reshape(50, 6, 4) / 1199
    codes = draw(uniforms((50, 6, 4)), (1 - place)[..., None] * LAW + place[..., None] * GROWING)
    assert "drift by rank" in rejected(codes, when={"rank": place})


def test_another_server_in_the_second_half() -> None:
    laws = np.stack([LAW, LAW, GROWING, GROWING])
    assert "halves, contiguous" in rejected(draw(uniforms((50, 12, 4)), laws))


def test_a_judge_that_changes_into_another_one() -> None:
    # Half of the items move one way, half the other: no class becomes more frequent, but far calls agree less.
    place = np.random.default_rng(4).permutation(50 * 6 * 4).reshape(50, 6, 4) / 1199
    before = np.where((np.arange(50) % 2 == 0)[:, None], [0.9, 0.1, 0.0], [0.1, 0.9, 0.0])[:, None, None, :]
    laws = np.where((place < 0.5)[..., None], before, before[..., [1, 0, 2]])
    found = rejected(draw(uniforms((50, 6, 4)), laws), when={"time": place})
    assert "change by time" in found
    assert "drift by time" not in found


# -- cubes ------------------------------------------------------------------------------------------------------------


def cube_of(codes: np.ndarray, **calls: np.ndarray) -> Any:
    items, prompts, repeats = codes.shape
    rows = [
        {"item": f"q{i}", "prompt": f"p{k}", "run": str(r), "verdict": "ABC"[codes[i, k, r]]}
        for i, k, r in np.ndindex(items, prompts, repeats)
    ]
    cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=["A", "B", "C"])
    return cube.assign({name: (cube.verdict.dims, values) for name, values in calls.items()})


def test_one_answer_for_every_repeat() -> None:
    codes = np.repeat(draw(uniforms((20, 4, 1))), 4, axis=-1)
    report = so.check_independence(cube_of(codes), draws=199)
    assert [found.name for found in report.suspicious] == ["no call noise"]
    assert "greedy" in str(report)
    # The trap of the acquisition notes: complete pairs book all call noise as prompt effect, and so do across repeats.
    effects = {name: (one, other) for _, name, one, other in report.effects}
    assert effects["call"] == (0, 0)
    assert effects["prompt"][0] > 0.3


def test_a_response_id_under_two_calls() -> None:
    codes = draw(uniforms((20, 4, 4)))
    keys = np.arange(1, codes.size + 1).reshape(codes.shape)
    assert not so.check_independence(cube_of(codes, response_key=keys), draws=199).suspicious
    keys[0, 0, 1] = keys[0, 0, 0]
    keys[1, 1, :2] = 0  # the server gave none: that is no repeat
    report = so.check_independence(cube_of(codes, response_key=keys), draws=199)
    assert [(found.name, found.note) for found in report.suspicious] == [("repeated ids", "2 calls")]


def test_drift_is_read_from_ranks_and_times() -> None:
    place = np.random.default_rng(4).permutation(50 * 6 * 4).reshape(50, 6, 4)
    share = (place / place.max())[..., None]
    codes = draw(uniforms((50, 6, 4)), (1 - share) * LAW + share * GROWING)
    cube = cube_of(codes, send_rank=place, sent=1.7e9 + 3.0 * place)
    names = {found.name for found in so.check_independence(cube, draws=399, facets=["prompt"]).suspicious}
    assert names == {"drift by rank", "drift by time"}


def test_holm() -> None:
    from statsmodels.stats.multitest import multipletests

    generator = np.random.default_rng(1)
    for size in (1, 2, 7):
        pvalues = generator.random(size) ** 2
        np.testing.assert_allclose(core.holm(pvalues), multipletests(pvalues, method="holm")[1], atol=1e-14)


def test_numbered_repeats_have_no_index_to_compare_by() -> None:
    rows = [{"q": str(i), "p": p, "v": v} for i in range(4) for p in "ab" for v in "XYX"]
    cube = so.make_cube(rows, item="q", facets=["p"], number_repeats=True, verdict="v", classes=["X", "Y"])
    for call in (
        lambda: so.check_independence(cube),
        lambda: so.decompose(cube, pairs="across-repeats"),
        lambda: so.decompose(cube, pairs="panel"),
        lambda: so.permutation_test(cube, "p", hypothesis="labels"),
        lambda: so.compare_reference(cube, cube),
    ):
        with pytest.raises(InputError, match=r"numbered by row.*repeat="):
            call()
    assert so.decompose(cube)["p"].estimate < 0


def test_too_few_shuffles_for_so_many_tests_are_refused() -> None:
    with pytest.raises(InputError, match=r"99 shuffles cannot reject at 0.05 with 7 tests.*at least 139"):
        so.check_independence(cube_of(draw(uniforms((3, 2, 4)))), draws=99)


def test_soft_verdicts_are_refused() -> None:
    cube = cube_of(draw(uniforms((3, 2, 4))))
    soft = so.one_hot(cube)
    with pytest.raises(InputError, match="soft"):
        so.check_independence(cube.assign(soft=soft.drop_vars("gold", errors="ignore")))


# -- a real model -----------------------------------------------------------------------------------------------------

COLUMNS = ["--item", "item", "--facet", "prompt", "--facet", "order", "--repeat", "repeat", "--verdict", "verdict",
           "--classes", "1,2,TIE", "--invalid", "⊥"]  # fmt: skip


@pytest.mark.data
def test_shared_seeds_of_a_real_model_are_found_and_named(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def check(name: str) -> int:
        with pytest.raises(SystemExit) as stop:
            main(["check", str(data_dir / "small_lm" / f"calls_{name}.csv.gz"), *COLUMNS, "--draws", "199"])
        return int(str(stop.value.code))

    assert check("shared_seeds") == 1
    said = capsys.readouterr().out
    assert "suspicious" in said
    assert "seeds shared between cells" in " ".join(said.split())
    assert "complete pairs" in said
    assert "across repeats" in said
    assert check("unique_seeds") == 0
    assert "no proof" in capsys.readouterr().out
