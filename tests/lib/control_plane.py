"""A real `burrow serve` with sandboxes, and its API as a client sees it.

    with ControlPlane() as plane:                       # flags as for burrow serve
        box = plane.create("demo")                      # {"id": ..., "status": "running", ...}
        plane.call("GET", f"/burrow/v1/sandboxes/{box['id']}")
        plane.execute("demo", "echo hi")["stdout"]
        other = plane.user("eve")                       # a key of another owner
        plane.call("GET", "/burrow/v1/sandboxes", key=other)

`call` returns the parsed JSON of a 2xx answer and raises Refused otherwise; `ask` returns the raw
answer, whatever its status.
"""

import json
import os
import signal
from contextlib import suppress

import __main__
from http_raw import TIMEOUT_SECONDS, request
from launcher import Service, need_launcher
from program import admin_key, wait_until
from tap import Skip, main

NATIVE = "/burrow/v1"
REVIVAL_SECONDS = 120


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, answer, what):
        super().__init__(f"{what}: {answer.status} {answer.body[:400]!r}")
        self.status = answer.status
        try:
            self.body = json.loads(answer.body)
        except ValueError:
            self.body = answer.body


class ControlPlane(Service):
    @property
    def key(self):
        return admin_key(self.log())

    def ask(self, method, path, body=None, key=None, headers=(), timeout=TIMEOUT_SECONDS):
        """The raw answer. `body` is bytes, or anything else as JSON; key "" sends none."""
        headers = list(headers)
        key = self.key if key is None else key
        if key:
            headers.append(("Authorization", f"Bearer {key}"))
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.append(("Content-Type", "application/json"))
        return request(self.address, method, path, headers, body or b"", timeout)

    def call(self, method, path, body=None, **options):
        answer = self.ask(method, path, body, **options)
        if not 200 <= answer.status < 300:
            raise Refused(answer, f"{method} {path}")
        return json.loads(answer.body) if answer.body else None

    def create(self, name=None, key=None, **fields):
        if name:
            fields["name"] = name
        return self.call("POST", f"{NATIVE}/sandboxes", fields, key=key)

    def sandbox(self, name, key=None):
        return self.call("GET", f"{NATIVE}/sandboxes/{name}", key=key)

    def execute(self, name, command, key=None, timeout=TIMEOUT_SECONDS, **fields):
        fields["argv" if isinstance(command, list) else "command"] = command
        return self.call("POST", f"{NATIVE}/sandboxes/{name}/exec", fields, key=key, timeout=timeout)

    def user(self, name, scope="write"):
        """A new owner; the secret of a key of theirs."""
        owner = self.call("POST", f"{NATIVE}/users", {"name": name})
        return self.call("POST", f"{NATIVE}/keys",
                         {"name": name, "scope": scope, "user": owner["id"]})["key"]

    def kill_hard(self, *kinds):
        """kill -9 of "daemon" and "launcher", in that order; then wait until all is served again."""
        daemon = self.daemon_pid
        for kind in kinds:
            pid = self.pid if kind == "launcher" else daemon
            if pid:
                with suppress(ProcessLookupError):  # a daemon ends by itself without its launcher
                    os.kill(pid, signal.SIGKILL)
        # A daemon sees its launcher gone and ends by itself; until then it says that it is ready, and has
        # its data folder.
        wait_until(lambda: not daemon or not os.path.exists(f"/proc/{daemon}"), "the daemon is gone", REVIVAL_SECONDS)
        if "launcher" in kinds:
            self.process.wait()
            self.launch()
        wait_until(self.is_ready, "the daemon is ready again", REVIVAL_SECONDS)


def main_with_plane(name, *flags, plane=ControlPlane, prepare=lambda: None):
    """The whole of a program whose tests share one control plane, its PLANE: returns an exit status.
    Where there cannot be one, it says what is missing."""
    try:
        need_launcher()
    except Skip as lack:
        print(f"# skip: {lack}\nok 1 - {name} # SKIP {lack}\n1..1")
        return 0
    with plane(*flags) as __main__.PLANE:
        prepare()
        try:
            main()
        except SystemExit as end:
            return end.code
    return 0
