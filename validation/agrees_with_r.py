"""Components as mean squares, variance components and distances of R's programs; errors and coefficients beside them.

The answers are recorded in ``recorded_r.json`` together with the data, the calls and the versions, by ``_record_r.R``.

Conventions, where they differ from those of this package:

- ``aov`` answers sums of squares. Over the number of calls they are the plug-in of a census; less the residual mean
  square for each degree of freedom, the debiased one.
- ``lmer`` takes every facet as random: its variance components are those of ``kind="random"`` for prompt and order.
  Under the restricted model (prompts random, orders a census) the prompt's mean square is compared with the residual,
  not with the interaction: what lme4 calls prompt variance lacks a share ``1/L`` of the interaction that it reports.
- ``adonis2`` and ``amova`` take distances and square them: half of a squared distance is a disagreement, so the kernel
  D enters as ``sqrt(2 D)``. The levels of ``amova`` are random, and nested in items.
- ``boot.ci`` interpolates between draws on the normal scale, this package linearly: compared are the levels of the
  adjusted quantiles, which ``boot.ci`` rounds to a hundredth of a draw.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import secondorder as so
from secondorder.simulate import Claim, Finding
from secondorder.studies import coefficient

DIGITS = 1e-9
RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("recorded_r.json").read_text(encoding="utf-8"))


def kernel_of(name: str, size: int) -> Any:
    """The kernels that the script of R builds by itself."""
    if name == "interval":
        return so.core.interval_kernel([float(score) for score in range(1, size + 1)])
    return so.core.nominal_kernel(size) if name == "nominal" else so.core.ordinal_kernel(size)


def codes_of(data: Mapping[str, Any]) -> Any:
    """Class codes from 0, (cells..., calls)."""
    return np.reshape(data["scores"], data["shape"]) - 1


def components_of(codes: Any, kernel: Any, names: tuple[str, ...], random: tuple[str, ...] = ()) -> tuple[Any, Any]:
    """Plug-in and debiased components of one item, by name."""
    facets = [so.Facet(name, kind="random" if name in random else "fixed") for name in names]
    levels = [[str(level) for level in range(size)] for size in codes.shape[:-1]]
    design = so.Design.from_facets(facets, levels)
    components = so.standard_components(names)
    cells = so.core.cells_from_counts((codes[..., None] == np.arange(len(kernel))).sum(-2))
    both = (so.core.plugin, so.core.complete_pairs)
    found = [np.asarray(estimate(cells, design, components, kernel)) for estimate in both]
    plugin, debiased = ({c.name: float(x) for c, x in zip(components, values, strict=True)} for values in found)
    return plugin, debiased


def variance(answers: Mapping[str, Any], codes: Any) -> Iterator[Finding]:
    """Interval kernel: sums of squares, expected mean squares, REML."""
    K, L, R = codes.shape
    ss, ms = (answers["aov"][part] for part in ("ss", "ms"))
    names = {"call": "Residuals", "prompt": "prompt", "order": "order", "prompt:order": "prompt:order"}
    kernel, call = kernel_of("interval", 5), ms["Residuals"]
    plugin, debiased = components_of(codes, kernel, ("prompt", "order"))
    for name, row in names.items():
        yield Finding.close(f"aov, census plug-in: {name}", plugin[name], ss[row] / codes.size, DIGITS)
        df = ss[row] / ms[row]
        expected = call if name == "call" else df * (ms[row] - call) / codes.size
        yield Finding.close(f"aov, census: {name}", debiased[name], expected, DIGITS)
    yield Finding.close("aov, census plug-in: total", plugin["total"], sum(ss.values()) / codes.size, DIGITS)

    _, found = components_of(codes, kernel, ("prompt", "order"), random=("prompt",))
    cross = ms["prompt:order"]
    restricted = {
        "call": call,
        "prompt": (ms["prompt"] - call) / (L * R),
        "order": (L - 1) / (L * K * R) * (ms["order"] - cross),
        "prompt:order": (L - 1) / (L * R) * (cross - call),
    }
    _, random = components_of(codes, kernel, ("prompt", "order"), random=("prompt", "order"))
    unrestricted = {
        "call": call,
        "prompt": (ms["prompt"] - cross) / (L * R),
        "order": (ms["order"] - cross) / (K * R),
        "prompt:order": (cross - call) / R,
    }
    for name in names:
        yield Finding.close(f"aov, prompts random: {name}", found[name], restricted[name], DIGITS)
        yield Finding.close(f"aov, prompts and orders random: {name}", random[name], unrestricted[name], DIGITS)
        # REML by iteration: the optimiser stops where its criterion is flat.
        row = "Residual" if name == "call" else name
        yield Finding.close(f"lme4, prompts and orders random: {name}", random[name], answers["lmer"][row], 1e-5)


def distances(answers: Mapping[str, Any], codes: Any) -> Iterator[Finding]:
    """Any kernel: the analysis of variance of distances."""
    for name in ("nominal", "ordinal", "interval"):
        plugin, debiased = components_of(codes, kernel_of(name, 5), ("prompt", "order"))
        table = answers[f"adonis2, {name}"]
        call = table["Residual"] / (codes.size - np.prod(codes.shape[:-1]))
        levels = dict(zip(("prompt", "order"), codes.shape, strict=False))
        for row, squares in table.items():
            ours = {"Residual": "call", "Total": "total"}.get(row, row)
            yield Finding.close(f"adonis2, {name}, plug-in: {ours}", plugin[ours], squares / codes.size, DIGITS)
            if row not in ("Residual", "Total"):
                df = np.prod([levels[facet] - 1 for facet in row.split(":")])
                yield Finding.close(
                    f"adonis2, {name}: {ours}", debiased[ours], (squares - df * call) / codes.size, DIGITS
                )
        yield Finding.close(f"adonis2, {name}: call", debiased["call"], call, DIGITS)


def decomposition_of(codes: Any, **options: Any) -> so.Decomposition:
    """Items x prompts x calls through the table reader."""
    rows = [
        {"item": f"i{i}", "prompt": f"p{p}", "run": str(r), "verdict": str(code + 1)}
        for (i, p, r), code in np.ndenumerate(codes)
    ]
    classes = [str(score) for score in range(1, 5)]
    cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", classes=classes)
    return so.decompose(cube, **options)


def items(answers: Mapping[str, Any], codes: Any) -> Iterator[Finding]:
    """Many items: nested and crossed tables, and errors by leaving one out."""
    N, P, S = codes.shape
    prompts = [so.Facet("prompt", kind="random")]
    for name in ("nominal", "ordinal"):
        found = decomposition_of(codes, kernel=name, facets=prompts)
        table = answers[f"amova, {name}"]
        sigma = {"prompt": "Variations  Between samples Within item", "call": "Variations  Within samples"}
        for component, row in sigma.items():
            yield Finding.close(f"amova, {name}: {component}", found[component].estimate, table[row], DIGITS)

    scores = decomposition_of(codes, kernel="interval", facets=prompts, covers="prompts")
    for component in ("call", "prompt"):
        for what, value in (("estimate", scores[component].estimate), ("se", scores.se(component))):
            expected = answers["jackknife over prompts"][what][component]
            yield Finding.close(f"jackknife over prompts: {what} of {component}", value, expected, DIGITS)

    census = decomposition_of(codes, kernel="interval")
    effects = so.benchmark_effects(census)
    ms = answers["aov, items"]["ms"]
    by_item = (P - 1) / (P * S) * (ms["item:prompt"] - ms["Residuals"])
    expected = answers["jackknife over items"]
    yield Finding.close("benchmark-wide effect", float(effects.estimate[0]), expected["estimate"], DIGITS)
    yield Finding.close("its jackknife over items", float(effects.se[0]), expected["se"], DIGITS)
    yield Finding.close("effect item by item", float(effects.by_item[0]), by_item, DIGITS)

    _, found = components_of(codes.reshape(N, P * S), kernel_of("interval", 4), ("items",), random=("items",))
    share = found["items"] / found["total"]
    yield Finding.close("psych, ICC(1,1): items' share of the total", share, answers["ICC"]["ICC1"], DIGITS)


def errors(answers: Mapping[str, Any], data: Mapping[str, Any]) -> Iterator[Finding]:
    """The standard error of a mean of items, its bands, and adjusted p values."""
    values = np.array(data["values"])[:, None]
    plain = so.core.item_errors(values)
    band = so.core.t_interval(plain)
    for what, value in (("se", plain.se), ("lower", band.lower), ("upper", band.upper)):
        yield Finding.close(f"t.test: {what}", float(value[0]), answers["t.test"][what], DIGITS)
    # The degrees of freedom differ by convention: Welch and Satterthwaite's here, as one stratum holds four items.
    stratified = so.core.item_errors(values, np.array(data["strata"]))
    yield Finding.close("survey: se over strata", float(stratified.se[0]), answers["survey"]["se"], DIGITS)

    draws = np.array(data["draws"])
    bca = so.core.bca_interval(plain, draws[:, None], so.core.item_influence(values))
    for end in ("lower", "upper"):
        # Linear interpolation can be undone: from the end of the band to the level of its quantile.
        level = float(np.interp(getattr(bca, end)[0], np.sort(draws), np.linspace(0, 1, len(draws))))
        yield Finding.close(f"boot: level of the {end} end of BCa", level, answers["boot"][end], 1.3e-5)

    for method, adjust in (("BH", so.core.benjamini_hochberg), ("holm", so.core.holm)):
        adjusted = np.ravel(adjust(np.array(data["pvalues"])))
        for rank, (one, expected) in enumerate(zip(adjusted, answers["p.adjust"][method], strict=True)):
            yield Finding.close(f"p.adjust, {method}: p value {rank}", float(one), expected, DIGITS)


def coefficients(answers: Mapping[str, Any], raters: Any) -> Iterator[Finding]:
    """Cohen's kappa of two raters and Light's of three, with weights."""
    for program, count in (("cohen.kappa", 2), ("Kappa", 2), ("lkappa", 3), ("lkappa, weighted", 3)):
        for weights, expected in answers[program].items():
            found = coefficient("cohen", ratings=raters[:, :count], n_classes=4, weights=weights)
            yield Finding.close(f"{program}: {weights}", float(found.estimate), expected, DIGITS)


def check(quick: bool) -> Iterator[Finding]:
    """Every recorded answer."""
    answers, data = RECORDED["answers"], RECORDED["data"]
    yield from variance(answers, codes_of(data["cells"]))
    yield from distances(answers, codes_of(data["cells"]))
    yield from items(answers, codes_of(data["items"]))
    yield from errors(answers, data)
    yield from coefficients(answers, np.array(data["raters"]) - 1)


CLAIM = Claim(
    name="agrees_with_r",
    statement="Components are R's mean squares (aov, lme4), under any kernel those of distances (vegan, ade4); "
    "jackknife errors, bands, adjusted p values and kappas agree with R.",
    check=check,
    detectable="1e-9; 1e-5 for lme4, whose optimiser iterates, and for boot, which rounds",
)
