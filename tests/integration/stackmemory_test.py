#!/usr/bin/python3
"""The StackMemory dialect, as its README drives it: curl lines of the README word for word, but for
address, key, repository and mounts, then everything the lines leave out.

# timeout: 600
"""

import atexit
import base64
import json
import os
import subprocess
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import ControlPlane  # noqa: E402
from launcher import need_launcher, status_of  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import BINARY, CLOSE, TEXT, open_websocket  # noqa: E402

REPOSITORY = "file:///srv/stackmemory.git"
MARKER = "/workspace/.stackmemory-cloudflare-spike.json"

# The README's, but for the address, the key and what a machine without internet cannot have.
SMOKE_HEALTH = "curl http://localhost:8787/health"
SMOKE_BOOTSTRAP = """curl -X POST http://localhost:8787/v1/sandboxes/demo/bootstrap \\
  -H 'content-type: application/json' \\
  -d '{"repoUrl":"https://github.com/stackmemoryai/stackmemory.git","depth":1}'"""
SMOKE_EXEC = """curl -X POST http://localhost:8787/v1/sandboxes/demo/exec \\
  -H 'content-type: application/json' \\
  -d '{"command":"bash","args":["-lc","cd /workspace/repo && git status --short"]}'"""

MAKE_REPOSITORY = """
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir -p /srv /tmp/origin && cd /tmp/origin
git init -q -b main . && echo one >one && git add one && git commit -q -m one
echo two >two && git add two && git commit -q -m two
git clone -q --bare . /srv/stackmemory.git
git -C /srv/stackmemory.git config uploadpack.allowFilter true
"""

_planes = []


def plane():
    """One service for all tests."""
    need_launcher()
    if not _planes:
        _planes.append(ControlPlane().__enter__())
        atexit.register(lambda: _planes[0].__exit__(None, None, None))
    return _planes[0]


def smoke(line):
    """Run a line of the README; its JSON."""
    line = line.replace("localhost:8787", plane().address)
    line = line.replace("https://github.com/stackmemoryai/stackmemory.git", REPOSITORY)
    line = line.replace("curl", f"curl -s -H 'authorization: Bearer {plane().key}'")
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True, timeout=60)
    return json.loads(done.stdout)


def route(name, verb, **query):
    return f"/v1/sandboxes/{name}/{verb}" + ("?" + urllib.parse.urlencode(query) if query else "")


def post(name, verb, body=None):
    return plane().call("POST", route(name, verb), body if body is not None else {})


def run(name, command, **fields):
    result = post(name, "exec", {"command": command, **fields})["result"]
    return result["exitCode"], result["stdout"]


def refused(status, code, method, path, body=None, **options):
    answer = plane().ask(method, path, body, **options)
    document = json.loads(answer.body)
    equal((answer.status, document["ok"], document["error"]), (status, False, code), path)
    return document["details"]


@test
def the_lines_of_the_readme_work():
    health = smoke(SMOKE_HEALTH)
    equal(health["ok"], True, "health")
    equal(run("demo", "sh", args=["-c", MAKE_REPOSITORY])[0], 0, "a repository to clone")
    answer = smoke(SMOKE_BOOTSTRAP)
    equal((answer["ok"], answer["sandboxId"]), (True, "demo"), "bootstrap")
    equal(answer["steps"], [
        {"type": "gitCheckout", "repoUrl": REPOSITORY, "targetDir": "/workspace/repo",
         "branch": "default", "depth": 1, "alreadyThere": False},
        {"type": "writeFile", "path": MARKER}], "steps")
    answer = smoke(SMOKE_EXEC)
    equal((answer["ok"], answer["sessionId"]), (True, None), "exec")
    equal({key: answer["result"][key] for key in ("stdout", "stderr", "exitCode", "success")},
          {"stdout": "", "stderr": "", "exitCode": 0, "success": True}, "a clean clone")
    equal(run("demo", "git -C /workspace/repo log --oneline | wc -l")[1].strip(), "1", "depth")


@test
def bootstrapping_again_leaves_the_clone_alone():
    equal(run("demo", "echo mine >/workspace/repo/mine")[0], 0, "work in the clone")
    answer = post("demo", "bootstrap", {"repoUrl": REPOSITORY, "depth": 1})
    equal(answer["steps"][0]["alreadyThere"], True, "the clone is known")
    equal(run("demo", "cat /workspace/repo/mine")[1], "mine", "work in the clone")
    details = refused(502, "upstream_failed", "POST", route("demo", "bootstrap"),
                      {"repoUrl": "file:///srv/other.git"})
    assert details.startswith("clone the repository: "), details
    marker = plane().call("GET", route("demo", "files", path=MARKER))["file"]["content"]
    equal(json.loads(marker)["repoUrl"], REPOSITORY, "the marker")


@test
def half_a_clone_is_not_taken_for_one():
    run("half", "sh", args=["-c", MAKE_REPOSITORY])
    equal(run("half", "git init -q /workspace/repo && "
                      f"git -C /workspace/repo remote add origin {REPOSITORY}")[0], 0, "half")
    answer = plane().ask("POST", route("half", "bootstrap"), {"repoUrl": REPOSITORY})
    assert answer.status >= 400, answer
    equal(run("half", "rm -rf /workspace/repo")[0], 0, "removed")
    equal(post("half", "bootstrap", {"repoUrl": REPOSITORY})["steps"][0]["alreadyThere"], False,
          "cloned")
    post("half", "destroy")


@test
def commands_run_as_argv_as_a_line_and_in_sessions():
    equal(run("demo", "printf", args=["%s|", "a b", "$HOME", "it's"]), (0, "a b|$HOME|it's|"),
          "argv")
    equal(run("demo", "echo $((1 + 2)) | tr 3 x")[1].strip(), "x", "a line")
    equal(run("demo", "(exit 3)", args=[])[0], 3, "exit status")
    equal(run("demo", "sh", args=["-c", "exit 7"])[0], 7, "exit status of argv")
    run("demo", "cd /tmp && export A='x y'", sessionId="s1")
    equal(run("demo", "sh", args=["-c", 'echo "$PWD $A"'], sessionId="s1")[1].strip(), "/tmp x y",
          "a session goes on, for argv too")
    equal(run("demo", "pwd", sessionId="s2")[1].strip(), "/workspace", "sessions are apart")
    equal(run("demo", "pwd", args=["-P"], cwd="/usr")[1].strip(), "/usr", "cwd")
    equal(run("demo", "sleep", args=["60"], timeoutMs=300)[0], 124, "a timeout")


@test
def files_keep_every_byte_both_ways():
    content = bytes(range(256)) * 4096
    answer = plane().call("PUT", route("demo", "files", path="/workspace/new/a b.bin"), content)
    equal((answer["ok"], answer["path"], answer["bytes"]),
          (True, "/workspace/new/a b.bin", len(content)), "put")
    file = plane().call("GET", route("demo", "files", path="/workspace/new/a b.bin"))["file"]
    equal((file["encoding"], file["isBinary"]), ("base64", True), "binary")
    equal(base64.b64decode(file["content"]), content, "bytes")
    plane().call("PUT", route("demo", "files", path="/workspace/t.txt"), "grüß €\n".encode())
    file = plane().call("GET", route("demo", "files", path="/workspace/t.txt"))["file"]
    equal((file["encoding"], file["content"]), ("utf-8", "grüß €\n"), "text")
    plane().call("PUT", route("demo", "files", path="/workspace/empty"), b"")
    equal(run("demo", "stat", args=["-c", "%s", "/workspace/empty"])[1].strip(), "0", "empty")
    refused(404, "not_found", "GET", route("demo", "files", path="/workspace/none"))
    refused(400, "missing_path", "GET", route("demo", "files"))
    refused(400, "missing_path", "PUT", route("demo", "files"), b"x")


def daemon_peak_kb():
    return int(status_of(plane().daemon_pid)["VmHWM"].split()[0])


@test
def a_large_file_does_not_fill_the_daemon():
    content = os.urandom(1 << 20) * 96
    before = daemon_peak_kb()
    answer = plane().call("PUT", route("demo", "files", path="/tmp/large"), content, timeout=60)
    equal(answer["bytes"], len(content), "bytes")
    grown = daemon_peak_kb() - before
    assert grown < 32 * 1024, f"{grown} kB"
    equal(run("demo", "stat", args=["-c", "%s", "/tmp/large"])[1].strip(), str(len(content)),
          "size")
    run("demo", "rm /tmp/large")


@test
def a_listing_has_the_text_of_ls_and_entries():
    answer = plane().call("GET", route("demo", "ls", path="/workspace/repo"))
    lines = answer["result"]["stdout"].splitlines()
    assert lines[0].startswith("total ") and lines[1].startswith("drwx"), lines
    names = {entry["name"]: entry["type"] for entry in answer["entries"]}
    equal((names["one"], names[".git"]), ("file", "directory"), "entries")
    equal(plane().call("GET", route("demo", "ls"))["path"], "/workspace", "the usual folder")
    answer = plane().call("GET", route("demo", "ls", path="/none"))
    equal((answer["ok"], answer["result"]["exitCode"], answer["entries"]), (True, 2, []), "none")
    answer = plane().call("GET", route("demo", "ls", path="-R"))
    equal(answer["result"]["exitCode"], 2, "a name that looks like an option")


def read_until(client, wanted):
    seen = b""
    while wanted not in seen:
        opcode, payload = client.receive_message()
        assert opcode in (BINARY, TEXT), (opcode, payload)
        seen += payload if opcode == BINARY else b""
    return seen


@test
def a_terminal_shows_bytes_and_comes_back():
    extra = (f"Authorization: Bearer {plane().key}",)
    path = route("demo", "terminal", session="t1", cols=100, rows=30)
    with open_websocket(plane().address, path, extra) as client:
        equal(json.loads(client.receive_message()[1]), {"type": "ready"}, "ready")
        client.send(BINARY, b"stty size; echo a-$((40 + 2))\r")
        seen = read_until(client, b"a-42")
        assert b"30 100" in seen, seen
    with open_websocket(plane().address, path, extra) as client:
        assert b"a-42" in client.receive_message()[1], "the replay"
        client.send(BINARY, b"exit 5\r")
        while True:
            opcode, payload = client.receive_message()
            if opcode == TEXT and json.loads(payload)["type"] == "exit":
                break
        equal(json.loads(payload)["code"], 5, "exit")
        equal(client.receive()[1], CLOSE, "the end")
    equal(plane().ask("GET", route("demo", "terminal")).status, 404, "no upgrade")


@test
def names_have_one_rule():
    equal(post("%20NaMe-1_x%20", "exec", {"command": "true"})["sandboxId"], "name-1_x", "folded")
    equal(plane().sandbox("name-1_x")["name"], "name-1_x", "the same sandbox, in another dialect")
    post("name-1_x", "destroy")
    for name in ("a", "-ab", "a.b", "a%2fb", "x" * 65, "%C3%BC%C3%BC"):
        details = refused(400, "invalid_sandbox_id", "POST", route(name, "exec"),
                          {"command": "true"})
        assert details.startswith("sandbox id must be 2-64 chars"), details


@test
def what_is_not_there_is_typed():
    refused(400, "missing_backup", "POST", route("demo", "restore"), {})
    refused(404, "not_found", "GET", route("demo", "nothing"))
    refused(400, "missing_command", "POST", route("demo", "exec"), {})
    equal(plane().ask("GET", "/burrow/v1/sandboxes/fresh").status, 404, "nothing half made")


@test
def others_have_a_demo_of_their_own():
    other = plane().user("eve")
    answer = plane().call("GET", route("demo", "ls", path="/workspace"), key=other)
    assert all(entry["name"] != "repo" for entry in answer["entries"]), answer
    equal(plane().ask("GET", route("demo", "ls"), key="").status, 401, "no key")
    plane().call("POST", route("demo", "destroy"), {}, key=other)
    equal(run("demo", "cat /workspace/repo/mine")[1], "mine", "ours is untouched")


@test
def destroying_removes_everything_and_is_idempotent():
    for _ in range(2):
        answer = post("demo", "destroy")
        equal((answer["ok"], answer["destroyed"]), (True, True), "destroyed")
    equal(run("demo", "ls", args=["/workspace"])[1], "", "a new sandbox")
    post("demo", "destroy")


main()
