"""The package as a whole: what importing it costs, what it promises by name, and what its README shows."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import inspect
import re
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import secondorder as so
from secondorder import errors

ROOT = Path(__file__).resolve().parents[1]
HEAVY = ("arviz_base", "arviz_stats", "jax", "matplotlib", "numpy", "pandas", "scipy", "xarray")
ERRORS = sorted(errors.__all__)


def public_names() -> list[str]:
    tree = ast.parse((ROOT / "secondorder" / "__init__.pyi").read_text(encoding="utf-8"))
    return [name.asname or name.name for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names]


def loaded_by(code: str) -> set[str]:
    """Heavy packages that a fresh interpreter has loaded after running `code`."""
    report = f"{code}\nimport sys\nprint(*(name for name in {HEAVY!r} if name in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", report], capture_output=True, text=True, cwd=ROOT, check=True)
    return set(done.stderr.split())


def test_import_loads_nothing_heavy() -> None:
    assert loaded_by("import secondorder; dir(secondorder); secondorder.__version__; secondorder.Facet") == set()


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["decompose", "--help"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    code = f"from secondorder.cli import main\ntry: main({arguments!r})\nexcept SystemExit as end: assert not end.code"
    assert loaded_by(code) == set()


def test_the_check_on_imports_can_fail() -> None:
    assert loaded_by("import secondorder; secondorder.decompose") >= {"jax", "numpy", "xarray"}


def test_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "secondorder", "--help"], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert "decompose" in done.stdout
    assert done.stderr == ""


def test_every_public_name_stands_in_the_one_list() -> None:
    names = public_names()
    assert len(names) == len(set(names))
    assert set(so.__all__) == {*names, "__version__"}


@pytest.mark.parametrize("name", public_names())
def test_public_name_resolves_and_is_documented(name: str) -> None:
    thing = getattr(so, name)
    collected = name.startswith("test_") or (name.startswith("Test") and getattr(thing, "__test__", True))
    assert not collected, f"pytest would collect {name} in users' own tests: __test__ = False"
    doc = inspect.getdoc(thing) or ""
    assert doc.splitlines()[0].strip().endswith((".", "?")), f"{name} needs a first line that says what it is"
    if inspect.isfunction(thing):
        assert thing.__name__ == name
        parameters = list(inspect.signature(thing).parameters.values())
        section = doc.partition("Parameters\n----------\n")[2].partition("\n\n")[0] if parameters else ""
        documented = {
            word.lstrip("*")
            for line in section.splitlines()
            if line and not line.startswith(" ")
            for word in re.split(r"[ ,:]+", line.partition(" : ")[0])
        }
        absent = {parameter.name for parameter in parameters} - documented
        assert not absent, f"{name} does not document {sorted(absent)}"
        assert inspect.signature(thing).return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("name", [name for name in public_names() if inspect.isfunction(getattr(so, name))])
def test_public_function_shows_an_example(name: str) -> None:
    assert ">>> " in (inspect.getdoc(getattr(so, name)) or "")


@pytest.mark.parametrize("name", ERRORS)
def test_error_names_place_value_and_remedy_and_has_a_code(name: str) -> None:
    kind = getattr(errors, name)
    error = kind("'x' is not a number", place="calls.csv row 7", remedy="give a number")
    assert str(error) == "calls.csv row 7: 'x' is not a number; give a number"
    expected = 2 if issubclass(kind, errors.InputError) else 3 if issubclass(kind, errors.WorldError) else 1
    assert error.exit_code == expected


def test_floors_hold() -> None:
    if importlib.util.find_spec("importlinter") is None:
        pytest.skip('import-linter is not here: pip install -e ".[dev]"')
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports; raise SystemExit(lint_imports())"],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\b[1-9]\d* kept, 0 broken", done.stdout)


def test_constraints_hold_names_and_versions_alone() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = [line.partition("==")[0] for line in lines]
    assert names == sorted(set(names))
    assert [line for line in lines if not re.fullmatch(r"[a-z0-9-]+==[0-9a-z.!+]+", line)] == []


def keys_of(spec: type) -> set[str]:
    """Keys of a structure of audit.toml and of all structures inside it."""
    found = set()
    for name, kind in typing.get_type_hints(spec).items():
        found.add(name)
        for inner in re.findall(r"_spec\.(\w+)", repr(kind)):
            found |= keys_of(getattr(sys.modules[spec.__module__], inner))
    return found


def test_reference_names_every_key_of_the_specification() -> None:
    from secondorder.acquire import AuditSpec

    page = (ROOT / "docs" / "reference" / "audit-toml.md").read_text(encoding="utf-8")
    # Keys stand in code: alone, as table.key, as a table's heading, or in an inline table.
    named = {word for code in re.findall(r"`([^`]*)`", page) for word in re.findall(r"\w+", code)}
    keys = keys_of(AuditSpec)
    assert len(keys) > 50
    assert sorted(keys - named) == []


def test_every_small_decision_stands_once() -> None:
    page = (ROOT / "docs" / "reference" / "decisions.md").read_text(encoding="utf-8")
    numbers = sorted(int(number) for number in re.findall(r"^A(\d+)\.", page, re.M))
    assert numbers == list(range(1, 32))


def test_readme_example_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of the README, line by line, with the values that its comments promise."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    monkeypatch.chdir(ROOT)
    space: dict[str, object] = {}
    promised = 0
    for node in ast.parse(block).body:
        source = ast.get_source_segment(block, node)
        assert source is not None
        comment = block.splitlines()[(node.end_lineno or 0) - 1].partition("  # ")[2]
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d+", comment)]
        if isinstance(node, ast.Expr) and numbers:
            value = eval(source, space)
            values = list(value) if isinstance(value, tuple) else [value]
            digits = [len(number.partition(".")[2]) for number in re.findall(r"-?\d+\.\d+", comment)]
            assert [round(float(x), d) for x, d in zip(values, digits, strict=True)] == numbers, source
            promised += 1
        else:
            exec(source, space)
    assert promised >= 2


def test_shipped_table_is_what_its_script_writes(tmp_path: Path) -> None:
    script = ROOT / "docs" / "tutorials" / "make_helpdesk.py"
    fresh = tmp_path / "helpdesk.csv"
    subprocess.run([sys.executable, str(script), str(fresh)], check=True)
    shipped = ROOT / "secondorder" / "_shipped_data" / "helpdesk.csv"
    assert fresh.read_bytes() == shipped.read_bytes()


def result_classes() -> list[type]:
    """Public classes of data that say themselves how they print."""
    spaces = [so, *(getattr(so, name) for name in ("interop", "simulate", "studies"))]
    found = {value for space in spaces for name in dir(space) if isinstance(value := getattr(space, name), type)}
    kept = [kind for kind in found if dataclasses.is_dataclass(kind) and "__str__" in vars(kind)]
    return sorted(kept, key=lambda kind: (kind.__module__, kind.__name__))


def test_there_are_result_classes() -> None:
    assert {so.Comparison, so.Decomposition, so.TestResult, so.studies.StudyResult} <= set(result_classes())


@pytest.mark.parametrize("kind", result_classes(), ids=lambda kind: kind.__name__)
def test_a_result_is_shown_as_it_prints(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kind, "__str__", lambda self: "the table")
    assert repr(object.__new__(kind)) == "the table"
