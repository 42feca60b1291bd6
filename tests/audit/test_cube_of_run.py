"""The cube of a run: every planned call has its place, whatever became of it."""

from __future__ import annotations

import numpy as np
import pytest

import secondorder as so
from secondorder._audit._calls import acquire_stage
from secondorder._audit._cube import cube_of_run
from secondorder._audit._folder import RunFolder
from secondorder._audit._plan import find_target, planned_folder
from secondorder._audit._run import cube_stage
from secondorder._schema import REASONS, STATUS
from secondorder._statistics._tree import open_estimates
from secondorder.acquire import Fault

from .conftest import acquired, assert_cube_is, joined_again, judge, lay_out, replaced

CROSSED = (
    (
        '[prompts]\ncensus = ["none", "xml"]\ncriterion = "Which is better?"\n'
        'user = "{{criterion}} {{text}} A: {{first}} B: {{second}}"\n',
        "[prompts]\n"
        + "".join(
            f'[[prompts.variants]]\nid = "{detail}-{scale}"\nlevels = {{ detail = "{detail}", scale = "{scale}" }}\n'
            f'user = "{detail} {scale} {{{{text}}}} {{{{first}}}} {{{{second}}}}"\n'
            for detail in ("short", "long")
            for scale in ("words", "marks", "letters")
        ),
    ),
)
SECOND_JUDGE = '[judges.abacus]\nendpoint = "openai-chat"\nbase_url = "{url}"\nmodel = "abacus"\n\n[items]'


@pytest.mark.parametrize("send", ["shuffled", "by-item", "by-cell"])
def test_judges_crossed_wordings_hidden_ids_and_warm_ups(tmp_path, send):
    faults = (Fault(kind="status", status=500, rate=0.2), Fault(kind="empty", rate=0.2))
    with judge(*faults) as server:
        spec = lay_out(tmp_path, server.base_url)
        replaced(spec, *CROSSED, ("[items]", SECOND_JUDGE.format(url=server.base_url)))
        replaced(spec, ("repeats = 2", f'repeats = 2\nsend = "{send}"\n[null]\nitems = 2\nids = 3'))
        folder = acquired(spec)
    manifest = folder.read_manifest()
    assert (manifest["warmup_calls"] > 0) == (send == "by-cell")
    cube, null = cube_of_run(folder)
    assert cube.verdict.dims == ("judge", "item", "detail", "scale", "order", "repeat")
    assert cube.verdict.shape == (2, 6, 2, 3, 2, 2)
    assert cube.judge.values.tolist() == ["abacus", "toy"]
    assert cube.item.values.tolist() == [f"q{k}" for k in range(8, 14)]
    assert cube.stratum.values.tolist() == ["even", "odd"] * 3
    assert cube.gold.values.tolist() == ["1", "2", "tie", "", "1", "2"]
    assert null.verdict.dims == ("judge", "item", "prompt", "order", "repeat")
    assert null.verdict.shape == (2, 2, 3, 2, 2)
    levels = {prompt["id"]: prompt["levels"] for prompt in manifest["prompts"]}
    design, hidden = joined_again(folder, levels)
    assert {outcome.status for outcome, _ in design.values()} == {"valid", "invalid", "no_completion"}
    assert_cube_is(cube, design)
    assert_cube_is(null, hidden)
    assert cube.verdict.size + null.verdict.size == manifest["calls"] + manifest["null_calls"]


def test_pointwise_items_have_the_single_order(tmp_path):
    with judge() as server:
        spec = lay_out(tmp_path, server.base_url)
        replaced(
            spec,
            ('pair = ["one", "two"]\n', ""),
            ('gold = "best"\n', ""),
            ('orders = ["AB", "BA"]\n', ""),
            ("A: {{first}} B: {{second}}", "Good (A), bad (B) or fair (TIE)?"),
            ('A = "first", B = "second", TIE = "tie"', 'A = "good", B = "bad", TIE = "fair"'),
            ('classes = ["1", "2", "tie"]', 'classes = ["bad", "fair", "good"]'),
        )
        run = so.run_audit(spec)
    cube = so.open_cube(run.folder / "cube.nc")
    assert cube.order.values.tolist() == ["single"]
    assert "gold" not in cube.coords
    assert run.decomposition.groups[0].facets["order"].kind == "single"
    assert [estimate.component for estimate in run.decomposition.groups[0].estimates] == ["call", "prompt", "total"]
    assert_cube_is(cube, joined_again(RunFolder(run.folder), {})[0])


def test_a_run_midway_counts_what_has_not_ended_as_missing(tmp_path):
    with judge(latency_s=0.05) as server:
        spec = replaced(lay_out(tmp_path, server.base_url), ("attempts = 1", "attempts = 6"))

        def stop(state):
            if state.done >= 8:
                raise RuntimeError("enough")

        target = find_target(replaced(spec, ("concurrency = 8", "concurrency = 2")))
        folder, _ = planned_folder(target.audit)
        with pytest.raises(RuntimeError, match="enough"):
            acquire_stage(folder, target.audit.spec, progress=stop)
        assert cube_stage(folder)
        with so.open_cube(folder.cube) as part:
            statuses = part.status.values
            still_open = (statuses == STATUS.index("no_completion")) & (
                part.reason.values == REASONS.index("interrupted")
            )
        assert 0 < still_open.sum() < statuses.size
        acquire_stage(folder, target.audit.spec)
        assert cube_stage(folder), "another ledger, another cube"
    with so.open_cube(folder.cube) as whole:
        assert (whole.verdict.values >= 0).all()


def test_a_limit_leaves_calls_not_called_and_items_dropped_and_counted(tmp_path):
    with judge() as server:
        spec = replaced(lay_out(tmp_path, server.base_url), ("repeats = 2", 'repeats = 2\nsend = "by-item"'))
        replaced(spec, ("[retry]", "[limits]\ncalls = 41\n\n[retry]"))
        run = so.run_audit(spec)
        assert len(server.server.served) == 41
    cube = so.open_cube(run.folder / "cube.nc")
    assert int((cube.status == STATUS.index("not_called")).sum()) == 7
    assert int((cube.reason == REASONS.index("limit")).sum()) == 7
    assert len(run.decomposition.groups[0].items) == 5
    assert len(run.decomposition.groups[0].items_dropped) == 1


def test_one_call_per_cell_shows_the_plug_in_and_says_why_nothing_else(tmp_path):
    with judge() as server:
        run = so.run_audit(replaced(lay_out(tmp_path, server.base_url), ("repeats = 2", "repeats = 1")))
    prompt = run.decomposition["prompt"]
    assert np.isnan(prompt.estimate)
    assert prompt.plugin >= 0
    assert "R >= 2" in str(run.decomposition)
    assert "R &gt;= 2" in (run.folder / "report.html").read_text(encoding="utf-8")


def test_the_null_block_is_estimated_apart_and_its_change_is_seen(tmp_path):
    with judge() as server:
        spec = replaced(lay_out(tmp_path, server.base_url), ("[retry]", "[null]\nitems = 3\nids = 2\n\n[retry]"))
        run = so.run_audit(spec)
    folder = RunFolder(run.folder)
    null = open_estimates(folder.estimates)["/null"]
    assert null.pairs.values.tolist() == ["across-repeats", "complete"]
    assert run.decomposition.groups[0].n_calls <= 6 * 2 * 2 * 2
    folder.null.unlink()
    assert cube_stage(folder)
    assert folder.null.exists()
