"""Whether the agent of a sandbox in trouble is still there: /api/ping beside bombs.

A real sandbox with all walls and small limits, the one of tests/isolation/alive_test.py, which also
has the bombs. The peer is the same sandbox at rest, right before. Times are of one request on a
connection that is open already; `extra` says how many pings there were.
"""

import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

from frame import process
from frame.failure import RowFailed
from frame.row import LESS, Comparison, Goal, Row
from frame.sandboxes import need_root

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests/lib"))

import bomb_lab  # noqa: E402 pylint: disable=wrong-import-position
import tap  # noqa: E402 pylint: disable=wrong-import-position

MILLISECOND_US = 1e3
TROUBLE_SECONDS, QUICK_SECONDS = 6.0, 2.5
GROWING_SECONDS = 0.5  # until a bomb is one
PAUSE_SECONDS = 0.02
PINGS = 10  # in a turn
ANSWER_SECONDS = 30
OUTPUT_RATE = 100 * bomb_lab.MEGABYTE  # bytes per second
PROMISE_MS = 2000
ENDED = (124, 128 + 9)  # by its timeout, or by the kernel for lack of memory


def ping(context, box) -> list:
    done = json.loads(process.run_load(
        [context.program("agent-load"), "--target", box.address, "--path", "/api/ping", "--method",
         "GET", "--body", "", "--count", PINGS], None, ANSWER_SECONDS))
    return [each / MILLISECOND_US for each in done["total_us"]]


def ping_for(context, box, seconds: float) -> list:
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        times += ping(context, box)
        time.sleep(PAUSE_SECONDS)
    return times


@contextlib.contextmanager
def sandbox(context):
    need_root()
    os.environ["BURROW_BUILD"] = str(context.build.resolve())
    try:
        with bomb_lab.BombLab(*bomb_lab.SMALL) as lab:
            yield lab.start([])
    except tap.Skip as lack:
        raise RowFailed(f"this needs {lack}") from lack
    except (AssertionError, OSError) as failure:
        raise RowFailed(str(failure)) from failure


def explode(command: str):
    """A bomb that goes off in the background and is ended by its timeout."""
    def begin(box, seconds: float) -> dict:
        status = box.run(command, timeoutMs=int(seconds * MILLISECOND_US))["exitCode"]
        return {"exit": status} if status in ENDED else {}
    return begin


def flood(box, seconds: float) -> dict:
    with box.open_stream(bomb_lab.FLOOD) as connection:
        rate = bomb_lab.read_at(connection, OUTPUT_RATE, seconds)
    return {"output_mb_per_second": round(rate / bomb_lab.MEGABYTE)}


def beside(trouble):
    """A row's measurement: pings at rest, then in the middle of the trouble."""
    def measure(context) -> Comparison:
        seconds = TROUBLE_SECONDS if context.rounds > 3 else QUICK_SECONDS
        with sandbox(context) as box:
            rest = ping_for(context, box, seconds / 4)
            told = {}
            thread = threading.Thread(
                target=lambda: told.update(trouble(box, GROWING_SECONDS + seconds)))
            thread.start()
            try:
                time.sleep(GROWING_SECONDS)
                times = rest if context.self_check else ping_for(context, box, seconds)
            finally:
                thread.join()
            if not told:
                raise RowFailed("the trouble did not come about, or ended by itself")
            return Comparison(times, rest, paired=False, extra={"pings": len(times), **told})
    return measure


AT_REST = "the same sandbox at rest"
PROMISE = Goal("p99", "<=", PROMISE_MS)

ROWS = [Row(f"alive_{name}", "ms", LESS, AT_REST, PROMISE, beside(trouble)) for name, trouble in (
    ("fork_bomb", explode(bomb_lab.FORK_BOMB)),
    ("memory_bomb", explode(bomb_lab.MEMORY_BOMB)),
    ("cpu_bomb", explode(bomb_lab.CPU_BOMB)),
    ("full_disk", explode(bomb_lab.FILL_DISK)),
    ("output", flood),
)]
