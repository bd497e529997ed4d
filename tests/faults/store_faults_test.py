#!/usr/bin/python3
# timeout: 600
"""A store of objects that is read-only, corrupt, away, silent or refuses the key: backups, restores
and mounts say so by name and in time, sandboxes run on, and what was there is there when it is back."""

import atexit
import functools
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, Refused  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from stored import SECONDS, StoredPlane, sum_of  # noqa: E402
from swift import Swift  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

BUCKET = "burrow-test"
WRONG_SECRET = "a-secret-that-is-wrong"
KEPT = b"kept" * 5000
AWAY = ("unavailable", "upstream_failed", "upstream_timeout")
HANG_SECONDS = 150.0  # S3_STALLS_MAX and S3_STALL_MS of objects_s3.h, for two requests
PAUSE_SECONDS = 3.0


class Plane(StoredPlane):
    """With a sandbox that has a mount, and a backup of it."""

    def begin(self):
        self.create("box", network="none")
        self.fill("box", "kept", KEPT)
        self.backup = self.back_up()["id"]
        self.mount("/persist")
        self.run_in("box", "echo stored > /persist/file")

    def post(self, path, body=None, timeout=SECONDS):
        return self.call("POST", f"{NATIVE}/{path}", body or {}, timeout=timeout)

    def back_up(self, timeout=SECONDS):
        return self.post("sandboxes/box/backups", timeout=timeout)

    def restore(self, timeout=SECONDS):
        return self.post("sandboxes/box/restore", {"backup": self.backup}, timeout=timeout)

    def mount(self, place, timeout=SECONDS):
        return self.post("sandboxes/box/mounts", {"path": place, "bucket": "data"}, timeout=timeout)

    def run_in(self, box, command, timeout=SECONDS):
        answer = self.execute(box, command, timeout=timeout)
        equal(answer["exitCode"], 0, f"{command}: {answer}")
        return answer["stdout"]

    def must_run_on(self):
        """Without its store: nothing of this waits for that, which would take HANG_SECONDS."""
        equal(self.sandbox("box")["status"], "running", "status")
        equal(self.contents("box"), {"kept": sum_of(KEPT)}, "its files")

    def must_be_whole(self):
        """Everything works, and the past is there."""
        equal(self.backup_contents(self.backup), {"kept": sum_of(KEPT)}, "the backup")
        equal(self.run_in("box", "cat /persist/file"), "stored\n", "in the mount")
        self.back_up()
        self.must_run_on()

    def end(self):
        for kind in ("sandboxes", "backups"):
            for one in self.listed(kind):
                self.call("DELETE", f"{NATIVE}/{kind}/{one['id']}", timeout=SECONDS)
        if self.arguments.count("s3") == 0:
            self.wait_without_strays()

    def __exit__(self, kind, *rest):
        if kind:
            self.print_log()
        super().__exit__(kind, *rest)


def refused(codes, what, ask):
    """Its message."""
    began = time.monotonic()
    try:
        ask()
    except Refused as refusal:
        took = time.monotonic() - began
        assert refusal.body["error"]["code"] in codes, f"{what}: {refusal}"
        print(f"# {what}: {refusal.status} {refusal.body['error']['message']} ({took:.1f} s)", flush=True)
        return refusal.body["error"]["message"]
    raise AssertionError(f"{what} was not refused")


def need_fuse():
    need_launcher()
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse")


# --- the folder -----------------------------------------------------------------------------------


def objects_of(plane):
    return f"{plane.data}/daemon/objects"


def archive_of(plane):
    return f"{objects_of(plane)}/backups/{plane.backup}/data.sqsh"


def change_modes(folder, mode):
    for path, _, _ in os.walk(folder):
        os.chmod(path, mode)


@test
def a_folder_that_is_read_only_says_so():
    need_fuse()
    with Plane("--stock", "0") as plane:
        plane.begin()
        change_modes(objects_of(plane), 0o500)
        message = refused(AWAY, "backup", plane.back_up)
        assert plane.data not in message and plane.data in plane.log(), message
        plane.must_run_on()
        equal(plane.backup_contents(plane.backup), {"kept": sum_of(KEPT)}, "the backup")
        change_modes(objects_of(plane), 0o700)
        plane.must_be_whole()
        plane.end()


@test
def a_corrupt_archive_is_noticed_and_nothing_is_changed():
    need_fuse()
    with Plane("--stock", "0") as plane:
        plane.begin()
        with open(archive_of(plane), "r+b") as file:
            whole = file.read()
            for at in (0, len(whole) // 2, len(whole) - 1):
                file.seek(at)
                file.write(bytes([whole[at] ^ 0x40]))
                file.flush()
                refused(("upstream_failed", "backup_invalid"), f"restore, byte {at} is another",
                        plane.restore)
                plane.must_run_on()
                file.seek(0)
                file.write(whole)
                file.flush()
            file.truncate(len(whole) - 1)
            refused(("upstream_failed", "backup_invalid"), "restore, a byte is missing", plane.restore)
            file.seek(0)
            file.write(whole)
        os.rename(archive_of(plane), f"{plane.folder}/archive")
        refused(("not_found", "backup_not_found"), "restore, the archive is gone", plane.restore)
        plane.must_run_on()
        os.rename(f"{plane.folder}/archive", archive_of(plane))
        plane.must_be_whole()
        plane.end()


# --- a store behind the S3 API --------------------------------------------------------------------


def s3_plane(swift, secret):
    return Plane("--stock", "0", "--objects", "s3", "--s3-endpoint", swift.endpoint, "--s3-bucket",
                 BUCKET, "--s3-access-key", swift.access_key, "--s3-region", swift.region,
                 environment={"BURROW_S3_SECRET_KEY": secret})


def ask_while_it_hangs(plane, swift):
    """Everything at once. With BURROW_FULL=1 the store is silent until all have given up, which takes
    as long as a store is given; otherwise for a moment, and nobody may have noticed."""
    problems = []

    def attempt(what, ask):
        try:
            if FULL:
                refused(AWAY, what, ask)
            else:
                ask()
        except BaseException as problem:  # pylint: disable=broad-except
            problems.append(f"{what}: {problem!r}")

    def read():
        status = plane.execute("box", "cat /persist/none", timeout=HANG_SECONDS)["exitCode"]
        if status == 0:
            problems.append("a file was read that nobody has")
    asked = (("backup", lambda: plane.back_up(HANG_SECONDS)),
             ("restore", lambda: plane.restore(HANG_SECONDS)))
    threads = [threading.Thread(target=attempt, args=one) for one in asked]
    threads.append(threading.Thread(target=read))
    swift.pause()
    for thread in threads:
        thread.start()
    began = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        plane.must_run_on()
        if not FULL and time.monotonic() - began > PAUSE_SECONDS:
            swift.resume()
        time.sleep(0.5)
    equal(problems, [], "problems")


@functools.lru_cache
def shared_swift():
    """With a bucket; started once, which takes longer than what is tried with it."""
    swift = Swift()
    swift.__enter__()
    atexit.register(swift.__exit__, None, None, None)
    swift.make_bucket(BUCKET)
    return swift


@test
def a_store_that_is_away_or_silent_harms_nothing():
    need_fuse()
    swift = shared_swift()
    with s3_plane(swift, swift.secret_key) as plane:
        plane.begin()
        proxy = swift.processes.pop()
        proxy.kill()
        proxy.wait()
        refused(AWAY, "backup to a store that is away", plane.back_up)
        refused(AWAY, "restore from it", plane.restore)
        plane.must_run_on()
        swift.launch("proxy")
        wait_until(swift.is_ready, "Swift again", SECONDS)
        plane.must_be_whole()
        try:
            ask_while_it_hangs(plane, swift)
        finally:
            swift.resume()
        plane.must_be_whole()
        plane.check_promises()
        assert swift.secret_key not in plane.log(), "the secret is in the log"
        plane.end()


@test
def a_wrong_secret_is_told_and_not_shown():
    need_fuse()
    swift = shared_swift()
    with s3_plane(swift, WRONG_SECRET) as plane:
        plane.create("box", network="none")
        plane.fill("box", "kept", KEPT)
        message = refused(AWAY, "backup", plane.back_up)
        assert WRONG_SECRET not in message and BUCKET not in message, message
        assert "secret" in plane.log() and WRONG_SECRET not in plane.log(), "the log"
        plane.must_run_on()
        equal(plane.listed("backups"), [], "backups")
        plane.end()


main()
