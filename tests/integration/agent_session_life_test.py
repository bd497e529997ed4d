#!/usr/bin/python3
"""Sessions beside each other: order, much output, and the ends of shells.

# timeout: 600
"""

import json
import os
import select
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent, find_processes, own_time, processes  # noqa: E402
from agent_sessions import (Later, create, delete, fails, fresh, is_terminated, out,  # noqa: E402
                            run)
from http_raw import connect, request  # noqa: E402
from program import program, wait_until  # noqa: E402
from shared import SHARED  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MIB = 1 << 20
MARK = f"burrow-session-{os.getpid()}"


# --- order ---------------------------------------------------------------------------------------


@test
def commands_of_a_session_wait_for_each_other_and_sessions_do_not():
    with Agent() as agent:
        go = os.path.join(agent.folder, "go")
        first = Later(run, "one", f"until [ -e {go} ]; do sleep 0.05; done; X=1; echo first", agent)
        wait_until(lambda: agent.activity()["running"], "the first one runs")
        second = Later(run, "one", "echo second $X", agent)
        # Only now may the first one end: a session that waited for another would wait for ever.
        equal(out("two", "echo other", agent), "other", "another session")
        open(go, "w", encoding="ascii").close()
        equal(second.get()["stdout"], "second 1", "second")
        equal(first.get()["stdout"], "first", "first")
        waiting = [Later(run, "one", f"L=${{L}}{i}; echo $L", agent) for i in range(10)]
        lengths = sorted(len(later.get()["stdout"]) for later in waiting)
        equal(lengths, list(range(1, 11)), "each once, one at a time")


@test
def too_many_that_wait_are_refused():
    with Agent() as agent:
        connections = []
        try:
            body = f'{{"command":"sleep {own_time(600)}","sessionId":"one"}}'.encode()
            for number in range(258):
                if number == 1:  # until it runs the first one waits, too
                    wait_until(lambda: find_processes(own_time(600)), "the first to run")
                connection = connect(agent.address)
                connection.send(b"POST /api/execute HTTP/1.1\r\nHost: a\r\n"
                                b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                connections.append(connection)
            # Which of them comes last is the agent's business.
            sockets = {connection.socket: connection for connection in connections}
            readable = select.select(list(sockets), [], [], 30)[0]
            equal(len(readable), 1, "answered before any command ended")
            refused = sockets[readable[0]]
            equal(json.loads(refused.response().body)["code"], "RESOURCE_BUSY", "the last")
            equal(delete("one", agent).status, 200, "delete")
            for connection in connections:
                if connection is not refused:
                    equal(connection.response().status, 410, "those before")
        finally:
            for connection in connections:
                connection.close()


@test
def a_timeout_is_an_error_and_the_command_goes_on():
    session, name = fresh(), f"{MARK}-timeout"
    marker = os.path.join(SHARED.folder, name)
    status, code, message, context = fails(session, f"sleep 1; touch {marker}", timeoutMs=200)
    equal((status, code), (500, "COMMAND_EXECUTION_ERROR"), "error")
    assert message.endswith("Command timeout after 200ms"), message
    equal(context["command"], f"sleep 1; touch {marker}", "context")
    assert not os.path.exists(marker)
    equal(out(session, "echo next"), "next", "the next waits")
    assert os.path.exists(marker), "it went on"
    create(fresh() + "t", commandTimeoutMs=150)
    for wanted, setting in ((f"{100}ms", {"timeoutMs": 100}), (f"{150}ms", {})):
        equal(create(session + wanted, commandTimeoutMs=150).status, 200, "create")
        assert wanted in fails(session + wanted, "sleep 9", **setting)[2], wanted
        delete(session + wanted)
    with Agent(environment={"COMMAND_TIMEOUT_MS": "250"}) as agent:
        assert "after 250ms" in fails("x", "sleep 9", agent)[2]
        delete("x", agent)


@test
def deleting_a_session_ends_what_blocks_it():
    session, name = fresh(), f"{MARK}-blocked"
    shell = f"(setsid sh -c 'sleep 601; echo {name}-a' & sh -c 'sleep 602; echo {name}-b' & " \
            f"sh -c 'sleep 603; echo {name}-c')"
    equal(fails(session, shell, timeoutMs=300)[1], "COMMAND_EXECUTION_ERROR", "timeout")
    waiting = Later(fails, session, "echo never")
    time.sleep(0.1)
    wait_until(lambda: len(find_processes(name)) >= 3, "all three run")
    response = delete(session)
    answer = json.loads(response.body)
    equal((response.status, answer["success"], answer["sessionId"]), (200, True, session), "delete")
    equal(find_processes(name), [], "the whole tree is gone")
    status, code, _, context = waiting.get()
    equal((status, code, context), (410, "SESSION_DESTROYED", {"sessionId": session}), "waiting")
    equal(out(session, "echo new"), "new", "the id can be used again")


@test
def a_running_command_is_told_that_its_session_was_deleted():
    session, name = fresh(), f"{MARK}-told"
    running = Later(fails, session, f"sh -c 'sleep 60; echo {name}-a'")
    streaming_session = fresh()
    command = f"sh -c 'sleep 60; echo {name}-b'"
    events = Later(lambda: list(SHARED.stream(command, sessionId=streaming_session)))
    wait_until(lambda: find_processes(f"{name}-a") and find_processes(f"{name}-b"), "both run")
    delete(session)
    delete(streaming_session)
    equal(running.get()[:2], (410, "SESSION_DESTROYED"), "json")
    last = events.get()[-1]
    equal((last["type"], last["code"]), ("error", "SESSION_DESTROYED"), "events")


# --- the shell's end -----------------------------------------------------------------------------


@test
def a_shell_that_ends_is_told_and_replaced():
    for command, code in (("exit 3", 3), ("exit", 0), ("set -e; false", 1), ("kill -9 $$", 137),
                          ("kill -TERM $$", 143), ("exec true", 0), ("exec sh -c 'exit 7'", 7),
                          ("exec /no/such/program", 127), ("set -u; echo $nothing", 1),
                          ("f() { exit 4; }; f", 4)):
        session = fresh()
        out(session, "X=1")
        is_terminated(session, fails(session, command), code)
        equal(out(session, "echo [$X]"), "[]", f"a fresh shell after {command}")
        delete(session)


@test
def a_shell_that_lost_its_descriptors_never_hangs():
    for command in ("ulimit -n 20", "ulimit -n 4",
                    "for i in $(seq 10 30); do eval \"exec $i>/dev/null\"; done",
                    "for i in $(seq 3 99); do eval \"exec $i>&-\"; done", "set -n",
                    "readonly __burrow=1", "enable -n eval", "command() { :; }"):
        session = fresh()
        for text in (command, "echo on"):
            response = SHARED.post("/api/execute", {"command": text, "sessionId": session,
                                                    "timeoutMs": 3000})
            answer = json.loads(response.body)
            assert response.status in (200, 410) or "timeout" in answer["message"], answer
            if response.status == 500:
                break  # who takes a shell's builtins away has none: only deleting helps
        print(f"# {command}: then {response.status}")
        equal(delete(session).status, 200, "delete")
        equal(out(session, "echo on"), "on", "a fresh one")


@test
def a_shell_keeps_its_directory_and_variables_when_replaced():
    session = fresh()
    create(session, cwd="/usr", env={"MINE": "a b"})
    equal(out(session, "pwd; echo $MINE"), "/usr\na b", "first")
    fails(session, "cd /; exit 1")
    equal(out(session, "pwd; sh -c 'echo $MINE'"), "/usr\na b", "second")


@test
def exec_gives_the_shell_away_until_it_ends():
    session = fresh()
    started = time.monotonic()
    waiting = Later(fails, session, "exec sleep 0.5")
    is_terminated(session, waiting.get(), 0)
    assert time.monotonic() - started > 0.4
    equal(fails(session, "exec sleep 60", timeoutMs=200)[1], "COMMAND_EXECUTION_ERROR", "timeout")
    equal(delete(session).status, 200, "delete")


@test
def an_idle_shell_that_is_killed_is_replaced_unseen():
    session = fresh()
    pid = int(out(session, "echo $$"))
    os.kill(pid, 9)
    wait_until(lambda: pid not in processes(), "its end")
    for _ in range(3):
        equal(out(session, "echo on"), "on", "the next command")


@test
def output_before_the_end_of_a_shell_is_not_lost_in_a_stream():
    session = fresh()
    events = list(SHARED.stream("echo a; echo b >&2; exit 5", sessionId=session))
    equal([(event["type"], event.get("data")) for event in events if event["type"] != "stderr"],
          [("start", None), ("stdout", "a\n"), ("complete", None)], "events")
    equal(events[-1]["exitCode"], 5, "status")
    equal(out(session, "echo on"), "on", "the next command")


@test
def commands_that_wait_get_the_fresh_shell():
    session = fresh()
    ending = Later(fails, session, "sleep 0.3; exit 1")
    time.sleep(0.1)
    waiting = [Later(out, session, f"echo {i}") for i in range(5)]
    is_terminated(session, ending.get(), 1)
    equal([later.get() for later in waiting], ["0", "1", "2", "3", "4"], "waiting")


# --- streams and much output ---------------------------------------------------------------------


@test
def events_are_whole_lines():
    session = fresh()
    events = list(SHARED.stream(r"printf 'a\n\nb'; sleep 0.1; printf 'c\nend'", sessionId=session))
    equal([event["data"] for event in events if event["type"] == "stdout"],
          ["a\n", "\n", "bc\n", "end\n"], "lines")
    equal((events[0]["type"], events[0]["sessionId"], events[-1]["exitCode"]),
          ("start", session, 0), "ends")
    assert events[0]["pid"] == int(out(session, "echo $$")), events[0]
    events = list(SHARED.stream("head -c 200000 /dev/zero | tr '\\0' x; echo; seq 20000",
                                sessionId=session))
    text = "".join(event["data"] for event in events if event["type"] == "stdout")
    equal(text == "x" * 200000 + "\n" + "".join(f"{i}\n" for i in range(1, 20001)), True, "much")


@test
def lines_are_streamed_the_moment_they_are_written():
    gate, seen = f"{SHARED.folder}/later", []
    command = f"echo now; until [ -e {gate} ]; do sleep 0.02; done; echo later"
    for event in SHARED.stream(command, sessionId=fresh()):
        if event["type"] == "stdout":
            seen.append(event["data"])
            open(gate, "wb").close()  # until then it says nothing more
    equal(seen, ["now\n", "later\n"], "output")


@test
def background_jobs_live_on_and_are_heard_while_something_runs():
    session, go = fresh(), os.path.join(SHARED.folder, "go")
    job = f"until [ -e {go} ]; do sleep 0.05; done; echo late; sleep 60"
    equal(out(session, f"sh -c '{job}' & echo done"), "done", "without waiting for it")
    equal(out(session, f"touch {go}; sleep 1; echo now"), "late\nnow", "as at a terminal")
    out(session, f"sh -c 'for i in $(seq 3000); do echo {MARK}-filler-line-filler-line; done; "
                 f"touch {SHARED.folder}/filled; sleep 60' &")
    wait_until(lambda: os.path.exists(f"{SHARED.folder}/filled"), "its output is read by somebody")
    equal(out(session, "jobs | wc -l"), "2", "jobs")
    delete(session)
    equal(find_processes(f"{MARK}-filler"), [], "gone with the session")


@test
def a_job_that_never_stops_writing_keeps_nobody():
    session = fresh()
    run(session, "yes &")
    for _ in range(5):
        equal(run(session, "true")["exitCode"], 0, "status")
    delete(session)


@test
def large_output_is_whole():
    session = fresh()
    result = run(session, "head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2")
    equal((len(result["stdout"]), result["stderr"]), (5000000, "end"), "stdout")
    result = run(session, "seq 500000; exit_code() { return 4; }; exit_code")
    equal((result["stdout"] == "\n".join(str(i) for i in range(1, 500001)), result["exitCode"]),
          (True, 4), "lines")
    response = SHARED.post("/api/execute", {"command": "seq 100000; exit 9", "sessionId": session})
    equal(json.loads(response.body)["exitCode"], 9, "an answer that was begun is completed")


@test
def a_third_of_a_gigabyte_flows_in_flat_memory():
    size = 340 * MIB
    with Agent() as agent:
        run("one", "true", agent)
        before, started, got = agent.memory_kb(), time.monotonic(), 0
        with agent.open_stream(f"head -c {size} /dev/zero | tr '\\0' x", sessionId="one") as stream:
            stream.socket.settimeout(60)
            last = b""
            while b'"type":"complete"' not in last:
                data = stream.socket.recv(MIB)
                assert data, "the stream ended early"
                got += data.count(b"x")
                last = last[-200:] + data
        print(f"# {size / MIB / (time.monotonic() - started):.0f} MiB/s")
        assert got >= size, got
        grown = agent.memory_kb("VmHWM") - before
        assert grown < 2048, f"grown by {grown} kB"


@test
def a_client_that_does_not_read_makes_the_command_wait_and_others_not():
    with Agent() as agent:
        counter = os.path.join(agent.folder, "count")
        command = (f"for i in $(seq 300); do head -c 100000 /dev/zero | tr '\\0' x; echo; "
                   f"echo $i > {counter}; done")
        with agent.open_stream(command, sessionId="slow") as connection:
            def written():
                time.sleep(0.3)
                with open(counter, encoding="ascii") as file:
                    return file.read()
            wait_until(lambda: os.path.exists(counter), "the first piece is written")
            wait_until(lambda: written() == written(), "the command stands still")
            assert int(written()) < 100, written()
            equal(out("other", "echo on", agent), "on", "another session")
            total = sum(chunk.count(b"x") for chunk in connection.chunks())
        assert total >= 300 * 100000, total
        equal(out("slow", "echo on", agent), "on", "afterwards")


@test
def a_client_that_leaves_lets_its_command_run_on():
    session = fresh()
    marker = os.path.join(SHARED.folder, f"{MARK}-left")
    with SHARED.open_stream(f"seq 200000; touch {marker}", sessionId=session):
        pass
    wait_until(lambda: os.path.exists(marker), "it runs on, and its output is thrown away")
    equal(out(session, "echo on"), "on", "the next command")


# --- nothing stays behind ------------------------------------------------------------------------


@test
def two_hundred_sessions_leave_nothing():
    with Agent() as agent:
        out("first", "true", agent)
        delete("first", agent)
        files, children = agent.open_files(), len(agent.children())
        for i in range(200):
            equal(create(f"s{i}", agent).status, 200, "create")
            if i % 10 == 0:
                out(f"s{i}", "sleep 100 & echo on", agent)
            equal(delete(f"s{i}", agent).status, 200, "delete")
        wait_until(lambda: agent.open_files() <= files, "descriptors are as before")
        wait_until(lambda: len(agent.children()) <= children, "processes are as before")
        equal(agent.activity()["running"], 0, "nothing runs")


@test
def idle_shells_are_no_activity():
    with Agent() as agent:
        out("a", "true", agent)
        out("b", "true", agent)
        equal(agent.activity()["running"], 0, "idle")
        with agent.open_stream("sleep 60", sessionId="a"):
            wait_until(lambda: agent.activity()["running"] == 1, "one runs")
        delete("a", agent)
        wait_until(lambda: agent.activity()["running"] == 0, "none")


@test
def the_number_of_sessions_is_limited():
    with Agent() as agent:
        body = json.dumps({"sessions": [{"id": f"s{i}"} for i in range(1000)]}).encode()
        equal(request(agent.address, "PUT", "/burrow/sessions", [], body, 30).status, 200, "1000")
        equal(fails("more", "true", agent)[:2], (409, "RESOURCE_BUSY"), "by use")
        equal(create("more", agent).status, 409, "by create")
        equal(out("s999", "echo on", agent), "on", "the last of them")


@test
def two_thousand_commands_leave_no_trace():
    with Agent() as agent:
        with connect(agent.address) as connection:
            def ask():
                body = b'{"command":":","sessionId":"one"}'
                connection.send(b"POST /api/execute HTTP/1.1\r\nHost: a\r\n"
                                b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                equal(connection.response().status, 200, "status")
            for _ in range(500):
                ask()
            files, memory = agent.open_files(), agent.memory_kb()
            started = time.monotonic()
            for _ in range(2000):
                ask()
            print(f"# {(time.monotonic() - started) / 2000 * 1e6:.0f} us for a builtin")
            equal(agent.open_files(), files, "descriptors")
            assert agent.memory_kb() < memory * 1.05 + 64, (memory, agent.memory_kb())


@test
def without_bash_it_is_sh():
    """In a root of its own that has nothing but dash and what is linked statically."""
    with Root() as agent:
        equal(out("one", "cd /tmp; X=1; f() { echo f; }; export Y=2", agent), "", "first")
        equal(out("one", "pwd; echo $X; f", agent), "/tmp\n1\nf", "second")
        for command, code, stdout in (
                ("if", 2, ""), ("echo 'open", 2, ""), ("echo é", 0, "é"),
                ("read x; echo $?", 0, "1"),
                ("exec >/dev/null; exec </dev/null", 0, ""), ("echo on", 0, "on"),
                ("set -u; : $nope", 2, ""), ("set +u", 0, ""), ("no-such", 127, "")):
            result = run("one", command, agent)
            equal((result["exitCode"], result["stdout"]), (code, stdout), command)
        equal(out("one", "pwd; echo $Z", agent, cwd="/", env={"Z": "it's"}), "/\nit's", "for one")
        equal(out("one", "pwd; echo ${Z-none}", agent), "/tmp\nnone", "and not the next")
        equal(out("one", f"x='{'y' * 500000}'; echo ${{#x}}", agent), "500000", "a long command")
        exported = json.loads(agent.get("/burrow/sessions").body)["sessions"][0]
        equal((exported["cwd"], exported["env"]["Y"]), ("/tmp", "2"), "its context")
        is_terminated("one", fails("one", "exit 4", agent), 4)


class Root(Agent):
    """The agent in a folder that has dash as /bin/sh, and no bash."""

    def __init__(self):
        super().__init__()
        if os.getuid() or not shutil.which("dash"):
            skip("root, and dash")
        self.root = os.path.join(self.folder, "root")
        for folder in ("bin", "tmp", "dev", "proc"):
            os.makedirs(os.path.join(self.root, folder))
        shutil.copy(shutil.which("dash"), os.path.join(self.root, "bin/sh"))
        listed = subprocess.run(["ldd", shutil.which("dash")], stdout=subprocess.PIPE, check=True)
        for word in listed.stdout.decode().split():
            if word.startswith("/"):
                os.makedirs(self.root + os.path.dirname(word), exist_ok=True)
                shutil.copy(word, self.root + word)
        with open(os.path.join(self.root, "dev/null"), "wb"):
            pass
        shutil.copy(program("burrow-agent"), os.path.join(self.root, "agent"))
        self.address = f"unix:{self.root}/socket"

    def launch(self):
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                [shutil.which("chroot"), self.root, "/agent", "--listen", "unix:/socket"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={"PATH": "/bin"})


with Agent() as AGENT:
    SHARED.stand_for(AGENT)
    main()
