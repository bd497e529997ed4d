#!/usr/bin/python3
"""burrow shell and burrow exec -t: a person at a terminal, against a real daemon.

# timeout: 600
"""

import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import own_time, runs_in_front  # noqa: E402
from cli import Terminal, good, plane, run  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

PROMPT = b"# "


def sessions():
    return plane().call("GET", "/burrow/v1/sandboxes/demo/sessions")["data"]


def sized(at):
    """What the terminal there says of its size."""
    at.write(b"echo i''s-$(stty size)-\r")  # the echo of the line itself does not match
    at.read_until(b"is-")
    return at.read_until(b"-")


@test
def a_shell_gives_a_prompt_and_passes_on_its_status():
    plane()
    good("create", "demo")
    with Terminal("shell", "demo") as at:
        at.read_until(PROMPT)
        at.write(b"echo $((6 * 7)); tty\r")
        shown = at.read_until(b"/dev/pts/")
        assert b"42\r\n" in shown, shown
        at.write(b"exit 9\r")
        equal(at.wait(), 9, "status")
        assert at.is_restored(), "the terminal is as it was"
    equal(sessions(), [], "its session went with it")


@test
def the_terminal_has_our_size_and_follows_it():
    with Terminal("shell", "demo", columns=101, rows=31) as at:
        at.read_until(PROMPT)
        wait_until(lambda: sized(at) == b"31 101-", "the first size")
        at.resize(77, 22)
        at.process.send_signal(signal.SIGWINCH)
        wait_until(lambda: sized(at) == b"22 77-", "the new size")
        at.write(b"exit\r")
        at.wait()


@test
def ctrl_c_reaches_the_command_there_and_not_us():
    with Terminal("shell", "demo") as at:
        at.read_until(PROMPT)
        at.write(f"sleep {own_time(1000)}\r".encode())
        wait_until(lambda: runs_in_front(f"sleep\0{own_time(1000)}"), "the command runs")
        at.write(b"\x03")
        at.read_until(b"^C")
        at.write(b"exit 5\r")
        equal(at.wait(), 5, "status")


@test
def a_lost_connection_is_made_again_with_what_was_shown():
    with Terminal("shell", "demo") as at:
        at.read_until(PROMPT)
        at.write(b"MARK=before; echo shown-$MARK\r")
        at.read_until(b"shown-before")
        old = plane().daemon_pid
        os.kill(old, signal.SIGKILL)
        at.read_until(b"trying again")
        at.read_until(b"\x1b[2J")
        at.read_until(b"shown-before")
        at.write(b"echo still-$MARK\r")
        at.read_until(b"still-before")
        at.write(b"exit\r")
        equal(at.wait(), 0, "status")
    wait_until(plane().is_ready, "the daemon is back")


@test
def a_named_session_is_shared_and_stays():
    with Terminal("shell", "demo", "--session", "pair") as first:
        first.read_until(PROMPT)
        first.write(b"echo from-$((1 + 1))\r")
        first.read_until(b"from-2")
        with Terminal("shell", "demo", "-s", "pair") as second:
            second.read_until(b"from-2")
            second.write(b"echo both-$((1 + 2))\r")
            second.read_until(b"both-3")
            first.read_until(b"both-3")
            second.process.send_signal(signal.SIGTERM)
            second.read_until(b"burrow shell demo --session pair")
            equal(second.wait(), 0, "status of leaving")
            assert second.is_restored()
        first.write(b"exit 3\r")
        equal(first.wait(), 3, "status")


@test
def input_from_a_pipe_ends_the_shell_at_its_end():
    done = run("shell", "demo", stdin=b"echo piped-$((2 + 3))\n")
    equal(done.status, 0, f"status: {done.err}")
    assert b"piped-5" in done.out, done.out
    equal(run("shell", "demo", stdin=b"exit 6\n").status, 6, "status of exit")


@test
def a_sleeping_sandbox_is_woken():
    good("sleep", "demo")
    with Terminal("shell", "demo") as at:
        at.read_until(PROMPT)
        equal(json.loads(good("ls", "--json"))[0]["status"], "running", "status")
        at.write(b"exit\r")
        at.wait()


@test
def a_shell_where_there_is_none_is_refused():
    done = run("shell", "dmo")
    equal(done.status, 125, "status")
    assert "did you mean 'demo'?" in done.err, done.err
    equal(run("shell", "demo", "--json").status, 125, "for programs")


@test
def exec_at_a_terminal_is_one():
    with Terminal("exec", "-t", "demo", "sh", "-c", "tty; stty size; read x; exit $x") as at:
        shown = at.read_until(b"24 80\r\n")
        assert b"/dev/pts/" in shown, shown
        at.write(b"4\r")
        equal(at.wait(), 4, "status")
        assert at.is_restored()


main()
