"""Figures draw what the result says, on any axes, without pyplot."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder.errors import InputError, UndefinedError


def decomposition(letters: str = "AABA") -> so.Decomposition:
    rows = [
        {"judge": judge, "item": item, "prompt": prompt, "run": str(r), "verdict": verdict}
        for judge in ("x", "y")
        for item in ("1", "2", "3")
        for prompt in ("a", "b")
        for r, verdict in enumerate(letters if (judge, prompt) == ("x", "a") else letters[::-1].replace("B", item))
    ]
    cube = so.make_cube(rows, item="item", facets=["prompt"], repeat="run", verdict="verdict", by=["judge"])
    return so.decompose(cube)


def test_bars_are_the_estimates() -> None:
    result = decomposition()
    ax = so.plot.components(result)
    widths = [bar.get_width() for bar in ax.patches]
    expected = []
    for group in result.groups:
        for values in (group.values.mean(0), group.plugin_values.mean(0)):
            expected.extend(values[:2])
    np.testing.assert_allclose(widths, expected, atol=1e-15)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["x", "y"]


def test_bands_and_items_take_a_dataset_too() -> None:
    result = decomposition()
    assert len(so.plot.bands(result.to_dataset(), component="call").get_yticklabels()) == 2
    one = result.select(judge="y")
    points = sum(len(found.get_offsets()) for found in so.plot.items(one).collections)
    assert points == 2 * 3
    with pytest.raises(InputError, match="2 groups"):
        so.plot.items(result)


def test_nothing_is_stacked_where_a_component_is_undefined() -> None:
    with pytest.raises(UndefinedError):
        so.plot.components(decomposition("A"))


def test_rounding_does_not_fill_a_panel() -> None:
    values = np.array([[[1e-17], [-2e-16]]])
    data = xr.Dataset(
        dict.fromkeys(("estimate", "plugin"), (("group", "depth", "component"), values)),
        coords={"group": ["x"], "depth": [2, 4], "component": ["prompt"]},
    )
    low, high = so.plot.prefixes(data, "prompt").get_ylim()
    assert low < -1e-3 < 1e-3 < high
    low, high = so.plot.prefixes(data * 1e12, "prompt").get_ylim()
    assert -1e-3 < low < high < 1e-3


def test_svg_is_one_element_with_text_and_repeats_its_bytes() -> None:
    first, again = (so.plot.to_svg(so.plot.bands(decomposition())) for _ in range(2))
    assert first == again
    assert first.startswith("<svg")
    assert first.endswith("</svg>")
    assert "prompt" in first


def test_no_window_system_is_touched() -> None:
    code = "import sys, secondorder as so; so.plot.bands; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
