"""The installed package, without its sources: run from an empty folder with the base dependencies alone."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata, resources
from pathlib import Path

import pytest

import secondorder as so

TABLE = resources.files("secondorder._shipped_data") / "helpdesk.csv"
FLAGS = [
    *("--item", "question", "--facet", "prompt", "--facet", "order", "--repeat", "run", "--verdict", "winner"),
    *("--classes", "old,new,tie", "--invalid", "", "--by", "judge"),
]


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "secondorder", *arguments], capture_output=True, text=True, cwd=folder, timeout=300
    )


def test_version_is_that_of_the_distribution() -> None:
    assert so.__version__ == metadata.version("secondorder")


def test_package_is_typed() -> None:
    assert (resources.files("secondorder") / "py.typed").is_file()
    assert (resources.files("secondorder") / "__init__.pyi").is_file()


def test_decompose_from_the_shipped_table_to_files(tmp_path: Path) -> None:
    with resources.as_file(TABLE) as table:
        done = run("decompose", str(table), *FLAGS, "--format", "json", "--output", "found.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    groups = {group["by"]["judge"]: group for group in json.loads(done.stdout)["groups"]}
    plover = {part["component"]: part for part in groups["plover"]["components"]}
    # Exact: the pair form in fractions on the 768 calls of this judge.
    assert round(plover["prompt"]["estimate"], 12) == 0.001220703125
    assert round(plover["prompt"]["plugin"] - plover["prompt"]["estimate"], 12) == round(
        3 / 32 * plover["call"]["estimate"], 12
    )
    assert (tmp_path / "found.csv").read_text(encoding="utf-8").count("\n") == 11


def test_demo_leaves_a_whole_audit(tmp_path: Path) -> None:
    done = run("demo", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    left = {path.name for path in (tmp_path / "secondorder-demo").iterdir()}
    assert left >= {"audit.toml", "manifest.json", "ledger.sqlite", "cube.nc", "estimates.nc", "report.html"}
    again = run("ledger", "verify", "secondorder-demo", folder=tmp_path)
    assert again.returncode == 0, again.stdout


@pytest.mark.parametrize(("command", "name"), [("simulate", "paper_calibration"), ("validate", "unbiased_exact")])
def test_studies_and_claims_ship_with_the_package(command: str, name: str, tmp_path: Path) -> None:
    shipped = (resources.files("secondorder") / "_shipped").is_dir()
    # In a checkout they stand beside the package instead.
    done = run(command, "--list", folder=tmp_path if shipped else Path(so.__file__).parents[1])
    assert done.returncode == 0, done.stderr
    assert name in done.stdout


def test_bad_input_is_one_line_and_exit_2(tmp_path: Path) -> None:
    with resources.as_file(TABLE) as table:
        done = run("decompose", str(table), *FLAGS[2:], "--item", "querstion", folder=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "querstion" in done.stderr
