#!/usr/bin/python3
"""Nobody can count what others do: ids of requests do not count up, and cursors of the event log say
where to go on and nothing else. They are each owner's own, and stay good over a restart."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

NATIVE = "/burrow/v1"


class Town:
    """A daemon with two users."""

    def __init__(self):
        self.server = Burrow()

    def __enter__(self):
        self.server.__enter__()
        self.ann, self.bob = self.user("ann"), self.user("bob")
        return self

    def __exit__(self, *reason):
        self.server.__exit__(*reason)

    def ask(self, key, method, path, body=None, headers=()):
        headers = [*headers, ("Authorization", f"Bearer {key or self.server.key}")]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
            body = json.dumps(body).encode()
        return request(self.server.address, method, path, headers, body or b"")

    def call(self, key, method, path, body=None):
        answer = self.ask(key, method, path, body)
        assert 200 <= answer.status < 300, (method, path, answer.status, answer.body)
        return json.loads(answer.body) if answer.body else None

    def user(self, name):
        user = self.call(None, "POST", f"{NATIVE}/users", {"name": name})
        return self.call(None, "POST", f"{NATIVE}/keys", {"name": name, "user": user["id"]})["key"]

    def happen(self, key, name):
        self.call(key, "PUT", f"{NATIVE}/templates/{name}", {})

    def events(self, key, query=""):
        return self.call(key, "GET", f"{NATIVE}/events?type=template.{query}")["events"]


@test
def ids_of_requests_do_not_count():
    with Town() as town:
        ids = [town.ask(town.ann, "GET", f"{NATIVE}/whoami").headers["X-Request-Id"] for _ in range(200)]
        equal(len(set(ids)), 200, "each is another")
        equal(len({one[:4] for one in ids}) > 150, True, "they have no beginning in common")


@test
def cursors_do_not_count():
    with Town() as town:
        for i in range(30):
            town.happen(town.ann, f"a{i}")
        cursors = [one["cursor"] for one in town.events(town.ann)]
        equal(len(cursors), 30, "events")
        assert all(0 < one <= 1 << 52 for one in cursors), cursors
        gaps = [after - before for before, after in zip(cursors, cursors[1:])]
        assert any(gap < 0 for gap in gaps) and any(gap > 0 for gap in gaps), gaps
        assert all(abs(gap) > 1000 for gap in gaps), gaps
        # For another who sees the very same they are other numbers.
        assert set(cursors).isdisjoint(one["cursor"] for one in town.events(None)), cursors
        assert "sequence" not in town.events(town.ann)[0], "of everybody's stream"
        assert "sequence" in town.events(None)[0], "administrators may count"


@test
def pages_go_on_from_them():
    with Town() as town:
        for i in range(5):
            town.happen(town.ann, f"a{i}")
            town.happen(town.bob, f"b{i}")
        seen, after = [], 0
        while True:
            page = town.call(town.ann, "GET", f"{NATIVE}/events?limit=2&after={after}")
            seen += [one["data"].get("template") for one in page["events"]]
            if page["next"] == after:
                break
            after = page["next"]
        equal([one for one in seen if one], [f"a{i}" for i in range(5)], "all, once, in order")


@test
def a_stream_goes_on_from_them_after_a_restart():
    with Town() as town:
        town.happen(town.ann, "one")
        after = town.events(town.ann)[-1]["cursor"]
        town.happen(town.bob, "not-hers")
        town.happen(town.ann, "two")
        town.server.stop()
        town.server.start()
        with connect(town.server.address) as stream:
            stream.send(f"GET {NATIVE}/events HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {town.ann}\r\n"
                        f"Accept: text/event-stream\r\nLast-Event-ID: {after}\r\n\r\n".encode())
            equal(stream.response_head().status, 200, "status")
            seen = b""
            for piece in stream.chunks():
                seen += piece
                if b'"two"' in seen:
                    break
        assert b'"one"' not in seen and b"not-hers" not in seen, seen
        said = int(seen.split(b"\nid: ")[-1].split(b"\n")[0] if b"\nid: " in seen else
                   seen.split(b"id: ")[1].split(b"\n")[0])
        equal(said, town.events(town.ann)[-1]["cursor"], "the same in both")


@test
def those_of_others_and_of_before_are_refused():
    with Town() as town:
        town.happen(town.ann, "one")
        own = town.events(town.ann)[-1]["cursor"]
        for key, after in ((town.bob, own), (town.ann, 3), (town.ann, 1 << 60), (town.ann, -2), (town.ann, "x")):
            for answer in (town.ask(key, "GET", f"{NATIVE}/events?after={after}"),
                           town.ask(key, "GET", f"{NATIVE}/events", headers=[
                               ("Accept", "text/event-stream"), ("Last-Event-ID", str(after))])):
                equal(answer.status, 400, after)
                error = json.loads(answer.body)["error"]
                assert "is no cursor of yours" in error["message"] and "begin again" in error["message"], error


@test
def deliveries_do_not_count():
    with Town() as town:
        hook = town.call(town.ann, "POST", f"{NATIVE}/webhooks", {"url": "http://127.0.0.1:9/",
                                                                "events": ["template.*"]})["id"]
        for i in range(3):
            town.happen(town.ann, f"a{i}")
        known = {one["cursor"] for one in town.events(town.ann)}
        path = f"{NATIVE}/webhooks/{hook}/deliveries"

        def told():
            return {one["cursor"] for one in town.call(town.ann, "GET", path)["deliveries"]}
        wait_until(lambda: len(told()) == 3, "three deliveries")
        equal(told(), known, "the cursors of the events")


main()
