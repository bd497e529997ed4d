#!/usr/bin/python3
"""The agent alone on a socket: how commands end, whole trees of them, and what they leave and cost.

# timeout: 600
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent, find_processes  # noqa: E402
from http_raw import Connection, connect  # noqa: E402
from program import PATIENCE, program, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20
ASK_TRUE = (b"POST /api/execute HTTP/1.1\r\nHost: a\r\nContent-Length: 57\r\n\r\n"
            b'{"command":"/bin/true","sessionId":"__DISABLE_SESSION__"}')
MARK = f"burrow-test-{os.getpid()}"


def sleeper(name):
    """A command line that sleeps and can be found again."""
    return f"exec -a {MARK}-{name} sleep 600"


def gone(name):
    wait_until(lambda: not find_processes(f"{MARK}-{name}"), f"{name} is gone")


def alive(name):
    return bool(find_processes(f"{MARK}-{name}"))


# --- ends ----------------------------------------------------------------------------------------


def tree(name):
    """A command with children and daemons that left its session and its parents."""
    inner = f"exec -a {MARK}-{name}-deep sleep 600"
    middle = f"(setsid bash -c \"{inner}\" &); exec -a {MARK}-{name}-middle sleep 600"
    return (f"setsid bash -c '{middle}' & ( ( sleep 600 & ) ); "
            f"bash -c 'exec -a {MARK}-{name}-top sleep 600'; true")


def tree_is_up(name):
    wait_until(lambda: all(alive(f"{name}-{part}") for part in ("deep", "middle", "top")),
               f"tree {name} is up")


@test
def a_timeout_is_124_and_the_whole_tree_is_gone():
    name = "timeout"
    result = SHARED.run("echo before; " + tree(name), timeoutMs=1500)
    equal((result["exitCode"], result["stdout"]), (124, "before\n"), "result")
    equal(result["stderr"], "Command timed out after 1500ms\n", "stderr")
    equal(find_processes(f"{MARK}-{name}"), [], "left")
    equal(SHARED.run("true", timeoutMs=60000)["exitCode"], 0, "one in time")


@test
def a_timeout_of_a_stream_is_told_as_events():
    events = list(SHARED.stream("echo a; sleep 60", timeoutMs=300))
    equal((events[-1]["type"], events[-1]["exitCode"]), ("complete", 124), "end")
    equal(events[-2]["data"], "Command timed out after 300ms\n", "stderr")


@test
def a_client_that_leaves_cancels_its_command():
    for path in ("/api/execute", "/api/execute/stream"):
        name = "left" + path.replace("/", "-")
        body = json.dumps({"command": tree(name), "sessionId": NO_SESSION}).encode()
        connection = connect(SHARED.address)
        connection.send(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                        % (path.encode(), len(body), body))
        tree_is_up(name)
        connection.close()
        gone(name)
    SHARED.wait_until_idle()


@test
def background_processes_live_on_and_do_not_hold_the_answer():
    with Agent() as agent:
        log = os.path.join(agent.folder, "log")
        gate = os.path.join(agent.folder, "gate")
        result = agent.run(f"(until [ -e {gate} ]; do sleep 0.01; done; for i in $(seq 200); do echo tick; echo $i > {log}; sleep 0.01; done)"
                           " & echo started")
        assert result["stdout"].startswith("started\n") or "started" in result["stdout"], result
        equal(agent.activity()["background"], 1, "background")
        open(gate, "wb").close()
        wait_until(lambda: os.path.exists(log) and open(log).read() == "200\n",
                   "it writes on, though nobody reads")
        wait_until(lambda: agent.activity()["background"] == 0, "its end is noticed")


@test
def output_that_comes_just_after_the_end_is_still_there():
    # It is waited for 50 ms, which a busy machine now and then needs for itself.
    found = [SHARED.run("echo late > >(sleep 0.01; cat)")["stdout"] for _ in range(20)]
    assert found.count("late\n") >= 15, found


@test
def a_killed_supervisor_does_not_lose_the_status():
    for _ in range(5):
        result = SHARED.run("sleep 0.2; kill -9 $PPID; sleep 0.2; echo on; exit 7")
        equal((result["exitCode"], result["stdout"]), (7, "on\n"), "result")
    result = SHARED.run("sleep 0.2; kill -9 $PPID; sleep 60", timeoutMs=500)
    equal(result["exitCode"], 124, "its timeout")


@test
def a_status_that_nobody_saw_is_unknown_and_never_0():
    """Killed before it could even report, a supervisor leaves at worst an error."""
    for _ in range(20):
        response = SHARED.post("/api/execute", {"command": "/bin/kill -9 0; exec kill -9 $PPID",
                                                 "sessionId": NO_SESSION})
        if response.status == 200:
            assert json.loads(response.body)["exitCode"] != 0, response
        else:
            equal(json.loads(response.body)["code"], "COMMAND_EXECUTION_ERROR", "code")


@test
def a_killed_worker_is_replaced():
    with Agent() as agent:
        for _ in range(10):
            worker = wait_until(lambda: [pid for pid, name in agent.children().items()
                                         if name == "burrow-worker"], "there is a worker")
            os.kill(worker[0], signal.SIGKILL)
            equal(agent.run("echo on")["stdout"], "on\n", "the next command")


@test
def commands_run_side_by_side():
    with Agent() as agent:
        agent.run("true")
        files, results = agent.settled_files(), {}

        def run(number):
            results[number] = agent.run(f"sleep 0.5; echo {number}; exit {number % 7}")

        threads = [threading.Thread(target=run, args=(number,)) for number in range(200)]
        started = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"# 200 commands that sleep 0.5 s: {time.monotonic() - started:.2f} s")
        for number in range(200):
            equal((results[number]["stdout"], results[number]["exitCode"]),
                  (f"{number}\n", number % 7), f"command {number}")
        equal(agent.settled_files(), files, "descriptors")


@test
def nothing_is_left_after_many_commands():
    with Agent() as agent:
        def some(count):
            with connect(agent.address) as connection:
                for _ in range(count):
                    connection.send(ASK_TRUE)
                    equal(connection.response().status, 200, "status")
        some(100)
        files, memory = agent.settled_files(), agent.memory_kb()
        some(600)
        equal(agent.settled_files(), files, "descriptors")
        grown = agent.memory_kb() - memory
        assert grown <= memory * 0.1, f"grown by {grown} kB"
        wait_until(lambda: list(agent.children().values()) == ["burrow-worker"], "one worker")


@test
def stopping_leaves_no_process():
    with Agent() as agent:
        agent.run(f"setsid bash -c '{sleeper('stop')}' & true")
        wait_until(lambda: alive("stop"), "it runs")
        agent.stop()
        gone("stop")


@test
def an_agent_that_is_killed_takes_its_commands_along():
    with Agent() as agent:
        agent.expected_status = -signal.SIGKILL
        agent.run(f"setsid bash -c '{sleeper('killed')}' & true")
        wait_until(lambda: alive("killed"), "it runs")
        agent.signal(signal.SIGKILL)
        gone("killed")


# --- the entrypoint ------------------------------------------------------------------------------


@test
def an_entrypoint_that_fails_ends_the_agent_with_its_status():
    for command, status in (("exit 7", 7), ("kill -9 $$", 137), ("sleep 0.2; exit 1", 1)):
        with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
            wait = f"until [ -e {folder}/gate ]; do sleep 0.01; done; "
            with Agent(entrypoint=["/bin/sh", "-c", wait + command]) as agent:
                agent.expected_status = status
                open(f"{folder}/gate", "wb").close()
                equal(agent.wait(), status, f"status of {command}")


@test
def an_entrypoint_that_succeeds_leaves_the_agent_running():
    with Agent(entrypoint=["/bin/sh", "-c", "echo from the entrypoint"]) as agent:
        wait_until(lambda: "from the entrypoint" in agent.log(), "its output is the agent's")
        time.sleep(0.3)
        equal(agent.run("echo on")["stdout"], "on\n", "stdout")


@test
def an_entrypoint_that_is_missing_ends_the_agent_with_127():
    done = subprocess.run([program("burrow-agent"), "--listen", "127.0.0.1:0", "--",
                           "/no/such/program"], stdin=subprocess.DEVNULL, timeout=PATIENCE,
                          stderr=subprocess.DEVNULL, check=False)
    equal(done.returncode, 127, "status")


@test
def signals_are_the_entrypoints_and_then_its_end_is_ours():
    script = "trap 'echo got it; exit 0' TERM; trap 'echo hup' HUP; echo up; while :; do sleep 0.05; done"
    with Agent(entrypoint=["/bin/bash", "-c", script]) as agent:
        wait_until(lambda: "up" in agent.log(), "the entrypoint runs")
        agent.signal(signal.SIGHUP)
        wait_until(lambda: "hup" in agent.log(), "SIGHUP is passed on")
        agent.signal(signal.SIGTERM)
        equal(agent.wait(), 0, "status")
        assert "got it" in agent.log(), agent.log()


# --- running out ---------------------------------------------------------------------------------


@test
def running_out_of_descriptors_is_survived():
    with Agent() as agent:
        subprocess.run(["prlimit", "--pid", str(agent.pid), "--nofile=40:40"], check=True)
        held = []
        try:
            for _ in range(60):
                raw = socket.socket(socket.AF_UNIX)
                raw.settimeout(PATIENCE)
                raw.connect(agent.address.removeprefix("unix:"))
                held.append(Connection(raw))
            held[0].send(b"GET /api/ping HTTP/1.1\r\nHost: a\r\n\r\n")
            equal(held[0].response().status, 200, "ping of one that got in")
            body = b'{"command":"echo hi","sessionId":"__DISABLE_SESSION__"}'
            held[0].send(b"POST /api/execute HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                         % (len(body), body))
            error = json.loads(held[0].response().body)
            equal(error["code"], "COMMAND_EXECUTION_ERROR", "a command without descriptors")
        finally:
            for connection in held:
                connection.close()
        wait_until(lambda: agent.post("/api/execute", {"command": "echo hi",
                                                            "sessionId": NO_SESSION}).status == 200,
                   "commands run again")


@test
def a_program_that_uses_all_processes_does_not_silence_the_agent():
    """Only its own: the limit is of the user, so it is tried as one who has no other processes."""
    if os.getuid() != 0:
        return
    script = ("import os, resource\nresource.setrlimit(resource.RLIMIT_NPROC, (60, 60))\n"
              "os.setuid(54321)\n"
              "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n")
    with Agent() as agent:
        with agent.open_stream("python3 -c \"$S\"", env={"S": script}):
            time.sleep(0.5)
            for _ in range(20):
                equal(agent.get("/api/ping").status, 200, "ping")
        agent.wait_until_idle()
        wait_until(lambda: agent.activity()["background"] == 0, "the bomb is gone")


# --- what it costs -------------------------------------------------------------------------------


@test
def an_idle_agent_is_small():
    with Agent() as agent:
        size = os.stat(program("burrow-agent")).st_size
        worker = next(iter(agent.children()))
        own, workers = agent.anonymous_kb(), agent.anonymous_kb(worker)
        print(f"# {size // 1024} kB on disk (with symbols); idle {own} kB, worker {workers} kB")
        assert own < 300, f"{own} kB of memory"
        assert workers < 300, f"{workers} kB of memory"
        assert size < 6 * MIB, size


if __name__ == "__main__":
    with Agent() as SHARED:
        try:
            main()
        finally:
            leftovers = find_processes(MARK)
            for pid in leftovers:
                os.kill(pid, signal.SIGKILL)
