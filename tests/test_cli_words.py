"""Refusals on the command line name the flag where the package names an argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from secondorder.cli import _run
from secondorder.cli._words import in_flags
from secondorder.errors import InputError

TABLE = "item,prompt,run,v\n" + "".join(
    f"{item},{prompt},{run},{'12'[(item == 'q1') ^ (run == '0')]}\n"
    for item in ("q1", "q2")
    for prompt in ("a", "b")
    for run in "01"
)
ROLES = ["--item", "item", "--facet", "prompt", "--verdict", "v"]
REPEAT = ["--repeat", "run"]
NOMINAL = ["--kernel", "nominal"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["test", *ROLES, *REPEAT, *NOMINAL, "--hypothesis", "judges"], "give two judges at least: --by judge"),
        (["check", *ROLES, "--number-repeats", *NOMINAL], "name the column of the repeat index (--repeat), or use"),
        (["decompose", "--item", "item", "--verdict", "v", *REPEAT, *NOMINAL], "--facet: no facet is named"),
        (
            ["decompose", *ROLES, *REPEAT, "--classes", "1", *NOMINAL],
            "(--invalid LABEL: ⊥) or a missing one (--missing LABEL)",
        ),
        (["decompose", *ROLES, *REPEAT, "--kernel", "ordinal", "--classes", "1,2", "--level", "3"], "--level: "),
        (["decompose", *ROLES, *REPEAT, *NOMINAL, "--level", "95"], "--level: 95.0 is not between 0 and 1"),
        (
            ["decompose", *ROLES, *REPEAT, *NOMINAL, "--covers", "calls", "--interval", "bca"],
            "--interval: a bca band covers resampled items, not calls; use --interval t with --covers calls",
        ),
        (
            ["decompose", *ROLES, *REPEAT, "--kernel", "ordinal", "--classes", "1,3,2"],
            "--kernel ordinal: the classes are numbers",
        ),
        (["budget", *ROLES, *REPEAT, *NOMINAL, "--se", "prompt=-1"], "--se prompt: -1"),
        (["study agreement", *ROLES, *REPEAT, "--coefficient", "kappa"], "--coefficient: unknown coefficient 'kappa'"),
        (["study agreement", *ROLES, *REPEAT, "--invalid", "1", "--metric", "interval"], "--metric interval: invalid"),
        (["study aggregate", *ROLES, *REPEAT, "--rule", "best"], "--rule: rules ['best']"),
    ],
)
def test_a_refusal_names_the_flag(
    line: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "calls.csv"
    table.write_text(TABLE, encoding="utf-8")
    assert _run([*line[0].split(), str(table), *line[1:]]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "flags", "said"),
    [
        ("invalid='missing'", ["--invalid", "--invalid-as"], "--invalid-as missing"),
        ('invalid=[""]', ["--invalid", "--invalid-as"], "--invalid ''"),
        ("weights='linear'", ["--weight", "--weights"], "--weights linear"),
        ("kind='random'", ["--random"], "--random COL"),
        ("scales={'likert': (lo, hi)}", ["--bounds"], "--bounds likert=LO,HI"),
        ("first={order: class}", ["--first"], "--first ORDER=CLASS"),
        ("valid=(1, 7)", ["--valid"], "--valid 1,7"),
        ("coefficients=['kappa']", ["--draws"], "coefficients=['kappa']"),
        ("judge 'by=x' and so.by=x", ["--x"], "judge 'by=x' and so.by=x"),
        ("--where judge=x", ["--where"], "--where judge=x"),
        ("draws=-3 and level=0.9.", ["--draws", "--level"], "--draws -3 and --level 0.9."),
        ("item=3, level=easy", ["--item", "--level"], "item=3, level=easy"),
        ("level=1-5, level=3.5-turbo", ["--level"], "level=1-5, level=3.5-turbo"),
    ],
)
def test_arguments_become_flags_where_the_command_has_them(text: str, flags: list[str], said: str) -> None:
    assert in_flags(InputError(text, remedy=text), flags) == f"{said}; {said}"
    assert str(InputError(text)) == text
