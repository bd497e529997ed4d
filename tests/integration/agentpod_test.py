#!/usr/bin/python3
"""The AgentPod worker dialect, as its guide drives it: its curl lines word for word but for
address and key, then everything the lines leave out; webhooks in; terminals in JSON frames.

# timeout: 600
"""

import atexit
import json
import os
import struct
import subprocess
import sys
import tempfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, ControlPlane  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import CLOSE, TEXT, open_websocket  # noqa: E402

WORKER = "https://agentpod-sandbox.mail-88a.workers.dev"
SERVICE_TOKEN = "a-service-token-of-the-tests"
WORKSPACE = "/home/user/workspace"

# The guide's.
SMOKE_HEALTH = "curl https://agentpod-sandbox.mail-88a.workers.dev/health"
SMOKE_CREATE = """curl -X POST https://agentpod-sandbox.mail-88a.workers.dev/sandbox \\
  -H "Content-Type: application/json" \\
  -d '{"id":"test-1","userId":"user-1"}'"""

MAKE_REPOSITORY = """
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir -p /srv /tmp/origin && cd /tmp/origin
git init -q -b next . && echo one >one && git add one && git commit -q -m one
git clone -q --bare . /srv/repo.git
"""

_planes = []


def plane():
    """One service for all tests."""
    need_launcher()
    if not _planes:
        with tempfile.NamedTemporaryFile("w", prefix="burrow-token-", delete=False) as file:
            file.write(SERVICE_TOKEN + "\n")
        os.chmod(file.name, 0o644)  # read by the daemon, which is somebody else
        atexit.register(os.unlink, file.name)
        _planes.append(ControlPlane("--service-token-file", file.name).__enter__())
        atexit.register(lambda: _planes[0].__exit__(None, None, None))
    return _planes[0]


def smoke(line):
    """Run a line of the guide; its JSON."""
    line = line.replace(WORKER, f"http://{plane().address}")
    line = line.replace("curl", f"curl -s -H 'authorization: Bearer {plane().key}'")
    done = subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True, timeout=60)
    return json.loads(done.stdout)


def path_of(name, *rest):
    return "/".join(["/sandbox", urllib.parse.quote(name, safe=""), *rest])


def create(name, **fields):
    return plane().call("POST", "/sandbox", {"id": name, "userId": "user-1", **fields}, timeout=60)


def run(name, command):
    return plane().execute(urllib.parse.quote(name, safe=""), command)["stdout"].strip()


def refused(status, method, path, body=None, **options):
    answer = plane().ask(method, path, body, **options)
    equal(answer.status, status, f"{method} {path}: {answer.body[:300]!r}")
    return json.loads(answer.body)["error"]


@test
def the_lines_of_the_guide_work():
    equal(smoke(SMOKE_HEALTH)["status"], "ok", "health")
    answer = smoke(SMOKE_CREATE)
    expected = {"success": True, "sandboxId": "test-1", "status": "running"}
    equal({key: answer[key] for key in expected}, expected, "create")
    equal(answer["opencodeUrl"], "/sandbox/test-1/opencode", "opencodeUrl")
    answer = smoke(f"curl {WORKER}/sandbox/test-1")
    equal(answer, {"sandboxId": "test-1", "status": "running", "hasWorkspace": True,
                   "provider": "cloudflare"}, "get")
    equal(smoke(f"curl -X DELETE {WORKER}/sandbox/test-1"),
          {"success": True, "deleted": "test-1"}, "delete")
    refused(404, "GET", path_of("test-1"))


@test
def creating_again_changes_nothing_but_the_configuration():
    create("again")
    identity = plane().sandbox("again")["id"]
    run("again", "echo mine >/workspace/mine")
    equal(create("again", config={"agents_md": "# hi"})["filesWritten"], 1, "files")
    equal(plane().sandbox("again")["id"], identity, "the same sandbox")
    equal(run("again", f"cat /workspace/mine {WORKSPACE}/AGENTS.md"), "mine\n# hi", "files")


@test
def ids_are_kept_exactly():
    for name in ("Mixed-Case_9", "team-T/agent 1", "grüß.€", "a" * 128):
        equal(create(name)["sandboxId"], name, "id")
        equal(plane().call("GET", path_of(name))["sandboxId"], name, "id")
        plane().call("DELETE", path_of(name))
    create("Case")
    refused(404, "GET", path_of("case"))
    plane().call("DELETE", path_of("Case"))
    for name in ("", "a\nb", "a\x7fb", "a" * 129):
        refused(400, "POST", "/sandbox", {"id": name})
    refused(400, "POST", "/sandbox", {})
    refused(400, "POST", "/sandbox", b"nonsense")


@test
def configuration_is_placed_safely():
    config = {"model": "m", "provider": {"openai": {"options": {"apiKey": "sk-1", "baseUrl": "u"}}},
              "agents_md": "# agents", "auth": {"anthropic": {"type": "api", "key": "sk-2"}},
              "files": [{"type": "agent", "name": "review", "extension": "md", "content": "A"},
                        {"type": "plugin", "name": "p.1", "extension": "ts", "content": "B"}]}
    equal(create("config", config=config)["filesWritten"], 5, "files")
    run("config", "mkdir -p /tmp/out")
    equal(run("config", f"cd {WORKSPACE} && find . -type f | sort"),
          "./.opencode/agent/review.md\n./.opencode/opencode.json\n./.opencode/plugin/p.1.ts\n"
          "./AGENTS.md", "the workspace")
    equal(run("config", f"grep -rlE 'sk-[12]' {WORKSPACE}/ /workspace/ /tmp 2>/dev/null | wc -l"),
          "0", "no credential in the workspace")
    equal(json.loads(run("config", f"cat {WORKSPACE}/.opencode/opencode.json")),
          {"model": "m", "provider": {"openai": {"options": {"baseUrl": "u"}}}}, "opencode.json")
    auth = "$HOME/.local/share/opencode/auth.json"
    equal(run("config", f"stat -c %a {auth}"), "600", "mode")
    equal(json.loads(run("config", f"cat {auth}")),
          {"anthropic": {"type": "api", "key": "sk-2"}, "openai": {"type": "api", "key": "sk-1"}},
          "credentials")
    for name in ("../../../etc/x", "/etc/x", ".x", "a/b", ""):
        message = refused(400, "POST", "/sandbox", {"id": "config", "config": {"files": [
            {"type": "agent", "name": name, "extension": "md", "content": "x"}]}})
        assert "config.files[0].name" in message or "name" in message, message


@test
def a_repository_is_cloned_once():
    create("cloned")
    run("cloned", ["sh", "-c", MAKE_REPOSITORY])
    fields = {"gitUrl": "file:///srv/repo.git", "gitBranch": "next", "directory": "/work/app"}
    create("cloned", **fields)
    equal(run("cloned", "cat /work/app/one && git -C /work/app branch --show-current"), "one\nnext",
          "the clone")
    run("cloned", "echo mine >/work/app/mine")
    create("cloned", **fields)
    equal(run("cloned", "cat /work/app/mine"), "mine", "the clone is left alone")
    message = refused(404, "POST", "/sandbox", {"id": "cloned", "gitUrl": "file:///srv/none.git",
                                                "directory": "/work/none"})
    assert message.startswith("clone the repository: "), message


@test
def status_is_the_truth_and_a_wake_writes_the_configuration():
    create("sleeper", directory="/work/here")
    plane().call("POST", f"{NATIVE}/sandboxes/sleeper/sleep")
    equal(plane().call("GET", path_of("sleeper"))["status"], "sleeping", "asleep")
    equal(plane().call("GET", path_of("sleeper"))["status"], "sleeping", "looking wakes nobody")
    answer = plane().call("POST", path_of("sleeper", "wake"), {"config": {"agents_md": "# new"}})
    answer.pop("agentError")  # the image of these tests has no agent
    equal(answer, {"success": True, "status": "running", "serverPort": 4096, "restoredFiles": 0,
                   "filesWritten": 1}, "wake")
    equal(run("sleeper", "cat /work/here/AGENTS.md"), "# new", "where it was made")
    plane().call("POST", f"{NATIVE}/sandboxes/sleeper/stop")
    equal(plane().call("GET", path_of("sleeper"))["status"], "stopped", "stopped")
    equal(plane().call("POST", path_of("sleeper", "wake"), {})["status"], "running", "woken")
    refused(404, "POST", path_of("nobody", "wake"), {})


@test
def others_see_nothing():
    create("again")
    other = plane().user("eve")
    for method, path in (("GET", path_of("again")), ("DELETE", path_of("again")),
                         ("POST", path_of("again", "wake"))):
        refused(404, method, path, {} if method == "POST" else None, key=other)
    equal(plane().ask("GET", path_of("again"), key="").status, 401, "no key")
    equal(plane().call("GET", path_of("again"))["status"], "running", "untouched")


# --- terminals --------------------------------------------------------------------------------


def terminal(name, key=None, **query):
    key = plane().key if key is None else key
    path = f"/api/v2/sandboxes/{name}/terminal"
    if query:
        path += "?" + urllib.parse.urlencode(query)
    return open_websocket(plane().address, path, (f"Authorization: Bearer {key}",))


def say(client, **frame):
    client.send(TEXT, json.dumps(frame).encode())


def hear(client, kind):
    """The next frame of this type, and the output before it."""
    output = ""
    while True:
        opcode, payload = client.receive_message()
        equal(opcode, TEXT, f"opcode of {payload[:80]!r}")
        frame = json.loads(payload)  # valid UTF-8, or this fails
        if frame["type"] == kind:
            return frame, output
        equal(frame["type"], "output", "type")
        output += frame["data"]


def read_until(client, wanted):
    output = ""
    while wanted not in output:
        output += hear(client, "output")[0]["data"]
    return output


def closing(client):
    """(code, reason) of the close frame, behind whatever is left."""
    while True:
        _, opcode, payload = client.receive()
        if opcode == CLOSE:
            return struct.unpack("!H", payload[:2])[0], payload[2:].decode()


@test
def a_terminal_speaks_in_frames():
    create("again")
    with terminal("again", cols=100, rows=30) as client:
        frame, _ = hear(client, "connected")
        equal(frame["shell"], "bash", "shell")
        say(client, type="input", data="stty size; echo a-$((40 + 2))\r")
        assert "30 100" in read_until(client, "a-42")
        say(client, type="resize", cols=90, rows=20)
        say(client, type="input", data="stty size\r")
        read_until(client, "20 90")
        say(client, type="nonsense")
        hear(client, "error")
        say(client, type="input", data="exit 5\r")
        equal(hear(client, "exit")[0]["code"], 5, "exit code")
        equal(closing(client)[0], 1000, "close")


@test
def characters_are_never_split():
    create("again")
    with terminal("again") as client:
        hear(client, "connected")
        # Byte by byte, so that every character comes in pieces.
        say(client, type="input", data="stty -echo; printf '\\342'; sleep 0.1; printf '\\202'; "
                                       "sleep 0.1; printf '\\254|e''nd\\n'\r")
        assert "€|end" in read_until(client, "|end"), "the euro sign"
        say(client, type="input", data="i=0; while [ $i -lt 20000 ]; do printf 'ü€😀'; "
                                       "i=$((i+1)); done; echo; echo do''ne\r")
        output = read_until(client, "done\r\n")
        assert "\ufffd" not in output, "a broken character"
        equal(output.count("😀"), 20000, "characters")


@test
def a_named_terminal_comes_back_and_one_without_a_name_ends():
    create("again")
    with terminal("again", session="tab-1") as client:
        equal(hear(client, "connected")[0]["session"], "tab-1", "session")
        say(client, type="input", data="echo first-$((1 + 1))\r")
        read_until(client, "first-2")
    with terminal("again", session="tab-1") as client:
        hear(client, "connected")
        assert "first-2" in read_until(client, "first-2"), "the replay"
    with terminal("again") as client:
        name = hear(client, "connected")[0]["session"]
        assert name.startswith("terminal-"), name
        say(client, type="input", data="sleep 987654 & echo ready-$((1 + 1))\r")
        read_until(client, "ready-2")
    wait_until(lambda: not run("again", "pgrep -f 'sleep 98765[4]' || true"), "its shell's end")


@test
def terminals_that_cannot_be_say_why():
    create("again")
    with terminal("nobody") as client:
        hear(client, "error")
        equal(closing(client)[0], 1008, "no such sandbox")
    with terminal("again", key=plane().user("mallory")) as client:
        hear(client, "error")
        equal(closing(client)[0], 1008, "somebody else's sandbox")
    equal(plane().ask("GET", "/api/v2/sandboxes/again/terminal").status, 426, "no upgrade")
    equal(plane().ask("GET", "/api/v2/sandboxes/again/terminal", key="").status, 401, "no key")


@test
def a_terminal_wakes_and_keeps_awake():
    create("dozer")
    plane().call("POST", f"{NATIVE}/sandboxes/dozer/sleep")
    with terminal("dozer") as client:
        hear(client, "connected")
        say(client, type="input", data="echo up-$((1 + 1))\r")
        read_until(client, "up-2")
        equal(plane().call("GET", path_of("dozer"))["status"], "running", "awake")


# --- webhooks in ------------------------------------------------------------------------------


def webhook(body, key=SERVICE_TOKEN):
    return plane().ask("POST", "/api/v2/cloudflare/webhook", body, key=key)


@test
def webhooks_become_events():
    create("again")
    identity = plane().sandbox("again")["id"]
    answer = webhook({"event": "session.message", "timestamp": "2026-01-01T00:00:00.000Z",
                      "data": {"sandboxId": identity, "sessionId": "ses_1", "more": 1}})
    equal((answer.status, json.loads(answer.body)), (200, {"received": True}), "received")
    page = plane().call("GET", f"{NATIVE}/sandboxes/again/events?type=remote.")
    events = page["events"]
    equal(events[-1]["type"], "remote.session.message", "type")
    equal(events[-1]["data"]["sessionId"], "ses_1", "data")
    assert "more" not in events[-1]["data"], events[-1]


@test
def only_the_service_token_opens_the_webhook():
    body = {"event": "sandbox.woken", "data": {}, "timestamp": "t"}
    for key in (plane().key, plane().user("writer"), "", SERVICE_TOKEN + "x", SERVICE_TOKEN[:-1]):
        equal(webhook(body, key=key).status, 401, "status")
    for bad in ({}, {"event": "sandbox.stolen", "data": {}, "timestamp": "t"},
                {"event": "sandbox.woken", "data": {}}):
        answer = webhook(bad)
        equal((answer.status, json.loads(answer.body)["error"]["name"]), (400, "ZodError"), "bad")


main()
