#!/usr/bin/python3
# timeout: 600
"""`burrow debug`: one request followed through all processes, and who may do that."""

import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, ControlPlane  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import clean_environment, program, wait_until  # noqa: E402
from tap import Skip, equal, main, test  # noqa: E402

PLANE = None  # the daemon
SECONDS = 60


def burrow(*words, key=None):
    """(status, stdout, stderr) of a verb."""
    done = subprocess.run([program(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          env=clean_environment({"BURROW_URL": f"http://{PLANE.address}",
                                                 "BURROW_API_KEY": key or PLANE.key, "HOME": PLANE.folder}),
                          timeout=SECONDS, check=False)
    return done.returncode, done.stdout, done.stderr


def traced(method, path, body=None):
    """The id of a request that must succeed, as its reply has it."""
    answer = PLANE.ask(method, path, body, timeout=SECONDS)
    assert 200 <= answer.status < 300, answer
    return answer.headers["x-request-id"]


def entries_of(option, value):
    status, out, err = burrow("debug", "trace", option, value, "--json")
    equal((status, err), (0, ""), "status and complaints")
    return json.loads(out)["entries"]


def points(entries, process):
    return [one["point"] for one in entries if one["process"] == process]


def check_order(entries, *wanted):
    """(process, point) one after the other."""
    at = iter((one["process"], one["point"]) for one in entries)
    for one in wanted:
        assert one in at, f"{one} is missing, or too early, in {[(e['process'], e['point']) for e in entries]}"


def check_times(entries):
    times = [one["ns"] for one in entries]
    equal(times, sorted(times), "times")
    assert 0 < times[-1] - times[0] < SECONDS * 10**9, times


@test
def a_create_is_followed_into_the_launcher_and_the_child_that_becomes_the_sandbox():
    # Those in stock have no limit of open files, so this one is started for it.
    request = traced("POST", f"{NATIVE}/sandboxes", {"name": "made", "limits": {"files": 500}})
    entries = entries_of("--request", request)
    check_times(entries)
    check_order(entries,
                ("daemon", "http.begin POST"),
                ("daemon", f"http.route {NATIVE}/sandboxes"),
                ("daemon", "provider.call create"),
                ("daemon", "wire.ask create"),
                ("launcher", "wire.asked create"),
                ("launcher", "launcher.sandbox.start host"),
                ("launcher", "launcher.sandbox.cloned"),
                ("child", "child change to the new root"),
                ("child", "child start the agent"),
                ("launcher", "launcher.sandbox.ready"),
                ("launcher", "wire.answer create"),
                ("daemon", "wire.answered create"),
                ("daemon", "domain.create.made"),
                ("daemon", "store.commit.apply"),
                ("daemon", "domain.create.kept"),
                ("daemon", "http.end 201"))
    assert "wire.ask assign" not in points(entries, "daemon"), "one from stock was taken for nothing"
    sandbox = PLANE.sandbox("made")["id"]
    assert {one.get("sandbox", sandbox) for one in entries} == {sandbox}, entries
    equal({one["request"] for one in entries}, {request}, "requests")


@test
def an_exec_is_followed_into_the_agent():
    request = traced("POST", f"{NATIVE}/sandboxes/made/exec", {"command": "true"})
    entries = entries_of("--request", request)
    check_times(entries)
    check_order(entries,
                ("daemon", "http.begin POST"),
                ("daemon", "agent.ask POST"),
                ("agent", "http.begin POST"),
                ("agent", "exec.start"),
                ("agent", "exec.started"),
                ("agent", "exec.end"),
                ("daemon", "http.end 200"))


@test
def a_wake_from_the_object_store_is_followed_into_keeper_and_agent():
    PLANE.create("deep", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("deep", "echo here > /workspace/file")
    PLANE.call("POST", f"{NATIVE}/sandboxes/deep/sleep")
    wait_until(lambda: PLANE.sandbox("deep")["tier"] == "offloaded", "it is offloaded")
    request = traced("POST", f"{NATIVE}/sandboxes/deep/exec", {"command": "cat /workspace/file"})
    entries = entries_of("--request", request)
    check_times(entries)
    check_order(entries,
                ("daemon", "http.begin POST"),
                ("daemon", "vault.begin"),
                ("daemon", "wire.ask keeper_job"),
                ("launcher", "wire.asked keeper_job"),
                ("launcher", "launcher.keeper.cloned unpack"),
                ("keeper", "child start the keeper"),
                ("keeper", "keeper.begin unpack"),
                ("keeper", "keeper.done unpack"),
                ("launcher", "launcher.keeper.ended"),
                ("daemon", "vault.done"),
                ("launcher", "launcher.sandbox.start host"),
                ("agent", "exec.start"),
                ("agent", "exec.end"),
                ("daemon", "http.end 200"))
    assert any(one.startswith("objects.run") for one in points(entries, "daemon")), entries


@test
def a_snapshot_and_a_destroy_are_followed_into_porter_and_janitor():
    snapshot = traced("POST", f"{NATIVE}/sandboxes/deep/snapshots", {})
    check_order(entries_of("--request", snapshot),
                ("launcher", "launcher.porter.add snapshot"), ("porter", "porter.begin snapshot"),
                ("porter", "porter.done snapshot"), ("launcher", "wire.answer snapshot"))
    destroy = traced("DELETE", f"{NATIVE}/sandboxes/deep")
    wanted = [("launcher", "launcher.sandbox.kill"), ("launcher", "launcher.sandbox.exited"),
              ("janitor", "janitor.take_down"), ("janitor", "janitor.done"),
              ("launcher", "launcher.janitor.done")]

    def is_taken_down():
        found = [(one["process"], one["point"]) for one in entries_of("--request", destroy)]
        return set(wanted) <= set(found)
    wait_until(is_taken_down, "the janitor is done")
    check_order(entries_of("--request", destroy), *wanted)


@test
def what_was_done_to_one_sandbox_is_shown_by_its_name():
    other = PLANE.create("other")["id"]
    sandbox = PLANE.sandbox("made")["id"]
    PLANE.execute("made", "true")
    entries = entries_of("--sandbox", "made")
    equal({one["sandbox"] for one in entries}, {sandbox}, "sandboxes")
    assert "exec.start" in points(entries, "agent"), entries
    assert entries_of("--sandbox", other), "by its id"


@test
def people_get_a_table():
    status, out, err = burrow("debug", "trace", "--sandbox", "made")
    equal((status, err), (0, ""), "status and complaints")
    lines = out.splitlines()
    equal(lines[0].split(), ["MS", "STEP", "PROCESS", "REQUEST", "SANDBOX", "POINT"], "titles")
    equal(lines[1].split()[:2], ["0.000", "0.000"], "the first entry")
    assert any(" agent " in line and line.endswith("exec.end") for line in lines), out


@test
def only_an_administrator_sees_it():
    eve = PLANE.user("eve")
    own = PLANE.create("eves", key=eve)["id"]
    for path in ("trace", f"trace?sandbox={own}", "state"):
        answer = PLANE.ask("GET", f"{NATIVE}/debug/{path}", key=eve)
        equal(answer.status, 403, path)
        equal(PLANE.ask("GET", f"{NATIVE}/debug/{path}", key="").status, 401, path)
    status, out, err = burrow("debug", "state", key=eve)
    equal((status, out), (1, ""), "status and output")
    assert "administrator" in err or "key" in err, err


@test
def what_is_no_id_is_refused_with_what_is():
    status, out, err = burrow("debug", "trace", "--request", "nonsense")
    equal((status, out), (1, ""), "status and output")
    assert "X-Request-Id" in err, err
    status, out, err = burrow("debug", "trace", "--sandbox", "nobody")
    equal((status, out), (1, ""), "status and output")
    assert "nobody" in err, err


@test
def the_state_has_a_line_for_everything():
    sandbox = PLANE.sandbox("made")["id"]
    status, out, err = burrow("debug", "state")
    equal((status, err), (0, ""), "status and complaints")
    for start in ("http: ", "domain: open", "store: ", "objects: ", "provider local: open",
                  f"  sandbox {sandbox} running name=made", f"  entry {sandbox} running",
                  "launcher: ", "keeper jobs: ", "janitor: ", f"  sandbox {sandbox} running pid="):
        assert any(line.startswith(start) for line in out.splitlines()), (start, out)


@test
def a_launcher_that_hangs_holds_up_nothing():
    os.kill(PLANE.pid, signal.SIGSTOP)
    try:
        status, out, err = burrow("debug", "trace", "--sandbox", "made")
        equal(status, 0, "status")
        assert "launcher: does not answer" in err and " daemon " in out, (out, err)
        status, out, err = burrow("debug", "state")
        equal((status, err), (0, ""), "status and complaints")
        assert "launcher: does not answer" in out and "call inspect" in out, out
    finally:
        os.kill(PLANE.pid, signal.SIGCONT)
    wait_until(lambda: "launcher: does not" not in burrow("debug", "state")[1], "it answers again")


@test
def a_line_of_the_log_has_the_id_of_its_request():
    request = traced("POST", f"{NATIVE}/sandboxes/made/exec", {"command": "true"})
    wait_until(lambda: request in PLANE.log(), "the log has it")
    lines = [json.loads(line) for line in PLANE.log().splitlines() if request in line and line.startswith("{")]
    levels = {one["level"] for one in lines}
    assert "debug" in levels, lines
    messages = {one["message"] for one in lines}
    for message in ("http.begin POST", "sandbox.use.ready", "http.end 200", "request"):
        assert message in messages, messages


@test
def a_client_does_not_choose_the_id_of_its_request():
    chosen = "a" * 26
    answer = PLANE.ask("GET", f"{NATIVE}/sandboxes", headers=[("X-Request-Id", chosen)])
    assert answer.headers["x-request-id"] != chosen, answer.headers


@test
def a_daemon_that_aborts_prints_what_it_did_last():
    request = traced("POST", f"{NATIVE}/sandboxes/made/exec", {"command": "true"})
    daemon = PLANE.daemon_pid
    os.kill(daemon, signal.SIGABRT)
    wait_until(lambda: not os.path.exists(f"/proc/{daemon}"), "it is gone")
    wait_until(PLANE.is_ready, "the next one is ready")
    log = PLANE.log()
    trace = log[log.index("the trace, as seconds, process, request, sandbox and point:"):]
    sandbox = PLANE.sandbox("made")["id"]
    assert f" daemon {request} {sandbox} http.end 200\n" in trace, trace[:2000]


def run():
    global PLANE  # pylint: disable=global-statement
    try:
        need_launcher()
    except Skip as lack:
        print(f"# skip: {lack}\nok 1 - debug # SKIP {lack}\n1..1")
        return 0
    with ControlPlane("--log-level", "debug") as PLANE:
        try:
            main()
        except SystemExit as end:
            return end.code
    return 0


sys.exit(run())
