"""The whole product over HTTP: a client process, the daemon with keys, store and launcher, and
sandboxes of the default image with all walls and all limits (memory, processes, CPU, disk).

The peers are those of rows/sandbox.py and rows/proxy.py, which have none of that: bubblewrap makes
no row in a database, limits nothing and is asked by nobody. Times are of one client on connections
that are open already. A create is answered when it is on the disk.
"""

import time
from contextlib import contextmanager
from functools import lru_cache
from statistics import median

from frame import control_plane, process, sandboxes, wrk
from frame.failure import RowFailed
from frame.row import LESS, MORE, Comparison, Goal, Row
from rows.proxy import PROXY_HTTP, PROXY_LOCATION, SMALL, upstream
from rows.sandbox import (MILLISECOND_US, PARTS, POOLED_COUNT, POOLED_RATE, memory, spread_of,
                          take_turns)

COLD_TURN, EXEC_TURN = 20, 50
CROWD = 100
SIDE_BY_SIDE = 8
IDLE_COUNT = 1000
SLEEPERS, QUICK_SLEEPERS = 10_000, 1000
PAGE = 100
SLEEP_SECONDS = 120
READ_TURN = 50
STOCK_SECONDS = 30
PREVIEW_PORT = 8080
KIBIBYTE, MEGABYTE = 1024, 1e6

NGINX_INSIDE = f"""
daemon off;
worker_processes 1;
pid /tmp/nginx.pid;
error_log stderr;
events {{ worker_connections 4096; }}
http {{
    client_body_temp_path /tmp/b; proxy_temp_path /tmp/p; fastcgi_temp_path /tmp/f;
    uwsgi_temp_path /tmp/u; scgi_temp_path /tmp/s;
    sendfile on; tcp_nopush on; access_log off; default_type application/json;
    keepalive_requests 1000000000; keepalive_timeout 300s;
    server {{ listen 127.0.0.1:{PREVIEW_PORT} backlog=4096; root /workspace/www; }}
}}
"""


@contextmanager
def beside(context, peer_of, *flags):
    """(daemon, peer): the peer has the small tree, with which it is fastest."""
    with sandboxes.root_folder("burrow-bench-", "/var/tmp") as place:
        sandboxes.make_tree(place / "tree")
        with control_plane.burrow(context, *flags) as burrow:
            yield burrow, peer_of(context, place / "tree")


def sums(done: dict, *steps) -> list:
    return [sum(times) for times in zip(*(done[f"{step}_us"] for step in steps))]


# --- create and exec --------------------------------------------------------------------------


def cold(context) -> Comparison:
    """From the call to the answer of the first /bin/true; it is destroyed before the next."""
    steps = ("create", "exec", "destroy")
    with beside(context, sandboxes.bubblewrap, "--stock", 0) as (burrow, peer):
        all_times = {step: [] for step in steps}

        def ours():
            if context.self_check:
                return peer.times_us(COLD_TURN)
            done = burrow.each(COLD_TURN, *steps)
            for step in steps:
                all_times[step] += done[f"{step}_us"]
            return sums(done, "create", "exec")

        burrow.each(COLD_TURN, *steps)
        peer.times_us(COLD_TURN)
        comparison = take_turns(2 * context.rounds, ours, lambda: peer.times_us(COLD_TURN))
    comparison.extra["steps_us"] = {step: spread_of(times)
                                    for step, times in all_times.items() if times}
    return comparison


def await_stock(burrow):
    deadline = time.monotonic() + STOCK_SECONDS
    while burrow.call("GET", "/v1/pool/stats")["warm"] < sandboxes.STOCK_DEFAULT:
        if time.monotonic() > deadline:
            raise RowFailed("the stock does not fill")
        time.sleep(0.02)


def pooled(context) -> Comparison:
    """An open loop: those that wait for each other are counted with their waiting."""
    with beside(context, sandboxes.bubblewrap) as (burrow, peer):
        def ours():
            if context.self_check:
                return peer.times_us(COLD_TURN)
            await_stock(burrow)
            return sums(burrow.each(POOLED_COUNT, "create", "exec", "destroy",
                                    at_once=POOLED_COUNT, rate=POOLED_RATE), "create", "exec")

        return take_turns(max(1, context.rounds // 2) + 1, ours,
                          lambda: peer.times_us(COLD_TURN))


def crowd(context) -> Comparison:
    """All creates are sent at once; a sample is the time until the last is answered, by their
    number. They are destroyed before the next turn."""
    with beside(context, sandboxes.bubblewrap) as (burrow, peer):
        def ours():
            if context.self_check:
                return [median(peer.times_us(COLD_TURN))]
            await_stock(burrow)
            first = burrow.take_names(CROWD)
            done = burrow.each(CROWD, "create", at_once=CROWD, first=first)
            burrow.each(CROWD, "destroy", at_once=SIDE_BY_SIDE, first=first)
            return [done["wall_us"] / CROWD]

        ours()
        return take_turns(context.rounds, ours, lambda: peer.times_us(COLD_TURN))


def execute(context) -> Comparison:
    with beside(context, lambda same, _: sandboxes.plain(same)) as (burrow, peer):
        number = burrow.take_names(1)
        burrow.each(1, "create", first=number)

        def ours():
            if context.self_check:
                return peer.times_us(EXEC_TURN)
            return burrow.one(number, EXEC_TURN, "exec")

        ours()
        return take_turns(2 * context.rounds, ours, lambda: peer.times_us(EXEC_TURN))


# --- previews ---------------------------------------------------------------------------------


class Preview:
    """An exposed port of a sandbox as a server; its work is that of the daemon."""

    def __init__(self, burrow, number: int, cpu: int):
        self._burrow = burrow
        self.target = burrow.target
        box = f"{control_plane.SANDBOXES}/bench-{number}"
        burrow.each(1, "create", first=number)
        burrow.call("POST", f"{box}/exec", {
            "command": f"mkdir -p /workspace/www/file && head -c {SMALL} /dev/zero > "
                       f"/workspace/www/file/{SMALL} && cat > /workspace/nginx.conf",
            "stdin": NGINX_INSIDE})
        burrow.call("POST", f"{box}/processes",
                    {"command": f"exec taskset -c {cpu} /usr/sbin/nginx -e stderr -c "
                                "/workspace/nginx.conf"})
        self.host = burrow.call("POST", f"{box}/ports", {"port": PREVIEW_PORT})["url"].split("/")[2]

    def cpu_seconds(self) -> float:
        return self._burrow.cpu_seconds()


def preview(context) -> Comparison:
    """The server is nginx on both sides; ours has it in the sandbox, the peer beside it."""
    def work(server, seconds):
        host = getattr(server, "host", None)
        return wrk.run(context, server, f"/file/{SMALL}", seconds,
                       headers=(f"Host: {host}",) if host else ())

    def nginx(files):
        return context.nginx(locations=PROXY_LOCATION, http=PROXY_HTTP.format(target=files.target))

    with upstream(context) as files, nginx(files) as peer:
        if context.self_check:
            with nginx(files) as second:
                return context.rates(second, peer, work)
        with control_plane.burrow(context, "--stock", 0) as burrow:
            process.pin(burrow.daemon_pid(), context.server_cpu)
            ours = Preview(burrow, burrow.take_names(1), context.upstream_cpu)
            await_answer(context, ours, work)
            return context.rates(ours, peer, work)


def await_answer(context, server, work):
    """nginx in the sandbox needs a moment; until then there are 502s."""
    deadline = time.monotonic() + STOCK_SECONDS
    while True:
        try:
            return work(server, 1)
        except RowFailed:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


# --- many -------------------------------------------------------------------------------------


def idle(context) -> Comparison:
    """What the host has less for others than before the service was started: sandboxes, stock,
    launcher, daemon, and what the kernel keeps for them."""
    count = IDLE_COUNT if context.rounds > 3 else IDLE_COUNT // 5
    before = memory()
    with control_plane.burrow(context) as burrow:
        burrow.each(count, "create", at_once=SIDE_BY_SIDE)
        after = memory()
        daemon = process.resident_bytes(burrow.daemon_pid())
    used = (before["MemAvailable"] - after["MemAvailable"]) * KIBIBYTE
    if used <= daemon:
        raise RowFailed("others on this machine freed memory meanwhile: run it again")
    parts = {name: round((after[name] - before[name]) * KIBIBYTE / MEGABYTE) for name in PARTS}
    return Comparison([used / MEGABYTE * IDLE_COUNT / count],
                      extra={"sandboxes": count, "parts_mb": parts,
                             "daemon_mb": round(daemon / MEGABYTE, 1)})


def check_asleep(burrow, count: int):
    """So many, by the daemon's word: none of them was lost or broke."""
    found, cursor = 0, ""
    while cursor is not None:
        page = burrow.call("GET", f"{control_plane.SANDBOXES}?status=hibernated&limit=1000{cursor}")
        found += len(page["sandboxes"])
        cursor = f"&cursor={page['nextCursor']}" if page["nextCursor"] else None
    if found != count:
        raise RowFailed(f"{found} of {count} sandboxes are asleep")


def await_sleep(burrow):
    """Until no sandbox has a process any more."""
    deadline = time.monotonic() + SLEEP_SECONDS
    while True:
        page = burrow.call("GET", f"{control_plane.SANDBOXES}?status=frozen&limit=1")
        if not page["sandboxes"] and not burrow.running_groups():
            break
        if time.monotonic() > deadline:
            raise RowFailed("sandboxes do not fall asleep")
        time.sleep(0.1)


def read_times(burrow, number: int, rounds: int) -> dict:
    return {step: [median(burrow.one(number, READ_TURN, step)) / MILLISECOND_US
                   for _ in range(rounds)] for step in ("list", "get")}


@lru_cache(maxsize=None)
def sleepers_run(context) -> dict:
    """Real sandboxes, made and put to sleep through the API; after a second their processes are
    ended, and what is left is a disk and a row. Then: the daemon's memory beside that with a page
    full of them, and how long reading takes with both. At last what a restart makes of them."""
    count = SLEEPERS if context.rounds > 3 else QUICK_SLEEPERS
    with control_plane.burrow(context, "--stock", 0, "--hibernate-after", "1s") as burrow:
        def sleep(first: int, last: int):
            burrow.each(last - first, "create", "sleep", at_once=SIDE_BY_SIDE // 2, first=first)
            await_sleep(burrow)
            resident = process.resident_bytes(burrow.daemon_pid())
            check_asleep(burrow, last)
            return resident, read_times(burrow, last // 2, context.rounds)

        begin = time.monotonic()
        few, few_times = sleep(0, PAGE)
        many, many_times = sleep(PAGE, count)
        made = time.monotonic() - begin
        begin = time.monotonic()
        burrow.stop()
        burrow.start()
        again = time.monotonic() - begin
        restarted = process.resident_bytes(burrow.daemon_pid())
        check_asleep(burrow, count)
    return {"count": count, "grown": (many - few) / (count - PAGE) * SLEEPERS / MEGABYTE,
            "few": few_times, "many": many_times,
            "extra": {"sandboxes": count, "made_seconds": round(made, 1),
                      "restart_seconds": round(again, 2),
                      "daemon_mb": [round(each / MEGABYTE, 1) for each in (few, many, restarted)]}}


def sleepers_memory(context) -> Comparison:
    done = sleepers_run(context)
    return Comparison([done["grown"]], extra=done["extra"])


def sleepers_read(step: str):
    def measure(context) -> Comparison:
        done = sleepers_run(context)
        return Comparison(done["many"][step], done["few"][step], paired=False,
                          extra={"sandboxes": done["count"]})

    return measure


A_PAGE = "the same with 100 asleep"

ROWS = [
    Row("api_cold", "ms", LESS, "bubblewrap, no limits", Goal("ratio", "<=", 2.0), cold),
    Row("api_pooled", "ms", LESS, "bubblewrap, no limits", Goal("ratio", "<=", 0.8), pooled),
    Row("api_exec", "ms", LESS, "fork and exec of it on the host", Goal("ratio", "<=", 1.7),
        execute),
    Row("api_crowd", "ms each, 100 at once", LESS, "bubblewrap, no limits",
        Goal("ratio", "<=", 0.8), crowd),
    Row("preview_1kb", "requests/CPU-s", MORE, "nginx proxy_pass, keep-alive upstream",
        Goal("ratio", ">=", 0.7), preview),
    Row("api_idle", "MB, 1,000 and the daemon", LESS, None, Goal("p50", "<=", 1600), idle),
    Row("api_asleep", "MB, 10,000 asleep", LESS, None, Goal("p50", "<=", 50), sleepers_memory),
    Row("api_asleep_list", "ms, a page of 100", LESS, A_PAGE, None, sleepers_read("list")),
    Row("api_asleep_get", "ms", LESS, A_PAGE, None, sleepers_read("get")),
]
