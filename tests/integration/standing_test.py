#!/usr/bin/python3
# timeout: 300
"""Credentials are checked for as long as they are used: whatever lasts, in every dialect, ends when
the key is revoked or expires, the login is over or the user is disabled; what others have goes on."""

import json
import os
import struct
import sys
import time
from contextlib import ExitStack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, main_with_plane  # noqa: E402
from http_raw import TIMEOUT_SECONDS, connect  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, patient, test  # noqa: E402
from websocket_raw import CLOSE, WebSocket, handshake  # noqa: E402

PLANE = None  # set by main_with_plane
PASSWORD = "a long password 123"
NONCE = "dGhlIHNhbXBsZSBub25jZQ=="
POLICY = 1008
LARGE = 64 << 20
EXPIRY_SECONDS = 20  # long enough to open everything, also on a busy machine
SERVER = "python3 -m http.server 8080 --bind 127.0.0.1"


# --- what lasts ----------------------------------------------------------------------------------


class Lasting:
    """One connection that is under way. `ended` waits for its end, which must give the reason."""

    def __init__(self, key, method, path, headers=(), body=b"", announced=None, host="localhost"):
        self.what = f"{method} {path}"
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
        if key:
            lines.append(f"Authorization: Bearer {key}")
        if body or announced:
            lines.append(f"Content-Length: {announced or len(body)}")
        self.connection = connect(PLANE.address)
        self.connection.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def begin(self):
        """Wait until it is under way."""
        head = self.connection.response_head()
        equal(head.status, 200, self.what)

    def rest(self):
        """All that comes until the end, which must come: what says that it is still there does not count."""
        until = time.monotonic() + TIMEOUT_SECONDS
        while self.connection.read_some():
            assert time.monotonic() < until, f"{self.what} goes on: {self.connection.buffer[-200:]}"
        return self.connection.buffer

    def goes_on(self):
        self.connection.socket.settimeout(0.05)
        try:
            return self.connection.read_some()
        except TimeoutError:
            return True


class Stream(Lasting):
    """Events: a comment says why they end."""

    def ended(self, reason):
        told = self.rest()
        assert f"\n: {reason}\n".encode() in told, (self.what, told[-200:])


class Waiting(Lasting):
    """No reply yet: there is one now."""

    def begin(self):
        wait_until(lambda: self.is_there(), f"{self.what} is under way")

    def is_there(self):
        return PLANE.execute(BOX, "pgrep -f 'sleep 4711'", key=WITNESS)["exitCode"] == 0

    def ended(self, reason):
        answer = self.connection.response()
        equal(answer.status, 401, self.what)
        # The bridge has one body for all of them.
        assert "/v1/sandbox/" in self.what or reason in answer.body.decode(), (self.what, answer.body)
        assert self.connection.is_closed_by_peer(), self.what


class Upload(Waiting):
    """Half a body has come."""

    def begin(self):
        pass

    def ended(self, reason):
        try:
            super().ended(reason)
        except EOFError:
            pass  # it was cut: the sandbox had the head already


class Download(Lasting):
    """Half of it was taken by the client."""

    def ended(self, _):
        assert len(self.rest()) < LARGE, self.what


class Socket(Lasting):
    def __init__(self, key, path, host="localhost"):
        self.what = path
        self.connection = connect(PLANE.address)
        extra = [f"Authorization: Bearer {key}"] if key else []
        shake = handshake(path, NONCE, extra).replace(b"Host: localhost", f"Host: {host}".encode())
        self.connection.send(shake)

    def begin(self):
        equal(self.connection.response_head().status, 101, self.what)

    def ended(self, reason):
        socket = WebSocket(self.connection)
        opcode, payload = None, b""
        while opcode != CLOSE:
            _, opcode, payload = socket.receive()
        equal(struct.unpack("!H", payload[:2])[0], POLICY, self.what)
        assert reason in payload[2:].decode(), (self.what, payload)


def json_headers(*more):
    return ["Content-Type: application/json", *more]


def everything(key):
    """One of each, in every dialect."""
    native, bridge, stack = f"{NATIVE}/sandboxes/{BOX}", f"/v1/sandbox/{BOX}", f"/v1/sandboxes/{BOX}"
    events = "Accept: text/event-stream"
    long = b'{"command":"sleep 4711"}'
    return [
        Stream(key, "GET", f"{NATIVE}/events", [events]),
        Stream(key, "GET", f"{native}/events", [events]),
        Stream(key, "POST", f"{native}/exec", json_headers(events), long),
        Stream(key, "POST", f"{native}/watch", json_headers(), b'{"path":"/workspace"}'),
        Stream(key, "GET", f"{native}/processes/{PROCESS}/logs/stream"),
        Stream(key, "POST", f"{bridge}/exec", json_headers(), b'{"argv":["sleep","4711"]}'),
        Waiting(key, "POST", f"{native}/exec", json_headers(), long),
        Waiting(key, "POST", f"{stack}/exec", json_headers(), long),
        Upload(key, "PUT", f"{native}/files/workspace/up", body=b"some", announced=LARGE),
        Upload(key, "PUT", f"{bridge}/file/workspace/up2", body=b"some", announced=1 << 20),
        Upload(key, "POST", f"{native}/exec", json_headers(), b"{", announced=100),
        Download(key, "GET", f"{native}/files/workspace/large"),
        Download(key, "GET", f"{native}/archive?path=/workspace"),
        Download(key, "GET", f"{bridge}/file/workspace/large"),
        Socket(key, f"{native}/terminals?sessionId=mine"),
        Socket(key, f"{native}/exec/ws"),
        Socket(key, f"{native}/container/ws"),
        Socket(key, f"{native}/container/rpc"),
        Socket(key, f"{bridge}/pty"),
        Socket(key, f"{stack}/terminal"),
        Socket(key, f"/api/v2/sandboxes/{BOX}/terminal"),
    ]


# --- who -----------------------------------------------------------------------------------------


BOX = PROCESS = WITNESS = USER = None


def prepare():
    """Alice, her sandbox, and a key of hers that stays."""
    global BOX, PROCESS, WITNESS, USER  # pylint: disable=global-statement
    USER = PLANE.call("POST", f"{NATIVE}/users", {"name": "alice", "email": "alice@example.org",
                                                  "password": PASSWORD})["id"]
    WITNESS = make_key()["key"]
    BOX = PLANE.create("alicebox", key=WITNESS)["id"]
    at = f"{NATIVE}/sandboxes/{BOX}"
    PLANE.execute(BOX, f"head -c {LARGE} /dev/zero > /workspace/large", key=WITNESS)
    PLANE.call("POST", f"{at}/processes", {"command": SERVER, "cwd": "/workspace"}, key=WITNESS)
    PROCESS = PLANE.call("POST", f"{at}/processes", {"command": "sleep 4712"}, key=WITNESS)["processId"]


def make_key(**fields):
    return PLANE.call("POST", f"{NATIVE}/keys", {"name": "k", "user": USER, **fields})


def sign_in():
    answer = PLANE.call("POST", "/api/auth/sign-in/email",
                        {"email": "alice@example.org", "password": PASSWORD}, key="")
    return answer["token"]


def must_end(key, do, reason):
    """All that `key` has open ends after `do`, and what the witness has does not."""
    with ExitStack() as stack:
        others = [stack.enter_context(Stream(WITNESS, "GET", f"{NATIVE}/events", ["Accept: text/event-stream"])),
                  stack.enter_context(Socket(WITNESS, f"{NATIVE}/sandboxes/{BOX}/terminals?sessionId=witness"))]
        lasting = [stack.enter_context(one) for one in everything(key)]
        for one in others + lasting:
            one.begin()
        do()
        for one in lasting:
            one.ended(reason)
        for one in others:
            assert one.goes_on(), one.what


# --- the tests -----------------------------------------------------------------------------------


@test
def a_revoked_key():
    made = make_key()
    must_end(made["key"], lambda: PLANE.call("DELETE", f"{NATIVE}/keys/{made['id']}"), "this key was revoked")


@test
def a_key_that_revokes_itself_is_answered():
    made = make_key()
    with Stream(made["key"], "GET", f"{NATIVE}/events", ["Accept: text/event-stream"]) as stream:
        stream.begin()
        equal(PLANE.ask("DELETE", f"{NATIVE}/keys/{made['id']}", key=made["key"]).status, 204, "status")
        stream.ended("this key was revoked")


@test
def a_login_that_signs_out():
    token = sign_in()
    signed_out = []
    must_end(token, lambda: signed_out.append(PLANE.ask("POST", "/api/auth/sign-out", {}, key=token).status),
             "this key or login is over")
    equal(signed_out, [200], "signing out")


@test
def a_login_whose_password_is_changed():
    token = sign_in()
    with Stream(token, "GET", f"{NATIVE}/events", ["Accept: text/event-stream"]) as stream:
        stream.begin()
        answer = PLANE.ask("PATCH", f"{NATIVE}/users/me",
                           {"password": PASSWORD + "4", "currentPassword": PASSWORD}, key=token)
        equal(answer.status, 200, answer.body)
        stream.ended("this key or login is over")
    PLANE.call("PATCH", f"{NATIVE}/users/{USER}", {"password": PASSWORD})


@patient
def a_key_that_expires():
    must_end(make_key(expiresIn=f"{EXPIRY_SECONDS}s")["key"], lambda: None, "this key has expired")


@test
def an_administrator_who_is_none_any_more():
    user = PLANE.call("POST", f"{NATIVE}/users", {"name": "boss", "role": "admin"})["id"]
    key = PLANE.call("POST", f"{NATIVE}/keys", {"name": "k", "user": user, "scope": "admin"})["key"]
    with Stream(key, "GET", f"{NATIVE}/events", ["Accept: text/event-stream"]) as stream:
        stream.begin()
        PLANE.call("PATCH", f"{NATIVE}/users/{user}", {"role": "user"})
        stream.ended("this user is no administrator any more")


def preview_host(made):
    return made["url"].split("/")[2]


@patient
def a_preview_whose_port_expires():
    at = f"{NATIVE}/sandboxes/{BOX}"
    made = PLANE.call("POST", f"{at}/ports", {"port": 8080, "expiresIn": "8s"}, key=WITNESS)
    with Download("", "GET", "/large", host=preview_host(made)) as download:
        download.begin()
        download.ended("")


@test
def a_disabled_user():
    """The last one: the witness is this user's, too."""
    key = make_key()["key"]
    at = f"{NATIVE}/sandboxes/{BOX}"
    made = PLANE.call("POST", f"{at}/ports", {"port": 8080}, key=WITNESS)
    with ExitStack() as stack:
        lasting = [stack.enter_context(one) for one in everything(key)]
        lasting.append(stack.enter_context(Download("", "GET", "/large", host=preview_host(made))))
        for one in lasting:
            one.begin()
        PLANE.call("PATCH", f"{NATIVE}/users/{USER}", {"disabled": True})
        for one in lasting:
            one.ended("this user was disabled or removed")
    answer = json.loads(PLANE.ask("GET", f"{NATIVE}/whoami", key=key).body)
    equal(answer["error"]["code"], "unauthenticated", answer)


if __name__ == "__main__":
    sys.exit(main_with_plane("standing", prepare=prepare))
