"""The simulated judge answers by its law, couples calls by their seeds, and fails as it is told to."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import urllib.error
import urllib.request
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondorder._canon import blake2b_64
from secondorder.acquire._judge import (
    Fault,
    SimulatedJudge,
    derived_law,
    draw,
    messages_key,
    read_laws,
    uniform_of_seed,
    write_laws,
)
from secondorder.acquire._judge._faults import FAULT_HEADER, fault_of_header, read_faults
from secondorder.errors import InputError, SchemaError

MESSAGES = [{"role": "user", "content": "A or B?"}]
OTHER = [{"role": "user", "content": "B or A?"}]
LAW = {"A": 0.5, "B": 0.25, "TIE": 0.125, "neither": 0.125}


def ask(base_url: str, messages=MESSAGES, headers: dict[str, str] | None = None, **fields) -> tuple[int, dict]:
    body = json.dumps({"model": "toy", "messages": messages, **fields}).encode()
    request = urllib.request.Request(f"{base_url}/chat/completions", body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def text(answer: tuple[int, dict], index: int = 0) -> str:
    return answer[1]["choices"][index]["message"]["content"]


# -- the law ----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 8), min_size=1, max_size=6).filter(any))
def test_each_text_owns_as_much_of_the_unit_interval_as_its_probability(weights):
    # Exact: the texts' intervals, counted on a grid that is fine enough to hold every boundary.
    total = sum(weights)
    law = {f"text {place}": weight / total for place, weight in enumerate(weights)}
    cells = Counter(draw(law, (place + 0.5) / (64 * total)) for place in range(64 * total))
    shares = {name: Fraction(count, 64 * total) for name, count in cells.items()}
    assert shares == {f"text {place}": Fraction(w, total) for place, w in enumerate(weights) if w}


def test_rounding_never_leaves_the_law():
    third = {"A": 1 / 3, "B": 1 / 3, "C": 1 / 3 - 1e-12, "never": 0.0}
    assert draw(third, math.nextafter(1.0, 0.0)) == "C"


def test_the_number_of_a_seed_is_its_hash_and_a_function_of_the_low_32_bits():
    assert uniform_of_seed(12345) == blake2b_64(12345) / 2**64
    assert uniform_of_seed(12345 + 2**32) == uniform_of_seed(12345)


def test_numbers_of_successive_seeds_are_uniform():
    # Kolmogorov's distance of 20,000 numbers; fixed input, so it either holds or not. A shift of .02 would show.
    numbers = sorted(uniform_of_seed(seed) for seed in range(1, 20_001))
    distance = max(abs(number - place / 20_000) for place, number in enumerate(numbers))
    assert distance < 0.0115  # the 99 % point of the law of truly uniform numbers


def test_messages_that_no_file_names_have_a_law_of_their_own():
    laws = [derived_law(messages_key([{"role": "user", "content": str(number)}])) for number in range(400)]
    assert all(math.isclose(sum(law.values()), 1.0) for law in laws)
    assert derived_law("x") == derived_law("x") != derived_law("y")
    # Uniform on the simplex of four texts: each has mean 1/4 (sd .194; five standard errors, false alarm below 2e-6).
    for name in laws[0]:
        assert abs(sum(law[name] for law in laws) / 400 - 0.25) < 5 * 0.194 / 20


def test_the_address_is_of_content_not_of_spelling():
    spelled = json.loads('[ {"content": "A or B\\u003f",  "role":"user"} ]')
    assert messages_key(spelled) == messages_key(MESSAGES) != messages_key(OTHER)


# -- law files --------------------------------------------------------------------------------------------------------


def test_a_law_file_comes_back_in_its_order(tmp_path):
    write_laws(tmp_path / "laws.json", {messages_key(MESSAGES): LAW})
    (law,) = read_laws(tmp_path / "laws.json").values()
    assert list(law.items()) == list(LAW.items())


@pytest.mark.parametrize("law", [{"A": 0.5, "B": 0.4}, {"A": 1.5, "B": -0.5}, {}, {"A": float("nan")}])
def test_what_is_no_distribution_is_refused_not_renormalised(tmp_path, law):
    with pytest.raises(InputError, match="sum to"):
        write_laws(tmp_path / "laws.json", {"k": law})
    (tmp_path / "laws.json").write_text(json.dumps({"schema": "secondorder.laws/1", "laws": {"k": law}}))
    with pytest.raises(InputError, match=r"sum to|not JSON"):
        read_laws(tmp_path / "laws.json")


def test_other_files_are_refused_by_name(tmp_path):
    path = tmp_path / "laws.json"
    with pytest.raises(InputError, match=r"laws\.json"):
        read_laws(path)
    for content, error in (("{", InputError), ("[]", SchemaError), ('{"schema":"secondorder.laws/2"}', SchemaError)):
        path.write_text(content)
        with pytest.raises(error, match=r"laws\.json"):
            read_laws(path)
    path.write_text('[{"kind": "lightning"}]')
    with pytest.raises(InputError, match="not a fault file"):
        read_faults(path)


# -- answers over HTTP ------------------------------------------------------------------------------------------------


def test_a_seeded_answer_is_the_inverse_distribution_at_the_seeds_number():
    laws = {messages_key(MESSAGES): LAW, messages_key(OTHER): LAW}
    with SimulatedJudge(laws, process=False) as judge:
        for seed in range(1, 40):
            expected = draw(LAW, uniform_of_seed(seed))
            assert text(ask(judge.base_url, seed=seed, temperature=1.0)) == expected
            assert text(ask(judge.base_url, OTHER, seed=seed)) == expected  # one seed couples two cells


def test_unseeded_and_random_seeds_draw_afresh():
    with SimulatedJudge({messages_key(MESSAGES): LAW}, process=False) as judge:
        for fields in ({}, {"seed": -1}, {"seed": 2**32 - 1}):
            # All forty alike has probability below 2e-12 under the law.
            assert len({text(ask(judge.base_url, **fields)) for _ in range(40)}) > 1
        assert {text(ask(judge.base_url, temperature=0)) for _ in range(5)} == {"A"}


def test_several_choices_take_neighbouring_seeds():
    with SimulatedJudge({messages_key(MESSAGES): LAW}, process=False) as judge:
        answer = ask(judge.base_url, seed=100, n=4)
    assert [text(answer, place) for place in range(4)] == [
        draw(LAW, uniform_of_seed(100 + place)) for place in range(4)
    ]


def test_the_protocol_around_the_answers(monkeypatch):
    monkeypatch.setenv("TOY_KEY", "right")
    with SimulatedJudge(key_env="TOY_KEY", process=False) as judge:
        root = judge.base_url.removesuffix("/v1")
        with urllib.request.urlopen(f"{root}/health") as response:
            assert json.load(response)["status"] == "ok"
        with urllib.request.urlopen(f"{judge.base_url}/models") as response:
            assert json.load(response)["data"][0]["id"] == "simulated"
        assert ask(judge.base_url)[0] == 401
        assert ask(judge.base_url + "/nowhere", headers={"Authorization": "Bearer right"})[0] == 404
        status, answer = ask(judge.base_url, headers={"Authorization": "Bearer right"})
        assert (status, answer["model"], answer["object"]) == (200, "toy", "chat.completion")
        assert (
            answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
        )
        assert ask(judge.base_url, messages="no array", headers={"Authorization": "Bearer right"})[0] == 400


# -- faults -----------------------------------------------------------------------------------------------------------


def test_faults_strike_when_they_say_so_and_the_same_way_every_time():
    def struck(fault: Fault) -> list[bool]:
        return [fault.strikes(b"about item 7", f"{place:064x}", place, place % 3) for place in range(3000)]

    assert struck(Fault(kind="empty", first=5)) == [place < 5 for place in range(3000)]
    assert struck(Fault(kind="empty", per_call=2)) == [place % 3 < 2 for place in range(3000)]
    assert not any(struck(Fault(kind="empty", contains="item 8")))
    some = struck(Fault(kind="empty", rate=0.2))
    assert some == struck(Fault(kind="empty", rate=0.2))
    assert abs(sum(some) / 3000 - 0.2) < 5 * math.sqrt(0.16 / 3000)  # fixed input: it either holds or not


@pytest.mark.parametrize(
    ("header", "status", "seen"),
    [
        ("status; status=429; retry_after=2", 429, "simulated HTTP 429"),
        ("filtered", 400, "content_filter"),
        ("error_body", 200, "simulated error"),
        ("refusal", 200, "I can't help"),
        ("truncated", 200, "length"),
        ("lightning", 400, "is no fault"),
        ("slow; seconds=0.01", 200, "chat.completion"),
    ],
)
def test_a_header_makes_one_request_fail(header, status, seen):
    with SimulatedJudge(process=False) as judge:
        got, answer = ask(judge.base_url, headers={FAULT_HEADER: header})
        assert got == status
        assert seen in json.dumps(answer, ensure_ascii=False)
        assert ask(judge.base_url)[0] == 200


def test_header_and_file_spell_faults_alike(tmp_path):
    path = tmp_path / "faults.json"
    path.write_text('[{"kind": "slow", "seconds": 2.5}, {"kind": "status", "status": 503}]')
    assert read_faults(path) == [fault_of_header("slow; seconds=2.5"), fault_of_header("status; status=503")]


# -- a process of its own ---------------------------------------------------------------------------------------------


def test_in_a_process_of_its_own_it_obeys_the_same_law():
    with SimulatedJudge({messages_key(MESSAGES): LAW}, [Fault(kind="status", status=418, contains="teapot")]) as judge:
        assert judge.server is None
        for seed in range(1, 10):
            assert text(ask(judge.base_url, seed=seed)) == draw(LAW, uniform_of_seed(seed))
        assert ask(judge.base_url, [{"role": "user", "content": "teapot"}])[0] == 418
        child = judge._child
    assert child.returncode == 0


def test_a_bad_law_file_stops_the_command_line_with_one_line(tmp_path):
    command = [sys.executable, "-m", "secondorder.acquire._judge", "--laws", str(tmp_path / "absent.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
