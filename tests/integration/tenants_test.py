#!/usr/bin/python3
# timeout: 300
"""What is one owner's is not there for another: every route of every dialect is asked for the things
of Alice with the keys of others, with narrow keys of her own, and with none.

A route added to a table of the daemon is walked by itself (tests/lib/api_routes.py). An answer about
something of Alice's must be the answer about something that does not exist, word by word."""

import atexit
import base64
import json
import os
import random
import re
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from api_routes import AGENTPOD, BOX, BRIDGE, STACKMEMORY, WEBSOCKETS, all_routes  # noqa: E402
from control_plane import NATIVE, ControlPlane  # noqa: E402
from http_raw import connect, request  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import handshake  # noqa: E402

PORT = 8080
QUIET_SECONDS = 0.3  # a stream that says nothing for so long has nothing to say
KEY = "dGhlIHNhbXBsZSBub25jZQ=="

# Whoever comes may ask these, and why.
PUBLIC = {
    ("POST", "/api/auth/sign-up/email"): "makes a login; the setting sign-up says who may",
    ("POST", "/api/auth/sign-in/email"): "makes a login",
    ("POST", "/api/auth/sign-out"): "ends the login it is sent with; fine without",
    ("GET", "/api/auth/get-session"): "null without a login",
    ("GET", "/api/auth/session"): "null without a login",
    ("GET", "/api/auth/signup-status"): "a page asks before anybody is logged in",
    ("POST", "/api/v2/cloudflare/webhook"): "opened by the service token, which is no key",
    ("GET", "/health"): "says nothing",
    ("GET", "/ready"): "says nothing",
    ("GET", f"{NATIVE}/version"): "a version",
    ("GET", f"{NATIVE}/openapi.json"): "the same for all who run this version",
    ("GET", f"{NATIVE}/docs"): "the same for all who run this version",
}

PERSIST = ("POST", f"{BRIDGE}/persist")  # reads, though it is a POST

LATER = "not there yet, whoever asks for whatever"
LAZY = "makes a sandbox of the caller's own where there is none"
WEBSOCKET = "426 without an upgrade, whatever is asked for; 404 with one"
IDEMPOTENT = "removing what is not there is fine; nothing is told by it"

# Routes whose answer to a stranger is no 404; it is that about something that does not exist, too.
NOT_404 = {
    ("DELETE", BRIDGE): IDEMPOTENT,
    ("DELETE", f"{BRIDGE}/session/{{session}}"): LAZY,
    ("DELETE", f"{BRIDGE}/tunnel/{{port}}"): LAZY,
    ("GET", f"{BRIDGE}/running"): "whether it runs; false for what is not there",
    ("POST", f"{BRIDGE}/exec"): LAZY,
    ("GET", f"{BRIDGE}/file/{{path}}"): LAZY,
    ("PUT", f"{BRIDGE}/file/{{path}}"): LAZY,
    ("POST", f"{BRIDGE}/persist"): LAZY,
    ("POST", f"{BRIDGE}/hydrate"): LAZY,
    ("POST", f"{BRIDGE}/session"): LAZY,
    ("GET", f"{BRIDGE}/pty"): LAZY,
    ("POST", f"{BRIDGE}/tunnel/{{port}}"): LAZY,
    ("POST", f"{BRIDGE}/mount"): LATER,
    ("POST", f"{BRIDGE}/unmount"): LATER,
    ("POST", f"{STACKMEMORY}/bootstrap"): LAZY,
    ("POST", f"{STACKMEMORY}/exec"): LAZY,
    ("GET", f"{STACKMEMORY}/files"): LAZY,
    ("PUT", f"{STACKMEMORY}/files"): LAZY,
    ("GET", f"{STACKMEMORY}/ls"): LAZY,
    ("GET", f"{STACKMEMORY}/terminal"): LAZY,
    ("POST", f"{STACKMEMORY}/destroy"): IDEMPOTENT,
    ("POST", f"{STACKMEMORY}/mount"): LATER,
    ("POST", f"{STACKMEMORY}/backup"): LATER,
    ("POST", f"{STACKMEMORY}/restore"): LATER,
    ("POST", f"{AGENTPOD}/message"): LATER,
    ("POST", f"{AGENTPOD}/sync"): LATER,
    ("GET", f"{AGENTPOD}/opencode"): LATER,
    ("GET", f"{AGENTPOD}/opencode/{{path}}"): LATER,
    ("POST", f"{AGENTPOD}/opencode/{{path}}"): LATER,
    ("PUT", f"{AGENTPOD}/opencode/{{path}}"): LATER,
    ("PATCH", f"{AGENTPOD}/opencode/{{path}}"): LATER,
    ("DELETE", f"{AGENTPOD}/opencode/{{path}}"): LATER,
    ("GET", "/workflow/{executionId}/status"): LATER,
    ("POST", "/workflow/{executionId}/pause"): LATER,
    ("POST", "/workflow/{executionId}/resume"): LATER,
    ("POST", "/workflow/{executionId}/terminate"): LATER,
    ("GET", "/api/v2/sandboxes/{id}/terminal"): "the WebSocket opens and is closed with 1008",
    ("GET", f"{BOX}/events"): "an empty list: a log outlives its sandbox, and whoever had it may read on",
    ("GET", f"{BOX}/exec/ws"): WEBSOCKET,
    ("GET", f"{BOX}/terminals"): WEBSOCKET,
    ("DELETE", f"{NATIVE}/users/{{user}}"): "403 for all but administrators",
}

# GET routes that have another test for Alice's own: WebSockets, and what is passed through.
NOT_OF_THE_WALK = {pattern for pattern, _ in WEBSOCKETS}

_worlds = []


class World:
    """A daemon, and everything of Alice's that has a name."""

    def __init__(self):
        self.plane = plane = ControlPlane("--trusted-proxies", "127.0.0.0/8", "--stock", "2")
        plane.__enter__()
        atexit.register(self.close)
        self.routes = all_routes(plane)
        self.mark = f"m{random.randrange(1 << 60):x}"  # in everything but the mail address
        self.mail = f"a{random.randrange(1 << 60):x}@example.org"
        self.user = plane.call("POST", f"{NATIVE}/users",
                               {"name": "alice", "email": self.mail})
        self.key_made = self.make_key(user=self.user["id"], scope="write")
        self.key = self.key_made["key"]
        self.box = plane.create("alicebox", key=self.key, labels={"of": self.mark},
                                env={"SECRET": self.mark})
        self.little = plane.create("alicelittle", key=self.key)
        self.at = f"{NATIVE}/sandboxes/{self.box['id']}"
        self.put_inside()
        self.webhook = self.call("POST", f"{NATIVE}/webhooks",
                                 {"url": f"http://127.0.0.1:9/{self.mark}"})
        self.spare = self.make_key(user=self.user["id"], scope="read", name=f"spare-{self.mark}")
        self.strangers = {}

    def close(self):
        self.plane.__exit__(None, None, None)

    def put_inside(self):
        self.plane.ask("PUT", f"{self.at}/files/workspace/secret", self.mark.encode(), key=self.key)
        self.call("POST", f"{self.at}/sessions", {"id": f"session-{self.mark}"})
        self.process = self.call("POST", f"{self.at}/processes",
                                 {"command": f"echo {self.mark}; sleep 1000"})["processId"]
        self.context = self.call("POST", f"{self.at}/code/contexts", {"language": "python"})["contextId"]
        self.port = self.call("POST", f"{self.at}/ports", {"port": PORT})

    def call(self, method, path, body=None):
        return self.plane.call(method, path, body, key=self.key)

    def make_key(self, name="k", **fields):
        return self.plane.call("POST", f"{NATIVE}/keys", {"name": name, **fields})

    def stranger(self, name):
        """The key of another user, made when it is first asked for."""
        if name not in self.strangers:
            self.strangers[name] = self.plane.user(f"eve-{name}")
        return self.strangers[name]

    def values(self, box):
        """Path parameters that name Alice's things; the sandbox by id or by name."""
        return {"id": box, "session": f"session-{self.mark}", "process": self.process,
                "path": "workspace/secret", "context": self.context, "port": PORT,
                "webhook": self.webhook["id"], "user": self.user["id"], "key": self.spare["id"],
                "executionId": self.box["id"], "rest": "something"}

    @property
    def marks(self):
        """What nobody else must ever read."""
        return [self.mark, self.mail, self.box["id"], self.little["id"], "alicebox", "alicelittle",
                self.port["token"], self.process, self.context, self.webhook["id"],
                self.user["id"], self.spare["id"], self.key_made["id"]]

    @property
    def narrow_marks(self):
        """Those of them that a key for the little sandbox may read: it, and whose it is."""
        return [self.little["id"], "alicelittle", self.user["id"], self.mail]

    def must_be(self, before):
        """Fails unless Alice's things are as they were."""
        now = self.state()
        show([f"{path} was {before[path]}\nand is {now[path]}" for path in now
              if now[path] != before[path]])

    def state(self):
        """All there is of Alice's, as she sees it; without what a clock moves."""
        def told(path):
            document = json.dumps(self.call("GET", path), sort_keys=True)
            return re.sub(r'"(activeAt|updatedAt|usedAt|timestamp|waiting)": ("[^"]*"|[\d.]+|null)',
                          "", document)
        paths = [self.at, f"{NATIVE}/sandboxes", f"{self.at}/sessions", f"{self.at}/processes",
                 f"{self.at}/ports", f"{self.at}/code/contexts", f"{self.at}/files/workspace?list=1",
                 f"{NATIVE}/webhooks", f"{NATIVE}/keys", f"{NATIVE}/users"]
        secret = self.plane.ask("GET", f"{self.at}/files/workspace/secret", key=self.key).body
        return {path: told(path) for path in paths} | {"secret": secret}


def world():
    """One for all tests."""
    if not _worlds:
        need_launcher()
        _worlds.append(None)  # when this fails once it fails for all
        _worlds[0] = World()
    assert _worlds[0], "there is no world"
    return _worlds[0]


def made_up(values):
    """The same names of things that do not exist; never the same twice."""
    def like(value):
        if len(value) == 26:
            return base64.b32encode(random.randbytes(16)).decode().rstrip("=").lower()
        return "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in value)
    same = ("port", "path", "rest")
    return {name: value if name in same else like(value) for name, value in values.items()}


class Told:
    """Status and body of an answer; of a stream what comes at once."""

    def __init__(self, status, body):
        self.status, self.body, self.sent = status, body, ""

    def __repr__(self):
        return f"{self.status} {self.body[:300]!r}"


def look(key, method, path, body=None, upgrade=False, accept=None):
    """Ask, from another address each time: wrong keys from one are slowed down."""
    lines = [("Host", "localhost"), ("X-Forwarded-For", f"10.{random.randrange(250)}."
                                     f"{random.randrange(250)}.{random.randrange(250)}")]
    if key:
        lines.append(("Authorization", f"Bearer {key}"))
    if accept:
        lines.append(("Accept", accept))
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        lines.append(("Content-Type", "application/json"))
    with connect(world().plane.address) as connection:
        if upgrade:
            connection.send(handshake(path, KEY, [f"{name}: {value}" for name, value in lines[1:]]))
        else:
            lines.append(("Content-Length", str(len(body or b""))))
            head = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in lines)]
            connection.send("\r\n".join(head).encode() + b"\r\n\r\n" + (body or b""))
        told = read(connection, method)
        told.sent = path + (body or b"").decode("latin-1")
        return told


def read(connection, method):
    head = connection.response_head()
    while head.status == 100:
        head = connection.response_head()
    if method == "HEAD" or head.status == 204:
        return Told(head.status, b"")
    if "content-length" in head.headers:
        return Told(head.status, connection.read_exactly(int(head.headers["content-length"])))
    connection.socket.settimeout(QUIET_SECONDS)
    try:
        while not connection.buffer.endswith(b"0\r\n\r\n") and connection.read_some():
            pass
    except (TimeoutError, socket.timeout):
        pass
    return Told(head.status, connection.buffer)


def visit(route, key, values, **options):
    return look(key, route.method, route.fill(values) + route.query, route.body, **options)


def comparable(told, values):
    """The body without what differs between any two requests."""
    text = told.body.decode("utf-8", "replace")
    for value in sorted({str(value) for value in values.values()}, key=len, reverse=True):
        text = text.replace(value, "X")
    text = re.sub(r'"(requestId|createdAt|updatedAt|activeAt|startedAt|timestamp|duration)":\s*("[^"]*"|[\d.]+)',
                  "", text)
    return re.sub(r"[a-z2-7]{26}|[0-9a-z_]{16}|\d+", "N", text)


def leaks(told, own=()):
    """Marks in the answer that the request did not hold, and that are not the caller's own."""
    text = told.body.decode("utf-8", "replace")
    return [mark for mark in world().marks
            if mark in text and mark not in told.sent and mark not in own]


def is_told_apart(route, told, values, twin, others):
    """Whether the answer about Alice's differs from the one about what does not exist."""
    if told.status != twin.status:
        return True
    # Both are new sandboxes of the stranger's own: what is in them may differ.
    if NOT_404.get(route.key) == LAZY:
        return False
    return comparable(told, values) != comparable(twin, others)


def walk(key_of, scope_refusals=False, own=()):
    """Problems of a stranger's walk: what it was told about Alice's things, and of others that do not
    exist. Sandboxes are named by id and by name."""
    fine = (404, 403) if scope_refusals else (404,)
    problems = []
    for route in world().routes:
        key = key_of(route)
        for box in (world().box["id"], "alicebox"):
            values = world().values(box)
            for upgrade in ((False, True) if route.method == "GET" else (False,)):
                told = visit(route, key, values, upgrade=upgrade)
                if leaks(told, own):
                    problems.append(f"{route}: {leaks(told, own)} in {told}")
                if not route.parameters:
                    continue
                others = made_up(values)
                twin = visit(route, key, others, upgrade=upgrade)
                if is_told_apart(route, told, values, twin, others):
                    problems.append(f"{route}: {told}, but of one that does not exist {twin}")
                if told.status not in fine and route.key not in NOT_404:
                    problems.append(f"{route}: {told}")
    return problems


def show(problems):
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems)


# --- who has no key ------------------------------------------------------------------------------


@test
def the_routes_without_a_key_are_the_ones_with_a_reason():
    equal({route.key for route in world().routes if route.is_public}, set(PUBLIC), "public routes")


@test
def without_a_good_key_every_other_route_is_401():
    plane = world().plane
    expired = world().make_key(user=world().user["id"], scope="write", expiresIn=1)
    revoked = world().make_key(user=world().user["id"], scope="write")
    plane.call("DELETE", f"{NATIVE}/keys/{revoked['id']}")
    before = world().state()
    time.sleep(1.1)
    problems = []
    for key in ("", "burrow_nonsense", world().key[:-1], expired["key"], revoked["key"]):
        for route in world().routes:
            if route.is_public:
                continue
            values = world().values(world().box["id"])
            answers = [visit(route, key, values)]
            if route.method == "GET":
                answers.append(visit(route, key, values, upgrade=True))
                answers.append(look(key, "HEAD", route.fill(values)))
            problems += [f"{route} with the key {key[:14]!r}: {told}" for told in answers
                         if told.status != 401 or leaks(told)]
    show(problems)
    world().must_be(before)


# --- who has another's key -----------------------------------------------------------------------


@test
def the_names_that_the_walk_uses_are_those_of_real_things():
    problems = []
    for route in world().routes:
        if route.method != "GET" or not route.parameters or "{rest}" in route.pattern:
            continue
        if route.pattern in NOT_OF_THE_WALK or route.summary == "Unknown routes":
            continue
        told = visit(route, world().key, world().values(world().box["id"]))
        if told.status in (400, 401, 403, 404):
            problems.append(f"{route}: {told}")
    show(problems)


@test
def for_another_user_nothing_of_alices_exists():
    before = world().state()
    # One stranger per dialect: some make sandboxes of that name for whoever asks.
    problems = walk(lambda route: world().stranger(route.dialect))
    world().must_be(before)
    show(problems)


@test
def nor_for_another_user_who_may_only_read():
    plane = world().plane
    reader = plane.user("eve-reader", scope="read")
    before = world().state()
    problems = walk(lambda route: reader, scope_refusals=True)
    world().must_be(before)
    show(problems)
    found = plane.call("GET", f"{NATIVE}/sandboxes", key=reader)["sandboxes"]
    equal(found, [], "sandboxes made by one who may only read")


@test
def a_websocket_is_opened_for_its_owner_alone():
    by_pattern = {route.pattern: route for route in world().routes if route.method == "GET"}
    eve, problems = world().stranger("native"), []
    for pattern, more in WEBSOCKETS:
        values = {**world().values(world().box["id"]), **more}
        query = f"?sessionId=session-{world().mark}"
        for who, key, fine in (("nobody", "", 401), ("eve", eve, 404), ("alice", world().key, 101)):
            if who == "eve" and by_pattern[pattern].key in NOT_404:
                continue
            told = look(key, "GET", by_pattern[pattern].fill(values) + query, upgrade=True)
            if told.status != fine:
                problems.append(f"{pattern} {more} for {who}: {told}")
    show(problems)


@test
def what_a_dialect_makes_for_a_stranger_is_the_strangers():
    """Eve may have a sandbox of the same name; one named by Alice's id stays Eve's, too."""
    eve, plane = world().plane.user("eve-namesake"), world().plane
    for name in ("alicebox", world().box["id"]):
        told = look(eve, "POST", f"/v1/sandbox/{name}/exec", {"argv": ["cat", "/workspace/secret"]})
        assert told.status in (200, 400, 404, 409) and not leaks(told), told
    found = plane.call("GET", f"{NATIVE}/sandboxes", key=eve)["sandboxes"]
    assert all(box["id"] not in (world().box["id"], world().little["id"]) for box in found), found
    equal(plane.sandbox(world().box["id"])["name"], "alicebox", "what an administrator is told")
    equal(plane.sandbox(world().box["id"], key=world().key)["id"], world().box["id"], "Alice's")
    for box in found:
        plane.call("DELETE", f"{NATIVE}/sandboxes/{box['id']}", key=eve)
    equal(plane.sandbox("alicebox", key=world().key)["id"], world().box["id"], "Alice's afterwards")


@test
def fields_that_name_anothers_things_name_nothing():
    eve, box = world().stranger("native"), world().box["id"]
    user = world().user["id"]
    asked = [
        ("POST", f"{NATIVE}/keys", {"name": "k", "scope": "sandbox", "sandbox": "HERE"}, box),
        ("POST", f"{NATIVE}/keys", {"name": "k", "scope": "port", "sandbox": "HERE", "port": PORT},
         box),
        ("POST", f"{NATIVE}/keys", {"name": "k", "scope": "write", "user": "HERE"}, user),
        ("GET", f"{NATIVE}/sandboxes?owner=HERE", None, user),
        ("GET", f"{NATIVE}/keys?user=HERE", None, user),
        ("GET", f"{NATIVE}/events?sandbox=HERE", None, box),
        ("GET", f"{NATIVE}/sandboxes?prefix=alice", None, box),
        ("GET", f"{NATIVE}/sandboxes?label=of={world().mark}", None, box),
    ]
    problems = []
    for method, path, body, value in asked:
        def send(name, method=method, path=path, body=body):
            text = json.dumps(body).replace("HERE", name).encode() if body else None
            return look(eve, method, path.replace("HERE", name), text)
        other = made_up(world().values(box))["id"]
        told, twin = send(value), send(other)
        if ((told.status, comparable(told, {"id": value})) !=
                (twin.status, comparable(twin, {"id": other})) or leaks(told)):
            problems.append(f"{method} {path} {body}: {told}, but {twin}")
        if method == "POST" and told.status < 300:
            problems.append(f"{method} {path} {body}: {told}")
    show(problems)


@test
def the_pages_of_anothers_list_are_not_there():
    page = world().call("GET", f"{NATIVE}/sandboxes?limit=1")
    assert page["nextCursor"], page
    told = look(world().stranger("native"), "GET",
                f"{NATIVE}/sandboxes?limit=10&cursor={page['nextCursor']}")
    assert not leaks(told), told


@test
def an_idempotency_key_of_anothers_repeats_nothing():
    plane, eve = world().plane, world().plane.user("eve-repeats")
    headers = [("Idempotency-Key", world().mark)]
    mine = plane.call("POST", f"{NATIVE}/sandboxes", {}, key=world().key, headers=headers)
    again = plane.call("POST", f"{NATIVE}/sandboxes", {}, key=world().key, headers=headers)
    hers = plane.call("POST", f"{NATIVE}/sandboxes", {}, key=eve, headers=headers)
    equal(again["id"], mine["id"], "Alice's own")
    assert hers["id"] != mine["id"], hers
    plane.call("DELETE", f"{NATIVE}/sandboxes/{mine['id']}", key=world().key)
    plane.call("DELETE", f"{NATIVE}/sandboxes/{hers['id']}", key=eve)


# --- what is told as it happens -------------------------------------------------------------------


@test
def a_stream_of_events_tells_of_ones_own():
    plane, eve = world().plane, world().plane.user("eve-listens")
    narrow = world().make_key(user=world().user["id"], scope="sandbox",
                              sandbox=world().little["id"])["key"]
    connections = []
    for key in (eve, narrow):
        for start in ("", "?after=0"):
            connection = connect(plane.address)
            connection.send(f"GET {NATIVE}/events{start} HTTP/1.1\r\nHost: localhost\r\n"
                            f"Accept: text/event-stream\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
            equal(connection.response_head().status, 200, "status")
            connections.append((key, connection))
    passing = plane.create("alicepassing", key=world().key)
    world().call("PATCH", f"{NATIVE}/sandboxes/{passing['id']}", {"labels": {"of": world().mark}})
    world().call("DELETE", f"{NATIVE}/sandboxes/{passing['id']}")
    own = {eve: plane.create("evesbox", key=eve)["id"], narrow: world().little["id"]}
    world().call("PATCH", f"{NATIVE}/sandboxes/alicelittle", {"labels": {"a": "b"}})
    for key, connection in connections:
        while own[key].encode() not in connection.buffer:
            assert connection.read_some(), "the stream ended"
        foreign = [world().mark, world().box["id"], passing["id"], "alicepassing"]
        foreign += [world().little["id"]] if key == eve else [own[eve], "evesbox"]
        seen = [word for word in foreign if word.encode() in connection.buffer]
        equal(seen, [], "what a stream told of others")
        connection.close()
    page = json.dumps(plane.call("GET", f"{NATIVE}/events?limit=1000", key=eve))
    equal([word for word in (world().mark, passing["id"]) if word in page], [], "the page")


@test
def a_webhook_is_told_of_ones_own():
    plane, eve = world().plane, world().plane.user("eve-hooks")
    hook = plane.call("POST", f"{NATIVE}/webhooks", {"url": "http://127.0.0.1:9/"}, key=eve)
    passing = plane.create("alicehooked", key=world().key)
    world().call("DELETE", f"{NATIVE}/sandboxes/{passing['id']}")
    plane.create("evehooked", key=eve)

    def deliveries():
        text = json.dumps(plane.call("GET", f"{NATIVE}/webhooks/{hook['id']}/deliveries", key=eve))
        return "sandbox.created" in text and text
    told = wait_until(deliveries, "a delivery of Eve's own")
    assert passing["id"] not in told and "alicehooked" not in told, told


@test
def metrics_and_the_audit_log_are_the_administrators():
    for path in ("/metrics", f"{NATIVE}/audit"):
        for key, status in (("", 401), (world().stranger("native"), 403), (world().key, 403),
                            (world().plane.key, 200)):
            equal(look(key, "GET", path).status, status, f"{path} with {key[:14]!r}")
    text = look(world().plane.key, "GET", "/metrics").body.decode()
    equal([mark for mark in world().marks if mark in text], [], "names in the metrics")


@test
def a_preview_is_opened_by_its_own_token_alone():
    plane, eve = world().plane, world().plane.user("eve-previews")
    box = plane.create("eveport", key=eve)
    port = plane.call("POST", f"{NATIVE}/sandboxes/{box['id']}/ports", {"port": PORT}, key=eve)
    other = world().call("POST", f"{world().at}/ports", {"port": PORT + 1})
    good, alice = world().port["token"], world().box["id"]
    hosts = {
        "eve's token": f"{PORT}-{alice}-{port['token']}", "another port's": f"{PORT}-{alice}-{other['token']}",
        "no token": f"{PORT}-{alice}-", "half a token": f"{PORT}-{alice}-{good[:8]}",
        "alice's token at eve's": f"{PORT}-{box['id']}-{good}",
        "not exposed": f"{PORT + 2}-{alice}-{good}",
        "no sandbox": f"{PORT}-{made_up(world().values(alice))['id']}-{good}",
    }
    answers = {}
    for what, host in hosts.items():
        for key in ("", eve, world().key):
            lines = [("Host", f"{host}.localhost")]
            lines += [("Authorization", f"Bearer {key}")] if key else []
            answer = request(plane.address, "GET", "/", lines)
            answers[what, key[:14]] = (answer.status, re.sub(rb"[a-z2-7]{26}", b"", answer.body))
    equal({status for status, _ in answers.values()}, {404}, "statuses")
    equal(len(set(answers.values())), 1, f"different answers: {answers}")
    # With the token: nothing listens there, which only its holder is told.
    equal(request(plane.address, "GET", "/", [("Host", f"{PORT}-{alice}-{good}.localhost")]).status,
          502, "with its own token")
    plane.ask("DELETE", f"{world().at}/ports/{PORT + 1}", key=world().key)


# --- narrow keys of Alice's own -----------------------------------------------------------------


@test
def a_key_for_reading_changes_nothing():
    key, before = world().spare["key"], world().state()
    problems = []
    for route in world().routes:
        if route.is_public:
            continue
        told = visit(route, key, world().values(world().box["id"]))
        if (route.method != "GET" and route.key != PERSIST and
                told.status not in (403, 404, 501)):
            problems.append(f"{route}: {told}")
        if route.method == "GET":
            told = visit(route, key, world().values(world().box["id"]), upgrade=True)
            if told.status == 101:
                problems.append(f"{route}: a WebSocket for a key that may only read")
    world().must_be(before)
    show(problems)
    equal(look(key, "GET", world().at).status, 200, "reading")


@test
def a_key_for_one_sandbox_sees_no_other():
    key = world().make_key(user=world().user["id"], scope="sandbox",
                           sandbox=world().little["id"])["key"]
    before = world().state()
    problems = walk(lambda route: key, scope_refusals=True, own=world().narrow_marks)
    world().must_be(before)
    show(problems)
    at = f"{NATIVE}/sandboxes/alicelittle"
    equal(look(key, "POST", f"{at}/exec", {"command": "true"}).status, 200, "its own sandbox")
    equal(look(key, "DELETE", at).status, 403, "removing it")
    equal(look(key, "PATCH", at, {"labels": {"a": "c"}}).status, 403, "changing it")
    listed = json.loads(look(key, "GET", f"{NATIVE}/sandboxes").body)["sandboxes"]
    equal([box["name"] for box in listed], ["alicelittle"], "its list")


@test
def a_key_for_one_port_opens_no_route():
    key = world().make_key(user=world().user["id"], scope="port", sandbox=world().little["id"],
                           port=PORT)["key"]
    before = world().state()
    own, problems = world().narrow_marks, []
    for route in world().routes:
        for box in (world().box["id"], world().little["id"]):
            values = world().values(box)
            told = visit(route, key, values)
            if leaks(told, own):
                problems.append(f"{route}: {leaks(told, own)} in {told}")
            if told.status < 300 and not route.is_public and route.parameters:
                problems.append(f"{route}: {told}")
    world().must_be(before)
    show(problems)


main()
