#!/usr/bin/python3
# timeout: 3600
"""Many sandboxes: each with a file watch, many alive at once, and many that came and went without
leaving anything behind.

    BURROW_FULL=1        300 watches, 1,000 alive, 3,000 made and destroyed, instead of a part of it
"""

import contextlib
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from concurrent.futures import ThreadPoolExecutor  # noqa: E402

from host_mounts import pool_store  # noqa: E402
from launcher import children, need_launcher, status_of  # noqa: E402
from program import wait_until  # noqa: E402
from provider_demo import ProviderDemo, Refused  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, main, test  # noqa: E402

WATCHES = 300 if FULL else 30
ALIVE = 1000 if FULL else 60
MADE = 3000 if FULL else 100
WARM_UP = 100 if FULL else 40
WORKERS = 4
SETTLE_SECONDS = 60.0
MEGABYTE = 1 << 20

# What may be left after MADE sandboxes: noise of a machine that does other things, too, and far
# less than one page per sandbox where it counts.
LAUNCHER_GROWTH = 1 * MEGABYTE
DISK_GROWTH = 32 * MEGABYTE
MEMORY_GROWTH = 100 * MEGABYTE
# Those kept for the next (NETWORK_SPARES_MAX), the model of a new one, and each process's way home.
NETWORKS = 256 + 1 + 3

# Waits for the kernel to tell of a change, then says which file it was.
WATCHER = """
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
watch = libc.inotify_init1(0)
os.mkdir("/workspace/watched")
if watch < 0 or libc.inotify_add_watch(watch, b"/workspace/watched", 0x100) < 0:  # IN_CREATE
    raise OSError(ctypes.get_errno(), "no watch")
print("watching", flush=True)
event = os.read(watch, 4096)
print(event[16:].rstrip(bytes(1)).decode(), flush=True)
"""
WATCH = f"setsid python3 -I -S -c '{WATCHER}' > /tmp/seen 2>&1 &"


def in_parallel(call, items):
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(call, items))


def create(demo, **wanted):
    """One more, also when taking down lags behind for a moment."""
    def made():
        try:
            return demo.create(**wanted)
        except Refused as refused:
            if refused.code != "unavailable":
                raise
            return None
    return wait_until(made, "a sandbox", SETTLE_SECONDS)


def status_of_command(demo, name, command):
    return demo.run(name, command)["exitCode"]


def end(demo):
    """Every sandbox goes, and with it all that there was of it."""
    in_parallel(demo.destroy, demo.states())
    def left():
        return {kind: len(ids) for kind, ids in demo.traces().items() if ids}
    try:
        wait_until(lambda: not left(), "nothing is left", SETTLE_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}: {left()}") from None


@test
def every_sandbox_has_its_file_watch_and_gets_its_event():
    need_launcher()
    with ProviderDemo(flags=("--sandboxes", str(WATCHES))) as demo:
        names = in_parallel(lambda _: create(demo), range(WATCHES))
        equal(set(in_parallel(lambda name: status_of_command(demo, name, WATCH), names)), {0},
              "statuses of starting to watch")

        def wait_for(name, expected):
            """Until the watcher said so many lines."""
            def has_said():
                said = demo.run(name, "cat /tmp/seen")["stdout"].splitlines()
                if said != expected[: len(said)]:
                    raise AssertionError(f"a watcher said {said}")
                return said == expected
            wait_until(has_said, f"a watcher in {name} to say {expected}", SETTLE_SECONDS)
        in_parallel(lambda name: wait_for(name, ["watching"]), names)
        # All of them watch now, at once.
        equal(set(in_parallel(lambda name: status_of_command(
            demo, name, f"touch /workspace/watched/{name}"), names)), {0}, "statuses of changing")
        in_parallel(lambda name: wait_for(name, ["watching", name]), names)
        end(demo)


@test
def all_that_are_alive_at_once_answer():
    need_launcher()
    with ProviderDemo(pool_size="4G", flags=("--sandboxes", str(ALIVE))) as demo:
        before = available()
        started = time.monotonic()
        names = in_parallel(lambda _: create(demo), range(ALIVE))
        made = time.monotonic() - started
        equal(len(set(names)), ALIVE, "sandboxes")
        memory = before - available()
        print(f"# {ALIVE} made in {made:.1f} s, {memory // ALIVE // 1024} kB of memory each")
        answers = in_parallel(lambda name: demo.run(name, "echo $((6 * 7)); exit 5"), names)
        equal({(answer["exitCode"], answer["stdout"]) for answer in answers}, {(5, "42\n")},
              "answers")
        equal(len({demo.first_id(name) for name in names}), ALIVE, "ranges of ids")
        equal(set(demo.states().values()), {"running"}, "states")
        # A daemon that starts anew takes all of them over.
        demo.kill_hard("daemon")
        demo.wait_until_ready()
        equal(len(demo.states()), ALIVE, "sandboxes after a restart")
        equal(set(demo.states().values()), {"running"}, "states after a restart")
        equal(set(in_parallel(lambda name: status_of_command(demo, name, "exit 6"), names)), {6},
              "statuses after a restart")
        end(demo)


# --- what many leave ---------------------------------------------------------------------------


def available():
    """Bytes of memory that programs could have."""
    with open("/proc/meminfo", encoding="ascii") as file:
        fields = dict(line.split(":") for line in file)
    return int(fields["MemAvailable"].split()[0]) * 1024


class Footprint:
    """What the launcher and its pool take, now."""

    def __init__(self, demo):
        store = pool_store(demo.data)
        subprocess.run(["sync", "--file-system", store], check=True)
        pool = os.statvfs(store)
        janitor = [pid for pid in children(demo.pid) if pid != demo.daemon_pid()]
        self.disk = (pool.f_blocks - pool.f_bfree) * pool.f_frsize
        self.launcher = sum(resident(pid) for pid in [demo.pid, *janitor])
        opened = [link for pid in [demo.pid, *janitor] for link in descriptors(pid)]
        self.networks = sum(link.startswith("net:") for link in opened)
        self.descriptors = len(opened) - self.networks
        self.memory = available()

    def __str__(self):
        return (f"launcher {self.launcher >> 10} kB with {self.descriptors} descriptors "
                f"and {self.networks} networks, "
                f"{self.disk >> 10} kB on disk, {self.memory >> 20} MB of memory available")

    def has_grown(self, before):
        """In which respect, or None."""
        grown = {
            "descriptors": (self.descriptors - before.descriptors, 0),
            "networks": (self.networks, NETWORKS),
            "memory of the launcher": (self.launcher - before.launcher, LAUNCHER_GROWTH),
            "disk": (self.disk - before.disk, DISK_GROWTH),
        }
        if FULL:  # which others use, too
            grown["memory of the machine"] = (before.memory - self.memory, MEMORY_GROWTH)
        return {what: by for what, (by, most) in grown.items() if by > most}


def descriptors(pid):
    """What each of them is. One that is closed meanwhile is none."""
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
    return found


def resident(pid):
    return int(status_of(pid)["VmRSS"].split()[0]) * 1024


def make_and_destroy(demo, count):
    def one(number):
        name = create(demo, network="nat" if number % 8 == 0 else "none")
        equal(demo.run(name, "echo x > /workspace/file; exit 4")["exitCode"], 4, "status")
        demo.destroy(name)
    in_parallel(one, range(count))
    end(demo)


@test
def those_that_came_and_went_leave_memory_and_disk_where_they_were():
    need_launcher()
    with ProviderDemo() as demo:
        make_and_destroy(demo, WARM_UP)
        before = Footprint(demo)
        started = time.monotonic()
        make_and_destroy(demo, MADE)
        seconds = time.monotonic() - started
        print(f"# before: {before}\n# after:  {Footprint(demo)}\n"
              f"# {MADE} made, used and destroyed in {seconds:.1f} s")
        try:
            wait_until(lambda: not Footprint(demo).has_grown(before), "what was there before",
                       SETTLE_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}: {Footprint(demo).has_grown(before)}") from None


main()
