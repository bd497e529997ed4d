#!/usr/bin/python3
"""The agent alone on a socket: commands, their output, and what clients are told.

# timeout: 600
"""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent  # noqa: E402
from http_raw import connect, get, request  # noqa: E402
from program import STOP_SECONDS, clean_environment, program, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20


# --- what a command returns ----------------------------------------------------------------------


@test
def a_command_returns_its_output_and_status():
    result = SHARED.run("echo out; echo err >&2; exit 3")
    equal((result["stdout"], result["stderr"], result["exitCode"], result["success"]),
          ("out\n", "err\n", 3, False), "result")
    equal(SHARED.run("echo out")["success"], True, "success of a good one")
    equal(result["command"], "echo out; echo err >&2; exit 3", "command")
    for name in ("timestamp", "duration", "sessionId"):
        assert name in result, name


@test
def output_is_raw_without_a_session():
    equal(SHARED.run("printf 'a\\n\\n'")["stdout"], "a\n\n", "newlines")
    equal(SHARED.run("printf 'no newline'")["stdout"], "no newline", "end")


@test
def every_status_and_signal_is_exact():
    for status in (0, 1, 2, 42, 126, 127, 255):
        equal(SHARED.run(f"exit {status}")["exitCode"], status, "status")
    for number in (1, 2, 6, 9, 11, 13, 15):
        result = SHARED.run(f"kill -{number} $$")
        equal((result["exitCode"], result["signal"]),
              (128 + number, signal.Signals(number).name), "signal")


@test
def a_missing_program_is_the_shells_127():
    for command in ("no-such-program-here a b", "no-such-program-here; exit $?"):
        result = SHARED.run(command)
        equal(result["exitCode"], 127, "status")
        assert "no-such-program-here: command not found" in result["stderr"], result


@test
def plain_commands_are_as_with_a_shell():
    """They are executed without bash, which nobody may notice."""
    for command in ("/bin/ls /", "ls -d /etc /no/such", "env", "id -u", "cat /no/such", "/etc",
                    "sleep x", "pwd -P", "uname -a", "basename /a/b", "/bin/echo a  b"):
        plain, shell = SHARED.run(command), SHARED.run("{ " + command + " ; }")
        if command == "env":
            for result in (plain, shell):
                result["stdout"] = sorted(line for line in result["stdout"].splitlines()
                                          if not line.startswith(("_=", "SHLVL=", "OLDPWD=")))
        for field in ("stdout", "stderr", "exitCode"):
            equal(plain[field], shell[field], f"{field} of {command}")


@test
def environment_and_directory_are_the_commands_own():
    result = SHARED.run("echo $GREETING $PWD; printenv EMPTY | wc -c", cwd="/usr",
                        env={"GREETING": "hello you", "EMPTY": "", "NOTHING": None})
    equal(result["stdout"], "hello you /usr\n1\n", "stdout")
    equal(SHARED.run("echo [$GREETING]")["stdout"], "[]\n", "afterwards")
    equal(SHARED.run("echo $LANG $LC_ALL")["stdout"].split()[1:], ["C.UTF-8"], "locale")


@test
def settings_of_the_agent_are_not_seen_by_commands():
    with Agent(environment={"BURROW_SECRET": "x", "OTHER": "y"}) as agent:
        equal(agent.run("echo $BURROW_SECRET-$OTHER")["stdout"], "-y\n", "stdout")


@test
def a_directory_that_is_missing_is_the_commands_failure():
    result = SHARED.run("pwd", cwd="/no/such/place")
    equal((result["exitCode"], result["stdout"]), (1, ""), "result")
    assert "Failed to change directory to /no/such/place" in result["stderr"], result


@test
def stdin_is_given_or_empty():
    equal(SHARED.run("cat", stdin="a\nb")["stdout"], "a\nb", "text")
    equal(SHARED.run("cat")["stdout"], "", "none")
    equal(SHARED.run("cat; echo end", stdin="")["stdout"], "end\n", "empty")
    data = bytes(range(256)) * 4096
    result = SHARED.run("cat", stdin=base64.b64encode(data).decode(), stdinEncoding="base64",
                        encoding="base64")
    equal(base64.b64decode(result["stdout"]) == data, True, "a megabyte of all bytes")
    equal(SHARED.run("true", stdin="x" * MIB)["exitCode"], 0, "nobody reads it")


@test
def argv_runs_without_any_shell():
    result = SHARED.run(argv=["printf", "%s|", "a b", "$HOME", "*", ""])
    equal(result["stdout"], "a b|$HOME|*||", "stdout")
    response = SHARED.post("/api/execute", {"argv": ["/no/such/program"]})
    equal((response.status, json.loads(response.body)["code"]),
          (500, "COMMAND_EXECUTION_ERROR"), "error")


@test
def bytes_that_are_no_text_become_replacement_characters():
    result = SHARED.run(r"printf 'a\377b\303\244\0c'")
    equal(result["stdout"], "a\ufffdb\u00e4\0c", "as text")
    result = SHARED.run(r"printf 'a\377b\303\244\0c'", encoding="base64")
    equal(base64.b64decode(result["stdout"]), b"a\xffb\xc3\xa4\0c", "as base64")


@test
def a_long_command_runs_and_one_too_long_is_refused():
    text = "x" * 100000
    equal(SHARED.run(f"printf %s {text} | wc -c")["stdout"].strip(), "100000", "100 kB")
    response = SHARED.post("/api/execute", {"command": "echo " + "x" * 200000,
                                             "sessionId": NO_SESSION})
    error = json.loads(response.body)
    equal((response.status, error["code"]), (500, "COMMAND_EXECUTION_ERROR"), "200 kB")
    assert "128 KiB" in error["message"], error


# --- much output ---------------------------------------------------------------------------------


@test
def large_output_is_whole_in_the_json_form():
    result = SHARED.run("head -c 5000000 /dev/zero | tr '\\0' x; echo end >&2")
    equal((len(result["stdout"]), result["stderr"]), (5000000, "end\n"), "stdout")
    assert "stdoutTruncated" not in result
    result = SHARED.run("head -c 5000000 /dev/zero | tr '\\0' x >&2; echo end; exit 4")
    equal((len(result["stderr"]), result["stdout"], result["exitCode"]),
          (5000000, "end\n", 4), "stderr")
    result = SHARED.run("head -c 300001 /dev/urandom", encoding="base64")
    equal(len(base64.b64decode(result["stdout"])), 300001, "base64")


@test
def the_other_output_is_cut_and_that_is_said():
    fill = "head -c 2000000 /dev/zero | tr '\\0' "
    result = SHARED.run(f"{fill} o; {fill} e >&2")
    equal((len(result["stdout"]), len(result["stderr"])), (2000000, MIB), "lengths")
    equal((result.get("stdoutTruncated"), result.get("stderrTruncated")), (None, True), "said")


@test
def characters_survive_being_cut_into_pieces():
    command = "for i in $(seq 300); do printf '\\303'; sleep 0.001; printf '\\244'; done"
    equal(SHARED.run(command)["stdout"], "\u00e4" * 300, "json")
    events = list(SHARED.stream(command))
    equal("".join(event["data"] for event in events if event["type"] == "stdout"),
          "\u00e4" * 300, "events")


@test
def a_third_of_a_gigabyte_streams_in_flat_memory():
    size = 340 * MIB
    with Agent() as agent:
        agent.run("true")
        before, started, got = agent.memory_kb(), time.monotonic(), 0
        with agent.open_stream(f"head -c {size} /dev/zero | tr '\\0' x") as connection:
            connection.socket.settimeout(60)
            last = b""
            while b'"type":"complete"' not in last:
                data = connection.socket.recv(MIB)
                assert data, "the stream ended early"
                got += data.count(b"x")
                last = last[-200:] + data
        seconds = time.monotonic() - started
        assert got >= size, got
        grown = agent.memory_kb("VmHWM") - before
        print(f"# {size / MIB / seconds:.0f} MiB/s of output, grown by {grown} kB")
        assert grown < 2048, f"grown by {grown} kB"


@test
def a_client_that_does_not_read_makes_the_command_wait():
    with Agent() as agent:
        counter = os.path.join(agent.folder, "count")
        command = (f"for i in $(seq 400); do head -c 100000 /dev/zero | tr '\\0' x; "
                   f"echo $i > {counter}; done")
        with agent.open_stream(command) as connection:
            def written():
                time.sleep(0.3)
                with open(counter, encoding="ascii") as file:
                    return file.read()
            wait_until(lambda: os.path.exists(counter), "the first piece is written")
            wait_until(lambda: written() == written(), "the command stands still")
            assert int(written()) < 100, written()
            assert agent.memory_kb("VmHWM") < 8192, agent.memory_kb("VmHWM")
            total = 0
            for chunk in connection.chunks():
                total += chunk.count(b"x")
        assert total >= 400 * 100000, total


# --- events --------------------------------------------------------------------------------------


@test
def events_come_in_order_and_end_with_the_status():
    events = list(SHARED.stream("echo a; sleep 0.05; echo b >&2; exit 5"))
    equal([event["type"] for event in events], ["start", "stdout", "stderr", "complete"], "types")
    equal([event.get("data") for event in events], [None, "a\n", "b\n", None], "data")
    equal(events[-1]["exitCode"], 5, "status")
    assert all("timestamp" in event for event in events)
    equal(events[0]["command"], "echo a; sleep 0.05; echo b >&2; exit 5", "command")


@test
def output_is_streamed_the_moment_it_is_written():
    gate, seen = f"{SHARED.folder}/later", []
    for event in SHARED.stream(f"echo now; until [ -e {gate} ]; do sleep 0.02; done; echo later"):
        if event["type"] == "stdout":
            seen.append(event["data"])
            open(gate, "wb").close()  # until then it says nothing more
    equal(seen, ["now\n", "later\n"], "output")


@test
def events_of_bytes_are_base64_each_by_itself():
    events = list(SHARED.stream("head -c 200000 /dev/urandom | tee >(md5sum >&2)",
                                encoding="base64"))
    data = b"".join(base64.b64decode(event["data"], validate=True) for event in events
                    if event["type"] == "stdout")
    equal(len(data), 200000, "bytes")


@test
def a_stream_that_cannot_start_is_a_json_error():
    response = SHARED.post("/api/execute/stream", {"argv": ["/no/such/program"]})
    equal((response.status, json.loads(response.body)["code"]),
          (500, "COMMAND_EXECUTION_ERROR"), "error")


# --- errors --------------------------------------------------------------------------------------


@test
def errors_have_their_codes():
    for document, status, code in (
            (b"{", 500, "INTERNAL_ERROR"),
            (b"", 500, "INTERNAL_ERROR"),
            ({}, 400, "VALIDATION_FAILED"),
            ({"command": ""}, 400, "INVALID_COMMAND"),
            ({"command": "ls", "sessionId": " "}, 400, "VALIDATION_FAILED"),
            ({"argv": ["ls"], "sessionId": "mine"}, 400, "VALIDATION_FAILED"),
            ({"command": "ls", "stdin": "x", "sessionId": "mine"}, 400, "VALIDATION_FAILED"),
            ({"command": "ls", "env": {"A-B": "x"}}, 400, "VALIDATION_FAILED")):
        for path in ("/api/execute", "/api/execute/stream"):
            response = SHARED.post(path, document)
            error = json.loads(response.body)
            equal((response.status, error["code"], error["httpStatus"]), (status, code, status),
                  f"{document} to {path}")
            assert {"message", "context", "timestamp", "operation"} <= set(error), error
    equal(SHARED.run("echo x", sessionId="__DISABLE_SESSION__")["sessionId"],
          "__DISABLE_SESSION__", "the id that means no session")


@test
def an_unknown_route_is_404_in_the_right_shape():
    response = SHARED.get("/api/no-such-thing")
    error = json.loads(response.body)
    error.pop("timestamp")
    equal((response.status, error),
          (404, {"code": "UNKNOWN_ERROR", "message": "The requested endpoint was not found",
                 "context": {}, "httpStatus": 404}), "answer")
    equal(SHARED.post("/no", {}).status, 404, "POST")


@test
def a_body_over_the_limit_is_413():
    with connect(SHARED.address) as connection:
        connection.send(b"POST /api/execute HTTP/1.1\r\nHost: a\r\n"
                        b"Content-Length: %d\r\n\r\n" % (9 * MIB))
        response = connection.response()
        equal((response.status, json.loads(response.body)["httpStatus"]), (413, 413), "status")


@test
def every_answer_allows_other_origins():
    for response in (SHARED.get("/api/ping"), SHARED.get("/nope"),
                     request(SHARED.address, "OPTIONS", "/api/execute")):
        equal(response.headers["access-control-allow-origin"], "*", "origin")
        assert "X-Session-Id" in response.headers["access-control-allow-headers"]
    equal(request(SHARED.address, "OPTIONS", "/api/execute").status, 204, "OPTIONS")


# --- the rest of the API -------------------------------------------------------------------------


@test
def ping_version_and_handshake_answer():
    ping = json.loads(SHARED.get("/api/ping").body)
    equal((ping["success"], ping["status"]), (True, "healthy"), "ping")
    handshake = json.loads(SHARED.get("/burrow/handshake").body)
    equal(handshake["protocol"], 1, "protocol")
    assert "execute" in handshake["capabilities"], handshake
    with Agent(environment={"SANDBOX_VERSION": "9.8.7"}) as agent:
        equal(json.loads(agent.get("/api/version").body)["version"], "9.8.7", "version")


@test
def activity_counts_what_runs():
    with Agent() as agent:
        agent.run("true")
        with agent.open_stream("sleep 60"):
            wait_until(lambda: agent.activity()["running"] == 1, "one runs")
            equal(agent.activity()["idleMs"], 0, "idle")
        agent.wait_until_idle()
        equal(agent.activity()["started"], 2, "started")


@test
def a_token_is_asked_for_and_not_shown():
    with Agent("--token", "s3cret-token", headers=[("Authorization", "Bearer s3cret-token")]) as agent:
        equal(agent.run("echo in")["stdout"], "in\n", "with it")
        for headers in ([], [("Authorization", "Bearer wrong")], [("Authorization", "Bearer ")],
                        [("Authorization", "Bearer s3cret-token2")]):
            equal(get(agent.address, "/api/ping", headers).status, 401, f"with {headers}")
        with open(f"/proc/{agent.pid}/cmdline", "rb") as file:
            assert b"s3cret-token" not in file.read()
        assert "s3cret" not in agent.run("cat /proc/$PPID/cmdline; env")["stdout"]


@test
def a_listening_socket_may_be_handed_over():
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        process = subprocess.Popen(  # pylint: disable=consider-using-with
            [program("burrow-agent"), "--listen-fd", str(listener.fileno())],
            pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=clean_environment())
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    try:
        equal(get(address, "/api/ping").status, 200, "status")
    finally:
        process.terminate()
        equal(process.wait(STOP_SECONDS), 0, "exit status")


@test
def wrong_flags_are_said_with_status_2():
    for flags in (["--nope"], ["--listen-fd", "999"], ["--listen", "nowhere"],
                  ["--work-cgroup-fds", "1x"], ["--log-level", "loud"]):
        done = subprocess.run([program("burrow-agent"), *flags], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=STOP_SECONDS,
                              check=False)
        equal(done.returncode, 2, f"status with {flags}")
        assert done.stdout, flags


if __name__ == "__main__":
    with Agent() as SHARED:
        main()
