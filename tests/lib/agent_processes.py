"""Asking an agent for background processes, for the tests of those.

    identity = start("make")
    ended(identity)["exitCode"]
    logs(identity)["stdout"]
    for event in events(identity): ...
"""

import contextlib
import json

from agent import NO_SESSION
from http_raw import connect, request
from program import wait_until
from shared import SHARED
from tap import equal


def answer(response, status=200):
    equal(response.status, status, f"status of {response}")
    return json.loads(response.body)


def post(path, document, status=200, agent=None):
    return answer((agent or SHARED).post(path, document), status)


def get(path, status=200, agent=None):
    return answer((agent or SHARED).get(path), status)


def delete(path, status=200, agent=None):
    return answer(request((agent or SHARED).address, "DELETE", path, timeout=30), status)


def start(command, agent=None, **fields):
    fields.setdefault("sessionId", NO_SESSION)
    return post("/api/process/start", {"command": command, **fields}, agent=agent)["processId"]


def process(identity, agent=None):
    return get(f"/api/process/{identity}", agent=agent)["process"]


def ended(identity, agent=None):
    return wait_until(lambda: "endTime" in process(identity, agent) and process(identity, agent),
                      f"end of {identity}")


def logs(identity, agent=None):
    return get(f"/api/process/{identity}/logs", agent=agent)


def listed(**query):
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return [found["id"] for found in get(f"/api/process/list?{words}")["processes"]]


@contextlib.contextmanager
def viewing(identity, agent=None):
    """A connection behind the head of a log stream."""
    with connect((agent or SHARED).address, 60) as connection:
        connection.send(f"GET /api/process/{identity}/stream HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        head = connection.response_head()
        equal((head.status, head.headers["content-type"]), (200, "text/event-stream"), "head")
        yield connection


def events_on(connection):
    pending = b""
    for chunk in connection.chunks():
        *frames, pending = (pending + chunk).split(b"\n\n")
        for frame in frames:
            yield json.loads(frame.removeprefix(b"data: "))
    equal(pending, b"", "rest behind the last event")


def events(identity, agent=None):
    with viewing(identity, agent) as connection:
        yield from events_on(connection)


def data(found, kind="stdout"):
    return "".join(event["data"] for event in found if event["type"] == kind)
