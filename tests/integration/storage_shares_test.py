#!/usr/bin/python3
"""What one owner stores, and asks to be stored, does not get in another's way: keeper jobs take turns,
and what fills a disk is in a quota.

One daemon serves all tests; each test has owners of its own."""

import os
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
SECONDS = 120
BACKUPS = 24
OF_ONE = 16  # jobs on disks that one owner may have: the share disk_jobs
LIMITS = {"spool_files": 40}
MEGABYTE = 1 << 20


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def run(name, command, key):
    done = PLANE.execute(name, command, key=key, timeout=SECONDS)
    equal(done["exitCode"], 0, f"{command}: {done['stderr']}")
    return done["stdout"]


class Asked(threading.Thread):
    """One request on its way; `answer` is None until it was answered."""

    def __init__(self, method, path, body, key):
        super().__init__(daemon=True)
        self.answer = None
        self.asked = (method, path, body, key)
        self.start()

    def run(self):
        method, path, body, key = self.asked
        try:
            self.answer = PLANE.ask(method, path, body, key=key, timeout=SECONDS)
        except OSError:  # the daemon left first, with the test
            return


@test
def many_backups_of_one_owner_leave_turns_for_others():
    many, other = PLANE.user("many"), PLANE.user("other")
    PLANE.create("many", key=many)
    PLANE.create("other", key=other)
    run("many", "mkdir -p big && cd big && head -c 4000000 /dev/urandom | split -a 4 -b 2000", many)
    asked = [Asked("POST", of("many", "/backups"), {"dir": "/workspace", "compression": "xz"}, many)
             for _ in range(BACKUPS)]
    # Those who are too many are told when it is their turn for a job, and which limit that is.
    wait_until(lambda: [one for one in asked if one.answer and one.answer.status == 429],
               "somebody is too many", seconds=SECONDS)
    PLANE.call("POST", of("other", "/backups"), {}, key=other, timeout=SECONDS)
    waiting = [one for one in asked if not one.answer]
    refused = [one.answer for one in asked if one.answer and one.answer.status == 429]
    assert len(waiting) >= OF_ONE // 2, f"only {len(waiting)} of {BACKUPS} still wait"
    assert refused, "more than may wait were taken"
    assert all(b"disk_jobs: 16 of at most 16" in answer.body for answer in refused), refused[0].body
    PLANE.call("DELETE", of("many"), key=many, timeout=SECONDS)


def new_user(name, **quotas):
    """His id and a key."""
    user = PLANE.call("POST", f"{NATIVE}/users", {"name": name, "quotas": quotas})["id"]
    return user, PLANE.call("POST", f"{NATIVE}/keys", {"name": name, "user": user})["key"]


def new_box(name, key, bucket="things", **fields):
    PLANE.create(name, key=key, **fields)
    PLANE.call("POST", of(name, "/mounts"), {"path": "/m", "bucket": bucket}, key=key)
    return name


def bucket_folder(user, *path):
    return os.path.join(PLANE.data, "daemon/buckets", user, *path)


def held(share, name="burrow_share_held"):
    text = PLANE.ask("GET", "/metrics").body.decode()
    return next(float(line.split()[1]) for line in text.splitlines()
                if line.startswith(f'{name}{{share="{share}"}} '))


def refused(share, answer):
    equal(answer.status, 429, answer.body)
    assert f"{share}: ".encode() in answer.body, answer.body


# --- what is written to buckets ------------------------------------------------------------------

OPENS = """
import errno, sys, time
files, why = [], 0
for i in range(int(sys.argv[1])):
    try:
        files.append(open(f"/m/f{i}", "w"))
        files[-1].write("x")
        files[-1].flush()
    except OSError as error:
        why = error.errno
        break
print(len(files), errno.errorcode.get(why, why), flush=True)
sys.stdin.read()
"""


@test
def files_that_one_keeps_open_for_writing_end_before_the_daemons_do():
    _, many = new_user("open-many")
    _, other = new_user("open-other")
    new_box("open-many", many)
    run("open-many", f"cat > /tmp/opens.py <<'END'\n{OPENS}\nEND", many)
    run("open-many", "mkfifo /tmp/go; (sleep 600 > /tmp/go & echo $! > /tmp/holder); "
                     "nohup python3 /tmp/opens.py 200 < /tmp/go > /tmp/told 2>&1 & "
                     "until [ -s /tmp/told ]; do sleep 0.1; done", many)
    equal(run("open-many", "cat /tmp/told", many).split(), [str(LIMITS["spool_files"]), "EMFILE"],
          "what the one who opened many was told")
    equal(held("spool_files"), LIMITS["spool_files"], "held")

    new_box("open-other", other)  # a create, a mount and a write of somebody else
    run("open-other", "echo mine > /m/f; cat /m/f", other)

    run("open-many", "kill $(cat /tmp/holder)", many)
    wait_until(lambda: held("spool_files") == 0, "the files are given back")
    run("open-many", "echo again > /m/again", many)
    for name, key in (("open-many", many), ("open-other", other)):
        PLANE.call("DELETE", of(name), key=key, timeout=SECONDS)


@test
def holes_are_stored_as_holes():
    user, key = new_user("holes")
    new_box("holes", key)
    run("holes", "truncate -s 3G /m/hole; printf end >> /m/hole; mv /m/hole /m/moved", key)
    status = os.stat(bucket_folder(user, "things", "moved"))
    equal(status.st_size, (3 << 30) + 3, "length")
    assert status.st_blocks * 512 < MEGABYTE, f"{status.st_blocks * 512} bytes on the disk"
    run("holes", "test $(tail -c 3 /m/moved) = end; printf x >> /m/moved; test $(tail -c 4 /m/moved) = endx", key)
    assert os.stat(bucket_folder(user, "things", "moved")).st_blocks * 512 < MEGABYTE, "it was filled"
    PLANE.call("DELETE", of("holes"), key=key, timeout=SECONDS)


@test
def buckets_and_backups_are_in_the_quota_of_storage():
    user, key = new_user("storage", storage="8M")
    _, other = new_user("storage-other", storage="8M")
    new_box("storage", key)
    new_box("storage-other", other)
    run("storage", "head -c 6000000 /dev/urandom > /m/one", key)
    denied = PLANE.execute("storage", "head -c 6000000 /dev/urandom > /m/two", key=key, timeout=SECONDS)
    told = PLANE.execute("storage", "dd if=/dev/urandom of=/m/three bs=1M count=6 conv=fsync", key=key,
                         timeout=SECONDS)
    assert "quota exceeded" in told["stderr"], (denied, told)
    stored = sum(file.stat().st_size for file in os.scandir(bucket_folder(user, "things")))
    assert stored <= 8 * MEGABYTE, f"{stored} bytes are stored"
    run("storage", "head -c 6500000 /dev/urandom > /m/one", key)  # in its place it fits

    run("storage", "head -c 4000000 /dev/urandom > /workspace/data", key)
    refused("storage", PLANE.ask("POST", of("storage", "/backups"), {}, key=key, timeout=SECONDS))
    run("storage-other", "head -c 6000000 /dev/urandom > /m/one", other)

    run("storage", "rm /m/one; head -c 1000000 /dev/urandom > /m/four", key)
    PLANE.call("POST", of("storage", "/backups"), {}, key=key, timeout=SECONDS)
    refused("storage", PLANE.ask("POST", of("storage", "/backups"), {}, key=key, timeout=SECONDS))
    PLANE.kill_hard("daemon")  # what is stored is known again after a restart
    wait_until(lambda: PLANE.ask("GET", "/health").status == 200, "the daemon is back")
    wait_until(lambda: held("storage") >= 11000000, "all is counted again")
    refused("storage", PLANE.ask("POST", of("storage", "/backups"), {}, key=key, timeout=SECONDS))
    for name, whose in (("storage", key), ("storage-other", other)):
        PLANE.call("DELETE", of(name), key=whose, timeout=SECONDS)


# --- snapshots -----------------------------------------------------------------------------------

@test
def a_rollback_asks_for_the_room_of_what_it_keeps():
    _, key = new_user("rollback", disk="400M", snapshots=10)
    PLANE.create("rollback", key=key, limits={"disk": "300M"})
    run("rollback", "nohup sleep 600 > /dev/null 2>&1 & echo $! > /workspace/pid", key)
    empty = PLANE.call("POST", of("rollback", "/snapshots"), {"name": "empty"}, key=key)["id"]
    run("rollback", "head -c 150000000 /dev/urandom > /workspace/big; sync", key)
    refused("disk", PLANE.ask("POST", of("rollback", "/rollback"), {"snapshot": empty}, key=key,
                              timeout=SECONDS))
    run("rollback", "kill -0 $(cat /workspace/pid); test -s /workspace/big", key)  # nothing happened
    refused("disk", PLANE.ask("POST", of("rollback", "/snapshots"), {}, key=key, timeout=SECONDS))
    run("rollback", "rm /workspace/big; sync", key)
    wait_until(lambda: PLANE.ask("POST", of("rollback", "/rollback"), {"snapshot": empty}, key=key,
                                 timeout=SECONDS).status == 200, "the file system lets go, and it may")
    PLANE.call("DELETE", of("rollback"), key=key, timeout=SECONDS)


# --- users who are deleted -----------------------------------------------------------------------

@test
def what_a_deleted_user_had_is_gone():
    user, key = new_user("leaving")
    _, stays = new_user("staying")
    for name, whose in (("leaving", key), ("staying", stays)):
        new_box(name, whose)
        run(name, "echo x > /m/file; echo y > /workspace/file", whose)
        PLANE.call("POST", of(name, "/backups"), {}, key=whose, timeout=SECONDS)
    PLANE.call("POST", of("leaving", "/snapshots"), {"name": "kept"}, key=key)
    backups, snapshots, storage = held("backups"), held("snapshots"), held("storage")
    PLANE.call("DELETE", of("leaving"), key=key, timeout=SECONDS)
    assert os.path.exists(bucket_folder(user, "things", "file")), "a bucket outlives its sandbox"
    PLANE.call("DELETE", f"{NATIVE}/users/{user}")
    wait_until(lambda: not os.path.exists(bucket_folder(user)), "its buckets are gone")
    wait_until(lambda: held("backups") == backups - 1, "its backups are gone")
    equal(held("snapshots"), snapshots - 1, "snapshots")
    assert held("storage") < storage, "its storage is given back"
    equal(run("staying", "cat /m/file", stays), "x\n", "of who stays")
    equal([each for each in PLANE.call("POST", f"{NATIVE}/fsck", {}, timeout=SECONDS)["findings"]], [], "fsck")
    PLANE.call("DELETE", of("staying"), key=stays, timeout=SECONDS)


@test
def what_a_crash_left_of_a_deleted_user_is_seen_and_collected():
    gone = "a" * 26  # the id of nobody
    _, stays = new_user("remaining")
    new_box("remaining", stays)
    run("remaining", "echo x > /m/file", stays)
    owner = os.stat(bucket_folder(""))
    os.makedirs(bucket_folder(gone, "left"))
    with open(bucket_folder(gone, "left", "file"), "w", encoding="ascii") as file:
        file.write("x")
    for path in ("", "left", "left/file"):
        os.chown(bucket_folder(gone, path), owner.st_uid, owner.st_gid)
    PLANE.kill_hard("daemon")
    wait_until(lambda: PLANE.ask("GET", "/ready").status == 200, "the daemon is back")

    def findings():
        return PLANE.call("POST", f"{NATIVE}/fsck", {}, timeout=SECONDS)["findings"]
    wait_until(findings, "it was counted")
    equal([(one["is"], one["what"], one["name"]) for one in findings()],
          [("garbage", "bucket", f"{gone}/left")], "fsck")
    equal(PLANE.call("POST", f"{NATIVE}/gc", {}, timeout=SECONDS)["buckets"], 1, "gc")
    assert not os.path.exists(bucket_folder(gone)), "it is still there"
    equal(findings(), [], "fsck behind it")
    equal(run("remaining", "cat /m/file", stays), "x\n", "of who stays")
    PLANE.call("DELETE", of("remaining"), key=stays, timeout=SECONDS)


if __name__ == "__main__":
    sys.exit(main_with_plane("storage_shares", "--share-limits",
                             ",".join(f"{name}={limit}" for name, limit in LIMITS.items())))
