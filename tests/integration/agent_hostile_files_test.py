#!/usr/bin/python3
"""Files, archives and backups in a place where somebody works against the agent.

Links and mounts where folders are expected, repositories that want to run something, disks that
are full. The agent runs in namespaces of its own, with a fresh /var/backups.

# timeout: 600
"""

import ctypes
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Init, can_unshare  # noqa: E402
from git_server import git  # noqa: E402
from http_raw import request  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

COUNTER = iter(range(100000))
RACES = 3000 if FULL else 300
AT_FDCWD, EXCHANGE = -100, 2  # of renameat2


class Machine(Init):
    """With an empty /var/backups that goes away with it."""

    def start(self):
        if not can_unshare():
            skip("unprivileged user namespaces")
        super().start()
        self.shell("mount -t tmpfs tmpfs /var/backups")

    def shell(self, command):
        """Inside, where mounts can be made. Its output."""
        answer = self.run(command)
        equal(answer["exitCode"], 0, f"{command}: {answer['stderr']}")
        return answer["stdout"]


def fresh():
    folder = os.path.join(FOLDER, f"folder-{next(COUNTER)}")
    os.makedirs(folder)
    return folder


def put(path, content):
    with open(path, "w", encoding="utf-8") as file:
        file.write(content)


def call(route, agent=None, **fields):
    response = (agent or SHARED).post(route, fields)
    return response.status, json.loads(response.body)


def import_tar(path, *entries):
    """(status, document): entries are (name, type, link)."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, kind, link in entries:
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, link
            archive.addfile(entry)
    response = request(SHARED.address, "PUT",
                       "/burrow/archive?" + urllib.parse.urlencode({"path": path}), [],
                       data.getvalue(), 60.0)
    return response.status, json.loads(response.body)


# --- moves ---------------------------------------------------------------------------------------

@test
def a_file_moved_to_itself_through_another_mount_is_not_lost():
    folder = fresh()
    SHARED.shell(f"mkdir {folder}/x {folder}/m && mount --bind {folder}/x {folder}/m")
    put(f"{folder}/x/file", "precious")
    for there in (f"{folder}/m/file", f"{folder}/m"):
        equal(call("/api/move", sourcePath=f"{folder}/x/file", destinationPath=there)[0], 200,
              there)
        equal(SHARED.shell(f"cat {folder}/x/file"), "precious", "content")


@test
def an_empty_folder_moved_to_itself_through_another_mount_is_not_lost():
    folder = fresh()
    SHARED.shell(f"mkdir -p {folder}/x/empty {folder}/m && mount --bind {folder}/x {folder}/m")
    equal(call("/api/move", sourcePath=f"{folder}/x/empty", destinationPath=f"{folder}/m")[0],
          200, "answer")
    equal(os.listdir(f"{folder}/x"), ["empty"], "what is there")


@test
def a_folder_moved_into_itself_through_another_mount_stays():
    folder = fresh()
    SHARED.shell(f"mkdir {folder}/x {folder}/m && mount --bind {folder}/x {folder}/m")
    put(f"{folder}/x/file", "precious")
    status, document = call("/api/move", sourcePath=f"{folder}/x",
                            destinationPath=f"{folder}/m/y")
    assert status >= 400, document
    equal(os.listdir(f"{folder}/x"), ["file"], "what is there")


# --- the files of PID 1 ---------------------------------------------------------------------------

@test
def a_link_to_the_timers_of_pid_1_is_not_written_through():
    folder = fresh()
    os.symlink("/proc/self/timerslack_ns", f"{folder}/out.txt")
    os.symlink("/proc/self", f"{folder}/self")
    before = SHARED.shell("cat /proc/1/timerslack_ns")
    for path in (f"{folder}/out.txt", f"{folder}/self/timerslack_ns", "/proc/self/timerslack_ns"):
        status, document = call("/api/write", path=path, content="20000000000")
        equal((status, document["code"]), (403, "READ_ONLY"), path)
    response = request(SHARED.address, "PUT",
                       "/burrow/file?" + urllib.parse.urlencode({"path": f"{folder}/out.txt"}), [],
                       b"20000000000", 60.0)
    equal(response.status, 403, str(response))
    equal(SHARED.shell("cat /proc/1/timerslack_ns"), before, "timer slack")


@test
def what_only_pid_1_may_read_of_itself_is_not_read_for_clients():
    folder = fresh()
    os.symlink("/proc/self/maps", f"{folder}/maps")
    os.symlink("/proc/self", f"{folder}/self")
    for path in (f"{folder}/maps", f"{folder}/self/environ", f"{folder}/self/task/1/auxv",
                 "/proc/1/fdinfo/0"):
        status, document = call("/api/read", path=path)
        equal((status, document["code"]), (403, "PERMISSION_DENIED"), f"{path}: {document}")
    equal(call("/api/list-files", path=f"{folder}/self/fd")[0], 403, "list of descriptors")
    status, document = call("/api/move", sourcePath=f"{folder}/self/maps",
                            destinationPath=f"{folder}/taken")
    assert status >= 400 and not os.path.exists(f"{folder}/taken"), document
    equal(call("/api/read", path="/proc/self/status")[0], 200, "what everybody may read")


@test
def magic_links_are_followed_by_no_call():
    folder = fresh()
    put(f"{folder}/file", "precious")
    os.symlink("/proc/self/root" + folder, f"{folder}/out")
    through, other = f"{folder}/out/file", f"{folder}/out/other"
    archive = "/burrow/archive?" + urllib.parse.urlencode({"path": f"{folder}/out"})
    for route, fields in (("read", {"path": through}), ("write", {"path": other, "content": "x"}),
                          ("delete", {"path": through}), ("mkdir", {"path": other}),
                          ("mkdir", {"path": other, "recursive": True}),
                          ("list-files", {"path": f"{folder}/out"}),
                          ("move", {"sourcePath": through, "destinationPath": f"{folder}/x"}),
                          ("move", {"sourcePath": f"{folder}/file", "destinationPath": other}),
                          ("rename", {"oldPath": f"{folder}/file", "newPath": other})):
        status, document = call(f"/api/{route}", **fields)
        assert status >= 400 and document["code"] == "TOO_MANY_LINKS", (route, fields, document)
    equal(call("/api/exists", path=through)[1]["exists"], False, "exists")
    assert request(SHARED.address, "GET", archive, [], b"", 60.0).status >= 400, "export"
    assert import_tar(f"{folder}/out", ("new", tarfile.DIRTYPE, ""))[0] >= 400, "import"
    equal(sorted(os.listdir(folder)), ["file", "out"], "what is there")


# --- names that change while a call runs ----------------------------------------------------------

class Swapper(threading.Thread):
    """Two names change places, over and over, until the block ends."""

    def __init__(self, one, other):
        super().__init__(daemon=True)
        self.names = os.fsencode(one), os.fsencode(other)
        self.turns, self.is_over = 0, False

    def run(self):
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
        while not self.is_over:
            # One of them may just be moved away.
            self.turns += exchange(AT_FDCWD, self.names[0], AT_FDCWD, self.names[1], EXCHANGE) == 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.join()


def race(one, other, calls):
    """Make the calls over and over while the names change places. {status: how often}"""
    statuses = {}
    with Swapper(one, other) as swapper:
        wait_until(lambda: swapper.turns > 100, "names change places")
        for number in range(RACES):
            status = calls[number % len(calls)]()
            statuses[status] = statuses.get(status, 0) + 1
        assert swapper.turns > RACES, swapper.turns
    return statuses


@test
def no_race_leads_to_the_entries_of_pid_1():
    folder = fresh()
    os.mkdir(f"{folder}/here")
    put(f"{folder}/here/timerslack_ns", "mine")
    put(f"{folder}/here/maps", "mine")
    os.symlink("/proc/self", f"{folder}/there")
    before = SHARED.shell("cat /proc/1/timerslack_ns")
    read = []

    def write():
        return call("/api/write", path=f"{folder}/here/timerslack_ns", content="20000000000")[0]

    def look():
        status, document = call("/api/read", path=f"{folder}/here/maps")
        read.append(document.get("content", "") if status == 200 else "")
        return status

    def upload():
        return request(SHARED.address, "PUT", "/burrow/file?" + urllib.parse.urlencode(
            {"path": f"{folder}/here/timerslack_ns"}), [], b"20000000000", 60.0).status

    statuses = race(f"{folder}/here", f"{folder}/there", [write, look, upload])
    equal(statuses.keys() > {200}, True, f"some came through, some met the link: {statuses}")
    equal(set(read) - {"", "mine"}, set(), "what was read")
    equal(SHARED.shell("cat /proc/1/timerslack_ns"), before, "timer slack")


@test
def no_race_leads_an_import_or_a_move_out_of_its_folder():
    folder, outside = fresh(), fresh()
    put(f"{outside}/precious", "precious")
    os.makedirs(f"{folder}/tree/a/b")
    os.symlink(outside, f"{folder}/link")

    def bring():
        return import_tar(f"{folder}/tree", ("a", tarfile.DIRTYPE, ""), ("a/b", tarfile.DIRTYPE, ""),
                          ("a/b/new", tarfile.DIRTYPE, ""), ("a/new", tarfile.SYMTYPE, "x"))[0]

    race(f"{folder}/tree/a", f"{folder}/link", [bring])
    equal(os.listdir(outside), ["precious"], "after imports")

    statuses = set()
    for _ in range(RACES // 15):
        folder = fresh()
        os.makedirs(f"{folder}/tree/a")
        for name in ("precious", *map(str, range(50))):
            put(f"{folder}/tree/a/{name}", "not")
        os.symlink(outside, f"{folder}/link")
        with Swapper(f"{folder}/tree/a", f"{folder}/link") as swapper:
            wait_until(lambda swapper=swapper: swapper.turns > 10, "names change places")
            # To another filesystem: copied, then deleted.
            away = f"/var/backups/{next(COUNTER)}"
            statuses.add(call("/api/move", sourcePath=f"{folder}/tree", destinationPath=away)[0])
        equal(os.listdir(outside), ["precious"], "after a move")
        with open(f"{outside}/precious", encoding="utf-8") as file:
            equal(file.read(), "precious")
    equal(200 in statuses, True, f"some were moved: {statuses}")


# --- archives ------------------------------------------------------------------------------------

@test
def a_second_name_of_a_link_must_not_lead_out_either():
    folder = fresh()
    deep = ("a/b/link", tarfile.SYMTYPE, "../..")  # the folder itself
    status, document = import_tar(folder, deep, ("out", tarfile.LNKTYPE, "a/b/link"))
    equal((status, document["code"]), (400, "VALIDATION_FAILED"), str(document))
    assert "leads out" in document["message"], document
    equal(os.path.lexists(f"{folder}/out"), False, "the link")
    equal(import_tar(folder, deep, ("c/d/in", tarfile.LNKTYPE, "a/b/link"))[0], 200, "inside")
    equal(os.readlink(f"{folder}/c/d/in"), "../..", "link")


@test
def more_excludes_than_can_be_kept_are_refused():
    folder = fresh()
    query = {"path": folder, "excludes": ",".join(str(i) for i in range(257))}
    response = SHARED.get("/burrow/archive?" + urllib.parse.urlencode(query))
    equal((response.status, json.loads(response.body)["code"]), (400, "VALIDATION_FAILED"),
          "answer")
    query["excludes"] = ",".join(str(i) for i in range(256))
    equal(SHARED.get("/burrow/archive?" + urllib.parse.urlencode(query)).status, 200, "256")


@test
def folders_of_an_archive_get_its_owners():
    folder, data = fresh(), io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        entry = tarfile.TarInfo("d")
        entry.type, entry.mode, entry.uid, entry.gid = tarfile.DIRTYPE, 0o2750, 0, 0
        archive.addfile(entry)
    response = request(SHARED.address, "PUT",
                       "/burrow/archive?" + urllib.parse.urlencode({"path": folder}), [],
                       data.getvalue(), 60.0)
    equal(response.status, 200, "answer")
    equal(SHARED.shell(f"stat -c '%u %g %a' {folder}/d"), "0 0 2750\n", "folder")


# --- watches -------------------------------------------------------------------------------------

@test
def patterns_that_would_hold_up_everybody_are_refused():
    slow = ["**a" * 330 + chr(ord("b") + i) for i in range(8)]
    for field in ("include", "exclude"):
        status, document = call("/api/watch", path="/workspace", **{field: slow})
        equal((status, document["code"]), (400, "VALIDATION_FAILED"), str(document))
        assert "too long" in document["message"], document


# --- backups -------------------------------------------------------------------------------------

@test
def a_link_in_the_place_of_a_restores_work_is_not_followed():
    folder, victim, tools = fresh(), fresh(), fresh()
    put(f"{victim}/file", "precious")
    put(f"{tools}/unsquashfs", f"""#!/bin/sh
work=$(dirname "$3")
mv "$work" {victim}-work && ln -s {victim} "$work"
exit 1
""")
    os.chmod(f"{tools}/unsquashfs", 0o755)
    with Machine(environment={"PATH": f"{tools}:{os.environ['PATH']}"}) as machine:
        machine.shell("touch /var/backups/one.sqsh")
        status, document = call("/api/backup/restore", machine, dir=folder,
                                archivePath="/var/backups/one.sqsh")
        equal((status, document["code"]), (500, "BACKUP_RESTORE_FAILED"), str(document))
    equal(os.path.isdir(f"{victim}-work"), True, "the tool was run")
    equal(os.listdir(victim), ["file"], "what the link led to")
    equal(os.listdir(folder), [], "what is left in the folder")


@test
def a_partial_clone_cannot_make_a_backup_run_something():
    folder, sign = fresh(), os.path.join(fresh(), "sign")
    put(f"{folder}/.gitignore", "junk\n")
    put(f"{folder}/junk", "1")
    git("init", "--quiet", folder)
    git("-C", folder, "add", ".gitignore")
    blob = git("-C", folder, "rev-parse", ":.gitignore")
    os.unlink(f"{folder}/.git/objects/{blob[:2]}/{blob[2:]}")
    for key, value in (("core.repositoryformatversion", "1"),
                       ("extensions.partialClone", "origin"),
                       ("remote.origin.url", f"file://{folder}"),
                       ("remote.origin.promisor", "true"),
                       ("remote.origin.uploadpack", f"touch {sign}; false")):
        git("-C", folder, "config", key, value)
    git("-C", folder, "update-index", "--skip-worktree", ".gitignore")
    os.unlink(f"{folder}/.gitignore")
    status, document = call("/api/backup/create", dir=folder, gitignore=True,
                            archivePath="/var/backups/partial.sqsh")
    equal(status, 200, str(document))
    equal(os.path.exists(sign), False, "the remote's program was run")


@test
def a_fifo_where_git_reads_holds_no_backup():
    for name, command in ((".gitignore", None), ("deep/er/.gitignore", None),
                          (".git/info/exclude", "init")):
        folder = fresh()
        if command:
            git(command, "--quiet", folder)
            if os.path.exists(f"{folder}/{name}"):
                os.unlink(f"{folder}/{name}")
        os.makedirs(os.path.dirname(f"{folder}/{name}"), exist_ok=True)
        os.mkfifo(f"{folder}/{name}")
        status, document = call("/api/backup/create", dir=folder, gitignore=True,
                                archivePath="/var/backups/fifo.sqsh")
        equal((status, document["code"]), (500, "BACKUP_CREATE_FAILED"), str(document))
        assert f"./{name} is not a regular file" in document["message"], document
        status, document = call("/api/backup/create", dir=folder,
                                archivePath="/var/backups/fifo.sqsh")
        equal(status, 200, f"without gitignore: {document}")
    equal(SHARED.shell("ls -A /var/backups | grep tmp || true"), "", "what is left")


@test
def a_disk_without_room_for_a_repository_is_told_as_such():
    folder = fresh()
    SHARED.shell("mkdir /var/backups/small && "
                 "mount -t tmpfs -o nr_inodes=3 tmpfs /var/backups/small")
    status, document = call("/api/backup/create", dir=folder, gitignore=True,
                            archivePath="/var/backups/small/one.sqsh")
    equal((status, document["code"]), (500, "NO_SPACE"), str(document))
    equal(SHARED.shell("ls -A /var/backups/small"), "", "what is left")


FOLDER = tempfile.mkdtemp(prefix="burrow-test-hostile-", dir="/tmp")  # where backups may be made of
try:
    with Machine() as SHARED:
        main()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
