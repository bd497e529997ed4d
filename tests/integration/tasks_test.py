#!/usr/bin/python3
# timeout: 600
"""Conversations, tasks, teams and schedules, with agents that are programs which print lines of JSON, in
real sandboxes behind a real daemon."""

import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from program import clean_environment, program, wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # main_with_plane sets it

# Says what it was asked, in pieces and whole, and what it cost.
ECHO = """printf '{"session":"s1"}\\n{"delta":"you ","part":"p1"}\\n'
printf '{"id":"p1","type":"text","text":"you said: %s"}\\n' "$BURROW_PROMPT"
printf '{"usage":{"input":10,"output":5},"cost":0.25}\\n'"""
# Counts how often it was started, and goes on until there is a file.
SLOW = 'echo x >> /workspace/starts; until [ -e /workspace/go ]; do sleep 0.1; done; echo slow'
WRITE = "mkdir -p /workspace; echo new > /workspace/made; echo wrote"


def call(method, path, body=None, **options):
    return PLANE.call(method, f"{NATIVE}{path}", body, timeout=120, **options)


def refused(status, method, path, body=None, **options):
    try:
        PLANE.call(method, f"{NATIVE}{path}", body, **options)
    except Refused as refusal:
        equal(refusal.status, status, f"{method} {path}: {refusal.body}")
        return refusal.body
    raise AssertionError(f"{method} {path} was not refused")


def conversation(name, command, **fields):
    made = call("POST", f"/sandboxes/{name}/conversations", {"kind": "command", "command": command, **fields})
    return f"/sandboxes/{name}/conversations/{made['id']}"


def events(path, key=None):
    """The events of a stream that ends by itself: [(type, id, data)]."""
    answer = PLANE.ask("GET", f"{NATIVE}{path}", timeout=120, key=key)
    equal(answer.status, 200, answer.body[:300])
    found = []
    for block in answer.body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and line[0] != ":")
        if "event" in fields:
            found.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
    return found


def ended(path):
    """The turn or task, when it is over."""
    def over():
        what = call("GET", path)
        return what if what["state"] in ("done", "failed", "cancelled") else None
    return wait_until(over, f"{path} is over")


@test
def a_turn_is_waited_for_and_has_answer_and_cost():
    PLANE.create("talk")
    place = conversation("talk", ECHO, title="a talk")
    turn = call("POST", f"{place}/turns", {"text": "hello", "wait": True})
    equal(turn["state"], "done", turn)
    equal(turn["answer"], "you said: hello", turn)
    equal(turn["usage"]["costMicros"], 250000, turn)
    equal(turn["text"], "hello", turn)
    equal(turn["error"], None, turn)
    equal(call("GET", f"{place}/turns/{turn['id']}")["answer"], turn["answer"], "read again")
    equal([one["id"] for one in call("GET", f"{place}/turns")["turns"]], [turn["id"]], "listed")
    equal(call("GET", place)["agentSession"], "s1", "the agent's own id")
    told = events(f"{place}/turns/{turn['id']}/events")
    equal([kind for kind, _, _ in told], ["turn.queued", "turn.started", "text", "turn.ended"], told)
    equal(told[2][2]["text"], "you said: hello", told)
    behind = events(f"{place}/turns/{turn['id']}/events?after={told[1][1]}")
    equal([kind for kind, _, _ in behind], ["text", "turn.ended"], "from any point")


@test
def a_turn_streams_from_the_request_that_begins_it():
    PLANE.create("stream")
    place = conversation("stream", ECHO)
    answer = PLANE.ask("POST", f"{NATIVE}{place}/turns", {"text": "hi", "wait": "stream"}, timeout=120)
    equal(answer.status, 200, answer.body[:300])
    assert b"event: turn.ended" in answer.body, answer.body


@test
def a_key_of_a_turn_counts_once():
    PLANE.create("once")
    place = conversation("once", ECHO)
    first = call("POST", f"{place}/turns", {"text": "a", "idempotencyKey": "k", "wait": True})
    again = call("POST", f"{place}/turns", {"text": "a", "idempotencyKey": "k"})
    equal(again["id"], first["id"], "the same turn")
    equal(len(call("GET", f"{place}/turns")["turns"]), 1, "turns")


@test
def a_turn_is_cancelled_and_the_next_one_goes():
    PLANE.create("cancel")
    place = conversation("cancel", SLOW)
    slow = call("POST", f"{place}/turns", {"text": "a"})
    waiting = call("POST", f"{place}/turns", {"text": "b"})
    wait_until(lambda: call("GET", f"{place}/turns/{slow['id']}")["state"] == "running", "it runs")
    equal(call("POST", f"{place}/turns/{waiting['id']}/cancel")["state"], "cancelled", "one that waits")
    equal(call("POST", f"{place}/turns/{slow['id']}/cancel")["state"], "cancelled", "one that runs")
    equal(call("POST", f"{place}/turns/{slow['id']}/cancel")["state"], "cancelled", "one that is over")


@test
def a_disconnected_client_cancels_nothing():
    PLANE.create("gone")
    place = conversation("gone", SLOW)
    thread = threading.Thread(
        target=lambda: PLANE.ask("POST", f"{NATIVE}{place}/turns", {"text": "a", "wait": True}, timeout=120))
    thread.start()
    turns = wait_until(lambda: call("GET", f"{place}/turns")["turns"], "it is begun")
    PLANE.execute("gone", "touch /workspace/go")
    thread.join()
    equal(ended(f"{place}/turns/{turns[0]['id']}")["state"], "done", "its end")


@test
def a_daemon_that_is_killed_finds_its_turn_again():
    PLANE.create("killed")
    place = conversation("killed", SLOW)
    turn = call("POST", f"{place}/turns", {"text": "a"})
    wait_until(lambda: PLANE.execute("killed", "cat /workspace/starts || true")["stdout"], "it has begun")
    PLANE.kill_hard("daemon")
    PLANE.execute("killed", "touch /workspace/go")
    after = ended(f"{place}/turns/{turn['id']}")
    equal(after["state"], "done", after)
    equal(PLANE.execute("killed", "cat /workspace/starts")["stdout"], "x\n", "started once")


@test
def others_and_narrow_keys():
    box = PLANE.create("narrow")
    place = conversation("narrow", ECHO)
    other = PLANE.user("eve")
    refused(404, "GET", place, key=other)
    refused(404, "POST", f"{place}/turns", {"text": "a"}, key=other)
    narrow = call("POST", "/keys", {"name": "n", "scope": "sandbox", "sandbox": box["id"]})["key"]
    turn = PLANE.call("POST", f"{NATIVE}{place}/turns", {"text": "a", "wait": True}, key=narrow, timeout=120)
    equal(turn["state"], "done", turn)
    refused(403, "POST", "/tasks", {"text": "a"}, key=narrow)


@test
def what_is_wrong_is_said():
    PLANE.create("wrong")
    place = conversation("wrong", ECHO)
    refused(400, "POST", f"{place}/turns", {})
    refused(400, "POST", f"{place}/turns", {"text": "a", "wait": "for ever"})
    refused(400, "POST", f"{place}/turns", {"text": "a", "model": "nameless"})
    refused(400, "POST", "/sandboxes/wrong/conversations", {"kind": "robot"})
    refused(404, "GET", "/sandboxes/wrong/conversations/aaaaaaaaaaaaaaaaaaaaaaaaaa")
    refused(404, "POST", "/sandboxes/wrong/permissions/aaaaaaaaaaaaaaaaaaaaaaaaaa", {"reply": "once"})
    refused(400, "POST", "/tasks", {"text": "a", "cleanup": "burn"})
    refused(404, "GET", "/tasks/aaaaaaaaaaaaaaaaaaaaaaaaaa")
    refused(400, "POST", "/schedules", {"name": "x", "cron": "* *", "task": {"text": "a"}})
    call("DELETE", place)
    refused(404, "GET", place)


@test
def a_task_has_files_a_diff_and_can_be_undone():
    task = call("POST", "/tasks", {
        "text": "write", "kind": "command", "command": WRITE, "cleanup": "keep", "wait": True,
        "folder": "/workspace", "files": [{"path": "given", "content": "hello"}]})
    equal(task["state"], "done", task)
    equal(task["answer"].strip(), "wrote", task)
    box = task["sandboxId"]
    equal(PLANE.execute(box, "cat /workspace/given")["stdout"], "hello", "its file")
    changes = call("GET", f"/tasks/{task['id']}/diff")["changes"]
    equal([change for change in changes if "workspace/made" in change.values()],
          [{"added": "workspace/made"}], changes)
    call("POST", f"/tasks/{task['id']}/undo")
    equal(PLANE.execute(box, "ls /workspace")["stdout"], "given\n", "after it was undone")
    told = events(f"/tasks/{task['id']}/events")
    equal((told[0][0], told[-1][0]), ("task", "task"), told)
    call("DELETE", f"/tasks/{task['id']}")
    refused(404, "GET", f"/tasks/{task['id']}")


@test
def a_task_that_is_over_may_leave_no_sandbox():
    task = call("POST", "/tasks", {"text": "a", "kind": "command", "command": ECHO, "cleanup": "destroy",
                                   "wait": True})
    equal(task["answer"], "you said: a", task)
    wait_until(lambda: PLANE.ask("GET", f"{NATIVE}/sandboxes/{task['sandboxId']}").status == 404, "it is gone")
    equal(call("GET", f"/tasks/{task['id']}")["answer"], "you said: a", "the result stays")


@test
def a_team_works_together():
    team = call("POST", "/teams", {
        "members": [{"role": "a", "text": "1"}, {"role": "b", "text": "2", "command": "exit 3"}],
        "kind": "command", "command": ECHO, "cleanup": "destroy", "wait": True})
    equal(team["state"], "partial", team)
    equal([(one["role"], one["state"]) for one in team["members"]], [("a", "done"), ("b", "failed")], team)
    equal(team["members"][0]["answer"], "you said: 1", team)


@test
def a_schedule_is_kept_changed_and_run():
    made = call("POST", "/schedules", {
        "name": "news", "cron": "0 7 * * mon-fri", "timeZone": "Europe/Berlin",
        "task": {"text": "tick", "kind": "command", "command": ECHO, "cleanup": "destroy"}})
    assert made["nextAt"] and not made["paused"], made
    task = call("POST", "/schedules/news/run")
    equal(ended(f"/tasks/{task['id']}")["state"], "done", "its task")
    equal(call("PATCH", "/schedules/news", {"paused": True})["nextAt"], None, "paused")
    PLANE.kill_hard("daemon")
    equal(call("GET", "/schedules/news")["paused"], True, "kept")
    call("DELETE", "/schedules/news")
    refused(404, "GET", "/schedules/news")


def cli(*words):
    variables = clean_environment({"BURROW_URL": f"http://{PLANE.address}",
                                   "BURROW_API_KEY": PLANE.key})
    return subprocess.run([program(), *words], env=variables, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=120, check=False)


@test
def the_command_line_follows_a_task():
    done = cli("task", "run", "from", "here", "--kind", "command", "--command", ECHO, "--cleanup", "destroy",
               "--follow")
    equal(done.returncode, 0, done.stderr)
    assert "you said: from here" in done.stdout, done.stdout
    listed = cli("task", "ls", "--json")
    equal(listed.returncode, 0, listed.stderr)
    newest = json.loads(listed.stdout)[0]
    shown = cli("task", "show", newest["id"])
    assert "you said: from here" in shown.stdout, shown.stdout
    PLANE.create("chat")
    said = cli("agent", "chat", "--kind", "command", "--command", ECHO, "good", "day")
    equal((said.returncode, said.stdout), (0, "you said: good day\n"), said.stderr)
    again = cli("agent", "chat", "--resume", "more")
    equal(again.stdout, "you said: more\n", again.stderr)
    failed = cli("task", "run", "x", "--kind", "command", "--command", "exit 1", "--follow")
    equal(failed.returncode, 1, failed.stdout)


sys.exit(main_with_plane("tasks"))
