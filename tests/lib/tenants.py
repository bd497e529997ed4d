"""Alice, who owns one of everything, and how others look at it.

    world().box["id"], world().key            # one daemon for all tests of a program
    told = look(key, "GET", path)             # status and body; of a stream what comes at once
    leaks(told)                               # what of Alice's is in it

Whoever imports this has entered an outpost (outpost.py).
"""

import atexit
import base64
import json
import random
import re
import socket

from api_routes import all_routes
from control_plane import NATIVE, ControlPlane
from http_raw import connect
from launcher import need_launcher
from websocket_raw import handshake

PORT = 8080
QUIET_SECONDS = 0.3  # a stream that says nothing for so long has nothing to say
KEY = "dGhlIHNhbXBsZSBub25jZQ=="

def show(problems):
    assert not problems, f"{len(problems)} problems:\n" + "\n".join(problems)


_worlds = []


class World:
    """A daemon, and everything of Alice's that has a name."""

    def __init__(self):
        self.plane = plane = ControlPlane("--trusted-proxies", "127.0.0.0/8", "--stock", "2",
                                               "--quota-running", "0", "--quota-memory", "0")
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
                                env={"SECRET": self.mark}, egress={"rules": [{"host": f"{self.mark}.test"}]})
        self.little = plane.create("alicelittle", key=self.key)
        self.at = f"{NATIVE}/sandboxes/{self.box['id']}"
        self.put_inside()
        self.webhook = self.call("POST", f"{NATIVE}/webhooks",
                                 {"url": f"http://127.0.0.1:9/{self.mark}"})
        self.snapshot = self.call("POST", f"{self.at}/snapshots", {"name": f"snap-{self.mark}"})
        self.backup = self.call("POST", f"{self.at}/backups", {"name": f"back-{self.mark}"})
        self.call("POST", f"{self.at}/sync", {})
        self.execution = f"exec-{self.mark}"
        self.call("POST", "/workflow/execute", {"executionId": self.execution, "workflow": {
            "nodes": [{"id": "nap", "type": "wait", "parameters": {"duration": "1h"}}]}})
        self.call("PUT", f"{NATIVE}/templates/alicetemplate", {"labels": {"of": self.mark}})
        self.call("PUT", f"{NATIVE}/credentials/alicecredential",
                  {"kind": "bearer", "value": f"key-{self.mark}", "hosts": [f"{self.mark}.test"]})
        self.put_agents()
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

    def put_agents(self):
        agent = {"kind": "command", "command": f"echo {self.mark}"}
        self.conversation = self.call("POST", f"{self.at}/conversations", agent)
        self.turn = self.call("POST", f"{self.at}/conversations/{self.conversation['id']}/turns",
                              {"text": self.mark, "wait": True})
        self.task = self.call("POST", f"{NATIVE}/tasks",
                              {"text": self.mark, "sandbox": "alicebox", "wait": True, **agent})
        self.team = self.call("POST", f"{NATIVE}/teams", {
            "members": [{"text": self.mark}], "cleanup": "destroy", "wait": True, **agent})
        self.schedule = self.call("POST", f"{NATIVE}/schedules", {
            "name": f"plan-{self.mark}", "cron": "@yearly", "task": {"text": self.mark, **agent}})

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
                "executionId": self.execution, "rest": "something",
                "snapshot": self.snapshot["id"], "backup": self.backup["id"],
                "name": "alicetemplate", "credential": "alicecredential", "conversation": self.conversation["id"],
                "turn": self.turn["id"], "permission": "a" * 26, "task": self.task["id"],
                "team": self.team["id"], "schedule": self.schedule["id"]}

    @property
    def marks(self):
        """What nobody else must ever read."""
        return [self.mark, self.mail, self.box["id"], self.little["id"], "alicebox", "alicelittle",
                self.port["token"], self.process, self.context, self.webhook["id"],
                self.user["id"], self.spare["id"], self.key_made["id"], self.snapshot["id"],
                self.backup["id"], self.conversation["id"], self.turn["id"], self.task["id"],
                self.team["id"], self.schedule["id"]]

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
                 f"{self.at}/egress", f"{NATIVE}/credentials", f"{NATIVE}/credentials/alicecredential",
                 f"{NATIVE}/egress", f"{NATIVE}/usage",
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
