"""`ledger verify` and `ledger export`: what differs is said, and what is exported is what was run."""

from __future__ import annotations

import json
import re

import pytest

from .conftest import CALLS, error_of


def test_ledger_verify_says_what_differs(run, say):
    code, out, _ = say("ledger", "verify", run)
    assert code == 0
    assert "48 calls, 48 ended; it is what it and its manifest state" in out
    data = json.loads((run / "manifest.json").read_bytes())
    data["calls"] += 1
    (run / "manifest.json").write_text(json.dumps(data), encoding="utf-8")
    code, out, _ = say("ledger", "verify", run / "ledger.sqlite")
    assert code == 1
    assert "1 difference\nmanifest manifest_sha256: stated " in out
    (run / "manifest.json").unlink()
    code, out, _ = say("ledger", "verify", run)
    assert code == 0
    assert "no manifest is beside it" in out


def test_ledger_verify_reads_every_verdict_again(run, say):
    import sqlite3

    connection = sqlite3.connect(run / "ledger.sqlite")
    connection.execute("DROP TRIGGER attempt_no_update")
    connection.execute(
        "UPDATE attempt SET verdict = CASE verdict WHEN '1' THEN '2' ELSE '1' END "
        "WHERE seq = (SELECT min(seq) FROM attempt WHERE status = 'valid')"
    )
    connection.commit()
    connection.close()
    code, out, _ = say("ledger", "verify", run)
    assert code == 1
    assert re.search(r"^call \w+ attempt 1 outcome: stated .*verdict='", out, re.M)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_ledger_export(run, say, tmp_path, suffix):
    target = tmp_path / f"calls{suffix}"
    code, out, err = say("ledger", "export", run, "--output", target, "--no-bodies")
    assert (code, out) == (0, f"{target}\n")
    assert "48 outcomes" in err
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
        assert len(rows) == CALLS
        assert "request" not in rows[0]
        code, out, _ = say(
            *("decompose", target, "--item", "item", "--facet", "prompt", "--facet", "order", "--repeat", "repeat"),
            *("--verdict", "verdict", "--classes", "1,2,tie", "--invalid", "", "--by", "judge"),
        )
        assert code == 0
        assert out.splitlines()[2:6] == say("decompose", run)[1].splitlines()[2:6], "the same digits from the table"
    code, _, err = say("ledger", "export", run, "--output", tmp_path / "calls.xls")
    assert code == 2
    assert ".jsonl or .parquet" in error_of(err)
