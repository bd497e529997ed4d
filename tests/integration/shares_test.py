#!/usr/bin/python3
"""One user's part of what all users share: where it ends, that it is said, that nobody else and no
administrator is refused meanwhile, and that what is given back can be had again."""

import json
import os
import sys
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

NATIVE = "/burrow/v1"
LIMITS = {"event_streams": 3, "templates": 2, "template_bytes": 100000, "webhooks": 2, "idempotent_replies": 3}


class Town:
    """A daemon in which a user may have little, and two users."""

    def __init__(self):
        limits = ",".join(f"{name}={limit}" for name, limit in LIMITS.items())
        self.server = Burrow("--share-limits", limits)

    def __enter__(self):
        self.server.__enter__()
        self.ann, self.bob = self.user("ann"), self.user("bob")
        return self

    def __exit__(self, *reason):
        self.server.__exit__(*reason)

    def restart(self):
        key = self.server.key
        self.server.stop()
        self.server.start()
        equal(self.server.key, key, "the administrator's key")

    def ask(self, key, method, path, body=None, headers=()):
        headers = [*headers, ("Authorization", f"Bearer {key or self.server.key}")]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            body = json.dumps(body).encode()
        return request(self.server.address, method, path, headers, body or b"")

    def call(self, key, method, path, body=None, headers=()):
        answer = self.ask(key, method, path, body, headers)
        assert 200 <= answer.status < 300, (method, path, answer.status, answer.body)
        return json.loads(answer.body) if answer.body else None

    def user(self, name):
        user = self.call(None, "POST", f"{NATIVE}/users", {"name": name})
        return self.call(None, "POST", f"{NATIVE}/keys", {"name": name, "user": user["id"]})["key"]

    def figure(self, name, share):
        text = self.ask(None, "GET", "/metrics").body.decode()
        return next(float(line.split()[1]) for line in text.splitlines()
                    if line.startswith(f'{name}{{share="{share}"}} '))

    def held(self, share):
        return self.figure("burrow_share_held", share)


def refused(answer, share):
    """The error names the share, and says what to do."""
    equal(answer.status, 429, answer.body)
    error = json.loads(answer.body)["error"]
    equal(error["code"], "quota_exceeded", error)
    assert error["message"].startswith(f"{share}: "), error
    assert "; " in error["message"], error


def stream(town, key):
    connection = connect(town.server.address)
    connection.send(f"GET {NATIVE}/events?stream=1 HTTP/1.1\r\nHost: localhost\r\n"
                    f"Authorization: Bearer {key}\r\n\r\n".encode())
    return connection


@test
def event_streams():
    with Town() as town, ExitStack() as all_streams:
        streams = []
        for key in [town.ann] * LIMITS["event_streams"] + [town.bob, town.server.key]:
            streams.append(all_streams.enter_context(stream(town, key)))
            equal(streams[-1].response_head().status, 200, "a stream")
        path = f"{NATIVE}/events?stream=1"
        refused(town.ask(town.ann, "GET", path), "event_streams")
        equal(town.held("event_streams"), 5, "held")
        equal(town.figure("burrow_share_refused_total", "event_streams"), 1, "refused")
        streams[0].close()
        wait_until(lambda: town.held("event_streams") == 4, "the stream is given back")
        equal(all_streams.enter_context(stream(town, town.ann)).response_head().status, 200, "again")


def template(town, key, name, size=1):
    return town.ask(key, "PUT", f"{NATIVE}/templates/{name}", {"env": {f"X{i}": "x" * 10000 for i in range(size)}})


@test
def templates_and_their_bytes():
    with Town() as town:
        for name in ("one", "two", "one"):  # in place of itself
            equal(template(town, town.ann, name).status, 200, "a template")
        refused(template(town, town.ann, "three"), "templates")
        refused(template(town, town.ann, "two", 10), "template_bytes")
        equal(template(town, town.bob, "one", 6).status, 200, "of somebody else")
        equal(town.held("templates"), 3, "held")
        town.restart()
        wait_until(lambda: town.held("templates") == 3, "known again after a restart")
        refused(template(town, town.ann, "three"), "templates")
        town.call(town.ann, "DELETE", f"{NATIVE}/templates/one")
        equal(template(town, town.ann, "three").status, 200, "in the place of another")


@test
def webhooks():
    with Town() as town:
        path, wish = f"{NATIVE}/webhooks", {"url": "https://there.example/"}
        mine = [town.call(town.ann, "POST", path, wish)["id"] for _ in range(LIMITS["webhooks"])]
        refused(town.ask(town.ann, "POST", path, wish), "webhooks")
        town.call(town.bob, "POST", path, wish)
        town.call(town.ann, "DELETE", f"{path}/{mine[0]}")
        town.call(town.ann, "POST", path, wish)


def repeatable(town, key, word):
    return town.ask(key, "POST", f"{NATIVE}/webhooks", {"url": f"https://there.example/{word}"},
                    [("Idempotency-Key", word)])


@test
def replies_that_are_kept_for_a_key():
    with Town() as town:
        for word in "abc":
            answer = repeatable(town, town.server.key, word)
            equal(answer.status, 201, answer.body)
        equal(town.held("idempotent_replies"), 3, "held, of an administrator")
        for word in "ab":
            equal(repeatable(town, town.ann, word).status, 201, "one that is kept")
        equal(repeatable(town, town.ann, "a").headers.get("Idempotency-Replayed"), "true", "again")
        equal(town.held("idempotent_replies"), 5, "a replay keeps no more")
        town.restart()
        wait_until(lambda: town.held("idempotent_replies") == 5, "known again after a restart")
        assert town.held("idempotent_bytes") > 0, "bytes"
        path = f"{NATIVE}/templates/t"
        town.call(town.ann, "PUT", path, {}, [("Idempotency-Key", "t")])


main()
