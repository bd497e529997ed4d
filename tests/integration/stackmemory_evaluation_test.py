#!/usr/bin/python3
"""The evaluation of the StackMemory spike, all ten steps in its order, on both object stores:

1 health, 2 bootstrap, 3 exec, 4 terminal, 5 mount, 6 write and read through the mount, 7 backup,
8 destroy, 9 restore, 10 the same command again in the restored repository.

# timeout: 600
"""

import base64
import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import ControlPlane, Refused  # noqa: E402
from launcher import need_launcher  # noqa: E402
from swift import Swift  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import BINARY, open_websocket  # noqa: E402

REPOSITORY = "file:///srv/project.git"
COMMAND = "cd /workspace/repo && git log --format=%s && sha256sum data.bin && cat notes.txt"
BUCKET = "burrow-test"

MAKE_REPOSITORY = """
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir -p /srv /tmp/origin && cd /tmp/origin
git init -q -b main . && head -c 300000 /dev/urandom >data.bin && git add . && git commit -q -m one
mkdir -p a/b && echo deep >a/b/c && ln -s a/b/c link && git add . && git commit -q -m two
git clone -q --bare . /srv/project.git
"""


class Evaluation:
    def __init__(self, plane):
        self.plane = plane

    def ask(self, verb, body=None):
        answer = self.plane.call("POST", f"/v1/sandboxes/demo/{verb}", body or {}, timeout=60.0)
        equal((answer["ok"], answer["sandboxId"]), (True, "demo"), verb)
        return answer

    def run(self, command):
        result = self.ask("exec", {"command": command})["result"]
        equal(result["exitCode"], 0, f"{command}: {result}")
        return result["stdout"].strip()

    def health(self):
        health = self.plane.call("GET", "/health")
        equal(health["ok"], True, "health")
        equal(health["bindings"], {"sandbox": True, "projectData": True, "backupBucket": True}, "bindings")

    def bootstrap(self):
        self.run(MAKE_REPOSITORY)
        steps = self.ask("bootstrap", {"repoUrl": REPOSITORY, "mountProjectData": True,
                                       "localBucket": True})["steps"]
        equal([step["type"] for step in steps], ["mountBucket", "gitCheckout", "writeFile"], "steps")
        equal((steps[0]["mountPath"], steps[0]["prefix"]), ("/persist", "/projects/demo/"), "mount")

    def execute(self):
        self.run("echo 'of this machine' >/workspace/repo/notes.txt")
        output = self.run(COMMAND)
        assert output.startswith("two\none\n") and output.endswith("of this machine"), output
        return output

    def terminal(self):
        extra = (f"Authorization: Bearer {self.plane.key}",)
        path = "/v1/sandboxes/demo/terminal?session=eval"
        with open_websocket(self.plane.address, path, extra) as client:
            equal(json.loads(client.receive_message()[1])["type"], "ready", "terminal")
            client.send(BINARY, b"echo $((6 * 7)) && ls /persist\r")
            seen = b""
            while b"42" not in seen:
                seen += client.receive_message()[1]

    def mount(self):
        equal(self.ask("mount", {"mountPath": "/persist"})["mount"],
              {"mountPath": "/persist", "prefix": "/projects/demo/", "mode": "remoteR2"}, "again")
        equal(self.ask("mount", {"mountPath": "/more", "prefix": "shared"})["mount"]["prefix"],
              "/shared/", "another")

    def write_and_read(self):
        self.run("mkdir -p /persist/deep && echo kept >/persist/deep/file && "
                 "head -c 3000000 /dev/urandom >/persist/large && sync")
        equal(self.run("cat /persist/deep/file; stat -c %s /persist/large").split(),
              ["kept", "3000000"], "read back")
        return self.run("sha256sum /persist/large")

    def no_credentials(self, secret):
        """Nothing that opens the store is to be found in the sandbox."""
        words = base64.b64encode(f"{secret}\n{BUCKET}\n".encode()).decode()  # not in our own argv
        script = (f"echo {words} | base64 -d >/tmp/words; cat /proc/mounts /proc/*/environ "
                  "/proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c -F -f /tmp/words || true")
        equal(self.run(script), "0", "traces of the store in the sandbox")

    def all_ten(self, secret="no-such-secret"):
        self.health()
        self.bootstrap()
        before = self.execute()
        self.terminal()
        self.mount()
        stored = self.write_and_read()
        self.no_credentials(secret)
        backup = self.ask("backup", {"dir": "/workspace", "name": "evaluation"})["backup"]
        equal(backup["dir"], "/workspace", "handle")
        equal(self.ask("destroy")["destroyed"], True, "destroyed")
        equal(self.ask("restore", {"backup": backup})["restored"], True, "restored")
        equal(self.run(COMMAND), before, "the same command in the restored repository")
        equal(self.run("readlink /workspace/repo/link"), "a/b/c", "a link")
        # What was mounted is the project's, not the sandbox's: it is still there.
        self.ask("mount")
        equal(self.run("cat /persist/deep/file; sha256sum /persist/large"), "kept\n" + stored, "mount")
        # And all of it survives sleep without memory.
        self.plane.call("POST", "/burrow/v1/sandboxes/demo/stop")
        self.plane.call("POST", "/burrow/v1/sandboxes/demo/start")
        equal(self.run(COMMAND), before, "after a stop")
        equal(self.run("cat /persist/deep/file"), "kept", "the mount, after a stop")
        return backup

    def refusals(self, backup):
        for handle, status, code in (
                ({"id": "8f14e45f-ceea-467f-a8f3-0123456789ab", "dir": "/workspace"}, 404,
                 "backup_not_found"),
                ({"id": "x", "dir": "/workspace"}, 400, "invalid_backup_config"),
                ({"id": backup["id"], "dir": "/etc"}, 400, "invalid_backup_config")):
            try:
                self.ask("restore", {"backup": handle})
                raise AssertionError(f"{handle} was restored")
            except Refused as refused:
                equal((refused.status, refused.body["error"]), (status, code), str(handle))
        short = self.ask("backup", {"ttl": 61})["backup"]
        time.sleep(2)
        try:
            self.ask("restore", {"backup": short})
            raise AssertionError("an expired backup was restored")
        except Refused as refused:
            equal((refused.status, refused.body["error"]), (400, "backup_expired"), "expired")


@test
def all_ten_steps_with_the_folder_store():
    need_launcher()
    with ControlPlane() as plane:
        evaluation = Evaluation(plane)
        evaluation.refusals(evaluation.all_ten())


@test
def all_ten_steps_with_an_s3_server():
    need_launcher()
    with Swift() as swift:
        swift.make_bucket(BUCKET)
        environment = {"BURROW_S3_SECRET_KEY": swift.secret_key}
        with ControlPlane("--objects", "s3", "--s3-endpoint", swift.endpoint, "--s3-bucket", BUCKET,
                          "--s3-access-key", swift.access_key, "--s3-region", swift.region,
                          environment=environment) as plane:
            Evaluation(plane).all_ten(swift.secret_key)
            keys = re.findall(r"<Key>([^<]*)</Key>", swift.fetch(f"/{BUCKET}?list-type=2"))
            for part in ("/data.sqsh", "/meta.json", "/project-data/projects/demo/large"):
                assert any(key.endswith(part) for key in keys), (part, keys)


if __name__ == "__main__":
    main()
