#!/usr/bin/python3
"""One user's part of what is taken by working in sandboxes: where it ends, that it is said, that
somebody else is not refused meanwhile, and that what is given back can be had again.

One daemon, in which a user may have little, serves all tests; each test has two users of its own."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, main_with_plane  # noqa: E402
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
SECONDS = 120
LIMITS = {"requests": 3, "terminals": 2, "websockets": 2, "mounts": 2, "snapshots": 2, "backups": 2}


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


class Pair:
    """The one who takes as much as he may, and another, with a sandbox each."""

    def __init__(self, name):
        self.many, self.other = f"{name}-many", f"{name}-other"
        self.keys = {each: PLANE.user(each) for each in (self.many, self.other)}

    def __enter__(self):
        for name, key in self.keys.items():
            PLANE.create(name, key=key)
        return self

    def __exit__(self, *_):
        for name, key in self.keys.items():
            PLANE.call("DELETE", of(name), key=key, timeout=SECONDS)

    def ask(self, name, method, path, body=None):
        return PLANE.ask(method, of(name, path), body, key=self.keys[name], timeout=SECONDS)

    def call(self, name, method, path, body=None):
        return PLANE.call(method, of(name, path), body, key=self.keys[name], timeout=SECONDS)

    def upgrade(self, name, path):
        """A connection and the status it was answered with."""
        connection = connect(PLANE.address)
        connection.send(f"GET {of(name, path)} HTTP/1.1\r\nHost: localhost\r\n"
                        f"Authorization: Bearer {self.keys[name]}\r\n"
                        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode())
        return connection, connection.response_head().status


def held(share):
    text = PLANE.ask("GET", "/metrics").body.decode()
    return next(float(line.split()[1]) for line in text.splitlines()
                if line.startswith(f'burrow_share_held{{share="{share}"}} '))


def refused(share, answer):
    equal(answer.status, 429, answer.body)
    assert f"{share}: {LIMITS[share]} of at most {LIMITS[share]}".encode() in answer.body, answer.body


def tunnels_end(share, path):
    """So many upgrades to this path, and no more."""
    with Pair(share) as pair:
        mine = []
        for i in range(LIMITS[share]):
            connection, status = pair.upgrade(pair.many, path.format(i))
            equal(status, 101, "one of his")
            mine.append(connection)
        connection, status = pair.upgrade(pair.many, path.format("more"))
        equal(status, 429, "one more")
        connection.close()
        equal(held(share), LIMITS[share], "held")
        connection, status = pair.upgrade(pair.other, path.format(0))
        equal(status, 101, "of somebody else")
        for each in (*mine, connection):
            each.close()
        wait_until(lambda: held(share) == 0, "they are given back")
        connection, status = pair.upgrade(pair.many, path.format("again"))
        equal(status, 101, "again")
        connection.close()
        wait_until(lambda: held(share) == 0, "that one, too")


@test
def terminals():
    tunnels_end("terminals", "/terminals?sessionId=s{}")


@test
def other_tunnels():
    tunnels_end("websockets", "/exec/ws?n={}")


@test
def requests():
    with Pair("requests") as pair:
        mine = [threading.Thread(target=pair.ask, daemon=True, args=(
            pair.many, "POST", "/exec", {"command": "until [ -e /tmp/go ]; do sleep 0.1; done"}))
            for _ in range(LIMITS["requests"])]
        for each in mine:
            each.start()
        wait_until(lambda: held("requests") == LIMITS["requests"], "all are under way")
        refused("requests", pair.ask(pair.many, "POST", "/exec", {"command": "true"}))
        equal(pair.call(pair.other, "POST", "/exec", {"command": "echo other"})["stdout"], "other\n",
              "of somebody else")
        box = PLANE.sandbox(pair.many, key=pair.keys[pair.many])["id"]
        PLANE.call("POST", of(box, "/exec"), {"command": "touch /tmp/go"})  # an administrator
        for each in mine:
            each.join()
        equal(pair.call(pair.many, "POST", "/exec", {"command": "echo again"})["stdout"], "again\n", "again")


@test
def mounts():
    with Pair("mounts") as pair:
        def mount(name, place):
            return pair.ask(name, "POST", "/mounts", {"path": f"/{place}", "bucket": place})
        for i in range(LIMITS["mounts"]):
            equal(mount(pair.many, f"m{i}").status, 201, "one of his")
        refused("mounts", mount(pair.many, "more"))
        equal(mount(pair.other, "m0").status, 201, "of somebody else")
        pair.call(pair.many, "DELETE", "/mounts?path=/m0")
        equal(mount(pair.many, "again").status, 201, "again")


@test
def snapshots():
    with Pair("snapshots") as pair:
        mine = [pair.call(pair.many, "POST", "/snapshots", {})["id"] for _ in range(LIMITS["snapshots"])]
        refused("snapshots", pair.ask(pair.many, "POST", "/snapshots", {}))
        refused("snapshots", pair.ask(pair.many, "POST", "/rollback", {"snapshot": mine[0]}))
        pair.call(pair.other, "POST", "/snapshots", {})
        PLANE.call("DELETE", f"{NATIVE}/snapshots/{mine[0]}", key=pair.keys[pair.many])
        pair.call(pair.many, "POST", "/snapshots", {})


@test
def backups():
    with Pair("backups") as pair:
        mine = [pair.call(pair.many, "POST", "/backups", {})["id"] for _ in range(LIMITS["backups"])]
        refused("backups", pair.ask(pair.many, "POST", "/backups", {}))
        pair.call(pair.other, "POST", "/backups", {})
        PLANE.call("DELETE", f"{NATIVE}/backups/{mine[0]}", key=pair.keys[pair.many])
        wait_until(lambda: held("backups") == 2, "it is given back")
        pair.call(pair.many, "POST", "/backups", {})


if __name__ == "__main__":
    sys.exit(main_with_plane("sandbox_shares", "--share-limits",
                             ",".join(f"{name}={limit}" for name, limit in LIMITS.items())))
