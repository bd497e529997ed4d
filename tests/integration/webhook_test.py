#!/usr/bin/python3
# timeout: 600
"""Webhooks out: a real receiver is told what happened, signed, once, in order, whatever dies."""

import hashlib
import hmac
import http.server
import json
import os
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow, free_port  # noqa: E402
from http_raw import request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, patient, test  # noqa: E402

HOOKS = "/burrow/v1/webhooks"
ALLOWED = ("--webhook-networks", "127.0.0.0/8")
SECRET = "a secret of sixteen bytes and more"


class Receiver:
    """An HTTP server that remembers what it was sent. `answers` are given first, then 204."""

    def __init__(self, port=None):
        self.port = port or free_port()
        self.received, self.answers = [], []
        self.server = None
        self.open()

    def open(self):
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):  # pylint: disable=invalid-name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.received.append((dict(self.headers.items()), body))
                status = receiver.answers.pop(0) if receiver.answers else 204
                self.send_response(status)
                if status in (301, 302, 307, 308):
                    self.send_header("Location", f"http://127.0.0.1:{receiver.port}/elsewhere")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        http.server.ThreadingHTTPServer.daemon_threads = True
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/hook?a=b"

    def keys(self):
        """Of which keys it was told, in order."""
        return [json.loads(body)["data"]["keyId"] for _, body in self.received]

    def wait_for(self, count):
        wait_until(lambda: len(self.received) >= count, f"{count} deliveries")


class Daemon(Burrow):
    def ask(self, method, path, body=None):
        return request(self.address, method, path,
                       [("Authorization", f"Bearer {self.key}"),
                        ("Content-Type", "application/json")],
                       b"" if body is None else json.dumps(body).encode())

    def call(self, method, path, body=None, expected=None):
        answer = self.ask(method, path, body)
        if expected is None and not 200 <= answer.status < 300:
            raise AssertionError(f"{method} {path}: {answer.status} {answer.body!r}")
        if expected is not None:
            equal(answer.status, expected, f"{method} {path}")
        return json.loads(answer.body) if answer.body else None

    def hook(self, url, **fields):
        return self.call("POST", HOOKS, {"url": url, "events": ["key.created"], **fields})

    def make_keys(self, count):
        """Something that happens; ids in the order it did."""
        return [self.call("POST", "/burrow/v1/keys", {"name": f"k{i}", "scope": "read"})["id"]
                for i in range(count)]

    def deliveries(self, hook):
        """Oldest first."""
        return self.call("GET", f"{HOOKS}/{hook['id']}/deliveries?limit=1000")["deliveries"][::-1]

    def wait_for_states(self, hook, states):
        def are_so():
            return [one["state"] for one in self.deliveries(hook)] == states
        wait_until(are_so, f"deliveries are {states}")

    def crash(self):
        """kill -9, and a new one on the same data."""
        self.signal(signal.SIGKILL)
        self.process.wait()
        self.start()


@test
def a_delivery_is_signed_and_has_the_bearer():
    with Daemon(*ALLOWED) as daemon, Receiver() as receiver:
        hook = daemon.hook(receiver.url, secret=SECRET, bearer="legacy-token")
        equal(hook["secret"], SECRET, "secret, shown once")
        began = int(time.time())
        key, = daemon.make_keys(1)
        receiver.wait_for(1)
        headers, body = receiver.received[0]
        equal(headers["Authorization"], "Bearer legacy-token", "bearer")
        equal(headers["Content-Type"], "application/json", "type")
        equal(headers["X-Burrow-Event"], "key.created", "event")
        stamp, signature = (part.split("=", 1)[1]
                            for part in headers["X-Burrow-Signature"].split(","))
        expected = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, hashlib.sha256)
        equal(signature, expected.hexdigest(), "signature")
        assert began <= int(stamp) <= time.time(), stamp
        said = json.loads(body)
        equal(sorted(said), ["data", "event", "timestamp"], "fields")
        equal((said["event"], said["data"]["keyId"]), ("key.created", key), "what happened")
        daemon.wait_for_states(hook, ["delivered"])
        entry, = daemon.deliveries(hook)
        equal((entry["status"], entry["attempts"], entry["id"]),
              (204, 1, headers["X-Burrow-Delivery"]), "delivery log")
        assert "secret" not in daemon.call("GET", f"{HOOKS}/{hook['id']}"), "secret shown again"
        log = daemon.log()
        assert SECRET not in log and "legacy-token" not in log, "secrets in the log"


@patient
def deliveries_come_in_order_and_survive_a_crash_of_the_daemon():
    with Daemon(*ALLOWED) as daemon, Receiver() as receiver:
        hook = daemon.hook(receiver.url)
        keys = daemon.make_keys(30)
        receiver.wait_for(30)
        equal(receiver.keys(), keys, "order")
        # One whose answer is lost on the way would rightly be told again.
        daemon.wait_for_states(hook, ["delivered"] * 30)
        receiver.close()
        more = daemon.make_keys(3)
        wait_until(lambda: len(daemon.deliveries(hook)) == 33, "33 rows")
        # At once, so that some are kept and not looked at yet.
        last = daemon.make_keys(2)
        daemon.crash()
        receiver.open()
        wait_until(lambda: set(receiver.keys()) == set(keys + more + last), "all of them")
        time.sleep(1)
        told = receiver.keys()
        equal(len(told), len(set(told)), "none twice")
        daemon.wait_for_states(hook, ["delivered"] * 35)
        daemon.crash()
        time.sleep(2)
        equal(receiver.keys(), told, "nothing again after another crash")
        equal(len(daemon.deliveries(hook)), 35, "the log is kept")


@patient
def what_fails_is_tried_again_and_the_next_ones_do_not_wait():
    with Daemon(*ALLOWED) as daemon, Receiver() as receiver, Receiver() as other:
        receiver.answers = [500]
        other.answers = [302]  # followed by nobody
        hook, second = daemon.hook(receiver.url), daemon.hook(other.url)
        one, two = daemon.make_keys(2)
        receiver.wait_for(2)
        equal(receiver.keys(), [one, two], "the second does not wait for the first")
        daemon.wait_for_states(hook, ["waiting", "delivered"])
        first = daemon.deliveries(hook)[0]
        equal((first["attempts"], first["status"]), (1, 500), "the first attempt")
        assert "nextAt" in first, first
        receiver.wait_for(3)
        equal(receiver.keys(), [one, two, one], "tried again")
        equal(receiver.received[0][0]["X-Burrow-Delivery"],
              receiver.received[2][0]["X-Burrow-Delivery"], "id of both attempts")
        daemon.wait_for_states(hook, ["delivered", "delivered"])
        equal(daemon.deliveries(hook)[0]["attempts"], 2, "attempts")
        other.wait_for(3)
        equal(other.keys(), [one, two, one], "a redirect is a failure")
        daemon.wait_for_states(second, ["delivered", "delivered"])


@patient
def a_receiver_that_was_away_is_told_later():
    with Daemon(*ALLOWED) as daemon, Receiver() as receiver:
        hook = daemon.hook(receiver.url)
        receiver.close()
        keys = daemon.make_keys(3)
        wait_until(lambda: [d["attempts"] for d in daemon.deliveries(hook)] == [1, 1, 1],
                   "one attempt each")
        equal({d["state"] for d in daemon.deliveries(hook)}, {"waiting"}, "states")
        receiver.open()
        receiver.wait_for(3)
        equal(receiver.keys(), keys, "in order")


@patient
def a_receiver_that_never_answers_holds_up_nobody_else():
    with socket.socket() as silent, Daemon(*ALLOWED) as daemon, Receiver() as receiver:
        silent.bind(("127.0.0.1", 0))
        silent.listen(64)
        for _ in range(3):
            daemon.hook(f"http://127.0.0.1:{silent.getsockname()[1]}/")
        daemon.hook(receiver.url)
        keys = daemon.make_keys(20)
        receiver.wait_for(20)
        equal(receiver.keys(), keys, "order")
        daemon.stop()  # does not wait for them either


@patient
def stopped_and_deleted_webhooks_are_told_nothing():
    with Daemon(*ALLOWED) as daemon, Receiver() as receiver:
        hook = daemon.hook(receiver.url)
        path = f"{HOOKS}/{hook['id']}"
        equal(daemon.call("PATCH", path, {"enabled": False})["enabled"], False, "enabled")
        missed = daemon.make_keys(2)
        daemon.crash()
        time.sleep(2)
        equal(receiver.keys(), [], "told while stopped")
        daemon.call("PATCH", path, {"enabled": True})
        receiver.wait_for(2)
        equal(receiver.keys(), missed, "goes on from where it stopped")
        daemon.call("DELETE", path, expected=204)
        daemon.call("GET", path, expected=404)
        daemon.call("GET", path + "/deliveries", expected=404)
        daemon.make_keys(1)
        daemon.crash()
        daemon.make_keys(1)
        time.sleep(2)
        equal(receiver.keys(), missed, "told after it was deleted")
        equal(daemon.call("GET", HOOKS)["webhooks"], [], "list")


@test
def private_addresses_are_refused_unless_allowed():
    with Daemon() as daemon, Receiver() as receiver:
        hook = daemon.hook(receiver.url)
        named = daemon.hook(f"http://localhost:{receiver.port}/")
        daemon.make_keys(1)
        for one in (hook, named):
            wait_until(lambda one=one: any(d["attempts"] for d in daemon.deliveries(one)), "a try")
            entry, = daemon.deliveries(one)
            assert "status" not in entry and entry["detail"], entry
            assert "/hook" not in entry["detail"], entry
        equal(receiver.received, [], "sent all the same")


@test
def a_user_learns_nothing_of_our_names():
    """What is refused and what is not resolved look alike; an administrator is told."""
    with Daemon() as daemon:
        user = daemon.call("POST", "/burrow/v1/users", {"name": "eve"})["id"]
        key = daemon.call("POST", "/burrow/v1/keys", {"name": "eve", "user": user})["key"]

        def as_user(method, path, body=None):
            answer = request(daemon.address, method, path, [("Authorization", f"Bearer {key}"),
                                                            ("Content-Type", "application/json")],
                             b"" if body is None else json.dumps(body).encode())
            return json.loads(answer.body)
        urls = ("http://localhost:9/", "http://127.0.0.1:9/", "http://nowhere.onion/")
        hooks = [as_user("POST", HOOKS, {"url": url, "events": ["key.created"]})["id"] for url in urls]
        own = daemon.hook("http://localhost:9/")
        as_user("POST", "/burrow/v1/keys", {"name": "k"})
        daemon.make_keys(1)

        def detail(one):
            return wait_until(lambda: [d["detail"] for d in one()["deliveries"] if d["attempts"]], "a try")[0]
        equal([detail(lambda hook=hook: as_user("GET", f"{HOOKS}/{hook}/deliveries")) for hook in hooks],
              ["the host has no public address"] * 3, "details")
        assert "is loopback" in detail(lambda: daemon.call("GET", f"{HOOKS}/{own['id']}/deliveries")), own


@test
def bad_webhooks_are_refused():
    with Daemon(*ALLOWED) as daemon:
        for fields in ({"url": "ftp://there/"}, {"url": "http://a:b@there/"}, {},
                       {"url": "http://there/\r\nX: y"}, {"url": "http://there", "secret": "short"},
                       {"url": "http://there", "bearer": "a\nb"}, {"url": "http://there", "x": 1},
                       {"url": "http://there", "events": ["No"]},
                       {"url": "http://there", "events": ["a"] * 33}):
            answer = daemon.ask("POST", HOOKS, fields)
            equal(answer.status, 400, f"{fields}")
        equal(daemon.call("GET", HOOKS)["webhooks"], [], "list")


main()
