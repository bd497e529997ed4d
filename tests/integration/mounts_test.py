#!/usr/bin/python3
# timeout: 600
"""Buckets as folders in real sandboxes: what programs do with them, what the sandbox can see, and
what becomes of them when the daemon or the sandbox ends.

One daemon serves all tests; each test has a sandbox and a bucket of its own."""

import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, ControlPlane, Refused  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import wait_until  # noqa: E402
from tap import Skip, equal, main, skip, test  # noqa: E402

PLANE = None  # the daemon


def mounts_of(box):
    return f"{NATIVE}/sandboxes/{box}/mounts"


def mount(box, bucket, path="/persist", **fields):
    return PLANE.call("POST", mounts_of(box), {"path": path, "bucket": bucket, **fields})


def new_box(name, **fields):
    PLANE.create(name)
    mount(name, name, **fields)
    return name


def run(box, script, timeout=60):
    """Its output; fails unless it succeeds."""
    answer = PLANE.execute(box, ["bash", "-ec", script], timeout=timeout)
    assert answer["exitCode"] == 0, f"{script}: {answer}"
    return answer["stdout"]


def object_path(bucket, key):
    """The file of an object in the default store."""
    folder = os.path.join(PLANE.data, "daemon/buckets")
    owners = [name for name in os.listdir(folder) if not name.startswith(".")]
    for owner in owners:
        path = os.path.join(folder, owner, bucket, key)
        if os.path.exists(path):
            return path
    return None


def stored(bucket, key):
    path = object_path(bucket, key)
    if not path:
        return None
    with open(path, "rb") as file:
        return file.read()


# --- what programs do -----------------------------------------------------------------------------

@test
def files_are_objects_when_they_are_closed():
    box = new_box("plain", prefix="deep/er")
    run(box, "echo hello > /persist/a; mkdir /persist/d; echo more >> /persist/a; mv /persist/a /persist/d/b")
    equal(stored("plain", "deep/er/d/b"), b"hello\nmore\n", "in the store")
    equal(run(box, "cd /persist; find . | sort").split(), [".", "./d", "./d/b"], "in the sandbox")
    run(box, "rm -r /persist/d; test -z \"$(ls /persist)\"")
    equal(stored("plain", "deep/er/d/b"), None, "in the store")


@test
def programs_find_a_folder():
    box = new_box("programs")
    run(box, "cd /persist; mkdir -p /tmp/tree/a/b; cp -r /usr/share/doc/bash /tmp/tree/a; "
             "ln -s ../a /tmp/tree/a/link; echo x > /tmp/tree/a/b/x; chmod 700 /tmp/tree/a/b/x; "
             "cp -a /tmp/tree copy; diff -r --no-dereference /tmp/tree copy; du -s copy > /dev/null; "
             "tar cf /tmp/x.tar copy; rm -r copy; tar xf /tmp/x.tar; "
             "diff -r --no-dereference /tmp/tree copy; test -x copy/a/b/x; rm -r copy; test -z \"$(ls)\"")
    run(box, "cd /persist; git init -q repo; cd repo; git config user.email a@b; "
             "git config user.name n; for i in 1 2 3; do echo $i > f$i; git add -A; git commit -qm $i; "
             "done; git fsck --no-progress; git gc -q; test $(git log --oneline | wc -l) = 3", timeout=120)
    run(box, "cd /persist; python3 -c 'import sqlite3; db = sqlite3.connect(\"x.db\"); "
             "db.execute(\"create table t (a)\"); db.executemany(\"insert into t values (?)\", "
             "[(i,) for i in range(1000)]); db.commit(); "
             "assert db.execute(\"pragma integrity_check\").fetchone() == (\"ok\",)'")


@test
def a_hundred_megabytes_go_both_ways():
    box = new_box("large")
    run(box, "head -c 100000000 /dev/urandom > /tmp/big; cp /tmp/big /persist/big; "
             "test \"$(sha256sum < /persist/big)\" = \"$(sha256sum < /tmp/big)\"", timeout=120)
    equal(os.path.getsize(object_path("large", "big")), 100000000, "in the store")
    run(box, "printf end >> /persist/big; test $(stat -c %s /persist/big) = 100000003; "
             "tail -c 3 /persist/big | grep -q end", timeout=120)


@test
def owners_and_modes_are_those_of_the_sandbox():
    box = new_box("marks")
    run(box, "cd /persist; echo x > a; chown 1000:100 a; chmod 640 a; ln -s a b; "
             "test \"$(stat -c '%u %g %a' a)\" = '1000 100 640'; test $(readlink b) = a; "
             "test $(stat -c %u .) = 0; ! mknod dev c 1 3 2>/dev/null")


@test
def nothing_is_written_to_what_is_read_only():
    box = new_box("fixed")
    run(box, "echo x > /persist/a")
    PLANE.call("DELETE", mounts_of(box) + "?path=/persist")
    mount(box, "fixed", readOnly=True)
    run(box, "test $(cat /persist/a) = x; ! touch /persist/b 2>/dev/null; ! rm /persist/a 2>/dev/null")


# --- what is seen ---------------------------------------------------------------------------------

@test
def nothing_of_the_store_is_seen_inside():
    box = new_box("secret-bucket-name", prefix="hidden-prefix")
    lines = [line for line in run(box, "cat /proc/mounts").splitlines() if " /persist " in line]
    equal(len(lines), 1, "one mount")
    assert lines[0].startswith("burrow /persist fuse rw,nosuid,nodev"), lines
    seen = run(box, "cat /proc/mounts /proc/self/mountinfo; env; cat /proc/*/cmdline /proc/*/environ "
                    "2>/dev/null | tr '\\0' '\\n' | grep -v 'cat /proc' || true")
    for word in ("secret-bucket-name/", "hidden-prefix", "buckets", PLANE.data):
        assert word not in seen, word


@test
def places_that_cannot_be_are_refused():
    PLANE.create("places")
    for path, statuses in (("/proc/x", (400,)), ("/dev", (400,)), ("/sys", (400,)), ("relative", (400,)),
                           ("/bin", (400,)), ("/usr/local/x", (400,))):
        try:
            mount("places", "places", path=path)
        except Refused as refusal:
            assert refusal.status in statuses, (path, refusal)
        else:
            raise AssertionError(f"{path} was not refused")
    mount("places", "places")
    try:
        mount("places", "other")
    except Refused as refusal:
        equal(refusal.status, 409, "another bucket at the same place")


# --- ends -----------------------------------------------------------------------------------------

@test
def unmounting_writes_back_and_leaves_a_folder():
    box = new_box("unmount")
    run(box, "echo kept > /persist/a; (exec 3> /persist/open; echo late >&3; sleep 100) >/dev/null 2>&1 &\n"
             "sleep 0.5")
    PLANE.call("DELETE", mounts_of(box) + "?path=/persist")
    equal(stored("unmount", "open"), b"late\n", "what was written and not closed")
    equal(run(box, "ls -A /persist"), "", "an empty folder")
    mount(box, "unmount")
    equal(run(box, "cat /persist/a"), "kept\n", "mounted again")


@test
def a_sandbox_that_slept_has_its_mounts_again():
    box = new_box("sleeper")
    run(box, "echo x > /persist/a")
    for verbs in (("sleep", "wake"), ("stop", "start")):
        for verb in verbs:
            PLANE.call("POST", f"{NATIVE}/sandboxes/{box}/{verb}", {}, timeout=60)
        equal(run(box, "cat /persist/a"), "x\n", f"after {verbs}")


@test
def a_sandbox_with_mounts_in_use_is_destroyed():
    box = new_box("brief")
    run(box, "dd if=/dev/zero of=/persist/big bs=1M count=20 status=none; "
             "(while :; do cat /persist/big > /dev/null; done) >/dev/null 2>&1 & sleep 0.3")
    PLANE.call("DELETE", f"{NATIVE}/sandboxes/{box}")


@test
def a_user_learns_nothing_of_our_names():
    """What is refused and what is not resolved look alike; an administrator is told."""
    eve = PLANE.user("eve-names")
    box, own = PLANE.create("evebox", key=eve)["id"], PLANE.create("ownbox")["id"]

    def told(path, box, endpoint, key):
        document = {"path": "/m", "bucket": "bucket", "endpoint": endpoint, "accessKeyId": "a",
                    "secretAccessKey": "b"}
        if not path.startswith(NATIVE):
            document = {"bucket": "bucket", "mountPath": "/m", "options": {
                "endpoint": endpoint, "credentials": {"accessKeyId": "a", "secretAccessKey": "b"}}}
        answer = PLANE.ask("POST", path.format(box), document, key=key)
        return answer.status, re.sub(rb'"requestId":"[^"]*"', b"", answer.body)
    for path in (f"{NATIVE}/sandboxes/{{}}/mounts", "/v1/sandbox/{}/mount"):
        first, *others = [told(path, box, endpoint, eve) for endpoint in (
            "http://localhost:9", "http://127.0.0.1:9", "http://10.1.2.3", "http://nowhere.onion")]
        equal(others, [first] * 3, path)
        assert b"no public address" in first[1] or path.startswith("/v1"), first
        for word in (b"loopback", b"127.0.0.1", b"resolve"):
            assert word not in first[1], first
    assert b"is loopback" in told(f"{NATIVE}/sandboxes/{{}}/mounts", own, "http://127.0.0.1:9", None)[1]
    for name, key in (("evebox", eve), ("ownbox", None)):
        PLANE.call("DELETE", f"{NATIVE}/sandboxes/{name}", key=key)


def processes_in_wait():
    """Of sandboxes, those that no signal reaches."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                fields = file.read().rpartition(")")[2].split()
            with open(f"/proc/{pid}/wchan", encoding="utf-8") as file:
                place = file.read()
        except OSError:
            continue
        if fields[0] == "D" and "request_wait" in place:
            found.append(pid)
    return found


@test
def a_daemon_that_is_killed_leaves_errors_and_comes_back():
    box = new_box("survivor")
    run(box, "echo before > /persist/a; (while :; do cat /persist/a || echo failed >> /tmp/errors; "
             "sleep 0.02; done) >/dev/null 2>&1 &")
    daemon = PLANE.daemon_pid
    os.kill(daemon, signal.SIGKILL)
    wait_until(lambda: not processes_in_wait(), "nobody waits for a dead server")
    wait_until(lambda: PLANE.daemon_pid not in (None, daemon), "another daemon")
    wait_until(PLANE.is_ready, "it is ready")
    equal(wait_until(lambda: PLANE.execute(box, ["cat", "/persist/a"])["stdout"], "the mount again"),
          "before\n", "what was there")
    equal(run(box, "sort -u /tmp/errors || true") in ("failed\n", ""), True, "errors, and no hang")
    run(box, "echo after > /persist/b")
    equal(stored("survivor", "b"), b"after\n", "written after it")


def start():
    global PLANE  # pylint: disable=global-statement
    try:
        need_launcher()
        if not os.path.exists("/dev/fuse"):
            skip("/dev/fuse")
    except Skip as lack:
        print(f"# skip: {lack}\nok 1 - mounts # SKIP {lack}\n1..1")
        return 0
    with ControlPlane() as PLANE:
        try:
            main()
        except SystemExit as end:
            return end.code
    return 0


sys.exit(start())
