"""Sandboxes of ours and of others, on one tree, with the same limits where there are any."""

import json
import os
import re
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

from frame import process
from frame.failure import RowFailed
from frame.servers import need_program

COMMAND = "/bin/true"
MEMORY, PIDS, CPU_PERIOD = 256 << 20, 64, 100_000
# A launcher with thousands of sandboxes has some work to do at the end.
END_SECONDS = 320
ANSWER_SECONDS = 600
# As big as the disks of all sandboxes need together; the file is sparse.
POOL_SIZE = "8G"
STOCK_DEFAULT = 8  # PROVIDER_LOCAL_STOCK_DEFAULT
IMAGE = "bench"


def need_root():
    if os.geteuid() != 0:
        raise RowFailed("sandboxes need root")


def libraries_of(program: str) -> list:
    """The shared libraries that a program loads, the loader among them."""
    done = subprocess.run(["ldd", program], capture_output=True, text=True)
    found = re.findall(r"(/\S+) \(0x", done.stdout)
    if done.returncode != 0 or not found:
        raise RowFailed(f"ldd {program}: {done.stderr.strip()}")
    return found


def make_tree(tree: Path):
    """A root that holds the command and nothing else: what is measured is the sandbox, not the
    page cache. Root's alone, as the launcher demands."""
    for folder in ("dev", "etc", "home", "proc", "root", "sys", "tmp", "workspace"):
        (tree / folder).mkdir(parents=True)
    (tree / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    for file in (COMMAND, *libraries_of(COMMAND)):
        copy = tree / file.lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)


@contextmanager
def root_folder(prefix: str, where: str):
    """A folder of root's that everybody may walk through."""
    path = Path(tempfile.mkdtemp(prefix=prefix, dir=where))
    path.chmod(0o755)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Burrow:
    """sandbox-load with a launcher of its own; ends with its `with` block."""

    def __init__(self, context, place: Path, run: Path, tree: Path, stock: int):
        self.cgroup = f"burrow-bench-{os.getpid()}"
        launcher = context.program("burrow-launcher")
        self._register(launcher, place, run, tree)
        self.child = subprocess.Popen(
            [str(word) for word in (
                context.program("sandbox-load"), "--launcher", launcher, "--data", place / "data",
                "--run", run, "--cgroup", self.cgroup, "--network-name", f"bb{os.getpid()}",
                "--pool-size", POOL_SIZE, "--image", IMAGE, "--stock", stock)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True)

    @staticmethod
    def _register(launcher: Path, place: Path, run: Path, tree: Path):
        done = subprocess.run([launcher, "image", "--data", place / "data", "--run", run, "add",
                               IMAGE, tree], capture_output=True, text=True)
        if done.returncode != 0:
            raise RowFailed(f"register the tree: {done.stderr.strip()}")

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        """Returns when the launcher is gone, too: it has our stderr until then."""
        if failure:
            self.child.terminate()
        self.child.stdin.close()
        try:
            self.child.stdout.read()
            self.child.stderr.read()
            self.child.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()

    def ask(self, *words) -> dict:
        """Let it do one thing and return what it says of it."""
        try:
            self.child.stdin.write(" ".join(str(word) for word in words) + "\n")
            self.child.stdin.flush()
            answer = self.child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise RowFailed(self.child.stderr.read().strip() or "sandbox-load ended")
        return json.loads(answer)

    def groups(self) -> Path:
        """A folder with one entry for each sandbox that was not taken down yet."""
        for hierarchy in ("pids", "memory", "cpu", "unified", ""):
            for found in Path("/sys/fs/cgroup", hierarchy).glob(f"**/{self.cgroup}*"):
                return found
        raise RowFailed("the launcher's cgroups are not found")


def count_groups(groups: Path) -> int:
    with os.scandir(groups) as entries:
        return sum(1 for entry in entries if entry.is_dir() and len(entry.name) == 26)


@contextmanager
def burrow(context, stock: int = 0):
    """Disks lie on a disk, as they do for users; what is for this boot only, in memory, as /run."""
    need_root()
    with root_folder("burrow-bench-", "/var/tmp") as place:
        with root_folder("burrow-bench-", "/dev/shm") as run:
            make_tree(place / "tree")
            with Burrow(context, place, run, place / "tree", stock) as session:
                session.tree = place / "tree"
                yield session


def wall_cost(context, rounds: int) -> dict:
    """Times of starts in microseconds, by what was left out."""
    need_root()
    with root_folder("burrow-bench-", "/var/tmp") as data:
        with root_folder("burrow-bench-", "/dev/shm") as run:
            return json.loads(process.run_load(
                [context.program("wall-cost"), "--data", data, "--run", run, "--cgroup",
                 f"burrow-bench-{os.getpid()}", "--programs",
                 context.program("burrow-agent").resolve().parent, "--rounds", rounds],
                None, ANSWER_SECONDS))


# --- the others -------------------------------------------------------------------------------


class Peer:
    """A program that makes a sandbox, runs the command in it, and ends."""

    def __init__(self, context, command: list, prefix: list = ()):
        self._context = context
        self._command = [str(word) for word in command]
        self._prefix = [str(word) for word in prefix]

    def _load(self, *options) -> dict:
        words = [*self._prefix, str(self._context.program("process-load")),
                 *(str(option) for option in options), "--", *self._command]
        return json.loads(process.run_load(words, None, ANSWER_SECONDS))

    def times_us(self, count: int) -> list:
        return self._load("--count", count)["total_us"]

    def rate(self, seconds: float, loops: int) -> float:
        """How many per second, so many at a time."""
        done = self._load("--time", f"{round(seconds * 1000)}ms", "--loops", loops)
        return done["done"] / done["seconds"]


def bubblewrap(context, tree: Path) -> Peer:
    return Peer(context, [need_program("bwrap", "bubblewrap"), "--unshare-all", "--ro-bind", tree,
                          "/", "--proc", "/proc", "--dev", "/dev", COMMAND])


@contextmanager
def in_a_block(peer: Peer):
    """A peer that leaves nothing behind, for where one is wanted that does."""
    yield peer


def plain(context) -> Peer:
    """The command on the host, with nothing around it."""
    return Peer(context, [COMMAND])


def _namespaces() -> list:
    return [{"type": name} for name in ("pid", "network", "ipc", "uts", "mount", "user", "cgroup")]


def container_config(tree: Path, name: str) -> dict:
    """What the runtime specification asks for, the same namespaces and limits as ours, and nothing
    more: no seccomp, no hooks, the fewest mounts that programs expect."""
    ids = [{"containerID": 0, "hostID": 100_000, "size": 65536}]
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": [COMMAND],
                    "env": ["PATH=/usr/bin:/bin"], "cwd": "/", "noNewPrivileges": True},
        "root": {"path": str(tree), "readonly": True},
        "hostname": "bench",
        "mounts": mounts,
        "linux": {
            "cgroupsPath": f"/{name}",
            "namespaces": _namespaces(),
            "uidMappings": ids,
            "gidMappings": ids,
            "resources": {"memory": {"limit": MEMORY, "swap": MEMORY}, "pids": {"limit": PIDS},
                          "cpu": {"quota": CPU_PERIOD, "period": CPU_PERIOD}},
        },
    }


def _unified_mounts() -> list:
    """Where cgroup v2 is mounted beside v1; [] when all is v2, or all v1."""
    places = {"cgroup": [], "cgroup2": []}
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind = line.split()[:3]
        if kind in places:
            places[kind].append(place)
    return places["cgroup2"] if places["cgroup"] else []


def _without_unified() -> list:
    """crun refuses a host with both versions of cgroups, so it is shown v1 alone: in a mount
    namespace that is made once, outside of what is measured."""
    places = _unified_mounts()
    if not places:
        return []
    hide = " && ".join(f"umount --lazy '{place}'" for place in places)
    return ["unshare", "--mount", "sh", "-c", f'{hide} && exec "$@"', "sh"]


@contextmanager
def container_runtime(context, program: str, tree: Path):
    """crun or runc, as root would call them."""
    name = f"burrow-bench-{program}-{os.getpid()}"
    with context.folder() as folder:
        (folder / "config.json").write_text(json.dumps(container_config(tree, name)))
        yield Peer(context, [need_program(program, program), "--root", folder / "state", "run",
                             "--bundle", folder, name], _without_unified())
