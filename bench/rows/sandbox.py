"""Sandboxes beside bubblewrap, crun, runc and a plain process, on the same small tree.

Ours are made inside a running provider with all walls and all limits (memory, processes, CPU, disk)
and an agent that runs the command; the others are programs that are started anew each time, which
is how they are used. bubblewrap limits nothing, crun and runc have no disk limit and no filter of
system calls. Nothing is pinned to a core: making a sandbox is work for several processes.
"""

import threading
import time
from functools import lru_cache
from pathlib import Path
from statistics import median

from frame import sandboxes
from frame.failure import RowFailed
from frame.row import LESS, MORE, Comparison, Goal, Row, percentile

MILLISECOND_US = 1e3
POOLED_COUNT, POOLED_RATE = 200, 50
PEER_LOOPS = 2
# A client that waits for each answer leaves cores idle. Ours is one service with any number of
# requests under way; more than so many for each core are no faster.
UNDER_WAY = 4
SUSTAINED_SECONDS, TURN_SECONDS, TURNS = 30, 10, 5
SETTLED_SECONDS = 2  # what was put off is done
QUEUE_EVERY_SECONDS = 0.5
IDLE_FEW, IDLE_MANY = 200, 1000
SETTLE_SECONDS, LOOKS, LOOK_SECONDS = 3, 5, 0.2
GROWTH = (100, 1000, 3000)
GROWTH_TURNS, GROWTH_TURN = 5, 10
KILOBYTE = 1.024  # /proc/meminfo counts KiB


# --- times ------------------------------------------------------------------------------------


def spread_of(times: list) -> dict:
    return {f"p{percent}": round(percentile(times, percent, LESS), 3)
            for percent in (10, 50, 90, 99)}


def take_turns(rounds: int, ours, peer) -> Comparison:
    """A sample is the median of one turn, so that one late tick is not a result. `ours` and `peer`
    return times in microseconds."""
    comparison = Comparison([], [])
    single = {"ours": [], "peer": []}
    for _ in range(rounds):
        for name, turn, samples in (("ours", ours, comparison.ours),
                                    ("peer", peer, comparison.peer)):
            times = [time_us / MILLISECOND_US for time_us in turn()]
            single[name] += times
            samples.append(median(times))
    comparison.extra = {"single_ms": {name: spread_of(times) for name, times in single.items()}}
    return comparison


def cold(context, peer_of, turn: int) -> Comparison:
    """create, /bin/true, destroy, until that is answered; beside a whole run of the peer."""
    with sandboxes.burrow(context) as burrow, peer_of(context, burrow.tree) as peer:
        steps = {"create_us": [], "exec_us": [], "destroy_us": []}

        def ours():
            if context.self_check:
                return peer.times_us(turn)
            done = burrow.ask("cold", turn)
            for name, times in steps.items():
                times += done[name]
            return done["total_us"]

        burrow.ask("cold", turn)
        peer.times_us(turn)
        comparison = take_turns(2 * context.rounds, ours, lambda: peer.times_us(turn))
    comparison.extra["steps_us"] = {name: spread_of(times)
                                    for name, times in steps.items() if times}
    return comparison


def pooled(context) -> Comparison:
    """From the call to the answer of the first /bin/true, at a steady rate: those that wait for
    each other are counted with their waiting."""
    with sandboxes.burrow(context, sandboxes.STOCK_DEFAULT) as burrow:
        peer = sandboxes.bubblewrap(context, burrow.tree)
        from_stock = []

        def ours():
            if context.self_check:
                return peer.times_us(20)
            done = burrow.ask("pooled", POOLED_COUNT, POOLED_RATE)
            from_stock.append(done["from_stock"])
            return done["total_us"]

        comparison = take_turns(max(1, context.rounds // 2) + 1, ours, lambda: peer.times_us(20))
    comparison.extra["from_stock_of_200"] = from_stock
    return comparison


def execute(context) -> Comparison:
    with sandboxes.burrow(context) as burrow:
        peer = sandboxes.plain(context)
        turn = 50
        ours = peer.times_us if context.self_check else (
            lambda count: burrow.ask("exec", count)["total_us"])
        return take_turns(2 * context.rounds, lambda: ours(turn), lambda: peer.times_us(turn))


def walls(context) -> Comparison:
    """A start with everything beside one with nothing, and what each wall adds: the median of the
    differences, round by round, to a start without it."""
    done = sandboxes.wall_cost(context, 20 * context.rounds)
    everything = done["everything"]
    comparison = Comparison([time_us / MILLISECOND_US for time_us in everything],
                            [time_us / MILLISECOND_US for time_us in done["nothing"]], paired=False)
    comparison.extra = {"wall_us": {
        name: round(median(whole - without for whole, without in zip(everything, times)))
        for name, times in done.items() if name != "everything"}}
    return comparison


# --- sustained --------------------------------------------------------------------------------


class Queue:
    """How many sandboxes wait to be taken down, seen from outside: groups that are left beyond
    those in work. Looked at every half second."""

    def __init__(self, groups: Path):
        self.lengths = []
        self._groups = groups
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self):
        while not self._over.wait(QUEUE_EVERY_SECONDS):
            self.lengths.append(max(0, sandboxes.count_groups(self._groups) - UNDER_WAY))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()


def beside(rates: list) -> list:
    """Between each two, for the turn that came between them."""
    return [(before + after) / 2 for before, after in zip(rates, rates[1:])]


def sustained(context) -> Comparison:
    """In turns: a machine that others use, too, is a third faster or slower from one minute to the
    next. The peer before and after each turn of ours."""
    seconds = TURN_SECONDS if context.rounds > 3 else TURN_SECONDS // 5

    def peer_rate():
        time.sleep(SETTLED_SECONDS)
        return peer.rate(seconds, PEER_LOOPS)

    def our_rate():
        if context.self_check:
            return peer_rate()
        return sum(burrow.ask("sustained", seconds, UNDER_WAY)["per_second"]) / seconds

    with sandboxes.burrow(context) as burrow:
        peer = sandboxes.bubblewrap(context, burrow.tree)
        burrow.ask("cold", 5)
        ours, peers = [], [peer_rate()]
        for _ in range(TURNS):
            ours.append(our_rate())
            peers.append(peer_rate())
    return Comparison(ours, beside(peers))


def queue_growth(context) -> Comparison:
    """The last third against the first, of a run in one piece: in turns it would have time to
    shrink."""
    seconds = SUSTAINED_SECONDS if context.rounds > 3 else SUSTAINED_SECONDS // 5
    with sandboxes.burrow(context) as burrow:
        burrow.ask("cold", 5)
        with Queue(burrow.groups()) as queue:
            rates = burrow.ask("sustained", seconds, UNDER_WAY)["per_second"]
    third = max(1, len(queue.lengths) // 3)
    growth = median(queue.lengths[-third:]) - median(queue.lengths[:third])
    return Comparison([max(0, growth)], extra={"queue": queue.lengths, "per_second": rates})


# --- many -------------------------------------------------------------------------------------


def memory() -> dict:
    """/proc/meminfo once it stands still: the kernel frees and counts with a delay."""
    time.sleep(SETTLE_SECONDS)
    looks = []
    for _ in range(LOOKS):
        time.sleep(LOOK_SECONDS)
        lines = Path("/proc/meminfo").read_text().splitlines()
        looks.append({line.split(":")[0]: int(line.split()[1]) for line in lines})
    return {name: median(look[name] for look in looks) for name in looks[0]}


PARTS = ("SUnreclaim", "SReclaimable", "PageTables", "KernelStack", "Percpu", "AnonPages")


def idle(context) -> Comparison:
    """The slope between a few and many, of what the host has left for others. It includes what
    the kernel keeps: groups, namespaces, mounts."""
    few, many = (IDLE_FEW, IDLE_MANY) if context.rounds > 3 else (IDLE_FEW // 5, IDLE_MANY // 5)
    comparison, parts = Comparison([]), []
    for _ in range(max(1, context.rounds // 2)):
        with sandboxes.burrow(context) as burrow:
            burrow.ask("idle", few)
            before = memory()
            burrow.ask("idle", many)
            after = memory()
        each = (many - few) / KILOBYTE
        comparison.ours.append((before["MemAvailable"] - after["MemAvailable"]) / each)
        parts.append({name: round((after[name] - before[name]) / each, 1) for name in PARTS})
    comparison.extra = {"parts_kb": parts}
    return comparison


def cold_turns(burrow) -> list:
    return [median(burrow.ask("cold", GROWTH_TURN)["total_us"]) / MILLISECOND_US
            for _ in range(GROWTH_TURNS)]


@lru_cache(maxsize=None)
def growth_run(context) -> tuple:
    """({count: times or the failure}, times with none idle, before and after)."""
    at = {}
    with sandboxes.burrow(context) as burrow:
        cold_turns(burrow)
        none = cold_turns(burrow)
        try:
            for count in GROWTH if context.rounds > 3 else GROWTH[:2]:
                at[count] = RowFailed(f"{count} sandboxes cannot be made")
                burrow.ask("idle", count)
                at[count] = cold_turns(burrow)
            burrow.ask("idle", 0)
            none += cold_turns(burrow)
        except RowFailed as failure:
            at[count] = failure
    return at, none


def growth(count: int):
    def measure(context) -> Comparison:
        at, none = growth_run(context)
        times = at.get(count, RowFailed("left out: a quick run, or fewer failed already"))
        if isinstance(times, RowFailed):
            raise times
        return Comparison(times, none, paired=False)

    return measure


# --- rows -------------------------------------------------------------------------------------


def bubblewrap_peer(context, tree):
    return sandboxes.in_a_block(sandboxes.bubblewrap(context, tree))


def runtime_peer(name: str):
    return lambda context, tree: sandboxes.container_runtime(context, name, tree)


NONE_IDLE = "Burrow itself with no others"

ROWS = [
    Row("sandbox_cold", "ms", LESS, "bubblewrap, no limits", Goal("ratio", "<=", 1.2),
        lambda context: cold(context, bubblewrap_peer, 20)),
    Row("sandbox_cold_crun", "ms", LESS, "crun", Goal("ratio", "<=", 0.6),
        lambda context: cold(context, runtime_peer("crun"), 10)),
    Row("sandbox_cold_runc", "ms", LESS, "runc", None,
        lambda context: cold(context, runtime_peer("runc"), 5)),
    Row("sandbox_pooled", "ms", LESS, "bubblewrap, no limits", Goal("ratio", "<=", 0.4), pooled),
    Row("sandbox_exec", "ms", LESS, "fork and exec of it on the host", Goal("ratio", "<=", 1.4),
        execute),
    Row("sandbox_walls", "ms to a running PID 1", LESS, "the same without walls and limits", None,
        walls),
    Row("sandbox_sustained", "sandboxes/s", MORE, "bubblewrap, two loops",
        Goal("ratio", ">=", 0.8), sustained),
    Row("sandbox_queue", "more at the end", LESS, None, Goal("p50", "<=", 4), queue_growth),
    Row("sandbox_idle", "kB each, 200 to 1,000", LESS, None, Goal("p50", "<=", 1500), idle),
    Row("sandbox_at_100", "ms", LESS, NONE_IDLE, None, growth(100)),
    Row("sandbox_at_1000", "ms", LESS, NONE_IDLE, Goal("ratio", "<=", 1.6), growth(1000)),
    Row("sandbox_at_3000", "ms", LESS, NONE_IDLE, None, growth(3000)),
]
