"""The doctor finds each fault of a judge before the audit begins, names it, and leaves no trace in an audit."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from pathlib import Path

import pytest

from secondorder._audit._doctor import Checkup, examine
from secondorder._audit._plan import load_audit, plan_audit
from secondorder.acquire import SimulatedJudge, messages_key, write_template
from secondorder.acquire._cache_signs import cache_signs
from secondorder.acquire._canary import CANARY, canary_requests
from secondorder.acquire._judge import Fault
from secondorder.acquire._judge._server import JudgeServer
from secondorder.acquire._reading import Completion
from secondorder.acquire._spec import JudgeSpec
from secondorder.cli import main
from secondorder.errors import EndpointError, KeyRefusedError, SpecError

from .small_audits import changed

SHAKY = {f"{k:016x}" * 3: 2.0**-16 for k in range(2**16)}
"""Answers to the canary: 65,536 texts of 48 characters. Seeds are fixed by the audit's, so that nothing is left to
chance; a judge without seeds gives one of three texts twice in one run of 21,845."""


def lay_out(folder: Path, url: str, *pairs: tuple[str, str]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_template(folder)
    spec = folder / "audit.toml"
    text = changed(spec.read_text(encoding="utf-8"), ("http://127.0.0.1:8000/v1", url), *pairs)
    spec.write_text(text, encoding="utf-8")
    return spec


def laws(folder: Path, answers: dict[str, float]) -> dict[str, dict[str, float]]:
    """Laws of the canary, and of every call of an audit."""
    spec = lay_out(folder / "plan", "http://127.0.0.1:1/v1")
    asked = {messages_key(json.loads(call.request)["messages"]) for call in plan_audit(load_audit(spec)).calls}
    return {messages_key(CANARY): SHAKY, **dict.fromkeys(asked, answers)}


@contextmanager
def examined(folder: Path, *faults: Fault, answers=None, pairs=(), **options):
    with SimulatedJudge(laws(folder, answers or {"A": 0.5, "B": 0.5}), faults, process=False, **options) as server:
        spec = lay_out(folder / "audit", server.base_url, *pairs)
        yield examine(load_audit(spec), pause_s=0.01), server.server, spec


def marks(checkup: Checkup) -> dict[str, str]:
    return {found.check: found.mark for found in checkup.findings if found.judge}


def seen(checkup: Checkup, check: str) -> str:
    return next(found.seen for found in checkup.findings if found.check == check)


NO_SEEDS = ("[judges.mine]", "[judges.mine]\nseeds = false")
WRONG_KEY = ("[judges.mine]", '[judges.mine]\nkey_env = "WRONG_KEY"')


def test_a_good_judge_passes_and_nothing_is_written(tmp_path):
    with examined(tmp_path) as (checkup, server, spec):
        assert not checkup.problems
        assert not checkup.failures
        assert checkup.sent == len(server.served) == 4
        assert len(set(server.served)) == 3  # one request twice
        planned = {call.request_sha256 for call in plan_audit(spec).calls}
        assert not planned & set(server.served)  # every call of the audit is still new
        assert {path.name for path in spec.parent.iterdir()} == {"audit.toml", "items.jsonl"}
    assert set(marks(checkup)) == {
        "endpoint",
        "model",
        "independence",
        "seeds",
        "response ids",
        "finish reason",
        "parser",
        "logprobs",
        "cost",
        "time",
    }
    assert seen(checkup, "seeds") == "same seed, same text: a call can be made again"
    assert seen(checkup, "logprobs") == "offered"
    said = seen(checkup, "parser")
    assert said.startswith("answer '")
    assert re.search(r"\(order (AB|BA)\) = class [12]", said) or "tie" in said
    assert "192 calls" in seen(checkup, "cost")


@pytest.mark.parametrize(
    ("kind", "pairs", "check", "words"),
    [
        ("cached", (), "independence", "response cache: the same answer, to the byte"),
        ("cached", (), "response ids", "2 of 3 answers share an id"),
        ("cached", (NO_SEEDS,), "response ids", "3 of 4 answers share an id"),
        ("proxy_cached", (), "independence", "response cache of a proxy: usage 0"),
        ("fixed_seed", (), "independence", "the text does not depend on the seed: fixed seed"),
        ("fixed_seed", (NO_SEEDS,), "independence", "the same request, the same text: fixed seed or cache"),
        ("duplicated", (), "independence", "the text does not depend on the seed: fixed seed, doubled answers"),
        ("duplicated", (NO_SEEDS,), "independence", "answers are delivered twice"),
    ],
)
def test_dependent_answers_are_found_and_named(tmp_path, kind, pairs, check, words):
    with examined(tmp_path, Fault(kind=kind), pairs=pairs) as (checkup, _, _):
        assert check in {found.check for found in checkup.problems}
        assert words in seen(checkup, check)
        assert all(found.remedy for found in checkup.problems)
        others = {found.check for found in checkup.problems} - {"independence", "response ids"}
        assert not others


def test_a_cache_of_whole_requests_ruins_calls_without_seeds_and_only_those(tmp_path):
    # The audit's own requests differ in their seeds: a cache that keys on all of a request never answers for another.
    cache: dict[bytes, bytes] = {}
    fresh = JudgeServer._complete

    def cached(self, request, fault):
        key = json.dumps(request, sort_keys=True).encode()
        return cache.setdefault(key, fresh(self, request, fault))

    for folder, pairs, mark in (("seeds", (), "ok"), ("none", (NO_SEEDS,), "problem")):
        cache.clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(JudgeServer, "_complete", cached)
            with examined(tmp_path / folder, pairs=pairs) as (checkup, _, _):
                assert marks(checkup)["independence"] == mark
                if folder == "seeds":
                    assert seen(checkup, "seeds") == "the same bytes come from a cache"
                    assert not checkup.problems


def test_without_seeds_other_answers_to_the_same_bytes_are_right(tmp_path):
    # Without a seed the judge draws afresh: three answers coincide by chance in one run of 21,845.
    with examined(tmp_path, pairs=(NO_SEEDS,)) as (checkup, server, _):
        assert marks(checkup)["independence"] == "ok"
        assert "seeds" not in marks(checkup)
        assert len(set(server.served)) == 2


def test_what_a_short_or_greedy_judge_says_tells_nothing(tmp_path):
    with examined(tmp_path / "greedy", pairs=[("temperature = 1.0", "temperature = 0")]) as (checkup, _, _):
        assert marks(checkup)["independence"] == "note"
        assert "as temperature = 0 makes it" in seen(checkup, "independence")
        assert not checkup.problems
    with examined(tmp_path / "empty", Fault(kind="empty")) as (checkup, _, _):
        assert "cannot tell" in seen(checkup, "independence")
        assert seen(checkup, "parser").startswith("⊥ empty")


@pytest.mark.parametrize(
    ("fault", "answers", "found"),
    [
        (None, {"Well, it depends.": 1.0}, {"parser": "⊥ unparsed: 'Well, it depends.'"}),
        (None, {"A or B": 1.0}, {"parser": "⊥ ambiguous"}),
        ("truncated", None, {"parser": "⊥ truncated", "finish reason": "length: cut at the token limit"}),
        ("refusal", None, {"parser": "⊥ refusal"}),
        ("filtered", None, {"parser": "⊥ filtered"}),
    ],
)
def test_answers_that_the_audit_cannot_use_are_found(tmp_path, fault, answers, found):
    faults = [] if fault is None else [Fault(kind=fault, contains='"logprobs"')]
    with examined(tmp_path, *faults, answers=answers) as (checkup, _, _):
        assert {problem.check for problem in checkup.problems} == set(found)
        for check, words in found.items():
            assert seen(checkup, check).startswith(words)


def test_a_server_that_changes_between_calls_is_found(tmp_path, monkeypatch):
    answers = iter(range(9))
    fresh = JudgeServer._complete
    monkeypatch.setattr(
        JudgeServer,
        "_complete",
        lambda self, request, fault: fresh(self, request, fault).replace(
            b'"system_fingerprint":"simulated"', f'"system_fingerprint":"fp{next(answers) // 2}"'.encode()
        ),
    )
    with examined(tmp_path) as (checkup, _, _):
        assert seen(checkup, "model") == "fingerprint changed within 4 calls"
        assert marks(checkup)["model"] == "problem"


def test_logprobs_are_seen_where_they_come_and_where_they_are_refused(tmp_path, monkeypatch):
    fresh = JudgeServer._complete

    def with_logprobs(self, request, fault):
        content = (
            b'{"content":[{"token":"A","logprob":-0.1,"top_logprobs":[]}]}' if request.get("logprobs") else b"null"
        )
        return fresh(self, request, fault).replace(b'"logprobs":null', b'"logprobs":' + content)

    with monkeypatch.context() as patch:
        patch.setattr(JudgeServer, "_complete", with_logprobs)
        with examined(tmp_path / "yes") as (checkup, _, _):
            assert seen(checkup, "logprobs") == "offered"
    with examined(tmp_path / "no", Fault(kind="status", status=400, contains='"logprobs"')) as (checkup, server, spec):
        assert not {call.request_sha256 for call in plan_audit(spec).calls} & set(server.served)
        assert seen(checkup, "logprobs") == "not offered"
        assert checkup.sent == len(server.served) == 5
        assert not checkup.problems


def test_failures_of_the_world_end_with_an_error_that_names_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCTOR_KEY", "right-key-0123456789")
    with pytest.raises(SpecError, match="WRONG_KEY is not set"), examined(tmp_path / "a", pairs=(WRONG_KEY,)):
        pass
    monkeypatch.setenv("WRONG_KEY", "wrong-key-0123456789")
    with examined(tmp_path / "b", pairs=(WRONG_KEY,), key_env="DOCTOR_KEY") as (checkup, _, _):
        (failure,) = checkup.failures
        assert isinstance(failure, KeyRefusedError)
        assert "check the key in WRONG_KEY" in str(failure)
        assert "wrong-key" not in f"{checkup} {failure}"
        assert marks(checkup) == {"endpoint": "failed"}
        assert checkup.sent == 1, "a request that was refused was sent all the same"
    for status, words in ((503, "3 tries"), (404, "check base_url and model"), (400, "it rejects the request")):
        with examined(tmp_path / str(status), Fault(kind="status", status=status)) as (checkup, server, _):
            assert words in str(checkup.failures[0])
            assert len(server.served) == (3 if status == 503 else 1)
    with examined(tmp_path / "once", Fault(kind="status", status=429, retry_after="0.01", per_call=1)) as (
        checkup,
        _,
        _,
    ):
        assert not checkup.failures
    (failure,) = examine(load_audit(lay_out(tmp_path / "gone", "http://127.0.0.1:9/v1")), pause_s=0.01).failures
    assert isinstance(failure, EndpointError)
    assert "cannot connect" in str(failure)


def test_one_judge_that_fails_does_not_hide_another(tmp_path):
    with SimulatedJudge(laws(tmp_path, {"A": 1.0}), process=False) as server:
        spec = lay_out(tmp_path / "audit", server.base_url)
        text = spec.read_text(encoding="utf-8")
        start = text.index("[judges.mine")
        other = (
            text[start : text.index("[items]")]
            .replace("judges.mine", "judges.gone")
            .replace(server.base_url, "http://127.0.0.1:9/v1")
        )
        spec.write_text(text.replace("[items]", other + "\n[items]"), encoding="utf-8")
        checkup = examine(load_audit(spec), pause_s=0.01)
    assert {found.judge: found.mark for found in checkup.findings if found.check == "endpoint"} == {
        "mine": "ok",
        "gone": "failed",
    }
    assert len(checkup.failures) == 1


def test_the_command_prints_one_table_and_its_exit_code_says_what_was_found(tmp_path, capsys):
    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["doctor", *arguments])
        return int(ended.value.code or 0), *capsys.readouterr()

    with examined(tmp_path / "good") as (_, _, spec):
        code, out, err = run(str(spec.parent))
        assert (code, err) == (0, "")
        assert out.splitlines()[0].split() == ["judge", "check", "seen"]
        assert "4 requests were sent; none is part of the audit." in out
    with examined(tmp_path / "bad", Fault(kind="fixed_seed")) as (_, _, spec):
        code, out, _ = run(str(spec))
        assert code == 1
        assert "problem: mine independence: without independent answers" in out
    code, out, err = run(str(spec))  # the judge is gone
    assert code == 3
    assert (out + err).count("cannot connect") == (out + err).count("start the server") == 1
    spec.write_text("schema = 1", encoding="utf-8")
    assert run(str(spec))[0] == 2
    assert run(str(tmp_path / "nowhere"))[0] == 2


def test_the_canary_keeps_the_judges_sampling_and_has_room_to_answer():
    body = {"temperature": 0.7, "top_p": 0.9, "max_completion_tokens": 4, "response_format": {"type": "json_object"}}
    judge = JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:1/v1", model="m", seeds=True, body=body)
    one, two = (json.loads(request) for request in canary_requests("mine", judge, 1))
    assert {key: one[key] for key in ("temperature", "top_p", "max_completion_tokens")} == {
        "temperature": 0.7,
        "top_p": 0.9,
        "max_completion_tokens": 128,
    }
    assert "response_format" not in one
    assert one["seed"] != two["seed"]
    free = JudgeSpec(endpoint="openai-chat", base_url="http://127.0.0.1:1/v1", model="m", seeds=False)
    assert len(set(canary_requests("mine", free, 1))) == 1


@pytest.mark.parametrize(
    ("headers", "usage", "signs"),
    [
        ({"cf-aig-cache-status": "HIT"}, 3, ["cf-aig-cache-status: HIT"]),
        ({"cf-aig-cache-status": "MISS", "x-cache": "Miss from cloudfront"}, 3, []),
        ({"x-cache-hit": "false", "age": "0"}, 3, []),
        ({}, 0, ["usage 0"]),
        ({}, None, []),
    ],
)
def test_signs_of_a_cache(headers, usage, signs):
    answer = Completion(text="A", prompt_tokens=usage, completion_tokens=usage)
    assert cache_signs(answer, headers) == signs
