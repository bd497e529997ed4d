#!/usr/bin/python3
# timeout: 3600
"""Rounds of kill -9 at random moments: of the daemon, the launcher, or both, while sandboxes count,
run commands, are made, stopped, started, frozen and destroyed. Nothing of it may be lost, wrong, or
left.

    BURROW_FULL=1        20 rounds with 50 sandboxes instead of 3 with 12
    BURROW_SEED=N|random  other rounds than the usual (their number is printed)
    BURROW_ROUNDS=N BURROW_SANDBOXES=N
"""

import os
import random
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from collections import Counter  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402

from launcher import need_launcher  # noqa: E402
from outpost import cgroup, groups_of  # noqa: E402
from program import wait_until  # noqa: E402
from provider_demo import ProviderDemo, Refused, Unknown  # noqa: E402
from soak import FULL, SEED  # noqa: E402
from tap import equal, main, test  # noqa: E402

ROUNDS = int(os.environ.get("BURROW_ROUNDS", 20 if FULL else 3))
SANDBOXES = int(os.environ.get("BURROW_SANDBOXES", 50 if FULL else 12))
STOCK = 3
PORT = 7000
WORKERS = 6
BURSTS, BURST, BURST_SECONDS = 40 if FULL else 5, 8, 0.15
SETTLE_SECONDS = 30.0
SILENCE_SECONDS = 0.5  # a counter looks at its port five times a second
KINDS = (("daemon",), ("launcher",), ("launcher", "daemon"), ("daemon", "launcher"))
ID_LETTERS, ID_LAST = "abcdefghijklmnopqrstuvwxyz234567", "aeimquy4"

# Counts for ever, and says on a port who it is and how far it got.
COUNTER = f"""
import os, socket, time
listener = socket.create_server(("127.0.0.1", {PORT}))
listener.settimeout(0.2)
token, count = os.urandom(8).hex(), 0
while True:
    count += 1
    try:
        client, _ = listener.accept()
        client.sendall(f"{{token}} {{os.getpid()}} {{count}}".encode())
        client.close()
    except TimeoutError:
        pass
"""


def new_id(rng):
    return "".join(rng.choice(ID_LETTERS) for _ in range(25)) + rng.choice(ID_LAST)


class Counting:
    """One of the sandboxes that live through all rounds."""

    def __init__(self, demo, sandbox):
        self.demo, self.id = demo, sandbox
        self.process = demo.first_process(sandbox)
        self.range = demo.first_id(sandbox)
        self.frozen = False
        script = COUNTER.replace("'", "'\\''")
        answer = demo.run(sandbox, f"setsid python3 -I -S -c '{script}' >/tmp/counter 2>&1 &")
        equal(answer["exitCode"], 0, "start of a counter")
        self.token, self.pid, self.count = wait_until(self.listen_or_none, "a counter")

    def listen(self):
        token, pid, count = self.demo.hear(self.id, PORT).split()
        return token, pid, int(count)

    def listen_or_none(self):
        try:
            return self.listen()
        except Refused:
            return None

    def check(self):
        """It is the same process, which went on, and its port connects."""
        equal(self.demo.first_process(self.id), self.process, f"PID 1 of {self.id}")
        equal(self.demo.first_id(self.id), self.range, f"ids of {self.id}")
        if self.frozen:
            self.check_silence()
            self.demo.do(self.id, "thaw")
        token, pid, count = self.listen()
        if self.frozen:
            self.demo.do(self.id, "freeze")
        equal((token, pid), (self.token, self.pid), f"counter of {self.id}")
        if count <= self.count:
            raise AssertionError(f"{self.id} counted from {self.count} to {count}")
        self.count = count

    def check_silence(self):
        """The kernel takes the connection, but nobody says anything."""
        try:
            said = self.demo.hear(self.id, PORT, SILENCE_SECONDS)
        except Unknown:
            return
        raise AssertionError(f"{self.id} is frozen and says {said}")


class Round:
    """What is under way while the kill comes, and what is known of it afterwards."""

    def __init__(self, demo, counting, rng):
        self.demo, self.counting, self.rng = demo, counting, rng
        quarter = len(counting) // 4
        self.freezable, self.steady = counting[:quarter], counting[quarter:]
        self.lock = threading.Lock()
        self.problems = []
        self.others = {}  # id: what became of it: "here", "gone", or "maybe"
        self.killed = set()  # ids whose PID 1 was killed from outside
        self.commands = Counter()
        self.over = threading.Event()

    def problem(self, text):
        with self.lock:
            self.problems.append(text)

    # --- work --------------------------------------------------------------------------------

    def run_commands(self, rng):
        """Statuses are never 0: a 0 would be an invention."""
        while not self.over.is_set():
            one = rng.choice(self.steady)
            status, pause = rng.randrange(1, 120), rng.choice((0, 0.05, 0.3, 1.0))
            try:
                answer = self.demo.run(one.id, f"sleep {pause}; exit {status}")
                self.commands["right"] += 1
                if answer["exitCode"] != status:
                    self.problem(f"a command ended with {status}, told was {answer}")
            except Unknown:
                self.commands["unknown"] += 1
                self.over.wait(0.02)
            except Refused as refused:
                # The connection to the agent, or the daemon's to us, broke off.
                if refused.code not in ("upstream_failed", "unavailable", "cancelled"):
                    self.problem(f"a command was refused: {refused}")

    def make_and_destroy(self, rng):
        """Also halfway: what breaks off is settled after the kill."""
        while not self.over.is_set():
            name = new_id(rng)
            network = rng.choice(("none", "none", "nat"))
            steps = rng.choice(([], ["stop"], ["stop", "start"], ["freeze"], ["kill"]))
            try:
                self.others[name] = "maybe"
                self.demo.create(name, network=network)
                self.others[name] = "here"
                for step in steps:
                    self.do_step(name, step)
                if rng.random() < 0.7:
                    self.others[name] = "maybe"
                    self.demo.destroy(name)
                    self.others[name] = "gone"
            except Unknown:
                self.over.wait(0.02)
            except Refused as refused:
                if refused.code not in ("unavailable", "cancelled"):
                    self.problem(f"{steps} of {name}: {refused}")
                self.others[name] = "maybe"

    def do_step(self, name, step):
        if step != "kill":
            self.demo.do(name, step)
            return
        self.killed.add(name)
        process = self.demo.first_process(name)
        if process:
            os.kill(process[0], signal.SIGKILL)

    def freeze_and_thaw(self, rng):
        while not self.over.is_set():
            one = rng.choice(self.freezable)
            verb = "thaw" if one.frozen else "freeze"
            try:
                if verb == "freeze":
                    one.frozen = True  # from now on nobody asks it anything
                self.demo.do(one.id, verb)
                if verb == "thaw":
                    one.frozen = False
            except (Unknown, Refused):
                pass  # looked at afterwards
            self.over.wait(rng.random() * 0.2)

    # --- the kill ----------------------------------------------------------------------------

    def strike(self, kind):
        workers = [threading.Thread(target=work, args=(random.Random(self.rng.random()),))
                   for work in (self.run_commands, self.run_commands, self.make_and_destroy,
                                self.make_and_destroy, self.freeze_and_thaw)]
        for worker in workers:
            worker.start()
        try:
            time.sleep(self.rng.random() * 1.2)
            self.demo.kill_hard(*kind)
            time.sleep(self.rng.random() * 0.3)
            if "launcher" in kind:
                self.demo.launch()
            self.demo.wait_until_ready()
            time.sleep(self.rng.random() * 0.2)
        finally:
            self.over.set()
            for worker in workers:
                worker.join()

    # --- afterwards --------------------------------------------------------------------------

    def check(self):
        equal(self.problems, [], "problems")
        states = self.demo.states()
        found = Counter(f"{fate}, is {states.get(name, 'not there')}"
                        for name, fate in self.others.items())
        print(f"#   commands: {dict(self.commands)}; sandboxes made: {dict(found)}; "
              f"frozen: {sum(states.get(one.id) == 'frozen' for one in self.counting)}", flush=True)
        for one in self.counting:
            equal(states.get(one.id) in ("running", "frozen"), True,
                  f"{one.id} is {states.get(one.id)}, which is one of those that stay")
            one.frozen = states[one.id] == "frozen"
            one.check()
        self.check_ranges(states)
        self.settle_others()
        self.check_exits()
        wait_until_none(self.demo.leftovers, "nothing is left of what is gone")

    def check_ranges(self, states):
        seen = {}
        for name, state in states.items():
            # One that was killed may be gone by now.
            if state not in ("running", "frozen") or name in self.killed:
                continue
            first, count = self.demo.first_id(name)
            equal(count, 65536, "ids of a sandbox")
            equal(first % 65536, 0, "first id")
            if first in seen:
                raise AssertionError(f"{name} and {seen[first]} have the same ids from {first}")
            seen[first] = name

    def settle_others(self):
        """Those that are there work, whole; then all of them go."""
        # One that was just being stopped is broken until it is.
        wait_until(lambda: "broken" not in self.demo.states().values(), "whole sandboxes",
                   SETTLE_SECONDS)
        states = self.demo.states()
        for name, state in self.others.items():
            if state == "gone" and name in states:
                raise AssertionError(f"{name} was destroyed and is {states[name]}")
            if state == "here" and name not in states:
                raise AssertionError(f"{name} was made and is gone; {self.demo.exits()}")
            if name in states and name not in self.killed:
                self.check_other(name, states[name])
            if name in states:
                self.destroy(name)

    def check_other(self, name, state):
        if state == "frozen":
            self.demo.do(name, "thaw")
        elif state == "stopped":
            self.demo.do(name, "start")
        else:
            equal(state, "running", f"state of {name}")
        equal(self.demo.run(name, "exit 7")["exitCode"], 7, f"status of a command in {name}")

    def destroy(self, name):
        def is_destroyed():
            try:
                self.demo.destroy(name)
            except Refused as refused:
                if refused.code == "conflict":
                    return False  # it is just being stopped
                if refused.code != "not_found":
                    raise
            return True
        wait_until(is_destroyed, f"{name} is destroyed")

    def check_exits(self):
        """Each is told at most once, and as what it was."""
        exits = self.demo.exits()
        told = [name for name, _, _ in exits]
        equal(len(told), len(set(told)), f"exits told twice: {sorted(told)}")
        for name, kind, value in exits:
            if (kind, value) not in (("signal", "9"), ("unknown", "0")):
                raise AssertionError(f"{name} ended by {kind} {value}")


def wait_until_none(look, what):
    """Until look() finds nothing; says what it found."""
    try:
        wait_until(lambda: not look(), what, SETTLE_SECONDS)
    except AssertionError as error:
        raise AssertionError(f"{error}: {look()}") from None


def kinds_of(rng):
    """All kinds, in turns that nobody knows before."""
    while True:
        yield from rng.sample(KINDS, len(KINDS))


def end_all(demo):
    """A daemon that wants no stock ends what is in it."""
    with ThreadPoolExecutor(WORKERS) as pool:
        list(pool.map(demo.destroy, demo.states()))
    demo.stop()
    demo.arguments[-1] = "0"
    demo.start()
    wait_until_none(lambda: {kind: ids for kind, ids in demo.traces().items() if ids},
                    "nothing is left on the host")


@test
def sandboxes_go_on_whatever_is_killed():
    need_launcher()
    print(f"# BURROW_SEED={SEED}: {ROUNDS} rounds with {SANDBOXES} sandboxes", flush=True)
    rng = random.Random(SEED)
    with ProviderDemo(stock=STOCK) as demo:
        try:
            networks = [rng.choice(("none", "none", "nat")) for _ in range(SANDBOXES)]
            with ThreadPoolExecutor(WORKERS) as pool:
                made = list(pool.map(lambda network: demo.create(network=network), networks))
                counting = list(pool.map(lambda name: Counting(demo, name), made))
            for number, kind in zip(range(ROUNDS), kinds_of(rng)):
                print(f"# round {number}: kill -9 of {' and '.join(kind)}", flush=True)
                this = Round(demo, counting, random.Random(f"{SEED} {number}"))
                this.strike(kind)
                this.check()
            end_all(demo)
        except BaseException:
            show_log(demo)
            raise


def show_log(demo):
    print("\n".join(f"# log: {line}" for line in demo.log().splitlines()[-60:]))


def burst(pool, call, names):
    """{name: whether it succeeded, or None: nobody knows} once the returned function is called."""
    def outcome(name):
        try:
            call(name)
            return True
        except Unknown:
            return None
        except Refused as refused:
            return None if refused.code in ("unavailable", "cancelled") else refused
    answers = {name: pool.submit(outcome, name) for name in names}
    return lambda: {name: answer.result() for name, answer in answers.items()}


def start_with_care(demo, rng):
    """The next launcher; sometimes that one is killed, too, while it still looks around."""
    if rng.random() < 0.4:
        try:
            demo.launch()
            time.sleep(rng.random() * 0.1)
        finally:
            demo.kill_hard("launcher")
    demo.start()


@test
def half_made_sandboxes_of_a_killed_launcher_are_taken_down():
    need_launcher()
    rng = random.Random(f"{SEED} makes")
    with ProviderDemo() as demo, ThreadPoolExecutor(BURST) as pool:
        try:
            for _ in range(BURSTS):
                names = [new_id(rng) for _ in range(BURST)]
                networks = {name: rng.choice(("none", "nat")) for name in names}
                answers = burst(pool, lambda name, networks=networks:
                                demo.create(name, network=networks[name]), names)
                time.sleep(rng.random() * BURST_SECONDS)
                demo.kill_hard("launcher")
                made = answers()
                start_with_care(demo, rng)
                states = demo.states()
                equal([name for name in names if made[name] and states.get(name) != "running"], [],
                      f"those that were made and do not run, in {made} and {states}")
                for name in states:
                    equal(demo.run(name, "exit 7")["exitCode"], 7, "status of a command")
                wait_until_none(demo.leftovers, "nothing is left of half a sandbox")
                for name in states:
                    demo.destroy(name)
            end_all(demo)
        except BaseException:
            show_log(demo)
            raise


@test
def what_a_killed_launcher_was_taking_down_is_taken_down_by_the_next():
    need_launcher()
    rng = random.Random(f"{SEED} ends")
    with ProviderDemo() as demo, ThreadPoolExecutor(BURST) as pool:
        try:
            for _ in range(BURSTS):
                names = list(pool.map(lambda _: demo.create(network=rng.choice(("none", "nat"))),
                                      range(BURST)))
                stays = set(rng.sample(names, BURST // 2))
                answers = burst(pool, lambda name, stays=stays:
                                demo.do(name, "stop") if name in stays else demo.destroy(name),
                                names)
                time.sleep(rng.random() * BURST_SECONDS)
                demo.kill_hard("launcher")
                ended = answers()
                start_with_care(demo, rng)
                equal([name for name in names if ended[name] not in (True, None)], [],
                      f"refusals in {ended}")
                states = demo.states()
                equal(stays - set(states), set(), f"disks that are lost, in {ended}")
                equal([name for name in names if name not in stays and ended[name]
                       and name in states], [], "those that were destroyed and are there")
                equal([name for name in stays if ended[name] and states[name] != "stopped"], [],
                      f"those that were stopped and are not, in {states}")
                wait_until_none(demo.leftovers, "nothing is left of what was destroyed")
                for name in states:
                    demo.destroy(name)
            end_all(demo)
        except BaseException:
            show_log(demo)
            raise


@test
def the_end_leaves_nothing():
    need_launcher()
    wait_until(lambda: not groups_of(cgroup()), "groups are gone")


main()
