#!/usr/bin/python3
"""A sandbox in trouble, asked every tenth of a second whether its agent is there: it always is.

# timeout: 600
"""

import concurrent.futures
import contextlib
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from agent import NO_SESSION
from bomb_lab import (ATTACK_RESOURCES, CPU_BOMB, FILL_DISK, FLOOD, FORK_BOMB, MEGABYTE, MEMORY_BOMB,
                      SMALL, BombLab, read_at)
from program import PATIENCE, SLOW, wait_until
from soak import FULL
from tap import equal, main, test
from wall_lab import slowly

EVERY_SECONDS = 0.1
TROUBLE_MS = round((4000 if FULL else 2000) * min(SLOW, 5))
PINGS_MIN = 3  # of twenty in that time; an agent that waits for the trouble to end has one
OUTPUT_RATE = 100 * MEGABYTE  # bytes per second
OUTPUT_MIN = 8 * MEGABYTE  # in all, on a machine that others use too
SESSIONS, COMMANDS = (500, 200) if FULL else (100, 50)
MANY = ("--memory", str(4 << 30), "--pids", "2048", "--cpu", "1500", "--guard-memory",
        str(5 << 30), "--guard-pids", "4096", "--guard-cpu", "2000", "--timeout", slowly(180))
CALLERS = 16
KILLED = 128 + 9
STEADY_LOOKS = 20


def patiently(call, *arguments, **named):
    """Where clients stand in a queue, one that may not block is told EAGAIN: it asks again."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return call(*arguments, **named)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class Pinger(threading.Thread):
    """Asks for a sign of life again and again, on a new connection each time."""

    def __init__(self, box):
        super().__init__(daemon=True)
        self.box, self.over = box, threading.Event()
        self.seconds, self.failures = [], []

    def run(self):
        while not self.over.wait(EVERY_SECONDS):
            started = time.monotonic()
            try:
                response = patiently(self.box.get, "/api/ping", timeout=PATIENCE)
                equal(response.status, 200, "status")
            except Exception as error:  # pylint: disable=broad-except
                self.failures.append(f"after {time.monotonic() - started:.2f} s: {error!r}")
            self.seconds.append(time.monotonic() - started)


@contextlib.contextmanager
def answering(box, what):
    """The agent answers all through the body."""
    pinger = Pinger(box)
    pinger.start()
    try:
        yield
    finally:
        pinger.over.set()
        pinger.join()
    slowest, median = max(pinger.seconds), sorted(pinger.seconds)[len(pinger.seconds) // 2]
    print(f"# {what}: {len(pinger.seconds)} pings, half of them within {median * 1000:.1f} ms, "
          f"the slowest {slowest * 1000:.1f} ms")
    equal(pinger.failures, [], f"pings beside {what}")
    equal(len(pinger.seconds) >= PINGS_MIN, True, f"{len(pinger.seconds)} pings")


def said(box, session, command):
    """What a command says, or None while none can be run."""
    response = box.post("/api/execute", {"command": command, "sessionId": session})
    return json.loads(response.body).get("stdout") if response.status == 200 else None


def expect_life(box):
    """Commands run, with a session and without."""
    wait_until(lambda: said(box, NO_SESSION, "echo on") == "on\n", "commands run again")
    wait_until(lambda: said(box, "life", "echo on") == "on", "and those of sessions")
    answer = box.run("echo alive; exit 7")
    equal((answer["stdout"], answer["exitCode"]), ("alive\n", 7), "a command afterwards")


def processes_in(lab, box):
    """How many there are when no command runs: those of a moment ago may not be gone yet."""
    counts = []

    def is_steady():
        counts.append(lab.stats(box)["pids"])
        return len(counts) > STEADY_LOOKS and len(set(counts[-STEADY_LOOKS:])) == 1
    wait_until(is_steady, "the number of processes is steady")
    return counts[-1]


def expect_processes(lab, box, count):
    wait_until(lambda: lab.stats(box)["pids"] <= count, f"at most {count} processes are left")


def trouble(box, what, command):
    """Let a command make trouble for its time, while the agent is asked; its answer."""
    expect_life(box)
    with answering(box, what):
        answer = box.run(command, timeoutMs=TROUBLE_MS)
        print(f"# {what}: exit status {answer['exitCode']} {answer['stderr'][-200:]!r}")
    return answer


# --- bombs ----------------------------------------------------------------------------------------


@test
def beside_a_fork_bomb():
    # With memory for all that its limit of processes lets be: it is that limit that is to be met.
    with BombLab(*SMALL, "--memory", str(512 * MEGABYTE)) as lab:
        box = lab.start([])
        expect_life(box)
        before = processes_in(lab, box)
        for name, bomb in (("a fork bomb", FORK_BOMB),
                           ("one of a shell", "b() { b | b & }; b; sleep 600")):
            refused = lab.stats(box)["pids_refused"]
            equal(trouble(box, name, bomb)["exitCode"], 124, "it was ended")
            equal(lab.stats(box)["pids_refused"] > refused, True, f"{name} met the wall")
            expect_processes(lab, box, before)
            expect_life(box)


@test
def beside_a_memory_bomb():
    with BombLab(*SMALL) as lab:
        box = lab.start([])
        answer = trouble(box, "a memory bomb", MEMORY_BOMB)
        equal(answer["exitCode"] in (124, KILLED), True, f"it was ended: {answer}")
        trouble(box, "a storm of memory bombs",
                f"while :; do for i in 1 2 3 4; do {ATTACK_RESOURCES} storm 12 & done; wait; done")
        expect_life(box)
        stats = lab.stats(box)
        equal(stats.get("oom_kills_work", 1) > 0, True, "victims")
        equal(stats.get("oom_kills_agent", 0), 0, "the agent was never one")


@test
def beside_a_cpu_bomb():
    with BombLab(*SMALL) as lab:
        box = lab.start([])
        answer = trouble(box, "64 burning processes", CPU_BOMB)
        equal(answer["exitCode"], 124, "it was ended")
        expect_life(box)


@test
def beside_a_full_disk():
    with BombLab(*SMALL) as lab:
        box = lab.start([])
        answer = trouble(box, "a disk that fills", FILL_DISK)
        equal("No space left" in answer["stderr"] or "quota exceeded" in answer["stderr"], True,
              f"it is full: {answer['stderr'][-300:]}")
        expect_life(box)  # as long as it is full
        equal(box.run("cat /dev/zero >/workspace/more")["exitCode"], 1, "it is still full")
        equal(box.run("rm -rf /workspace/* /tmp/*")["exitCode"], 0, "it can be emptied")
        expect_life(box)


# --- output ---------------------------------------------------------------------------------------


@test
def beside_a_hundred_megabytes_of_output_per_second():
    with BombLab(*SMALL) as lab:
        box = lab.start([])
        expect_life(box)
        with answering(box, "a flood of output"), box.open_stream(FLOOD) as connection:
            rate = read_at(connection, OUTPUT_RATE, TROUBLE_MS / 1000)
        print(f"# {rate / MEGABYTE:.0f} MB/s")
        equal(rate * TROUBLE_MS / 1000 >= OUTPUT_MIN, True, f"{rate} bytes per second")
        with answering(box, "output that nobody reads"), box.open_stream(FLOOD):
            time.sleep(TROUBLE_MS / 1000)
        expect_life(box)


# --- sessions -------------------------------------------------------------------------------------


def run_side_by_side(box, count):
    """So many commands at a time, without a session; all answers are right."""
    with concurrent.futures.ThreadPoolExecutor(count) as callers:
        answers = list(callers.map(lambda number: patiently(
            box.run, f"sleep 0.5; echo {number}; exit {number}"), range(count)))
    equal([(answer["stdout"], answer["exitCode"]) for answer in answers],
          [(f"{number}\n", number) for number in range(count)], "answers")


@test
def beside_many_sessions():
    names = [f"s{number}" for number in range(SESSIONS)]
    with BombLab(*MANY) as lab:
        box = lab.start([])
        expect_life(box)
        before = processes_in(lab, box)
        with answering(box, f"{SESSIONS} sessions and {COMMANDS} commands"), \
                concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
            def all_of(command):
                return list(callers.map(lambda name: box.run(command.format(name), sessionId=name),
                                        names))
            all_of("X={}")
            equal(lab.stats(box)["pids"] >= before + SESSIONS, True, "a shell each")
            equal([answer["stdout"] for answer in all_of("echo $X")], names, "what they say")
            run_side_by_side(box, COMMANDS)
            list(callers.map(lambda name: box.post("/api/session/delete", {"sessionId": name}),
                             names))
        expect_processes(lab, box, before)
        expect_life(box)


main()
