"""A launcher that serves provider_demo, a daemon with nothing but a provider in it, as `nobody`.

    enter()                                        # outpost.py
    with ProviderDemo(stock=4) as demo:
        id = demo.create(network="nat")
        demo.run(id, "exit 3")                     # {"exitCode": 3, ...}
        demo.kill("launcher"); demo.start()        # sandboxes go on
        demo.leftovers()                           # what is on the host, beyond what is known
    # leaving: SIGTERM, exit status 0

Everything lies in the outpost's folder. Calls raise Refused when the daemon says no, and Unknown
when it died before it could say anything.
"""

import json
import os
import shutil
import signal
from contextlib import suppress

from http_raw import request
from launcher import children
from outpost import cgroup, folder, network_name, remove_groups, unmount
from program import Program, program, wait_until
from traces import names_in, traces

USER = "nobody"
PROGRAMS = ("provider_demo", "burrow-launcher", "burrow-agent", "burrow-keeper")
CALL_SECONDS = 60.0
READY_SECONDS = 30.0


class Refused(Exception):
    """A call failed, and the daemon said why."""

    def __init__(self, status, body):
        super().__init__(f"{status} {body}")
        self.code = body.get("code", "")


class Unknown(Exception):
    """Nobody answered: what was asked for may have happened or not."""


class ProviderDemo(Program):
    def __init__(self, stock=0, pool_size="2G", flags=()):
        super().__init__("burrow-launcher")
        shutil.rmtree(self.folder)
        self.folder = folder()
        self.log_path = f"{self.folder}/log"
        self.data, self.run_folder = f"{self.folder}/data", f"{self.folder}/run"
        self.own = f"{self.folder}/own"  # the daemon's
        self.programs = f"{self.folder}/programs"
        self.address = f"unix:{self.own}/socket"
        os.makedirs(self.programs, exist_ok=True)
        os.makedirs(self.own, exist_ok=True)
        shutil.chown(self.own, USER)
        for name in PROGRAMS:
            shutil.copy(program(name), self.programs)
        self.arguments = [
            "serve", "--data", self.data, "--run", self.run_folder, "--cgroup", cgroup(),
            "--network-name", network_name(), "--pool-size", pool_size, "--user", USER, *flags, "--",
            f"{self.programs}/provider_demo", self.address, f"{self.own}/exits", str(stock)]

    def path(self):
        """A copy, beside copies of what it starts: the build may lie where the daemon's user cannot
        go."""
        return f"{self.programs}/burrow-launcher"

    def is_ready(self):
        try:
            return self.ask("GET", "/status", seconds=5)["pid"] == self.daemon_pid()
        except (Unknown, Refused):
            return False

    def start(self):
        self.launch()
        self.wait_until_ready()

    def wait_until_ready(self):
        wait_until(self.is_ready_or_fail, "a daemon that serves", READY_SECONDS)

    def kill(self):
        """Also what outlives a launcher on purpose: the next one in this outpost finds nothing."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        wait_until(lambda: remove_groups(cgroup()), "the groups are gone", READY_SECONDS)
        unmount(self.folder)
        for path in (self.data, self.run_folder, self.own):
            shutil.rmtree(path, ignore_errors=True)

    # --- processes -----------------------------------------------------------------------------

    def daemon_pid(self):
        for pid in children(self.pid):
            try:
                if os.readlink(f"/proc/{pid}/exe") == f"{self.programs}/provider_demo":
                    return pid
            except OSError:
                continue
        return None

    def kill_hard(self, *what):
        """kill -9 of "daemon" and "launcher", in this order."""
        pids = {"launcher": self.pid, "daemon": self.daemon_pid()}
        for name in what:
            with suppress(ProcessLookupError):  # the daemon may have followed its launcher
                if pids[name]:
                    os.kill(pids[name], signal.SIGKILL)
        if "launcher" in what:
            self.process.wait()

    # --- calls ---------------------------------------------------------------------------------

    def ask(self, method, path, document=None, seconds=CALL_SECONDS):
        body = b"" if document is None else json.dumps(document).encode()
        try:
            response = request(self.address, method, path, (), body, seconds)
        except (OSError, EOFError) as error:
            raise Unknown(f"{method} {path}: {error}") from None
        if response.status != 200:
            try:
                raise Refused(response.status, json.loads(response.body))
            except ValueError:
                raise Refused(response.status, {"message": response.body}) from None
        kind = response.headers.get("content-type", "")
        return json.loads(response.body) if "json" in kind else response.body

    def create(self, sandbox=None, **wanted):
        """The id of a new sandbox; `sandbox` is the id it must have."""
        if sandbox:
            wanted["id"] = sandbox
        query = "&".join(f"{name}={value}" for name, value in wanted.items())
        return self.ask("POST", f"/sandboxes?{query}")["id"]

    def do(self, sandbox, verb):
        return self.ask("POST", f"/sandboxes/{sandbox}/{verb}")

    def destroy(self, sandbox):
        return self.ask("DELETE", f"/sandboxes/{sandbox}")

    def states(self):
        """{id: state} of all sandboxes but those in stock."""
        return {row["id"]: row["state"] for row in self.ask("GET", "/sandboxes")}

    def run(self, sandbox, command, seconds=CALL_SECONDS):
        return self.ask("POST", f"/sandboxes/{sandbox}/agent/api/execute",
                        {"command": command, "sessionId": "__DISABLE_SESSION__"}, seconds)

    def hear(self, sandbox, port, seconds=10):
        """What a listener inside says before it closes."""
        return self.ask("GET", f"/sandboxes/{sandbox}/port/{port}", seconds=seconds).decode()

    def exits(self):
        """[(id, kind, value)] as told to all daemons so far."""
        try:
            with open(f"{self.own}/exits", encoding="ascii") as file:
                return [tuple(line.split()) for line in file]
        except FileNotFoundError:
            return []

    # --- the host ------------------------------------------------------------------------------

    def record(self, sandbox):
        """{key: value} of what the launcher wrote down, or None."""
        try:
            with open(f"{self.run_folder}/serve/records/{sandbox}", encoding="ascii") as file:
                return dict(line.split() for line in file if line.count(" ") == 1)
        except FileNotFoundError:
            return None

    def first_process(self, sandbox):
        """(pid, start time) of its PID 1."""
        record = self.record(sandbox)
        return (int(record["pid"]), int(record["start"])) if record else None

    def first_id(self, sandbox):
        """(first, count) of the ids of the host that are its own."""
        with open(f"/proc/{self.first_process(sandbox)[0]}/uid_map", encoding="ascii") as file:
            inside, first, count = map(int, file.read().split())
        assert inside == 0, (sandbox, inside)
        return first, count

    def traces(self):
        """{kind: ids} of everything on this host that belongs to a sandbox."""
        return traces(self.data, self.run_folder, cgroup())

    def in_stock(self):
        """Ids of sandboxes that nobody was given yet."""
        records = {name: self.record(name)
                   for name in names_in(f"{self.run_folder}/serve/records")}
        return {name for name, record in records.items()
                if record and record.get("pooled") == "1" and "ended" not in record}

    def leftovers(self):
        """[(kind, id)] of what belongs to no sandbox that somebody can see."""
        known = set(self.states()) | self.in_stock()
        return sorted((kind, name) for kind, names in self.traces().items()
                      for name in names - known)
