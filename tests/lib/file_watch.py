"""File watches of the agent: a workspace of its own, and streams whose events are gathered.

    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as watch:
        watch.wait_change("create", work.write("file"))
"""

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time

from agent import Agent
from http_raw import connect
from program import PATIENCE, wait_until
from tap import equal

QUIET_SECONDS = 0.3  # four times the time events are gathered for


class Workspace:
    """A folder that an agent takes for /workspace."""

    def __init__(self):
        self.folder = os.path.realpath(tempfile.mkdtemp(prefix="burrow-watch-"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name=""):
        return os.path.join(self.folder, name) if name else self.folder

    def mkdir(self, name):
        os.makedirs(self.path(name), exist_ok=True)
        return self.path(name)

    def write(self, name, text="x"):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)


class Watch:
    """An open stream; a thread gathers its events."""

    def __init__(self, agent, **fields):
        body = json.dumps(fields).encode()
        self.connection = connect(agent.address, PATIENCE * 10)
        self.connection.send(b"POST /api/watch HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                             % (len(body), body))
        self.head = self.connection.response_head()
        if self.head.status != 200:
            raise AssertionError(f"{fields}: {self.head} {self.connection.buffer}")
        self.events, self.ended = [], False
        self.changed = threading.Condition()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()
        self.first = self.wait_for(lambda event: event["type"] == "watching")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self):
        pending = b""
        try:
            for chunk in self.connection.chunks():
                *frames, pending = (pending + chunk).split(b"\n\n")
                with self.changed:
                    self.events += [json.loads(frame.removeprefix(b"data: ")) for frame in frames]
                    self.changed.notify_all()
        except (OSError, EOFError, AssertionError, ValueError):
            pass  # closed by us
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def close(self):
        with contextlib.suppress(OSError):
            self.connection.socket.shutdown(2)
        self.thread.join(PATIENCE)
        self.connection.close()

    def wait(self, condition, what, seconds=PATIENCE):
        with self.changed:
            if not self.changed.wait_for(condition, seconds):
                raise AssertionError(f"waited in vain for {what}; got {self.events[-30:]}")

    def wait_for(self, matches):
        """The first event for which matches(event)."""
        self.wait(lambda: any(matches(event) for event in self.events) or self.ended, "an event")
        found = [event for event in self.events if matches(event)]
        if not found:
            raise AssertionError(f"the stream ended: {self.events[-30:]}")
        return found[0]

    def wait_change(self, kind, path, folder=False):
        return self.wait_for(lambda event: (event.get("eventType"), event.get("path"),
                                            event.get("isDirectory")) == (kind, path, folder))

    def changes(self):
        """[(kind, path)] of all events so far."""
        with self.changed:
            return [(event["eventType"], event["path"]) for event in self.events
                    if event["type"] == "event"]

    def settle(self):
        """All changes once nothing more comes."""
        count = -1
        while count != len(self.events):
            count = len(self.events)
            time.sleep(QUIET_SECONDS)
        return self.changes()


@contextlib.contextmanager
def workspace_agent(**options):
    with Workspace() as work:
        with Agent(environment={"BURROW_WORKSPACE": work.folder}, **options) as agent:
            yield work, agent


def inotify_watches(agent):
    """The kernel watches of each inotify instance."""
    found = []
    for name in os.listdir(f"/proc/{agent.pid}/fd"):
        try:
            if os.readlink(f"/proc/{agent.pid}/fd/{name}") == "anon_inode:inotify":
                with open(f"/proc/{agent.pid}/fdinfo/{name}", encoding="ascii") as lines:
                    found.append(sum(line.startswith("inotify ") for line in lines))
        except OSError:
            pass
    return found


def wait_until_nothing_is_watched(agent):
    """The instance is closed a moment later."""
    wait_until(lambda: sum(inotify_watches(agent)) == 0, "no inotify watches", PATIENCE)


def refusal(agent, route="/api/watch", **fields):
    response = agent.post(route, fields)
    body = json.loads(response.body)
    return response.status, body["code"], body


def check(agent, **fields):
    response = agent.post("/api/watch/check", fields)
    equal(response.status, 200, f"status of {fields}: {response.body}")
    return json.loads(response.body)
