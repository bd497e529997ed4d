#!/usr/bin/python3
"""Sessions: one shell that goes on from command to command.

# timeout: 600
"""

import base64
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent  # noqa: E402
from agent_sessions import Later, create, delete, fails, fresh, out, run  # noqa: E402
from http_raw import request  # noqa: E402
from program import wait_until  # noqa: E402
from shared import SHARED  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20


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
        there = os.path.join(agent.folder, "there")
        busy = Later(fails, "c", f"cd /var; touch {there}; sleep 60", agent)
        wait_until(lambda: os.path.exists(there), "it runs, and is in its folder")
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
        body = json.dumps({"sessions": [{"id": "told"}], "env": {"NEW": "1"}, "replace": True}).encode()
        response = request(agent.address, "PUT", "/burrow/sessions", [], body, 30)
        equal((response.status, json.loads(response.body)["imported"]), (200, 1), "with variables")
        equal(out("told", "echo $NEW ${USUAL-none}", agent), "1 1", "variables that came along")
        response = request(agent.address, "PUT", "/burrow/sessions", [],
                           b'{"sessions":[],"env":{"A=B":"x"}}', 30)
        equal(response.status, 400, "a wrong variable")
    assert "sessions" in json.loads(SHARED.get("/burrow/handshake").body)["capabilities"]


with Agent() as AGENT:
    SHARED.stand_for(AGENT)
    main()
