#!/usr/bin/python3
"""What runs inside turns against the agent: nothing of it keeps others waiting for ever.

# timeout: 600
"""

import json
import os
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent, Init, can_unshare  # noqa: E402
from http_raw import request  # noqa: E402
from tap import equal, main, patient, skip, test  # noqa: E402

# Ends when it has read so much, or nothing for a while; slowly, so that it meets the end of the
# command with the pipe still full.
THIEF = """
import os, time
fd = os.open(f"/proc/{os.getppid()}/fd/1", os.O_RDONLY | os.O_NONBLOCK)
time.sleep(0.5)
idle = 0
while idle < 100:
    time.sleep(0.002)
    try:
        os.read(fd, 16384)
        idle = 0
    except BlockingIOError:
        idle += 1
"""


def execute(agent, command, session, **fields):
    response = agent.post("/api/execute", {"command": command, "sessionId": session, **fields})
    return response.status, json.loads(response.body)


def code(agent, text, context=None):
    document = {"code": text, "language": "python"}
    if context:
        document["context_id"] = context
    response = agent.post("/api/execute/code", document)
    return response.status, response.body


# --- shells --------------------------------------------------------------------------------------


@test
def a_shell_that_ends_at_once_is_not_started_again_and_again():
    with Agent() as agent, tempfile.NamedTemporaryFile("w", suffix=".sh") as file:
        file.write("exit 3\n")
        file.flush()
        before = agent.activity()["started"]
        created = agent.post("/api/session/create",
                             {"id": "s", "env": {"BASH_ENV": file.name}})
        equal((created.status, json.loads(created.body)["code"]), (410, "SESSION_TERMINATED"),
              "create")
        started = agent.post("/api/process/start", {"command": "true", "sessionId": "s"})
        equal((started.status, json.loads(started.body)["code"]), (410, "SESSION_TERMINATED"),
              "process")
        equal(execute(agent, "echo hi", "s")[0], 410, "command")
        time.sleep(0.5)
        assert agent.activity()["started"] - before <= 12, agent.activity()


@test
def a_shell_that_ends_is_replaced_for_those_who_ask_as_often_as_commands_end_it():
    with Agent() as agent:
        for _ in range(5):
            equal(execute(agent, "exit 1", "s")[0], 410, "exit")
            started = agent.post("/api/process/start", {"command": "true", "sessionId": "s"})
            equal(started.status, 200, started.body)


PASSING_BY = {
    "it runs nothing any more": "set -n",
    "`command` is a function": "command() { :; }",
    "`command` is an alias": "shopt -s expand_aliases; alias command=true eval=true",
    "builtins are turned off": "enable -n command printf eval",
    "a trap skips everything": "shopt -s extdebug; trap false DEBUG",
}


@test
def a_shell_that_passes_by_its_commands_is_replaced():
    if not os.path.exists("/bin/bash"):
        skip("bash")
    with Agent() as agent:
        for why, command in PASSING_BY.items():
            answers = [execute(agent, command, why)[0], execute(agent, "true", why)[0]]
            assert answers in ([410, 200], [200, 410]), (why, answers)
            status, last = execute(agent, "echo hi", why)
            equal((status, last["stdout"]), (200, "hi"), why)
        # And who asks for the session's context is not kept waiting either.
        execute(agent, "command() { :; }", "asked")
        started = agent.post("/api/process/start", {"command": "true", "sessionId": "asked"})
        equal(started.status, 200, started.body)


@patient
def a_long_command_is_not_taken_for_one_that_was_passed_by():
    with Agent() as agent:
        commands = ("sleep 2; echo done", "sleep 2 & wait; echo done",
                    "bash -c 'sleep 2'; echo done", "cat; read x; sleep 2; echo done")
        with ThreadPoolExecutor() as pool:  # each in a session of its own, at the same time
            said = pool.map(lambda number: execute(agent, commands[number], f"s{number}")[1].get("stdout"),
                            range(len(commands)))
        equal(list(said), ["done"] * len(commands), "what they say")


@patient
def output_that_somebody_else_reads_is_not_waited_for():
    with Agent() as agent, tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(THIEF)
        file.flush()
        command = f"/usr/bin/python3 {file.name} & yes | head -c 6000000"
        with agent.open_stream(command, sessionId="s") as connection:
            time.sleep(3)  # reads nothing: the agent stops reading, the thief does not
            text = b"".join(connection.chunks())
        assert b'"type":"complete"' in text, text[-200:]
        equal(execute(agent, "echo hi", "s")[1]["stdout"], "hi", "the next command")


# --- code ----------------------------------------------------------------------------------------


@patient
def a_stopped_interpreter_server_is_replaced_and_its_contexts_live_on():
    with Agent() as agent:
        made = json.loads(agent.post("/api/contexts", {"language": "python"}).body)["contextId"]
        code(agent, "kept = 42", made)
        code(agent, "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)", made)
        answers = [agent.post("/api/contexts", {"language": "python"}).status for _ in range(5)]
        equal(answers[-1], 200, answers)  # at first spares, perhaps; then none; then a new server
        assert b"42" in code(agent, "kept", made)[1]


@patient
def everything_that_was_stopped_at_once_is_replaced():
    if not can_unshare():
        skip("user namespaces")
    with Init() as agent:
        code(agent, "1")
        equal(execute(agent, "kill -STOP -1; :", "s")[0], 200, "the stopper itself")
        equal(execute(agent, "echo hi", NO_SESSION)[1]["stdout"], "hi\n", "a command")
        answers = [agent.post("/api/contexts", {"language": "python"}).status for _ in range(2)]
        equal(answers[-1], 200, answers)
        equal(request(agent.address, "POST", "/api/session/delete", [],
                      b'{"sessionId":"s"}').status, 200, "delete")


main()
