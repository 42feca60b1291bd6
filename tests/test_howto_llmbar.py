"""The how-to on LLMBar: what it tells to type, on the real files, against a simulated judge."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from pathlib import Path

import pytest

import secondorder as so
from secondorder.acquire import SimulatedJudge, load_spec, read_items
from secondorder.cli import _run as command

PAGE = Path(__file__).resolve().parents[1] / "docs" / "howto" / "audit-llmbar.md"
SUBSETS = {
    "natural": "Natural",
    "neighbor": "Adversarial/Neighbor",
    "gptinst": "Adversarial/GPTInst",
    "gptout": "Adversarial/GPTOut",
    "manual": "Adversarial/Manual",
}


@pytest.mark.data
@pytest.mark.slow
def test_page_as_typed(data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, subset in SUBSETS.items():
        folder = tmp_path / "LLMBar" / "Dataset" / "LLMBar" / subset
        folder.mkdir(parents=True)
        shutil.copy(data_dir / "llmbar" / f"{name}.json", folder / "dataset.json")
    page = PAGE.read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    (spec,) = re.findall(r"```toml\n(.*?)```", page, re.S)
    monkeypatch.chdir(tmp_path)
    exec(code, {})
    with SimulatedJudge(process=False) as judge:
        assert '"http://127.0.0.1:8000/v1"' in spec
        Path("audit.toml").write_text(spec.replace("http://127.0.0.1:8000/v1", judge.base_url), encoding="utf-8")
        declared = load_spec("audit.toml")
        items = read_items(declared, tmp_path)
        assert Counter(item.stratum for item in items) == dict.fromkeys(
            (subset.rpartition("/")[2] for subset in SUBSETS.values()), 10
        )
        assert command(["run", "."]) == 0
    cube = so.open_cube("runs/llmbar/cube.nc")
    assert dict(cube.sizes) == {"judge": 1, "item": 50, "prompt": 6, "order": 2, "repeat": 4, "class": 4}
    assert int((cube.verdict >= 0).sum()) == 2400
    assert set(cube.gold.values.tolist()) == {"1", "2"}
    assert Path("runs/llmbar/report.html").stat().st_size > 10_000
