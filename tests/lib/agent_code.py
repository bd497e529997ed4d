"""Asking an agent to run code, for the tests of that.

    with context() as made:
        good(SHARED, "x = 1", context_id=made).stdout
        text(SHARED, "x + 1", context_id=made)          # the last result
    for event in stream(agent, code): ...
"""

import contextlib
import json

from http_raw import connect, request
from shared import SHARED
from tap import equal

PATIENCE = 60.0

PYTHON, NODE = "python", "javascript"
# Debian's Python, whatever the caller's PATH puts before it.
DEBIAN = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}


def create(agent, **fields):
    response = agent.post("/api/contexts", fields)
    if response.status != 200:
        raise AssertionError(f"{fields}: {response}")
    return json.loads(response.body)["contextId"]


def delete(agent, context):
    return request(agent.address, "DELETE", f"/api/contexts/{context}", [], b"", PATIENCE)


def contexts(agent):
    return json.loads(agent.get("/api/contexts").body)["contexts"]


@contextlib.contextmanager
def open_run(agent, code, **fields):
    body = json.dumps({"code": code, **fields}).encode()
    with connect(agent.address, PATIENCE) as connection:
        connection.send(b"POST /api/execute/code HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                        % (len(body), body))
        head = connection.response_head()
        if head.status != 200 or head.headers["content-type"] != "text/event-stream":
            raise AssertionError(f"{code}: {head}")
        yield connection


def events_of(connection):
    pending = b""
    for chunk in connection.chunks():
        *frames, pending = (pending + chunk).split(b"\n\n")
        for frame in frames:
            yield json.loads(frame.removeprefix(b"data: "))
    if pending:
        raise AssertionError(f"the stream ended inside an event: {pending!r}")


def stream(agent, code, **fields):
    with open_run(agent, code, **fields) as connection:
        yield from events_of(connection)


class Outcome:
    """All events of a run, sorted out."""

    def __init__(self, events):
        self.events = list(events)
        self.stdout = "".join(e["text"] for e in self.events if e["type"] == "stdout")
        self.stderr = "".join(e["text"] for e in self.events if e["type"] == "stderr")
        self.results = [e for e in self.events if e["type"] == "result"]
        self.last = self.events[-1]
        self.error = self.last if self.last["type"] == "error" else None

    def __repr__(self):
        return repr(self.events)


def run(agent, code, **fields):
    return Outcome(stream(agent, code, **fields))


def good(agent, code, **fields):
    outcome = run(agent, code, **fields)
    equal(outcome.last, {"type": "execution_complete", "execution_count": 1}, f"end of {outcome}")
    return outcome


def text(agent, code, **fields):
    return good(agent, code, **fields).results[-1]["text"]


@contextlib.contextmanager
def context(language=PYTHON, agent=None, **fields):
    agent = agent or SHARED
    made = create(agent, language=language, **fields)
    try:
        yield made
    finally:
        delete(agent, made)


def is_well(agent=None):
    """The agent answers, and code still runs."""
    equal((agent or SHARED).get("/api/ping").status, 200, "ping")
    equal(text(agent or SHARED, "40 + 2"), "42", "later code")
