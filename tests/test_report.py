"""The report shows what the estimates hold, fetches nothing, and treats every text as hostile."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import secondorder as so
from secondorder._labels._cube import new_cube
from secondorder._labels._results import format_number
from secondorder._schema import REASONS
from secondorder._statistics._tree import estimate_all, open_estimates, save_estimates
from secondorder.acquire import SimulatedJudge
from secondorder.acquire._judge import Fault
from secondorder.errors import CorruptFileError, InputError, SchemaError
from secondorder.report import report_html
from secondorder.report._read import percent

HOSTILE = "<script>alert('x')</script>"


class Page(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]

    def handle_data(self, data: str) -> None:
        self.text += data


def cube(item: str = "q1", judge: str = "x", letters: str = "AB⊥A"):  # type: ignore[no-untyped-def]
    rows = [
        {"judge": who, "item": name, "prompt": prompt, "order": order, "run": str(r), "verdict": verdict,
         "stratum": "s1" if name == item else "s2", "gold": "A"}
        for who in (judge, "other")
        for name in (item, "q2", "q3", "q4")
        for prompt in ("short", "long")
        for order in ("AB", "BA")
        for r, verdict in enumerate(letters if prompt == "short" else letters[::-1] if name == "q2" else "AAAB")
    ]  # fmt: skip
    return so.make_cube(
        rows, item="item", facets=["prompt", "order"], repeat="run", verdict="verdict", classes=["A", "B", "tie"],
        invalid=["⊥"], by=["judge"], stratum="stratum", gold="gold",
    )  # fmt: skip


@pytest.fixture(scope="module")
def plain() -> tuple[so.Decomposition, xr.DataTree]:
    return estimate_all(cube(), {})


def test_the_report_carries_every_section_and_number(plain: tuple[so.Decomposition, xr.DataTree]) -> None:
    result, tree = plain
    page = Page(report_html(tree))
    for title in (
        "The answer", "What was asked", "With fewer repeats", "Judges compared", "Strata", "Items", "Outcomes",
        "Match with gold", "If ⊥ had meant something else", "Integrity", "Provenance",
    ):  # fmt: skip
        assert title in page.text
    for group in result.groups:
        for estimate in group.estimates:
            assert f"{estimate.estimate:.4f}".lstrip("-") in page.text
    assert page.tags.count("svg") >= 4


AUDIT = """
schema = "secondorder.audit/1"
name   = "all-of-it"
seed   = 1

[judges.one]
endpoint  = "openai-chat"
base_url  = "{url}"
model     = "simulated"
body      = {{ temperature = 1.0, top_p = 1.0, max_tokens = 8 }}
timeout_s = 1.0

[items]
file    = "items.jsonl"
id      = "id"
pair    = ["a", "b"]
stratum = "kind"
gold    = "better"

[prompts]
criterion = "Which is better?"
census    = ["none", "xml"]
user      = "{{{{criterion}}}} {{{{id}}}}\\nA: {{{{first}}}}\\nB: {{{{second}}}}"

[design]
orders  = ["AB", "BA"]
repeats = 4
send    = "by-cell"

[verdict]
parser  = "label"
labels  = {{ A = "first", B = "second", TIE = "tie" }}
classes = ["1", "2", "tie"]

[retry]
attempts = 2

[null]
items = 4
ids   = 2

[analysis]
tau = 0.02
"""


@pytest.mark.slow
def test_the_report_of_an_audit_has_every_item_of_its_list(tmp_path: Path) -> None:
    """A small run in which everything happens: retries, timeouts, cut answers, a lost and a huge item, a null block."""
    items = [{"id": f"q{k}", "kind": f"kind {k % 2}", "a": "x", "b": "y", "better": "1"} for k in range(8)]
    items[0]["a"] = "x" * 1_100_000
    (tmp_path / "items.jsonl").write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    faults = [
        Fault(kind="status", status=429, rate=0.1, per_call=1),
        Fault(kind="truncated", rate=0.1),
        Fault(kind="slow", seconds=4, contains="</criterion> q7\\nA: x"),
    ]
    with SimulatedJudge(faults=faults) as judge:
        (tmp_path / "audit.toml").write_text(AUDIT.format(url=judge.base_url), encoding="utf-8")
        run = so.run_audit(tmp_path)
    tree = open_estimates(run.folder / "estimates.nc")
    text = " ".join(Page(run.report.read_text(encoding="utf-8")).text.split())
    for wanted in (
        # what was asked
        "all-of-it, seed 1", "8 from items.jsonl", "2, a full list: none, xml", "Which is better?", "A → first",
        "4 per cell, 128 in all", "{{criterion}} {{id}} A: {{first}}", "temperature = 1.0",
        # components and prefixes
        "disagree with probability", "ahead of" if "ahead of" in text else "is not settled", "debiased", "plug-in",
        "R × inflation", "above τ", "7 items", "1 items left out: q7", "kind 0", "kind 1",
        # calls
        "invalid: truncated", "no_completion: timeout", "Match with gold", "⊥ as tie", "⊥ dropped", "timeouts as ⊥",
        # integrity
        "cells with fewer than two completed calls", "attempts sent", "calls that needed a retry", "response id",
        "identical to the byte", "drift: class", "first call sent", "each cell after a warm-up call",
        "Null block", "across-repeats",
    ):  # fmt: skip
        assert wanted in text, wanted
    counts = tree["/integrity"].to_dataset().isel(group=0)
    assert int(counts.planned) == 128
    assert int(counts.completed) < 128
    assert int(counts.retried) > 0
    # Numbers are those of the estimates, digit by digit.
    for part, fields in (
        ("components", ("estimate", "plugin", "inflation", "lower", "upper")),
        ("prefixes", ("estimate", "plugin", "inflation", "scaled_excess", "lower", "upper")),
        ("strata", ("estimate", "lower", "upper")), ("sensitivity", ("estimate", "lower", "upper")),
        ("null", ("plugin",)), ("items", ("value",)),
    ):  # fmt: skip
        data = tree[f"/{part}"].to_dataset()
        kept = {"component": ["call", "prompt", "order", "total"]} if part == "prefixes" else {"component": ["prompt"]}
        for field in fields:
            for number in data[field].sel(kept).values.ravel():
                assert np.isnan(number) or format_number(float(number)) in text, (part, field)


def test_nothing_is_fetched_and_nothing_runs(plain: tuple[so.Decomposition, xr.DataTree]) -> None:
    html = report_html(plain[1])
    page = Page(html)
    assert "script" not in page.tags
    assert all(link.startswith("#") for link in page.links)
    assert not re.search(r"url\((?!#)", html)
    assert "default-src 'none'" in html


def test_hostile_labels_are_shown_as_text() -> None:
    html = report_html(estimate_all(cube(item=HOSTILE, judge=HOSTILE + "x"), {})[1])
    assert "script" not in Page(html).tags
    assert "<script" not in html
    assert HOSTILE in Page(html).text


def test_a_line_of_one_megabyte_does_no_harm() -> None:
    html = report_html(estimate_all(cube(item="z" * 1_000_000), {})[1])
    assert len(html) < 2_000_000
    assert "characters more" in html


def test_a_share_that_rounds_to_nothing_has_no_sign() -> None:
    assert [percent(x) for x in (-1e-17, -0.0004, -0.0006, 0.123456)] == ["0.0 %", "0.0 %", "-0.1 %", "12.3 %"]


def test_prefixes_keep_the_scaled_excess_identity() -> None:
    _, tree = estimate_all(cube(letters="ABAA"), {})
    data = tree["/prefixes"].to_dataset()
    assert data.depth.values.tolist() == [2, 4]
    # Two prompts in two equal orders: R (plug - debiased) = (K - 1) / (2 K) * call = call / 4, for every sample.
    np.testing.assert_allclose(
        data.scaled_excess.sel(component="prompt"), data.estimate.sel(component="call") / 4, atol=1e-12
    )


def test_sensitivity_recodes_and_drops(plain: tuple[so.Decomposition, xr.DataTree]) -> None:
    _, tree = plain
    data = tree["/sensitivity"].to_dataset()
    assert data.rule.values.tolist() == ["as declared", "⊥ as tie", "⊥ dropped"]
    declared, tie = (data.estimate.sel(rule=rule, component="call") for rule in ("as declared", "⊥ as tie"))
    # No tie occurs otherwise, so calling ⊥ a tie only renames the class.
    np.testing.assert_allclose(declared, tie, atol=1e-15)
    gold = tree["/gold"].to_dataset()
    assert 0 < float(gold.match[0]) < 1


def test_the_tree_survives_its_file(plain: tuple[so.Decomposition, xr.DataTree], tmp_path: Path) -> None:
    tree = plain[1].copy()
    path = tmp_path / "estimates.nc"
    save_estimates(tree, path)
    again = open_estimates(path)
    assert report_html(again) == report_html(tree)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(CorruptFileError):
        open_estimates(path)
    with pytest.raises(InputError, match="no such file"):
        open_estimates(tmp_path / "absent.nc")
    tree.attrs["schema"] = "secondorder.estimates/2"
    save_estimates(tree, path)
    with pytest.raises(SchemaError, match="newer"):
        open_estimates(path)


def made(codes: object, classes: str = "AB", **more: object):  # type: ignore[no-untyped-def]
    """A cube of two facets from class codes of shape (judge, item, prompt, order, repeat)."""
    codes = np.asarray(codes)
    dims = ("judge", "item", "prompt", "order", "repeat")
    labels = {dim: [f"{dim[0]}{k}" for k in range(size)] for dim, size in zip(dims, codes.shape, strict=True)}
    facets = [so.Facet("prompt"), so.Facet("order")]
    return new_cube(codes, labels=labels, classes=list(classes), facets=facets, **more)


def words(tree: xr.DataTree) -> str:
    return " ".join(Page(report_html(tree)).text.split())


def text_of(cube: object, options: dict[str, object]) -> str:
    return words(estimate_all(cube, options)[1])  # type: ignore[arg-type]


def test_an_order_is_stated_where_its_band_is_above_zero() -> None:
    codes = np.random.default_rng(0).integers(0, 2, size=(2, 6, 2, 2, 3))
    codes[1] = codes[0]
    codes[:, :, 1], codes[:, :, 0] = 1, 0  # the prompt decides …
    codes[:, 0, 0, 0, 0] = 1  # … but for one call
    settled = text_of(made(codes[:1]), {})
    assert re.search(r"debiased it is prompt 0\.\d+ > order", settled)
    codes[:, ::2] = np.swapaxes(codes[:, ::2], 2, 3)  # on every other item it is the order
    unsettled = text_of(made(codes), {})
    assert re.search(r"debiased it is \w+ -?0\.\d+, \w+ -?0\.\d+, in an order that is not settled", unsettled)
    assert "j0 = j1" in unsettled
    assert "paired t intervals" in unsettled


def test_timeouts_are_told_from_calls_that_are_missing_for_no_known_reason(
    plain: tuple[so.Decomposition, xr.DataTree],
) -> None:
    codes = np.random.default_rng(1).integers(0, 2, size=(1, 4, 2, 2, 4))
    codes[0, 0, 0, 0, 0] = -1
    late = {"status": np.where(codes < 0, 2, 0), "reason": np.where(codes < 0, REASONS.index("timeout"), 0)}
    for kernel, midpoint in (("nominal", False), ("interval", True)):
        page = text_of(made(codes, "12⊥", **late), {"kernel": kernel})
        assert "timeouts as ⊥" in page
        assert "No call timed out" not in page
        assert ("stand at the midpoint" in page) is midpoint
    assert "No call timed out" not in words(plain[1])  # a table does not say why calls are missing


def test_invalid_calls_that_are_set_aside_are_not_among_the_completed_ones() -> None:
    codes = np.random.default_rng(1).integers(0, 2, size=(1, 4, 2, 2, 4))
    codes[0, 0, 0, 0, 0] = 2
    assert "64 completed calls, of them 1 ⊥;" in text_of(made(codes, "AB⊥"), {})
    assert "63 completed calls, and 1 ⊥ set aside;" in text_of(made(codes, "AB⊥"), {"invalid": "missing"})
