#!/usr/bin/python3
# timeout: 600
"""Many at once, the slow, the ones who leave, and a store that cannot be written: nobody else suffers,
what was acknowledged is there, and afterwards the daemon is as small as before."""

import errno
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter, groups_of  # noqa: E402

enter()

from control_plane import NATIVE, ControlPlane, Refused  # noqa: E402
from http_raw import connect  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402
from websocket_raw import TEXT, handshake, open_websocket  # noqa: E402

SOCKETS = 1000 if FULL else 200
BOXES = 4
EXECS = 200 if FULL else 40
ABANDONED = 2000 if FULL else 500
SECONDS = 60.0  # for anything, on a machine that has other work
MEMORY_KB = 40 * 1024  # that a daemon may have more afterwards: pools, caches, the allocator's
DESCRIPTORS = 40  # likewise: kept connections to agents
KEY = "dGhlIHNhbXBsZSBub25jZQ=="


class Daemon(ControlPlane):
    """With what it costs."""

    def cost(self):
        """(descriptors, resident kB) of the daemon."""
        pid = self.daemon_pid
        with open(f"/proc/{pid}/status", encoding="ascii") as lines:
            memory = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        return len(os.listdir(f"/proc/{pid}/fd")), memory

    def must_cost(self, before, what):
        """Descriptors and memory are back near where they were."""
        def is_back():
            return self.cost()[0] <= before[0] + DESCRIPTORS
        wait_until(is_back, f"descriptors are back from {self.cost()[0]} to {before[0]}", SECONDS)
        after = self.cost()
        print(f"# {what}: {before[0]} -> {after[0]} descriptors, {before[1]} -> {after[1]} kB", flush=True)
        assert after[1] <= before[1] + MEMORY_KB, f"{what}: {before[1]} kB became {after[1]} kB"

    def socket(self, path):
        return open_websocket(self.address, path, [f"Authorization: Bearer {self.key}"])


def raise_limit():
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < 2 * SOCKETS + 500:
        skip(f"a limit of {2 * SOCKETS + 500} open files")


def in_parallel(count, work):
    """[results] of work(number) in as many threads; an exception is a result."""
    results = [None] * count

    def run(number):
        try:
            results[number] = work(number)
        except Exception as error:  # pylint: disable=broad-except
            results[number] = error
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


# --- many ----------------------------------------------------------------------------------------


@test
def many_websockets_and_commands_at_once():
    need_launcher()
    raise_limit()
    with Daemon("--stock", "0") as plane:
        for number in range(BOXES):
            plane.create(f"box{number}")
            equal(plane.execute(f"box{number}", "echo ready")["stdout"].strip(), "ready", "box")
        before, sockets = plane.cost(), []
        try:
            for number in range(SOCKETS):
                sockets.append(plane.socket(f"{NATIVE}/sandboxes/box{number % BOXES}/terminals"
                                            f"?sessionId=shared&cols=80&rows=24"))
            peak = plane.cost()
            print(f"# {SOCKETS} WebSockets: {peak[0]} descriptors, {peak[1]} kB", flush=True)

            def command(number):
                return plane.execute(f"box{number % BOXES}", f"sleep 0.5; echo {number}; exit 3",
                                     timeout=SECONDS)
            answers = in_parallel(EXECS, command)
            wrong = [(number, answer) for number, answer in enumerate(answers)
                     if not isinstance(answer, dict) or answer["stdout"].strip() != str(number)
                     or answer["exitCode"] != 3]
            equal(wrong, [], "commands that were not answered as they should be")
            # All of them are still there, and see what one of them types.
            for number in range(BOXES):
                sockets[number].send(2, b"echo to-all-$((40+2))\n")
            for number, one in enumerate(sockets):
                one.connection.socket.settimeout(SECONDS)
                while b"to-all-42" not in one.connection.buffer:
                    assert one.connection.read_some(), f"WebSocket {number} was closed"
        finally:
            for one in sockets:
                one.connection.close()
        plane.must_cost(before, "after all of them")


@test
def commands_over_websockets_end_with_whoever_leaves():
    need_launcher()
    with Daemon("--stock", "0") as plane:
        plane.create("box")
        plane.execute("box", "true")
        before = plane.cost()
        sockets = [plane.socket(f"{NATIVE}/sandboxes/box/exec/ws") for _ in range(100)]
        for one in sockets:
            one.send(TEXT, json.dumps({"argv": ["sleep", "12345"]}).encode())
        for one in sockets:
            equal(json.loads(one.receive_message()[1])["type"], "started", "first message")
        for one in sockets:
            one.connection.close()
        count = "grep -cs 12345 /proc/[0-9]*/cmdline | grep -c :1 || true"

        def is_alone():
            # The command that looks has the number in its own command line, and so has its shell.
            return int(plane.execute("box", count)["stdout"].strip()) <= 3
        wait_until(is_alone, "the commands end", SECONDS)
        plane.must_cost(before, "after a hundred commands")


# --- slow and gone -------------------------------------------------------------------------------


@test
def slow_clients_hold_up_nobody():
    need_launcher()
    with Daemon("--stock", "0") as plane:
        plane.create("box")
        plane.execute("box", "head -c 30000000 /dev/zero >/workspace/large")
        before, slow, over = plane.cost(), [], threading.Event()
        head = f"Host: localhost\r\nAuthorization: Bearer {plane.key}\r\n"
        for number in range(60):
            connection = connect(plane.address, SECONDS)
            slow.append(connection)
            if number % 3 == 0:  # never reads its reply
                connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.send(f"GET {NATIVE}/sandboxes/box/files/workspace/large HTTP/1.1\r\n{head}\r\n"
                                .encode())
            elif number % 3 == 1:  # a body, a byte a second
                connection.send(f"PUT {NATIVE}/sandboxes/box/files/workspace/up{number} HTTP/1.1\r\n{head}"
                                f"Content-Length: 100000\r\n\r\n".encode())

        def dribble():
            data = f"GET {NATIVE}/sandboxes HTTP/1.1\r\n{head}".encode()
            for at in range(len(data)):
                for number, connection in enumerate(slow):
                    if number % 3:
                        try:
                            connection.send(data[at:at + 1])
                        except OSError:
                            continue  # given up on, as it should be
                if over.wait(1):
                    return
        worker = threading.Thread(target=dribble)
        worker.start()
        try:
            times = []
            for _ in range(40):
                began = time.monotonic()
                equal(plane.execute("box", "echo hi")["stdout"].strip(), "hi", "a command")
                times.append(time.monotonic() - began)
            print(f"# commands meanwhile: median {statistics.median(times) * 1000:.0f} ms, "
                  f"slowest {max(times) * 1000:.0f} ms", flush=True)
            assert plane.cost()[1] < before[1] + MEMORY_KB, f"{before[1]} kB became {plane.cost()[1]} kB"
        finally:
            over.set()
            worker.join()
            for connection in slow:
                connection.close()
        plane.must_cost(before, "after slow clients")


def abandoned_requests(plane):
    head = f"Host: localhost\r\nAuthorization: Bearer {plane.key}\r\n"
    box = f"{NATIVE}/sandboxes/box"
    command = json.dumps({"command": "sleep 0.3"})
    return [
        f"GET {NATIVE}/sandboxes HTTP/1.1\r\n{head}\r\n",
        f"POST {box}/exec HTTP/1.1\r\n{head}Content-Length: {len(command)}\r\n\r\n{command}",
        f"POST {box}/exec HTTP/1.1\r\n{head}Content-Length: 5000\r\n\r\n{command}",
        f"PUT {box}/files/workspace/half HTTP/1.1\r\n{head}Content-Length: 5000\r\n\r\nhalf",
        f"GET {NATIVE}/events?stream=1 HTTP/1.1\r\n{head}\r\n",
        f"GET {box}/archive?path=/usr/share/doc HTTP/1.1\r\n{head}\r\n",
        f"GET {box}/container/health HTTP/1.1\r\n{head}\r\n",
        f"POST {box}/exec HTTP/1.1\r\n{head}",
        handshake(f"{box}/terminals?sessionId=left", KEY,
                  [f"Authorization: Bearer {plane.key}"]).decode(),
    ]


@test
def many_abandoned_requests_leave_nothing():
    need_launcher()
    with Daemon("--stock", "0") as plane:
        plane.create("box")
        plane.execute("box", "true")
        requests = [text.encode() for text in abandoned_requests(plane)]
        for number in range(100):  # what is made once is made
            with connect(plane.address) as connection:
                connection.send(requests[number % len(requests)])
        time.sleep(1)
        before, daemon = plane.cost(), plane.daemon_pid
        for number in range(ABANDONED):
            with connect(plane.address) as connection:
                connection.send(requests[number % len(requests)])
                if number % 2:
                    time.sleep(0.002)
        plane.must_cost(before, "after abandoned requests")
        equal(plane.daemon_pid, daemon, "pid of the daemon")

        def is_idle():
            # An exec of nobody's ends, or ended by itself.
            return plane.execute("box", "pgrep -c sleep || true")["stdout"].strip() == "0"
        wait_until(is_idle, "what was begun is over", SECONDS)
        found = plane.execute("box", "ls /workspace")["stdout"].split()
        assert "half" not in found, f"half a file is there: {found}"


# --- a store that cannot be written ------------------------------------------------------------------


def database_of(plane):
    return f"{plane.data}/daemon/db"


def names_of(plane):
    found = plane.call("GET", f"{NATIVE}/sandboxes?limit=1000", timeout=SECONDS)["sandboxes"]
    return {box["name"] for box in found}


@test
def a_locked_store_is_told_and_loses_nothing():
    """The daemon's own lock keeps others out while it runs. Where somebody gets in between two of them,
    the second one says so and ends: nobody but a person can know what that was."""
    need_launcher()
    with Daemon("--stock", "0") as plane:
        plane.create("before")
        other = sqlite3.connect(f"{database_of(plane)}/burrow.sqlite", isolation_level=None, timeout=0.2)
        try:
            other.execute("BEGIN IMMEDIATE")
            raise AssertionError("somebody else may write to the store of a daemon that runs")
        except sqlite3.OperationalError as error:
            equal(str(error), "database is locked", "what another is told")
        plane.signal(signal.SIGSTOP)
        try:
            os.kill(plane.daemon_pid, signal.SIGKILL)
            wait_until(lambda: is_locked_by(other), "the lock of the daemon is free")
        finally:
            plane.signal(signal.SIGCONT)
        equal(plane.wait(SECONDS), 2, "status of a service whose store is in use")
        assert "another process has the database" in plane.log(), plane.log()[-500:]
        other.execute("ROLLBACK")
        other.close()
        plane.start()
        plane.create("after")
        equal(names_of(plane), {"before", "after"}, "sandboxes")
        equal(plane.execute("before", "echo hi")["stdout"].strip(), "hi", "a command")


def is_locked_by(other):
    try:
        other.execute("BEGIN IMMEDIATE")
        return True
    except sqlite3.OperationalError:
        return False


def restart(plane):
    pid = plane.daemon_pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: plane.daemon_pid not in (None, pid) and plane.is_ready(), "another daemon", SECONDS)


@test
def a_full_disk_refuses_and_goes_on_when_there_is_room():
    need_launcher()
    plane = Daemon("--stock", "0")
    place = database_of(plane)
    os.makedirs(place, mode=0o711)
    for folder in (plane.data, f"{plane.data}/daemon"):
        os.chmod(folder, 0o711)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0700,uid=65534,gid=65534", "none", place],
                   check=True)
    os.chown(f"{plane.data}/daemon", 65534, 65534)
    os.chmod(f"{plane.data}/daemon", 0o700)
    with plane:
        plane.create("before")
        acknowledged = {"before"}
        with open(f"{place}/ballast", "wb", buffering=0) as ballast:
            try:
                while ballast.write(b"x" * 4096):
                    pass
            except OSError as error:
                equal(error.errno, errno.ENOSPC, "what stopped the ballast")
        refusals = 0
        for number in range(60):  # what is allocated already may do for some
            try:
                plane.call("POST", f"{NATIVE}/sandboxes", {"name": f"box{number}"}, timeout=SECONDS)
                acknowledged.add(f"box{number}")
            except Refused as refused:
                assert refused.status in (503, 507) and refused.body["error"]["message"], refused
                refusals += 1
                if refusals == 3:
                    break
        equal(refusals, 3, f"refusals, with {len(acknowledged)} acknowledged")
        equal(names_of(plane), acknowledged, "sandboxes while it is full")
        equal(plane.execute("before", "echo hi")["stdout"].strip(), "hi", "a command meanwhile")
        os.unlink(f"{place}/ballast")
        wait_until(lambda: can_create(plane, "after"), "it goes on", SECONDS)
        acknowledged.add("after")
        equal(names_of(plane), acknowledged, "sandboxes afterwards")
        restart(plane)
        equal(names_of(plane), acknowledged, "sandboxes after a restart")


def can_create(plane, name):
    try:
        return plane.create(name)
    except Refused:
        return False


# --- an agent that is killed -------------------------------------------------------------------------


def first_process(plane, box):
    """The host's pid of PID 1 of a sandbox."""
    for path in groups_of(plane.cgroup):
        if f"/{box}" not in path:
            continue
        with open(f"{path}/cgroup.procs", encoding="ascii") as file:
            for pid in file.read().split():
                with open(f"/proc/{pid}/status", encoding="ascii") as status:
                    inner = re.search(r"^NSpid:.*\t(\d+)$", status.read(), re.MULTILINE)
                if inner and inner[1] == "1":
                    return int(pid)
    raise AssertionError(f"no first process of {box}")


@test
def a_sandbox_whose_agent_is_killed_says_so_and_starts_again():
    need_launcher()
    with Daemon("--stock", "0") as plane:
        box = plane.create("box")
        plane.execute("box", "echo kept >/workspace/file")
        os.kill(first_process(plane, box["id"]), signal.SIGKILL)
        told = wait_until(lambda: stopped(plane), "it is seen", SECONDS)
        assert re.search("signal 9|kill", told["reason"]), told
        print(f"# the reason: {told['reason']}", flush=True)
        events = json.dumps(plane.call("GET", f"{NATIVE}/sandboxes/box/events"))
        assert "signal 9" in events, events
        answer = plane.execute("box", "cat /workspace/file", timeout=SECONDS)
        equal(answer["stdout"].strip(), "kept", "its disk")
        equal(plane.sandbox("box")["status"], "running", "status after its next use")


def stopped(plane):
    box = plane.sandbox("box")
    return box["status"] == "stopped" and box


main()
