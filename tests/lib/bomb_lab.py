"""A WallLab whose sandboxes are measured and have a network: for attacks on what is shared.

    with BombLab("--memory", "64000000") as lab:
        box = lab.start([])
        lab.stats(box)["oom_kills_work"]         # as the launcher's statistics say
        lab.set_memory(box, 96 << 20)
    with BombLab("--network") as lab:            # tests/support/wall_world.h
        address = lab.join(box)
        lab.open(["router_rules"])               # of the network; the others are closed again
        lab.set_policy(box, "only_listed", "allow:25.0.113.0/24:tcp:80-80")
    with BombLab(*SMALL) as lab:
        lab.start([]).run(FORK_BOMB, timeoutMs=4000)
"""

import contextlib
import json
import time

from tap import equal
from wall_lab import PLACE, WallLab

ATTACK_RESOURCES = f"{PLACE}/attack_resources"
ATTACK_NETWORK = f"{PLACE}/attack_network"

MEGABYTE = 1 << 20
# Flags for a sandbox that bombs fill quickly.
SMALL = ("--memory", str(96 * MEGABYTE), "--disk", str(48 * MEGABYTE), "--pids", "256",
         "--cpu", "1500", "--guard-cpu", "2000")

# Commands that make trouble until they are ended.
FORK_BOMB = f"exec {ATTACK_RESOURCES} bomb 1 hold"
MEMORY_BOMB = "while :; do tail /dev/zero & tail /dev/zero; done"
CPU_BOMB = f"exec {ATTACK_RESOURCES} burners 64 hold"
FILL_DISK = ("i=0; while :; do for folder in /workspace /tmp; do cat /dev/zero >$folder/$((i % 50));"
             " done; : $((i += 1)); done")
FLOOD = f"exec yes {'x' * 1000}"


def read_at(connection, rate, seconds):
    """Read as fast as `rate` (bytes per second) allows; the rate that it became."""
    buffer, total, started = memoryview(bytearray(MEGABYTE)), 0, time.monotonic()
    while (passed := time.monotonic() - started) < seconds:
        if total > rate * passed:
            time.sleep(total / rate - passed)
        total += connection.socket.recv_into(buffer)
    return total / passed


@contextlib.contextmanager
def held(box, name, goal):
    """Everything it could take, held while the body runs. Yields what it said."""
    with box.open_stream(f"exec {ATTACK_RESOURCES} {name} {goal} hold") as connection:
        said = []

        for chunk in connection.chunks():
            for frame in chunk.split(b"\n\n"):
                if frame.strip():
                    said.append(json.loads(frame.removeprefix(b"data: ")).get("data", ""))
            if name in "".join(said):
                break
        yield "".join(said).strip()
        # Leaving ends the connection, and with it the command.


def expect_answers(box, count):
    """So many of the agent itself, while something goes on that would else be waited for."""
    for _ in range(count):
        equal(box.get("/api/ping").status, 200, "ping")


class BombLab(WallLab):
    def stats(self, box):
        return self._ask_well("stats", box.id)

    def set_memory(self, box, size):
        self._ask_well("memory", box.id, str(size))

    def join(self, box):
        return self._ask_well("join", box.id)["address"]

    def open(self, walls):
        self._ask_well("open", ",".join(walls) or "-")

    def set_policy(self, box, *rules):
        self._ask_well("policy", box.id, *rules)

    def router_ipv6(self, box):
        return self._ask_well("router_ipv6", box.id)["address"]
