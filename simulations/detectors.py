"""What finds which dependence: size and power of every test of independence, alone and in its family.

50 items, 6 prompts, 2 orders, a law without effects. Calls are independent, or: all (or 30 %) of the calls at one
repeat of an item share their random number (``seed``); those of all items do (``seed-all``); half of the repeats of a
cell are answered with its first call (``cache``); every second answer is the one before (``duplicate``); the law moves
from the first repeat to the last (``drift``).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from secondorder import core
from secondorder.simulate import Dependence, Draw, Estimate, Mechanism, Method, Study, StudyResult, laws

FACETS = {"prompt": 6, "order": 2}
BASE = [0.5, 0.3, 0.2]
NAMES = (
    "repeat alignment",
    "repeat alignment, items",
    "first repeat",
    "copies of the first",
    "halves, contiguous",
    "halves, interleaved",
    "neighbours",
    "drift by rank",
    "change by rank",
)
TRAPS = {
    "seed": Dependence("seed"),
    "seed, 30 %": Dependence("seed", 0.3),
    "seed-all": Dependence("seed-all"),
    "cache": Dependence("cache", 0.5),
    "duplicate": Dependence("duplicate"),
}
SHUFFLES = 199


def mechanism(trap: str, R: int) -> Mechanism:
    """A judge without effects; a detector's truth is 0 where calls are independent, else 1."""
    truth = dict.fromkeys(NAMES, float(trap != "none"))
    law = laws.exchangeable(BASE, FACETS).isel(item=[0] * 50).assign_coords(item=[str(i) for i in range(50)])
    end = law.copy(data=np.broadcast_to([0.2, 0.3, 0.5], law.shape)) if trap == "drift" else None
    return Mechanism(law, repeats=R, dependence=TRAPS.get(trap), drift_to=end, truth=truth)


@lru_cache(maxsize=1)  # both methods of a block share its tests
def _tested(draw: Draw) -> tuple[Any, Any]:
    codes = np.asarray(draw.codes)
    codes = codes.reshape(*codes.shape[:2], -1, codes.shape[-1])
    place = np.broadcast_to(np.linspace(0, 1, codes.shape[-1]), codes.shape[1:])
    statistic, pvalue = (np.full((len(codes), len(NAMES)), np.nan) for _ in range(2))
    for b, verdicts in enumerate(codes):
        seed = int(np.bitwise_xor.reduce(verdicts.astype(np.int64).ravel() * np.arange(1, verdicts.size + 1)))
        for test in core.independence_tests(verdicts, draw.kernel, seed=seed, n_draws=SHUFFLES, when={"rank": place}):
            statistic[b, NAMES.index(test.name)] = test.statistic
            pvalue[b, NAMES.index(test.name)] = test.pvalue
    return statistic, pvalue


def _rejected(pvalue: Any) -> Any:
    return np.where(np.isnan(pvalue), np.nan, pvalue <= 0.05)


def alone(draw: Draw) -> Estimate:
    """Each test at 5 %."""
    statistic, pvalue = _tested(draw)
    return Estimate(statistic, reject=_rejected(pvalue))


def family(draw: Draw) -> Estimate:
    """All of them together at 5 % (Holm)."""
    statistic, pvalue = _tested(draw)
    adjusted = np.stack([core.holm(row) for row in pvalue])
    return Estimate(statistic, reject=_rejected(adjusted))


def figure(result: StudyResult) -> Any:
    """Share of runs in which each test alone rejects, by trap and calls per cell."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    data = result.data.sel(estimator="alone")
    shares = data["size"].fillna(data["power"]).transpose("R", "estimand", "trap")
    traps = [str(trap) for trap in data["trap"].values]
    drawn = Figure(figsize=(10.4, 4.2), layout="constrained")
    FigureCanvasAgg(drawn)
    for ax, R in zip(drawn.subplots(1, data.sizes["R"], sharey=True, squeeze=False)[0], data["R"].values, strict=True):
        percent = 100 * shares.sel(R=R, trap=traps).values
        ax.imshow(percent, vmin=0, vmax=100, cmap="Blues", aspect="auto")
        for row, column in np.ndindex(percent.shape):
            value = percent[row, column]
            text, colour = (
                ("–", "#767676") if np.isnan(value) else (f"{value:.0f}", "white" if value > 55 else "#222222")
            )
            ax.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)
        ax.set_xticks(range(len(traps)), traps, rotation=50, ha="right", rotation_mode="anchor", fontsize=9)
        ax.set_yticks(range(len(NAMES)), NAMES, fontsize=9)
        ax.set_title(f"{R} calls per cell", fontsize=10)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
    drawn.suptitle("% of runs in which a test at 5 % rejects; –: needs more repeats", fontsize=10)
    return drawn


STUDY = Study(
    name="detectors",
    aims="Which test of independence finds which trap, and how often does it reject without one?",
    factors={"trap": ("none", *TRAPS, "drift"), "R": (2, 4, 8)},
    mechanism=mechanism,
    methods=(Method("alone", alone, calls=True), Method("family", family, calls=True)),
    replicates=1_000,
    seed=20261204,
    estimands=NAMES,
    measures=("size", "power"),
    figure=figure,
)
