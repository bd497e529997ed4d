#!/usr/bin/python3
"""The agent alone on a socket: /ws/pty, the terminal of a session.

# timeout: 600
"""

import hashlib
import json
import os
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent, find_processes, own_time, runs_in_front  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402
from websocket_raw import BINARY, CLOSE, PING, PONG, TEXT, open_websocket  # noqa: E402

MIB = 1 << 20
RING = 256 * 1024
MESSAGES_MAX = 100000
HOME = {"HOME": "/"}  # where no .bashrc takes its time, or asks something
FULL_SCREEN = """
import curses, os
def show(screen):
    height, width = screen.getmaxyx()
    screen.addstr(0, 0, f"size {width}x{height} ")
    screen.addstr(1, 0, "pid" + "=" + str(os.getpid()))
    screen.refresh()
    while True:
        key = screen.getch()
        if key == curses.KEY_RESIZE:
            height, width = screen.getmaxyx()
            screen.clear()
            screen.addstr(3, 0, f"new {width}x{height} ")
            screen.refresh()
        elif key == curses.KEY_UP:
            screen.addstr(4, 0, "up" + "-was-pressed")
            screen.refresh()
        elif key == ord("q"):
            return
curses.wrapper(show)
"""


class Viewer:
    """One connection; `screen` is everything it was shown, `told` every text message."""

    def __init__(self, agent, session, query="&shell=bash", wait=True):
        self.ws = open_websocket(agent.address, f"/ws/pty?sessionId={session}{query}")
        self.ws.connection.socket.settimeout(60)
        self.screen, self.told, self.binary_messages, self.closed = b"", [], 0, None
        if wait:
            self.wait_for("ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ws.connection.close()

    def step(self):
        """Take one message; the document when it was text."""
        opcode, payload = self.ws.receive_message()
        if opcode == BINARY:
            self.binary_messages += 1
            self.screen += payload
            return None
        if opcode == PING:
            self.ws.send(PONG, payload)
            return None
        if opcode == CLOSE:
            self.closed = struct.unpack("!H", payload[:2])[0]
            raise EOFError(f"closed: {payload!r}")
        self.told.append(json.loads(payload))
        return self.told[-1]

    def wait_for(self, type_):
        for _ in range(MESSAGES_MAX):
            document = self.step()
            if document and document["type"] == type_:
                return document
        raise AssertionError(f"no {type_} among {MESSAGES_MAX} messages")

    def type(self, text):
        self.ws.send(BINARY, text.encode() if isinstance(text, str) else text)

    def tell(self, document):
        self.ws.send(TEXT, json.dumps(document).encode())

    def resize(self, columns, rows):
        self.tell({"type": "resize", "cols": columns, "rows": rows})

    def read_until(self, mark):
        """What was shown up to the mark; the rest stays."""
        mark = mark.encode() if isinstance(mark, str) else mark
        while mark not in self.screen:
            self.step()
        before, _, self.screen = self.screen.partition(mark)
        return before

    def run(self, command):
        """What a command shows. The shell echoes the line with quotes in the mark, so that only
        the output has it without."""
        self.type(f"{command}; echo do''ne-$?\n")
        shown = self.read_until("done-")
        self.read_until("\n")
        return shown.partition(b"\n")[2]

    def wait_for_close(self):
        try:
            while True:
                self.step()
        except EOFError:
            return self.closed


def fresh():
    """A session's name of its own for each test."""
    fresh.count = getattr(fresh, "count", 0) + 1
    return f"terminal-{fresh.count}"


def plain(viewer):
    """A shell that writes no prompt and does not edit lines: its output is exact."""
    viewer.type("PS1= PS2=; bind 'set enable-bracketed-paste off'; stty -echo; echo rea''dy\n")
    viewer.read_until("ready\r\n")
    return viewer


# --- a real terminal -----------------------------------------------------------------------------


@test
def the_shell_has_a_real_terminal():
    with Viewer(SHARED, fresh()) as viewer:
        assert b"/dev/pts/" in viewer.run("tty")
        assert b"xterm-256color" in viewer.run("echo $TERM")
        shown = viewer.run("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && : </dev/tty && echo control''ling")
        assert b"controlling" in shown, shown
        assert b"no job control" not in viewer.screen


@test
def the_size_is_that_of_the_query_then_of_resize():
    session = fresh()
    with Viewer(SHARED, session, "&cols=101&rows=33") as viewer:
        assert b"33 101" in viewer.run("stty size")
        viewer.resize(77, 22)
        assert b"22 77" in viewer.run("stty size")
        viewer.type("trap 'echo win''ch' WINCH; echo tr''ap\n")
        viewer.read_until("trap\r\n")
        viewer.resize(78, 22)
        viewer.type("\n")
        viewer.read_until("winch")
    with Viewer(SHARED, fresh()) as viewer:
        assert b"24 80" in viewer.run("stty size")


@test
def control_c_interrupts_what_runs_in_the_foreground():
    with Viewer(SHARED, fresh()) as viewer:
        plain(viewer).type(f"sleep {own_time(1000)}\n")
        wait_until(lambda: runs_in_front(f"sleep\0{own_time(1000)}"), "it runs")
        viewer.type("\x03")
        viewer.type("echo status-$?\n")
        viewer.read_until("status-130")


@test
def jobs_are_stopped_and_continued():
    with Viewer(SHARED, fresh()) as viewer:
        plain(viewer).type(f"sleep {own_time(301)}\n")
        wait_until(lambda: runs_in_front(f"sleep\0{own_time(301)}"), "it runs")
        viewer.type("\x1a")
        viewer.read_until("Stopped")
        viewer.type(f"sleep {own_time(300)} & echo jobs''-are; jobs; bg %1; fg %2\n")
        viewer.read_until("jobs-are")
        wait_until(lambda: runs_in_front(f"sleep\0{own_time(300)}"), "the second is in front")
        viewer.type("\x03")
        viewer.type("kill %1; echo do''ne\n")
        viewer.read_until("done")


@test
def a_full_screen_program_draws_and_takes_keys():
    with Viewer(SHARED, fresh(), "&cols=90&rows=30") as viewer:
        viewer.type(f"/usr/bin/python3 -c '{FULL_SCREEN}'\n")
        viewer.read_until("size 90x30")
        viewer.read_until("pid=")
        time.sleep(0.5)  # curses loses a resize that comes just before getch reads
        viewer.resize(100, 40)
        viewer.read_until("new 100x40")
        viewer.type("\x1bOA")
        viewer.read_until("up-was-pressed")
        viewer.type("q")
        assert b"back" in viewer.run("echo ba''ck")


@test
def less_pages_and_quits():
    if not os.path.exists("/usr/bin/less"):
        skip("less")
    with Viewer(SHARED, fresh(), "&cols=80&rows=24") as viewer:
        viewer.type("seq -f 'line-%g' 1000 | less\n")
        viewer.read_until("line-20\r\n")
        viewer.type(" ")
        viewer.read_until("line-40")
        viewer.type("G")
        viewer.read_until("line-1000")
        viewer.type("q")
        assert b"back" in viewer.run("echo ba''ck")


# --- viewers -------------------------------------------------------------------------------------


@test
def viewers_share_a_terminal_and_see_what_came_before():
    session = fresh()
    with Viewer(SHARED, session) as first:
        equal(first.told, [{"type": "ready"}], "messages of the first")
        plain(first).run("COLOUR=gre''en")
        first.type("echo for-''all\n")
        first.read_until("for-all")
        with Viewer(SHARED, session) as second:
            equal(second.binary_messages, 1, "replay in one message")
            assert b"for-all" in second.screen
            equal(second.told, [{"type": "ready"}], "messages of the second")
            second.type("echo $COLOUR-from-''second\n")
            second.read_until("green-from-second")
            first.read_until("green-from-second")
    with Viewer(SHARED, session) as third:  # nobody was there meanwhile
        assert b"green-from-second" in third.screen
        third.type("echo st''ill-$COLOUR\n")
        third.read_until("still-green")


@test
def a_terminal_works_on_while_nobody_looks():
    session = fresh()
    with Viewer(SHARED, session) as viewer:
        plain(viewer).type("sleep 0.3; echo work-''done; head -c 3000000 /dev/zero | tr '\\0' 'x';"
                           " echo; echo all-''of-it\n")
    time.sleep(0.6)
    with Viewer(SHARED, session) as viewer:
        if b"all-of-it" not in viewer.screen:
            viewer.read_until("all-of-it")
        assert len(viewer.screen) <= RING


@test
def a_terminal_is_activity_while_somebody_looks_or_something_runs():
    with Agent(environment=HOME) as agent:
        with Viewer(agent, "looked-at") as viewer:
            plain(viewer)
            time.sleep(0.3)
            found = agent.activity()
            equal((found["running"], found["idleMs"]), (1, 0), "at its prompt, with a viewer")
        wait_until(lambda: agent.activity()["running"] == 0, "an idle shell that nobody looks at")
        assert agent.activity()["idleMs"] < 5000, agent.activity()
        wait_until(lambda: agent.activity()["idleMs"] >= 300, "it stays idle")
        with tempfile.TemporaryDirectory() as folder:
            gate = os.path.join(folder, "gate")
            os.mkfifo(gate)
            with Viewer(agent, "looked-at") as viewer:
                equal(agent.activity()["running"], 1, "looked at again")
                viewer.type(f"cat {gate}\n")
                wait_until(lambda: find_processes(f"cat\0{gate}"), "its command runs")
            ended = time.monotonic()  # not before this: it is seen to be busy
            found = agent.activity()
            equal((found["running"], found["idleMs"]), (1, 0), "a command in the foreground")
            with open(gate, "w", encoding="ascii"):
                pass
            wait_until(lambda: agent.activity()["running"] == 0, "its end")
        found, since = agent.activity(), (time.monotonic() - ended) * 1000
        assert found["idleMs"] <= since + 100, f"idle for {found} though it ended {since} ms ago"
        with Viewer(agent, "looked-at") as viewer:
            viewer.type("while :; do echo x; for ((i = 0; i < 2000; i++)); do :; done; done\n")
            viewer.read_until("x\r\nx\r\n")
        began = time.monotonic()
        time.sleep(1)
        wait_until(lambda: agent.activity()["idleMs"] < (time.monotonic() - began) * 1000 - 500,
                   "a loop that writes is not idle")


@test
def a_terminal_starts_where_its_session_is():
    session = fresh()
    SHARED.run("cd /usr/share; export PLACE=here", sessionId=session)
    with Viewer(SHARED, session) as viewer:
        shown = viewer.run("echo $PLACE-at-$PWD")
        assert b"here-at-/usr/share" in shown, shown


@test
def a_session_that_is_busy_does_not_keep_its_terminal_waiting():
    session = fresh()
    SHARED.run("cd /usr; export SEEN=yes", sessionId=session)
    with SHARED.open_stream("sleep 1000", sessionId=session):
        started = time.monotonic()
        with Viewer(SHARED, session) as viewer:
            assert 1 < time.monotonic() - started, "it waited a moment for the session"
            shown = viewer.run("echo at-$PWD")
            assert b"at-/usr" in shown, shown


@test
def fifty_megabytes_arrive_whole_at_a_viewer_that_reads():
    with Viewer(SHARED, fresh()) as viewer:
        plain(viewer)
        viewer.type("stty -opost; head -c 52428800 /dev/zero | tr '\\0' 'z'; stty opost; "
                    "echo en''d\n")
        count, tail = 0, b""
        while b"end" not in tail:
            viewer.screen = b""
            viewer.step()
            count += viewer.screen.count(b"z")
            tail = (tail + viewer.screen)[-64:]
        equal(count, 50 * MIB, "bytes shown")
        assert not [told for told in viewer.told if told["type"] == "skipped"], viewer.told
        assert SHARED.memory_kb() < 40000, SHARED.memory_kb()


@test
def a_viewer_that_does_not_read_is_left_behind():
    session = fresh()
    with Viewer(SHARED, session) as viewer, Viewer(SHARED, session) as stuck:
        plain(viewer)
        viewer.type("head -c 20971520 /dev/zero | tr '\\0' 'y'; echo; echo en''d\n")
        count, tail = 0, b""
        while b"end" not in tail:
            viewer.screen = b""
            viewer.step()
            count += viewer.screen.count(b"y")
            tail = (tail + viewer.screen)[-64:]
        equal(count, 20 * MIB, "bytes for the one who reads")
        assert SHARED.memory_kb() < 40000, SHARED.memory_kb()
        while b"end" not in stuck.screen[-64:]:
            stuck.screen = stuck.screen[-64:]
            stuck.step()
        skipped = sum(told["bytes"] for told in stuck.told if told["type"] == "skipped")
        assert skipped > 10 * MIB, skipped
        stuck.type("echo he''re\n")  # and it is a viewer like any other again
        stuck.read_until("here")


@test
def a_long_paste_arrives_whole():
    with Viewer(SHARED, fresh()) as viewer:
        plain(viewer).type("echo pas''te; md5sum; echo pas''ted\n")
        viewer.read_until("paste\r\n")
        text = b"0123456789" * 10 + b"\n"
        for _ in range(20):
            viewer.ws.send(BINARY, text * 1000)
        viewer.type("\x04")
        shown = viewer.read_until("pasted")
        assert hashlib.md5(text * 20000).hexdigest().encode() in shown, shown[-200:]


@test
def input_that_nobody_reads_does_not_grow():
    session = fresh()
    with Viewer(SHARED, session) as viewer, Viewer(SHARED, session) as other:
        plain(viewer).type("stty raw; echo sleep''ing; sleep 2; head -c 8388608 >/dev/null; "
                           "stty sane; echo aw''ake\n")
        viewer.read_until("sleeping")
        before = SHARED.memory_kb()
        paste = threading.Thread(target=viewer.ws.send, args=(BINARY, b"x" * 8 * MIB))
        paste.start()
        time.sleep(0.5)
        other.ws.send(PING, b"alive")
        while True:
            final, opcode, payload = other.ws.receive()
            if opcode == PONG:
                equal((final, payload), (True, b"alive"), "pong")
                break
        assert SHARED.memory_kb() - before < 4000, (before, SHARED.memory_kb())
        paste.join()
        viewer.read_until("awake")


# --- words and ends ------------------------------------------------------------------------------


@test
def wrong_control_messages_are_answered_with_an_error():
    with Viewer(SHARED, fresh()) as viewer:
        for text in (b"not json", b"[]", b"{}", b'{"type":"what"}', b'"resize"', b"x" * 100000):
            viewer.ws.send(TEXT, text)
            equal(viewer.wait_for("error"),
                  {"type": "error", "message": "Invalid control message"}, repr(text[:20]))
        for columns, rows in ((0, 24), (80, -1), (80, 100000), ("80", 24), (None, 24), (1.5, 2)):
            viewer.tell({"type": "resize", "cols": columns, "rows": rows})
            error = viewer.wait_for("error")
            assert error["message"].startswith("Invalid control message"), error
        assert b"24 80" in viewer.run("stty size")


@test
def requests_without_a_session_or_with_a_wrong_size_are_refused():
    for query in ("", "?sessionId=", "?sessionId=%20", "?sessionId=a&cols=0",
                  "?sessionId=a&rows=-1", "?sessionId=a&cols=99999", "?sessionId=a&cols=x",
                  "?sessionId=" + "a" * 300):
        response = SHARED.get("/ws/pty" + query)
        equal(response.status, 400, f"status of '{query}'")
        assert response.headers["content-type"].startswith("text/plain"), response
    equal(SHARED.get("/ws/pty?sessionId=a").status, 426, "status without an upgrade")


@test
def the_end_of_the_shell_is_told_to_everybody():
    session = fresh()
    with Viewer(SHARED, session) as first, Viewer(SHARED, session) as second:
        first.type("exit 7\n")
        for viewer in (first, second):
            equal(viewer.wait_for("exit"), {"type": "exit", "code": 7}, "exit")
            equal(viewer.wait_for_close(), 1000, "close code")
    with Viewer(SHARED, session) as again:  # a new one, with nothing to replay
        equal(again.binary_messages, 0, "replay")
        plain(again).type("kill -9 $$\n")
        equal(again.wait_for("exit"), {"type": "exit", "code": 137, "signal": "SIGKILL"}, "exit")
        equal(again.wait_for_close(), 1000, "close code")


@test
def output_before_the_end_is_not_lost():
    with Viewer(SHARED, fresh()) as viewer:
        plain(viewer).type("head -c 200000 /dev/zero | tr '\\0' 'q'; exit\n")
        viewer.wait_for("exit")
        equal(viewer.screen.count(b"q"), 200000, "bytes shown")


@test
def a_shell_that_cannot_be_started_is_an_error():
    with Viewer(SHARED, fresh(), "&shell=/no/such/shell", wait=False) as viewer:
        error = viewer.wait_for("error")
        assert "No such file" in error["message"], error
        equal(viewer.wait_for_close(), 1011, "close code")


@test
def another_shell_may_be_asked_for():
    with Viewer(SHARED, fresh(), "&shell=/bin/sh") as viewer:
        viewer.type("echo shell-is-$0\n")
        viewer.read_until("shell-is-/bin/sh")


@test
def deleting_the_session_ends_its_terminal():
    session = fresh()
    SHARED.run("true", sessionId=session)
    with Viewer(SHARED, session) as viewer:
        plain(viewer).type(f"sleep {own_time(3141593)} & echo st''arted\n")
        viewer.read_until("started")
        response = SHARED.post("/api/session/delete", {"sessionId": session})
        equal(response.status, 200, "status")
        equal(viewer.wait_for("exit"), {"type": "exit", "code": 137, "signal": "SIGKILL"}, "exit")
        equal(viewer.wait_for_close(), 1000, "close code")
    wait_until(lambda: not find_processes(own_time(3141593)), "the job of the terminal is gone")


@test
def there_may_be_64_terminals():
    with Agent(environment=HOME) as agent:
        viewers = [Viewer(agent, f"s{number}", "&shell=/bin/sh") for number in range(64)]
        response = agent.get("/ws/pty?sessionId=one-more")
        equal(response.status, 409, "status")
        equal(json.loads(response.body)["code"], "RESOURCE_BUSY", "code")
        with Viewer(agent, "s5"):
            pass  # one that is there may have more viewers
        viewers[0].type("exit\n")
        viewers[0].wait_for_close()
        with Viewer(agent, "one-more", "&shell=/bin/sh"):
            pass
        for viewer in viewers:
            viewer.ws.connection.close()


with Agent(environment=HOME) as SHARED:
    main()
