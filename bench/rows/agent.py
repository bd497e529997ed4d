"""The agent through its socket, beside the floor on the same machine: what a plain program takes.

The agent runs alone, without walls, so that only its own work is measured; both sides run the same
programs on the same files. Times are of one request on a connection that is open already.
"""

import contextlib
import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from frame import process
from frame.failure import RowFailed
from frame.row import LESS, MORE, Comparison, Goal, Row, percentile

MILLISECOND_US = 1e3
ANSWER_SECONDS = 300
START_SECONDS = 10
TURN = 100
SLOW_TURN = 10
CONTEXT_TURN = 3
NO_SESSION = "__DISABLE_SESSION__"
OUTPUT_BYTES = 1 << 30
FILES = 1000
MEBIBYTE = 1 << 20


class Agent:
    """One agent on a unix socket, with a folder of its own."""

    def __init__(self, context, folder: Path):
        self._context = context
        self._folder = folder
        self._serial = 0
        self.target = f"unix:{folder}/socket"
        self.child = subprocess.Popen(  # pylint: disable=consider-using-with
            [context.program("burrow-agent"), "--listen", self.target],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._wait()

    def _wait(self):
        end = time.monotonic() + START_SECONDS
        while not (self._folder / "socket").exists():
            if self.child.poll() is not None or time.monotonic() > end:
                raise RowFailed("the agent does not start")
            time.sleep(0.01)

    def ask(self, path: str, body, count: int = 1, *options) -> dict:
        """`body` is a document, or the path of a file that holds one."""
        text = f"@{body}" if isinstance(body, Path) else json.dumps(body)
        self._serial += count
        return json.loads(process.run_load(
            [self._context.program("agent-load"), "--target", self.target, "--path", path, "--body",
             text, "--count", count, "--serial", self._serial - count, *options],
            None, ANSWER_SECONDS))

    def times(self, path: str, body, count: int, *options) -> list:
        return [each / MILLISECOND_US for each in self.ask(path, body, count, *options)["total_us"]]


@contextlib.contextmanager
def running(context):
    with tempfile.TemporaryDirectory(prefix="burrow-bench-") as folder:
        agent = Agent(context, Path(folder))
        try:
            yield agent, Path(folder)
        finally:
            agent.child.terminate()
            agent.child.wait(START_SECONDS)


def floor_times(context, command: list, count: int) -> list:
    done = json.loads(process.run_load(
        [context.program("process-load"), "--count", count, "--", *command], None, ANSWER_SECONDS))
    return [each / MILLISECOND_US for each in done["total_us"]]


def take_turns(context, ours, peer) -> Comparison:
    """A sample is the median of one turn; `extra` has the percentiles of all."""
    comparison, single = Comparison([], []), {"ours": [], "peer": []}
    if context.self_check:
        ours = peer
    ours()
    for _ in range(2 * context.rounds):
        for name, turn, samples in (("ours", ours, comparison.ours),
                                    ("peer", peer, comparison.peer)):
            times = turn()
            single[name] += times
            samples.append(median(times))
    comparison.extra = {"single_ms": {
        name: {f"p{percent}": round(percentile(times, percent, LESS), 4)
               for percent in (50, 99)} for name, times in single.items()}}
    return comparison


TRUE = ["/bin/true"]
FLOOR_TRUE = "fork and exec of /bin/true"


def beside(path: str, body, floor: list, turn: int = TURN, options=()):
    """A row's measurement: this request beside this program."""
    def measure(context) -> Comparison:
        with running(context) as (agent, _):
            return take_turns(context, lambda: agent.times(path, body, turn, *options),
                              lambda: floor_times(context, floor, turn))
    return measure


def execute(command: str, session: str = "bench") -> tuple:
    return "/api/execute", {"command": command, "sessionId": session}


def first_byte(context) -> Comparison:
    """From the write of a program until the client has read it."""
    stamp = str(context.program("stamp").resolve())  # commands run elsewhere
    with running(context) as (agent, _):
        body = {"command": stamp, "sessionId": NO_SESSION}
        return take_turns(
            context, lambda: agent.times("/api/execute/stream", body, TURN, "--stamps", "on"),
            lambda: floor_times(context, TRUE, TURN))


def file_row(route: str, size: int):
    """Beside dd, which reads or writes as much in one go."""
    def measure(context) -> Comparison:
        with running(context) as (agent, folder):
            file, ask = folder / "file", folder / "body.json"
            file.write_bytes(b"x" * size)
            document = {"path": str(file), "sessionId": "bench"}
            if route == "/api/write":
                document["content"] = "x" * size
            ask.write_text(json.dumps(document))
            ends = [f"if={file}", "of=/dev/null"] if route == "/api/read" else \
                ["if=/dev/zero", f"of={folder}/other"]
            floor = ["/bin/dd", *ends, f"bs={size}", "count=1", "status=none"]
            return take_turns(context, lambda: agent.times(route, ask, TURN),
                              lambda: floor_times(context, floor, TURN))
    return measure


def list_files(context) -> Comparison:
    with running(context) as (agent, folder):
        files = folder / "files"
        files.mkdir()
        for number in range(FILES):
            (files / f"file-{number}").write_text("x")
        body = {"path": str(files), "sessionId": "bench", "options": {}}
        return take_turns(context, lambda: agent.times("/api/list-files", body, TURN),
                          lambda: floor_times(context, ["/bin/ls", "-f", str(files)], TURN))


def session_create(context) -> Comparison:
    """Until the first command in it was answered would be one exec more."""
    with running(context) as (agent, _):
        return take_turns(
            context, lambda: agent.times("/api/session/create", {"id": "bench-@@"}, SLOW_TURN),
            lambda: floor_times(context, ["/bin/bash", "-c", "true"], SLOW_TURN))


def python_context(context) -> Comparison:
    """With the fork server warm, as after the first. Few of them: an agent bounds its contexts."""
    with running(context) as (agent, folder):
        body = {"language": "python", "cwd": str(folder)}
        return take_turns(context, lambda: agent.times("/api/contexts", body, CONTEXT_TURN),
                          lambda: floor_times(context, ["/usr/bin/python3", "-c", "pass"],
                                              CONTEXT_TURN))


def output(context) -> Comparison:
    """A gigabyte through the event stream, beside cat through a pipe."""
    size = OUTPUT_BYTES if context.rounds > 3 else OUTPUT_BYTES // 8
    produce = f"head -c {size} /dev/zero | tr '\\0' x"
    comparison = Comparison([], [])
    with running(context) as (agent, _):
        for _ in range(max(1, context.rounds // 2)):
            body = {"command": produce, "sessionId": NO_SESSION}
            begin = time.monotonic()
            agent.ask("/api/execute/stream", body)
            comparison.ours.append(size / MEBIBYTE / (time.monotonic() - begin))
            begin = time.monotonic()
            subprocess.run(["sh", "-c", f"{produce} | cat >/dev/null"], check=True)
            comparison.peer.append(size / MEBIBYTE / (time.monotonic() - begin))
    return comparison


ROWS = [
    Row("agent_session_builtin", "ms", LESS, FLOOR_TRUE, Goal("ratio", "<=", 0.5),
        beside(*execute("true"), TRUE)),
    Row("agent_session_true", "ms", LESS, FLOOR_TRUE, None, beside(*execute("/bin/true"), TRUE)),
    Row("agent_sessionless", "ms", LESS, FLOOR_TRUE, Goal("ratio", "<=", 1.4),
        beside(*execute("/bin/true", NO_SESSION), TRUE)),
    Row("agent_first_byte", "ms", LESS, FLOOR_TRUE, Goal("ratio", "<=", 1.0), first_byte),
    Row("agent_read_1k", "ms", LESS, "dd", None, file_row("/api/read", 1024)),
    Row("agent_read_1m", "ms", LESS, "dd", None, file_row("/api/read", MEBIBYTE)),
    Row("agent_write_1k", "ms", LESS, "dd", None, file_row("/api/write", 1024)),
    Row("agent_write_1m", "ms", LESS, "dd", None, file_row("/api/write", MEBIBYTE)),
    Row("agent_list_1000", "ms", LESS, "ls -f", Goal("ratio", "<=", 2.0), list_files),
    Row("agent_session_create", "ms", LESS, "bash -c true", None, session_create),
    Row("agent_python_context", "ms", LESS, "python3 -c pass", Goal("ratio", "<=", 0.15),
        python_context),
    Row("agent_output", "MiB/s", MORE, "cat through a pipe", Goal("ratio", ">=", 0.5), output),
]
