#!/usr/bin/python3
# timeout: 600
"""Our own dialect, /burrow/v1, against the daemon with real sandboxes.

One daemon serves all tests; each test has a sandbox of its own."""

import io
import json
import os
import sys
import tarfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, main_with_plane  # noqa: E402
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402
from websocket_raw import BINARY, TEXT, open_websocket  # noqa: E402

PLANE = None  # the daemon
BIG = 64 * 1024 * 1024
MEMORY_ROOM_KB = 16 * 1024  # what streaming may cost the daemon, whatever the size


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def refused(answer, status, code):
    body = json.loads(answer.body)
    equal((answer.status, body["error"]["code"]), (status, code), f"refusal ({body})")
    equal(sorted(body["error"]), ["code", "message", "requestId"], "fields of an error")
    equal(body["error"]["requestId"], answer.headers["x-request-id"], "request id")


def rss_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


def bearer():
    return f"Authorization: Bearer {PLANE.key}"


# --- refusals -------------------------------------------------------------------------------------

def key_of_new_user(name, quotas):
    user = PLANE.call("POST", f"{NATIVE}/users", {"name": name, "quotas": quotas})["id"]
    key = PLANE.call("POST", f"{NATIVE}/keys", {"name": "k", "scope": "write", "user": user})["key"]
    return user, key


def denials_of(user, count):
    """(action, object, outcome) of all, once there are so many."""
    def entries():
        told = [(entry["action"], entry["object"], entry["outcome"])
                for entry in PLANE.call("GET", f"{NATIVE}/audit")["entries"]
                if entry["userId"] == user and entry["outcome"] != "ok"]
        return len(told) >= count and sorted(told)
    return wait_until(entries, f"{count} denials")


@test
def what_was_refused_is_in_the_audit_log():
    theirs = PLANE.create("not-eves")["id"]
    eve, key = key_of_new_user("eve", {"sandboxes": 1})
    PLANE.create("eves", key=key)
    for status, code, path, body in (
            (404, "not_found", of(theirs, "/exec"), {"command": "true"}),
            (403, "forbidden", f"{NATIVE}/keys", {"name": "wide", "scope": "admin"}),
            (429, "quota_exceeded", f"{NATIVE}/sandboxes", {"name": "one-too-many"})):
        refused(PLANE.ask("POST", path, body, key=key), status, code)
    equal(denials_of(eve, 3),
          [(f"POST {NATIVE}/keys", "", "forbidden"), (f"POST {NATIVE}/sandboxes", "", "quota_exceeded"),
           ("sandbox.find", theirs, "not_found")], "denials")


@test
def asking_for_what_is_somebody_elses_is_in_the_audit_log():
    box = PLANE.create("not-mallorys")["id"]
    mallory, key = key_of_new_user("mallory", {"sandboxes": 1})
    own = PLANE.create("mallorys", key=key)["id"]
    theirs = {
        "backup": PLANE.call("POST", of(box, "/backups"), {})["id"],
        "key": PLANE.call("POST", f"{NATIVE}/keys", {"name": "not-mallorys", "scope": "read"})["id"],
        "snapshot": PLANE.call("POST", of(box, "/snapshots"), {})["id"],
        "user": PLANE.call("GET", f"{NATIVE}/users/me")["id"],
        "webhook": PLANE.call("POST", f"{NATIVE}/webhooks", {"url": "https://example.org/"})["id"],
    }
    for kind, object_id in theirs.items():
        answer = PLANE.ask("DELETE", f"{NATIVE}/{kind}s/{object_id}", key=key)
        if kind == "user":  # for administrators only: refused before anything is looked for
            equal(answer.status, 403, "status")
            answer = PLANE.ask("GET", f"{NATIVE}/{kind}s/{object_id}", key=key)
        equal(answer.status, 404, f"status for a {kind} ({answer.body})")
        equal(PLANE.ask("DELETE", f"{NATIVE}/{kind}s/{own}", key=key).status,
              403 if kind == "user" else 404, f"status for a {kind} that is none")
    answer = PLANE.ask("POST", of(own, "/restore"), {"backup": theirs["backup"]}, key=key)
    equal(answer.status, 404, f"status of a restore ({answer.body})")
    found = [entry for entry in denials_of(mallory, 8) if entry[0].endswith(".find")]
    expected = {(f"{kind}.find", object_id) for kind, object_id in theirs.items()}
    equal({entry[:2] for entry in found}, expected, "denials")
    equal(len(found), len(theirs) + 1, "denials, with the restore's")


# --- sandboxes ------------------------------------------------------------------------------------

@test
def a_sandbox_lives_through_all_its_states():
    box = PLANE.create("life", labels={"team": "a"}, limits={"memory": "256M"}, sleepAfter="5m")
    equal(box["status"], "running", "status")
    equal(box["limits"]["memory"], 256 << 20, "memory")
    equal(PLANE.create("life")["id"], box["id"], "id of a second create")
    PLANE.execute("life", "echo kept > /workspace/file; cd /tmp; export A=b", sessionId="s")
    for action, expected in (("sleep", ("frozen", "hibernated")), ("wake", ("running",)),
                             ("stop", ("stopped",)), ("start", ("running",))):
        status = PLANE.call("POST", of("life", f"/{action}"))["status"]
        assert status in expected, (action, status)
    equal(PLANE.execute("life", "cat /workspace/file")["stdout"], "kept\n", "the file")
    PLANE.call("POST", of("life", "/sleep"))
    equal(PLANE.execute("life", "cat /workspace/file")["stdout"], "kept\n", "after a wake by use")
    listed = PLANE.call("GET", f"{NATIVE}/sandboxes?label=team=a")["sandboxes"]
    equal([one["name"] for one in listed], ["life"], "list by label")
    stats = PLANE.call("GET", of("life", "/stats"))
    assert stats["cpuMicroseconds"] > 0, stats
    types = [event["type"] for event in PLANE.call("GET", of("life", "/events"))["events"]]
    equal(types[0], "sandbox.created", "first event")
    assert "sandbox.woken" in types and "sandbox.stopped" in types, types
    equal(PLANE.ask("DELETE", of("life")).status, 204, "destroy")
    refused(PLANE.ask("GET", of("life")), 404, "not_found")


@test
def pages_of_a_list_join_to_the_whole():
    names = {f"page-{number}" for number in range(5)}
    for name in names:
        PLANE.create(name, labels={"page": "1"})
    found, cursor = [], ""
    while True:
        page = PLANE.call("GET", f"{NATIVE}/sandboxes?label=page&limit=2{cursor}")
        found += [one["name"] for one in page["sandboxes"]]
        if not page["nextCursor"]:
            break
        cursor = f"&cursor={page['nextCursor']}"
    equal((len(found), set(found)), (5, names), "names")
    for name in names:
        PLANE.call("DELETE", of(name))


@test
def changed_variables_reach_what_is_started_later():
    PLANE.create("vars", env={"A": "1"})
    equal(PLANE.execute("vars", "echo $A$B")["stdout"], "1\n", "as created")
    PLANE.call("PATCH", of("vars"), {"env": {"B": "2"}})
    equal(PLANE.execute("vars", "echo $A$B")["stdout"], "12\n", "as changed")
    PLANE.call("PATCH", of("vars"), {"env": {"A": None}})
    equal(PLANE.execute("vars", "echo $A$B$HOME")["stdout"], "2/root\n", "as removed")
    PLANE.call("DELETE", of("vars"))


# --- commands -------------------------------------------------------------------------------------

@test
def commands_say_how_they_ended():
    PLANE.create("exec")
    answer = PLANE.execute("exec", "echo out; echo err >&2; exit 3")
    equal((answer["stdout"], answer["stderr"], answer["exitCode"]), ("out\n", "err\n", 3), "answer")
    equal(PLANE.execute("exec", ["printf", "%s", "a b"])["stdout"], "a b", "argv")
    equal(PLANE.execute("exec", "cat", stdin="in")["stdout"], "in", "stdin")
    equal(PLANE.execute("exec", "pwd", cwd="/tmp")["stdout"], "/tmp\n", "cwd")
    equal(PLANE.execute("exec", "echo $X", env={"X": "y"})["stdout"], "y\n", "env")
    equal(PLANE.execute("exec", "id -u", user="nobody")["stdout"], "65534\n", "user")
    answer = PLANE.call("POST", of("exec", "/exec"), {"argv": ["sleep", "9"], "timeout": "200ms"})
    equal((answer["exitCode"], answer["timedOut"]), (124, True), "a timeout")
    equal(PLANE.execute("exec", "kill -9 $$")["signal"], "SIGKILL", "a signal")
    PLANE.execute("exec", "cd /usr; export S=1", sessionId="one")
    equal(PLANE.execute("exec", "pwd; echo $S", sessionId="one")["stdout"].split(), ["/usr", "1"],
          "a session")
    refused(PLANE.ask("POST", of("exec", "/exec"), {"cmd": "x"}), 400, "invalid_request")
    refused(PLANE.ask("POST", of("exec", "/exec"), {"command": "id", "user": "zz"}), 400,
            "invalid_request")
    PLANE.call("DELETE", of("exec"))


@test
def a_command_is_followed_as_events():
    PLANE.create("follow")
    answer = PLANE.ask("POST", of("follow", "/exec"), {"command": "echo a; exit 2", "stream": True})
    equal(answer.headers["content-type"], "text/event-stream", "type")
    events = [json.loads(piece.removeprefix(b"data: ")) for piece in answer.body.split(b"\n\n")[:-1]]
    equal([event["type"] for event in events], ["start", "stdout", "complete"], "events")
    equal((events[1]["data"], events[2]["exitCode"]), ("a\n", 2), "what they say")
    PLANE.call("DELETE", of("follow"))


@test
def a_command_over_a_websocket_has_input_and_end():
    PLANE.create("socket")
    with open_websocket(PLANE.address, of("socket", "/exec/ws"), [bearer()]) as client:
        client.send(TEXT, b'{"argv":["cat"]}')
        assert json.loads(client.receive_message()[1])["type"] == "started"
        client.send(BINARY, b"\x00hello")
        client.send(TEXT, b'{"type":"eof"}')
        output, ending = b"", None
        while not ending:
            opcode, payload = client.receive_message()
            if opcode == BINARY:
                output += payload[1:]
            elif json.loads(payload)["type"] == "exit":
                ending = json.loads(payload)
        equal((output, ending["code"]), (b"hello", 0), "output and end")
    refused(PLANE.ask("GET", of("socket", "/exec/ws")), 426, "upgrade_required")
    PLANE.call("DELETE", of("socket"))


@test
def a_terminal_is_found_again_with_what_was_on_it():
    PLANE.create("term")
    path = of("term", "/terminals?sessionId=t&cols=80&rows=24")

    def read_until(client, wanted, kind=BINARY):
        seen = b""
        while wanted not in seen:
            opcode, payload = client.receive_message()
            seen += payload if opcode == kind else b""

    with open_websocket(PLANE.address, path, [bearer()]) as client:
        read_until(client, b"ready", TEXT)
        client.send(BINARY, b"echo mar''ker\n")
        read_until(client, b"marker")
    with open_websocket(PLANE.address, path, [bearer()]) as client:
        read_until(client, b"marker")
        client.send(TEXT, b'{"type":"resize","cols":100,"rows":30}')
        client.send(BINARY, b"stty size\n")
        read_until(client, b"30 100")
    PLANE.call("DELETE", of("term"))


@test
def processes_have_logs():
    PLANE.create("proc")
    PLANE.call("POST", of("proc", "/processes"), {"command": "echo one; sleep 60", "id": "p"})
    wait_until(lambda: PLANE.call("GET", of("proc", "/processes/p/logs"))["stdout"] == "one\n",
               "its first line")
    equal(PLANE.call("GET", of("proc", "/processes"))["processes"][0]["id"], "p", "list")
    PLANE.call("DELETE", of("proc", "/processes/p"))
    answer = PLANE.ask("GET", of("proc", "/processes/p/logs/stream"))
    assert b'"type":"exit"' in answer.body, answer
    refused(PLANE.ask("GET", of("proc", "/processes/none")), 404, "not_found")
    PLANE.call("DELETE", of("proc"))


@test
def code_runs_in_a_context():
    PLANE.create("code")
    made = PLANE.call("POST", of("code", "/code/contexts"), {"language": "python"})
    for code in ("x = 20", "x + 1"):
        answer = PLANE.ask("POST", of("code", "/code/run"),
                           {"code": code, "contextId": made["contextId"]}, timeout=30)
    assert b'"text":"21"' in answer.body, answer
    PLANE.call("DELETE", of("code", f"/code/contexts/{made['contextId']}"))
    PLANE.call("DELETE", of("code"))


# --- files ----------------------------------------------------------------------------------------

@test
def files_stream_both_ways_with_flat_memory():
    PLANE.create("big", limits={"disk": "512M"})
    before = rss_kb(PLANE.daemon_pid)
    pattern = bytes(range(256)) * 4096
    with connect(PLANE.address, 60) as upload:
        upload.send(f"PUT {of('big', '/files/workspace/big')} HTTP/1.1\r\nHost: a\r\n{bearer()}\r\n"
                    f"Content-Length: {BIG}\r\n\r\n".encode())
        for _ in range(BIG // len(pattern)):
            upload.send(pattern)
        equal(json.loads(upload.response().body)["bytesWritten"], BIG, "bytes")
    with connect(PLANE.address, 60) as download:
        download.send(f"GET {of('big', '/files/workspace/big')} HTTP/1.1\r\nHost: a\r\n"
                      f"{bearer()}\r\n\r\n".encode())
        time.sleep(1)  # a client that does not read
        room = rss_kb(PLANE.daemon_pid) - before
        body = download.response().body
    equal((len(body), body[:256], body[-256:]), (BIG, pattern[:256], pattern[-256:]), "the file")
    assert room < MEMORY_ROOM_KB, f"the daemon grew by {room} KiB"
    PLANE.call("DELETE", of("big"))


@test
def files_are_read_in_ranges_listed_moved_and_deleted():
    PLANE.create("files")
    path = of("files", "/files/workspace/d%20ir/a.txt")
    PLANE.call("POST", of("files", "/files/workspace/d%20ir"), {"action": "mkdir"})
    PLANE.call("PUT", path, b"0123456789")
    answer = PLANE.ask("GET", path, headers=[("Range", "bytes=2-4")])
    equal((answer.status, answer.body, answer.headers["content-range"]),
          (206, b"234", "bytes 2-4/10"), "a range")
    equal(PLANE.ask("GET", path, headers=[("Range", "bytes=99-")]).status, 416, "outside")
    head = PLANE.ask("GET", path)
    equal(head.headers["content-security-policy"], "sandbox", "policy")
    listed = PLANE.call("GET", of("files", "/files/workspace/d%20ir?list=1"))["files"]
    equal([entry["name"] for entry in listed], ["a.txt"], "list")
    PLANE.call("POST", path, {"action": "move", "to": "/workspace/b.txt"})
    refused(PLANE.ask("GET", path), 404, "not_found")
    equal(PLANE.ask("GET", of("files", "/files/workspace/b.txt")).body, b"0123456789", "moved")
    equal(PLANE.ask("DELETE", of("files", "/files/workspace/b.txt")).status, 204, "delete")
    equal(PLANE.ask("DELETE", of("files", "/files/workspace/d%20ir?recursive=1")).status, 204,
          "delete a folder")
    PLANE.call("DELETE", of("files"))


@test
def folders_travel_as_archives():
    PLANE.create("tar")
    PLANE.call("PUT", of("tar", "/files/workspace/in/a"), b"content")
    archive = PLANE.ask("GET", of("tar", "/archive?path=/workspace/in")).body
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        equal(opened.extractfile("./a").read(), b"content", "in the archive")
    PLANE.call("PUT", of("tar", "/archive?path=/workspace/out"), archive)
    equal(PLANE.ask("GET", of("tar", "/files/workspace/out/a")).body, b"content", "unpacked")
    PLANE.call("DELETE", of("tar"))


@test
def changes_of_files_are_told():
    PLANE.create("watch")
    with connect(PLANE.address) as client:
        body = b'{"path":"/workspace"}'
        client.send(f"POST {of('watch', '/watch')} HTTP/1.1\r\nHost: a\r\n{bearer()}\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        equal(client.response_head().status, 200, "status")
        PLANE.call("PUT", of("watch", "/files/workspace/new"), b"x")
        seen = b""
        for piece in client.chunks():
            seen += piece
            if b"/workspace/new" in seen:
                break
    PLANE.call("DELETE", of("watch"))


# --- the rest -------------------------------------------------------------------------------------

@test
def the_container_api_is_there_but_not_the_control_plane_s():
    PLANE.create("inner")
    path = of("inner", "/container")
    equal(PLANE.call("GET", f"{path}/api/ping")["status"], "healthy", "ping")
    answer = PLANE.call("POST", f"{path}/api/execute", {"command": "echo via"})
    equal(answer["stdout"].strip(), "via", "execute")
    refused(PLANE.ask("GET", f"{path}/burrow/handshake"), 404, "not_found")
    with open_websocket(PLANE.address, f"{path}/ws", [bearer()]) as client:
        client.send(TEXT, b'{"type":"request","id":"1","method":"GET","path":"/api/ping"}')
        assert b"healthy" in client.receive_message()[1]
    PLANE.call("DELETE", of("inner"))


@test
def events_come_at_once_also_to_who_may_ask_again():
    PLANE.create("watched")
    body = '{"path": "/workspace"}'
    with connect(PLANE.address) as client:
        client.send(f"POST {of('watched', '/watch')} HTTP/1.1\r\nHost: a\r\n{bearer()}\r\n"
                    f"Idempotency-Key: watched\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        equal(client.response_head().status, 200, "status, while the watch goes on")
    PLANE.call("DELETE", of("watched"))


@test
def an_idempotency_key_makes_one_sandbox():
    headers = [("Idempotency-Key", "native-test")]
    first = PLANE.ask("POST", f"{NATIVE}/sandboxes", {"labels": {"i": "1"}}, headers=headers)
    again = PLANE.ask("POST", f"{NATIVE}/sandboxes", {"labels": {"i": "1"}}, headers=headers)
    equal((first.status, again.status, first.body), (201, 201, again.body), "both answers")
    equal(again.headers["idempotency-replayed"], "true", "said so")
    refused(PLANE.ask("POST", f"{NATIVE}/sandboxes", {}, headers=headers), 409, "conflict")
    PLANE.call("DELETE", of(json.loads(first.body)["id"]))


@test
def events_are_followed_from_a_cursor():
    cursor = PLANE.call("GET", f"{NATIVE}/events?limit=1000")["next"]
    with connect(PLANE.address) as client:
        client.send(f"GET {NATIVE}/events HTTP/1.1\r\nHost: a\r\n{bearer()}\r\n"
                    f"Accept: text/event-stream\r\nLast-Event-ID: {cursor}\r\n\r\n".encode())
        equal(client.response_head().headers["content-type"], "text/event-stream", "type")
        threading.Thread(target=lambda: (PLANE.create("told"), PLANE.call("DELETE", of("told")))).start()
        seen = b""
        for piece in client.chunks():
            seen += piece
            if b"event: sandbox.deleted" in seen:
                break
    assert seen.index(b"event: sandbox.created") < seen.index(b"event: sandbox.deleted"), seen


@test
def another_owner_sees_nothing():
    PLANE.create("mine")
    eve = PLANE.user("eve-native")
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/exec"),
                         ("GET", "/files/etc/passwd"), ("GET", "/events"), ("GET", "/stats"),
                         ("GET", "/container/api/ping"), ("GET", "/archive?path=/")):
        body = {"command": "id"} if method == "POST" else {} if method == "PATCH" else None
        refused(PLANE.ask(method, of("mine", path), body, key=eve), 404, "not_found")
        equal(PLANE.ask(method, of("mine", path), body, key="").status, 401, "without a key")
    equal(PLANE.call("GET", f"{NATIVE}/sandboxes", key=eve)["sandboxes"], [], "list")
    equal(PLANE.ask("GET", "/metrics", key=eve).status, 403, "metrics")
    equal(PLANE.ask("POST", f"{NATIVE}/db/backup", {}, key=eve).status, 403, "backup")
    PLANE.call("DELETE", of("mine"))


@test
def figures_and_documents_are_there():
    metrics = PLANE.ask("GET", "/metrics").body.decode()
    for name in ('burrow_sandboxes{status="running"}', "burrow_sandbox_created_total",
                 "burrow_sandbox_wake_latency_seconds_count", "cloudflare_sandbox_created",
                 "burrow_store_commits_total", "burrow_agent_connections"):
        assert f"\n{name} " in metrics, f"{name} in {metrics}"
    document = PLANE.call("GET", f"{NATIVE}/openapi.json", key="")
    assert "post" in document["paths"][f"{NATIVE}/sandboxes/{{id}}/exec"]
    page = PLANE.ask("GET", f"{NATIVE}/docs", key="")
    equal(page.headers["content-type"], "text/html; charset=utf-8", "type of the page")
    assert b"http://" not in page.body and b"<script" not in page.body
    copy = PLANE.call("POST", f"{NATIVE}/db/backup", {"name": "copy.db"})["file"]
    equal(os.stat(copy).st_mode & 0o777, 0o600, "mode of the copy")


sys.exit(main_with_plane("our own dialect"))
