"""Draw the README's figure: the prompt component of judges with known truth, by plug-in and debiased, against R.

Lines are exact (``decompose_law``, ``plugin_bias``). Dots and bars are simulated audits, computed here from the
definition, independently of the package: mean and central 90 % of 400 audits of 50 items, 6 prompts and 2 orders.

    python docs/figures/inflation.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr

import secondorder as so

mpl.use("svg")
import matplotlib.pyplot as plt

OUT = Path(__file__).parents[1] / "_static" / "inflation.svg"
PROMPTS, ORDERS, ITEMS, AUDITS = 6, 2, 50, 400
REPEATS = (2, 3, 4, 6, 8, 12, 16)
DEBIASED, PLUGIN, TRUTH = "#0072B2", "#D55E00", "#444444"


def law(prompt_effect: float) -> np.ndarray:
    """Laws (prompt, order, class) of one judge: two classes trade mass over the prompts, orders alike."""
    slope = np.linspace(-1, 1, PROMPTS)
    step = np.sqrt(prompt_effect / 2 / np.mean(slope**2))
    rows = np.array([0.4, 0.3, 0.2, 0.1]) + step * slope[:, None] * np.array([1, -1, 0, 0])
    return np.repeat(rows[:, None], ORDERS, axis=1)


def measure(counts: np.ndarray, repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """Plug-in and debiased prompt component of counts (..., prompt, order, class), equal weights."""
    p = counts / repeats
    by_prompt, overall = p.mean(-2), p.mean((-3, -2))
    plugin = (by_prompt**2).sum(-1).mean(-1) - (overall**2).sum(-1)
    # Every same-cell pair of a call with itself agrees: replace it by a pair of distinct calls.
    within = ((1 - (p**2).sum(-1)) / (repeats - 1)).mean((-2, -1))
    return plugin, plugin - within * (PROMPTS - 1) / (PROMPTS * ORDERS)


def main() -> None:
    """Draw both panels."""
    rng = np.random.default_rng(20261130)
    plt.rcParams.update({"font.size": 9.5, "svg.hashsalt": "secondorder", "axes.spines.top": False})
    plt.rcParams.update({"axes.spines.right": False, "font.family": "DejaVu Sans"})
    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.3), sharey=True, layout="constrained")
    for axis, effect, title in zip(
        axes, (0.0, 0.03), ("A judge that ignores the prompt's wording", "A judge that heeds it"), strict=True
    ):
        cells = law(effect)
        labelled = xr.DataArray(cells, dims=("prompt", "order", "class"), coords={"class": ["1", "2", "tie", "⊥"]})
        truth = float(so.decompose_law(labelled).value.sel(component="prompt"))
        exact = [truth + float(so.plugin_bias(labelled, repeats=r).bias.sel(component="prompt")) for r in REPEATS]
        draws = [rng.multinomial(r, cells, size=(AUDITS, ITEMS, PROMPTS, ORDERS)) for r in REPEATS]
        audits = np.array([[m.mean(1) for m in measure(c, r)] for c, r in zip(draws, REPEATS, strict=True)])
        axis.axhline(truth, color=TRUTH, lw=1.2, ls=(0, (4, 3)))
        for column, (colour, marker, line) in enumerate(
            ((PLUGIN, "s", exact), (DEBIASED, "o", [truth] * len(REPEATS)))
        ):
            values = audits[:, column]
            low, high = np.quantile(values, (0.05, 0.95), axis=1)
            mean = values.mean(1)
            axis.plot(REPEATS, line, color=colour, lw=1.6)
            axis.errorbar(
                REPEATS, mean, (mean - low, high - mean), fmt=marker, ms=4.5, color=colour, elinewidth=1, capsize=2.5
            )
        axis.set_title(title, fontsize=10, loc="left")
        axis.set_xscale("log", base=2)
        axis.set_xticks(REPEATS, [str(r) for r in REPEATS])
        axis.minorticks_off()
        axis.set_xlabel("calls per cell, R")
        axis.annotate(
            f"truth {abs(truth):.2g}" if truth > 1e-9 else "truth 0",
            (16, truth),
            xytext=(0, -13),
            textcoords="offset points",
            ha="right",
            color=TRUTH,
        )
        at_four = exact[REPEATS.index(4)]
        axis.annotate(f"{at_four:.3f} at R = 4", (4, at_four), xytext=(9, 4), textcoords="offset points", color=PLUGIN)
    axes[0].set_ylabel("prompt component")
    axes[0].set_ylim(-0.022, 0.19)
    axes[0].annotate("plug-in", (2.15, 0.155), color=PLUGIN, weight="bold")
    axes[0].annotate("debiased", (2.25, 0.017), color=DEBIASED, weight="bold")
    figure.savefig(OUT, metadata={"Date": None})


if __name__ == "__main__":
    main()
