#!/usr/bin/python3
# timeout: 600
"""The Cloudflare bridge dialect, byte by byte, against the daemon with real sandboxes.

One daemon serves all tests; each test has sandboxes of its own. The published client is driven by
tests/clients/bridge_test.py."""

import base64
import io
import json
import os
import re
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import main_with_plane  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402
from websocket_raw import BINARY, TEXT, open_websocket  # noqa: E402

LIMIT = 32 * 1024 * 1024
PLANE = None  # the daemon


def ask(method, path, body=None, **options):
    return PLANE.ask(method, f"/v1{path}", body, **options)


def good(method, path, body=None, **options):
    answer = ask(method, path, body, **options)
    equal(answer.status, 200, f"status of {method} {path} ({answer.body[:300]!r})")
    return json.loads(answer.body) if answer.body[:1] == b"{" else answer.body


def refused(answer, status, code, part=""):
    body = json.loads(answer.body)
    equal((answer.status, body["code"]), (status, code), f"refusal ({answer.body[:300]!r})")
    equal(sorted(body), ["code", "error"], "fields")
    assert part in body["error"], body
    equal(answer.headers["content-type"], "application/json", "type")


def new_id():
    return good("POST", "/sandbox", b"")["id"]


def events(stream):
    """[(type, data)] of a whole event stream, whose form must be exact."""
    found = []
    for piece in stream.decode().split("\n\n")[:-1]:
        kind, data = re.fullmatch(r"event: (\w+)\ndata: ([^\n]*)", piece).groups()
        found.append((kind, data))
    return found


def execute(name, argv, headers=(), **fields):
    """(stdout, stderr, last event) of a command."""
    answer = ask("POST", f"/sandbox/{name}/exec", {"argv": argv, **fields}, headers=headers)
    equal((answer.status, answer.headers["content-type"]), (200, "text/event-stream"), "head")
    equal(answer.headers["cache-control"], "no-cache", "cache")
    told = events(answer.body)
    output = {kind: b"".join(base64.b64decode(data) for type_, data in told if type_ == kind)
              for kind in ("stdout", "stderr")}
    assert told[-1][0] in ("exit", "error"), told
    assert all(kind in ("stdout", "stderr") for kind, _ in told[:-1]), told
    return output["stdout"], output["stderr"], (told[-1][0], json.loads(told[-1][1]))


def exit_of(name, argv, **options):
    return execute(name, argv, **options)[2]


def sandboxes(key=None):
    return PLANE.call("GET", "/burrow/v1/sandboxes", key=key)


def has_sandbox(name, key=None):
    return f'"{name}"' in json.dumps(sandboxes(key))


# --- before a sandbox ---------------------------------------------------------------------------


@test
def an_id_is_given_without_making_anything():
    name = new_id()
    assert re.fullmatch("[a-z2-7]{26}", name), name
    assert not has_sandbox(name)
    assert new_id() != name


@test
def a_malformed_id_is_told_before_the_key_is_asked_for():
    for bad in ("Demo", "a1", "a-b", "a" * 129, "%2e"):
        refused(ask("POST", f"/sandbox/{bad}/exec", {}, key=""), 400, "invalid_request",
                "Invalid sandbox ID format")
    for path in ("/sandbox/demo/exec", "/sandbox", "/pool/prime"):
        answer = ask("POST", path, {}, key="")
        refused(answer, 401, "unauthorized", "Unauthorized")
    refused(ask("GET", "/sandbox/demo/pty", key="burrow_nonsense"), 401, "unauthorized")
    refused(ask("GET", "/openapi.json", key=""), 401, "unauthorized")
    assert not has_sandbox("demo")


@test
def the_scheme_of_the_key_may_be_in_any_case():
    answer = request(PLANE.address, "POST", "/v1/sandbox",
                     [("Authorization", f"bEARER {PLANE.key}")])
    equal(answer.status, 200, "status")


@test
def a_sandbox_is_made_by_its_first_use_even_by_a_bad_one():
    name = new_id()
    for body in (b"{", b"", b"{" + b" " * 200000):  # the last one is read on a thread
        refused(ask("POST", f"/sandbox/{name}/exec", body), 400, "invalid_request", "Invalid JSON body")
    assert has_sandbox(name)
    equal(ask("DELETE", f"/sandbox/{name}").status, 204, "deleted")
    assert not has_sandbox(name)
    equal(ask("DELETE", f"/sandbox/{name}").status, 204, "deleted again")
    assert not has_sandbox(name)


@test
def the_native_dialect_sees_the_same_sandbox():
    good("GET", "/sandbox/shared/running")
    PLANE.execute("shared", "echo hi > /workspace/from-native")
    equal(good("GET", "/sandbox/shared/file/workspace/from-native"), b"hi\n", "content")
    PLANE.call("DELETE", "/burrow/v1/sandboxes/shared")
    refused(ask("GET", "/sandbox/shared/file/workspace/from-native"), 404,
            "workspace_read_not_found", "File not found: /workspace/from-native")
    equal(ask("DELETE", "/sandbox/shared").status, 204, "deleted")


@test
def a_stopped_sandbox_starts_with_the_next_use():
    equal(ask("PUT", "/sandbox/rest/file/workspace/x", b"kept").status, 200, "written")
    PLANE.call("POST", "/burrow/v1/sandboxes/rest/stop")
    equal(good("GET", "/sandbox/rest/file/workspace/x"), b"kept", "content")
    equal(ask("DELETE", "/sandbox/rest").status, 204, "deleted")


# --- commands -----------------------------------------------------------------------------------


@test
def commands_tell_output_and_exit_codes():
    name = "execute"
    equal(execute(name, ["/bin/sh", "-lc", "echo out; echo err >&2; exit 3"]),
          (b"out\n", b"err\n", ("exit", {"exit_code": 3})), "a shell")
    equal(execute(name, ["echo", "it's", "a b", "", "$HOME", "x\ny", "~", "*"])[0],
          b"it's a b  $HOME x\ny ~ *\n", "arguments stay what they are")
    equal(execute(name, ["/usr/bin/printf", "%s|", "a'b", "\\n", "ü"])[0], "a'b|\\n|ü|".encode(),
          "without a shell too")
    equal(exit_of(name, ["no-such-program"]), ("exit", {"exit_code": 127}), "unknown name")
    equal(exit_of(name, ["/no/such/program"]), ("exit", {"exit_code": 127}), "unknown path")
    equal(exit_of(name, ["/etc/passwd"]), ("exit", {"exit_code": 126}), "no program")
    equal(exit_of(name, ["exit", "7"]), ("exit", {"exit_code": 7}), "a builtin")
    equal(exit_of(name, ["/bin/sh", "-c", "kill -9 $$"]), ("exit", {"exit_code": 137}), "a signal")
    equal(execute(name, ["pwd"])[0], b"/workspace\n", "where")
    equal(execute(name, ["pwd"], cwd="a/../b")[2], ("exit", {"exit_code": 1}), "no such folder")
    equal(execute(name, ["pwd"], cwd=".")[0], b"/workspace\n", "cwd")


@test
def bytes_that_are_no_text_arrive_exactly():
    every = bytes(range(256)) * 300
    equal(ask("PUT", "/sandbox/exact/file/workspace/bytes", every).status, 200, "written")
    equal(execute("exact", ["cat", "bytes"])[0], every, "output")
    equal(execute("exact", ["/bin/cat", "bytes"])[0], every, "output without a shell")


@test
def a_command_that_takes_too_long_is_ended():
    out, err, end = execute("slow", ["/bin/sh", "-c", "echo begun; sleep 1000"], timeout_ms=300)
    equal((out, err, end), (b"begun\n", b"Command timed out after 300ms\n",
                            ("exit", {"exit_code": 124})), "events")


@test
def output_arrives_while_the_command_runs():
    body = json.dumps({"argv": ["/bin/sh", "-c", "echo now; sleep 1031; echo late"]}).encode()
    with connect(PLANE.address) as connection:
        connection.send(b"POST /v1/sandbox/live/exec HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
                        + PLANE.key.encode() + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        connection.read_until(b"data: " + base64.b64encode(b"now\n"))
    # The client left: nobody reads it, so it ends.
    wait_until(lambda: execute("live", ["pgrep", "-fx", "sleep 1031"])[0] == b"", "the command ended")


@test
def sessions_keep_their_state_and_others_do_not_share_it():
    name, mine = "session", [("Session-Id", "mine")]
    execute(name, ["cd", "/tmp"], headers=mine)
    execute(name, ["export", "COLOUR=blue green"], headers=mine)
    equal(execute(name, ["pwd"], headers=mine)[0], b"/tmp\n", "folder")
    equal(execute(name, ["printenv", "COLOUR"], headers=mine)[0], b"blue green\n", "variable")
    equal(execute(name, ["pwd"])[0], b"/workspace\n", "no session")
    equal(execute(name, ["pwd"], headers=[("Session-Id", "other")])[0], b"/workspace\n", "another")
    refused(ask("POST", f"/sandbox/{name}/exec", {"argv": ["ls"]}, headers=[("Session-Id", "a/b")]),
            400, "invalid_request", "Invalid session ID format")


@test
def sessions_are_made_and_ended():
    equal(good("POST", "/sandbox/session/session", {"id": "s1", "cwd": "/etc", "env": {"A": "b"}}),
          {"id": "s1"}, "made")
    headers = [("Session-Id", "s1")]
    equal(execute("session", ["pwd"], headers=headers)[0], b"/etc\n", "folder")
    equal(execute("session", ["printenv", "A"], headers=headers)[0], b"b\n", "variable")
    equal(good("POST", "/sandbox/session/session", {"id": "s1"}), {"id": "s1"}, "there already")
    assert good("POST", "/sandbox/session/session", b"")["id"].startswith("session-")
    ended = good("DELETE", "/sandbox/session/session/s1")
    equal((ended["success"], ended["sessionId"]), (True, "s1"), "ended")
    refused(ask("DELETE", "/sandbox/session/session/s1"), 502, "session_error",
            "session delete failed: ")


# --- files and archives -------------------------------------------------------------------------


@test
def files_are_bytes_below_the_workspace():
    name, content = "files", bytes(range(256)) * 4096
    for path in ("workspace/a", "workspace/new/folders/b", "workspace/%C3%A4%20%25%3F%23",
                 "workspace/x/../c"):
        equal(good("PUT", f"/sandbox/{name}/file/{path}", content), {"ok": True}, path)
        answer = ask("GET", f"/sandbox/{name}/file/{path}")
        equal((answer.status, answer.headers["content-type"]), (200, "application/octet-stream"),
              path)
        assert answer.body == content, path
    equal(execute(name, ["ls"])[0].decode().split("\n"), ["a", "c", "new", "ä %?#", ""], "names")
    equal(good("PUT", f"/sandbox/{name}/file/workspace/empty", b""), {"ok": True}, "empty")
    equal(ask("GET", f"/sandbox/{name}/file/workspace/empty").body, b"", "empty")
    for method in ("GET", "PUT"):
        refused(ask(method, f"/sandbox/{name}/file/", b""), 400, "invalid_request", "empty")
        for path in ("etc/passwd", "workspace/..%2Fetc/passwd", "workspace%2F..", "workspaces/x"):
            refused(ask(method, f"/sandbox/{name}/file/{path}", b""), 403, "invalid_request",
                    "path must resolve to a location within /workspace")
    refused(ask("GET", f"/sandbox/{name}/file/workspace/nothing"), 404, "workspace_read_not_found",
            "File not found: /workspace/nothing")
    refused(ask("GET", f"/sandbox/{name}/file/workspace"), 502, "exec_transport_error",
            "read failed: ")
    refused(ask("PUT", f"/sandbox/{name}/file/workspace/a/b", b"x"), 502,
            "workspace_archive_write_error", "write failed: ")


@test
def the_largest_file_fits_and_one_byte_more_does_not():
    name = "large"
    content = os.urandom(1 << 20) * 32
    equal(good("PUT", f"/sandbox/{name}/file/workspace/x", content), {"ok": True}, "written")
    assert ask("GET", f"/sandbox/{name}/file/workspace/x").body == content
    path = f"/v1/sandbox/{name}/file/workspace/y"
    with connect(PLANE.address) as connection:
        connection.send(f"PUT {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
                        f"{PLANE.key}\r\nContent-Length: {LIMIT + 1}\r\n\r\n".encode())
        refused(connection.response("PUT"), 413, "payload_too_large")


@test
def archives_of_any_size_come_and_go():
    name, content = "huge", os.urandom(1 << 20) * 40
    equal(good("POST", f"/sandbox/{name}/hydrate", archive({"x": content})), {"ok": True}, "in")
    with tarfile.open(fileobj=io.BytesIO(ask("POST", f"/sandbox/{name}/persist").body)) as tar:
        assert tar.extractfile("./x").read() == content


def archive(entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in entries.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return out.getvalue()


@test
def a_workspace_is_persisted_and_hydrated():
    name = "archive"
    equal(good("POST", f"/sandbox/{name}/hydrate", archive({"a/b.txt": b"b", "./c": b"c"})),
          {"ok": True}, "hydrated")
    equal(good("GET", f"/sandbox/{name}/file/workspace/a/b.txt"), b"b", "unpacked")
    execute(name, ["/bin/sh", "-c", "mkdir node_modules && touch node_modules/x && ln -s / root"])
    answer = ask("POST", f"/sandbox/{name}/persist?excludes=./node_modules,a/b.txt")
    equal((answer.status, answer.headers["content-type"]), (200, "application/octet-stream"), "head")
    with tarfile.open(fileobj=io.BytesIO(answer.body)) as tar:
        equal(sorted(os.path.normpath(entry) for entry in tar.getnames()), [".", "a", "c", "root"],
              "names")
    equal(good("POST", "/sandbox/archived/hydrate", answer.body), {"ok": True}, "again")
    equal(execute("archived", ["readlink", "root"])[0], b"/\n", "links lead where they did")
    refused(ask("POST", f"/sandbox/{name}/persist?excludes=a%2F..%2Fb"), 400, "invalid_request",
            'exclude paths must not contain ".."')
    refused(ask("POST", f"/sandbox/{name}/hydrate", b""), 400, "invalid_request",
            "Empty tar payload")
    for bad in (b"no archive" * 100, archive({"../out": b"x"})):
        refused(ask("POST", f"/sandbox/{name}/hydrate", bad), 502, "workspace_archive_write_error",
                "hydrate failed: ")


@test
def an_archive_may_come_in_chunks():
    body = archive({"chunked": b"yes"})
    with connect(PLANE.address) as connection:
        connection.send(f"POST /v1/sandbox/archive/hydrate HTTP/1.1\r\nHost: a\r\nAuthorization: "
                        f"Bearer {PLANE.key}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        for at in range(0, len(body), 1000):
            piece = body[at:at + 1000]
            connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.send(b"0\r\n\r\n")
        equal(connection.response("POST").status, 200, "status")
    equal(good("GET", "/sandbox/archive/file/workspace/chunked"), b"yes", "content")


# --- terminals ----------------------------------------------------------------------------------


def open_terminal(name, query=""):
    return open_websocket(PLANE.address, f"/v1/sandbox/{name}/pty{query}",
                          [f"Authorization: Bearer {PLANE.key}"])


def read_message(client, kind):
    """What was shown before the text message of that type, and the message."""
    shown = b""
    while True:
        _, opcode, payload = client.receive()
        if opcode == BINARY:
            shown += payload
        elif opcode == TEXT and json.loads(payload)["type"] == kind:
            return shown, json.loads(payload)


def read_terminal(client, mark):
    """Everything shown up to `mark`."""
    shown = b""
    while mark not in shown:
        _, opcode, payload = client.receive()
        if opcode == BINARY:
            shown += payload
    return shown


@test
def a_terminal_is_shared_and_replayed():
    with open_terminal("terminal", "?cols=100&rows=40") as client:
        read_message(client, "ready")
        client.send(BINARY, b"stty size; echo sum-$((40 + 2))\n")
        assert b"40 100" in read_terminal(client, b"sum-42")
        client.send(TEXT, b'{"type":"resize","cols":120,"rows":30}')
        client.send(BINARY, b"stty size\n")
        read_terminal(client, b"30 120")
    with open_terminal("terminal") as again:
        assert b"sum-42" in read_message(again, "ready")[0]
        with open_terminal("terminal", "?session=other") as other:
            read_message(other, "ready")
            other.send(BINARY, b"echo alone-$((1 + 1))\n")
            assert b"sum-42" not in read_terminal(other, b"alone-2")
        again.send(BINARY, b"exit 5\n")
        equal(read_message(again, "exit")[1]["code"], 5, "exit code")


@test
def a_terminal_asks_for_an_upgrade_and_sound_parameters():
    refused(ask("GET", "/sandbox/terminal/pty"), 400, "invalid_request",
            "WebSocket upgrade required")
    upgrade = [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"),
               ("Sec-WebSocket-Key", base64.b64encode(bytes(16)).decode())]
    refused(ask("GET", "/sandbox/terminal/pty?cols=x", headers=upgrade), 400, "invalid_request",
            "cols and rows must be valid numbers")
    refused(ask("GET", "/sandbox/terminal/pty?session=a%2Fb", headers=upgrade), 400,
            "invalid_request", "Invalid session ID format")
    refused(ask("GET", "/sandbox/terminal/pty", headers=upgrade, key=""), 401, "unauthorized")


@test
def a_key_may_come_in_the_query_of_a_terminal():
    path = f"/v1/sandbox/terminal/pty?cols=80&rows=24&authorization=Bearer%20{PLANE.key}"
    with open_websocket(PLANE.address, path) as client:
        read_message(client, "ready")
        client.send(BINARY, b"echo in-$((2 + 3))\n")
        read_terminal(client, b"in-5")


# --- the rest -----------------------------------------------------------------------------------


@test
def a_tunnel_is_a_preview_url():
    execute("tunnel", ["/bin/sh", "-c", "echo hello > index.html; (setsid python3 -m http.server "
                       "8080 >/dev/null 2>&1 &)"])
    tunnel = good("POST", "/sandbox/tunnel/tunnel/8080", {"name": "app"})
    equal(sorted(tunnel), ["createdAt", "hostname", "id", "name", "port", "url"], "fields")
    equal((tunnel["port"], tunnel["name"]), (8080, "app"), "port and name")
    equal(good("POST", "/sandbox/tunnel/tunnel/8080")["url"], tunnel["url"], "the same again")
    host = tunnel["url"].split("/")[2]
    equal(host.split(":")[0], tunnel["hostname"], "hostname")

    def page():
        return request(PLANE.address, "GET", "/index.html", [("Host", host)])
    wait_until(lambda: page().status == 200, "the server answers")
    equal(page().body, b"hello\n", "page")
    equal(ask("DELETE", "/sandbox/tunnel/tunnel/8080").status, 204, "closed")
    equal(page().status, 404, "gone")
    equal(ask("DELETE", "/sandbox/tunnel/tunnel/8080").status, 204, "closed again")
    for port in ("80", "3000", "x", "70000"):
        refused(ask("POST", f"/sandbox/tunnel/tunnel/{port}"), 400, "invalid_request",
                "Invalid port")
    refused(ask("POST", "/sandbox/tunnel/tunnel/8080", {"name": "A.b"}), 400, "invalid_request")
    nobody = new_id()
    equal(ask("DELETE", f"/sandbox/{nobody}/tunnel/8080").status, 204, "of a sandbox nobody made")
    assert not has_sandbox(nobody)


@test
def buckets_are_mounted_and_unmounted():
    keys = {"accessKeyId": "a", "secretAccessKey": "b"}
    mount = {"bucket": "bucket", "mountPath": "/mnt/x",
             "options": {"endpoint": "http://127.0.0.1:9", "credentials": keys}}
    refused(ask("POST", "/sandbox/bucket/mount", {**mount, "mountPath": "x"}), 400,
            "invalid_request", "absolute")
    refused(ask("POST", "/sandbox/bucket/mount", mount), 502, "mount_error", "127.0.0.1")
    refused(ask("POST", "/sandbox/bucket/unmount", {"mountPath": "/mnt/x"}), 502, "unmount_error",
            "nothing is mounted")
    ours = {"binding": "DATA", "mountPath": "/mnt/x", "options": {"prefix": "/a/"}}
    equal(good("POST", "/sandbox/bucket/mount", ours), {"ok": True}, "a bucket of ours")
    execute("bucket", ["/bin/sh", "-c", "echo kept >/mnt/x/file"])
    equal(good("POST", "/sandbox/bucket/unmount", {"mountPath": "/mnt/x"}), {"ok": True}, "away")
    equal(good("POST", "/sandbox/bucket/mount", ours), {"ok": True}, "again")
    equal(execute("bucket", ["cat", "/mnt/x/file"])[0], b"kept\n", "what was written")


@test
def the_pool_tells_the_truth():
    before = good("GET", "/pool/stats")
    equal(sorted(before), ["assigned", "config", "maxInstances", "total", "warm"], "fields")
    equal(before["total"], before["warm"] + before["assigned"], "total")
    target = before["config"]["warmTarget"]
    equal(good("POST", "/pool/prime"), {"ok": True}, "primed")
    wait_until(lambda: good("GET", "/pool/stats")["warm"] == target, "the stock is full")
    equal(good("POST", "/pool/shutdown-prewarmed"), {"ok": True}, "drained")
    equal(good("GET", "/pool/stats")["warm"], 0, "warm")
    good("GET", "/sandbox/pooled/running")
    equal(good("GET", "/pool/stats")["assigned"], before["assigned"] + 1, "assigned")
    equal(good("POST", "/pool/prime"), {"ok": True}, "primed")
    wait_until(lambda: good("GET", "/pool/stats")["warm"] == target, "the stock is full")


@test
def the_document_describes_the_routes():
    document = good("GET", "/openapi.json")
    equal(document["openapi"], "3.1.0", "version")
    for path in ("/v1/sandbox", "/v1/sandbox/{id}", "/v1/sandbox/{id}/exec",
                 "/v1/sandbox/{id}/file/{path}", "/v1/sandbox/{id}/pty", "/v1/pool/stats"):
        assert path in document["paths"], path
    assert all(path.startswith("/v1/") for path in document["paths"]), document["paths"].keys()
    terminal = document["paths"]["/v1/sandbox/{id}/pty"]["get"]
    names = [parameter["name"] for parameter in terminal["parameters"]]
    equal(names, ["id", "cols", "rows", "shell", "session", "Session-Id"], "parameters")
    assert {"101", "400", "502"} <= set(terminal["responses"]), terminal["responses"]
    for path in ("/openapi.html", "/openapi"):
        answer = ask("GET", path)
        equal((answer.status, answer.headers["content-type"]), (200, "text/html; charset=utf-8"),
              path)
        assert b"/v1/sandbox/{id}/exec" in answer.body and b"<script" not in answer.body
    equal(request(PLANE.address, "GET", f"/v1/openapi.json?token={PLANE.key}").status, 200,
          "the key as a parameter")


# --- others -------------------------------------------------------------------------------------


@test
def two_owners_may_use_one_name_and_never_meet():
    eve = PLANE.user("eve")
    equal(ask("PUT", "/sandbox/same/file/workspace/secret", b"mine").status, 200, "written")
    refused(ask("GET", "/sandbox/same/file/workspace/secret", key=eve), 404,
            "workspace_read_not_found")
    equal(ask("PUT", "/sandbox/same/file/workspace/secret", b"eve's", key=eve).status, 200,
          "written")
    equal(ask("DELETE", "/sandbox/same", key=eve).status, 204, "deleted")
    equal(good("GET", "/sandbox/same/file/workspace/secret"), b"mine", "still there")
    mine = PLANE.sandbox("same")["id"]
    equal(ask("DELETE", f"/sandbox/{mine}", key=eve).status, 204, "by its id, to no effect")
    equal(good("GET", "/sandbox/same/file/workspace/secret"), b"mine", "still there")
    equal(good("GET", "/pool/stats", key=eve)["assigned"], 0, "eve's own only")
    refused(ask("POST", "/pool/shutdown-prewarmed", key=eve), 403, "forbidden")


@test
def a_key_that_may_only_look_changes_nothing():
    reader = PLANE.call("POST", "/burrow/v1/keys", {"name": "reader", "scope": "read"})["key"]
    equal(ask("PUT", "/sandbox/looked/file/workspace/x", b"x").status, 200, "written")
    equal(ask("GET", "/sandbox/looked/file/workspace/x", key=reader).body, b"x", "read")
    for method, path in (("PUT", "/sandbox/looked/file/workspace/x"),
                         ("POST", "/sandbox/looked/exec"), ("POST", "/sandbox/looked/hydrate"),
                         ("POST", "/sandbox/looked/session"), ("DELETE", "/sandbox/looked"),
                         ("POST", "/sandbox/looked/tunnel/8080"), ("POST", "/sandbox")):
        refused(ask(method, path, b"", key=reader), 403, "forbidden")
    nobody = new_id()
    refused(ask("GET", f"/sandbox/{nobody}/running", key=reader), 403, "forbidden")
    assert not has_sandbox(nobody)


@test
def many_first_uses_at_once_share_one_sandbox():
    name = new_id()
    body = json.dumps({"argv": ["/bin/sh", "-c", "echo x >> /workspace/all"]}).encode()
    clients = [connect(PLANE.address) for _ in range(10)]
    for client in clients:
        client.send(f"POST /v1/sandbox/{name}/exec HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer "
                    f"{PLANE.key}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    for client in clients:
        equal(events(client.response("POST").body)[-1], ("exit", '{"exit_code":0}'), "end")
        client.close()
    equal(good("GET", f"/sandbox/{name}/file/workspace/all"), b"x\n" * 10, "all in one")
    equal(ask("DELETE", f"/sandbox/{name}").status, 204, "deleted")


sys.exit(main_with_plane("the bridge", "--stock", "2"))
