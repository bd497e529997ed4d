"""State: snapshots, forks, rollback, wake, backups, beside what they are made of.

One client that asks over HTTP on a connection that is open already. A turn measures both sides, one
after the other: a fork and an empty create, a wake and an exec. Disks are those of a sandbox with one
file of 1 GB, one with 10,000 small files and one with 10 MB, synced before. What is in the object
store: stored.py.
"""

import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from frame import control_plane
from frame.failure import RowFailed
from frame.row import LESS, MORE, Comparison, Goal, Row
from frame.sandboxes import root_folder
from rows.sandbox import memory

SANDBOXES = control_plane.SANDBOXES
TURNS = 10
CROWD = 100
MANY = 1000
MEGABYTE = 1e6
SECOND_MS = 1000

SMALL = "head -c 10M /dev/urandom >/workspace/file && sync"
LARGE = "head -c 1G /dev/urandom >/workspace/file && sync"
FILES = ("mkdir -p /workspace/f && cd /workspace/f && for i in $(seq 100); do mkdir $i; "
         "for j in $(seq 100); do echo $i $j >$i/$j; done; done; sync")
# What programs are made of, cut into pieces: it repeats itself too far away for any packer to see.
THOUSAND = ("mkdir -p /workspace/f && cd /workspace/f && "
            "for n in 1 2 3 4; do find /usr -xdev -type f -print0 | sort -z | xargs -0 cat; done "
            "2>/dev/null | head -c 1000M | split -b 1M -a 3 -d - && sync")
SQLITE = ("import sqlite3, time, os\n"
          "c = sqlite3.connect('{place}/bench.db')\n"
          "c.execute('create table t(x)')\n"
          "c.commit()\n"
          "b = time.perf_counter()\n"
          "for i in range(200):\n"
          "    c.execute('insert into t values(?)', (i,)); c.commit()\n"
          "print(200 / (time.perf_counter() - b))\n"
          "c.close(); os.unlink('{place}/bench.db')\n")


class Client:
    """The daemon with names of its own, and how long a request took in milliseconds."""

    def __init__(self, burrow):
        self._burrow, self._count = burrow, 0
        self.call = burrow.call

    def timed(self, method: str, path: str, body: dict = None):
        begin = time.perf_counter()
        answer = self._burrow.call(method, path, body)
        return (time.perf_counter() - begin) * SECOND_MS, answer

    def new(self) -> str:
        self._count += 1
        return f"state-{self._count}"

    def create(self):
        """(milliseconds, name)"""
        name = self.new()
        took, _ = self.timed("POST", SANDBOXES, {"name": name})
        return took, name

    def run(self, name: str, command: str) -> str:
        answer = self.call("POST", f"{SANDBOXES}/{name}/exec", {"command": command,
                                                                "timeout": "10m"})
        if answer["exitCode"]:
            raise RowFailed(f"{command[:60]}: {answer['stderr'][:300]}")
        return answer["stdout"]

    def verb(self, name: str, verb: str, body: dict = None):
        return self.timed("POST", f"{SANDBOXES}/{name}/{verb}", body)

    def destroy(self, name: str):
        self.call("DELETE", f"{SANDBOXES}/{name}")


@contextmanager
def client(context, *flags):
    with control_plane.burrow(context, "--stock", 0, *flags) as burrow:
        made = Client(burrow)
        for _ in range(3):
            made.destroy(made.create()[1])
        yield made


def made_with(burrow: Client, script: str) -> str:
    name = burrow.create()[1]
    burrow.run(name, script)
    return name


# --- copies ------------------------------------------------------------------------------------


def fork(script: str, stops: bool):
    """A fork from the call to its answer, when it runs, beside an empty create."""
    def measure(context) -> Comparison:
        ours, peer = [], []
        with client(context) as burrow:
            origin = made_with(burrow, script)
            if stops:
                burrow.verb(origin, "stop")
            for _ in range(TURNS if context.rounds > 3 else 3):
                took, answer = burrow.verb(origin, "fork", {})
                ours.append(took)
                burrow.destroy(answer["sandboxes"][0]["id"])
                took, name = burrow.create()
                peer.append(took)
                burrow.destroy(name)
        return Comparison(ours, peer)

    return measure


def fork_crowd(context) -> Comparison:
    """All asked for in one request, until all run, by their number."""
    ours, peer = [], []
    with client(context) as burrow:
        origin = made_with(burrow, SMALL)
        for _ in range(3):
            took, answer = burrow.verb(origin, "fork", {"count": CROWD})
            ours.append(took / CROWD)
            for sandbox in answer["sandboxes"]:
                burrow.destroy(sandbox["id"])
            turn = []
            for _ in range(TURNS):
                took, name = burrow.create()
                turn.append(took)
                burrow.destroy(name)
            peer.append(median(turn))
    return Comparison(ours, peer)


def used_bytes(context_data: Path) -> int:
    """What the pool's filesystem holds now."""
    subprocess.run(["sync", "--file-system", context_data], check=True)
    usage = shutil.disk_usage(context_data)
    return usage.used


def available_bytes() -> int:
    return memory()["MemAvailable"] * 1024


def fork_disk(context) -> Comparison:
    """What the pool grows by with forks that booted, each; and the memory of all of them."""
    count = MANY if context.rounds > 3 else CROWD
    with control_plane.burrow(context, "--stock", 0) as burrow:
        state = Client(burrow)
        origin = made_with(state, LARGE)
        store = burrow.pool_store()
        before, free = used_bytes(store), available_bytes()
        for _ in range(count // CROWD):
            state.verb(origin, "fork", {"count": CROWD})
        time.sleep(6)  # the pool commits every five seconds
        grown, taken = used_bytes(store) - before, free - available_bytes()
    return Comparison([grown / count / 1000], extra={"forks": count,
                                                     "memory_kb_each": round(taken / count / 1000)})


def copy(script: str, verb: str, stops: bool = False):
    """Snapshot or rollback, of a sandbox that runs or is stopped."""
    def measure(context) -> Comparison:
        ours, peer, pauses = [], [], []
        with client(context) as burrow:
            origin = made_with(burrow, script)
            if stops:
                burrow.verb(origin, "stop")
            _, snapshot = burrow.verb(origin, "snapshots", {})
            for _ in range(TURNS if context.rounds > 3 else 3):
                if verb == "snapshots":
                    took, answer = burrow.verb(origin, verb, {})
                    pauses.append(answer["pauseMs"])
                    burrow.call("DELETE", f"/burrow/v1/snapshots/{answer['id']}")
                else:
                    took, _ = burrow.verb(origin, verb, {"snapshot": snapshot["id"]})
                ours.append(took)
                took, name = burrow.create()
                peer.append(took)
                burrow.destroy(name)
        return Comparison(ours, peer, extra={"pause_ms": pauses})

    return measure


# --- wake --------------------------------------------------------------------------------------


def wake_frozen(context) -> Comparison:
    """An exec that finds it frozen, beside the same exec that finds it running."""
    ours, peer = [], []
    with client(context) as burrow:
        name = burrow.create()[1]
        for _ in range(2 * TURNS):
            burrow.verb(name, "sleep")
            ours.append(burrow.verb(name, "exec", {"command": "true"})[0])
            peer.append(median(burrow.verb(name, "exec", {"command": "true"})[0]
                               for _ in range(5)))
    return Comparison(ours, peer)


def wake_disk(context) -> Comparison:
    """A start from its disk with 1 GB on it, beside an empty create."""
    ours, peer = [], []
    with client(context) as burrow:
        name = made_with(burrow, LARGE if context.rounds > 3 else SMALL)
        for _ in range(TURNS):
            burrow.verb(name, "stop")
            ours.append(burrow.verb(name, "start")[0])
            took, other = burrow.create()
            peer.append(took)
            burrow.destroy(other)
    return Comparison(ours, peer)


# --- backups -----------------------------------------------------------------------------------


def archive_rate(folder: Path) -> float:
    """MB/s of tar and zstd into a file, synced, as a backup is."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    begin = time.perf_counter()
    subprocess.run(f"tar cf - -C {folder} . | zstd -q -T0 -o {folder}.tzst && sync {folder}.tzst",
                   shell=True, check=True)
    took = time.perf_counter() - begin
    Path(f"{folder}.tzst").unlink()
    return size / MEGABYTE / took


def backup(script: str):
    """A backup from the call to its answer, beside `tar | zstd` of the same tree on the host.

    Both pack with zstd's default level, 3, on all processors."""
    def measure(context) -> Comparison:
        ours, peer, restores = [], [], []
        with root_folder("burrow-bench-", "/var/tmp") as place, client(context) as burrow:
            name = made_with(burrow, script)
            size = int(burrow.run(name, "du -sb --apparent-size /workspace").split()[0])
            tree = place / "tree"
            tree.mkdir()
            subprocess.run(["sh", "-c", script.replace("/workspace", str(tree))], check=True)
            for _ in range(3):
                took, made = burrow.verb(name, "backups", {"compression": "zstd"})
                ours.append(size / MEGABYTE / took * SECOND_MS)
                restores.append(burrow.verb(name, "restore", {"backup": made["id"]})[0] / SECOND_MS)
                peer.append(archive_rate(tree))
                burrow.call("DELETE", f"/burrow/v1/backups/{made['id']}")
        return Comparison(ours, peer, extra={"restore_seconds": restores})

    return measure


# --- what a pool costs -------------------------------------------------------------------------


def fsyncs_with(some_client):
    """SQLite commits a second in a sandbox, beside the same on the host's filesystem."""
    def measure(context) -> Comparison:
        ours, peer = [], []
        with root_folder("burrow-bench-", "/var/tmp") as place, some_client(context) as burrow:
            name = burrow.create()[1]
            burrow.run(name, "cat >/workspace/bench.py <<'EOF'\n"
                       + SQLITE.format(place="/workspace") + "EOF")
            script = place / "bench.py"
            script.write_text(SQLITE.format(place=place))
            for _ in range(5):
                ours.append(float(burrow.run(name, "python3 /workspace/bench.py")))
                peer.append(float(subprocess.run(["python3", script], stdout=subprocess.PIPE,
                                                 check=True, text=True).stdout))
        return Comparison(ours, peer)

    return measure


CREATE = "an empty create"

ROWS = [
    Row("fork_asleep", "ms, 1 GB, stopped", LESS, CREATE, Goal("ratio", "<=", 2.0),
        fork(LARGE, True)),
    Row("fork_running", "ms, 1 GB, running", LESS, CREATE, Goal("ratio", "<=", 5.0),
        fork(LARGE, False)),
    Row("fork_asleep_10mb", "ms, stopped", LESS, CREATE, None, fork(SMALL, True)),
    Row("fork_asleep_files", "ms, 10,000 files, stopped", LESS, CREATE, None, fork(FILES, True)),
    Row("fork_10mb", "ms, running", LESS, CREATE, None, fork(SMALL, False)),
    Row("fork_files", "ms, 10,000 files, running", LESS, CREATE, None, fork(FILES, False)),
    Row("fork_crowd", "ms each, 100 at once", LESS, CREATE, Goal("ratio", "<=", 1.0), fork_crowd),
    Row("fork_disk", "kB each on the pool", LESS, None, Goal("p50", "<=", 200), fork_disk),
    Row("snapshot_10mb", "ms, running", LESS, CREATE, None, copy(SMALL, "snapshots")),
    Row("snapshot_1gb", "ms, running", LESS, CREATE, None, copy(LARGE, "snapshots")),
    Row("snapshot_files", "ms, 10,000 files", LESS, CREATE, None, copy(FILES, "snapshots")),
    Row("rollback_10mb", "ms, running", LESS, CREATE, None, copy(SMALL, "rollback")),
    Row("rollback_1gb", "ms, running", LESS, CREATE, None, copy(LARGE, "rollback")),
    Row("rollback_files", "ms, 10,000 files", LESS, CREATE, None, copy(FILES, "rollback")),
    *(Row(f"{name}_asleep_{size}", "ms, stopped", LESS, CREATE, None, copy(script, verb, True))
      for name, verb in (("snapshot", "snapshots"), ("rollback", "rollback"))
      for size, script in (("10mb", SMALL), ("1gb", LARGE), ("files", FILES))),
    Row("wake_frozen", "ms", LESS, "the exec alone", Goal("ratio", "<=", 3.0), wake_frozen),
    Row("wake_disk", "ms, 1 GB", LESS, CREATE, Goal("ratio", "<=", 1.5), wake_disk),
    Row("backup_1gb", "MB/s, 1,000 files", MORE, "tar | zstd -T0 on the host",
        Goal("ratio", ">=", 0.6), backup(THOUSAND)),
    Row("backup_files", "MB/s, 10,000 files", MORE, "tar | zstd -T0 on the host", None,
        backup(FILES)),
    Row("disk_fsync", "SQLite commits/s", MORE, "the host's own filesystem", None,
        fsyncs_with(client)),
]
