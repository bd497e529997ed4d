#!/usr/bin/python3
"""The agent alone on a socket: /ws, many requests over one WebSocket; and quiet moments.

# timeout: 600
"""

import json
import os
import struct
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent, find_processes, own_time  # noqa: E402
from http_raw import request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import BINARY, CLOSE, PING, PONG, TEXT, open_websocket  # noqa: E402

MIB = 1 << 20
CALLS_MAX = 256


class Line:
    """One connection; messages for an id that nobody asked for yet are kept."""

    def __init__(self, agent, path="/ws"):
        self.ws = open_websocket(agent.address, path)
        self.ws.connection.socket.settimeout(60)
        self.kept, self.count = [], 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.connection.close()

    def send(self, document):
        self.ws.send(TEXT, document if isinstance(document, bytes)
                     else json.dumps(document).encode())

    def ask(self, method, path, body=None, headers=None, id_=None):
        """Send a request; its id."""
        self.count += 1
        id_ = id_ or f"ws_{self.count}"
        message = {"type": "request", "id": id_, "method": method, "path": path}
        if body is not None:
            message["body"] = body
        if headers is not None:
            message["headers"] = headers
        self.send(message)
        return id_

    def receive(self):
        while True:
            opcode, payload = self.ws.receive_message()
            if opcode == TEXT:
                return json.loads(payload)
            if opcode == PING:
                self.ws.send(PONG, payload)
            elif opcode == CLOSE:
                raise EOFError(struct.unpack("!H", payload[:2])[0] if payload else None)

    def next_of(self, id_):
        for place, message in enumerate(self.kept):
            if message.get("id") == id_:
                return self.kept.pop(place)
        while True:
            message = self.receive()
            if message.get("id") == id_:
                return message
            self.kept.append(message)

    def answer_of(self, id_):
        """(events, last message)"""
        events = []
        while True:
            message = self.next_of(id_)
            if message["type"] != "stream":
                return events, message
            events.append(json.loads(message["data"]))

    def call(self, method, path, body=None, headers=None):
        return self.answer_of(self.ask(method, path, body, headers))[1]


# --- requests ------------------------------------------------------------------------------------


@test
def a_request_is_answered_as_by_plain_http():
    for path in ("/ws", "/api/ws"):
        with Line(SHARED, path) as line:
            answer = line.call("GET", "/api/ping")
            equal((answer["type"], answer["status"], answer["done"]), ("response", 200, True),
                  "answer")
            equal(answer["body"]["status"], "healthy", "body")
            assert "timestamp" in answer["body"]


@test
def unknown_routes_and_methods_answer_as_plain_http_does():
    with Line(SHARED) as line:
        for method, path in (("GET", "/api/nothing"), ("POST", "/api/ping"), ("GET", "/"),
                             ("PATCH", "/api/ping")):
            answer = line.call(method, path)
            equal(answer["type"], "response", f"type for {method} {path}")
            if path == "/":
                equal(answer["status"], 404, "what is no operation")
                continue
            plain = request(SHARED.address, method, path, [], b"{}")
            expected = json.loads(plain.body)
            equal(answer["status"], plain.status, f"status of {method} {path}")
            for name in ("code", "message", "context", "httpStatus"):
                equal(answer["body"][name], expected[name], f"{name} of {method} {path}")


@test
def paths_are_escaped_as_a_browser_would():
    with Line(SHARED) as line:
        equal(line.call("GET", "/api/n\u00e4 chste?x=\u00e9 #fragment")["status"], 404, "status")


@test
def wrong_messages_are_told_and_the_connection_goes_on():
    wrong = [
        (b"not json", "PARSE_ERROR", None),
        (b"{", "PARSE_ERROR", None),
        (b'{"a":1,"a":2}', "PARSE_ERROR", None),
        (b"[]", "INVALID_REQUEST", None),
        (b"{}", "INVALID_REQUEST", None),
        (b'{"type":"request","id":5,"method":"GET","path":"/api/ping"}', "INVALID_REQUEST", None),
        (b'{"type":"request","id":"a","path":"/api/ping"}', "INVALID_REQUEST", "a"),
        (b'{"type":"request","id":"a","method":"GET"}', "INVALID_REQUEST", "a"),
        (b'{"type":"request","id":"a","method":"GET","path":"api"}', "INVALID_REQUEST", "a"),
        (b'{"type":"request","id":"a","method":"GET","path":"/","headers":[]}',
         "INVALID_REQUEST", "a"),
        (b'{"type":"request","id":"a","method":"GET","path":"/api/%zz"}', "INVALID_REQUEST", "a"),
        (b'{"type":"what","id":"a"}', "INVALID_REQUEST", "a"),
        (b'{"id":"a"}', "INVALID_REQUEST", "a"),
    ]
    with Line(SHARED) as line:
        for text, code, id_ in wrong:
            line.send(text)
            error = line.receive()
            equal((error["type"], error["code"], error["status"], error.get("id")),
                  ("error", code, 400, id_), repr(text))
            assert error["message"]
        line.ws.send(BINARY, b"{}")
        equal(line.receive()["code"], "PARSE_ERROR", "code of a binary message")
        line.send({"type": "cancel", "id": "nobody"})
        equal(line.call("GET", "/api/ping")["status"], 200, "status")


@test
def any_string_is_an_id():
    with Line(SHARED) as line:
        for id_ in ("", " ", "\u20ac\U0001f600", '"\\\n', "x" * 1024):
            line.send({"type": "request", "id": id_, "method": "GET", "path": "/api/ping"})
            equal(line.receive()["id"], id_, "id")


@test
def a_large_message_closes_with_1009():
    with Line(SHARED) as line:
        try:
            line.ws.send(TEXT, b'{"id":"' + b"x" * (48 * MIB) + b'"}')
            line.receive()
            raise AssertionError("it was taken")
        except EOFError as end:
            equal(end.args, (1009,), "close code")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the close came while we still wrote


@test
def a_body_beyond_the_route_s_limit_is_refused_as_such():
    with Line(SHARED) as line:
        answer = line.call("POST", "/burrow/resume", {"x": "y" * (2 * MIB)})
        equal(answer["status"], 413, "status")
        equal(line.call("GET", "/api/ping")["status"], 200, "status after it")


@test
def a_body_that_is_no_object_is_refused():
    with Line(SHARED) as line:
        answer = line.call("POST", "/burrow/resume", ["x"])
        equal((answer["status"], answer["body"]["code"]), (500, "INTERNAL_ERROR"), "answer")


# --- many at once --------------------------------------------------------------------------------


def execute(line, command, **fields):
    return line.ask("POST", "/api/execute", {"command": command, **fields})


@test
def commands_run_side_by_side_and_answer_in_their_own_time():
    with Line(SHARED) as line:
        gate = f"{SHARED.folder}/ws-gate"
        slow = execute(line, f"until [ -e {gate} ]; do sleep 0.02; done; echo slow", sessionId="ws-a")
        fast = execute(line, "echo fast", sessionId="ws-b")
        equal(line.answer_of(fast)[1]["body"]["stdout"].strip(), "fast", "stdout")
        assert not line.kept, line.kept
        open(gate, "wb").close()
        equal(line.answer_of(slow)[1]["body"]["stdout"].strip(), "slow", "stdout")


@test
def errors_of_operations_are_responses():
    with Line(SHARED) as line:
        answer = line.call("POST", "/api/execute", {"command": 5})
        equal((answer["type"], answer["status"]), ("response", 400), "answer")
        equal(answer["body"]["code"], "VALIDATION_FAILED", "code")
        equal(answer["body"]["httpStatus"], 400, "httpStatus")


@test
def sessions_are_found_as_by_plain_http():
    cases = [
        ({"sessionId": "ws-body"}, {"X-Session-Id": "ws-header"}, "?session=ws-query", "ws-body"),
        ({}, {"X-Session-Id": "ws-header"}, "?session=ws-query", "ws-header"),
        ({}, {"Authorization": "Bearer ws-bearer"}, "", "ws-bearer"),
        ({}, {}, "?session=ws-query", "ws-query"),
        ({}, {}, "?sessionId=ws%2Dquery2", "ws-query2"),
        ({}, {}, "", "default"),
    ]
    with Line(SHARED) as line:
        for body, headers, query, session in cases:
            answer = line.call("POST", "/api/execute" + query, {"command": "true", **body}, headers)
            equal(answer["body"].get("sessionId"), session, f"session of {body} {headers} {query}")
        answer = line.call("POST", "/api/execute", {"command": "true", "sessionId": "  "})
        equal((answer["status"], answer["body"]["code"]), (400, "VALIDATION_FAILED"), "empty")


@test
def events_come_as_a_stream_and_then_an_empty_response():
    with Line(SHARED) as line:
        events, last = line.answer_of(line.ask("POST", "/api/execute/stream",
                                               {"command": "echo one; echo two >&2; exit 3",
                                                "sessionId": "ws-stream"}))
        equal([event["type"] for event in events][0], "start", "first event")
        equal(events[-1]["type"], "complete", "last event")
        equal(events[-1]["exitCode"], 3, "exit code")
        equal({key: last.get(key) for key in ("type", "status", "done", "body")},
              {"type": "response", "status": 200, "done": True, "body": None}, "response")


@test
def cancel_ends_a_stream_and_its_command():
    with Line(SHARED) as line:
        id_ = line.ask("POST", "/api/execute/stream",
                       {"command": f"echo up; sleep {own_time(3141592)}", "sessionId": "__DISABLE_SESSION__"})
        while json.loads(line.next_of(id_)["data"])["type"] != "stdout":
            pass
        assert find_processes(own_time(3141592))
        line.send({"type": "cancel", "id": id_})
        wait_until(lambda: not find_processes(own_time(3141592)), "the command is gone")
        equal(line.call("GET", "/api/ping")["status"], 200, "status")
        assert not [message for message in line.kept if message["type"] == "response"], line.kept


@test
def closing_the_connection_cancels_all_its_calls():
    with Line(SHARED) as line:
        for _ in range(5):
            line.ask("POST", "/api/execute/stream", {"command": f"sleep {own_time(271828)}",
                                                     "sessionId": "__DISABLE_SESSION__"})
        wait_until(lambda: len(find_processes(own_time(271828))) >= 5, "all run")
    wait_until(lambda: not find_processes(own_time(271828)), "all are gone")


@test
def an_id_can_be_used_again_but_not_twice_at_once():
    with Line(SHARED) as line:
        line.ask("POST", "/api/execute", {"command": "sleep 0.5", "sessionId": "ws-twice"}, id_="x")
        line.ask("GET", "/api/ping", id_="x")
        error = line.next_of("x")
        equal((error["type"], error["code"]), ("error", "INVALID_REQUEST"), "second")
        equal(line.next_of("x")["status"], 200, "first")
        equal(line.answer_of(line.ask("GET", "/api/ping", id_="x"))[1]["status"], 200, "third")


@test
def more_than_256_calls_are_put_off():
    with Line(SHARED) as line:
        for _ in range(CALLS_MAX):
            line.ask("POST", "/api/execute",
                     {"command": "sleep 4", "sessionId": "ws-many"})
        answer = line.call("GET", "/api/ping")
        equal((answer["status"], answer["body"]["code"]), (503, "CONTAINER_UNAVAILABLE"), "answer")
        equal(answer["body"]["context"]["retryable"], True, "retryable")


@test
def a_client_that_does_not_read_is_bounded():
    with Line(SHARED) as line:
        before = SHARED.memory_kb()
        stream = line.ask("POST", "/api/execute/stream", {
            "command": "head -c 50000000 /dev/zero | tr '\\0' 'w'",
            "sessionId": "__DISABLE_SESSION__"})
        pings = [line.ask("GET", "/api/ping") for _ in range(50)]
        time.sleep(1.5)
        assert SHARED.memory_kb() - before < 8000, (before, SHARED.memory_kb())
        events, last = line.answer_of(stream)
        equal(sum(len(event.get("data", "")) for event in events if event["type"] == "stdout"),
              50000000, "bytes")
        equal(last["status"], 200, "status")
        for id_ in pings:
            equal(line.answer_of(id_)[1]["status"], 200, "status of a ping meanwhile")


def ping_of(number):
    return json.dumps({"type": "request", "id": f"{number}", "method": "GET",
                       "path": "/api/ping"}).encode()


@test
def a_flood_that_nobody_reads_the_answers_of_is_bounded():
    for make in (lambda number: b"garbage", ping_of, lambda number: ping_of(1)):
        with Line(SHARED) as line:
            before = SHARED.memory_kb()
            line.ws.connection.socket.settimeout(2)
            flood = b"".join(frame_of(make(number)) for number in range(1000))
            try:
                for _ in range(100):
                    line.ws.connection.send(flood)
                raise AssertionError("it read on")
            except TimeoutError:
                pass  # it stopped reading, as it should
            assert SHARED.memory_kb() - before < 8000, (before, SHARED.memory_kb())
            equal(SHARED.get("/api/ping").status, 200, "status")


def frame_of(payload):
    """A masked text frame with a mask of zeros: cheap to make."""
    return bytes([0x81, 0x80 | len(payload)]) + b"\0\0\0\0" + payload


@test
def large_answers_side_by_side_all_arrive():
    with Line(SHARED) as line:
        command = "head -c 9000000 /dev/zero | tr '\\0' 'v'"
        ids = [execute(line, command, sessionId="__DISABLE_SESSION__") for _ in range(6)]
        for id_ in ids:
            body = line.answer_of(id_)[1]["body"]
            equal(len(body["stdout"]), 9000000, "bytes")


# --- quiet ---------------------------------------------------------------------------------------


def post(path, body=None):
    response = SHARED.post(path, body or {})
    return response.status, json.loads(response.body)


@test
def a_quiet_agent_refuses_work_until_it_is_resumed():
    status, answer = post("/burrow/quiesce")
    equal((status, answer["quiet"], answer["running"]), (200, True, 0), "quiesce")
    status, answer = post("/api/execute", {"command": "true"})
    equal((status, answer["code"]), (503, "CONTAINER_UNAVAILABLE"), "refusal")
    equal(answer["context"]["retryable"], True, "retryable")
    assert 0 < answer["context"]["retryAfterMs"] <= 1000
    equal(SHARED.get("/api/ping").status, 200, "what is no work goes on")
    with Line(SHARED) as line:
        equal(line.call("POST", "/api/execute", {"command": "true"})["status"], 503, "by /ws")
    equal(SHARED.get("/ws/pty?sessionId=new").status, 503, "a new terminal")
    equal(post("/burrow/resume")[0], 200, "resume")
    equal(post("/api/execute", {"command": "true"})[0], 200, "work")


@test
def quiesce_waits_for_the_work_under_way():
    done = []

    def work():
        done.append(SHARED.run(f"sleep {own_time(1)}; echo worked", sessionId="quiet")["stdout"].strip())

    thread = threading.Thread(target=work)
    thread.start()
    wait_until(lambda: find_processes(own_time(1)), "it runs")
    status, answer = post("/burrow/quiesce", {"timeoutMs": 50})
    equal((status, answer["quiet"], answer["running"]), (200, False, 1), "too impatient")
    equal(post("/api/execute", {"command": "true"})[0], 200, "work is accepted again")
    status, answer = post("/burrow/quiesce", {"timeoutMs": 20000})
    equal((status, answer["quiet"], answer["running"]), (200, True, 0), "patient")
    thread.join()
    equal(done, ["worked"], "the work ended well")
    equal(post("/burrow/resume")[0], 200, "resume")


@test
def quiet_ends_by_itself():
    equal(post("/burrow/quiesce", {"holdMs": 200})[1]["quiet"], True, "quiet")
    wait_until(lambda: post("/api/execute", {"command": "true"})[0] == 200, "work is accepted")
    for body in ({"timeoutMs": -1}, {"timeoutMs": "x"}, {"holdMs": 0}, {"holdMs": 10 ** 9}):
        equal(post("/burrow/quiesce", body)[0], 400, f"status of {body}")
    equal(post("/api/execute", {"command": "true"})[0], 200, "work after wrong requests")


# --- last words ----------------------------------------------------------------------------------


def last_words(agent):
    response = agent.get("/burrow/last-words")
    equal(response.status, 200, "status")
    assert len(response.body) <= 16384, len(response.body)
    return json.loads(response.body)


@test
def last_words_tell_of_the_entrypoint_and_the_log():
    equal(last_words(SHARED)["entrypoint"], {"state": "none"}, "without an entrypoint")
    with Agent("--log-level", "info", entrypoint=["sleep", "1"]) as agent:
        equal(last_words(agent)["entrypoint"], {"state": "running"}, "while it runs")
        wait_until(lambda: last_words(agent)["entrypoint"]["state"] == "ended", "its end")
        words = last_words(agent)
        equal(words["entrypoint"], {"state": "ended", "status": 0, "reason": None}, "its end")
        lines = [json.loads(line)["message"] for line in words["log"]]
        assert "entrypoint ended" in lines and "request" not in lines, lines


@test
def last_words_tell_of_the_worker():
    with Agent() as agent:
        for pid in agent.children():
            os.kill(pid, 9)
        wait_until(lambda: any("worker" in line for line in last_words(agent)["log"]),
                   "the worker's end in the log")
        equal(agent.run("echo on")["stdout"].strip(), "on", "another worker")


with Agent() as SHARED:
    main()
