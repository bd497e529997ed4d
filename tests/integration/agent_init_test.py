#!/usr/bin/python3
"""The agent as PID 1: it reaps everything, and nothing that runs beside it can end it.

# timeout: 600
"""

import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Init, can_unshare  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

ORPHANS, SHORT = (10000, 2000) if FULL else (1000, 300)
COUNT_ZOMBIES = "grep -h '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"


def init(*flags, **more):
    if not can_unshare():
        skip("user and pid namespaces")
    return Init(*flags, **more)


def zombies(agent):
    return int(agent.run(COUNT_ZOMBIES)["stdout"])


@test
def the_agent_is_pid_1_and_runs_commands():
    with init() as agent:
        result = agent.run("echo $$ $PPID; cat /proc/1/comm; id -u")
        assert result["stdout"].endswith("burrow-agent\n0\n"), result
        assert int(result["stdout"].split()[0]) > 1, result


@test
def commands_ignore_and_block_nothing_whoever_started_the_agent():
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGRTMAX})
    try:
        with init() as agent:
            command = "grep -E '^Sig(Blk|Ign)' /proc/self/status"
            for _ in range(2):  # by the first worker, and by the next
                equal(agent.run(command)["stdout"],
                      "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n", "signals")
                agent.run("kill -9 $PPID")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        signal.signal(signal.SIGHUP, ignored)


@test
def thousands_of_orphans_leave_no_zombie():
    """Their parents do not wait for them, and their supervisor is dead: they are all PID 1's."""
    script = ("import os\n"
              "os.kill(os.getppid(), 9)\n"
              f"for _ in range({ORPHANS // 100}):\n"
              "    if os.fork() == 0:\n"
              "        for _ in range(100):\n"
              "            if os.fork() == 0: os._exit(0)\n"
              "        os._exit(0)\n"
              "    os.wait()\n")
    with init() as agent:
        started = time.monotonic()
        equal(agent.run("exec python3 -c \"$S\"", env={"S": script})["exitCode"], 0, "status")
        print(f"# {ORPHANS} orphans in {time.monotonic() - started:.1f} s")
        wait_until(lambda: zombies(agent) == 0, "no zombie is left")
        assert agent.memory_kb() < 8192, agent.memory_kb()


@test
def orphans_of_a_command_are_reaped_by_its_supervisor():
    with init() as agent:
        agent.run("for i in $(seq 500); do (true &) ; done")
        wait_until(lambda: zombies(agent) == 0, "no zombie is left")
        wait_until(lambda: agent.activity()["background"] == 0, "no supervisor is left")


@test
def killing_everything_inside_does_not_end_the_agent():
    with init() as agent:
        for delay in (0, 0, 0, 0.01, 0.1):
            # kill(2) spares its caller.
            result = agent.run(f"echo before; sleep {delay}; kill -9 -1; echo after; exit 5")
            equal((result["exitCode"], result["stdout"]), (5, "before\nafter\n"), "who did it")
            equal(agent.run("echo on")["stdout"], "on\n", "the next one")


@test
def others_die_of_it_and_are_told_exactly():
    with init() as agent, agent.open_stream("echo up; sleep 60") as connection:
        wait_until(lambda: agent.activity()["running"] == 1, "it runs")
        time.sleep(0.1)
        equal(agent.run("kill -9 -1")["exitCode"], 0, "who did it")
        events = b"".join(connection.chunks())
        last = json.loads(events.strip().split(b"\n\n")[-1].removeprefix(b"data: "))
        equal((last["type"], last.get("exitCode")), ("complete", 137), "last event")


@test
def stopping_everything_inside_does_not_stop_the_agent():
    with init() as agent, agent.open_stream("echo up; sleep 600", timeoutMs=4000) as connection:
        wait_until(lambda: agent.activity()["running"] == 1, "it runs")
        time.sleep(0.2)
        equal(agent.post("/api/execute", {"command": "kill -STOP -1; exit 5", "timeoutMs": 1000,
                                          "sessionId": NO_SESSION})
              .status, 200, "who did it")
        started = time.monotonic()
        equal(agent.run("echo on")["stdout"], "on\n", "the next one")
        print(f"# a stopped worker was replaced in {time.monotonic() - started:.1f} s")
        assert b'"exitCode":124' in b"".join(connection.chunks()), "the one with a timeout"


@test
def signals_from_inside_do_nothing():
    with init() as agent:
        for name in ("TERM", "INT", "HUP", "QUIT", "USR1", "KILL", "STOP", "SEGV", "ABRT", "PIPE"):
            agent.run(f"kill -{name} 1")
        equal(agent.run("echo on")["stdout"], "on\n", "stdout")


@test
def a_signal_that_pretends_to_come_from_outside_does_nothing():
    script = ("import ctypes, struct\n"
              "libc = ctypes.CDLL(None, use_errno=True)\n"
              "info = struct.pack('iiiiiiq', 15, 0, -1, 0, 0, 0, 0) + bytes(96)\n"
              "print(libc.syscall(129, 1, 15, info))\n")  # rt_sigqueueinfo: code -1, pid 0
    with init() as agent:
        equal(agent.run("exec python3 -c \"$S\"", env={"S": script})["stdout"], "0\n", "sent")
        time.sleep(0.2)
        equal(agent.run("echo on")["stdout"], "on\n", "stdout")


@test
def sigterm_from_outside_ends_it_and_everything_in_it():
    with init() as agent:
        inside = agent.run("setsid sleep 600 & echo $!")
        assert inside["stdout"].strip().isdigit(), inside
        outer = agent.pid
        agent.stop()
        assert not os.path.exists(f"/proc/{outer}"), "the agent is still there"


@test
def sigterm_from_outside_goes_to_the_entrypoint():
    script = "trap 'exit 9' TERM; while :; do sleep 0.05; done"
    with init(entrypoint=["/bin/bash", "-c", script]) as agent:
        agent.expected_status = 9
        agent.run("kill -TERM 1")
        equal(agent.run("echo on")["stdout"], "on\n", "after one from inside")
        agent.stop()


@test
def its_memory_and_descriptors_are_closed_to_the_inside():
    with init("--token", "s3cret", headers=[("Authorization", "Bearer s3cret")]) as agent:
        for look in ("cat /proc/1/environ", "cat /proc/1/maps", "cat /proc/1/mem",
                     "readlink /proc/1/exe", "readlink /proc/1/fd/0", "ls /proc/1/root",
                     "cat /proc/$PPID/maps", "cat /proc/$PPID/mem",
                     "cat /proc/$PPID/environ"):
            result = agent.run(look)
            equal((result["stdout"], result["success"]), ("", False), look)
        equal(agent.run("cat /proc/self/maps")["success"], True, "one's own")


@test
def a_full_disk_is_survived():
    with init() as agent:
        result = agent.run("mkdir -p /tmp && mount -t tmpfs -o size=64k tmpfs /tmp && cd /tmp && "
                           "head -c 1M /dev/zero > fill; echo full >&2")
        assert "No space left" in result["stderr"], result
        equal(agent.run("echo on")["stdout"], "on\n", "stdout")
        equal(agent.get("/api/ping").status, 200, "ping")


@test
def many_short_processes_pass():
    with init() as agent:
        started = time.monotonic()
        equal(agent.run(f"for i in $(seq {SHORT}); do /bin/true; done; exit 5")["exitCode"], 5, "status")
        print(f"# {SHORT} processes of one command in {time.monotonic() - started:.1f} s")
        equal(zombies(agent), 0, "zombies")


@test
def commands_are_moved_into_the_groups_they_are_given():
    """With files in place of cgroups: what is written to them, and what happens without."""
    with init() as agent:
        first, second = (os.path.join(agent.folder, name) for name in ("one", "two"))
        agent.stop()
        with open(first, "wb") as one, open(second, "wb") as two:
            flags = ["--work-cgroup-fds", f"{one.fileno()},{two.fileno()}"]
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                [*command_line(agent), *flags], pass_fds=[one.fileno(), two.fileno()],
                stdin=subprocess.DEVNULL, env=agent.environment)
        try:
            wait_until(agent.is_ready, "ready")
            agent.run("true")
            for path in (first, second):
                with open(path, "rb") as file:
                    equal(file.read(), b"0", "what the worker wrote")
        finally:
            process.terminate()
            process.wait()
        with open("/dev/full", "wb") as full:
            process = subprocess.Popen(  # pylint: disable=consider-using-with
                [*command_line(agent), "--work-cgroup-fds", str(full.fileno())],
                pass_fds=[full.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=agent.environment)
        try:
            wait_until(agent.is_ready, "ready")
            response = agent.post("/api/execute", {"command": "true", "sessionId": NO_SESSION})
            equal(json.loads(response.body)["code"], "COMMAND_EXECUTION_ERROR", "without a group")
        finally:
            process.terminate()
            process.wait()
        agent.process = process


def command_line(agent):
    from program import program  # pylint: disable=import-outside-toplevel
    return [program(agent.name), *agent.arguments]


if __name__ == "__main__":
    main()
