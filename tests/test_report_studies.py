"""The judge studies in a run's report: which there are, that they hold the studies' own numbers, and hostile names."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder import studies
from secondorder._audit._studies import study_parts
from secondorder._schema import CUBE_SCHEMA, ESTIMATES_SCHEMA
from secondorder._statistics._settings import Settings
from secondorder._statistics._tree import open_estimates, save_estimates
from secondorder.report import section_text
from secondorder.report._studies import studies_sections

SIZES = {"judge": 2, "item": 5, "prompt": 3, "order": 2, "repeat": 2}
HOSTILE = "<script>$x^{</script>"


def cube(sizes: dict[str, int] | None = None, gold: bool = True, seed: int = 3) -> xr.Dataset:
    wanted = SIZES if sizes is None else sizes
    codes = np.random.default_rng(seed).integers(0, 3, tuple(wanted.values()), dtype=np.int8)
    names = {dim: [f"{dim}{k}" for k in range(size)] for dim, size in wanted.items()}
    if "order" in names:
        names["order"] = ["AB", "BA"][: wanted["order"]]
    data = xr.Dataset({"verdict": (tuple(wanted), codes)}, coords={**names, "class": ["one", "two", "⊥"]})
    return data.assign_coords(gold=("item", ["one", "two", "two", "one", "two"])) if gold else data


def settings(kernel: str = "nominal", **fields: object) -> Settings:
    plain = Settings(
        kernel=kernel, classes=("one", "two", "⊥"), classes_declared=True, invalid=(), missing=(), invalid_as="class",
        incomplete="refuse", pairs="complete", covers="items", interval="t", level=0.9, draws=100, seed=0, tau=None,
        where=(), independence="untestable",
    )  # fmt: skip
    return replace(plain, **fields)  # type: ignore[arg-type]


def tree_of(parts: dict[str, xr.Dataset]) -> xr.DataTree:
    tree = xr.DataTree.from_dict({f"/studies/{name}": part for name, part in parts.items()})
    tree.attrs["schema"] = ESTIMATES_SCHEMA
    return tree


@pytest.mark.parametrize(
    ("left_out", "gold", "expected"),
    [
        ((), True, ["judges", "agreement-1", "position", "winners", "votes"]),
        (("judge",), True, ["agreement-1", "position", "winners", "votes"]),
        (("judge", "order", "repeat"), False, ["agreement-1"]),
        (("judge", "prompt", "repeat"), True, ["position"]),
        (("judge", "prompt", "order"), True, []),
    ],
)
def test_what_the_dimensions_support_is_there(left_out: tuple[str, ...], gold: bool, expected: list[str]) -> None:
    sizes = {dim: size for dim, size in SIZES.items() if dim not in left_out}
    assert list(study_parts(cube(sizes, gold), settings())) == expected


def test_numbers_are_those_of_the_studies_and_come_back_from_the_file(tmp_path: Path) -> None:
    data = cube()
    parts = study_parts(data, settings())
    direct = {
        "judges": studies.agreement(data, raters="judge", level=0.9),
        "agreement-1": studies.repeat_agreement(data, level=0.9),
        "position": studies.position_bias(data, level=0.9),
        "winners": studies.prompt_winners(data, level=0.9),
        "votes": studies.aggregate(data, rules=("single", "plurality", "majority"), correlations=(), level=0.9),
    }
    save_estimates(tree_of(parts), tmp_path / "estimates.nc")
    back = open_estimates(tmp_path / "estimates.nc")
    sections = studies_sections(back)
    assert list(sections) == list(direct)
    for name, found in direct.items():
        for key in ("estimate", "lower", "upper"):
            np.testing.assert_array_equal(back[f"/studies/{name}"][key], found.data[key])
        shown, own = sections[name], found.section()
        assert [table.title for table in shown.tables] == [table.title for table in own.tables]
        undefined = [[None if x != x else x for x in row] for table in own.tables for row in table.rows]
        assert [list(row) for table in shown.tables for row in table.rows] == undefined
        assert shown.figures == own.figures
        assert shown.tables[-1].notes[-1].startswith("More: secondorder study ")


def test_one_call_in_a_cell_compares_the_wordings_alone() -> None:
    data = cube({"item": 5, "prompt": 3, "repeat": 1}, gold=False)
    ((name, part),) = study_parts(data, settings()).items()
    assert name == "agreement-1"
    direct = studies.agreement(data, raters="prompt", level=0.9)
    np.testing.assert_array_equal(part["estimate"], direct.data["estimate"])


def test_on_a_scale_the_invalid_are_set_aside_and_it_is_said() -> None:
    data = cube({"item": 5, "prompt": 3, "repeat": 2}).assign_coords({"class": ["1", "2", "⊥"]})
    data = data.assign_coords(gold=("item", ["1", "2", "2", "1", "2"]))
    parts = study_parts(data, settings("interval", classes=("1", "2", "⊥"), invalid_as="midpoint"))
    direct = studies.repeat_agreement(data, weights="interval", invalid="missing", incomplete="drop-item", level=0.9)
    np.testing.assert_array_equal(parts["agreement-1"]["estimate"], direct.data["estimate"])
    shown = studies_sections(tree_of(parts))
    assert "set aside" in shown["agreement-1"].text
    assert {"pearson", "kendall"} < set(parts["winners"]["measure"].to_numpy().tolist())


def test_classes_that_are_names_in_digits_are_right_or_wrong() -> None:
    """The candidates 1 and 2 of a pair are no scores: a prompt has an accuracy, and no correlation."""
    data = cube({"item": 5, "prompt": 3, "repeat": 2}).assign_coords({"class": ["1", "2", "⊥"]})
    data = data.assign_coords(gold=("item", ["1", "2", "2", "1", "2"]))
    parts = study_parts(data, settings(classes=("1", "2", "⊥")))
    assert parts["winners"]["measure"].to_numpy().tolist() == ["accuracy"]


def test_an_undefined_study_says_why_and_the_others_stand() -> None:
    data = cube().assign_coords(order=["left", "right"], gold=("item", ["three"] * 5))
    shown = studies_sections(tree_of(study_parts(data, settings())))
    assert "Undefined for these calls" in shown["position"].text
    assert "who stands first" in shown["position"].text
    assert "'three' is no class" in shown["winners"].text
    assert shown["judges"].tables


def test_no_cube_crashes_a_report() -> None:
    data = cube()
    shape = data["verdict"].shape
    holes = np.where(np.random.default_rng(1).random(shape) < 0.4, -1, data["verdict"])
    nothing, bottom = np.full(shape, -1), np.full(shape, 2)
    for verdict in (holes, nothing, bottom, np.zeros(shape, dtype=int)):
        parts = study_parts(data.assign(verdict=(data["verdict"].dims, verdict)), settings())
        assert list(studies_sections(tree_of(parts))) == ["judges", "agreement-1", "position", "winners", "votes"]
    assert len(study_parts(data.isel(item=[0]), settings())) == 5


def test_hostile_names_stay_text_in_page_and_figures(tmp_path: Path) -> None:
    data = cube().assign_coords(judge=[HOSTILE, "_" * 400], prompt=["$", "判断", "a\nb"])
    data.attrs.update(schema=CUBE_SCHEMA, facets=json.dumps({"prompt": {}, "order": {}}))
    so.write_report(data, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for anchor in ("judges", "agreement-1", "position", "winners", "votes"):
        assert f'<section id="{anchor}">' in page
    assert page.index('id="votes"') < page.index('id="provenance"')


def test_text_of_a_section_is_json_whatever_it_holds() -> None:
    found = studies.agreement(cube({"item": 5, "prompt": 2}, gold=False), draws=0)
    text = section_text(found.section())
    assert json.loads(text)["tables"][0]["rows"][0][2] is None  # no draws: no band
    assert "NaN" not in text
