#!/usr/bin/python3
# timeout: 900
"""Generated requests at every route of every dialect: whatever is sent, the daemon lives, answers
within seconds, never with 500, and an error is told in the shape of the dialect that was asked.

    BURROW_SEED=N|random  other requests than the usual (their number is printed)
    BURROW_FULL=1        40,000 requests instead of 1,500
    BURROW_REQUESTS=N
"""

import atexit
import json
import os
import random
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from api_routes import WEBSOCKETS, all_routes  # noqa: E402
from control_plane import NATIVE, ControlPlane  # noqa: E402
from http_raw import connect  # noqa: E402
from launcher import need_launcher  # noqa: E402
from soak import FULL, SEED  # noqa: E402
from tap import main, test  # noqa: E402
from websocket_raw import frame  # noqa: E402

IS_ASAN = "asan" in os.environ.get("BURROW_BUILD", "")  # keeps what was freed
REQUESTS = int(os.environ.get("BURROW_REQUESTS", 40000 if FULL else 1500))
QUIET_SECONDS = 0.2  # an answer that has begun and says nothing for so long is a stream
MEMORY_KB = 100 * 1024  # that a daemon may have more when it has been asked all this
CLEAN_EVERY = 200  # requests

SOCKETS = {pattern for pattern, _ in WEBSOCKETS}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW")
HOSTS = ("", "a b", "[::1", "localhost:99999", "8080-fuzzed-token.localhost", "-.localhost",
         "65536-aaaaaaaaaaaaaaaaaaaaaaaaaa-x.localhost", "a" * 300 + ".localhost", "evil.example")
# A daemon may say so about what it was asked; 500 it may not.
SERVER_ERRORS = (501, 502, 503, 504, 505, 507)
# What refuses a request before any dialect is asked says it in our own words.
SHAPES = {
    "native": ("error.code", "error.message", "error.requestId"),
    "operations": ("error.code", "error.message", "error.requestId"),
    "bridge": ("error", "code"),
    "stackmemory": ("ok", "error", "details"),
    "agentpod": ("error",),
    "auth": ("error", "message", "code"),
}
OWN = SHAPES["native"]
# Refused while the bytes of the head are read, or before a route is known.
BEFORE_DIALECTS = (400, 404, 405, 408, 413, 414, 417, 421, 431, 501, 505)

TEXTS = ("", " ", "a", "..", "/", "/..", "../../etc/passwd", "/proc/self/mem", "\0", "a\0b", "\n",
         "ä", "\U0001f600", "%", "%00", "%s%n", "'", '"', "\\", "{}", "null", "-1", "1e999", "true",
         "a" * 300, "a/" * 300, "a" * 70000, "\u202e", "\ufeff", "localhost", "file:///etc/passwd",
         "http://127.0.0.1:1/", "; touch /tmp/x", "$(reboot)", "-rf", "--help", "*", "default")
NUMBERS = (0, 1, -1, 2, 80, 3000, 8080, 65535, 65536, 1 << 31, (1 << 31) - 1, 1 << 32, 1 << 53,
           (1 << 63) - 1, 1 << 63, 1 << 64, -(1 << 63), 0.5, -0.0, 1e300, 1e-300)
SEGMENTS = ("%2f", "%2F..%2F..", "..", ".", "%2e%2e", "%00", "a%00b", "%ff%fe", "%", "%zz", "%2",
            "a" * 4000, "+", "~", "%20", "%0d%0a", ";a=b", "*", "%c0%af", "%e2%82", "me", "default",
            "system", "{id}", "'", "ä", "-", "_", "0", "%25", "%252f")
BAD_BODIES = (b"", b"{", b"}", b"[", b"[]", b"null", b"0", b'""', b"\xff\xfe", b'{"a":"\xc3"}',
              b'{"a":"\\ud800"}', b'{"a":1,"a":2}', b"{} {}", b"\0", b"nonsense", b'{"a":1e999}',
              b"[" * 3000, b'{"a":' * 3000, b'{"' + b"k" * 60000 + b'":1}', b"\xef\xbb\xbf{}",
              b'{"a":' + b"9" * 5000 + b"}", b"{'a':1}", b'{"a":NaN}', b'{"\\u0000":1}')


class Fuzzer:
    """Makes requests; all from one source of chance."""

    def __init__(self, rng, routes, things):
        self.rng, self.routes, self.things = rng, routes, things

    def text(self):
        if self.rng.random() < 0.2:
            return "".join(chr(self.rng.choice((self.rng.randrange(128), self.rng.randrange(0xd800))))
                           for _ in range(self.rng.randrange(40)))
        return self.rng.choice(TEXTS)

    def value(self, depth=0):
        kind = self.rng.randrange(8 if depth < 3 else 5)
        if kind < 2:
            return self.text()
        if kind < 4:
            return self.rng.choice(NUMBERS)
        if kind == 4:
            return self.rng.choice((None, True, False))
        if kind == 5:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(4))]
        if kind == 6:
            return [self.text()] * self.rng.choice((1, 300, 3000))
        return {self.text(): self.value(depth + 1) for _ in range(self.rng.randrange(4))}

    # --- bodies ----------------------------------------------------------------------------------

    def fields_of(self, route):
        known = list((route.schema or {}).get("properties", {}))
        body = route.body if isinstance(route.body, dict) else {}
        return sorted({*known, *body}) or ["command", "path", "content", "id", "name"]

    def body(self, route):
        """Bytes: the good one, or one a little or very wrong."""
        chance, good = self.rng.random(), route.body
        if chance < 0.1:
            return b""
        if chance < 0.25:
            return self.rng.choice(BAD_BODIES)
        if isinstance(good, bytes):
            return self.rng.choice((good, good[:-1], self.rng.randbytes(2000), good * 40))
        if chance < 0.35:
            return json.dumps(self.value()).encode()
        body = dict(good or {})
        for _ in range(self.rng.randrange(1, 4)):
            name = self.rng.choice(self.fields_of(route))
            if self.rng.random() < 0.15:
                body.pop(name, None)
            elif self.rng.random() < 0.1:
                body[self.text()] = self.value()
            else:
                body[name] = self.value()
        encoded = json.dumps(body, ensure_ascii=self.rng.random() < 0.5).encode("utf-8", "replace")
        return encoded[:self.rng.randrange(len(encoded) + 1)] if chance > 0.95 else encoded

    # --- targets ---------------------------------------------------------------------------------

    def target(self, route):
        path = route.pattern
        for name in route.parameters:
            chance = self.rng.random()
            value = self.things[name] if chance < 0.6 else self.rng.choice(SEGMENTS)
            path = path.replace(f"{{{name}}}", str(value))
        if self.rng.random() < 0.1:
            path += self.rng.choice(("/", "//", "/..", "/%2e%2e/", "?", "#a", "/" + "a/" * 200, "/%00"))
        return path + self.query(route)

    def query(self, route):
        if self.rng.random() < 0.5:
            return route.query
        if route.pattern in SOCKETS and self.rng.random() < 0.5:
            return "?sessionId=session&session=session"
        names = [*route.query_names, "path", "limit", "cursor", "x", "", "stream", "list"]
        pairs = [f"{self.rng.choice(names)}={self.rng.choice(SEGMENTS + ('1', '0', '-1', '9' * 30))}"
                 for _ in range(self.rng.choice((1, 2, 5, 200)))]
        return "?" + "&".join(pairs)

    # --- heads -----------------------------------------------------------------------------------

    def headers(self, route):
        """A few odd ones."""
        odd = (
            ("Content-Type", self.rng.choice(("text/plain", "application/json; charset=utf-16",
                                              "multipart/form-data", "x", ""))),
            ("Accept", self.rng.choice(("text/event-stream", "*/*", "nonsense", "a" * 3000))),
            ("Range", self.rng.choice(("bytes=0-", "bytes=-1", "bytes=5-1", "bytes=9999999999999-",
                                       "bytes=0-0,1-1", "lines=1", "bytes=" + "9" * 40 + "-"))),
            ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", self.rng.choice(("dGhlIHNhbXBsZSBub25jZQ==", "short", ""))),
            ("Expect", self.rng.choice(("100-continue", "a-miracle"))),
            ("Idempotency-Key", self.rng.choice(("k", "", "a" * 1000, "ä"))),
            ("Session-Id", self.rng.choice(("default", "a" * 500, "../x", ""))),
            ("Last-Event-ID", self.rng.choice(("0", "-1", "9" * 30, "x"))),
            ("Cookie", self.rng.choice(("a", "=", "__Host-burrow=x", ";" * 500, "a=b; " * 300))),
            ("Origin", self.rng.choice(("null", "http://evil.example", "x"))),
            ("X-Forwarded-For", self.rng.choice(("1.2.3.4", "::1", "x", "," * 500))),
            ("If-None-Match", "*"), ("Accept-Encoding", "gzip;q=0"), ("X-Odd", "\x80\xff"),
            ("Authorization", self.rng.choice(("", "Bearer", "Bearer ", "Basic eDp5", "Bearer \xff"))),
        )
        chosen = [header for header in odd if self.rng.random() < 0.06]
        if self.rng.random() < (0.6 if route.pattern in SOCKETS else 0.02):  # a whole handshake
            chosen += [("Upgrade", "websocket"), ("Connection", "Upgrade"),
                       ("Sec-WebSocket-Version", "13"),
                       ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]
        return chosen

    def request(self, key):
        """(route, method, bytes) of one; route None: for a host that may be none of ours."""
        route = self.rng.choice(self.routes)
        method = self.rng.choice(METHODS) if self.rng.random() < 0.1 else route.method
        headers = self.headers(route)
        if not any(name == "Authorization" for name, _ in headers) and self.rng.random() < 0.95:
            headers.append(("Authorization", f"Bearer {key}"))
        body = self.body(route) if method not in ("GET", "HEAD") or self.rng.random() < 0.05 else b""
        if body and not any(name == "Content-Type" for name, _ in headers):
            headers.append(("Content-Type", "application/json"))
        if self.rng.random() < 0.1 and body:
            headers.append(("Transfer-Encoding", "chunked"))
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        elif body or method not in ("GET", "HEAD"):
            headers.append(("Content-Length", str(len(body))))
        host = self.rng.choice(HOSTS) if self.rng.random() < 0.03 else "localhost"
        lines = [f"{method} {self.target(route)} HTTP/1.1", f"Host: {host}",
                 *(f"{name}: {value}" for name, value in headers)]
        head = "\r\n".join(lines).encode("utf-8" if self.rng.random() < 0.5 else "latin-1", "replace")
        return route if host == "localhost" else None, method, head + b"\r\n\r\n" + body


# --- answers -------------------------------------------------------------------------------------


def babble(connection, rng):
    """Frames of all kinds, good and bad, into an open WebSocket."""
    for _ in range(rng.randrange(1, 8)):
        payload = rng.choice((b"", b"{}", b'{"type":"resize","cols":-1,"rows":1e99}', b'{"type":1}',
                              b'{"type":"input","data":"ls\\n"}', rng.randbytes(rng.choice((5, 300, 70000))),
                              b'["push",["pipeline",0,["x"],[]]]', b'["pull",-1]', b"\xff"))
        data = frame(rng.choice((0, 1, 1, 1, 2, 2, 3, 8, 9, 10, 15)), payload,
                     final=rng.random() < 0.9, masked=rng.random() < 0.95,
                     reserved=rng.randrange(8) if rng.random() < 0.05 else 0)
        try:
            connection.send(data[:rng.randrange(len(data))] if rng.random() < 0.05 else data)
        except OSError:
            return  # thrown out, as it should be
    connection.socket.settimeout(QUIET_SECONDS)
    try:
        connection.read_some()
    except OSError:
        pass


def exchange(address, method, data, rng):
    """(status, headers, body) of the answer; the body of a stream as far as it came at once."""
    with connect(address) as connection:
        try:
            connection.send(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before all was sent: the answer is there all the same
        head = connection.response_head()
        while 100 <= head.status < 200 and head.status != 101:
            head = connection.response_head()
        if head.status == 101:
            babble(connection, rng)
        if method == "HEAD" or head.status in (101, 204, 304):
            return head.status, head.headers, b""
        if "content-length" in head.headers:
            return head.status, head.headers, connection.read_exactly(int(head.headers["content-length"]))
        connection.socket.settimeout(QUIET_SECONDS)
        end = time.monotonic() + 1
        try:
            while time.monotonic() < end and connection.read_some():
                pass
        except (TimeoutError, socket.timeout):
            pass
        return head.status, head.headers, connection.buffer


def has_shape(body, shape):
    for path in shape:
        value = body
        for name in path.split("."):
            if not isinstance(value, dict) or name not in value:
                return False
            value = value[name]
    return True


def problem_of(route, method, status, headers, body):
    """What is wrong with an answer; None: nothing."""
    if status >= 500 and status not in SERVER_ERRORS:
        return f"status {status}"
    if status < 400 or method == "HEAD" or not route:
        return None
    if "/container/" in route.pattern and "x-request-id" in headers:
        return None  # the sandbox's own words
    try:
        told = json.loads(body)
    except ValueError:
        return "an error that is no JSON"
    fitting = [SHAPES[route.dialect]] + ([OWN] if status in BEFORE_DIALECTS else [])
    if not any(has_shape(told, shape) for shape in fitting):
        return f"an error in another shape than that of {route.dialect}"
    return None


# --- the world -----------------------------------------------------------------------------------

BOX = "fuzzed"


class Target:
    """The daemon, and things that requests can name. They are made again when a request removed them."""

    def __init__(self):
        self.plane = ControlPlane("--stock", "2", "--quota-sandboxes", "12", "--quota-running", "8",
                                  "--default-memory", "256M", "--default-pids", "200")
        self.plane.__enter__()
        atexit.register(self.plane.__exit__, None, None, None)
        self.admin = self.plane.key
        self.daemon = self.plane.daemon_pid
        user = self.plane.call("POST", f"{NATIVE}/users", {"name": "fuzzer"})
        self.key = self.plane.call("POST", f"{NATIVE}/keys", {
            "name": "f", "scope": "write", "user": user["id"]})["key"]
        self.things = {"user": "me", "key": "nosuch", "executionId": "x", "rest": "rest"}
        self.things |= {name: "a" * 26 for name in ("conversation", "turn", "permission", "task", "team", "schedule")}
        self.plane.call("PUT", f"{NATIVE}/credentials/fuzzed", {"kind": "bearer", "value": "v", "hosts": ["x.test"]},
                        key=self.key)
        self.things["credential"] = "fuzzed"
        self.tidy()

    def tidy(self):
        """One sandbox with one of everything; those that requests made go."""
        for box in self.plane.call("GET", f"{NATIVE}/sandboxes?limit=1000", key=self.key)["sandboxes"]:
            if box["name"] != BOX or box["status"] != "running":
                self.plane.ask("DELETE", f"{NATIVE}/sandboxes/{box['id']}", key=self.key, timeout=60)
        for hook in self.plane.call("GET", f"{NATIVE}/webhooks", key=self.key)["webhooks"]:
            self.plane.ask("DELETE", f"{NATIVE}/webhooks/{hook['id']}", key=self.key)
        box = self.plane.create(BOX, key=self.key, network="none")
        at = f"{NATIVE}/sandboxes/{BOX}"
        self.plane.ask("PUT", f"{at}/files/workspace/file", b"content", key=self.key)
        self.plane.ask("POST", f"{at}/sessions", {"id": "session"}, key=self.key)
        process = self.plane.call("POST", f"{at}/processes", {"command": "sleep 100"}, key=self.key)
        hook = self.plane.call("POST", f"{NATIVE}/webhooks", {"url": "http://127.0.0.1:9/"},
                               key=self.key)
        self.plane.ask("POST", f"{at}/ports", {"port": 8080}, key=self.key)
        snapshot = self.plane.call("POST", f"{at}/snapshots", {}, key=self.key)["id"]
        backup = self.plane.call("POST", f"{at}/backups", {}, key=self.key)["id"]
        self.plane.call("PUT", f"{NATIVE}/templates/template", {}, key=self.key)
        self.things |= {"snapshot": snapshot, "backup": backup, "name": "template", "id": BOX, "session": "session", "process": process["processId"],
                        "path": "workspace/file", "context": "nosuch", "port": "8080",
                        "webhook": hook["id"]}
        assert box["status"] == "running", box

    def memory_kb(self):
        """Of the daemon, not of the launcher."""
        with open(f"/proc/{self.daemon}/status", encoding="ascii") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))

    def last_words(self):
        """The end of the log; of a sanitizer all it said."""
        log = self.plane.log()
        at = log.find("ERROR: AddressSanitizer")
        return log[-3000:] if at < 0 else log[max(0, at - 3000):at + 6000]

    def is_well(self):
        return self.plane.daemon_pid == self.daemon and self.plane.is_ready()


@test
def whatever_is_sent_is_answered_and_hurts_nobody():
    need_launcher()
    print(f"# BURROW_SEED={SEED}: {REQUESTS} requests", flush=True)
    target = Target()
    fuzzer = Fuzzer(random.Random(SEED), all_routes(target.plane), target.things)
    problems, statuses, slowest, sent = {}, {}, (0, ""), 0
    memory = target.memory_kb()
    while sent < REQUESTS and len(problems) < 20:
        # An administrator's key reaches more, and may also remove what we need: seldom.
        key = target.admin if fuzzer.rng.random() < 0.1 else target.key
        route, method, data = fuzzer.request(key)
        if route and route.pattern.endswith("/users/{user}") and key == target.admin:
            continue  # would take the administrator's own name or rights
        began = time.monotonic()
        try:
            status, headers, body = exchange(target.plane.address, method, data, fuzzer.rng)
            problem = problem_of(route, method, status, headers, body)
        except (OSError, EOFError, AssertionError, ValueError) as error:
            status, body, problem = 0, b"", f"no answer: {error!r}"
        took = time.monotonic() - began
        slowest = max(slowest, (took, f"{route}"))
        statuses[status] = statuses.get(status, 0) + 1
        sent += 1
        if problem:
            problems.setdefault(f"{route}: {problem}", f"{data[:600]!r} -> {status} {body[:300]!r}")
        if not target.is_well() if problem else target.plane.daemon_pid != target.daemon:
            raise AssertionError(f"the daemon died, last of {data[:3000]!r}\n{target.last_words()}")
        if sent % CLEAN_EVERY == 0:
            target.tidy()
    print(f"# {sent} requests; {dict(sorted(statuses.items()))}; slowest {slowest[0]:.1f} s: "
          f"{slowest[1]}; {memory} -> {target.memory_kb()} kB", flush=True)
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(
        f"{what}\n    {request}" for what, request in problems.items())
    assert IS_ASAN or target.memory_kb() < memory + MEMORY_KB, "the daemon has grown"
    assert len(statuses) > 5 and statuses.get(200, 0) > sent / 50, f"hardly anything worked: {statuses}"


main()
