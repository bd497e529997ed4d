#!/usr/bin/python3
# timeout: 1800
"""A daemon that was taken over says anything to a real launcher: bytes, descriptors, plans, in any
order. It never crashes, opens nothing that it was not told of by root, leaves nothing behind, and
the next conversation works.

    BURROW_FULL=1        more conversations of chance
    BURROW_SEED=N|random  others than the usual
"""

import os
import random
import shutil
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from launcher import need_launcher  # noqa: E402
from launcher_once import (  # noqa: E402
    ADOPT, ALL_SEALS, ASSIGN, ATTACH_MOUNT, CREATE, DELETE_SNAPSHOT, DETACH_MOUNT, DISK_USAGE, DONE,
    EXITED, FREEZE, HELLO, INSPECT, KEEPER_JOB, KILL, LIMITS, LIST, LISTED, LIST_SNAPSHOTS,
    OPEN_MOUNT, RECLAIM, ROLL_BACK, SANDBOX, SNAPSHOT, SOCKETS, STATS, SUBSCRIBE, SYNC, THAW, Once,
    bind, code_of, disk, limits, memfd, message, new_id, plan, text)
from outpost import cgroup, folder, groups_of  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL, SEED  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402
from traces import names_in, traces  # noqa: E402

CONVERSATIONS = 300 if FULL else 30
PACKETS = 40
LAST_MESSAGE = INSPECT + 1  # one more than there is
JOBS = 12  # kinds of keeper jobs, and one more
DECOY = "burrow-decoy"  # in every path and name that must not be opened


def nothing_is_left():
    """Neither of sandboxes nor of the launchers."""
    left = {kind: ids for kind, ids in traces(f"{folder()}/data", f"{folder()}/run",
                                              cgroup()).items() if ids}
    instances = [name for name in names_in(f"{folder()}/run") if name.startswith("once-")]
    equal((left, instances), ({}, []), "what is left")
    wait_until(lambda: not groups_of(cgroup()), "the groups are gone")


def next_conversation_works():
    rng = random.Random(SEED)
    sandbox = new_id(rng)
    with Once() as once:
        once.greet()
        equal(once.ask_plan(CREATE, plan(sandbox))[0], SANDBOX, "answer to a good plan")
        equal(code_of(once.ask(KILL, sandbox.encode() + b"\1")), "ok", "answer to a kill")
    nothing_is_left()


# --- chance ------------------------------------------------------------------------------------


class Descriptors:
    """Of every kind that a daemon can have."""

    def __init__(self):
        reading, writing = os.pipe()
        one, other = socket.socketpair()
        self.kept = (one, other)
        self.all = [reading, writing, one.fileno(), other.fileno(), memfd(b"x" * 100),
                    memfd(b"", 0), os.open("/", os.O_RDONLY), os.open("/", os.O_PATH),
                    os.open("/dev/null", os.O_RDWR), os.open("/proc/self/mem", os.O_RDONLY),
                    os.open("/etc/passwd", os.O_RDONLY), os.pidfd_open(os.getpid()),
                    os.eventfd(0), os.open("/dev/zero", os.O_RDONLY)]

    def some(self, rng):
        return [rng.choice(self.all) for _ in range(rng.choice((0, 0, 1, 1, 2, 32, 60)))]


def any_id(rng, known):
    return rng.choice(known) if known and rng.random() < 0.8 else new_id(rng)


def any_plan(rng, known):
    """Mostly a good one."""
    origin = any_disk(rng, known) if rng.random() < 0.2 else None
    owner = rng.choice((bytes(26), any_id(rng, known).encode()))
    data = plan(any_id(rng, known), flags=rng.choice((0, 0, 0, 1, 2, 4)), origin=origin, owner=owner,
                network=rng.random() < 0.2, image=rng.choice(("host", "host", "host", "nothing")))
    if rng.random() < 0.2:
        at = rng.randrange(len(data))
        data = data[:at] + rng.randbytes(1) + data[at + 1:]
    return memfd(data, ALL_SEALS if rng.random() < 0.9 else 0)


def any_disk(rng, known):
    return disk(rng.randrange(2), rng.choice((None, any_id(rng, known))))


def any_body(rng, number, known):
    sandbox = any_id(rng, known).encode()
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(100))
    bodies = {
        HELLO: struct.pack("<HH", rng.randrange(3), rng.randrange(3)) + text("x"),
        LIST: rng.choice((bytes(26), sandbox)),
        ADOPT: sandbox + struct.pack("<IQ", rng.randrange(1 << 22), rng.randrange(1 << 40)),
        SOCKETS: sandbox + bytes([rng.randrange(2), rng.randrange(34)]),
        KILL: sandbox + bytes([rng.randrange(2)]),
        LIMITS: sandbox + limits(memory=rng.choice((0, 1, 64 << 20, 1 << 49))),
        OPEN_MOUNT: sandbox + text("/mnt/x") + b"\1",
        ATTACH_MOUNT: sandbox + bytes(4), DETACH_MOUNT: sandbox + bytes(4),
        KEEPER_JOB: (bytes([rng.randrange(JOBS)]) + any_disk(rng, known) + any_disk(rng, known)
             + rng.choice((bytes(26), new_id(rng).encode())) + bytes(8) + text(rng.choice(("", "host")))),
        SNAPSHOT: sandbox + any_id(rng, known).encode() + bytes([rng.randrange(2)]),
        LIST_SNAPSHOTS: rng.choice((bytes(26), sandbox)),
        ROLL_BACK: sandbox + any_id(rng, known).encode() + bytes(8),
        DISK_USAGE: any_disk(rng, known),
        SYNC: bytes([rng.randrange(2)]),
        INSPECT: bytes([rng.randrange(3)]) + bytes(26) + rng.choice((bytes(26), sandbox)),
    }
    return bodies.get(number, b"" if number in (SUBSCRIBE, CREATE, ASSIGN) else sandbox)


def converse(once, rng, descriptors):
    """Half of the conversations begin as they should; all end in nonsense, or by our leaving."""
    known, request = [new_id(rng) for _ in range(3)], 10
    if rng.random() < 0.8:
        once.greet()
    once.socket.setblocking(False)
    for _ in range(PACKETS):
        number = rng.choice((CREATE, ASSIGN, KILL, rng.randrange(LAST_MESSAGE + 1)))
        request += rng.choice((1, 1, 1, 1, 1, 1, 1, 1, 1, 0))
        made = []
        if number in (CREATE, ASSIGN):
            made = [any_plan(rng, known)]
        fds = made if made or rng.random() < 0.9 else descriptors.some(rng)
        if number == KEEPER_JOB:
            fds = rng.choices(descriptors.all, k=3)
        data = message(number, request, any_body(rng, number, known))
        if rng.random() < 0.03:
            data, fds = rng.randbytes(rng.randrange(1, 5000)), descriptors.some(rng)
        went = once.send(data, fds)
        for fd in made:
            os.close(fd)
        if not went:
            return
        try:
            while once.receive():
                pass
        except BlockingIOError:
            continue


@test
def whatever_it_says_the_launcher_ends_well_and_leaves_nothing():
    need_launcher()
    print(f"# BURROW_SEED={SEED}: {CONVERSATIONS} conversations", flush=True)
    descriptors = Descriptors()
    for number in range(CONVERSATIONS):
        try:
            with Once() as once:
                converse(once, random.Random(f"{SEED} {number}"), descriptors)
            nothing_is_left()
        except BaseException:
            print(f"# in conversation {number}")
            raise
    next_conversation_works()


# --- plans -------------------------------------------------------------------------------------


def hostile_plans(rng):
    """{what: (bytes, seals)}: none of them is a plan of ours."""
    name = new_id(rng)
    good = plan(name)
    names = {
        "path": f"../../{DECOY}", "absolute path": f"/{DECOY}", "upper case": f"{DECOY}A",
        "leading dot": f".{DECOY}", "dots": "..", "slash inside": f"a/{DECOY}",
        "NUL inside": f"host\0/{DECOY}", "newline": f"host\n{DECOY}", "empty": "",
        "too long": DECOY * 20,
    }
    found = {}
    for what, value in names.items():
        found[f"image: {what}"] = (plan(name, image=value), ALL_SEALS)
        found[f"hostname: {what}"] = (plan(name, hostname=value), ALL_SEALS)
        found[f"bind: {what}"] = (plan(name, binds=b"\1\0" + bind(value, "/x")), ALL_SEALS)
    for place in (DECOY, f"/../{DECOY}", f"/{DECOY}/..", "/", f"/{DECOY}/", f"//{DECOY}",
                  "/proc/self/x", "/dev/x", "/sys/x", f"/{DECOY}" + "/x" * 200):
        found[f"bind at {place[:20]}"] = (plan(name, binds=b"\1\0" + bind("a", place)), ALL_SEALS)
    found.update({
        "id that is a path": (plan(f"../{DECOY}".ljust(26, "x")), ALL_SEALS),
        "id in upper case": (plan(name.upper()), ALL_SEALS),
        "65535 rules": (plan(name, network=1, rules=b"\xff\xff"), ALL_SEALS),
        "65535 binds": (plan(name, binds=b"\xff\xff"), ALL_SEALS),
        "an owner that is no id": (plan(name, owner=DECOY.encode().ljust(26, b"/")), ALL_SEALS),
        "rules without a network": (plan(name, rules=b"\1\0" + bytes(11)), ALL_SEALS),
        "all flags": (plan(name, flags=0xffffffff), ALL_SEALS),
        "other network": (plan(name, network=2), ALL_SEALS),
        "endless memory": (plan(name, memory=(1 << 64) - 1), ALL_SEALS),
        "hardly any memory": (plan(name, memory=1), ALL_SEALS),
        "hardly any disk": (plan(name, disk=1), ALL_SEALS),
        "another version": (plan(name, version=1), ALL_SEALS),
        "a disk of nobody's to begin with": (plan(name, origin=disk(1, name)), ALL_SEALS),
        "cut": (good[:-1], ALL_SEALS), "one byte more": (good + b"\0", ALL_SEALS),
        "empty": (b"", ALL_SEALS), "8 MB": (good + bytes(8 << 20), ALL_SEALS),
        "nothing sealed": (good, 0),
        "an image that nobody registered": (plan(name, image=DECOY), ALL_SEALS),
        "a bind that nobody registered":
            (plan(name, binds=b"\1\0" + bind(DECOY, "/x")), ALL_SEALS),
        "a disk that is not there": (plan(name, flags=2), ALL_SEALS),
    })
    for bit in range(4):
        if ALL_SEALS & ~(1 << bit) != ALL_SEALS:
            found[f"seal {bit} missing"] = (good, ALL_SEALS & ~(1 << bit))
    return found


@test
def plans_that_are_none_are_refused_one_by_one():
    need_launcher()
    descriptors = Descriptors()
    with Once() as once:
        once.greet()
        for number in (CREATE, ASSIGN):
            for what, (data, seals) in hostile_plans(random.Random(SEED)).items():
                answer = once.ask_plan(number, data, seals)
                assert answer, f"the conversation ended at {what}"
                if answer[0] != DONE or code_of(answer) == "ok":
                    raise AssertionError(f"{what} was taken: {answer}")
        for fd in descriptors.all:
            answer = once.ask(CREATE, fds=[fd])
            equal(answer and answer[0], DONE, "answer to a descriptor that is no plan")
        equal(once.ask(LIST, bytes(26)), (LISTED, b"\0\0\0"), "sandboxes")
        equal(once.ask_plan(CREATE, plan(new_id(random.Random(SEED))))[0], SANDBOX,
              "answer to a good plan")
    nothing_is_left()


@test
def no_name_becomes_a_path():
    need_launcher()
    if not shutil.which("strace"):
        skip("strace")
    log = f"{folder()}/calls"
    with Once(prefix=("strace", "-f", "-qq", "-s", "4096", "-e", "trace=%file,%net",
                      "-e", "signal=none", "-o", log)) as once:
        once.greet()
        for what, (data, seals) in hostile_plans(random.Random(SEED)).items():
            assert once.ask_plan(CREATE, data, seals), f"the conversation ended at {what}"
    with open(log, encoding="utf-8", errors="replace") as file:
        calls = file.read().splitlines()
    assert any("openat" in call for call in calls), "strace saw nothing"
    # The names of the two registries are looked up where root put them, and nowhere else.
    looked_up = [call for call in calls if DECOY in call and "recvmsg" not in call
                 and "sendmsg" not in call]
    wrong = [call for call in looked_up if f'"{DECOY}"' not in call]
    equal(wrong, [], "calls with a path of the daemon's")
    nothing_is_left()


# --- orders ------------------------------------------------------------------------------------


@test
def a_daemon_that_leaves_in_the_middle_leaves_nothing():
    need_launcher()
    rng = random.Random(f"{SEED} leaves")
    with Once() as once:
        once.greet()
        for request in range(100, 116):
            fd = memfd(plan(new_id(rng), network=request % 2))
            once.send(message(CREATE, request), [fd])
            os.close(fd)
    nothing_is_left()


@test
def a_daemon_that_never_reads_is_not_waited_for():
    need_launcher()
    rng = random.Random(f"{SEED} reads")
    sandbox = new_id(rng)
    with Once() as once:
        once.greet()
        equal(once.ask_plan(CREATE, plan(sandbox))[0], SANDBOX, "answer to a good plan")
        once.socket.setblocking(False)
        sent = 0
        while sent < 20000 and once.send(message(12, once.request + 1, sandbox.encode())):
            once.request += 1
            sent += 1
        assert sent < 20000, "everything was taken from a daemon that does not read"
        once.socket.setblocking(True)
        answers = 0
        while answers < min(sent, 100):  # and then it goes on where it stopped
            number, _, _ = once.receive()
            answers += number != EXITED
    nothing_is_left()


# Of a sandbox, and what is sent to bring it there.
STATES = {"none": (), "running": (), "frozen": (FREEZE,), "pooled": (), "stopped": (KILL,)}
KEEP_DISK = b"\0"
UNPACK, UNARCHIVE, JOB_ENDED = 6, 8, 73


# Of each kind of job what it is given (model/disk.h).
JOB_PARTS = ((0, "on"), (1, "on"), (2, "on"), (3, "on target"), (4, "on base"), (5, "on"),
             (5, "on base"), (6, "target"), (7, "on image"), (8, ""), (9, "on image"),
             (10, "on image"))


def begin(once, rng, state):
    """The id of a new sandbox in that state."""
    sandbox = new_id(rng)
    if state == "none":
        return sandbox
    equal(once.ask_plan(CREATE, plan(sandbox, flags=int(state == "pooled")))[0], SANDBOX, state)
    for number in STATES[state]:
        body = sandbox.encode() + (KEEP_DISK if number == KILL else b"")
        equal(code_of(once.ask(number, body)), "ok", f"it is made {state}")
    return sandbox


def orders(sandbox, snapshot):
    """(what, number, body, plan): one of every kind, each of which is right in itself."""
    box, other = sandbox.encode(), snapshot.encode()
    found = [
        ("adopt", ADOPT, box + struct.pack("<IQ", 1, 1)), ("sockets", SOCKETS, box + b"\0\1"),
        ("freeze", FREEZE, box), ("thaw", THAW, box), ("limits", LIMITS, box + limits()),
        ("no limits", LIMITS, box + limits(0, 0, 0, 0, 0, 0)), ("stats", STATS, box),
        ("open a mount", OPEN_MOUNT, box + text("/mnt/x") + b"\0"),
        ("attach a mount", ATTACH_MOUNT, box + struct.pack("<I", 1)),
        ("detach a mount", DETACH_MOUNT, box + struct.pack("<I", 1)),
        ("snapshot", SNAPSHOT, box + other + b"\1"), ("its own id", SNAPSHOT, box + box + b"\0"),
        ("list snapshots", LIST_SNAPSHOTS, box), ("roll back", ROLL_BACK, box + other + bytes(8)),
        ("usage", DISK_USAGE, disk(0, sandbox)), ("usage of a snapshot", DISK_USAGE, disk(1, sandbox)),
        ("reclaim", RECLAIM, box), ("sync", SYNC, b"\1"), ("list", LIST, box),
        ("inspect", INSPECT, b"\0" + bytes(26) + box), ("delete a snapshot", DELETE_SNAPSHOT, other),
    ]
    for job, parts in JOB_PARTS:
        for one, base in ((disk(0, sandbox), disk(1, snapshot)), (disk(1, snapshot), disk(0, sandbox))):
            for target in (snapshot[::-1][1:] + "a", sandbox):
                if (job == 0 and one[0]) or (target == sandbox and one == disk(0, sandbox)):
                    continue  # these are none, and end the conversation
                found.append((f"job {job}", KEEPER_JOB, bytes([job])
                              + (one if "on" in parts else disk(0))
                              + (base if "base" in parts else disk(0))
                              + (target.encode() if "target" in parts else bytes(26)) + bytes(8)
                              + text("host" if "image" in parts else "")))
    return found


def give(once, number, body, nothing):
    """The answer; a job gets the three descriptors it asks for, which are of nothing."""
    if number not in (CREATE, ASSIGN):
        return once.ask(number, body, [nothing] * 3 if number == KEEPER_JOB else ())
    return once.ask_plan(number, body)


@test
def every_order_is_answered_in_every_state_of_a_sandbox():
    need_launcher()
    rng = random.Random(f"{SEED} orders")
    nothing = os.open("/dev/null", os.O_RDWR)
    with Once() as once:
        once.greet()
        for state in STATES:
            sandbox, snapshot = begin(once, rng, state), new_id(rng)
            for what, number, body in orders(sandbox, snapshot):
                assert give(once, number, body, nothing), f"{what} for one that is {state} ended it all"
            for flags, origin in ((0, None), (1, None), (2, None), (4, disk(0, sandbox)),
                                  (0, disk(1, snapshot))):
                for number in (CREATE, ASSIGN):
                    for network in (0, 1):
                        data = plan(sandbox, flags=flags, origin=origin, network=network,
                                    owner=snapshot.encode())
                        assert give(once, number, data, nothing), f"plan {flags} when {state}"
            equal(once.ask(LIST, bytes(26))[0], LISTED, f"it goes on after {state}")
            once.ask(KILL, sandbox.encode() + b"\1")
    os.close(nothing)
    nothing_is_left()


def inputs(rng):
    """What a keeper may be given to read: {what: descriptor}."""
    reading, writing = os.pipe()
    os.close(writing)
    return {
        "nothing": memfd(b"", 0), "noise": memfd(rng.randbytes(9000), 0),
        "a head of squashfs": memfd(b"hsqs" + rng.randbytes(3000), 0),
        "a list of layers": memfd(b'{"layers":["' + b"x" * 3000, 0), "a closed pipe": reading,
        "zeros without end": os.open("/dev/zero", os.O_RDONLY),
        "a folder": os.open("/", os.O_RDONLY), "a path": os.open("/etc/passwd", os.O_PATH),
        "only to be written": os.open("/dev/null", os.O_WRONLY), "an event": os.eventfd(0, os.EFD_NONBLOCK),
        "a process": os.pidfd_open(os.getpid()),
    }


def give_job(once, job, sandbox, given, made):
    """The number of the answer; nobody reads the report to its end."""
    body = (bytes([job]) + disk(0) + disk(0) + (sandbox.encode() if job == UNPACK else bytes(26))
            + bytes(8) + text(""))
    reading, writing = os.pipe()
    once.request += 1
    once.send(message(KEEPER_JOB, once.request, body), [given, writing, made])
    os.close(writing)
    os.read(reading, 1)
    os.close(reading)
    while answer := once.receive():
        if answer[1] == once.request:
            return answer[0]
    return None


@test
def keepers_are_fed_anything():
    """And never end the conversation, nor leave the disk that they were to make."""
    need_launcher()
    rng = random.Random(f"{SEED} inputs")
    with Once() as once:
        once.greet()
        for job in (UNPACK, UNARCHIVE):
            for what, given in inputs(rng).items():
                made = memfd(b"", 0)
                number = give_job(once, job, new_id(rng), given, made)
                assert number in (DONE, JOB_ENDED), f"job {job}, {what}: {number}"
                equal(once.ask(LIST, bytes(26)), (LISTED, b"\0\0\0"), f"disks after {what}")
                os.close(given)
                os.close(made)
    nothing_is_left()


@test
def the_next_conversation_works():
    need_launcher()
    next_conversation_works()


main()
