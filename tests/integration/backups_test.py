#!/usr/bin/python3
# timeout: 600
"""Backups against the daemon with real sandboxes: what comes back, what is refused, and what is
left over when somebody leaves, dies or lies in the middle.

One daemon serves all tests; each test has sandboxes of its own."""

import glob
import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from host_mounts import pool_store  # noqa: E402
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
BACKUPS = f"{NATIVE}/backups"
NOBODY = "00000000-0000-4000-8000-000000000000"
SMALL_FILES = 20000 if FULL else 2000
SECONDS = 60


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def run(name, command):
    """What a command prints; it must succeed."""
    done = PLANE.execute(name, command, timeout=SECONDS)
    equal(done["exitCode"], 0, f"{command}: {done['stderr']}")
    return done["stdout"]


def make(box, **fields):
    return PLANE.call("POST", of(box, "/backups"), fields, timeout=SECONDS)


def restore(name, backup, **fields):
    return PLANE.call("POST", of(name, "/restore"), {"backup": backup, **fields}, timeout=SECONDS)


def refused(status, code, method, path, body=None, **options):
    try:
        PLANE.call(method, path, body, timeout=SECONDS, **options)
    except Refused as refusal:
        equal((refusal.status, refusal.body["error"]["code"]), (status, code), f"{method} {path}")
        return refusal.body["error"]["message"]
    raise AssertionError(f"{method} {path} was not refused")


def objects(backup="*"):
    """Paths of what the store has of a backup."""
    return glob.glob(f"{PLANE.data}/daemon/objects/backups/{backup}/*")


def are_known():
    """Whether all that the store has belongs to a backup that is listed."""
    known = {one["id"] for one in PLANE.call("GET", f"{BACKUPS}?limit=1000")["backups"]}
    stored = {os.path.basename(os.path.dirname(path)) for path in objects()}
    return stored <= known and not glob.glob(f"{PLANE.data}/daemon/objects/.tmp/*")


def leftovers():
    """Snapshots that the pool has; no test here keeps one."""
    return glob.glob(f"{pool_store(PLANE.data)}/snapshots/*")


def kill_daemon():
    daemon = PLANE.daemon_pid
    os.kill(daemon, 9)
    wait_until(lambda: PLANE.daemon_pid not in (None, daemon), "another daemon")
    wait_until(PLANE.is_ready, "it is ready")


def leave(path, body):
    """Ask, and go away without waiting for the answer."""
    text = json.dumps(body)
    connection = connect(PLANE.address)
    connection.send((f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {PLANE.key}\r\n"
                     f"Content-Length: {len(text)}\r\n\r\n{text}").encode())
    time.sleep(0.05)
    connection.close()


# --- what comes back ------------------------------------------------------------------------------

TREE = r"""
import os, socket
os.chdir("/workspace")
os.mkdir("deep"); os.mkdir("empty"); os.chmod("empty", 0o1777)
open("deep/plain", "w").write("plain")
os.link("deep/plain", "hard")
os.symlink("/etc/passwd", "soft")
os.symlink("nowhere", "broken")
open(b"bad \xff\xfe name", "w").write("bytes")
open("new\nline", "w").write("line")
open("-rf *", "w").write("dash")
with open("sparse", "wb") as file:
    file.seek(64 << 20); file.write(b"end")
open("tool", "w").write("#!/bin/sh\n"); os.chmod("tool", 0o4755)
os.chown("deep/plain", 1234, 5678)
os.mkfifo("pipe")
os.setxattr("tool", "user.note", b"kept\0bytes")
os.utime("deep/plain", ns=(10**18 + 5, 10**18 + 7))
os.utime("deep", ns=(10**18, 10**18))
"""

LOOK = r"""
import hashlib, os, stat
def show(path):
    s = os.lstat(path)
    words = [oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink if not stat.S_ISDIR(s.st_mode) else ""]
    if stat.S_ISREG(s.st_mode):
        words += [s.st_size, int(s.st_mtime)]
        words += [hashlib.sha256(open(path, "rb").read()).hexdigest()[:8]]
        words += [(n, os.getxattr(path, n)) for n in os.listxattr(path) if n.startswith("user.")]
    if stat.S_ISLNK(s.st_mode):
        words += [os.readlink(path)]
    print(path, *words)
root = os.fsencode(os.environ["ROOT"])
os.chdir(root)
for folder, folders, files in sorted(os.walk(b".")):
    for name in sorted(folders + files):
        show(os.path.join(folder, name))
print(os.stat("hard").st_ino == os.stat("deep/plain").st_ino, os.stat("sparse").st_blocks < 1000)
"""


def python(name, script, root="/workspace"):
    done = PLANE.execute(name, ["python3", "-c", script], env={"ROOT": root}, timeout=SECONDS)
    equal(done["exitCode"], 0, done["stderr"])
    return done["stdout"]


@test
def a_strange_tree_comes_back_exactly_with_every_compression():
    # But for fractions of seconds, which squashfs does not keep.
    PLANE.create("strange")
    python("strange", TREE)
    before = python("strange", LOOK)
    for compression in ("lz4", "zstd", "gzip", "xz"):
        backup = make("strange", compression=compression, name=compression)
        run("strange", "rm -rf /workspace/* && echo x > /workspace/extra")
        restore("strange", backup)
        equal(python("strange", LOOK), before, compression)
    restore("strange", {"id": backup["id"]}, dir="/home/new/place")
    equal(python("strange", LOOK, "/home/new/place"), before, "in a folder that was not there")
    PLANE.create("another")
    restore("another", backup["id"])
    equal(python("another", LOOK), before, "in another sandbox")


@test
def folders_of_the_image_are_replaced_too():
    PLANE.create("layered")
    # The names are the image's: such folders cannot be renamed as a whole.
    before = run("layered", "cd /home && find . | sort")
    assert before.count("\n") > 1, f"the image has folders in /home: {before}"
    backup = make("layered", dir="/home")
    run("layered", "cd /home && echo x > $(ls -d */ | head -1)/extra && mkdir new && touch new/y")
    restore("layered", backup)
    equal(run("layered", "cd /home && find . | sort"), before, "as it was")
    run("layered", "mkdir /workspace/other")
    other = make("layered", dir="/workspace/other")
    restore("layered", other, dir="/home")
    equal(run("layered", "ls -A /home"), "", "emptied")
    restore("layered", backup)
    equal(run("layered", "cd /home && find . | sort"), before, "and filled again")


@test
def two_restores_at_once_do_not_meet():
    PLANE.create("twice")
    run("twice", "cd /workspace && seq 500 | xargs touch")
    backup = make("twice")
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(
        PLANE.ask("POST", of("twice", "/restore"), {"backup": backup}, timeout=SECONDS)))
        for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = {answer.status for answer in answers}
    assert 200 in statuses and statuses <= {200, 409}, answers
    equal(run("twice", "ls -A /workspace | wc -l").strip(), "500", "files")


@test
def excludes_and_gitignore_leave_out_what_they_name():
    PLANE.create("picky")
    run("picky", """cd /workspace && mkdir -p node_modules/a src/node_modules build
        touch node_modules/a/x src/node_modules/y src/main.c src/main.o build/out keep.log
        printf '*.o\\nbuild/\\n*.log\\n!keep.log\\n' > .gitignore""")
    everything = make("picky")
    backup = make("picky", gitignore=True, excludes=["node_modules"])
    assert backup["sizeBytes"] <= everything["sizeBytes"], (backup, everything)
    run("picky", "rm -rf /workspace/* /workspace/.gitignore")
    restore("picky", backup)
    equal(run("picky", "cd /workspace && find . -type f | sort"),
          "./.gitignore\n./keep.log\n./src/main.c\n", "what is left")


@test
def many_small_files_come_back():
    PLANE.create("many")
    run("many", f"""cd /workspace && for d in $(seq 20); do mkdir d$d && cd d$d &&
        seq {SMALL_FILES // 20} | while read n; do echo $n > $n; done; cd ..; done""")
    backup = make("many")
    run("many", "rm -rf /workspace/d1")
    restore("many", backup)
    equal(run("many", "cd /workspace && find . -type f | wc -l").strip(), str(SMALL_FILES), "files")
    equal(leftovers(), [], "snapshots")


# --- states of the sandbox ------------------------------------------------------------------------

@test
def a_backup_is_of_one_moment_while_the_sandbox_writes():
    PLANE.create("busy")
    PLANE.call("POST", of("busy", "/exec"), {
        "command": """cd /workspace && echo 0 > a && echo 0 > b && (i=0; while [ $i -lt 100000 ]; do
            i=$((i+1)); echo $i >> a; echo $i >> b; done) > /dev/null 2>&1 &"""})
    backup = make("busy")
    PLANE.create("quiet")
    restore("quiet", backup)
    a, b = run("quiet", "tail -qn 1 /workspace/a /workspace/b").split()
    assert 0 <= int(a) - int(b) <= 1, (a, b)


@test
def sleeping_and_stopped_ones_are_not_woken_for_it():
    for name, verb, status in (("asleep", "sleep", ("frozen", "hibernated")),
                               ("stopped", "stop", ("stopped",))):
        PLANE.create(name)
        run(name, "echo kept > /workspace/file")
        PLANE.call("POST", of(name, f"/{verb}"), {})
        backup = make(name)
        assert PLANE.sandbox(name)["status"] in status, PLANE.sandbox(name)
        run_after = restore(name, backup)
        equal(run_after["id"], backup["id"], "answer")
        equal(run(name, "cat /workspace/file"), "kept\n", "file")


@test
def a_backup_outlives_its_sandbox():
    PLANE.create("first")
    run("first", "echo kept > /workspace/file")
    backup = make("first")
    PLANE.call("DELETE", of("first"))
    PLANE.create("first")
    restore("first", backup)
    equal(run("first", "cat /workspace/file"), "kept\n", "file")


@test
def a_sandbox_may_be_destroyed_meanwhile():
    for delay in (0, 0.005, 0.02, 0.05):
        PLANE.create("doomed")
        run("doomed", "head -c 20000000 /dev/urandom > /workspace/file")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            PLANE.ask("POST", of("doomed", "/backups"), {}, timeout=SECONDS)))
        thread.start()
        time.sleep(delay)
        PLANE.call("DELETE", of("doomed"))
        thread.join()
        assert answers[0].status in (201, 404, 409), answers[0]
        if answers[0].status == 201:
            PLANE.call("DELETE", f"{BACKUPS}/{json.loads(answers[0].body)['id']}")
    wait_until(lambda: not leftovers(), "no snapshot is left")
    wait_until(are_known, "nothing half is stored")


@test
def a_sandbox_may_be_destroyed_during_a_restore():
    PLANE.create("source")
    run("source", "head -c 20000000 /dev/urandom > /workspace/file")
    backup = make("source")
    for delay in (0, 0.02, 0.05, 0.1):
        PLANE.create("target")
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            PLANE.ask("POST", of("target", "/restore"), {"backup": backup}, timeout=SECONDS)))
        thread.start()
        time.sleep(delay)
        PLANE.call("DELETE", of("target"))
        thread.join()
        assert answers[0].status in (200, 404, 409), answers[0]
    restore("source", backup)


# --- failures -------------------------------------------------------------------------------------

@test
def a_full_disk_leaves_the_folder_as_it_was():
    PLANE.create("large")
    run("large", "head -c 60000000 /dev/urandom > /workspace/file")
    backup = make("large")
    PLANE.create("tight", limits={"disk": "64M"})
    run("tight", "echo old > /workspace/old && head -c 20000000 /dev/urandom > /workspace/fill")
    before = run("tight", "cd /workspace && ls -A && md5sum *")
    message = refused(507, "no_space", "POST", of("tight", "/restore"), {"backup": backup})
    assert message, message
    equal(run("tight", "cd /workspace && ls -A && md5sum *"), before, "the folder")
    run("tight", "echo more > /workspace/more")


@test
def bytes_that_changed_are_refused_and_touch_nothing():
    PLANE.create("rotten")
    run("rotten", "head -c 3000000 /dev/urandom > /workspace/file")
    backup = make("rotten")
    run("rotten", "rm /workspace/file; echo old > /workspace/old")
    path, = [path for path in objects(backup["id"]) if "data.sqsh" in path]
    with open(path, "r+b") as file:
        file.seek(1000000)
        byte = file.read(1)
        file.seek(1000000)
        file.write(bytes([byte[0] ^ 1]))
    refused(502, "upstream_failed", "POST", of("rotten", "/restore"), {"backup": backup})
    equal(run("rotten", "ls -A /workspace"), "old\n", "the folder")
    os.unlink(path)
    refused(404, "not_found", "POST", of("rotten", "/restore"), {"backup": backup})
    equal(run("rotten", "ls -A /workspace"), "old\n", "the folder")


@test
def what_will_not_do_is_refused_with_a_sentence():
    PLANE.create("strict")
    backups, into = of("strict", "/backups"), of("strict", "/restore")
    for body in ({"dir": "/etc"}, {"dir": "workspace"}, {"dir": "/workspace/../etc"},
                 {"name": "a\nb"}, {"name": "n" * 257}, {"ttl": 0}, {"ttl": "soon"},
                 {"compression": "rar"}, {"excludes": [""]}, {"excludes": ["x"] * 1001}):
        assert refused(400, "invalid_backup_config", "POST", backups, body), body
    refused(404, "not_found", "POST", backups, {"dir": "/workspace/missing"})
    run("strict", "touch /workspace/file")
    refused(400, "invalid_request", "POST", into,
            {"backup": make("strict"), "dir": "/workspace/file"})
    refused(400, "invalid_backup_config", "POST", into, {"backup": "x"})
    refused(400, "invalid_backup_config", "POST", into, {"backup": "x" * 300})
    refused(400, "invalid_backup_config", "POST", into, {"backup": {"id": NOBODY, "dir": "/etc"}})
    refused(404, "backup_not_found", "POST", into, {"backup": NOBODY})
    refused(404, "backup_not_found", "GET", f"{BACKUPS}/{NOBODY}")
    refused(404, "backup_not_found", "DELETE", f"{BACKUPS}/..%2f..%2fetc")
    expired = make("strict", ttl=1)
    refused(400, "backup_expired", "POST", into, {"backup": expired})


# --- lists, owners --------------------------------------------------------------------------------

@test
def lists_have_pages_and_deleting_takes_the_objects_along():
    PLANE.create("listed")
    made = {make("listed", name=f"n{i}")["id"] for i in range(5)}
    seen, cursor, pages = [], "", 0
    while cursor is not None:
        page = PLANE.call("GET", of("listed", f"/backups?limit=2{cursor}"))
        seen += [one["id"] for one in page["backups"]]
        cursor = page["nextCursor"] and f"&cursor={page['nextCursor']}"
        pages += 1
    equal((sorted(seen), pages), (sorted(made), 3), "pages")
    assert made <= {one["id"] for one in PLANE.call("GET", BACKUPS)["backups"]}
    for one in made:
        equal(len(objects(one)), 2, "objects")
        PLANE.call("DELETE", f"{BACKUPS}/{one}")
        equal(objects(one), [], "objects")
        refused(404, "backup_not_found", "DELETE", f"{BACKUPS}/{one}")


@test
def backups_belong_to_their_owner():
    PLANE.create("mine")
    backup = make("mine")
    eve = PLANE.user("eve")
    PLANE.create("hers", key=eve)
    path = f"{BACKUPS}/{backup['id']}"
    refused(404, "backup_not_found", "GET", path, key=eve)
    refused(404, "backup_not_found", "DELETE", path, key=eve)
    refused(404, "backup_not_found", "POST", of("hers", "/restore"), {"backup": backup}, key=eve)
    refused(404, "not_found", "POST", of("mine", "/backups"), {}, key=eve)
    equal(PLANE.call("GET", BACKUPS, key=eve)["backups"], [], "her list")
    hers = PLANE.sandbox("hers", key=eve)["id"]
    # Also an administrator, who sees both, carries nothing from one to the other.
    refused(404, "backup_not_found", "POST", of(hers, "/restore"), {"backup": backup})
    reader = PLANE.call("POST", f"{NATIVE}/keys", {"name": "reader", "scope": "read"})["key"]
    equal(PLANE.call("GET", path, key=reader)["id"], backup["id"], "a reader looks")
    for method, where, body in (("DELETE", path, None), ("POST", of("mine", "/backups"), {}),
                                ("POST", of("mine", "/restore"), {"backup": backup})):
        refused(403, "forbidden", method, where, body, key=reader)


# --- in the middle --------------------------------------------------------------------------------

@test
def ten_at_once_are_all_made():
    PLANE.create("crowd")
    run("crowd", "head -c 5000000 /dev/urandom > /workspace/file")
    made = []
    threads = [threading.Thread(target=lambda: made.append(make("crowd"))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(len({one["id"] for one in made}), 10, "backups")
    sum_before = run("crowd", "md5sum /workspace/file")
    restore("crowd", made[7])
    equal(run("crowd", "md5sum /workspace/file"), sum_before, "the last")
    wait_until(lambda: not leftovers(), "no snapshot is left")


@test
def it_is_made_and_restored_also_when_the_client_leaves():
    PLANE.create("left")
    run("left", "head -c 20000000 /dev/urandom > /workspace/file")
    leave(of("left", "/backups"), {"name": "left"})
    listed = wait_until(lambda: PLANE.call("GET", of("left", "/backups"))["backups"], "made")
    equal(listed[0]["name"], "left", "name")
    run("left", "rm /workspace/file && touch /workspace/old")
    leave(of("left", "/restore"), {"backup": listed[0]["id"]})
    wait_until(lambda: run("left", "ls -A /workspace") == "file\n", "it is restored")


@test
def a_daemon_that_dies_leaves_nothing_half():
    PLANE.create("killed")
    run("killed", "head -c 40000000 /dev/urandom > /workspace/file")
    good = make("killed", name="good")
    known = {one["id"] for one in PLANE.call("GET", of("killed", "/backups"))["backups"]}
    for delay in (0.02, 0.1, 0.3):
        leave(of("killed", "/backups"), {"name": "half"})
        time.sleep(delay)
        kill_daemon()
    ready = {one["id"] for one in PLANE.call("GET", of("killed", "/backups"))["backups"]}
    for one in ready:
        equal(len(objects(one)), 2, "objects of a ready one")
        restore("killed", one)
    wait_until(lambda: not leftovers(), "no snapshot is left")
    wait_until(are_known, "what was not finished is collected")
    assert known <= ready, (known, ready)
    run("killed", "echo x > /workspace/other")
    for delay in (0.02, 0.2, 0.5):
        leave(of("killed", "/restore"), {"backup": good["id"]})
        time.sleep(delay)
        kill_daemon()
        names = run("killed", "ls -A /workspace")
        assert names in ("file\nother\n", "file\n"), names
    restore("killed", good)
    equal(run("killed", "ls -A /workspace"), "file\n", "the folder")


sys.exit(main_with_plane("backups"))
