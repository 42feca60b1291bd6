"""Logs of other tools, written in the form of the tool; the version of each form stands in its reader."""

from __future__ import annotations

import json
from pathlib import Path

from secondorder import interop


def lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def one(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def verdicts(log: interop.Log) -> list[str]:
    return [row["verdict"] for row in log]


def ends(log: interop.Log) -> list[tuple[str, str]]:
    return [(row["status"], row["reason"]) for row in log]


# -- FastChat ---------------------------------------------------------------------------------------------------------


def pair(
    question=81, one="a", two="b", g1="model_1", g2="model_1", tstamp=1.0, turn=1, texts=("[[A]]", "[[B]]"), **more
):
    return {
        "question_id": question,
        "model_1": one,
        "model_2": two,
        "g1_winner": g1,
        "g2_winner": g2,
        "judge": ["gpt-4", "pair-v2"],
        "g1_user_prompt": "…",
        "g1_judgment": texts[0],
        "g2_user_prompt": "…",
        "g2_judgment": texts[1],
        "turn": turn,
        "tstamp": tstamp,
        **more,
    }


def single(score, judgment, question=81, turn=1, tstamp=1.0):
    judge = ["gpt-4", "single-v1"]
    line = {"question_id": question, "model": "a", "judge": judge, "user_prompt": "…", "judgment": judgment}
    return {**line, "score": score, "turn": turn, "tstamp": tstamp}


# -- AlpacaEval -------------------------------------------------------------------------------------------------------


def annotation(preference, k=0, annotator="gpt4", raw=None, **more):
    outputs = {"output_1": f"first {k}", "output_2": f"second {k}", "generator_1": "base", "generator_2": "new"}
    line = {
        "instruction": f"instruction {k}",
        **outputs,
        "dataset": "d",
        "annotator": annotator,
        "preference": preference,
    }
    return {**line, "price_per_example": 0.01, **({"raw_completion": raw} if raw is not None else {}), **more}


# -- lm-evaluation-harness --------------------------------------------------------------------------------------------


def sample(doc_id, resps, filtered, filter="none", **more):
    doc = {"question": f"q{doc_id}", "order": "BA" if doc_id % 2 else "AB"}
    hashes = {"doc_hash": f"d{doc_id}", "prompt_hash": "p", "target_hash": "t"}
    arguments = {"gen_args_0": {"arg_0": "…", "arg_1": {"temperature": 1.0}}}
    line = {
        "doc_id": doc_id,
        "doc": doc,
        "target": "A",
        "arguments": arguments,
        "resps": [resps],
        "filtered_resps": [filtered],
    }
    return {**line, "filter": filter, "metrics": ["exact_match"], **hashes, "exact_match": 0.0, **more}


def task_file(folder: Path, task: str, *records: object) -> Path:
    folder.mkdir(exist_ok=True)
    return lines(folder / f"samples_{task}_2026-11-30T12-00-00.000000.jsonl", *records)


# -- promptfoo --------------------------------------------------------------------------------------------------------


def result(
    test, output="A", *, prompt=0, cached=False, error=None, reason=0, grade=None, vars=None, provider="openai:judge"
):
    response = {"output": output, "cached": cached, "tokenUsage": {"total": 9}}
    return {
        "promptIdx": prompt,
        "testIdx": test,
        "testCase": {"vars": vars or {"text": "t"}},
        "promptId": f"id{prompt}",
        "provider": {"id": provider, "label": ""},
        "prompt": {"raw": "rendered", "label": f"wording {prompt}"},
        "vars": vars or {"text": "t"},
        **({"response": response} if error is None else {}),
        **({"error": error} if error is not None else {}),
        "failureReason": reason,
        "success": reason == 0,
        "score": 1,
        "latencyMs": 12,
        "gradingResult": grade,
        "namedScores": {},
    }


def grade(passed, reason="fine", kind="llm-rubric", *, score=None, cached=0, metadata=None, metric=None):
    assertion = {"type": kind, **({"metric": metric} if metric else {})}
    tokens = {"total": 50, "cached": cached}
    return {
        "pass": passed,
        "score": float(passed) if score is None else score,
        "reason": reason,
        "tokensUsed": tokens,
        "assertion": assertion,
        **({"metadata": metadata} if metadata else {}),
    }


def graded(*parts):
    return {"pass": all(p["pass"] for p in parts), "score": 0.5, "reason": "all", "componentResults": list(parts)}


def promptfoo(path: Path, *results: object) -> Path:
    return one(
        path,
        {
            "evalId": "eval-x",
            "results": {"version": 3, "timestamp": "…", "results": results, "prompts": [], "stats": {}},
            "config": {},
        },
    )


# -- HELM -------------------------------------------------------------------------------------------------------------


def state(
    item="id1",
    text="A",
    *,
    random=None,
    cached=False,
    success=True,
    error=None,
    perturbation=None,
    trial=0,
    annotations=None,
    **more,
):
    completions = [{"text": each, "logprob": 0, "tokens": []} for each in ([text] if isinstance(text, str) else text)]
    outcome = {
        "success": success,
        "embedding": [],
        "completions": completions,
        "cached": cached,
        "request_datetime": 1700000000,
    }
    instance = {"input": {"text": "…"}, "references": [], "split": "test", "id": item, **more}
    request = {"model": "org/judge", "prompt": "…", "temperature": 1.0, **({"random": random} if random else {})}
    return {
        "instance": {**instance, **({"perturbation": perturbation} if perturbation else {})},
        "train_trial_index": trial,
        "request": request,
        "result": {**outcome, **({"error": error} if error else {})},
        "num_train_instances": 0,
        "prompt_truncated": False,
        **({"annotations": annotations} if annotations is not None else {}),
    }


def helm(path: Path, *states: object, **adapter: object) -> Path:
    return one(
        path, {"adapter_spec": {"method": "generation", "model": "org/judge", **adapter}, "request_states": states}
    )


# -- OpenAI evals -----------------------------------------------------------------------------------------------------


def oaieval(path: Path, *events: tuple[str, dict], run="r1", kind="metrics") -> Path:
    spec = {"completion_fns": ["answers", "gpt-4"], "eval_name": "joke.dev.v0", "base_eval": "joke", "split": "dev"}
    spec |= {"run_config": {"eval_spec": {"cls": "…", "args": {"modelgraded_spec": "humor"}}}, "run_id": run}
    head = {"spec": {**spec, "created_by": "", "created_at": "2026-11-30 12:00:00"}}
    body = [
        {
            "run_id": run,
            "event_id": k,
            "sample_id": name,
            "type": kind,
            "data": data,
            "created_by": "",
            "created_at": "2026-11-30 12:00:01+00:00",
        }
        for k, (name, data) in enumerate(events)
    ]
    sampling = {
        "run_id": run,
        "event_id": 9,
        "sample_id": "joke.dev.0",
        "type": "sampling",
        "data": {"sampled": ["…"]},
        "created_by": "",
        "created_at": "",
    }
    return lines(path, head, *body, sampling, {"final_report": {"counts/Yes": 1}})


def choice(word, score):
    return {"choice": word, "score": score}


# -- Inspect ----------------------------------------------------------------------------------------------------------


def inspected(
    item, epoch, value, *, reason=None, explanation=None, error=None, cache=None, scorer="verdict", order="AB"
):
    score = {"value": value, "answer": "…", "reason": reason, "explanation": explanation, "history": []}
    event = {"event": "model", "timestamp": f"2026-11-30T12:00:0{epoch}+00:00", "cache": cache, "model": "m"}
    return {
        "id": item,
        "epoch": epoch,
        "input": "…",
        "target": "A",
        "output": {"completion": "A"},
        "scores": {} if error else {scorer: score},
        "metadata": {"order": order},
        "events": [{"event": "score"}, event],
        **({"error": {"message": error, "traceback": ""}} if error else {}),
    }


def inspect_log(path: Path, *samples: object, roles=None, **args: object) -> Path:
    spec = {"task": "judge", "model": "org/m", "task_args": args, **({"model_roles": roles} if roles else {})}
    return one(path, {"version": 2, "status": "success", "eval": spec, "samples": samples})
