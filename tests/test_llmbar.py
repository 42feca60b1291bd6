"""The page `docs/howto/audit-llmbar.md`, run as it stands on LLMBar's own items against a judge whose law is known."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._audit._demo import law_of_plan
from secondorder.acquire import Item, SimulatedJudge, messages_key
from secondorder.cli import _run as command

from .conftest import need

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "howto" / "audit-llmbar.md"

pytestmark = [pytest.mark.data, pytest.mark.slow]

Audited = tuple[Any, xr.DataArray, xr.DataTree]

# Where LLMBar's repository keeps its five subsets, and how often the simulated judge prefers the better output there.
SUBSETS = {
    "Natural": ("natural", 0.90),
    "Adversarial/Neighbor": ("neighbor", 0.35),
    "Adversarial/GPTInst": ("gptinst", 0.45),
    "Adversarial/GPTOut": ("gptout", 0.55),
    "Adversarial/Manual": ("manual", 0.60),
}
SKILL = {path.rpartition("/")[2]: skill for path, (_, skill) in SUBSETS.items()}


def cell_law(item: Item, order: str, prompt: str) -> dict[str, float]:
    """A judge that leans to what it sees first, and to ties where the criterion stands in XML; 3 % are no verdict."""
    better = SKILL[item.stratum or ""] - (0.10 if prompt == "xml" else 0.0)
    gold_is_first = (item.gold == "1") == (order == "AB")
    first = better if gold_is_first else 0.87 - better
    first = min(first + 0.05, 0.86)
    return {"A": first, "B": 0.87 - first, "TIE": 0.10, "Neither is good.": 0.03}


@pytest.fixture(scope="module")
def folder(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """LLMBar's files where the page expects them, converted by the page's code, beside the page's `audit.toml`."""
    need("docs", PAGE.is_file(), "run the tests in a checkout")
    folder = tmp_path_factory.mktemp("llmbar")
    for place, (name, _) in SUBSETS.items():
        target = folder / "LLMBar" / "Dataset" / "LLMBar" / place
        target.mkdir(parents=True)
        shutil.copy(data_dir / "llmbar" / f"{name}.json", target / "dataset.json")
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(compile(blocks["python"], str(PAGE), "exec"), {})
    (folder / "audit.toml").write_text(blocks["toml"], encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def audited(folder: Path) -> Audited:
    """The finished run, the law of its cells, and its estimates."""
    audit = so.load_audit(folder)
    items = {item.id: item for item in audit.items}
    plan = so.plan_audit(audit)
    laws = {
        messages_key(json.loads(call.request)["messages"]): cell_law(items[call.item], call.order, call.prompt)
        for call in plan.calls
        if call.repeat == 0
    }
    text = (folder / "audit.toml").read_text(encoding="utf-8")
    assert '"http://127.0.0.1:8000/v1"' in text
    with SimulatedJudge(laws) as judge, pytest.MonkeyPatch.context() as patch:
        (folder / "audit.toml").write_text(text.replace("http://127.0.0.1:8000/v1", judge.base_url), encoding="utf-8")
        patch.chdir(folder)
        assert command(["run", "."]) == 0
    run = so.run_audit(folder)  # nothing is left to call
    return run, law_of_plan(plan, laws), xr.open_datatree(run.folder / "estimates.nc", engine="h5netcdf").load()


def test_the_conversion_keeps_every_item_and_text(folder: Path, data_dir: Path) -> None:
    rows = [json.loads(line) for line in (folder / "items.jsonl").read_text(encoding="utf-8").splitlines()]
    assert Counter(row["subset"] for row in rows) == {
        "Natural": 100, "Neighbor": 134, "GPTInst": 92, "GPTOut": 47, "Manual": 46,
    }  # fmt: skip
    assert len({row["id"] for row in rows}) == 419
    for place, (name, _) in SUBSETS.items():
        given = json.loads((data_dir / "llmbar" / f"{name}.json").read_text(encoding="utf-8"))
        kept = [row for row in rows if row["subset"] == place.rpartition("/")[2]]
        assert [{key: row[key] for key in given[0]} for row in kept] == given


def test_ten_items_of_each_subset_make_2400_calls(audited: Audited) -> None:
    run, _, tree = audited
    cube = so.open_cube(run.folder / "cube.nc").load()
    assert dict(cube.sizes) == {"judge": 1, "item": 50, "prompt": 6, "order": 2, "repeat": 4, "class": 4}
    assert (cube.verdict >= 0).all()
    assert set(cube.gold.values.tolist()) == {"1", "2"}
    assert Counter(cube.stratum.values.tolist()) == dict.fromkeys(SKILL, 10)
    outcomes = tree["/outcomes"].to_dataset()
    counts = dict(zip(outcomes.outcome.values.tolist(), outcomes["count"].values[0].tolist(), strict=True))
    assert set(counts) == {"valid", "invalid: unparsed"}
    assert sum(counts.values()) == 2400
    strata = tree["/strata"].to_dataset()
    assert sorted(strata.stratum.values.tolist()) == sorted(SKILL)
    assert (strata.n_items == 10).all()


def test_gold_and_components_are_near_the_truth(audited: Audited) -> None:
    """Failure rates without a fault: 1e-7 for gold (Hoeffding), 1e-4 for the five components (5 standard errors)."""
    run, law, tree = audited
    audit = so.load_audit(run.folder.parent.parent)
    gold = xr.DataArray([item.gold for item in audit.items], dims="item", coords={"item": law["item"]})
    expected = float((law * (law["class"] == gold)).sum("class").mean())
    assert abs(float(tree["/gold"]["match"][0]) - expected) < math.sqrt(math.log(2 / 1e-7) / (2 * 2400))
    truth = so.decompose_law(law).value
    assert truth.sel(component="order") > truth.sel(component="prompt") > 0
    for estimate in run.decomposition.groups[0].estimates:
        assert abs(estimate.estimate - float(truth.sel(component=estimate.component))) < 5 * estimate.se_items


def test_the_report_shows_the_subsets_and_the_gold(audited: Audited) -> None:
    run, _, tree = audited
    html = run.report.read_text(encoding="utf-8")
    for name in SKILL:
        assert f">{name}<" in html
    assert f"{100 * float(tree['/gold']['match'][0]):.1f} %" in html
    assert np.isfinite(tree["/strata"].estimate).all()
