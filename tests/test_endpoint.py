"""What is sent for a call, what an answer means, and that the key stays in the header."""

from __future__ import annotations

import asyncio
import json
import traceback

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secondorder.acquire._endpoint import build_body, endpoint_of, request_url
from secondorder.acquire._http import KEPT_HEADERS, Exchange, JudgeLine, check_judge
from secondorder.acquire._judge import Fault, SimulatedJudge
from secondorder.acquire._reading import Completion, Failure
from secondorder.acquire._spec import JudgeSpec
from secondorder.errors import EndpointError, SpecError

KEY = "sk-planted-0123456789abcdef"
MESSAGES = [{"role": "user", "content": "A or B?"}]


def judge(**fields) -> JudgeSpec:
    return JudgeSpec(**{"endpoint": "openai-chat", "base_url": "http://127.0.0.1:8000/v1", "model": "m", **fields})


READ = endpoint_of(judge()).read


def answer(text: object = "A", finish: object = "stop", **fields) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **fields}).encode()


def send(spec: JudgeSpec, body: bytes = b"{}") -> Exchange:
    async def once() -> Exchange:
        async with JudgeLine("mine", spec) as line:
            return await line.send(body)

    return asyncio.run(once())


# -- bytes ------------------------------------------------------------------------------------------------------------


def test_body_bytes_do_not_depend_on_the_order_of_keys_in_the_file():
    one = build_body(judge(body={"top_p": 1.0, "temperature": 1.0, "max_tokens": 8}), MESSAGES, 5)
    other = build_body(judge(body={"max_tokens": 8, "temperature": 1.0, "top_p": 1.0}), MESSAGES, 5)
    assert one == other
    assert json.loads(one) == {
        "model": "m",
        "messages": MESSAGES,
        "seed": 5,
        "max_tokens": 8,
        "temperature": 1.0,
        "top_p": 1.0,
    }


def test_body_keeps_the_written_order_inside_a_schema():
    # In a JSON schema the order of properties is the order in which the judge writes: reason first, verdict after it.
    schema = {"properties": {"reason": {"type": "string"}, "answer": {"enum": ["A", "B"]}}}
    sent = build_body(judge(body={"response_format": schema}), MESSAGES, None)
    assert sent.index(b"reason") < sent.index(b"answer")
    assert b"seed" not in sent


@pytest.mark.parametrize("field", ["model", "messages", "seed", "stream", "stream_options"])
def test_body_may_not_set_what_the_call_decides(field):
    with pytest.raises(SpecError, match=field):
        build_body(judge(body={field: 1}), MESSAGES, 1)


def test_several_answers_per_call_are_refused():
    with pytest.raises(SpecError, match="n = 4"):
        build_body(judge(body={"n": 4}), MESSAGES, 1)
    assert b'"n":1' in build_body(judge(body={"n": 1}), MESSAGES, 1)


def test_address():
    assert request_url(judge(base_url="https://host/v1/")) == "https://host/v1/chat/completions"
    azure = judge(base_url="https://host/openai/deployments/d?api-version=2026-01-01")
    assert request_url(azure) == "https://host/openai/deployments/d/chat/completions?api-version=2026-01-01"


@pytest.mark.parametrize("kind", ["openai-responses", "anthropic-messages", "decisions"])
def test_endpoint_kinds_of_later_versions_are_refused_by_name(kind):
    with pytest.raises(SpecError, match=f"'{kind}' is not yet in this version"):
        endpoint_of(judge(endpoint=kind))


def test_batch_transport_is_refused():
    with pytest.raises(SpecError, match="'batch' is not yet"):
        endpoint_of(judge(transport="batch"))


# -- reading ----------------------------------------------------------------------------------------------------------


def test_a_completion_is_read_with_its_metadata():
    usage = {"prompt_tokens": 12, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 8}}
    reading = READ(
        200,
        answer("A", id="x", model="m-2", created=17, system_fingerprint="fp", service_tier="flex", usage=usage),
    )
    assert reading == Completion(
        text="A",
        finish_reason="stop",
        id="x",
        model="m-2",
        created=17.0,
        fingerprint="fp",
        tier="flex",
        prompt_tokens=12,
        completion_tokens=1,
        cached_tokens=8,
    )


@pytest.mark.parametrize(
    ("body", "text", "finish", "bottom"),
    [
        (answer("", "length"), "", "length", ""),  # reasoning used up the tokens: completed, and empty
        (answer(None, "stop"), "", "stop", ""),
        (answer("A", None), "A", "", ""),
        (answer([{"type": "text", "text": "A"}, {"type": "text", "text": "!"}]), "A!", "stop", ""),
        (answer("cut o", "content_filter"), "cut o", "content_filter", "filtered"),
        (b'{"choices":[{"finish_reason":"content_filter: SAFETY"}]}', "", "content_filter: SAFETY", "filtered"),
        (
            b'{"choices":[{"message":{"content":null,"refusal":"No."},"finish_reason":"stop"}]}',
            "No.",
            "stop",
            "refusal",
        ),
        (b'{"choices":[{"message":{"content":"A"},"logprobs":{"x":[-Infinity,NaN]}}]}', "A", "", ""),
        (b'\xef\xbb\xbf{"choices":[{"message":{"content":"A"}}]}', "A", "", ""),
        (b'{"choices":[{"message":{"content":"A \\ud83d"}}]}', "A ?", "", ""),
        (b'{"choices":[{"message":{"content":"A \xff"}}]}', "A \N{REPLACEMENT CHARACTER}", "", ""),
    ],
)
def test_whatever_text_came_back_is_completed(body, text, finish, bottom):
    reading = READ(200, body)
    assert isinstance(reading, Completion)
    assert (reading.text, reading.finish_reason, reading.bottom) == (text, finish, bottom)
    reading.text.encode()  # can be stored


@pytest.mark.parametrize(
    ("status", "body", "reason", "remedy"),
    [
        (200, b'{"error":{"message":"overloaded"}}', "error_body", "retry"),
        (200, b'{"choices":[{"message":{"content":"A"},"finish_reason":"error"}]}', "error_body", "retry"),
        (200, b'{"choices":[{"message":{"content":"A"},"finish_reason":"abort"}]}', "error_body", "retry"),
        (200, answer("A")[:-9], "malformed", "retry"),
        (200, b"<html>", "malformed", "retry"),
        (200, b"[]", "malformed", "retry"),
        (200, b'{"choices":[]}', "malformed", "retry"),
        (200, b"[" * 100_000, "malformed", "retry"),
        (204, b"", "malformed", "retry"),
        *((status, b"", "http_error", "retry") for status in (409, 425, 500, 502, 503, 520, 529)),
        *((status, b"", "timeout", "retry") for status in (408, 504, 524)),
        (429, b'{"error":{"code":"rate_limit_exceeded"}}', "rate_limited", "retry"),
        (429, b'{"error":{"code":"insufficient_quota"}}', "rate_limited", "fatal"),
        *((status, b"", "rejected", "rejected") for status in (400, 413, 415, 422, 431)),
        *((status, b"", "http_error", "fatal") for status in (301, 302, 307, 401, 402, 403, 404, 405, 410)),
    ],
)
def test_no_completion_and_what_to_do_about_it(status, body, reason, remedy):
    reading = READ(status, body)
    assert isinstance(reading, Failure)
    assert (reading.reason, reading.remedy) == (reason, remedy)


@pytest.mark.parametrize(
    "error",
    [
        {"code": "content_filter", "status": 400},
        {"code": None, "innererror": {"code": "ResponsibleAIPolicyViolation"}},
        {"type": "content_policy_violation"},
    ],
)
def test_a_content_filter_400_is_an_invalid_verdict_not_a_missing_one(error):
    reading = READ(400, json.dumps({"error": error}).encode())
    assert isinstance(reading, Completion)
    assert reading.bottom == "filtered"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b'{"error":{"message":"max_tokens is too large"}}', "max_tokens is too large"),
        (b'{"object":"error","message":"too long"}', "too long"),
        (b'{"detail":"Not\\nFound"}', "Not Found"),
        (b'{"error":"busy"}', "busy"),
    ],
)
def test_the_servers_own_words_are_kept_on_one_line(body, shown):
    reading = READ(400, body)
    assert isinstance(reading, Failure)
    assert reading.detail == f"HTTP 400: {shown}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "error", "usage", "finish_reason", "code", "id", "refusal"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    status=st.sampled_from([200, 400, 401, 429, 500]),
    body=st.binary(max_size=40) | JSON.map(lambda x: json.dumps(x).encode()),
)
def test_no_answer_of_a_server_breaks_the_reader(status, body):
    assert isinstance(READ(status, body), Completion | Failure)


# -- the line ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(kind="reset"), "connection"),
        (Fault(kind="cut"), "connection"),
        (Fault(kind="malformed"), "malformed"),
        (Fault(kind="slow", seconds=5.0), "timeout"),
        (Fault(kind="status", status=503), "http_error"),
        (Fault(kind="status", status=302), "http_error"),
    ],
)
def test_broken_transport_is_no_completion(fault, reason):
    with SimulatedJudge(faults=[fault], process=False) as server:
        spec = judge(base_url=server.base_url, timeout_s=0.3)
        exchange = send(spec, build_body(spec, MESSAGES, 1))
    assert isinstance(exchange.reading, Failure)
    assert exchange.reading.reason == reason


def test_only_listed_headers_are_kept_and_waiting_time_is_read():
    fault = Fault(kind="status", status=429, retry_after=7)
    with SimulatedJudge(faults=[fault], process=False) as server:
        exchange = send(judge(base_url=server.base_url))
    assert exchange.headers == {"retry-after": "7"}
    assert exchange.headers.keys() <= set(KEPT_HEADERS)
    assert exchange.asked_s == 7.0


def test_caches_are_asked_to_stand_aside():
    plain = JudgeLine("mine", judge())._headers
    assert plain["Cache-Control"] == "no-cache, no-store"
    gateway = JudgeLine("mine", judge(base_url="https://oai.helicone.ai/v1"))._headers
    assert gateway["Helicone-Cache-Enabled"] == "false"
    own = JudgeLine("mine", judge(headers={"cache-control": "max-age=0"}))._headers
    assert [value for name, value in own.items() if name.lower() == "cache-control"] == ["max-age=0"]


def test_a_proxy_in_the_environment_is_not_used_for_this_machine(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with SimulatedJudge(process=False) as server:
        spec = judge(base_url=server.base_url)
        assert isinstance(send(spec, build_body(spec, MESSAGES, 1)).reading, Completion)
    assert JudgeLine("mine", judge(base_url="http://judge.example/v1"))._proxy == "http://127.0.0.1:9"


def test_the_key_is_sent_and_is_nowhere_else(monkeypatch):
    monkeypatch.setenv("PLANTED_KEY", KEY)
    with SimulatedJudge(key_env="PLANTED_KEY", process=False) as server:
        spec = judge(base_url=server.base_url, key_env="PLANTED_KEY")
        request = build_body(spec, MESSAGES, 1)
        exchange = send(spec, request)
        line = JudgeLine("mine", spec)
        without = send(judge(base_url=server.base_url), request)
    assert isinstance(exchange.reading, Completion)
    assert isinstance(without.reading, Failure)
    assert without.status == 401
    assert KEY not in repr((exchange, vars(line))) + request.decode()


def test_a_server_that_sends_the_key_back_is_blotted_out(monkeypatch):
    monkeypatch.setenv("PLANTED_KEY", KEY)
    spec = judge(base_url="http://127.0.0.1:1/v1", key_env="PLANTED_KEY")

    async def echo(reader, writer) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()
        head = f"HTTP/1.1 401 No\r\nContent-Length: {len(body)}\r\nx-request-id: {KEY}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()

    async def once() -> Exchange:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with (
            server,
            JudgeLine("mine", judge(base_url=f"http://127.0.0.1:{port}/v1", key_env=spec.key_env)) as line,
        ):
            return await line.send(b"{}")

    exchange = asyncio.run(once())
    assert exchange.status == 401
    assert b"Incorrect API key provided: [key]" in exchange.body
    assert KEY not in repr(exchange)


def test_an_unreachable_address_is_one_clear_error():
    async def reach(base_url: str) -> None:
        async with JudgeLine("mine", judge(base_url=base_url)) as line:
            await line.reach(tries=2, pause_s=0.0)

    with pytest.raises(EndpointError, match=r"judge 'mine': cannot connect to 127\.0\.0\.1:1 .*base_url") as refused:
        asyncio.run(reach("http://127.0.0.1:1/v1"))
    with pytest.raises(EndpointError, match=r"host 'no-such-host\.invalid' is not known"):
        asyncio.run(reach("http://no-such-host.invalid/v1"))
    assert refused.value.exit_code == 3
    assert "\n" not in str(refused.value)


def test_checks_before_the_first_send(monkeypatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(SpecError, match=r"\[judges.mine\]: environment variable NO_SUCH_KEY is not set"):
        check_judge("mine", judge(key_env="NO_SUCH_KEY"))
    monkeypatch.setenv("PLANTED_KEY", f"{KEY}\nX-Other: 1")
    with pytest.raises(SpecError, match="PLANTED_KEY holds a character") as broken:
        check_judge("mine", judge(key_env="PLANTED_KEY"))
    assert KEY not in "".join(traceback.format_exception(broken.value))
    for address in ("127.0.0.1:8000/v1", "ftp://host/v1", "http://", "http://host:port/v1"):
        with pytest.raises(SpecError, match="base_url"):
            check_judge("mine", judge(base_url=address))
