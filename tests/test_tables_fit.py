"""Tables on a terminal of 80 columns: nothing beyond the edge, no name cut."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import secondorder as so
from secondorder._labels._results import Table, render_table
from secondorder._labels._results import _broken as broken
from secondorder._labels._results import _width as columns_of

NUMBERS = (-0.0222, -0.068, 0.0235, 0.3718, 0.8158)


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(
    ("component", "judges"),
    [
        ("prompt:order", ("qwen3-235b-instruct", "mistral-large-2411")),
        ("power 0.8 at 0.01", ("20000 calls", "SE 0.005")),
        ("prompt", ("裁判员裁判员裁判员裁判员", "x" * 60)),
    ],
)
def test_names_are_whole_and_within_the_edge(component: str, judges: tuple[str, str]) -> None:
    heads = ("component", "a", "b", "difference", "lower", "upper", "p", "p (adjusted)")
    title, numbers = "A title that is longer than a terminal is wide " * 3, [f"{number:.4f}" for number in NUMBERS]
    text = render_table(Table(title, heads, ((component, *judges, *NUMBERS),)))
    assert max(map(columns_of, text.splitlines())) <= 80
    assert all(number in text for number in numbers)
    # Broken names stand side by side: every character is there, and no other.
    assert Counter(squeezed(text)) == Counter(squeezed("".join((title, *heads, component, *judges, *numbers))))


@pytest.mark.parametrize("name", ["prompt:order", "qwen3-235b-instruct", "two words of text", "裁判员裁判员", "x" * 60])
@pytest.mark.parametrize("width", [8, 9, 13, 40])
def test_a_name_goes_on_on_the_next_line(name: str, width: int) -> None:
    lines = broken(name, width)
    assert squeezed("".join(lines)) == squeezed(name)
    assert max(map(columns_of, lines)) <= width


def test_words_break_before_names_do() -> None:
    heads = ("goal", "items", "repeats", "component", "SE", "inflation of the plug-in")
    rows = (("power 0.8 at an effect of 0.01 or more", 138, 24, "prompt:order", 0.0002, 0.0095),)
    text = render_table(Table("", heads, rows), width=70)
    assert "prompt:order" in text
    assert max(map(len, text.splitlines())) <= 70


def test_a_table_that_fits_is_left_alone() -> None:
    assert render_table(Table("t", ("a b", "c"), (("x y", 1.0),))) == "t\na b       c\nx y  1.0000"


def test_what_no_screen_shows_ends() -> None:
    lines = render_table(Table("", ("text",), (("z" * 2**16,),))).splitlines()
    assert len(lines) < 40
    assert lines[-1] == "…"


def test_a_single_pair_is_named_once() -> None:
    rng = np.random.default_rng(0)

    def compared(*judges: str) -> list[Table]:
        rows = [
            {"judge": judge, "item": str(item), "prompt": prompt, "run": run, "verdict": "AB"[rng.integers(2)]}
            for judge in judges
            for item in range(6)
            for prompt in "pq"
            for run in range(2)
        ]
        roles = {"item": "item", "facets": ["prompt"], "repeat": "run", "verdict": "verdict", "by": "judge"}
        found = so.decompose(so.make_cube(rows, **roles))
        assert found.comparison is not None
        return [found.comparison.tables()[1], so.paired_test(found).tables()[1]]

    for table in compared("qwen3-235b-instruct", "mistral-large-2411"):
        assert table.title == "Differences mistral-large-2411 - qwen3-235b-instruct"
        assert table.columns[0] == "component"
        assert table.columns[1] in ("debiased", "difference")
    for table in compared("x", "y", "z"):
        assert table.title == "Differences a - b"
        assert [row[:3] for row in table.rows[:2]] == [("call", "x", "y"), ("call", "x", "z")]
