"""What a row is given: programs, cores, a scratch directory, and how long to measure."""

import itertools
import json
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from frame import process, servers
from frame.failure import RowFailed
from frame.row import Comparison

# Where a build leaves its programs, below the build directory.
PROGRAM_FOLDERS = ("", "bench", "tests", "tests/support", "src/programs")
LOAD_GRACE_SECONDS = 60
WARM_UP_SECONDS = 0.2


def scratch_root() -> str:
    """Memory, where there is some: logs and uploads must not measure the disk."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()


class Context:
    def __init__(self, build: Path, quick: bool, self_check: bool):
        self.build = build
        self.rounds = 3 if quick else 5
        self.seconds = 0.5 if quick else 2.0
        self.self_check = self_check
        cores = sorted(os.sched_getaffinity(0))
        self.server_cpu = cores[0]
        self.load_cpu = cores[1 % len(cores)]
        self.upstream_cpu = cores[2] if len(cores) > 2 else self.load_cpu
        self._scratch = None
        self._folders = itertools.count()

    def __enter__(self):
        self._scratch = Path(tempfile.mkdtemp(prefix="burrow-bench-", dir=scratch_root()))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self._scratch, ignore_errors=True)

    @contextmanager
    def folder(self):
        """A fresh directory for one server; gone afterwards."""
        path = self._scratch / str(next(self._folders))
        path.mkdir()
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def program(self, name: str) -> Path:
        for folder in PROGRAM_FOLDERS:
            path = self.build / folder / name
            if path.is_file():
                return path
        raise RowFailed(f"{name} is not in {self.build}: `make bench` builds it")

    @contextmanager
    def ours(self, peer, proxy_to: str = None):
        """Our server; in a self check `peer()`, a second instance of the peer, stands in for it."""
        if self.self_check:
            with peer() as server:
                yield server
            return
        with self.folder() as folder:
            with servers.NetDemo(self.program("net-demo"), folder, self.server_cpu,
                                 proxy_to) as server:
                yield server

    @contextmanager
    def nginx(self, cpu: int = None, **settings):
        with self.folder() as folder:
            with servers.Nginx(folder, self.server_cpu if cpu is None else cpu,
                               **settings) as server:
                yield server

    def load(self, arguments: list, seconds: float) -> str:
        """What a load program printed."""
        return process.run_load(arguments, self.load_cpu, seconds + LOAD_GRACE_SECONDS)

    def load_json(self, name: str, *arguments, seconds: float) -> dict:
        """The result of one of our own load programs."""
        time = f"{round(seconds * 1000)}ms"
        return json.loads(self.load([self.program(name), *arguments, "--time", time], seconds))

    def rates(self, ours, peer, work) -> Comparison:
        """Compare two servers by work done per CPU-second, taking turns.

        `work(server, seconds)` loads the server and returns a Work. The idle one costs nothing, so
        both stay up.
        """
        for server in (ours, peer):
            work(server, WARM_UP_SECONDS)
        comparison = Comparison([], [])
        waits = {"ours": [], "peer": []}
        for _ in range(self.rounds):
            for server, side, rates in ((ours, "ours", comparison.ours),
                                        (peer, "peer", comparison.peer)):
                rate, done = self._rate(server, work)
                rates.append(rate)
                waits[side].append(done)
        comparison.extra = _latencies(waits)
        return comparison

    def _rate(self, server, work):
        before = server.cpu_seconds()
        work_done = work(server, self.seconds)
        used = server.cpu_seconds() - before
        if used <= 0:
            raise RowFailed("the server used no measurable CPU time")
        return work_done.done / used, work_done


def _latencies(waits: dict) -> dict:
    """Medians over the rounds. With every connection busy all the time this is mostly queueing:
    good for comparing the two sides, not the time one request takes."""
    if waits["ours"][0].p50_us is None:
        return {}
    return {"latency_at_full_load_us": {
        side: {"p50": median(work.p50_us for work in works),
               "p99": median(work.p99_us for work in works)}
        for side, works in waits.items()}}
