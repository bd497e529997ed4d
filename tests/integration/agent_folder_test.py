#!/usr/bin/python3
"""Folders through the agent: listing, moving, deleting; small disks and missing rights.

# timeout: 600
"""

import json
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from agent_files import (content, fails, folder_of_files, good, nothing_open, place,  # noqa: E402
                         put)
from shared import SHARED  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MIB = 1 << 20


# --- small disks and mounts ----------------------------------------------------------------------

INSIDE = """
set -e
mkdir -p "$1/small" "$1/other" && mount -t tmpfs -o size=1m,nr_inodes=200 none "$1/small"
mount -t tmpfs none "$1/other"
echo hosts > "$1/hosts"; mount --bind "$1/hosts" "$1/hosts"
mkdir "$1/fixed"; echo old > "$1/fixed/file"
mount --bind "$1/fixed" "$1/fixed"; mount -o remount,ro,bind "$1/fixed"
exec "$2" --listen "$3"
"""


class Mounted(Agent):
    """An agent in a mount namespace of its own with small filesystems under `folder`."""

    def launch(self):
        script = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", INSIDE, "sh",
                  self.folder, self.path(), self.address]
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(script, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, env=self.environment)


def can_mount():
    return subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "mount", "-t",
                           "tmpfs", "none", "/mnt"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


@test
def a_full_disk_keeps_the_old_content():
    if not can_mount():
        skip("the right to mount in a user namespace")
    with Mounted() as agent:
        path = f"{agent.folder}/small/file"
        good("/api/write", agent, path=path, content="old")
        error = fails("NO_SPACE", 500, "/api/write", agent, path=path, content="x" * 2 * MIB)
        equal(error["context"], {"path": path, "operation": "file.write"}, "context")
        equal(good("/api/read", agent, path=path)["content"], "old", "content")
        names = [entry["name"] for entry in good(
            "/api/list-files", agent, path=f"{agent.folder}/small",
            options={"includeHidden": True})["files"]]
        equal(names, ["file"], "names")
        fails("READ_ONLY", 403, "/api/write", agent, path=f"{agent.folder}/fixed/new", content="x")
        fails("READ_ONLY", 403, "/api/write", agent, path=f"{agent.folder}/fixed/file", content="x")
        fails("READ_ONLY", 403, "/api/delete", agent, path=f"{agent.folder}/fixed/file")


@test
def a_file_that_is_a_mount_point_is_written_in_place():
    if not can_mount():
        skip("the right to mount in a user namespace")
    with Mounted() as agent:
        path = f"{agent.folder}/hosts"
        good("/api/write", agent, path=path, content="new")
        equal(good("/api/read", agent, path=path, encoding="utf-8")["content"], "new", "content")
        fails("RESOURCE_BUSY", 409, "/api/delete", agent, path=path)


@test
def moves_to_another_filesystem_are_copies():
    if not can_mount():
        skip("the right to mount in a user namespace")
    with Mounted() as agent:
        here, there = f"{agent.folder}/tree", f"{agent.folder}/other/tree"
        agent.run(f"mkdir -p {here}/a/b/c {here}/empty; cd {here}; head -c 3000000 /dev/urandom "
                  "> a/big; echo x > a/b/c/deep; ln -s ../nowhere a/link; mkfifo a/pipe; chmod 751 "
                  "a/big; chmod 500 a/b; touch -d @1234567.25 a/big a/b; for i in $(seq 300); do "
                  "echo $i > empty/$i; done")
        describe = ("find . -printf '%P %y %m %T@ %l\\n' | sort; find . -type f | sort | "
                    "xargs sha1sum")
        before = agent.run(describe, cwd=here)["stdout"]
        good("/api/move", agent, sourcePath=here, destinationPath=there)
        equal(agent.run(describe, cwd=there)["stdout"], before, "tree")
        assert not os.path.exists(here)
        good("/api/move", agent, sourcePath=there + "/a/big", destinationPath=f"{agent.folder}/big")
        equal(os.path.getsize(f"{agent.folder}/big"), 3000000, "size")
        fails("NO_SPACE", 500, "/api/move", agent, sourcePath=f"{agent.folder}/big",
              destinationPath=f"{agent.folder}/small/big")
        equal(os.path.getsize(f"{agent.folder}/big"), 3000000, "size of what was not moved")
        equal(agent.run(f"ls -A {agent.folder}/small")["stdout"], "", "what is left")
        agent.run(f"mkdir -p {agent.folder}/small/taken/big")
        fails("IS_DIRECTORY", 400, "/api/move", agent, sourcePath=f"{agent.folder}/big",
              destinationPath=f"{agent.folder}/small/taken")


# --- delete, mkdir, exists -----------------------------------------------------------------------


@test
def files_are_deleted_and_folders_are_not():
    path = put("gone")
    equal(good("/api/delete", path=path)["path"], path, "path")
    fails("FILE_NOT_FOUND", 404, "/api/delete", path=path)
    os.makedirs(place("folder/inside"))
    error = fails("IS_DIRECTORY", 400, "/api/delete", path=place("folder"))
    assert error["message"].startswith(
        f"Cannot delete directory with deleteFile() at '{place('folder')}'"), error
    target = put("kept", b"kept")
    os.symlink(target, place("pointer"))
    good("/api/delete", path=place("pointer"))
    equal(content(target), b"kept", "target of a link")


@test
def folders_are_made():
    path = place("made")
    equal(good("/api/mkdir", path=path)["recursive"], False, "recursive")
    error = fails("FILESYSTEM_ERROR", 500, "/api/mkdir", path=path)
    equal(error["message"], "mkdir operation failed with exit code 1", "message")
    equal(good("/api/mkdir", path=path + "/a/b/c", recursive=True)["recursive"], True, "recursive")
    good("/api/mkdir", path=path + "/a/b/c", recursive=True)
    assert os.path.isdir(path + "/a/b/c")
    fails("FILE_NOT_FOUND", 404, "/api/mkdir", path=path + "/x/y")
    fails("NOT_DIRECTORY", 400, "/api/mkdir", path=put("file") + "/y", recursive=True)


@test
def exists_is_an_answer_and_never_an_error():
    os.symlink("nowhere", place("broken"))
    for path, expected in ((folder_of_files(), True), (put("file"), True), (place("missing"), False),
                           (place("broken"), False), (place("file/below"), False),
                           (place("n" * 300), False)):
        equal(good("/api/exists", path=path)["exists"], expected, path)


@test
def relative_paths_begin_where_the_session_is():
    directory = SHARED.run("pwd")["stdout"].strip()
    equal(good("/api/exists", path=".")["exists"], True, "here")
    relative = os.path.relpath(put("relative.txt", b"found"), directory)
    equal(good("/api/read", path=relative)["content"], "found", "content")
    document = good("/api/list-files", path=os.path.dirname(relative) or ".")
    entry = next(entry for entry in document["files"] if entry["name"] == "relative.txt")
    equal(os.path.realpath(entry["absolutePath"]), os.path.realpath(place("relative.txt")), "path")


# --- move and rename -----------------------------------------------------------------------------


@test
def moves_are_as_mv():
    one, two = put("mv/one", b"1"), place("mv/two")
    document = good("/api/rename", oldPath=one, newPath=two)
    equal((document["path"], document["oldPath"], document["newPath"]), (one, one, two), "reply")
    equal((content(two), os.path.exists(one)), (b"1", False), "moved")
    put("mv/three", b"3")
    good("/api/move", sourcePath=two, destinationPath=place("mv/three"))
    equal(content(place("mv/three")), b"1", "over a file")
    os.makedirs(place("mv/folder/inner"))
    good("/api/move", sourcePath=place("mv/three"), destinationPath=place("mv/folder"))
    equal(content(place("mv/folder/three")), b"1", "into a folder")
    good("/api/move", sourcePath=place("mv/folder") + "/", destinationPath=place("mv/renamed"))
    equal(sorted(os.listdir(place("mv/renamed"))), ["inner", "three"], "folder")
    error = fails("FILE_NOT_FOUND", 404, "/api/move", sourcePath=place("mv/no"),
                  destinationPath=place("mv/x"))
    equal(error["context"]["path"], place("mv/no"), "path that is missing")
    error = fails("FILE_NOT_FOUND", 404, "/api/move", sourcePath=place("mv/renamed"),
                  destinationPath=place("mv/no/x"))
    equal(error["context"]["path"], place("mv/no/x"), "path that is missing")
    fails("FILESYSTEM_ERROR", 500, "/api/move", sourcePath=place("mv/renamed"),
          destinationPath=place("mv/renamed/inner"))
    os.link(place("mv/renamed/three"), place("mv/renamed/other"))
    good("/api/rename", oldPath=place("mv/renamed/three"), newPath=place("mv/renamed/other"))
    equal(sorted(os.listdir(place("mv/renamed"))), ["inner", "other"], "two names of one file")
    fails("VALIDATION_FAILED", 400, "/api/move", sourcePath=place("mv"))


# --- listing -------------------------------------------------------------------------------------


def listing(path, **options):
    document = good("/api/list-files", path=path, options=options)
    equal(document["count"], len(document["files"]), "count")
    return {entry["relativePath"]: entry for entry in document["files"]}


@test
def a_listing_says_what_is_there():
    put("list/a.sh", b"12345", 0o750)
    put("list/sub/b.txt", b"", 0o400)
    put("list/.hidden/c", b"")
    os.symlink("a.sh", place("list/link"))
    os.mkfifo(place("list/pipe"))
    os.utime(place("list/a.sh"), ns=(0, 1794767245_211450424))
    flat = listing(place("list"))
    equal(sorted(flat), ["a.sh", "link", "pipe", "sub"], "names")
    equal(flat["a.sh"], {
        "name": "a.sh", "absolutePath": place("list/a.sh"), "relativePath": "a.sh", "type": "file",
        "size": 5, "modifiedAt": "2026-11-15T18:27:25.2114504240", "mode": "rwxr-x---",
        "permissions": {"readable": True, "writable": True, "executable": True}}, "entry")
    equal([flat[name]["type"] for name in ("link", "pipe", "sub")],
          ["symlink", "other", "directory"], "types")
    deep = listing(place("list") + "//", recursive=True)
    equal(sorted(deep), ["a.sh", "link", "pipe", "sub", "sub/b.txt"], "recursive")
    equal((deep["sub/b.txt"]["name"], deep["sub/b.txt"]["absolutePath"]),
          ("b.txt", place("list/sub/b.txt")), "path")
    equal(deep["sub/b.txt"]["permissions"],
          {"readable": True, "writable": False, "executable": False}, "permissions")
    equal(sorted(listing(place("list"), recursive=True, includeHidden=True)),
          [".hidden", ".hidden/c", "a.sh", "link", "pipe", "sub", "sub/b.txt"], "hidden")
    equal(sorted(listing(place("list/.hidden"))), ["c"], "a folder that is hidden itself")


@test
def links_in_a_listing_are_not_followed():
    os.makedirs(place("cycle/a"))
    os.symlink("..", place("cycle/a/up"))
    equal(sorted(listing(place("cycle"), recursive=True)), ["a", "a/up"], "names")
    os.symlink("cycle", place("shortcut"))
    equal(sorted(listing(place("shortcut"))), ["a"], "a link as the folder itself")


@test
def only_folders_are_listed():
    fails("NOT_DIRECTORY", 400, "/api/list-files", path=put("file"))
    error = fails("FILE_NOT_FOUND", 404, "/api/list-files", path=place("missing"))
    equal(error["context"]["operation"], "directory.list", "operation")
    fails("VALIDATION_FAILED", 400, "/api/list-files", path=folder_of_files(), options={"recursive": 5})


@test
def strange_names_are_listed():
    for name in ("new\nline", "quo\"te", "back\\slash", "ünï", " "):
        put("strange/" + name)
    with open(os.path.join(os.fsencode(place("strange")), b"bad\xff"), "wb"):
        pass
    equal(sorted(listing(place("strange"))),
          sorted(["new\nline", "quo\"te", "back\\slash", "ünï", " ", "bad�"]), "names")


@test
def a_hundred_thousand_files_are_listed_while_others_are_served():
    folder = place("many")
    for outer in range(100):
        os.makedirs(f"{folder}/{outer}")
        for inner in range(1000):
            os.close(os.open(f"{folder}/{outer}/{inner}", os.O_CREAT | os.O_WRONLY, 0o644))
    with Agent() as agent:
        list_many(agent, folder)
    subprocess.run(["rm", "-rf", folder], check=True)


def list_many(agent, folder):
    pings, done = [], threading.Event()

    def ping():
        while not done.is_set():
            pings.append(agent.get("/api/ping").status)
            time.sleep(0.005)

    thread = threading.Thread(target=ping)
    thread.start()
    try:
        response = agent.post("/api/list-files", {"path": folder, "options": {"recursive": True}})
    finally:
        done.set()
        thread.join()
    document = json.loads(response.body)
    equal(document["count"], 100 * 1000 + 100, "count")
    equal(len({entry["relativePath"] for entry in document["files"]}), 100100, "different paths")
    assert len(pings) > 5, "it answered nobody meanwhile"
    equal(set(pings), {200}, "statuses meanwhile")
    assert agent.memory_kb("VmHWM") < 100 * 1024, agent.memory_kb("VmHWM")


@test
def folders_deeper_than_any_path_are_refused_and_not_followed_for_ever():
    folder = place("deep")
    os.makedirs(folder)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    fails("NAME_TOO_LONG", 400, "/api/list-files", path=folder, options={"recursive": True})
    equal(len(good("/api/list-files", path=folder)["files"]), 1, "flat")
    subprocess.run(["rm", "-rf", folder], check=True)


# --- no rights -----------------------------------------------------------------------------------


@test
def what_may_not_be_done_is_denied():
    if os.getuid():
        skip("root, to become nobody")
    os.chmod(SHARED.folder, 0o755)
    closed = put("closed/file", b"secret", 0o600)
    folder = place("nobody")
    os.makedirs(folder)
    os.chown(folder, 65534, 65534)
    readable = put("nobody/fixed", b"old", 0o444)
    other = put("closed/open", b"old", 0o666)
    os.chmod(place("closed"), 0o755)
    with Nobody() as agent:
        equal(fails("PERMISSION_DENIED", 403, "/api/read", agent, path=closed)["message"],
              f"Permission denied: {closed}", "message")
        fails("PERMISSION_DENIED", 403, "/api/write", agent, path=closed, content="x")
        # In a folder of its own it could replace the file, but not write it.
        fails("PERMISSION_DENIED", 403, "/api/write", agent, path=readable, content="x")
        fails("PERMISSION_DENIED", 403, "/api/write", agent, path=place("closed/new"), content="x")
        fails("PERMISSION_DENIED", 403, "/api/delete", agent, path=closed)
        # What may be written is, though the folder takes no new files.
        good("/api/write", agent, path=other, content="new")
        equal(content(other), b"new", "content")
    equal(content(readable), b"old", "content")


class Nobody(Agent):
    def launch(self):
        os.chmod(self.folder, 0o777)
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", self.path(),
                 *self.arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.environment)


@test
def nothing_is_left_open():
    nothing_open()


with Agent() as AGENT:
    SHARED.stand_for(AGENT)
    main()
