#!/usr/bin/python3
# timeout: 600
"""Workspaces mirrored in the object store, against the daemon with real sandboxes: what is put, what
is left out, what comes back, and what happens when the disk is gone or the store lies.

One daemon serves all tests; each test has sandboxes of its own."""

import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from host_mounts import delete_disk, pool_store  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
SECONDS = 60
FILES = 2000

TREE = r"""
import os
os.chdir("/workspace")
for n in range(20):
    os.mkdir(f"d{n}")
    for m in range(COUNT // 20):
        with open(f"d{n}/{m}", "wb") as file:
            file.write(os.urandom(m % 300) + b"%d %d" % (n, m))
os.mkdir("empty"); os.chmod("empty", 0o1777)
os.mkdir("Grüße 世界")
open("Grüße 世界/ü", "w").write("text")
open(b"bad \xff\xfe name", "w").write("bytes")
open("new\nline", "w").write("line")
open("-rf *", "w").write("dash")
open("back\\slash \\x41", "w").write("slash")
open("nothing", "w")
open("zeros", "wb").write(bytes(3 << 20))
open("large", "wb").write(os.urandom(5 << 20))
open("tool", "w").write("#!/bin/sh\n"); os.chmod("tool", 0o755)
open("secret", "w").write("s"); os.chmod("secret", 0o600)
os.symlink("/etc/passwd", "soft"); os.symlink("nowhere", "broken"); os.symlink("d1", "folder-link")
os.makedirs(".git/objects"); open(".git/HEAD", "w").write("ref")
os.makedirs(".opencode"); open(".opencode/opencode.json", "w").write("{}")
for name in ("node_modules/a/b", "src/node_modules/c", "__pycache__/d", "src/dist/e", "target/f"):
    os.makedirs(os.path.dirname(name), exist_ok=True)
    open(name, "w").write("left out")
for name in ("distance", "builder", "src/target.c"):
    open(name, "w").write("kept")
os.utime("tool", ns=(10**18, 10**18))
"""

LOOK = r"""
import hashlib, os, stat
os.chdir("/workspace")
skip = {b"node_modules", b"__pycache__", b"dist", b"target"}
for folder, folders, files in sorted(os.walk(b".")):
    for name in sorted(folders + files):
        path = os.path.join(folder, name)
        if skip & set(path.split(b"/")):
            continue
        s = os.lstat(path)
        words = [oct(s.st_mode)]
        if stat.S_ISREG(s.st_mode):
            words += [s.st_size, s.st_mtime_ns, hashlib.sha256(open(path, "rb").read()).hexdigest()]
        if stat.S_ISLNK(s.st_mode):
            words += [os.readlink(path)]
        print(path, *words)
"""


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def run(name, command):
    done = PLANE.execute(name, command, timeout=SECONDS)
    equal(done["exitCode"], 0, f"{command}: {done['stderr']}")
    return done["stdout"]


def python(name, script):
    return run(name, ["python3", "-c", script])


def look(name):
    """All that is in its workspace, a line each, but for what is left out."""
    return set(python(name, LOOK).splitlines())


def same(actual, expected):
    """Whether two looks are; only what differs is shown."""
    equal((actual - expected, expected - actual), (set(), set()), "what is too much, what is missing")


def sync(name, **options):
    return PLANE.call("POST", of(name, "/sync"), timeout=SECONDS, **options)


def restore(name):
    return PLANE.call("POST", of(name, "/sync/restore"), timeout=SECONDS)


def refused(status, code, method, path, body=None, **options):
    try:
        PLANE.call(method, path, body, timeout=SECONDS, **options)
    except Refused as refusal:
        equal((refusal.status, refusal.body["error"]["code"]), (status, code), f"{method} {path}")
        return refusal.body["error"]["message"]
    raise AssertionError(f"{method} {path} was not refused")


def mirrored(sandbox):
    """Paths of the files that the store has of a workspace."""
    tops = glob.glob(f"{PLANE.data}/daemon/objects/**/workspaces/{sandbox}", recursive=True)
    return [os.path.join(folder, name) for top in tops for folder, _, names in os.walk(top)
            for name in names]


def lists(sandbox):
    return glob.glob(f"{PLANE.data}/daemon/objects/**/manifests/{sandbox}.json*", recursive=True)


def leftovers():
    """Snapshots that the pool has; no test here keeps one."""
    return glob.glob(f"{pool_store(PLANE.data)}/snapshots/*")


def kill_daemon():
    daemon = PLANE.daemon_pid
    os.kill(daemon, 9)
    wait_until(lambda: PLANE.daemon_pid not in (None, daemon), "another daemon", SECONDS)
    wait_until(PLANE.is_ready, "it is ready", SECONDS)


# --- what is put, and what comes back -------------------------------------------------------------

@test
def a_strange_tree_is_mirrored_once_and_comes_back_exactly():
    box = PLANE.create("strange")["id"]
    refused(404, "not_found", "GET", of("strange", "/sync"))
    refused(404, "not_found", "POST", of("strange", "/sync/restore"))
    python("strange", TREE.replace("COUNT", str(FILES)))
    before = look("strange")
    first = sync("strange")
    total = first["totalFiles"]
    equal((first["syncedFiles"], first["unchangedFiles"], first["removedFiles"]), (total, 0, 0),
          "the first sync")
    assert total >= FILES + 15 and first["skippedFiles"] >= 5, first
    equal(len(mirrored(box)), total, "objects")
    assert any(path.endswith("git/HEAD") for path in mirrored(box)), "a .git is kept"
    second = sync("strange")
    equal((second["syncedFiles"], second["unchangedFiles"], second["totalSize"]),
          (0, total, first["totalSize"]), "the second sync")
    known = PLANE.call("GET", of("strange", "/sync"))
    equal((known["totalFiles"], known["totalSize"]), (total, first["totalSize"]), "what is known")
    run("strange", "cd /workspace && rm -rf d* .git tool && echo x > extra")
    equal(restore("strange")["restoredFiles"], total, "restored")
    same(look("strange"), before)
    equal(leftovers(), [], "snapshots")


@test
def changes_and_deletions_follow():
    box = PLANE.create("changing")["id"]
    run("changing", "cd /workspace && mkdir a && echo 1 > a/x && echo 2 > y && echo 3 > z")
    equal(sync("changing")["syncedFiles"], 3, "first")
    run("changing", "cd /workspace && echo 22 > y && rm z && chmod 755 a/x && mv a/x a/w && rm -r a"
                    " && echo now a file > a")
    changed = sync("changing")
    equal((changed["syncedFiles"], changed["removedFiles"], changed["totalFiles"]), (2, 2, 2),
          "second")
    equal(len(mirrored(box)), 2, "objects")
    run("changing", "rm /workspace/*")
    emptied = sync("changing")
    equal((emptied["removedFiles"], emptied["totalFiles"], mirrored(box)), (2, 0, []), "third")


@test
def sleeping_ones_are_not_woken_and_events_tell_of_it():
    PLANE.create("asleep")
    run("asleep", "echo kept > /workspace/file")
    PLANE.call("POST", of("asleep", "/stop"), {})
    equal(sync("asleep")["syncedFiles"], 1, "files")
    equal(PLANE.sandbox("asleep")["status"], "stopped", "status")
    events = PLANE.call("GET", of("asleep", "/events?limit=100"))["events"]
    told, = [event for event in events if event["type"] == "workspace.synced"]
    equal((told["data"]["syncedFiles"], told["data"]["reason"]), (1, "request"), "the event")


@test
def the_dialect_of_agentpod_has_its_own_words():
    made = PLANE.call("POST", "/sandbox", {"id": "pod", "userId": "u"}, timeout=SECONDS)
    equal(made["sandboxId"], "pod", "made")
    box = PLANE.sandbox("pod")["id"]
    equal(PLANE.sandbox("pod")["sync"], True, "synced before sleep")
    run("pod", "cd /home/user/workspace && echo one > one && mkdir node_modules && "
               "echo two > node_modules/two")
    answer = PLANE.call("POST", "/sandbox/pod/sync", timeout=SECONDS)
    stamp = answer.pop("timestamp")
    assert stamp.startswith("20") and stamp.endswith("Z"), stamp
    assert answer.pop("skippedFiles") >= 1, answer
    equal(answer, {"success": True, "sandboxId": "pod", "syncedFiles": 1, "unchangedFiles": 0,
                   "removedFiles": 0, "totalSize": 4}, "the answer")
    equal(PLANE.call("GET", "/sandbox/pod")["hasWorkspace"], True, "hasWorkspace")
    run("pod", "rm -r /home/user/workspace/*")
    restore("pod")
    equal(run("pod", "cat /home/user/workspace/one /workspace/one"), "one\none\n", "restored")
    equal(len(mirrored(box)), 1, "objects")
    PLANE.call("DELETE", "/sandbox/pod")
    wait_until(lambda: not mirrored(box) and not lists(box), "all of it is gone")
    equal(PLANE.ask("POST", "/sandbox/pod/sync").status, 404, "no such sandbox")


@test
def it_is_synced_before_its_processes_end_for_sleep():
    PLANE.create("tired", sync=True, hibernateAfter="100ms")
    run("tired", "echo kept > /workspace/file")
    PLANE.call("POST", of("tired", "/sleep"), {})
    wait_until(lambda: PLANE.sandbox("tired")["status"] == "hibernated", "hibernated", SECONDS)
    equal(PLANE.call("GET", of("tired", "/sync"))["totalFiles"], 1, "files")
    equal(run("tired", "cat /workspace/file"), "kept\n", "awake again")


# --- failures -------------------------------------------------------------------------------------

@test
def bytes_that_changed_are_refused_and_touch_nothing():
    box = PLANE.create("rotten")["id"]
    run("rotten", "head -c 300000 /dev/urandom > /workspace/file")
    sync("rotten")
    run("rotten", "rm /workspace/file; echo old > /workspace/old")
    path, = mirrored(box)
    with open(path, "r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    refused(502, "upstream_failed", "POST", of("rotten", "/sync/restore"))
    equal(run("rotten", "ls -A /workspace"), "old\n", "the folder")
    os.unlink(path)
    refused(404, "not_found", "POST", of("rotten", "/sync/restore"))
    equal(run("rotten", "ls -A /workspace"), "old\n", "the folder")
    with open(lists(box)[0], "r+b") as file:
        file.truncate(10)
    answer = PLANE.ask("POST", of("rotten", "/sync/restore"), timeout=SECONDS)
    assert answer.status >= 500, answer
    equal(run("rotten", "ls -A /workspace"), "old\n", "the folder")


@test
def a_disk_that_is_gone_comes_back_at_wake():
    box = PLANE.create("lost", env={"WORD": "kept"})["id"]
    python("lost", TREE.replace("COUNT", "40"))
    before = look("lost")
    total = sync("lost")["totalFiles"]
    PLANE.call("POST", of("lost", "/stop"), {})
    delete_disk(PLANE.data, f"disks/{box}")
    kill_daemon()
    found = PLANE.sandbox("lost")
    assert "its workspace comes back" in found["reason"], found
    woken = PLANE.call("POST", "/sandbox/lost/wake", {}, timeout=SECONDS)
    equal(woken["restoredFiles"], total, "restoredFiles")
    same(look("lost"), before)
    equal((PLANE.sandbox("lost")["id"], run("lost", "echo $WORD")), (box, "kept\n"), "the same one")
    run("lost", "echo more > /workspace/more")
    PLANE.call("POST", of("lost", "/stop"), {})
    PLANE.call("POST", of("lost", "/start"), {})
    equal(run("lost", "cat /workspace/more"), "more\n", "its disk is kept from now on")


@test
def a_kill_in_the_middle_loses_nothing_that_was_told():
    box = PLANE.create("killed")["id"]
    python("killed", TREE.replace("COUNT", "200"))
    sync("killed")
    run("killed", "cd /workspace && for n in $(seq 300); do echo $n > new$n; done; rm -r d1")
    sender = subprocess.Popen(  # pylint: disable=consider-using-with
        ["curl", "-s", "-X", "POST", "-H", f"Authorization: Bearer {PLANE.key}",
         f"http://{PLANE.address}{of('killed', '/sync')}"], stdout=subprocess.DEVNULL)
    wait_until(lambda: leftovers() or sender.poll() is not None, "it has begun")
    kill_daemon()
    sender.wait()
    wait_until(lambda: not leftovers(), "no snapshot is left", SECONDS)
    assert PLANE.call("GET", of("killed", "/sync"))["totalFiles"], "what was told is known"
    sync("killed")
    run("killed", "rm -rf /workspace/*")
    restore("killed")
    equal(run("killed", "cat /workspace/new300; ls -d /workspace/d1 2>&1 | grep -c cannot").split(),
          ["300", "1"], "the newest")
    equal(len(mirrored(box)), PLANE.call("GET", of("killed", "/sync"))["totalFiles"], "objects")


# --- owners ---------------------------------------------------------------------------------------

@test
def an_owner_stores_only_so_much_and_others_see_nothing():
    eve = PLANE.user("eve")
    owner = PLANE.create("hers", key=eve)["owner"]
    PLANE.call("PATCH", f"{NATIVE}/users/{owner}", {"quotas": {"storage": "1M"}})
    run_as = {"key": eve, "timeout": SECONDS}
    PLANE.execute("hers", "head -c 600000 /dev/urandom > /workspace/file", **run_as)
    sync("hers", key=eve)
    PLANE.create("more", key=eve)
    PLANE.execute("more", "head -c 600000 /dev/urandom > /workspace/file", **run_as)
    message = refused(429, "quota_exceeded", "POST", of("more", "/sync"), key=eve)
    assert "storage" in message, message
    refused(404, "not_found", "GET", of("more", "/sync"), key=eve)
    PLANE.create("mine")
    refused(404, "not_found", "POST", of("mine", "/sync"), key=eve)
    reader = PLANE.call("POST", f"{NATIVE}/keys", {"name": "reader", "scope": "read"})["key"]
    refused(403, "forbidden", "POST", of("mine", "/sync"), key=reader)
    metrics = PLANE.ask("GET", "/metrics").body.decode()
    line, = [one for one in metrics.splitlines() if one.startswith("burrow_storage_bytes ")]
    assert float(line.split()[1]) >= 600000, line


sys.exit(main_with_plane("sync"))
