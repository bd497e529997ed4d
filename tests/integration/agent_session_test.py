#!/usr/bin/python3
"""Sessions: one shell that goes on from command to command.

# timeout: 300
"""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent, find_processes, processes  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import program, wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MIB = 1 << 20
MARK = f"burrow-session-{os.getpid()}"
_numbers = iter(range(1000000))


def fresh():
    """An id that no test had."""
    return f"s{next(_numbers)}"


def run(session, command, agent=None, **fields):
    """The answer of a command that must run."""
    return (agent or SHARED).run(command, sessionId=session, **fields)


def out(session, command, agent=None, **fields):
    """stdout of a command that must succeed."""
    result = run(session, command, agent, **fields)
    equal((result["exitCode"], result["stderr"]), (0, ""), command)
    return result["stdout"]


def fails(session, command, agent=None, path="/api/execute", **fields):
    """(status, code, message, context) of a command that is answered with an error."""
    response = (agent or SHARED).post(path, {"command": command, "sessionId": session, **fields})
    error = json.loads(response.body)
    assert response.status != 200, error
    return response.status, error["code"], error["message"], error["context"]


def delete(session, agent=None):
    return (agent or SHARED).post("/api/session/delete", {"sessionId": session})


def create(session, agent=None, **fields):
    return (agent or SHARED).post("/api/session/create", {"id": session, **fields})


def is_terminated(session, answer, code):
    equal(answer[:2], (410, "SESSION_TERMINATED"), "error")
    equal(answer[2], f"Session '{session}' shell exited (exit code: {code})", "message")
    equal(answer[3], {"sessionId": session, "exitCode": code}, "context")


class Later(threading.Thread):
    """A call whose answer is asked for later."""

    def __init__(self, function, *arguments, **named):
        super().__init__(daemon=True)
        self.call = lambda: function(*arguments, **named)
        self.result = self.error = None
        self.start()

    def run(self):
        try:
            self.result = self.call()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def get(self):
        self.join(60)
        assert not self.is_alive(), "no answer"
        if self.error:
            raise self.error
        return self.result


# --- what stays ----------------------------------------------------------------------------------


@test
def what_a_command_changes_is_there_for_the_next():
    session = fresh()
    out(session, "cd /tmp; X=1; export Y='two words'; f() { echo in f $1; }; umask 077; set -f")
    equal(out(session, "pwd"), "/tmp", "directory")
    equal(out(session, "echo $X $Y; sh -c 'echo $Y'"), "1 two words\ntwo words", "variables")
    equal(out(session, "f a"), "in f a", "function")
    equal(out(session, "umask; echo *"), "0077\n*", "umask and options")
    equal(out(session, "declare v=1; declare -A m=([k]=w); echo ${m[k]}"), "w", "declared")
    equal(out(session, "echo $v ${m[k]}"), "1 w", "declared at the top level")


@test
def sessions_know_nothing_of_each_other():
    one, two = fresh(), fresh()
    out(one, "X=one; cd /tmp")
    out(two, "X=two; cd /")
    equal((out(one, "echo $X $PWD"), out(two, "echo $X $PWD")), ("one /tmp", "two /"), "both")


@test
def a_call_without_a_session_is_for_the_default_one():
    with Agent() as agent:
        for command in ("X=5", "echo $X"):
            answer = json.loads(agent.post("/api/execute", {"command": command}).body)
        equal((answer["stdout"], answer["sessionId"]), ("5", "default"), "answer")
        equal(run("default", "echo $X", agent)["stdout"], "5", "by its name")
        equal(agent.run(argv=["printf", "a\n"])["stdout"], "a\n", "argv has none")
        answer = json.loads(agent.post("/api/execute", {"argv": ["cat"], "stdin": "in\n"}).body)
        equal(answer["stdout"], "in\n", "nor has stdin")
        answer = request(agent.address, "POST", "/api/execute", [("X-Session-Id", "other")],
                         b'{"command":"echo [$X]"}', 30)
        equal(json.loads(answer.body)["stdout"], "[]", "by a header")


@test
def output_loses_one_newline_and_nuls():
    session = fresh()
    for command, expected in (("echo hi", "hi"), (r"printf 'a\n\n'", "a\n"), ("printf a", "a"),
                              (r"printf 'a\0b\n'", "ab"), ("echo", ""), ("true", "")):
        equal(run(session, command)["stdout"], expected, command)
        equal(run(session, command + " >&2")["stderr"], expected, command)
    result = run(session, r"printf 'a\0\377\n'", encoding="base64")
    equal(base64.b64decode(result["stdout"]), b"a\0\xff\n", "bytes stay what they are")
    equal(run(NO_SESSION, "echo hi")["stdout"], "hi\n", "without a session it is raw")


@test
def the_answer_has_all_fields():
    session = fresh()
    result = run(session, "echo a; echo b >&2; (exit 3)")
    equal((result["success"], result["exitCode"], result["stdout"], result["stderr"],
           result["command"], result["sessionId"]),
          (False, 3, "a", "b", "echo a; echo b >&2; (exit 3)", session), "fields")
    assert {"duration", "timestamp"} <= set(result), result


# --- whatever a command is -----------------------------------------------------------------------


@test
def every_kind_of_command_leaves_the_session_usable():
    session = fresh()
    for command, code, stdout in (
            ("if", 2, ""), ("fi", 2, ""), ("echo 'open", 2, ""), ('echo "open', 2, ""),
            ("echo $(", None, ""), ("a=(1 2", None, ""), ("{", 2, ""), ("}", 2, ""), ("(", 2, ""),
            ("case x in", 2, ""), ("echo a; )", 2, None), ("cat <<X\na $((1+1))\nX", 0, "a 2"),
            ("cat <<'X'\n$a\nX", 0, "$a"), ("cat <<X\nopen", 0, "open"),
            ("cat <<< here", 0, "here"),
            ("cat", 0, ""), ("read x; echo $?", 0, "1"), ("wc -c", 0, "0"),
            ("break", 0, ""), ("continue 2", 0, ""), ("return 3", None, ""),
            ("no-such-command", 127, ""), ("# nothing", 0, ""), ("true &&\n", 2, ""),
            ("echo a \\\n b", 0, "a b"), ("echo é ☃ 'ü'", 0, "é ☃ ü"),
            ("printf '\\x01\\x7f'", 0, "\x01\x7f"),
            ("echo '\x01\x02\x7f\t\x1b'", 0, "\x01\x02\x7f\t\x1b"), ("echo \"'\\\\'\"", 0, "'\\'"),
            ("exec </etc/passwd", 0, ""), ("read x; echo $?", 0, "1"),
            ("exec >/dev/null", 0, ""), ("echo there", 0, "there"),
            ("exec 2>&1; echo e >&2", 0, "e"), ("exec >&- 2>&-", 0, ""), ("echo again", 0, "again"),
            ("exec 60>&- 61>&- 62>&- 0<&-", 0, ""), ("echo on", 0, "on"),
            ("exec 5</etc/hostname", 0, ""), ("cat <&5 | wc -l", 0, "1"),
            ("set -o posix; if", 2, ""), ("set +o posix", 0, ""),
            ("set -a; B=1", 0, ""), ("env | grep -c burrow", 1, "0"), ("set +a", 0, ""),
            ("LC_ALL=C; echo ü", 0, "ü"), ("unset LC_ALL", 0, ""), ("IFS=x", 0, ""),
            ("echo ifs; unset IFS", 0, "ifs"), ("wait", 0, ""),
            ("trap 'echo t' ERR; false", 1, "t"),
            ("trap - ERR", 0, ""), ("cd() { echo mine; }; cd /", 0, "mine"),
            ("shopt -s extglob", 0, ""), ("echo +(q)", 0, "+(q)")):
        result = run(session, command)
        if code is None:
            assert result["exitCode"] > 0, (command, result)
        else:
            equal((result["exitCode"], result["stdout"] if stdout is not None else None),
                  (code, stdout), command)
        if code == 2:
            assert "syntax error" in result["stderr"] or "EOF" in result["stderr"], result
    equal(out(session, "echo end"), "end", "after all of them")


@test
def a_traced_session_shows_its_commands_and_nothing_of_ours():
    session = fresh()
    run(session, "set -x")
    equal(run(session, "echo a")["stderr"].lstrip("+"), " echo a", "trace")
    equal(run(session, "echo b", cwd="/tmp", env={"Q": "1"})["stderr"].lstrip("+"), " echo b",
          "with a directory and variables")


@test
def commands_see_only_three_descriptors_and_no_input():
    session = fresh()
    equal(out(session, "ls /proc/self/fd"), "0\n1\n2\n3", "descriptors (3 is that of ls)")
    equal(out(session, "readlink /proc/self/fd/0"), "/dev/null", "stdin")


@test
def a_megabyte_of_command_runs():
    session = fresh()
    size = MIB - 100
    equal(out(session, f"x='{'y' * size}'; echo ${{#x}}"), str(size), "ASCII")
    equal(out(session, f"x='{'é' * 250000}'; echo ${{#x}}"), "250000", "UTF-8")
    equal(SHARED.post("/api/execute", {"command": "x" * (MIB + 1), "sessionId": session}).status,
          400, "one too long")
    equal(out(session, "echo on"), "on", "afterwards")


# --- a directory and variables for one command ---------------------------------------------------


@test
def a_directory_is_for_one_command():
    session = fresh()
    out(session, "cd /usr; cd /")
    equal(out(session, "pwd; cd /var; pwd", cwd="/tmp"), "/tmp\n/var", "there")
    equal(out(session, "pwd; cd - >/dev/null; pwd"), "/\n/usr", "back, with what was before")
    result = run(session, "echo no", cwd="/no/such 'place")
    equal((result["exitCode"], result["stdout"], result["stderr"]),
          (1, "", "Failed to change directory to /no/such 'place"), "none")
    out(session, "CDPATH=/usr; cd /")
    equal(out(session, "pwd", cwd="tmp"), "/tmp", "from where the session is")
    equal(run(session, "if", cwd="/tmp")["exitCode"], 2, "a wrong command in it")
    equal(out(session, "pwd; set | grep -c burrow_ || true"), "/\n0", "nothing is left")


@test
def variables_are_for_one_command():
    session = fresh()
    out(session, "export OLD=1; INNER=2")
    equal(out(session, "echo $OLD $INNER $NEW; sh -c 'echo $OLD $INNER $NEW'; OLD=4",
              env={"OLD": "it's", "INNER": "$x\n\"", "NEW": "é", "NONE": None}),
          "it's $x \" é\nit's $x \" é", "with them")
    equal(out(session, "echo $OLD $INNER ${NEW-unset}; sh -c 'echo ${INNER-unset}'"),
          "1 2 unset\nunset", "without them")
    equal(fails(session, "true", env={"A-B": "x"})[:2], (400, "VALIDATION_FAILED"), "a wrong name")
    equal(fails(session, "true", env={"A;id": "x"})[:2], (400, "VALIDATION_FAILED"), "another")
    out(session, "readonly FIXED=1")
    run(session, "true", env={"FIXED": "2"})
    equal(out(session, "echo $FIXED"), "1", "what is fixed stays")


# --- order ---------------------------------------------------------------------------------------


@test
def commands_of_a_session_wait_for_each_other_and_sessions_do_not():
    with Agent() as agent:
        first = Later(run, "one", "sleep 0.6; X=1; echo first", agent)
        time.sleep(0.2)
        second = Later(run, "one", "echo second $X", agent)
        started = time.monotonic()
        equal(out("two", "echo other", agent), "other", "another session")
        assert time.monotonic() - started < 0.3, "sessions wait for each other"
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
            body = b'{"command":"sleep 60","sessionId":"one"}'
            for _ in range(258):
                connection = connect(agent.address, 30)
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
    shell = f"(setsid sh -c 'sleep 61; echo {name}-a' & sh -c 'sleep 62; echo {name}-b' & " \
            f"sh -c 'sleep 63; echo {name}-c')"
    equal(fails(session, shell, timeoutMs=300)[1], "COMMAND_EXECUTION_ERROR", "timeout")
    waiting = Later(fails, session, "echo never")
    time.sleep(0.1)
    assert len(find_processes(name)) >= 3, find_processes(name)
    response = delete(session)
    answer = json.loads(response.body)
    equal((response.status, answer["success"], answer["sessionId"]), (200, True, session), "delete")
    equal(find_processes(name), [], "the whole tree is gone")
    status, code, _, context = waiting.get()
    equal((status, code, context), (410, "SESSION_DESTROYED", {"sessionId": session}), "waiting")
    equal(out(session, "echo new"), "new", "the id can be used again")


@test
def a_running_command_is_told_that_its_session_was_deleted():
    session = fresh()
    running = Later(fails, session, "echo a; sleep 60")
    streaming_session = fresh()
    events = Later(lambda: list(SHARED.stream("echo a; sleep 60", sessionId=streaming_session)))
    time.sleep(0.4)
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
    started, times = time.monotonic(), {}
    for event in SHARED.stream("echo now; sleep 1; echo later", sessionId=fresh()):
        if event["type"] == "stdout":
            times[event["data"]] = time.monotonic() - started
    assert times["now\n"] < 0.9 < times["later\n"], times


@test
def background_jobs_live_on_and_are_heard_while_something_runs():
    session = fresh()
    started = time.monotonic()
    equal(out(session, "(sleep 0.5; echo late; sleep 60) & echo done"), "done", "at once")
    assert time.monotonic() - started < 0.4
    equal(out(session, "sleep 1; echo now"), "late\nnow", "as at a terminal")
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


# --- the routes ----------------------------------------------------------------------------------


@test
def sessions_are_created_listed_and_deleted():
    with Agent() as agent:
        equal(json.loads(agent.get("/api/session/list").body)["data"], [], "none at first")
        response = create("a", agent, cwd="/tmp", env={"A": "1", "N": None})
        answer = json.loads(response.body)
        equal((response.status, answer["success"], answer["data"]["id"],
               answer["containerPlacementId"]), (200, True, "a", None), "create")
        assert answer["timestamp"].endswith("Z")
        equal(out("a", "pwd; echo $A", agent), "/tmp\n1", "what it starts with")
        response = create("a", agent)
        answer = json.loads(response.body)
        equal((response.status, answer["code"], answer["context"]),
              (409, "SESSION_ALREADY_EXISTS", {"sessionId": "a", "containerPlacementId": None}),
              "twice")
        made = json.loads(agent.post("/api/session/create", {}).body)["data"]["id"]
        out("b", "true", agent)
        listed = json.loads(agent.get("/api/session/list").body)
        equal((listed["success"], listed["data"]), (True, ["a", made, "b"]), "list")
        equal(delete("a", agent).status, 200, "delete")
        response = delete("a", agent)
        answer = json.loads(response.body)
        equal((response.status, answer["code"], answer["message"]),
              (500, "INTERNAL_ERROR", "Session 'a' not found"), "unknown")
        answer = agent.post("/api/session/delete", {})
        equal((answer.status, json.loads(answer.body)["code"]), (400, "VALIDATION_FAILED"), "none")
        fails("b", "exit 1", agent)
        equal(create("b", agent, cwd="/usr").status, 200, "a dead one is replaced")
        equal(out("b", "pwd", agent), "/usr", "by the new")
        equal(create("c", agent, cwd="/no/such/place").status, 200, "a missing directory")
        equal(run("c", "pwd", agent)["exitCode"], 0, "is replaced by another")


@test
def a_command_in_the_background_is_a_process_of_its_session():
    session = fresh()
    out(session, "cd /usr; export MINE=1")
    response = SHARED.post("/api/execute", {"command": "sleep 0.3; pwd; echo $MINE",
                                            "sessionId": session, "background": True})
    answer = json.loads(response.body)
    equal((response.status, answer["success"]), (200, True), "answer")
    assert answer["pid"] > 1, answer
    logs = wait_until(
        lambda: json.loads(SHARED.get(f"/api/process/{answer['processId']}/logs").body)["stdout"],
        "its output")
    equal(logs, "/usr\n1\n", "where it runs, and with what")


@test
def wrong_sessions_are_refused():
    for document in ({"id": ""}, {"id": " "}, {"id": 5}, {"id": "x" * 300}, {"id": NO_SESSION},
                     {"id": "q", "env": {"A B": ""}}, {"id": "q", "commandTimeoutMs": -1},
                     {"id": "q", "cwd": 1}):
        response = SHARED.post("/api/session/create", document)
        equal((response.status, json.loads(response.body)["code"]), (400, "VALIDATION_FAILED"),
              f"{document}")
    equal(fails("  ", "true")[:2], (400, "VALIDATION_FAILED"), "an empty id")


@test
def sessions_pass_from_one_agent_to_the_next():
    with Agent(environment={"USUAL": "1", "GONE": "1"}) as agent:
        create("a", agent, env={"FIRST": "1"}, commandTimeoutMs=5000)
        out("a", "cd /usr; export TWO=$'x\\ny' FIRST=changed; unset GONE; f() { echo f $1; }; "
                 "export -f f; LOCAL=1", agent)
        out("b", "cd /tmp", agent)
        busy = Later(fails, "c", "cd /var; sleep 60", agent)
        wait_until(lambda: agent.activity()["running"] > 0, "it runs")
        time.sleep(0.2)
        exported = json.loads(agent.get("/burrow/sessions").body)
        found = {session["id"]: session for session in exported["sessions"]}
        equal(set(found), {"a", "b", "c"}, "sessions")
        equal((found["a"]["cwd"], found["a"]["commandTimeoutMs"]), ("/usr", 5000), "a")
        variables = dict(found["a"]["env"])
        assert variables.pop("BASH_FUNC_f%%").startswith("() {"), variables
        equal(variables, {"FIRST": "changed", "TWO": "x\ny", "GONE": None}, "variables of a")
        equal((found["b"]["cwd"], found["b"]["env"]), ("/tmp", {}), "b")
        equal((found["c"]["cwd"], found["c"]["busy"]), ("/var", True), "c")
        delete("c", agent)
        busy.get()
    with Agent(environment={"USUAL": "1", "GONE": "1"}) as agent:
        body = json.dumps({"sessions": exported["sessions"]}).encode()
        out("b", "cd /", agent)
        response = request(agent.address, "PUT", "/burrow/sessions", [], body, 30)
        equal((response.status, json.loads(response.body)["imported"]), (200, 2), "import")
        equal(out("a", "pwd; echo \"$TWO\" $FIRST ${GONE-none} ${LOCAL-none}; f x", agent),
              "/usr\nx\ny changed none none\nf x", "a again")
        equal(out("b", "pwd", agent), "/", "what is there is left alone")
        equal(create("c", agent).status, 409, "an imported session is there")
        again = json.loads(agent.get("/burrow/sessions").body)["sessions"]
        equal([one["cwd"] for one in again if one["id"] == "c"], ["/var"], "without a shell, too")
        response = request(agent.address, "PUT", "/burrow/sessions", [],
                           b'{"sessions":[{"id":"z","env":{"A=B":"x"}}]}', 30)
        equal(response.status, 400, "a wrong name")
    assert "sessions" in json.loads(SHARED.get("/burrow/handshake").body)["capabilities"]


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
        with connect(agent.address, 30) as connection:
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


if __name__ == "__main__":
    with Agent() as SHARED:
        main()
