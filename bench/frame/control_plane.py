"""The whole product, as a person has it: `burrow serve` of root's with its launcher, all walls and
limits, keys, and a client process that asks over HTTP.

    with control_plane.burrow(context) as burrow:
        burrow.each(20, "create", "exec", "destroy")["create_us"]
"""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from frame import process
from frame.failure import RowFailed
from frame.sandboxes import POOL_SIZE, count_groups, need_root, root_folder
from frame.servers import accepts, free_port

USER = "nobody"  # every system has it
PROGRAMS = ("burrow", "burrow-launcher", "burrow-agent", "burrow-keeper")
START_SECONDS = 120
END_SECONDS = 320  # thousands of sandboxes are taken down at the end
ASK_SECONDS = 60
CLEAR_SECONDS = 0.1
SANDBOXES = "/burrow/v1/sandboxes"


class Daemon:
    """A running service; `child` is the launcher, whose child the daemon is. It can be started
    again on the same folders."""

    def __init__(self, context, place: Path, run: Path, flags: tuple, through: tuple = ()):
        self._context, self._place, self._flags, self._through = context, place, flags, through
        self.cgroup = f"burrow-bench-{os.getpid()}"
        self.run = run / "run"
        self.data = place / "data"
        self.log = run / "log"
        self.key_file = run / "key"
        self.child = None
        self._load = None
        self._client = None
        self._names = 0
        self._copy_programs()

    def _copy_programs(self):
        """The daemon's user must be able to reach them, wherever the build is."""
        folder = self._place / "programs"
        folder.mkdir()
        folder.chmod(0o755)
        for name in PROGRAMS:
            shutil.copy(self._context.program(name), folder)
        self.program = folder / "burrow"

    # --- life ---------------------------------------------------------------------------------

    def start(self):
        self.port = free_port()
        self.target = f"127.0.0.1:{self.port}"
        words = [*self._through, self.program, "serve", "--data", self.data, "--run-folder", self.run, "--cgroup",
                 self.cgroup, "--user", USER, "--pool-size", POOL_SIZE, "--listen", self.target,
                 "--idle-timeout", "1h", *self._flags]
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith("BURROW_")}
        with self.log.open("ab") as log:
            self.child = process.spawn(words, None, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log, env=environment)
        process.wait_until(self._is_ready, self.child, "burrow serve", START_SECONDS)
        if not self.key_file.exists():
            self.key_file.write_text(self._first_key())

    def _is_ready(self) -> bool:
        if not accepts(self.port):
            return False
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ASK_SECONDS)
        try:
            client.request("GET", "/ready")
            return client.getresponse().status == 200
        except OSError:
            return False
        finally:
            client.close()

    def _first_key(self) -> str:
        found = re.search(r"^key  in (\S+)$", self.log.read_text(errors="replace"), re.M)
        if not found:
            raise RowFailed("burrow serve did not say where its key is")
        return Path(found.group(1)).read_text(encoding="ascii").strip()

    def stop(self):
        """The service ends; its sandboxes stay, as after every stop."""
        if self._client:
            self._client.close()
            self._client = None
        if self._load:
            self._load.stdin.close()
            self._load.wait(END_SECONDS)
            self._load.stdout.close()
            self._load.stderr.close()
            self._load = None
        if self.child and self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    def destroy_all(self):
        """Nothing of it stays: neither processes nor groups nor mounts."""
        deadline = time.monotonic() + END_SECONDS
        groups = self._groups()
        while groups and time.monotonic() < deadline:
            groups = [group for group in groups if not clear_group(group)]
            time.sleep(CLEAR_SECONDS)
        for place in reversed(mounts_below((self._place, self.run))):
            subprocess.run(["umount", "--lazy", place], check=False)

    def _groups(self) -> list:
        """The innermost first."""
        found = [root for root, _, _ in os.walk("/sys/fs/cgroup") if f"/{self.cgroup}" in root]
        return sorted(found, key=len, reverse=True)

    # --- asking -------------------------------------------------------------------------------

    def ask(self, *words) -> dict:
        """One line to api-load, and what it says."""
        if not self._load:
            self._load = process.spawn(
                [self._context.program("api-load"), "--target", self.target, "--key",
                 self.key_file], None, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True)
        try:
            self._load.stdin.write(" ".join(str(word) for word in words) + "\n")
            self._load.stdin.flush()
            answer = self._load.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise RowFailed(self._load.stderr.read().strip() or "api-load ended")
        return json.loads(answer)

    def take_names(self, count: int) -> int:
        """The first of so many numbers that no sandbox had yet; its name is bench-NUMBER."""
        self._names += count
        return self._names - count

    def each(self, count: int, *steps, at_once: int = 1, rate: int = 0, first: int = None) -> dict:
        """So many sandboxes, each through all steps; new ones unless `first` is given."""
        if first is None:
            first = self.take_names(count)
        return self.ask("each", first, count, at_once, rate, ",".join(steps))

    def one(self, number: int, count: int, step: str) -> list:
        return self.ask("one", number, count, step)[f"{step}_us"]

    def call(self, method: str, path: str, body: dict = None):
        """One request outside of what is measured; the parsed answer."""
        headers = {"Authorization": f"Bearer {self.key_file.read_text()}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if not self._client:
            self._client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ASK_SECONDS)
        try:
            self._client.request(method, path, None if body is None else json.dumps(body), headers)
            answer = self._client.getresponse()
            text = answer.read()
        except OSError as error:
            raise RowFailed(f"{method} {path}: {error}") from error
        if not 200 <= answer.status < 300:
            raise RowFailed(f"{method} {path}: {answer.status} {text[:300]!r}")
        return json.loads(text) if text else None

    def destroy_running(self):
        """Through the API, which is much faster than what is left to do without it."""
        while True:
            page = self.call("GET", f"{SANDBOXES}?status=running&limit=100")["sandboxes"]
            for sandbox in page:
                self.call("DELETE", f"{SANDBOXES}/{sandbox['id']}")
            if not page:
                return

    # --- looking ------------------------------------------------------------------------------

    def daemon_pid(self) -> int:
        for pid in process.children_of(self.child.pid):
            if os.readlink(f"/proc/{pid}/exe") == str(self.program):
                return pid
        raise RowFailed("the launcher has no daemon")

    def pool_store(self) -> Path:
        """The disk pool, which is mounted for the launcher alone."""
        return Path(f"/proc/{self.child.pid}/root{self.data}/pool/store")

    def running_groups(self) -> int:
        """How many sandboxes have processes, or had some a moment ago."""
        for hierarchy in ("pids", "memory", "cpu", "unified", ""):
            base = Path("/sys/fs/cgroup", hierarchy, self.cgroup)
            if base.is_dir():
                return count_groups(base)
        return 0

    def cpu_seconds(self) -> float:
        """Of the daemon: the work that a proxy does. Sandboxes and the launcher are not in it."""
        return process.cpu_seconds(self.daemon_pid())


def clear_group(group: str) -> bool:
    """Kill whoever is in it, and take it away; whether it is gone."""
    try:
        for pid in Path(group, "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        os.rmdir(group)
    except OSError:
        return not os.path.exists(group)  # in use still, or gone already
    return True


def mounts_below(folders: tuple) -> list:
    places = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [place for place in places
            if any(place.startswith(f"{folder}/") for folder in folders)]


@contextmanager
def burrow(context, *flags, through=()):
    """A service of its own with these flags. Disks lie on a disk, the rest in memory, as /run.
    `through`: a command that becomes it."""
    need_root()
    with root_folder("burrow-bench-", "/var/tmp") as place:
        with root_folder("burrow-bench-", "/dev/shm") as run:
            daemon = Daemon(context, place, run, flags, through)
            try:
                daemon.start()
                yield daemon
                daemon.destroy_running()
            finally:
                daemon.stop()
                daemon.destroy_all()
