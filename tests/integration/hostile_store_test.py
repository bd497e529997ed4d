#!/usr/bin/python3
# timeout: 300
"""Object stores that hang and lie: one that a tenant mounted, and the daemon's own. Whoever uses it
gets an error or waits; everybody else goes on, and what hangs can be destroyed."""

import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, ControlPlane, main_with_plane  # noqa: E402
from program import wait_until  # noqa: E402
from s3_store import HANGING, LYING, S3Store, failing, silent  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # set by main_with_plane
MOUNTS = 6
READERS = 4


def mount(box, store, path, key):
    PLANE.call("POST", f"{NATIVE}/sandboxes/{box}/mounts", {
        "path": path, "bucket": "bucket", "endpoint": store.endpoint, "region": "r", "accessKeyId": "a",
        "secretAccessKey": "b"}, key=key)


def held(share):
    """Of that share by all, as /metrics has it."""
    for line in PLANE.ask("GET", "/metrics").body.decode().splitlines():
        if line.startswith("burrow_share_held{") and f'"{share}"' in line:
            return float(line.rpartition(" ")[2])
    raise AssertionError(f"/metrics has no {share}")


def does_everything(plane, name, key, other):
    """What somebody else does all day: each must be answered, whatever hangs."""
    box = plane.create(name, key=key)["id"]
    at = f"{NATIVE}/sandboxes/{box}"
    plane.call("POST", f"{at}/mounts", {"path": "/own", "bucket": name}, key=key)
    plane.call("POST", f"{at}/mounts", {
        "path": "/theirs", "bucket": "bucket", "endpoint": other.endpoint, "region": "r", "accessKeyId": "a",
        "secretAccessKey": "b"}, key=key)
    answer = plane.execute(box, "for m in own theirs; do echo kept > /$m/f && cat /$m/f; done; "
                                "echo x > /workspace/x", key=key)
    equal((answer["exitCode"], answer["stdout"]), (0, "kept\nkept\n"), answer)
    backup = plane.call("POST", f"{at}/backups", {}, key=key)["id"]
    plane.call("POST", f"{at}/restore", {"backup": backup}, key=key)
    plane.call("POST", f"{at}/snapshots", {}, key=key)
    plane.call("POST", f"{at}/sync", {}, key=key)
    plane.call("POST", f"{at}/sleep", {}, key=key)
    equal(plane.execute(box, "cat /workspace/x", key=key)["stdout"], "x\n", "after a sleep")
    plane.call("DELETE", at, key=key)


@test
def who_mounts_stores_that_hang_keeps_nobody_else_waiting():
    eve, ann = PLANE.user("eve"), PLANE.user("ann")
    with S3Store() as good:
        with S3Store() as bad:
            PLANE.create("eve", key=eve)
            for number in range(MOUNTS):
                mount("eve", bad, f"/m{number}", eve)
            PLANE.execute("eve", f"for m in $(seq 0 {MOUNTS - 1}); do echo x > /m$m/f; done", key=eve)
            for mood in HANGING:
                bad.mood = mood
                PLANE.call("POST", f"{NATIVE}/sandboxes/eve/processes", {"command": f"""
                    for m in $(seq 0 {MOUNTS - 1}); do for r in $(seq {READERS}); do
                    (ls -lR /m$m; cat /m$m/f; cat /m$m/{mood.__name__}$r; echo y > /m$m/w$r) & done; done; wait"""},
                           key=eve)
            wait_until(lambda: bad.waiting >= MOUNTS, "requests that hang")
            assert held("mount_threads") > 0, "no thread is counted"
            does_everything(PLANE, "annbox", ann, good)
            # Its files cannot be had; it can be destroyed, while all of them are waited for.
            PLANE.call("DELETE", f"{NATIVE}/sandboxes/eve", key=eve)
            does_everything(PLANE, "annbox", ann, good)
        wait_until(lambda: held("mount_threads") == 0 and held("mounts") == 0, "all is given back")


@test
def a_store_that_lies_is_an_error_and_nothing_else():
    eve = PLANE.user("liar")
    with S3Store() as store:
        PLANE.create("liar", key=eve)
        before = PLANE.daemon_pid
        for number, mood in enumerate(LYING):
            store.mood = None
            mount("liar", store, "/m", eve)
            PLANE.execute("liar", "echo x > /m/f; mkdir -p /m/d", key=eve)
            store.mood = mood
            told = PLANE.execute("liar", "try() { timeout -s KILL 1 \"$@\"; }; try ls -la /m | head -c 4000; "
                                         "try cat /m/f /m/d/f; "
                                         f"try sh -c 'echo y > /m/new{number}'; true", key=eve)
            for word in ("root:", "smuggled", "\x1b"):
                assert word not in told["stdout"] + told["stderr"], (mood.__name__, told)
            PLANE.call("DELETE", f"{NATIVE}/sandboxes/liar/mounts?path=/m", key=eve)
        equal(PLANE.daemon_pid, before, "the daemon")
        PLANE.call("DELETE", f"{NATIVE}/sandboxes/liar", key=eve)


# --- the daemon's own ----------------------------------------------------------------------------

def s3_flags(store, secret):
    return ("--objects", "s3", "--s3-endpoint", store.endpoint, "--s3-bucket", "objects", "--s3-buckets-bucket",
            "buckets", "--s3-access-key", "id", "--s3-secret-key-file", secret)


@test
def when_the_daemons_own_store_hangs_what_needs_no_store_goes_on():
    with tempfile.NamedTemporaryFile("w", prefix="burrow-test-") as secret, S3Store() as store:
        secret.write("secret\n")
        secret.flush()
        os.chmod(secret.name, 0o644)
        with ControlPlane(*s3_flags(store, secret.name)) as plane:
            ann, eve = plane.user("ann"), plane.user("eve")
            for key, name in ((ann, "ann"), (eve, "eve")):
                plane.create(name, key=key)
                plane.execute(name, "echo x > /workspace/x", key=key)
            backup = plane.call("POST", f"{NATIVE}/sandboxes/ann/backups", {}, key=ann)["id"]
            plane.call("POST", f"{NATIVE}/sandboxes/eve/mounts", {"path": "/m", "bucket": "b"}, key=eve)
            store.mood = silent
            jobs = [f"(curl -s -m 3 -X POST -H 'Authorization: Bearer {eve}' -d '{{}}' -H 'Content-Type: application/json' "
                    f"http://{plane.address}{NATIVE}/sandboxes/eve/backups >/dev/null &)" for _ in range(8)]
            os.system("".join(job + ";" for job in jobs))
            plane.call("POST", f"{NATIVE}/sandboxes/eve/processes",
                       {"command": "for i in $(seq 20); do (cat /m/$i; echo x > /m/$i) & done; wait"}, key=eve)
            wait_until(lambda: store.waiting, "the store hangs")
            box = plane.create("annother", key=ann)["id"]
            equal(plane.execute(box, "echo y", key=ann)["stdout"], "y\n", "exec")
            plane.call("POST", f"{NATIVE}/sandboxes/{box}/snapshots", {"name": "s"}, key=ann)
            plane.call("POST", f"{NATIVE}/snapshots/s/fork", {}, key=ann)
            for verb in ("sleep", "wake", "stop", "start"):
                plane.call("POST", f"{NATIVE}/sandboxes/{box}/{verb}", {}, key=ann)
            plane.call("DELETE", f"{NATIVE}/sandboxes/{box}", key=ann)
            plane.call("DELETE", f"{NATIVE}/sandboxes/eve", key=eve)
            # When it answers again, with trouble first, what was stored is there.
            store.mood = failing
            answer = plane.ask("POST", f"{NATIVE}/sandboxes/ann/restore", {"backup": backup}, key=ann)
            assert answer.status in (502, 503, 504), answer
            store.mood = None
            store.over.set()
            plane.execute("ann", "rm /workspace/x", key=ann)
            wait_until(lambda: plane.ask("POST", f"{NATIVE}/sandboxes/ann/restore", {"backup": backup},
                                         key=ann).status == 200, "a restore")
            equal(plane.execute("ann", "cat /workspace/x", key=ann)["stdout"], "x\n", "restored")


sys.exit(main_with_plane("hostile stores", "--mount-networks", "127.0.0.0/8"))
