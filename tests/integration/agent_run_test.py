#!/usr/bin/python3
"""The agent alone on a socket: /burrow/run, one interactive command over a WebSocket.

# timeout: 600
"""

import json
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent, find_processes, own_time, runs_in_front  # noqa: E402
from http_raw import get, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import BINARY, CLOSE, TEXT, open_websocket  # noqa: E402

MIB = 1 << 20
WINDOW = 256 * 1024
STDIN, STDOUT, STDERR = 0, 1, 2


class Run:
    """One command; what came of its output, and the messages, in order."""

    def __init__(self, agent, argv=None, **fields):
        self.ws = open_websocket(agent.address, "/burrow/run")
        self.ws.connection.socket.settimeout(60)
        self.window, self.output, self.told = WINDOW, {STDOUT: b"", STDERR: b""}, []
        if argv is not None:
            fields["argv"] = argv
        self.tell(fields)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.connection.close()

    def tell(self, document):
        self.ws.send(TEXT, json.dumps(document).encode())

    def write(self, data):
        """All of it, waiting for the window where that is needed."""
        while data:
            while not self.window:
                self.step()
            piece, data = data[:min(self.window, 65536)], data[min(self.window, 65536):]
            self.window -= len(piece)
            self.ws.send(BINARY, bytes([STDIN]) + piece)

    def eof(self):
        self.tell({"type": "eof"})

    def step(self, keep=True):
        """Take one message; the document when it was text."""
        opcode, payload = self.ws.receive_message()
        if opcode == BINARY:
            if keep:
                self.output[payload[0]] += payload[1:]
            return None
        if opcode == CLOSE:
            raise EOFError(f"closed: {payload!r}")
        document = json.loads(payload)
        self.told.append(document)
        if document["type"] == "window":
            self.window += document["bytes"]
        return document

    def wait_for(self, type_):
        while True:
            document = self.step()
            if document and document["type"] == type_:
                return document

    def read_until(self, mark):
        while mark not in self.output[STDOUT]:
            self.step()
        before, _, self.output[STDOUT] = self.output[STDOUT].partition(mark)
        return before

    def end(self):
        """The last message: exit or error."""
        while True:
            document = self.step()
            if document and document["type"] in ("exit", "error"):
                return document


def run(argv, stdin=b"", **fields):
    """(last message, stdout, stderr) of a command that is given this stdin."""
    with Run(SHARED, argv, **fields) as command:
        command.write(stdin)
        command.eof()
        return command.end(), command.output[STDOUT], command.output[STDERR]


def shell(script, **fields):
    return run(["bash", "-c", script], **fields)


# --- one command ---------------------------------------------------------------------------------


@test
def output_and_status_are_exact():
    equal(shell("echo out; echo err >&2; exit 3"),
          ({"type": "exit", "code": 3}, b"out\n", b"err\n"), "result")
    for status in (0, 1, 126, 127, 255):
        equal(run(None, command=f"exit {status}")[0], {"type": "exit", "code": status}, "status")
    for number in (1, 2, 9, 11, 15):
        equal(shell(f"kill -{number} $$")[0],
              {"type": "exit", "signal": signal.Signals(number).name[3:]}, "signal")


@test
def the_start_is_told_first_with_the_pid():
    with Run(SHARED, ["bash", "-c", "echo $$"]) as command:
        command.end()
        equal(command.told[0], {"type": "started", "pid": int(command.output[STDOUT])}, "started")


@test
def all_bytes_pass_both_ways():
    data = bytes(range(256)) * 5000
    end, out, err = run(["cat"], stdin=data)
    equal((end, out == data, err), ({"type": "exit", "code": 0}, True, b""), "cat")
    end, out, err = shell("cat >&2", stdin=data)
    equal((end["code"], out, err == data), (0, b"", True), "stderr")


@test
def arguments_environment_and_directory_are_the_commands_own():
    end, out, _ = run(["bash", "-c", 'printf "%s|" "$@" "$A" "$PWD" "${LANG-none}"', "name", "x y",
                       ""], cwd="/usr", env={"A": "b c", "LANG": None})
    equal((end["code"], out), (0, b"x y||b c|/usr|none|"), "seen")


@test
def what_cannot_be_run_says_why():
    for fields, stage, number in (({"argv": ["/no/such"]}, "program", "ENOENT"),
                                  ({"argv": ["no-such-program"]}, "program", "ENOENT"),
                                  ({"argv": ["/etc/passwd"]}, "program", "EACCES"),
                                  ({"argv": ["true"], "cwd": "/no/such"}, "directory", "ENOENT")):
        with Run(SHARED, **fields) as command:
            end = command.end()
            equal((end["type"], end["stage"], end["errno"]), ("error", stage, number), str(fields))
            equal(len(command.told), 1, "messages")


@test
def a_request_that_is_wrong_is_refused_with_a_reason():
    for fields in ({}, {"argv": []}, {"argv": [""]}, {"argv": ["a"], "command": "b"},
                   {"command": " "}, {"argv": ["a"], "timeout": -1}, {"argv": ["a"], "cwd": ""},
                   {"argv": ["a"], "terminal": {"columns": 0, "rows": 1}},
                   {"argv": ["a"], "terminal": {"columns": 1, "rows": 1, "name": "../x"}},
                   {"argv": ["a"], "env": {"a=b": "c"}}, {"argv": ["a"], "colour": 1}):
        with Run(SHARED, **fields) as command:
            end = command.end()
            equal((end["type"], end["stage"]), ("error", "request"), str(fields))
            equal(command.ws.receive_close(), 1008, "close code")
    with open_websocket(SHARED.address, "/burrow/run") as ws:
        ws.send(BINARY, b"\0early")
        ws.receive_message()
        equal(ws.receive_close(), 1008, "input before the request")
    equal(get(SHARED.address, "/burrow/run").status, 426, "without an upgrade")


@test
def a_wrong_order_ends_the_command():
    for order in ({"type": "dance"}, {"type": "signal", "signal": "NO"}, {"type": "resize"}, {}):
        with Run(SHARED, ["sleep", own_time(4710)]) as command:
            command.wait_for("started")
            command.tell(order)
            equal(command.end()["stage"], "request", str(order))
            equal(command.ws.receive_close(), 1008, "close code")
    wait_until(lambda: not find_processes(own_time(4710)), "the commands end")


# --- back-pressure -------------------------------------------------------------------------------


@test
def a_gigabyte_passes_in_flat_memory():
    before = SHARED.memory_kb("VmHWM")
    received = 0
    with Run(SHARED, ["head", "-c", str(1 << 30), "/dev/zero"]) as command:
        while True:
            opcode, payload = command.ws.receive_message()
            if opcode == BINARY:
                received += len(payload) - 1
            elif json.loads(payload)["type"] == "exit":
                break
    equal(received, 1 << 30, "bytes")
    grown = SHARED.memory_kb("VmHWM") - before
    assert grown < 4096, f"memory grew by {grown} kB"


@test
def input_waits_for_the_window():
    before = SHARED.memory_kb("VmHWM")
    with Run(SHARED, ["wc", "-c"]) as command:
        piece = b"x" * 65536
        for _ in range(100 * MIB // len(piece)):
            command.write(piece)
        command.eof()
        equal((command.end()["code"], command.output[STDOUT]), (0, b"%d\n" % (100 * MIB)), "count")
    grown = SHARED.memory_kb("VmHWM") - before
    assert grown < 4096, f"memory grew by {grown} kB"


@test
def more_than_the_window_is_refused():
    with Run(SHARED, ["sleep", own_time(4711)]) as command:
        command.wait_for("started")
        command.write(b"x" * WINDOW)
        command.ws.send(BINARY, b"\0" + b"x" * 70000)
        equal(command.end()["stage"], "request", "stage")
        equal(command.ws.receive_close(), 1008, "close code")
    wait_until(lambda: not find_processes(own_time(4711)), "the command ends")


@test
def orders_pass_input_that_nobody_reads():
    with Run(SHARED, ["sleep", "4711"]) as command:
        command.wait_for("started")
        command.write(b"x" * WINDOW)
        command.tell({"type": "signal", "signal": "TERM"})
        equal(command.end(), {"type": "exit", "signal": "TERM"}, "end")


@test
def a_slow_client_makes_the_command_wait():
    with Run(SHARED, ["bash", "-c", "while printf %65536d 1; do echo x >&3; done 3>/tmp/"
                      f"burrow-run-test-{os.getpid()}"]) as command:
        path = f"/tmp/burrow-run-test-{os.getpid()}"
        try:
            command.wait_for("started")
            def written():
                time.sleep(0.5)
                return os.path.getsize(path)
            first = wait_until(lambda: (size := written()) and size == written() and size, "it stands still")
            assert 2 < first < 200, first
            for _ in range(100):
                command.step(keep=False)
            wait_until(lambda: os.path.getsize(path) > first, "the command goes on")
        finally:
            os.unlink(path)


@test
def the_client_learns_that_nobody_reads_its_input():
    with Run(SHARED, ["bash", "-c", "exec <&-; sleep 2; exit 5"]) as command:
        command.wait_for("started")
        command.write(b"x" * WINDOW)
        equal(command.wait_for("closed"), {"type": "closed", "channel": 0}, "closed")
        equal(command.end(), {"type": "exit", "code": 5}, "end")


@test
def an_output_that_nobody_wants_is_a_closed_pipe():
    script = "trap '' PIPE; while echo x 2>/dev/null; do :; done; echo failed >&2; exit 6"
    with Run(SHARED, ["bash", "-c", script]) as command:
        command.wait_for("started")
        command.tell({"type": "close", "channel": 1})
        equal((command.end(), command.output[STDERR]),
              ({"type": "exit", "code": 6}, b"failed\n"), "EPIPE")
    with Run(SHARED, ["yes"]) as command:
        command.tell({"type": "close", "channel": 1})
        equal(command.end(), {"type": "exit", "signal": "PIPE"}, "SIGPIPE")


# --- ends ----------------------------------------------------------------------------------------


TREE = "(setsid {0} & {0} & wait) & {0}".format(f"sleep {own_time(4712)}")


@test
def a_timeout_kills_the_whole_tree():
    began = time.monotonic()
    end, _, _ = shell(TREE, timeout=300)
    equal(end, {"type": "exit", "signal": "KILL", "timedOut": True}, "end")
    assert 0.25 < time.monotonic() - began, time.monotonic() - began
    equal(find_processes(own_time(4712)), [], "left")


@test
def a_client_that_leaves_takes_the_tree_along():
    for leave in (lambda ws: ws.connection.close(),
                  lambda ws: ws.send(CLOSE, b"\x03\xe8")):
        with Run(SHARED, ["bash", "-c", TREE]) as command:
            command.wait_for("started")
            wait_until(lambda: len(find_processes(own_time(4712))) >= 3, "the tree is there")
            leave(command.ws)
            wait_until(lambda: not find_processes(own_time(4712)), "the tree is gone")
    SHARED.wait_until_idle()


@test
def a_client_that_leaves_while_its_input_is_stuck_takes_the_command_along():
    with Run(SHARED, ["sleep", own_time(4713)]) as command:
        command.wait_for("started")
        command.write(b"x" * WINDOW)
    wait_until(lambda: not find_processes(own_time(4713)), "the command is gone")


@test
def signals_reach_the_commands_group():
    script = "trap 'echo got; exit 7' INT USR1; echo ready; while :; do sleep 0.01; done"
    for name in ("INT", "USR1"):
        with Run(SHARED, ["bash", "-c", script]) as command:
            command.read_until(b"ready\n")
            command.tell({"type": "signal", "signal": name})
            equal((command.end(), command.output[STDOUT]),
                  ({"type": "exit", "code": 7}, b"got\n"), name)


@test
def output_of_the_last_moment_is_not_lost():
    for _ in range(20):
        end, out, _ = shell("head -c 300000 /dev/zero; exit 4")
        equal((end["code"], len(out)), (4, 300000), "end")


# --- terminals -----------------------------------------------------------------------------------


TERMINAL = {"columns": 101, "rows": 33, "name": "vt100"}


@test
def a_terminal_is_one_and_has_its_size_and_name():
    end, out, err = run(["bash", "-c", "tty; stty size; echo $TERM; [ -t 0 -a -t 1 -a -t 2 ]"],
                        terminal=TERMINAL)
    lines = out.decode().split("\r\n")
    equal((end["code"], lines[1:3], err), (0, ["33 101", "vt100"], b""), "seen")
    assert lines[0].startswith("/dev/pts/"), lines


@test
def a_terminal_controls_its_session():
    end, out, _ = run(["bash", "-c", "echo hello >/dev/tty; ps -o tpgid= -p $$; echo $$"],
                      terminal=TERMINAL)
    lines = [line.strip() for line in out.decode().split("\r\n")]
    equal((end["code"], lines[0], lines[1]), (0, "hello", lines[2]), "foreground group")


@test
def keys_send_signals_to_the_foreground():
    with Run(SHARED, ["bash", "--norc", "-i"], env={"PS1": "ready> "}, terminal=TERMINAL) as shell_:
        shell_.read_until(b"ready> ")
        shell_.write(f"sleep {own_time(4714)}\r".encode())
        wait_until(lambda: runs_in_front(own_time(4714)), "the job runs")
        shell_.write(b"\x03")
        shell_.read_until(b"ready> ")
        equal(find_processes(own_time(4714)), [], "interrupted")
        shell_.write(f"sleep {own_time(4714)}\r".encode())
        wait_until(lambda: runs_in_front(own_time(4714)), "the job runs")
        shell_.write(b"\x1a")
        shell_.read_until(b"Stopped")
        shell_.read_until(b"ready> ")
        shell_.write(b"jobs; kill %1; fg\r")
        shell_.read_until(b"Stopped")
        shell_.write(b"exit 9\r")
        equal(shell_.end(), {"type": "exit", "code": 9}, "end")


@test
def signals_as_orders_reach_the_foreground_job():
    with Run(SHARED, ["bash", "--norc", "-i"], env={"PS1": "ready> "}, terminal=TERMINAL) as shell_:
        shell_.read_until(b"ready> ")
        shell_.write(f"sleep {own_time(4715)}; echo status $?\r".encode())
        shell_.read_until(b"$?")
        wait_until(lambda: runs_in_front(own_time(4715)), "the job runs")
        shell_.tell({"type": "signal", "signal": "INT"})
        shell_.read_until(b"ready> ")
        equal(find_processes(own_time(4715)), [], "interrupted")
        shell_.write(b"exit 0\r")
        equal(shell_.end(), {"type": "exit", "code": 0}, "end")


@test
def a_resize_is_seen_at_once():
    script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.01; done"
    with Run(SHARED, ["bash", "-c", script], terminal=TERMINAL) as command:
        command.read_until(b"ready")
        command.tell({"type": "resize", "columns": 50, "rows": 20})
        command.end()
        assert b"20 50" in command.output[STDOUT], command.output


@test
def the_end_of_input_is_the_terminals_character():
    for text in (b"a line\n", b"half a line"):
        end, out, _ = run(["cat"], stdin=text, terminal=TERMINAL)
        equal(end, {"type": "exit", "code": 0}, "end")
        assert out.count(text.strip()) == 2, out  # its echo, and cat's


@test
def a_program_may_close_its_terminal_and_open_it_again():
    end, out, _ = run(["bash", "-c", "exec <&- >&- 2>&-; sleep 0.2; exec >/dev/tty; echo back"],
                      terminal=TERMINAL)
    equal((end.get("code"), out), (0, b"back\r\n"), "output")


@test
def output_at_a_terminal_is_whole():
    for _ in range(5):
        end, out, _ = run(["bash", "-c", "stty raw -echo; head -c 300000 /dev/zero"],
                          terminal=TERMINAL)
        equal((end.get("code"), len(out)), (0, 300000), "end")


@test
def a_client_that_leaves_takes_a_terminals_jobs_along():
    with Run(SHARED, ["bash", "-c", "set -m; nohup {0} & setsid {0} & {0}".format(f"sleep {own_time(4716)}")],
             terminal=TERMINAL) as command:
        command.wait_for("started")
        wait_until(lambda: len(find_processes(own_time(4716))) >= 3, "the jobs are there")
    wait_until(lambda: not find_processes(own_time(4716)), "the jobs are gone")


@test
def a_hundred_commands_leave_nothing_behind():
    before = SHARED.open_files()
    for number in range(100):
        run(["true"], **({"terminal": TERMINAL} if number % 2 else {}))
    SHARED.wait_until_idle()
    wait_until(lambda: SHARED.open_files() <= before + 1, "descriptors are closed")


# --- the environment -----------------------------------------------------------------------------


def put(agent, document):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return request(agent.address, "PUT", "/burrow/environment", body=body)


@test
def the_environment_of_later_commands_can_be_set():
    with Agent(environment={"KEPT": "k", "GONE": "g"}) as agent:
        response = put(agent, {"env": {"NEW": "a b", "GONE": None, "PATH": "/usr/bin:/bin"}})
        equal((response.status, json.loads(response.body)["success"]), (200, True), "answer")
        equal(agent.run("echo $NEW-$KEPT-${GONE-none}-$PATH")["stdout"],
              "a b-k-none-/usr/bin:/bin\n", "execute")
        with Run(agent, ["bash", "-c", "echo $NEW"], env={"NEW": "own"}) as command:
            command.end()
            equal(command.output[STDOUT], b"own\n", "a command's own come first")
        equal(put(agent, {"env": {"NEW": None}}).status, 200, "removal")
        equal(agent.run("echo ${NEW-none}")["stdout"], "none\n", "removed")


@test
def a_wrong_environment_changes_nothing():
    with Agent() as agent:
        for document in ({"env": []}, {"env": {"A": 1}}, {"env": {"A": "x", "B-C": "y"}}, [],
                         {"env": {"": "x"}}, {"other": {}}, b"{", {"env": {"A": "a\0b"}},
                         {"env": {f"A{i}": "" for i in range(5000)}},
                         {"env": {"A": "x" * (MIB + 1)}}):
            response = put(agent, document)
            equal((response.status, json.loads(response.body)["code"]),
                  (400, "VALIDATION_FAILED"), str(document)[:40])
        equal(agent.run("echo ${A-none}")["stdout"], "none\n", "still")
        for i in range(3):
            put(agent, {"env": {f"A{i}": "x" * (MIB // 2 - 100)}})
        response = put(agent, {"env": {"A9": "x" * (MIB // 2)}})
        equal(response.status, 400, "the whole is bounded")


@test
def the_handshake_names_what_is_new():
    names = json.loads(SHARED.get("/burrow/handshake").body)["capabilities"]
    assert {"run", "environment"} <= set(names), names
    assert re.fullmatch(r"[a-z.0-9 -]+", " ".join(names)), names


with Agent() as SHARED:
    main()
