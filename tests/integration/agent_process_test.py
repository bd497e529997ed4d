#!/usr/bin/python3
"""Background processes of the agent: their states and ends.

# timeout: 600
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent, find_processes  # noqa: E402
from agent_processes import (delete, ended, events, get, listed, logs, post, process,  # noqa: E402
                             start, viewing)
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from shared import SHARED  # noqa: E402
from tap import equal, main, patient, test  # noqa: E402

FINISHED_MAX = 256

# A grandchild in a session of its own whose parents have ended; `%s` is its mark. Silent, so that
# nothing but its ancestry leads to it.
DAEMON = ("/usr/bin/python3 -c 'import os,time\n"
          "if os.fork(): os._exit(0)\n"
          "os.setsid()\n"
          "if os.fork(): os._exit(0)\n"
          "for fd in 0, 1, 2: os.close(fd)\n"
          "time.sleep(300)' %s")


# --- states --------------------------------------------------------------------------------------


@test
def a_process_is_started_with_a_pid_and_an_id():
    reply = post("/api/process/start", {"command": "sleep 300 # mark", "sessionId": NO_SESSION})
    equal(sorted(reply), ["command", "pid", "processId", "success", "timestamp"], "fields")
    equal((reply["success"], reply["command"]), (True, "sleep 300 # mark"), "reply")
    words = reply["processId"].split("_")
    equal((words[0], len(words[2]), words[1].isdigit()), ("proc", 6, True), "id")
    found = process(reply["processId"])
    equal((found["id"], found["pid"], found["status"]),
          (reply["processId"], reply["pid"], "running"), "process")
    assert "exitCode" not in found and "endTime" not in found, found
    os.kill(reply["pid"], 0)
    delete(f"/api/process/{reply['processId']}")


@test
def the_exit_status_decides_between_completed_and_failed():
    good, bad = ended(start("echo hi")), ended(start("exit 3"))
    equal((good["status"], good["exitCode"]), ("completed", 0), "good")
    equal((bad["status"], bad["exitCode"]), ("failed", 3), "bad")
    assert "signal" not in bad, bad
    assert good["startTime"] <= good["endTime"], good


@test
def a_signal_is_told_from_a_status():
    crashed = ended(start("kill -SEGV $$"))
    equal((crashed["status"], crashed["exitCode"], crashed["signal"]),
          ("failed", 139, "SIGSEGV"), "crashed")
    murdered = ended(start("kill -KILL $$"))
    equal((murdered["status"], murdered["exitCode"], murdered["signal"]),
          ("killed", 137, "SIGKILL"), "killed from inside")


@test
def the_end_is_known_even_when_the_supervisor_was_killed():
    identity = start("sleep 0.3; kill -STOP $PPID; exit 7")
    pid = process(identity)["pid"]
    supervisor = wait_until(lambda: parent_of_zombie(pid), "a command that nobody reaps")
    os.kill(supervisor, signal.SIGKILL)
    found = ended(identity)
    equal((found["status"], found["exitCode"]), ("failed", 7), "end")


@test
def a_missing_directory_is_an_error_and_remembered_as_one():
    reply = post("/api/process/start", {"command": "true", "cwd": "/nowhere/at/all",
                                        "processId": "lost", "sessionId": NO_SESSION}, 500)
    equal((reply["code"], reply["context"], reply["operation"]),
          ("PROCESS_ERROR", {"processId": "lost"}, "process.start"), "error")
    found = process("lost")
    equal((found["status"], found["exitCode"], "pid" in found), ("error", None, False), "process")
    assert "working directory" in logs("lost")["stderr"], logs("lost")
    equal([event["type"] for event in events("lost")], ["process_info", "stderr", "exit"],
          "its stream")
    assert "lost" in listed(status="error")


@test
def what_is_no_request_is_refused():
    for document, code in (({"command": " \n"}, "INVALID_COMMAND"),
                           ({}, "VALIDATION_FAILED"),
                           ({"command": 7}, "VALIDATION_FAILED"),
                           ({"command": "x" * 200000}, "VALIDATION_FAILED"),
                           ({"command": "true", "timeoutMs": -1}, "VALIDATION_FAILED"),
                           ({"command": "true", "env": {"A B": "1"}}, "VALIDATION_FAILED"),
                           ({"command": "true", "processId": "a/b"}, "VALIDATION_FAILED"),
                           ({"command": "true", "processId": "list"}, "VALIDATION_FAILED"),
                           ({"command": "true", "processId": ""}, "VALIDATION_FAILED"),
                           ({"command": "true", "sessionId": " "}, "VALIDATION_FAILED")):
        equal(post("/api/process/start", document, 400)["code"], code, str(document)[:80])
    equal(get("/api/process/list?status=lazy", 400)["code"], "VALIDATION_FAILED", "status")


@test
def an_unknown_process_is_not_found():
    for path in ("", "/logs", "/stream"):
        reply = get("/api/process/nobody" + path, 404)
        equal((reply["code"], reply["context"]),
              ("PROCESS_NOT_FOUND", {"processId": "nobody"}), path)
    equal(delete("/api/process/nobody", 404)["code"], "PROCESS_NOT_FOUND", "kill")


@test
def an_id_of_ones_own_is_unique_while_it_lives():
    equal(start("sleep 300", processId="mine"), "mine", "id")
    reply = post("/api/process/start", {"command": "true", "processId": "mine"}, 409)
    equal((reply["code"], reply["context"]["processId"]), ("RESOURCE_BUSY", "mine"), "error")
    delete("/api/process/mine")
    equal(start("echo second", processId="mine"), "mine", "id again")
    equal((ended("mine")["command"], listed().count("mine")), ("echo second", 1), "the new one")


@test
def the_list_has_all_and_filters():
    alive, done = start("sleep 300"), start("true")
    ended(done)
    everything = listed()
    assert everything.index(alive) < everything.index(done), everything
    assert alive in listed(status="running") and done not in listed(status="running")
    assert done in listed(status="completed") and alive not in listed(status="completed")
    delete(f"/api/process/{alive}")
    assert alive in listed(status="killed")


@test
def directory_and_variables_are_those_of_the_call():
    identity = start("pwd; echo $COLOUR", cwd="/usr", env={"COLOUR": "green", "NONE": None})
    ended(identity)
    equal(logs(identity)["stdout"], "/usr\ngreen\n", "output")


@test
def stdin_is_empty_and_a_syntax_error_is_the_commands_own():
    identity = start("cat; echo done")
    ended(identity)
    equal(logs(identity)["stdout"], "done\n", "output")
    broken = start("echo 'unfinished")
    equal(ended(broken)["status"], "failed", "status")
    assert "unexpected EOF" in logs(broken)["stderr"], logs(broken)


@test
def a_timeout_kills_the_whole_tree():
    mark = f"burrow-timeout-301-{os.getpid():07d}"
    identity = start(f"{DAEMON % mark}; sleep 300", timeoutMs=500)
    wait_until(lambda: find_processes(mark), "the daemon")
    found = ended(identity)
    equal((found["status"], found["exitCode"], found["timedOut"]), ("killed", 124, True), "end")
    wait_until(lambda: not find_processes(mark), "end of the daemon")
    assert "timed out after 500ms" in logs(identity)["stderr"]


@test
def who_cleans_up_after_himself_is_forgotten_soon():
    identity = start("echo quick", autoCleanup=True)
    equal(ended(identity)["status"], "completed", "status")
    equal(logs(identity)["stdout"], "quick\n", "logs for who has waited")
    wait_until(lambda: identity not in listed(), "to be forgotten")
    get(f"/api/process/{identity}", 404)


@test
def only_so_many_finished_ones_are_remembered():
    with Agent() as agent:
        first = start("echo first", agent=agent)
        ended(first, agent)
        for _ in range(FINISHED_MAX + 10):
            last = start("true", agent=agent)
        ended(last, agent)
        wait_until(lambda: agent.activity()["processes"] == 0, "the end of all")
        found = get("/api/process/list", agent=agent)["processes"]
        equal(len(found), FINISHED_MAX, "remembered")
        get(f"/api/process/{first}", 404, agent=agent)
        equal(found[-1]["id"], last, "the newest")


@test
def running_processes_are_activity():
    with Agent() as agent:
        equal(agent.activity()["processes"], 0, "before")
        identity = start("sleep 300", agent=agent)
        found = agent.activity()
        equal((found["processes"], found["running"], found["idleMs"]), (1, 1, 0), "meanwhile")
        delete(f"/api/process/{identity}", agent=agent)
        wait_until(lambda: agent.activity()["processes"] == 0, "the end")
        equal(agent.activity()["background"], 0, "left behind")


# --- sessions ------------------------------------------------------------------------------------


@test
def a_process_starts_where_its_session_is():
    SHARED.run("cd /usr/lib; export COLOUR=blue; hue() { echo $COLOUR; }; export -f hue",
               sessionId="painter")
    identity = start("pwd; hue; COLOUR=red; cd /", sessionId="painter")
    equal(ended(identity)["status"], "completed", "status")
    equal(logs(identity)["stdout"], "/usr/lib\nblue\n", "output")
    beside = start("pwd", sessionId="painter", cwd="../include")
    ended(beside)
    equal(logs(beside)["stdout"], "/usr/include\n", "a relative directory")
    equal(SHARED.run("pwd; hue", sessionId="painter")["stdout"], "/usr/lib\nblue", "the session")


@test
def execute_in_the_background_starts_a_process():
    reply = post("/api/execute", {"command": "echo hidden", "background": True})
    equal(sorted(reply), ["command", "pid", "processId", "success", "timestamp"], "fields")
    ended(reply["processId"])
    equal(logs(reply["processId"])["stdout"], "hidden\n", "logs")


@test
def a_process_is_starting_until_its_session_is_free():
    folder = tempfile.mkdtemp()
    gate = f"{folder}/gate"
    os.mkfifo(gate)
    busy = threading.Thread(target=lambda: SHARED.run(f"cat {gate}", sessionId="busy"))
    busy.start()
    wait_until(lambda: find_processes(f"cat\0{gate}"), "the session to be busy")
    statuses = {}
    starters = [threading.Thread(target=lambda name=name: statuses.update({name: SHARED.post(
        "/api/process/start", {"command": "echo now", "sessionId": "busy", "processId": name})}))
        for name in ("doomed", "patient")]
    for starter in starters:
        starter.start()
    wait_until(lambda: {"doomed", "patient"} <= set(listed(status="starting")), "both to wait")
    delete("/api/process/doomed")
    found = process("doomed")
    equal((found["status"], found["exitCode"], "pid" in found), ("killed", None, False), "doomed")
    with open(gate, "w", encoding="ascii"):
        pass
    shutil.rmtree(folder)
    for thread in (*starters, busy):
        thread.join()
    equal((statuses["doomed"].status, json.loads(statuses["doomed"].body)["code"]),
          (500, "PROCESS_ERROR"), "start of the doomed")
    equal(statuses["patient"].status, 200, "start of the patient")
    equal(ended("patient")["status"], "completed", "end of the patient")


@test
def a_deleted_session_takes_its_processes_along():
    identity = start("sleep 300", sessionId="mortal")
    other = start("sleep 300", sessionId="other")
    post("/api/session/delete", {"sessionId": "mortal"})
    equal(ended(identity)["status"], "killed", "status")
    equal(process(other)["status"], "running", "that of another session")
    delete(f"/api/process/{other}")


# --- killing -------------------------------------------------------------------------------------


@test
def killing_is_done_when_it_is_answered():
    identity = start("trap 'echo bye; exit 0' TERM; echo hi; while :; do sleep 0.05; done")
    wait_until(lambda: logs(identity)["stdout"], "the trap to be set")
    reply = delete(f"/api/process/{identity}")
    equal((reply["success"], reply["processId"]), (True, identity), "reply")
    found = process(identity)
    equal((found["status"], found["exitCode"]), ("killed", 0), "a good end is still told")
    equal(logs(identity)["stdout"], "hi\nbye\n", "last words")
    plain = start("sleep 300")
    delete(f"/api/process/{plain}")
    found = process(plain)
    equal((found["status"], found["exitCode"], found["signal"]), ("killed", 143, "SIGTERM"), "end")


@test
def what_has_ended_cannot_be_killed():
    identity = start("true")
    ended(identity)
    wait_until(lambda: request(SHARED.address, "DELETE", f"/api/process/{identity}").status == 404,
               "nothing to be left")
    reply = delete(f"/api/process/{identity}", 404)
    equal((reply["code"], reply["context"]), ("COMMAND_NOT_FOUND", {"processId": identity}),
          "error")
    equal(process(identity)["status"], "completed", "status")


@test
def a_daemon_dies_with_its_process():
    mark = f"burrow-daemon-302-{os.getpid():07d}"
    identity = start(f"{DAEMON % mark}; sleep 300")
    wait_until(lambda: find_processes(mark), "the daemon")
    delete(f"/api/process/{identity}")
    equal(find_processes(mark), [], "daemons")


@test
def what_a_finished_process_left_can_be_killed_with_it():
    mark = f"burrow-left-303-{os.getpid():07d}"
    identity = start(DAEMON % mark)
    found = ended(identity)
    equal(found["status"], "completed", "status")
    wait_until(lambda: find_processes(mark), "the daemon")
    delete(f"/api/process/{identity}")
    equal(find_processes(mark), [], "daemons")
    equal(process(identity)["status"], "completed", "status of what had ended before")


@patient
def sigkill_follows_for_who_ignores_sigterm():
    mark = f"burrow-stubborn-304-{os.getpid():07d}"
    identity = start("trap '' TERM; exec /usr/bin/python3 -c 'import time; time.sleep(300)' "
                     f"{mark}")
    wait_until(lambda: find_processes(mark), "the process")
    begun = time.monotonic()
    delete(f"/api/process/{identity}")
    took = time.monotonic() - begun
    assert 4.5 < took, took
    found = process(identity)
    equal((found["status"], found["exitCode"], found["signal"]), ("killed", 137, "SIGKILL"), "end")
    equal(find_processes(mark), [], "left")


@patient
def stubborn_children_of_a_tame_process_are_killed_too():
    mark = f"burrow-stubborn-305-{os.getpid():07d}"
    identity = start("(trap '' TERM; /usr/bin/python3 -c 'import time; time.sleep(300)' "
                     f"{mark}) & wait")
    wait_until(lambda: find_processes(mark), "the child")
    delete(f"/api/process/{identity}")
    equal((process(identity)["status"], find_processes(mark)), ("killed", []), "end")


@patient
def several_may_kill_the_same():
    identity = start("trap '' TERM; echo hi; while :; do sleep 0.1; done")
    wait_until(lambda: logs(identity)["stdout"], "the trap to be set")
    statuses = []
    killers = [threading.Thread(target=lambda: statuses.append(
        request(SHARED.address, "DELETE", f"/api/process/{identity}", timeout=30).status))
        for _ in range(5)]
    for killer in killers:
        killer.start()
    for killer in killers:
        killer.join()
    equal(statuses, [200] * 5, "statuses")


@patient
def a_killer_who_leaves_changes_nothing():
    identity = start("trap '' TERM; while :; do sleep 0.1; done")
    with connect(SHARED.address) as connection:
        connection.send(f"DELETE /api/process/{identity} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        time.sleep(0.2)
    equal(ended(identity)["status"], "killed", "status")


@test
def kill_all_counts_and_leaves_none():
    with Agent() as agent:
        equal(delete("/api/process/kill-all", agent=agent)["cleanedCount"], 0, "of none")
        for _ in range(20):
            start("sleep 300", agent=agent)
        ended(start("true", agent=agent), agent)
        wait_until(lambda: agent.activity()["background"] == 0, "nothing left of the last")
        equal(delete("/api/process/kill-all", agent=agent)["cleanedCount"], 20, "count")
        equal(len(get("/api/process/list?status=killed", agent=agent)["processes"]), 20, "killed")
        equal(agent.activity()["running"], 0, "running")


@test
def the_end_of_the_agent_is_the_end_of_all():
    mark = f"burrow-end-306-{os.getpid():07d}"
    with Agent() as agent:
        start(f"{DAEMON % mark}; sleep 300", agent=agent)
        wait_until(lambda: find_processes(mark), "the daemon")
        with viewing(start("sleep 300", agent=agent), agent), \
                agent.open_stream("sleep 300", sessionId=NO_SESSION):
            agent.stop()
    wait_until(lambda: not find_processes(mark), "the end of the daemon")


# --- small things --------------------------------------------------------------------------------


def parent_of_zombie(pid):
    """The parent of a process that has ended; None while it lives."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        state, parent = file.read().rpartition(")")[2].split()[:2]
    return int(parent) if state == "Z" else None


with Agent() as AGENT:
    SHARED.stand_for(AGENT)
    main()
