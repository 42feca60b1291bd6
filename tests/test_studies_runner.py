"""Studies: digits that depend on the study alone, measures against plain NumPy, resuming, files, the docs page."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import msgspec
import numpy as np
import pytest

import secondorder as so
from secondorder.cli import main
from secondorder.core._precision import double_precision
from secondorder.errors import CorruptFileError, SpecError
from secondorder.simulate import (
    Dependence,
    Draw,
    Estimate,
    Mechanism,
    Method,
    Published,
    Study,
    StudyResult,
    bias_figure,
    laws,
    load_declared,
    open_study_result,
    run_study,
    with_levels,
)
from secondorder.simulate._block import Simulator, draws_calls
from secondorder.simulate._measures import MEASURES, SUMS, block_sums, measures_from
from secondorder.simulate._prepared import prepare
from secondorder.testing import assert_mean

ROOT = Path(__file__).resolve().parents[1]
FACETS = {"prompt": 2, "order": 2}
# More than two blocks of 8192, and a last one that is not full.
REPLICATES = 20_000


def mechanism(R: int) -> Mechanism:
    return Mechanism(laws.exchangeable([0.6, 0.4], FACETS), repeats=R)


STUDY = Study("small", "Is it unbiased?", {"R": (2, 3)}, mechanism, replicates=REPLICATES, seed=5)


@pytest.fixture(scope="module")
def whole() -> StudyResult:
    return run_study(STUDY)


def same(one: StudyResult, other: StudyResult) -> bool:
    return bool((one.data["sums"].values == other.data["sums"].values).all())


def test_digits_do_not_depend_on_shards_or_processes(whole: StudyResult, tmp_path: Path) -> None:
    assert same(whole, run_study(STUDY, shard_blocks=1, out=tmp_path))
    with ThreadPoolExecutor(2) as threads:
        assert same(whole, run_study(STUDY, shard_blocks=1, executor=threads))
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as executor:
        assert same(whole, run_study(STUDY, shard_blocks=1, executor=executor))


def test_a_point_keeps_its_digits_in_another_grid(whole: StudyResult) -> None:
    alone = run_study(with_levels(STUDY, {"R": ["3"]}))
    assert (alone.data["sums"].values == whole.data["sums"].sel(R=[3]).values).all()


def test_a_stopped_run_goes_on_where_it_was(whole: StudyResult, tmp_path: Path) -> None:
    class StoppedError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > total / 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        run_study(STUDY, out=tmp_path, shard_blocks=1, progress=stop)
    left = len(list((tmp_path / "shards").glob("*.npz")))
    assert 0 < left < 6
    with pytest.raises(SpecError, match="--resume"):
        run_study(STUDY, out=tmp_path)
    calls: list[int] = []
    resumed = run_study(STUDY, out=tmp_path, shard_blocks=1, resume=True, progress=lambda done, _: calls.append(done))
    assert same(whole, resumed)
    assert calls[0] > 0
    # Nothing is left to do, and a longer run keeps what there is.
    again: list[int] = []
    assert same(whole, run_study(STUDY, out=tmp_path, resume=True, progress=lambda done, _: again.append(done)))
    assert again == [2 * REPLICATES]
    longer = run_study(STUDY, out=tmp_path, resume=True, replicates=REPLICATES + 100)
    assert (longer.data["sums"].sel(sum="replicates") == REPLICATES + 100).all()
    assert same(whole, run_study(STUDY, out=tmp_path, resume=True))


def test_foreign_and_broken_shards_are_refused(tmp_path: Path) -> None:
    few = {"replicates": 50, "out": tmp_path}
    run_study(STUDY, **few)
    other = Study("small", "Is it unbiased?", {"R": (2, 3)}, mechanism, replicates=50, seed=6)
    with pytest.raises(SpecError, match="belong to study small"):
        run_study(other, resume=True, **few)
    shard = next((tmp_path / "shards").glob("*.npz"))
    content = shard.read_bytes()
    shard.write_bytes(content.replace(so.__version__.encode(), b"9" * len(so.__version__)))
    with pytest.raises((SpecError, CorruptFileError)):
        run_study(STUDY, resume=True, **few)
    shard.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorruptFileError, match="delete it and resume"):
        run_study(STUDY, resume=True, **few)


def test_the_digest_is_of_what_is_simulated() -> None:
    def rewritten(R: int) -> Mechanism:
        return Mechanism(laws.exchangeable([0.6, 1 - 0.6], dict(FACETS)), repeats=int(R))

    same_study = Study("small", "Other words.", {"R": (2, 3)}, rewritten, replicates=7, seed=5)
    assert same_study.digest() == STUDY.digest()
    assert hash(same_study) == hash(STUDY)
    changes: list[dict[str, Any]] = [
        {"seed": 6}, {"factors": {"R": (2, 4)}}, {"methods": ("debiased",)}, {"level": 0.9}, {"estimands": ("call",)},
        {"mechanism": lambda R: Mechanism(laws.exchangeable([0.61, 0.39], FACETS), repeats=R)},
    ]  # fmt: skip
    options = {"factors": {"R": (2, 3)}, "mechanism": mechanism, "replicates": 7, "seed": 5}
    digests = {Study("small", "", **{**options, **change}).digest() for change in changes}  # type: ignore[arg-type]
    assert len(digests | {STUDY.digest()}) == len(changes) + 1


def test_measures_are_those_of_plain_numpy() -> None:
    ready = prepare(Mechanism(laws.effects([0.6, 0.4], FACETS, {"prompt": 0.02}), repeats=2, items=None))
    simulator = Simulator(ready, ("debiased", "plugin"), seed=1, stream="x", level=0.95)
    draw = simulator.draw(0)
    value = np.asarray(simulator.estimates(draw).value)
    found = measures_from(np.asarray(simulator.sums(0, 1000)), ready.truth)
    kept, truth = value[..., :1000], ready.truth[:, None]
    error = kept - truth
    n = 1000
    assert found["bias"].value == pytest.approx(error.mean(-1))
    assert found["bias"].mcse == pytest.approx(kept.std(-1, ddof=1) / n**0.5)
    assert found["empirical_se"].value == pytest.approx(kept.std(-1, ddof=1))
    assert found["mse"].value == pytest.approx((error**2).mean(-1))
    assert found["mse"].mcse == pytest.approx((error**2).std(-1, ddof=1) / n**0.5)
    assert found["mse_ratio"].value[1] == pytest.approx((error**2).mean(-1)[1] / (error**2).mean(-1)[0])
    assert found["negative"].value == pytest.approx((kept < -1e-10).mean(-1))
    # The estimates are those that users get, from the counts that a method sees.
    cells = so.core.cells_from_counts(np.asarray(draw.counts)[:, 0])
    expected = so.core.complete_pairs(cells, ready.design, ready.components, ready.kernel)
    assert np.abs(value[0].T - np.asarray(expected)).max() < 1e-13
    expected = so.core.plugin(cells, ready.design, ready.components, ready.kernel)
    assert np.abs(value[1].T - np.asarray(expected)).max() < 1e-13


def test_monte_carlo_errors_are_the_spread_of_measures_between_runs() -> None:
    # 300 runs of 200 replicates: their spread has a relative error of 4 %; a factor of .75 to 1.3 is seven of them.
    rng = np.random.default_rng(1)
    truth = np.array([0.3])
    one = []
    for _ in range(300):
        x = rng.exponential(0.5, 200)
        values = np.stack([x, 0.5 * x + rng.normal(0, 0.4, 200)])[:, None, :]
        reject = (values > 0.8).astype(float)
        with double_precision():
            arrays = map(jnp.asarray, (values, values - 0.5, values + 0.1, reject, truth, 200))
            one.append(measures_from(np.asarray(block_sums(*arrays)), truth))
    for name in ("bias", "empirical_se", "mse", "mse_ratio", "negative", "coverage", "missed_low", "power"):
        spread = np.std([found[name].value[1, 0] for found in one], ddof=1)
        stated = np.mean([found[name].mcse[1, 0] for found in one])
        assert 0.75 < stated / spread < 1.3, name


def test_t_limits_are_those_of_the_package() -> None:
    law = laws.dirichlet([0.5, 0.5], 3, FACETS, over=["prompt"], items=6, seed=1).assign_coords(
        stratum=("item", ["a"] * 4 + ["b"] * 2)
    )
    ready = prepare(Mechanism(law, repeats=2, items={"a": 5, "b": 3}))
    assert ready.sampling.items == ((5, 0, 4), (3, 4, 2))
    simulator = Simulator(ready, ("debiased",), seed=1, stream="x", level=0.9)
    draw = simulator.draw(0)
    answer = simulator.estimates(draw)
    for replicate in range(3):
        cells = so.core.cells_from_counts(np.asarray(draw.counts)[replicate])
        items = so.core.complete_pairs(cells, ready.design, ready.components, ready.kernel)
        band = so.core.t_interval(so.core.item_errors(np.asarray(items), ready.strata), 0.9)
        found = np.stack([answer.lower[0, :, replicate], answer.upper[0, :, replicate]])
        assert found == pytest.approx(np.stack([band.lower, band.upper]), abs=1e-12, nan_ok=True)


def own(draw: Draw) -> Estimate:
    """First component from the counts, undefined where the first cell is split."""
    counts = np.asarray(draw.counts)
    agreement = (counts * (counts - 1)).sum(-1) / 2
    value = np.repeat(1 - agreement.mean((1, 2, 3))[:, None], len(draw.names), axis=1)
    value[counts[:, 0, 0, 0, 0] == 1] = np.nan
    return Estimate(value, value - 0.1, value + 0.1)


def test_own_methods_run_and_their_failures_are_counted() -> None:
    study = Study(
        "own", "", {"R": (2,)}, mechanism, replicates=3000, seed=1, methods=(Method("mine", own), "debiased"),
        estimands=("call",),
    )  # fmt: skip
    result = run_study(study).data.isel(R=0, estimand=0)
    mine = result.sel(estimator="mine")
    # The first cell is split in 48 % of the replicates; sees 5 points.
    assert abs(float(mine["failure"]) - 0.48) < 5 * float(mine["failure_mcse"])
    assert float(mine["failed"]) == round(float(mine["failure"]) * 3000)
    assert float(mine["interval_failure"]) == float(mine["failure"])
    assert np.isnan(mine["size"])
    assert 0 < float(mine["power"]) <= 1
    # Ratios are taken to the first method, whatever its kind, over replicates in which both have a value.
    assert float(mine["mse_ratio"]) == 1
    assert float(result["mse_ratio"].sel(estimator="debiased")) > 0
    wrong = Method("wrong", lambda draw: np.zeros((3, 1)))
    with pytest.raises(SpecError, match="method wrong"):
        run_study(Study("w", "", {"R": (2,)}, mechanism, replicates=10, seed=1, methods=(wrong,), estimands=("call",)))


def test_a_figure_that_fails_leaves_the_numbers(tmp_path: Path) -> None:
    from secondorder.cli._simulate import _draw

    study = Study("s", "", {"R": (2,)}, mechanism, replicates=10, seed=1, figure=lambda result: None)
    with pytest.raises(SpecError, match=r"its figure cannot be drawn \(AttributeError"):
        _draw(study, None, tmp_path / "figure.png")  # type: ignore[arg-type]


def test_faults_in_own_functions_are_named() -> None:
    def fails(draw: Draw) -> Any:
        raise KeyError("x")

    study = {"aims": "", "replicates": 10, "seed": 1}
    with pytest.raises(SpecError, match=r"method bad: it raises KeyError"):
        run_study(Study("s", factors={"R": (2,)}, mechanism=mechanism, methods=(Method("bad", fails),), **study))
    with pytest.raises(SpecError, match=r"mechanism\(K=2\) raises TypeError"):
        run_study(Study("s", factors={"K": (2,)}, mechanism=mechanism, **study))
    for given, words in ((None, r"value has shape \(\)"), (Estimate("x"), "value holds no numbers")):
        odd = Method("odd", lambda draw, given=given: given)  # type: ignore[misc]
        with pytest.raises(SpecError, match=f"method odd: {words}"):
            run_study(Study("s", factors={"R": (2,)}, mechanism=mechanism, methods=(odd,), **study))
    with pytest.raises(SpecError, match="is a int"):
        run_study(Study("s", factors={"K": (2,)}, mechanism=lambda K: K, **study))
    local = Study("s", factors={"R": (2,)}, mechanism=mechanism, methods=(Method("m", lambda draw: draw),), **study)
    spawned = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with spawned as executor, pytest.raises(SpecError, match="top of the study's file"):
        run_study(local, executor=executor)


def test_dependence_biases_complete_pairs_and_spares_across_repeats() -> None:
    def coupled(kind: str) -> Mechanism:
        dependence = None if kind == "none" else Dependence(kind)  # type: ignore[arg-type]
        return Mechanism(laws.exchangeable([0.5, 0.5], {"prompt": 2}), repeats=2, dependence=dependence)

    study = Study(
        "traps", "", {"kind": ("none", "seed", "cache")}, coupled, replicates=20_000, seed=3,
        methods=("debiased", "across-repeats", "panel"), estimands=("call", "prompt"),
    )  # fmt: skip
    data = run_study(study).data
    bias, mcse = data["bias"].sel(estimand="prompt"), data["bias_mcse"].sel(estimand="prompt")
    assert float(bias.sel(kind="seed", estimator="debiased")) == pytest.approx(-0.125, abs=0.01)
    # One seed, one law: both prompts always say the same, and pairs of other repeats say that they do.
    assert float(bias.sel(kind="seed", estimator="across-repeats")) == 0
    # A cached repeat is no second call: call noise vanishes, and prompts seem to differ by all of it.
    assert float(data["bias"].sel(kind="cache", estimator="debiased", estimand="call")) == pytest.approx(-0.5)
    assert float(bias.sel(kind="cache", estimator="debiased")) == pytest.approx(0.25, abs=0.01)
    for name in ("debiased", "across-repeats", "panel"):
        assert abs(bias.sel(kind="none", estimator=name)) < 5 * mcse.sel(kind="none", estimator=name)


def test_large_tables_and_large_designs_take_other_routes_to_the_same_truth() -> None:
    wide = prepare(Mechanism(laws.exchangeable(np.full(20, 1 / 20), {"prompt": 40}), repeats=6))
    assert draws_calls(wide, ("debiased",))
    simulator = Simulator(wide, ("debiased", "plugin"), seed=1, stream="x", level=0.95)
    value = np.asarray(simulator.estimates(simulator.draw(0)).value)
    # Sees .002 in the call component.
    assert_mean(value[0, :, :].T, wide.truth, must_detect=0.01)
    assert_mean(value[1, :, :].T, wide.truth + wide.plugin_bias, must_detect=0.01)


def test_results_are_saved_and_read_back(whole: StudyResult, tmp_path: Path) -> None:
    paths = whole.save(tmp_path)
    again = open_study_result(paths[0])
    assert same(whole, again)
    assert again.factors == ("R",)
    table = whole.table()
    assert set(table["measure"]) == {"bias", "empirical_se", "mse", "mse_ratio", "negative", "failure"} | (
        {"interval_failure"} & set(table["measure"])
    )
    assert paths[1].read_text().startswith("R,estimator,estimand,measure,value,mcse,truth\n")
    assert "small: 20000 replicates per point" in str(again)
    assert len(bias_figure(again).axes) == 5
    (tmp_path / "broken.nc").write_bytes(b"no")
    with pytest.raises(CorruptFileError):
        open_study_result(tmp_path / "broken.nc")


def test_published_numbers_stand_beside_the_studys_own() -> None:
    printed = Published({"R": 2}, "plugin", "prompt", "bias", 0.12, "a table")
    study = Study("p", "", {"R": (2,)}, mechanism, replicates=100, seed=1, published=(printed,), measures=("bias",))
    table = run_study(study).table()
    row = table[(table["estimator"] == "plugin") & (table["estimand"] == "prompt")]
    assert row[["published", "source"]].values.tolist() == [[0.12, "a table"]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "a b"}, "letters"),
        ({"factors": {}}, "no factor"),
        ({"factors": {"R": ()}}, "list of levels"),
        ({"factors": {"R": (2, 2)}}, "distinct"),
        ({"factors": {"R": (2, "3")}}, "one type"),
        ({"factors": {"estimand": (2,)}}, "Python argument"),
        ({"replicates": 0}, "at least 1"),
        ({"level": 1.0}, "probability"),
        ({"measures": ("speed",)}, "bias"),
        ({"methods": ("bayes",)}, "debiased, plugin"),
        ({"methods": ()}, "at least one"),
    ],
)
def test_wrong_studies_are_refused(change: dict[str, Any], says: str) -> None:
    options = {"name": "s", "aims": "", "factors": {"R": (2,)}, "mechanism": mechanism, "replicates": 10, "seed": 1}
    with pytest.raises(SpecError, match=says):
        Study(**{**options, **change})


def test_other_levels_are_parsed_as_their_factor() -> None:
    study = Study("s", "", {"R": (2,), "law": ("null",)}, mechanism, replicates=10, seed=1)
    assert with_levels(study, {"R": ["4", "8"], "law": ["x"]}).factors == {"R": (4, 8), "law": ("x",)}
    with pytest.raises(SpecError, match="its levels are ints"):
        with_levels(study, {"R": ["many"]})
    with pytest.raises(SpecError, match="factors: R, law"):
        with_levels(study, {"K": ["4"]})


def documented_blocks() -> list[str]:
    """The Python blocks of the how-to page: a study, the same from Python, an estimator of one's own."""
    page = (ROOT / "docs" / "howto" / "simulate.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    return blocks


def run_command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", *arguments])
    return int(ended.value.code or 0)


def test_a_study_written_from_the_docs_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, from_python, own = documented_blocks()
    path = Path("my_study.py")
    path.write_text(first, encoding="utf-8")
    assert run_command(str(path), "--replicates", "2000", "--set", "R=2") == 0
    name = load_declared(path, "STUDY", Study).name
    folder = tmp_path / "runs" / "simulate" / name
    assert {p.name for p in folder.iterdir()} == {"results.nc", "summary.csv", "figure.png", "shards"}
    assert "2000 replicates per point" in capsys.readouterr().out
    # The same again without --resume does not silently mix with what is there.
    assert run_command(str(path), "--replicates", "2000", "--set", "R=2") == 2
    assert run_command(str(path), "--replicates", "2000", "--set", "R=2", "--resume") == 0
    found: dict[str, Any] = {}
    exec(from_python.replace("10_000", "1000"), found)
    assert found["result"].data.sizes == {"R": 3, "share": 2, "estimator": 2, "estimand": 5, "sum": len(SUMS)}
    exec(own, found)
    study = msgspec.structs.replace(found["study"], methods=("debiased", found["mine"]), estimands=("call",))
    table = run_study(with_levels(study, {"R": ["2"]}), replicates=1000)
    assert np.ptp(table.data["bias"].values, axis=-2).max() < 1e-9
    # Equal estimates: what rounding leaves of the error of their ratio is not shown.
    assert "1.00000" not in str(table)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nothing.py"], "no such file"),
        (["nothing"], "there is no study"),
        ([], "no study is named"),
        (["empty.py"], "declares no STUDY"),
        (["broken.py"], "mend the file"),
        (["leaves.py"], "SystemExit: 0; mend the file"),
        (["half.py"], "SyntaxError"),
        (["stops.py", "--out", "o"], "mechanism(R=2) raises SystemExit: 0"),
        (["empty.py", "--processes", "0"], "at least 1"),
        (["empty.py", "--set", "R"], "FACTOR=LEVEL"),
    ],
)
def test_wrong_commands_are_one_line_and_exit_2(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "broken.py").write_text("1 / 0")
    (tmp_path / "leaves.py").write_text("raise SystemExit(0)")
    (tmp_path / "half.py").write_text("STUDY = (")
    (tmp_path / "stops.py").write_text(
        "import sys\nfrom secondorder.simulate import Study\ndef mechanism(R): sys.exit(0)\n"
        "STUDY = Study('x', '', {'R': (2,)}, mechanism, replicates=10, seed=1)\n"
    )
    assert run_command(*arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_killed_command_resumes_to_the_same_digits(tmp_path: Path, whole: StudyResult) -> None:
    path = tmp_path / "killed.py"
    path.write_text(
        "from secondorder.simulate import Mechanism, Study, laws\n"
        "def mechanism(R):\n"
        "    return Mechanism(laws.exchangeable([0.6, 0.4], {'prompt': 2, 'order': 2}), repeats=R)\n"
        "STUDY = Study('small', '', {'R': (2, 3)}, mechanism, replicates=40_000_000, seed=5)\n"
    )
    code = "import sys; from secondorder.cli import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", code, "simulate", str(path), "--out", str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shards = tmp_path / "out" / "shards"
    deadline = time.monotonic() + 120
    while (
        process.poll() is None and time.monotonic() < deadline and not (shards.is_dir() and list(shards.glob("*.npz")))
    ):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = list(shards.glob("*.npz"))
    assert finished
    study = load_declared(path, "STUDY", Study)
    seen: list[int] = []
    few = run_study(
        study, replicates=REPLICATES, out=tmp_path / "out", resume=True, progress=lambda d, _: seen.append(d)
    )
    assert seen[0] > 0
    assert (few.data["sums"].values == whole.data["sums"].values).all()


def test_every_declared_study_can_be_read_and_prepared() -> None:
    for path in sorted((ROOT / "simulations").glob("*.py")):
        study = load_declared(path, "STUDY", Study)
        assert study.name == path.stem
        assert set(study.measures) <= set(MEASURES)
        first, *_, last = study.points()
        for point in (first, last):
            prepare(study.mechanism_at(point), study.estimands)


def test_sums_are_listed_once() -> None:
    assert len(set(SUMS)) == len(SUMS)
