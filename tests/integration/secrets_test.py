#!/usr/bin/python3
# timeout: 300
"""What callers tell us in confidence is nowhere to be read afterwards: passwords of repositories, keys
of stores, secrets of webhooks and variables, in the daemon's log, its database, its traces, its events,
its audit log, its answers and the command lines of the host."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, main_with_plane  # noqa: E402
from program import wait_until  # noqa: E402
from s3_store import S3Store, refusing  # noqa: E402
from tap import test  # noqa: E402

PLANE = None  # set by main_with_plane
# Variables of a sandbox are not among what is sealed, which SECURITY.md says: they are looked for in the
# log, in traces, events and command lines alone.
# Each in one place only, so that a find says where it came from.
SECRETS = {name: f"sesame{name}sesame" for name in ("gitpassword", "gittoken", "storekey", "storetoken", "hookbearer",
                                                   "variable", "execvariable", "bridgekey", "stackkey")}
GIT_INSIDE = """
import base64, http.server
class Server(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open("/tmp/seen", "a").write(self.headers.get("Authorization", "none") + "\\n")
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", 8418), Server).serve_forever()
"""


def tell_all(key, store):
    """Say each secret once in its place, where it works and where it does not."""
    box = PLANE.create("safe", key=key, env={"SECRET": SECRETS["variable"]})["id"]
    at = f"{NATIVE}/sandboxes/{box}"
    PLANE.ask("PUT", f"{at}/files/tmp/git.py", GIT_INSIDE.encode(), key=key)
    PLANE.call("POST", f"{at}/processes", {"command": "exec python3 /tmp/git.py"}, key=key)
    wait_until(lambda: PLANE.execute("safe", "curl -s http://127.0.0.1:8418/", key=key)["exitCode"] == 0, "git's server")
    answers = []
    for url in (f"http://user:{SECRETS['gitpassword']}@127.0.0.1:8418/repo.git",
                f"http://{SECRETS['gittoken']}@127.0.0.1:8418/repo.git",
                f"https://user:{SECRETS['gitpassword']}@nowhere.test/repo.git"):
        for path, field in ((f"{at}/git/clone", "url"), (f"{at}/container/api/git/checkout", "repoUrl")):
            answers.append(PLANE.ask("POST", path, {field: url}, key=key))
    credentials = {"accessKeyId": "id", "secretAccessKey": SECRETS["storekey"], "sessionToken": SECRETS["storetoken"]}
    mount = {"path": "/m", "bucket": "bucket", "endpoint": store.endpoint, "region": "r", **credentials}
    PLANE.call("POST", f"{at}/mounts", mount, key=key)
    PLANE.execute("safe", "ls /m; echo x > /m/f", key=key, env={"SECRET": SECRETS["execvariable"]})
    store.mood = refusing
    answers.append(PLANE.ask("POST", f"{at}/mounts", {**mount, "path": "/refused", "bucket": "other"}, key=key))
    PLANE.execute("safe", "ls /m/none; echo x > /m/g", key=key)
    for path, secret in ((f"/v1/sandbox/{box}/mount", "bridgekey"), (f"/v1/sandboxes/{box}/mount", "stackkey")):
        answers.append(PLANE.ask("POST", path, {
            "bucket": "b", "mountPath": "/n", "options": {"endpoint": store.endpoint, "credentials": {
                "accessKeyId": "a", "secretAccessKey": SECRETS[secret]}}}, key=key))
    answers.append(PLANE.ask("POST", f"{NATIVE}/webhooks", {"url": "http://127.0.0.1:9/x", "bearer": SECRETS["hookbearer"]},
                             key=key))
    for path in ("", "/mounts", "/events?limit=1000", "/processes", "/stats"):
        answers.append(PLANE.ask("GET", at + path, key=key))
    for path in ("/webhooks", "/events?limit=1000", "/sandboxes", "/audit?limit=1000", "/debug/state",
                 f"/debug/trace?sandbox={box}"):
        answers.append(PLANE.ask("GET", NATIVE + path))
    return [(f"answer {number}", answer.body) for number, answer in enumerate(answers)]


def files_of_the_daemon():
    """(path, content) of its database and whatever else it keeps for itself, and of its log."""
    yield "the log", PLANE.log().encode()
    for folder in ("db", "spool", "keys"):
        for top, _, names in os.walk(f"{PLANE.data}/daemon/{folder}"):
            for name in names:
                with open(os.path.join(top, name), "rb") as file:
                    yield os.path.join(top, name), file.read()


def command_lines():
    done = subprocess.run(["ps", "-eo", "args"], stdout=subprocess.PIPE, check=True)
    return [("a command line", done.stdout)]


@test
def nothing_told_in_confidence_can_be_read_anywhere():
    key = PLANE.user("ann")
    with S3Store() as store:
        seen = tell_all(key, store) + command_lines()
        assert store.received, "the store was never asked"
        assert any(one in PLANE.execute("safe", "cat /tmp/seen", key=key)["stdout"] for one in ("Basic", "none"))
        seen += list(files_of_the_daemon())
        assert any(path.startswith(f"{PLANE.data}/daemon/db/") and data for path, data in seen), "no database was read"
        found = [(name, path) for name, secret in SECRETS.items() for path, data in seen
                 if secret.encode() in data and name != "variable"]
        assert not found, found
        told = [path for path, data in seen if SECRETS["variable"].encode() in data and not is_owners(path, data)
                and "/db/" not in path]
        assert not told, told
        assert SECRETS["storekey"].encode() not in store.received, "a key was sent as it is"


def is_owners(path, data):
    """The owner is shown the variables of his sandbox: that is what they are for."""
    return path.startswith("answer") and b'"env":{' in data


sys.exit(main_with_plane("secrets", "--mount-networks", "127.0.0.0/8", "--log-level", "debug"))
