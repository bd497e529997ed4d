#!/usr/bin/python3
"""The egress broker alone: routes, metering, proxy requests, tunnels and interception, as programs in a
sandbox use them. What hostile ones try is in broker_attacks_test.py."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from broker_demo import BrokerDemo  # noqa: E402
from scripted_model import KEY, Cut, Fail, Say, ScriptedModel, Usage  # noqa: E402
from tap import equal, main, test  # noqa: E402

ANTHROPIC, RESPONSES, CHAT, GOOGLE = 1, 2, 3, 4
USED = Usage(input=11, output=7, cache_read=5, cache_write=0, reasoning=3)


def routes(model, words=""):
    return "\n".join([
        f"route anthropic base={model.url}/v1 format={ANTHROPIC} header=x-api-key:{KEY} local {words}",
        f"route responses base={model.url}/v1 format={RESPONSES} header=authorization:Bearer+{KEY} local {words}",
        f"route chat base={model.url}/v1 format={CHAT} header=authorization:Bearer+{KEY} local {words}",
        f"route google base={model.url}/v1beta format={GOOGLE} header=x-goog-api-key:{KEY} local {words}",
    ])


def body(**more):
    return json.dumps({"model": "scripted", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}],
                       "input": "hi", "contents": [{"parts": [{"text": "hi"}]}], **more})


ASKS = {
    "anthropic": ("/anthropic/messages", {"x-api-key": "burrow-anthropic"}),
    "responses": ("/responses/responses", {"authorization": "Bearer burrow-openai"}),
    "chat": ("/chat/chat/completions", {"authorization": "Bearer burrow-openai"}),
    "google": ("/google/models/scripted:generateContent", {"x-goog-api-key": "burrow-google"}),
}


def ask(demo, kind, stream):
    path, headers = ASKS[kind]
    if kind == "google" and stream:
        path = path.replace("generateContent", "streamGenerateContent") + "?alt=sse"
    return demo.ask("POST", path, body(**({"stream": True} if stream else {})),
                    {"content-type": "application/json", **headers})


def numbers(line):
    return {name: line[name] for name in ("input", "output", "reasoning", "cache_read", "cache_write")}


@test
def usage_is_read_from_every_format_streamed_and_whole():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        for kind in ASKS:
            for stream in (False, True):
                model.script = [Say("Hello from the model", USED)]
                before = len(demo.lines("ended"))
                status, _, got = ask(demo, kind, stream)
                equal(status, 200, f"status of {kind}")
                assert b"Hello" in got or b"ello" in got, got
                line = demo.told("ended", lambda line: line["grant"] > before)
                wanted = {"input": 11, "output": 7, "reasoning": 3, "cache_read": 5, "cache_write": 0}
                if kind == "anthropic":  # which does not tell them apart
                    wanted |= {"output": 10, "reasoning": 0}
                equal(numbers(line), wanted, f"usage of {kind}, stream {stream}")
                equal((line["known"], line["partial"], line["model"], line["failure"]),
                      (True, False, "scripted", None), kind)
        assert KEY not in demo.log()


@test
def what_a_client_proves_itself_with_stays_outside_and_the_key_is_put_in():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        equal(demo.ask("POST", "/google/models/scripted:generateContent?key=burrow-google&a=b", body(),
                       {"authorization": "Bearer mine", "cookie": "a=b", "api-key": "mine", "Accept-Encoding": "gzip",
                        "proxy-authorization": "Basic eDp5", "x-kept": "yes"})[0], 200, "status")
        question = model.questions[-1]
        for name in ("authorization", "cookie", "api-key", "proxy-authorization"):
            assert question.headers.get(name) is None, name
        equal(question.query, {"a": ["b"]}, "query")
        equal((question.headers["x-kept"], question.headers["accept-encoding"], question.headers["host"]),
              ("yes", "identity", model.url.rpartition("/")[2]), "headers")
        equal(demo.told("asked")["placeholder"], "mine", "placeholder")


@test
def a_stream_that_breaks_is_counted_as_far_as_it_came():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        model.script = [Cut("a long text that is cut somewhere", after=3)]
        try:
            ask(demo, "chat", True)
        except Exception:  # pylint: disable=broad-exception-caught
            pass  # the client sees that it is cut, however it says so
        line = demo.told("ended")
        assert line["partial"] and line["known"] and line["output"] > 0, line


@test
def a_used_up_budget_cuts_a_stream_in_the_form_of_its_api():
    with ScriptedModel() as model, BrokerDemo(routes(model, "cut=10")) as demo:
        for kind in ("anthropic", "responses", "chat"):
            model.script = [Say("x" * 4000, Usage(output=500))]
            status, _, got = ask(demo, kind, True)
            last = got.decode().strip().rpartition("data: ")[2]
            equal(status, 200, "status")
            error = json.loads(last)
            assert "budget" in json.dumps(error), last
            assert error.get("type") == "error" or "error" in error, last
            assert len(got) < 60000, len(got)
        equal(len([line for line in demo.lines("ended") if line["failure"] == "the budget was used up"]), 3, "cut")


@test
def refusals_speak_the_language_of_the_api():
    with BrokerDemo("route anthropic deny=budget_exceeded format=1\nroute chat deny=egress_denied format=3\n"
                    "route google deny=budget_exceeded format=4") as demo:
        status, headers, got = demo.ask("POST", "/anthropic/v1/messages", "{}")
        equal((status, json.loads(got)["type"], json.loads(got)["error"]["type"]), (429, "error", "budget_exceeded"), "it")
        equal(headers["x-should-retry"], "false", "retry")
        status, _, got = demo.ask("POST", "/chat/v1/chat/completions", "{}")
        equal((status, json.loads(got)["error"]["code"]), (403, "egress_denied"), "chat")
        status, _, got = demo.ask("POST", "/google/v1beta/models/x:generateContent", "{}")
        equal((status, json.loads(got)["error"]["status"]), (429, "RESOURCE_EXHAUSTED"), "google")
        status, _, got = demo.ask("GET", "/nothing/v1/models")
        equal((status, json.loads(got)["error"]["type"]), (403, "egress_denied"), "no route")


@test
def errors_of_the_model_come_through_as_they_are():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        model.script = [Fail(529, "overloaded", {"retry-after": "3"})]
        status, headers, got = ask(demo, "anthropic", False)
        equal((status, headers["retry-after"], json.loads(got)["error"]["message"]), (529, "3", "overloaded"), "it")
        line = demo.told("ended")
        equal((line["known"], line["status"]), (False, 529), "record")


main()
