"""Runs of studies: digits that depend on the study alone, resuming, and results on disk."""

from __future__ import annotations

import re
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

import secondorder as so
from secondorder.errors import CorruptFileError, SpecError
from secondorder.simulate import Study, StudyResult, _shards, bias_figure, open_study_result, run_study, with_levels

from .conftest import REPLICATES, STUDY, mechanism, same


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


def test_foreign_and_broken_shards_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = {"replicates": 50, "out": tmp_path}
    run_study(STUDY, **few)
    other = Study("small", "Is it unbiased?", {"R": (2, 3)}, mechanism, replicates=50, seed=6)
    with pytest.raises(SpecError, match="belong to study small"):
        run_study(other, resume=True, **few)
    with monkeypatch.context() as later:
        later.setattr(_shards, "__version__", "99.0")
        with pytest.raises(SpecError, match=rf"made by version {re.escape(so.__version__)}, this is 99\.0"):
            run_study(STUDY, resume=True, **few)
    shard = next((tmp_path / "shards").glob("*.npz"))
    content = shard.read_bytes()
    shard.write_bytes(content.replace(so.__version__.encode(), b"9" * len(so.__version__)))
    with pytest.raises(CorruptFileError, match=r"CRC.*delete it and resume"):
        run_study(STUDY, resume=True, **few)
    shard.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorruptFileError, match="delete it and resume"):
        run_study(STUDY, resume=True, **few)


def test_results_are_saved_and_read_back(whole: StudyResult, tmp_path: Path) -> None:
    paths = whole.save(tmp_path)
    again = open_study_result(paths[0])
    assert same(whole, again)
    assert same(whole, open_study_result(tmp_path))
    assert again.factors == ("R",)
    table = whole.table()
    assert set(table["measure"]) == {
        *("bias", "empirical_se", "mse", "mse_ratio", "negative", "failure", "interval_failure")
    }
    assert paths[1].read_text().startswith("R,estimator,estimand,measure,value,mcse,truth\n")
    assert "small: 20000 replicates per point" in str(again)
    assert len(bias_figure(again).axes) == 5
    lines = str(again).splitlines()
    assert max(map(len, lines)) <= 100
    assert "…" not in str(again)
    # Five estimands with their truths; one item has no interval, which a line says once.
    assert [line for line in lines if line in again.data.estimand.values] == [*again.data.estimand.values]
    assert sum("truth" in line for line in lines) == 5
    assert "interval_failure" not in str(again)
    assert "intervals: none, of no method in any replicate" in lines
    (tmp_path / "broken.nc").write_bytes(b"no")
    with pytest.raises(CorruptFileError, match=r"broken\.nc"):
        open_study_result(tmp_path / "broken.nc")
