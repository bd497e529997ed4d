#!/usr/bin/python3
# timeout: 5400
"""Nothing acknowledged is lost: rounds of kill -9 of the daemon, the launcher or both, while clients
work with the API and write down what they were told. Afterwards the ledger is held against what is
there. The same of the daemon alone, while another user attacks what all share (`burrow attack`).

    BURROW_FULL=1        200 rounds instead of 6, and 40 under every attack instead of 3 under some
    BURROW_SEED=N|random  other rounds than the usual (their number is printed)
    BURROW_ROUNDS=N
"""

import http.client
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from collections import Counter  # noqa: E402

from control_plane import NATIVE, ControlPlane, Refused  # noqa: E402
from launcher import need_launcher  # noqa: E402
from outpost import cgroup, groups_of  # noqa: E402
from program import clean_environment, program, wait_until  # noqa: E402
from soak import FULL, SEED  # noqa: E402
from tap import equal, main, test  # noqa: E402

ROUNDS = int(os.environ.get("BURROW_ROUNDS", 200 if FULL else 6))
ATTACKED_ROUNDS = int(os.environ.get("BURROW_ROUNDS", 40 if FULL else 3))
# Those that make rows, jobs and disks, which is where something could be lost.
SOME_ATTACKS = ("create_and_destroy", "snapshots", "backups", "deliveries", "exec_storm", "bucket_bytes")
CLIENTS = 4
BOXES_EACH = 4  # at most, per client
START_SECONDS = 60.0
CALL_SECONDS = 60.0
KINDS = (("daemon",), ("launcher",), ("launcher", "daemon"), ("daemon", "launcher"))
# Who answers so has not done it, or nobody knows: the ledger says "maybe".
UNSURE = (499, 500, 502, 503, 504)


class Lost(Exception):
    """The answer did not come: what was asked for may have happened."""


class Idle(Exception):
    """There is nothing to do that with."""


class Box:
    """What a client was told about one sandbox."""

    def __init__(self, name):
        self.name, self.id = name, None
        self.fate = "maybe"  # here, gone, maybe
        self.is_stopped = False  # perhaps: then nothing can be asked of it
        self.labels = {}  # name: {values that may be there}
        self.files = {}  # path: {contents that may be there, None: no file}
        self.processes = {}  # id: exit code
        self.ports = {}  # port: {tokens that may be there, None: not exposed}


class Client:
    """One that works for itself and remembers."""

    def __init__(self, plane, number, rng, over):
        self.plane, self.number, self.rng, self.over = plane, number, rng, over
        self.boxes, self.made = [], 0
        self.counts = Counter()
        self.problem = None

    # --- asking ------------------------------------------------------------------------------

    def ask(self, method, path, body=None):
        """The JSON of a success; Refused for an answer that is sure, else Lost."""
        try:
            return self.plane.call(method, path, body, timeout=CALL_SECONDS)
        except Refused as refused:
            if refused.status in UNSURE:
                raise Lost(str(refused)) from None
            raise
        except (OSError, EOFError, http.client.HTTPException, ValueError) as error:
            raise Lost(repr(error)) from None

    def at(self, box, rest=""):
        return f"{NATIVE}/sandboxes/{box.name}{rest}"

    # --- work --------------------------------------------------------------------------------

    def run(self):
        steps = (self.create, self.create, self.label, self.write, self.write, self.start_process,
                 self.execute, self.expose, self.sleep, self.wake, self.stop_and_start,
                 self.destroy)
        while not self.over.is_set():
            step = self.rng.choice(steps)
            try:
                step()
                self.counts["answered"] += 1
            except Idle:
                self.over.wait(0.001)
            except Lost:
                self.counts["lost"] += 1
                self.over.wait(0.02)
            except Exception as error:  # pylint: disable=broad-except
                self.problem = self.problem or f"client {self.number}, {step.__name__}: {error!r}"
                return

    def one(self):
        here = [box for box in self.boxes if box.fate == "here" and not box.is_stopped]
        if not here:
            raise Idle
        return self.rng.choice(here)

    def create(self):
        if sum(box.fate != "gone" for box in self.boxes) >= BOXES_EACH:
            raise Idle
        self.made += 1
        box = Box(f"c{self.number}-{self.made}")
        self.boxes.append(box)
        value = str(self.rng.randrange(1000))
        answer = self.ask("POST", f"{NATIVE}/sandboxes",
                          {"name": box.name, "labels": {"first": value}, "network": "none"})
        box.id, box.fate, box.labels = answer["id"], "here", {"first": {value}}

    def label(self):
        box = self.one()
        name, value = self.rng.choice("abc"), str(self.rng.randrange(1000))
        before = box.labels.get(name, {None})
        box.labels[name] = before | {value}
        self.ask("PATCH", self.at(box), {"labels": {name: value}})
        box.labels[name] = {value}

    def write(self):
        box = self.one()
        path, content = self.rng.choice("xyz"), os.urandom(self.rng.choice((1, 100, 70000))).hex()
        before = box.files.get(path, {None})
        box.files[path] = before | {content}
        self.ask("PUT", self.at(box, f"/files/workspace/{path}"), content.encode())
        box.files[path] = {content}

    def start_process(self):
        box = self.one()
        code, pause = self.rng.randrange(1, 120), self.rng.choice((0, 0.1, 1))
        answer = self.ask("POST", self.at(box, "/processes"),
                          {"command": f"sleep {pause}; exit {code}"})
        box.processes[answer["processId"]] = code

    def execute(self):
        box = self.one()
        code = self.rng.randrange(1, 120)
        answer = self.ask("POST", self.at(box, "/exec"), {"command": f"exit {code}"})
        equal(answer["exitCode"], code, "status of a command")

    def expose(self):
        box = self.one()
        port = self.rng.choice((4000, 5000))
        before = box.ports.get(port, {None})
        token = f"t{self.rng.randrange(1 << 30)}"
        box.ports[port] = before | {token}
        if self.rng.random() < 0.3 and None not in before:
            box.ports[port] = before | {None}
            self.ask("DELETE", self.at(box, f"/ports/{port}"))
            box.ports[port] = {None}
            return
        self.ask("POST", self.at(box, "/ports"), {"port": port, "token": token})
        box.ports[port] = {token}

    def sleep(self):
        box = self.one()
        self.ask("POST", self.at(box, "/sleep"), {})

    def wake(self):
        box = self.one()
        self.ask("POST", self.at(box, "/wake"), {})

    def stop_and_start(self):
        box = self.one()
        box.processes = {}  # they end with it
        box.is_stopped = True
        self.ask("POST", self.at(box, "/stop"), {})
        self.ask("POST", self.at(box, "/start"), {})
        box.is_stopped = False

    def destroy(self):
        box = self.one()
        if self.rng.random() < 0.5:
            raise Idle
        box.fate = "maybe"
        self.ask("DELETE", self.at(box))
        box.fate = "gone"

    # --- afterwards --------------------------------------------------------------------------

    def settle(self, found):
        """The ledger against what is there; `found` is {name: sandbox}."""
        for box in self.boxes:
            there = found.pop(box.name, None)
            if box.fate == "gone":
                equal(there, None, f"{box.name} was destroyed and is there")
            elif box.fate == "here":
                assert there, f"{box.name} was acknowledged and is gone"
            if there:
                self.check(box, there)
        self.boxes = [box for box in self.boxes if box.fate == "here"]

    def check(self, box, there):
        if box.id:
            equal(there["id"], box.id, f"id of {box.name}")
        assert there["status"] != "error", f"{box.name} is broken: {there}"
        box.id, box.fate = there["id"], "here"
        for name, values in box.labels.items():
            assert there["labels"].get(name) in values, f"label {name} of {box.name}: {there}"
            box.labels[name] = {there["labels"].get(name)}
        if there["status"] == "stopped":
            box.processes = {}
            self.ask("POST", self.at(box, "/start"), {})
        box.is_stopped = False
        self.check_files(box)
        self.check_ports(box)
        self.check_processes(box)

    def check_files(self, box):
        for path, contents in box.files.items():
            answer = self.plane.ask("GET", self.at(box, f"/files/workspace/{path}"),
                                    timeout=CALL_SECONDS)
            assert answer.status in (200, 404), f"file {path} of {box.name}: {answer}"
            content = answer.body.decode() if answer.status == 200 else None
            assert content in contents, f"file {path} of {box.name} is another"
            box.files[path] = {content}

    def check_ports(self, box):
        ports = self.ask("GET", self.at(box, "/ports"))["ports"]
        exposed = {port["port"]: port["token"] for port in ports if port.get("token")}
        for port, tokens in box.ports.items():
            assert exposed.get(port) in tokens, f"port {port} of {box.name}: {exposed}, not {tokens}"
            box.ports[port] = {exposed.get(port)}

    def check_processes(self, box):
        """Exit codes are right; of one that an agent forgot nothing is said."""
        for name, code in box.processes.items():
            def ended(name=name):
                try:
                    process = self.ask("GET", self.at(box, f"/processes/{name}"))["process"]
                except Refused as refused:
                    equal(refused.status, 404, f"process {name}")
                    return "forgotten"
                return process.get("exitCode") is not None and process
            process = wait_until(ended, f"the end of {name}", START_SECONDS)
            if process != "forgotten":
                equal(process["exitCode"], code, f"exit code of {name} in {box.name}")
        box.processes = {}


def all_boxes(plane):
    """{name: sandbox}, of all pages."""
    found, cursor = {}, ""
    while True:
        page = plane.call("GET", f"{NATIVE}/sandboxes?limit=100" + (f"&cursor={cursor}" if cursor else ""),
                          timeout=CALL_SECONDS)
        for box in page["sandboxes"]:
            assert box["name"] not in found, f"{box['name']} is there twice"
            found[box["name"]] = box
        cursor = page.get("nextCursor")
        if not cursor:
            return found


def strike(plane, clients, rng, kind, over):
    over.clear()
    workers = [threading.Thread(target=client.run) for client in clients]
    for worker in workers:
        worker.start()
    try:
        time.sleep(rng.random() * 0.8)
        plane.kill_hard(*kind)
        time.sleep(rng.random() * 0.2)
    finally:
        over.set()
        for worker in workers:
            worker.join()
    equal([client.problem for client in clients if client.problem], [], "problems")


def kinds_of(rng):
    while True:
        yield from rng.sample(KINDS, len(KINDS))


@test
def what_was_acknowledged_is_there_whatever_is_killed():
    need_launcher()
    print(f"# BURROW_SEED={SEED}: {ROUNDS} rounds", flush=True)
    rng, over = random.Random(SEED), threading.Event()
    with ControlPlane("--stock", "2") as plane:
        try:
            clients = [Client(plane, number, random.Random(f"{SEED} {number}"), over)
                       for number in range(CLIENTS)]
            for number, kind in zip(range(ROUNDS), kinds_of(rng)):
                strike(plane, clients, rng, kind, over)
                found = all_boxes(plane)
                ids = [box["id"] for box in found.values()]
                equal(len(ids), len(set(ids)), "ids given twice")
                for client in clients:
                    client.settle(found)
                equal(list(found), [], "sandboxes nobody asked for")
                told = Counter()
                for client in clients:
                    told += client.counts
                    client.counts.clear()
                print(f"# round {number}: kill -9 of {' and '.join(kind)}; {dict(told)}; "
                      f"{len(ids)} sandboxes", flush=True)
            for name in all_boxes(plane):
                plane.call("DELETE", f"{NATIVE}/sandboxes/{name}", timeout=CALL_SECONDS)
            equal(all_boxes(plane), {}, "sandboxes at the end")
        except BaseException:
            print("\n".join(f"# log: {line}" for line in plane.log().splitlines()[-80:]))
            raise


class Attacker:
    """`burrow attack` over and over, beside everything else. It is told when the daemon goes away, and then
    takes away what it made when that is back."""

    def __init__(self, plane, names):
        self.plane, self.names, self.over = plane, names, threading.Event()
        self.process, self.statuses = None, Counter()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.process.terminate()
        self.thread.join()

    def start(self, *words):
        return subprocess.Popen(  # pylint: disable=consider-using-with
            [program(), "attack", "--url", f"http://{self.plane.address}", "--key", self.plane.key, *words],
            env=clean_environment({"HOME": "/nonexistent"}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self):
        while not self.over.is_set():
            for name in self.names:
                self.process = self.start("--only", name)
                if self.over.is_set():
                    self.process.terminate()
                self.statuses[self.process.wait()] += 1

    def is_at_work(self):
        """Whether the one who attacks has his sandboxes: what comes next is the attack."""
        users = self.plane.call("GET", f"{NATIVE}/users", timeout=CALL_SECONDS)["users"]
        return any(user["name"].startswith("burrow-attack-") and user["name"].endswith("-many") for user in users)


def names_of_attacks():
    if not FULL:
        return SOME_ATTACKS
    printed = subprocess.run([program(), "attack", "--list", "shares"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return [line.split()[0] for line in printed.splitlines() if line.startswith("    ")]


def clients_of(boxes):
    """Without those of attackers."""
    return {name: box for name, box in boxes.items() if name[0] == "c" and name[1:2].isdigit()}


@test
def what_was_acknowledged_is_there_when_the_daemon_is_killed_under_attack():
    need_launcher()
    print(f"# BURROW_SEED={SEED}: {ATTACKED_ROUNDS} rounds", flush=True)
    rng, over = random.Random(SEED + 1), threading.Event()
    with ControlPlane() as plane:
        clients = [Client(plane, number, random.Random(f"{SEED} {number} attacked"), over) for number in range(CLIENTS)]
        with Attacker(plane, names_of_attacks()) as attacker:
            for number in range(ATTACKED_ROUNDS):
                wait_until(attacker.is_at_work, "the attack")
                strike(plane, clients, rng, ("daemon",), over)
                found = clients_of(all_boxes(plane))
                for client in clients:
                    client.settle(found)
                equal(list(found), [], "sandboxes nobody asked for")
                told = Counter()
                for client in clients:
                    told += client.counts
                    client.counts.clear()
                print(f"# round {number}: {dict(told)}; attacks ended with {dict(attacker.statuses)}", flush=True)
        equal(attacker.start("--clean").wait(), 0, "taking away what is left of attacks")
        for name in clients_of(all_boxes(plane)):
            plane.call("DELETE", f"{NATIVE}/sandboxes/{name}", timeout=CALL_SECONDS)
        equal(all_boxes(plane), {}, "sandboxes at the end")


@test
def the_end_leaves_nothing():
    need_launcher()
    wait_until(lambda: not groups_of(cgroup()), "groups are gone")


main()
