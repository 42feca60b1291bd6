"""What reaches a terminal, a closed stream or a page: any label, in any encoding, and none that acts."""

from __future__ import annotations

import builtins
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from secondorder._labels._results import Table, render_table
from secondorder._visible import visible
from secondorder.cli import _run
from secondorder.cli._streams import make_ready, say, show, show_json
from secondorder.errors import InputError

CLEAR = "\x1b[2J"
ACTING = [CLEAR, "\x07", "\x9b2J", "\x7f", "\u202e", "\u2066", "\ud800"]


def encoded(encoding: str, errors: str = "strict") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors)


def written(stream: Any) -> bytes:
    stream.flush()
    found: bytes = stream.buffer.getvalue()
    return found


@pytest.mark.parametrize("text", ACTING)
def test_characters_that_act_are_shown(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = visible(text)
    assert shown.isprintable()
    assert shown.startswith("\\")
    table = Table("of " + text, (text, "number"), ((f"q{text}1", 1.0), ("q2", 2.0)), ("a note " + text,))
    for line in render_table(table).splitlines():
        assert line.isprintable()
    # Columns stay aligned: the width is that of what is shown.
    assert len({len(line) for line in render_table(table).splitlines()[1:4]}) == 1
    assert str(InputError(f"column {text!s}x", place=text)).isprintable()
    show(f"{text}\nnext")
    say(text)
    out, err = capsys.readouterr()
    assert out.splitlines() == [shown, "next"]
    assert err == f"{shown}\n"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_every_encoding_takes_every_text(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {"class": "⊥", "item": "café 🙂 \ud83d"}
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, encoded(encoding))
    make_ready()
    show_json(plain)
    out = written(sys.stdout)
    assert json.loads(out.decode(encoding)) == plain, "JSON stays JSON"
    say("⊥")
    assert written(sys.stderr).decode(encoding).strip() == ("⊥" if encoding == "utf-8" else "\\u22a5")


def test_closed_streams_are_the_null_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    make_ready()
    show("nobody reads this")
    say("nor this")
    assert _run(["decompose", "-", "--item", "q", "--repeat", "r", "--verdict", "v", "--facet", "p"]) == 2
    for name in ("stdin", "stdout", "stderr"):
        getattr(sys, name).close()


def test_the_exit_code_outlives_closed_streams(tmp_path: Path) -> None:
    command = f"{sys.executable} -m secondorder decompose {tmp_path}/none.csv --item q --verdict v --repeat r --facet p"
    for closed in (">&- 2>&-", "2>&-"):
        assert subprocess.run(["bash", "-c", f"{command} {closed} <&-"], check=False).returncode == 2


def test_too_little_memory_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: Any) -> None:
        raise MemoryError("Unable to allocate 37 GiB")

    monkeypatch.setattr("secondorder.cli._source.open_source", refuse)
    assert _run(["decompose", "calls.csv"]) == 3
    err = capsys.readouterr().err
    assert "Unable to allocate 37 GiB" in err
    assert len(err.splitlines()) == 1


def test_an_interrupt_while_loading_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from secondorder.__main__ import main

    real = builtins.__import__

    def interrupted(name: str, *more: Any, **named: Any) -> Any:
        if name == "secondorder.cli":
            raise KeyboardInterrupt
        return real(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 130
    assert capsys.readouterr().err == "secondorder: interrupted\n"


def test_a_page_shows_what_would_hide() -> None:
    from secondorder._labels._results import Section
    from secondorder.report._html import sections_html

    page = sections_html("x" + CLEAR, "y\u202e", {"a": Section("A", CLEAR, (Table("", ("c",), (("\x9b",),)),))})
    assert visible(page, keep="\t\n\r") == page
    assert "x\\x1b[2J" in page
    assert "y\\u202e" in page
    assert "\\x9b" in page


def test_numbers_with_their_errors_are_never_cut():
    row = ("a name that is long enough to be broken somewhere", "0.000224(12)", "-0.0000566(120)", "–", "1,234.5")
    table = Table("", ("factor", "bias", "empirical_se", "mse_ratio", "calls"), (row, row))
    lines = render_table(table, width=64).splitlines()
    assert max(map(len, lines)) <= 64
    assert sum(line.split()[-4:] == list(row[1:]) for line in lines) == 2
    # The sentence goes on below, and the numbers stand once.
    first, *more = render_table(Table("", ("", "n"), ((row[0], 7),)), width=20).splitlines()[1:]
    assert first.split()[-1] == "7"
    assert " ".join([first.removesuffix("7"), *more]).split() == row[0].split()


def test_a_terminal_breaks_notes_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from secondorder.cli._streams import say

    note = f"warning: {'some words ' * 20}in /a/{'long-' * 30}path"
    say(note)
    assert capsys.readouterr().err == f"{note}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    say(note)
    *lines, path = capsys.readouterr().err.splitlines()
    assert max(map(len, lines)) <= 60
    assert path.split() == [note.split()[-1]]
