"""How sure the numbers are, in the estimates tree and in the report: the numbers are those of the public functions."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._labels._cube import new_cube
from secondorder._statistics import _dependence, _inference_tree
from secondorder._statistics._tree import estimate_all, open_estimates, result_tree, save_estimates
from secondorder.report import report_html

DIMS = ("judge", "item", "prompt", "order", "repeat")


def made(codes: np.ndarray, **more: Any) -> xr.Dataset:
    """A cube of two facets from class codes of shape (judge, item, prompt, order, repeat)."""
    labels = {dim: [f"{dim[0]}{k}" for k in range(size)] for dim, size in zip(DIMS, codes.shape, strict=True)}
    facets = more.pop("facets", [so.Facet("prompt"), so.Facet("order")])
    return new_cube(codes, labels=labels, classes=["A", "B", "C"], facets=facets, **more)


def some(seed: int = 0, judges: int = 2, repeats: int = 4) -> np.ndarray:
    """Twelve items whose order matters, the prompt does not."""
    generator = np.random.default_rng(seed)
    lean = generator.random((judges, 12, 1, 2, 1))
    return (generator.random((judges, 12, 3, 2, repeats)) < lean).astype(np.int8)


def shown(tree: xr.DataTree) -> str:
    """Words of the report, without tags."""
    body = report_html(tree).partition("</style>")[2]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", body)).split())


@pytest.fixture(scope="module")
def whole() -> tuple[xr.Dataset, xr.DataTree]:
    cube = made(some())
    return cube, estimate_all(cube, {})[1]


def test_errors_are_those_of_the_decomposition(whole: tuple[xr.Dataset, xr.DataTree]) -> None:
    cube, tree = whole
    result = so.decompose(cube)
    errors = tree["/errors"].to_dataset()
    assert errors.covers.values.tolist() == ["items", "calls"]
    for k, group in enumerate(result.groups):
        one = result.select(**group.by)
        for covers in ("items", "calls"):
            for name in group.names:
                at = errors.isel(group=k).sel(covers=covers, component=name)
                assert float(at.se) == pytest.approx(one.se(name, covers=covers), nan_ok=True)
                lower, upper = one.interval(name, covers=covers)
                assert (float(at.lower), float(at.upper)) == pytest.approx((lower, upper), nan_ok=True)
    text = shown(tree)
    assert "How sure" in text
    assert f"±{one.se('call', covers='calls'):.4f}" in text


def test_items_keep_what_errors_are_made_of(whole: tuple[xr.Dataset, xr.DataTree]) -> None:
    items, errors = whole[1]["/items"].to_dataset(), whole[1]["/errors"].to_dataset()
    size = items.sizes["item"]
    over_items = np.sqrt((items.influence**2).sum("item") / (size * (size - 1)))
    np.testing.assert_allclose(over_items, errors.se.sel(covers="items"), rtol=1e-12)
    over_calls = np.sqrt(items.call_variance.sum("item")) / size
    np.testing.assert_allclose(over_calls, errors.se.sel(covers="calls"), rtol=1e-12)


def test_components_stand_beside_an_error_for_each_randomness(whole: tuple[xr.Dataset, xr.DataTree]) -> None:
    components, errors = whole[1]["/components"].to_dataset(), whole[1]["/errors"].to_dataset()
    for covers in ("items", "calls"):
        np.testing.assert_array_equal(components[f"se_{covers}"], errors.se.sel(covers=covers))
    assert not np.array_equal(components.se_items, components.se_calls)


def test_items_keep_their_call_variance_at_any_number_of_repeats() -> None:
    cube = made(some(judges=1, repeats=6))
    items = result_tree(so.decompose(cube))["/items"].to_dataset()
    alpha, beta, gamma = (items.call_coefficients.sel(term=term, drop=True) for term in ("alpha", "beta", "gamma"))
    np.testing.assert_allclose(alpha / 6 + beta / 30 + gamma / 36, items.call_variance, atol=1e-14)
    # Planning reads the very same coefficients.
    plan = so.budget(cube)
    for at, name in enumerate(items.component.values):
        means = [float(part.sel(component=name).mean()) for part in (alpha, beta, gamma)]
        np.testing.assert_allclose(means, [plan.alpha[at], plan.beta[at], plan.gamma[at]], atol=1e-14)
    few = result_tree(so.decompose(cube.isel(repeat=slice(3))))["/items"].to_dataset()
    assert few.call_coefficients.isnull().all()


def test_with_few_calls_the_error_of_calls_is_labelled_as_a_bound() -> None:
    tree = result_tree(so.decompose(made(some(judges=1, repeats=2))))
    errors = tree["/errors"].to_dataset().isel(group=0)
    np.testing.assert_array_equal(errors.se.sel(covers="calls"), errors.se.sel(covers="items"))
    assert "an upper bound in expectation" in shown(tree)


def test_what_is_said_of_call_noise_is_not_said_of_soft_verdicts() -> None:
    codes = some(judges=1)
    cube = made(codes)
    rng = np.random.default_rng(4)
    laws = rng.dirichlet([2, 2, 1], size=codes.shape[:-1])[..., None, :]
    same = np.broadcast_to(laws, (*codes.shape, 3)).copy()
    soft = cube.assign(soft=((*cube["verdict"].dims, "class"), same))
    tree = result_tree(so.decompose(soft))
    assert tree["/components"].to_dataset().soft.all()
    reasons = tree["/errors"].to_dataset().reason.sel(covers="calls").values
    assert all("give the same soft verdict" in reason for reason in reasons.ravel())
    text = shown(tree)
    assert "none where all calls of a cell list the same" in text
    for sentence in ("exact multiple", "count call noise", "Plug-in measures would report"):
        assert sentence not in text
        assert sentence in shown(result_tree(so.decompose(cube)))
    # Soft in form alone: one-hot vectors are sampled verdicts.
    hard = cube.assign(soft=((*cube["verdict"].dims, "class"), np.eye(3)[codes]))
    assert not result_tree(so.decompose(hard))["/components"].to_dataset().soft.any()


def test_levels_of_a_random_facet_have_rows_of_their_own() -> None:
    cube = made(some(judges=1), facets=[so.Facet("prompt", "random"), so.Facet("order")])
    result = so.decompose(cube)
    tree = result_tree(result)
    errors = tree["/errors"].to_dataset().isel(group=0)
    assert errors.covers.values.tolist() == ["items", "calls", "prompts", "items+prompts"]
    assert float(errors.se.sel(covers="prompts", component="call")) == result.se("call", covers="prompts")
    assert "other items and other levels" in shown(tree)


def test_tests_are_those_of_the_public_function(whole: tuple[xr.Dataset, xr.DataTree]) -> None:
    cube, tree = whole
    tests = tree["/tests"].to_dataset()
    assert tests.attrs["hypothesis"] == "calls"
    for facet in ("prompt", "order"):
        test = so.permutation_test(cube, facet)
        found = tests.isel(test=(tests.facet == facet).values)
        np.testing.assert_array_equal(found.pvalue, test.pvalues)
        np.testing.assert_array_equal(found.n_found, [(part <= 0.05).sum(0) for part in test.item_adjusted])
    text = shown(tree)
    assert "Does it matter at all?" in text
    assert "Calls are shuffled between the levels" in text


def test_with_pairs_across_repeats_labels_are_shuffled() -> None:
    cube = made(some(judges=1))
    tests = _inference_tree.tests_part(so.decompose(cube, pairs="across-repeats"))
    assert tests.attrs["hypothesis"] == "labels"
    test = so.permutation_test(cube, "order", hypothesis="labels", together=["prompt"])
    np.testing.assert_array_equal(tests.pvalue[:, 2:], test.pvalues)
    np.testing.assert_allclose(
        tests.estimate.sel(test=2), so.decompose(cube, pairs="across-repeats")["order"].estimate, atol=1e-14
    )


def test_independent_calls_and_those_of_shared_seeds(whole: tuple[xr.Dataset, xr.DataTree]) -> None:
    """Whether any of 14 detectors in two judges rejects independent calls is a matter of the seed: it is not judged."""
    cube, tree = whole
    report = so.check_independence(cube)
    detectors = tree["/independence"].to_dataset()
    assert detectors.pvalue.values.tolist() == [entry.pvalue for entry in report.detectors]
    assert detectors.suspicious.sum() == len(report.suspicious)
    generator = np.random.default_rng(4)
    # One random number for all cells of an item at a repeat.
    shared = (generator.random((1, 12, 1, 1, 6)) < generator.random((1, 12, 3, 2, 1))).astype(np.int8)
    tree = estimate_all(made(shared), {})[1]
    text = shown(tree)
    assert "j0: calls at the same repeat index agree across cells: seeds shared between cells" in text
    assert re.search(r"The calls of j0 do not look independent \(repeat alignment, p 0\.\d+\)", text)
    effects = tree["/independence/effects"].to_dataset().isel(group=0)
    assert float(effects.complete.sel(component="prompt")) < float(effects.across_repeats.sel(component="prompt"))


@pytest.mark.parametrize("missing", [False, True])
def test_both_estimates_are_those_of_two_decompositions(missing: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = some(judges=1)
    if missing:
        codes[0, 3, 1, 0, 2] = -1
    cube = made(codes)
    results = {
        "complete": so.decompose(cube, pairs="complete"),
        "across_repeats": so.decompose(cube, pairs="across-repeats"),
    }
    for limit in (_dependence.FEW_CALLS, 0):
        monkeypatch.setattr(_dependence, "FEW_CALLS", limit)
        for declared in results.values():
            effects = _inference_tree.independence_parts(cube, declared)["independence/effects"]
            for name, result in results.items():
                values = [estimate.estimate for estimate in result.groups[0].estimates]
                np.testing.assert_allclose(effects[name][0], values, atol=1e-14)


def test_what_cannot_be_tested_says_so() -> None:
    once = estimate_all(made(some(judges=1, repeats=1)), {})[1]
    for part in ("tests", "independence"):
        assert not once[f"/{part}"].to_dataset().variables
        assert "one call per cell" in once[f"/{part}"].attrs["reason"]
    text = shown(once)
    assert text.count("Not tested: ") == 2
    assert "Does it matter at all?" in text


def test_a_judge_that_cannot_be_tested_is_named() -> None:
    codes = some(judges=2, repeats=2)
    codes[1, ..., 1] = -1
    tree = estimate_all(made(codes), {"incomplete": "drop-item"})[1]
    reason = tree["/tests"].attrs["reason"]
    assert reason.startswith("Not tested: ")
    assert shown(tree).count(reason.split(":")[1].strip()) >= 2


def test_what_was_not_tested_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    numbered = made(some(judges=1)).assign_attrs(repeats_numbered="true")
    result = so.decompose(numbered)
    assert "numbered by row" in _inference_tree.independence_parts(numbered, result)["independence"].attrs["reason"]
    monkeypatch.setattr(_inference_tree, "MOST_SHUFFLED", 1000)
    tree = result_tree(result)
    untested = _inference_tree.independence_parts(made(some(judges=1)), result)
    tree["/independence"] = xr.DataTree(untested["independence"])
    text = shown(tree)
    assert "secondorder test has no such limit" in text
    assert "secondorder check has no such limit" in text


def test_a_stop_rule_has_its_section(whole: tuple[xr.Dataset, xr.DataTree], tmp_path: Path) -> None:
    tree = whole[1].copy()
    columns = {
        "component": ["prompt", "prompt"], "tau": [0.02, 0.02], "alpha": [0.05, 0.05], "target": ["full-audit"] * 2,
        "verdict": ["below", "open"], "n_items": [140, 419], "lower": [-0.1, 0.0], "upper": [0.0199, np.nan],
        "stopped_at": [137, -1], "least_items": [107, 107], "planned": [5028, 5028], "saved": [3000, 0],
    }  # fmt: skip
    groups = tree["/components"].group.values
    tree["/stop"] = xr.DataTree(
        xr.Dataset({name: ("group", values) for name, values in columns.items()}, coords={"group": groups})
    )
    save_estimates(tree, tmp_path / "estimates.nc")
    kept = open_estimates(tmp_path / "estimates.nc")
    # Nothing is read from the file any more once it is open.
    (tmp_path / "estimates.nc").write_bytes(b"")
    text = shown(kept)
    assert "prompt below 0.02 137 140 [-0.1000, 0.0199] 3000 5028" in text
    assert "prompt open at 0.02 – 419 [0.0000, –] 0 5028" in text
    assert "false with probability 0.05 at most" in text


def test_a_decomposition_alone_says_how_sure_it_is(tmp_path: Path) -> None:
    so.write_report(so.decompose(made(some())), tmp_path / "report.html")
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    for title in ("How sure", "Does it matter at all?"):
        assert f"<h2>{title}</h2>" in html
    assert "<h2>Independence</h2>" not in html
    assert not re.search(r"\bnan\b", html)
