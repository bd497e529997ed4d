#!/usr/bin/python3
"""Files through the agent: what clients read, write, list and move, and what they are told.

# timeout: 300
"""

import base64
import errno
import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MIB = 1 << 20
SLICE = 65535


def call(route, agent=None, **fields):
    """(status, document) of an answer."""
    response = (agent or SHARED).post(route, fields)
    return response.status, json.loads(response.body)


def good(route, agent=None, **fields):
    status, document = call(route, agent, **fields)
    if status != 200 or document["success"] is not True:
        raise AssertionError(f"{route} {str(fields)[:200]}: {status} {str(document)[:500]}")
    assert document["timestamp"].endswith("Z"), document
    return document


def fails(code, status, route, agent=None, **fields):
    got, document = call(route, agent, **fields)
    equal((document.get("code"), got, document.get("httpStatus")), (code, status, status),
          f"{route} {str(fields)[:200]}: {str(document)[:300]}")
    return document


def events(route, agent=None, **fields):
    response = (agent or SHARED).post(route, fields)
    equal(response.status, 200, "status")
    equal(response.headers["content-type"], "text/event-stream", "type")
    return [json.loads(frame.removeprefix(b"data: "))
            for frame in response.body.split(b"\n\n") if frame]


def place(name):
    return os.path.join(FOLDER, name)


def put(name, content=b"", mode=0o644):
    path = place(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)
    return path


def content(path):
    with open(path, "rb") as file:
        return file.read()


def no_temporaries(folder=None):
    left = [name for _, _, names in os.walk(folder or FOLDER) for name in names
            if name.startswith(".burrow-")]
    equal(left, [], "temporary files left behind")


# --- reading -------------------------------------------------------------------------------------


@test
def text_is_read_as_text():
    path = put("a.txt", "Grüße\n\"quoted\" \\ \x01\n".encode())
    document = good("/api/read", path=path)
    equal({name: document[name] for name in document if name != "timestamp"},
          {"success": True, "path": path, "content": "Grüße\n\"quoted\" \\ \x01\n",
           "encoding": "utf-8", "isBinary": False, "mimeType": "text/plain", "size": 21}, "reply")


@test
def binaries_are_read_as_base64():
    data = bytes(range(256)) * 5
    document = good("/api/read", path=put("a.png", data))
    equal((base64.b64decode(document["content"]), document["encoding"], document["isBinary"],
           document["mimeType"], document["size"]), (data, "base64", True, "image/png", 1280), "png")


@test
def the_client_may_choose_the_encoding():
    path = put("chosen.bin", b"plain")
    document = good("/api/read", path=path, encoding="utf-8")
    equal((document["content"], document["isBinary"]), ("plain", False), "utf-8")
    equal(good("/api/read", path=path, encoding="utf8")["encoding"], "utf-8", "utf8")
    document = good("/api/read", path=put("chosen.txt", b"plain"), encoding="base64")
    equal((document["content"], document["isBinary"]), ("cGxhaW4=", True), "base64")
    equal(SHARED.post("/api/read", {"path": path, "encoding": "none"}).body, b"plain", "bytes")
    fails("VALIDATION_FAILED", 400, "/api/read", path=path, encoding="latin-1")


@test
def types_come_from_content_where_the_name_says_nothing():
    for data, kind in ((b"", "inode/x-empty"), (b"hello\n", "text/plain"),
                       (b"\x7fELF\2\1\1\0", "application/x-executable"),
                       (b"\x1f\x8b\x08\0", "application/gzip"), (b"a\0b", "application/octet-stream"),
                       (b"#!/bin/sh\n", "text/x-shellscript")):
        equal(good("/api/read", path=put("noextension", data))["mimeType"], kind, repr(data))
    equal(good("/api/read", path=put("empty"))["content"], "", "empty file")


@test
def what_is_no_utf8_becomes_replacement_characters():
    path = put("latin.txt", b"caf\xe9!\n")
    equal(good("/api/read", path=path)["content"], "caf�!\n", "content")
    equal("".join(event["data"] for event in events("/api/read/stream", path=path)
                  if event["type"] == "chunk"), "caf�!\n", "chunks")


@test
def thirty_two_mebibytes_are_read_and_not_one_byte_more():
    path = put("large.bin")
    os.truncate(path, 32 * MIB)
    document = good("/api/read", path=path)
    equal((document["size"], len(document["content"])), (32 * MIB, (32 * MIB + 2) // 3 * 4), "size")
    os.truncate(path, 32 * MIB + 1)
    error = fails("FILE_TOO_LARGE", 413, "/api/read", path=path)
    equal(error["context"], {"path": path, "operation": "file.read", "maxSize": 32 * MIB,
                             "actualSize": 32 * MIB + 1}, "context")
    os.remove(path)


@test
def files_of_proc_are_read_though_they_say_they_are_empty():
    text = good("/api/read", path="/proc/self/status", encoding="utf-8")["content"]
    assert text.startswith("Name:"), text[:40]
    assert events("/api/read/stream", path="/proc/self/status")[1]["data"].startswith("Name:")


@test
def nothing_that_is_no_file_is_read_or_waited_for():
    fifo, sock = place("fifo"), place("socket")
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sock)
        for path in (fifo, sock, "/dev/zero", "/dev/null"):
            error = fails("FILESYSTEM_ERROR", 500, "/api/read", path=path)
            equal(error["message"], f"Not a regular file: {path}", "message")
            equal(events("/api/read/stream", path=path),
                  [{"type": "error", "error": f"Not a regular file: {path}"}], "events")
    os.remove(fifo)
    os.remove(sock)


@test
def errors_say_what_is_wrong():
    missing = place("missing")
    error = fails("FILE_NOT_FOUND", 404, "/api/read", path=missing)
    equal((error["message"], error["context"], error["operation"]),
          (f"File not found: {missing}", {"path": missing, "operation": "file.read"}, "file.read"),
          "error")
    fails("IS_DIRECTORY", 400, "/api/read", path=FOLDER)
    fails("NOT_DIRECTORY", 400, "/api/read", path=put("file") + "/below")
    fails("NAME_TOO_LONG", 400, "/api/read", path=place("n" * 256))
    fails("NAME_TOO_LONG", 400, "/api/read", path="/" + "a/" * 2100)
    os.symlink("loop", place("loop"))
    fails("TOO_MANY_LINKS", 500, "/api/read", path=place("loop"))
    for wrong in ({}, {"path": ""}, {"path": 5}, {"path": None}, {"path": "a\0b"}):
        error = fails("VALIDATION_FAILED", 400, "/api/read", **wrong)
        equal(error["context"]["validationErrors"][0]["field"], "path", "field")


# --- streams -------------------------------------------------------------------------------------


@test
def a_stream_has_its_size_first_and_the_count_last():
    data = os.urandom(SLICE * 3 + 17)
    first, *chunks, last = events("/api/read/stream", path=put("s.bin", data))
    equal(first, {"type": "metadata", "mimeType": "application/octet-stream", "size": len(data),
                  "isBinary": True, "encoding": "base64"}, "metadata")
    equal(last, {"type": "complete", "bytesRead": len(data)}, "complete")
    equal([len(base64.b64decode(chunk["data"])) for chunk in chunks], [SLICE] * 3 + [17], "slices")
    equal(base64.b64decode("".join(chunk["data"] for chunk in chunks)), data, "bytes")


@test
def characters_are_whole_across_slices():
    text = "ü€😀" * 20000
    for shift in range(4):
        data = "x" * shift + text
        chunks = events("/api/read/stream", path=put("s.txt", data.encode()))[1:-1]
        equal("".join(chunk["data"] for chunk in chunks) == data, True, f"shift {shift}")


@test
def a_slow_client_of_a_large_file_costs_no_memory_and_nobody_else_waits():
    path = put("huge.bin")
    os.truncate(path, 512 * MIB)
    with Agent() as agent:
        body = json.dumps({"path": path}).encode()
        with connect(agent.address, 60.0) as connection:
            connection.send(b"POST /api/read/stream HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                            % (len(body), body))
            equal(connection.response_head().status, 200, "status")
            time.sleep(0.5)
            assert agent.anonymous_kb() < 8192, agent.anonymous_kb()
            started, total = time.monotonic(), 0
            for chunk in connection.chunks():
                total += len(chunk)
                if total > 100 * MIB:
                    break
            agent.get("/api/ping")
            assert time.monotonic() - started < 30, "slow"
            assert agent.memory_kb() < 16384, agent.memory_kb()
        wait_until(lambda: f"{path}" not in str([os.readlink(f"/proc/{agent.pid}/fd/{fd}")
                                                 for fd in os.listdir(f"/proc/{agent.pid}/fd")]),
                   "the file is closed when its reader leaves")
    os.remove(path)


@test
def a_missing_file_is_an_event_of_the_stream():
    missing = place("missing")
    equal(events("/api/read/stream", path=missing),
          [{"type": "error", "error": f"File not found: {missing}"}], "events")
    fails("VALIDATION_FAILED", 400, "/api/read/stream")


# --- writing -------------------------------------------------------------------------------------


@test
def text_and_base64_are_written_and_parents_made():
    path = place("new/deep/er/a.txt")
    document = good("/api/write", path=path, content="Grüße\0\n")
    equal((document["path"], document["bytesWritten"]), (path, 9), "reply")
    equal(content(path), "Grüße\0\n".encode(), "content")
    data = os.urandom(100000)
    for text in (base64.b64encode(data).decode(), base64.b64encode(data).decode().rstrip("=")):
        good("/api/write", path=path, content=text, encoding="base64")
        equal(content(path), data, "bytes")
    good("/api/write", path=path, content="", encoding="base64")
    equal(content(path), b"", "empty")
    for wrong in ("a b", "a-b_", "====a", "a", "ab=c"):
        fails("VALIDATION_FAILED", 400, "/api/write", path=path, content=wrong, encoding="base64")
    for wrong in ({}, {"content": 5}, {"content": "a", "encoding": "x"},
                  {"content": "a", "permissions": "9"}, {"content": "a", "permissions": "77777"}):
        fails("VALIDATION_FAILED", 400, "/api/write", path=path, **wrong)
    no_temporaries()


@test
def every_length_of_base64_is_exact():
    path = place("lengths")
    for length in (1, 2, 3, 4, 5, 3071, 3072, 3073, 4095, 4096, 4097, 393215, 393216, 393217):
        data = os.urandom(length)
        good("/api/write", path=path, content=base64.b64encode(data).decode(), encoding="base64")
        equal(content(path) == data, True, f"{length} bytes")


@test
def a_large_text_is_written_whole():
    text = "0123456789ü" * 500000
    good("/api/write", path=place("large.txt"), content=text)
    equal(content(place("large.txt")) == text.encode(), True, "content")
    text = "a" * (32 * MIB + 1)
    error = fails("FILE_TOO_LARGE", 413, "/api/write", path=place("large.txt"), content=text)
    equal(error["context"]["actualSize"], 32 * MIB + 1, "size")


@test
def an_existing_file_keeps_its_mode_and_is_replaced_at_once():
    path = put("script.sh", b"old", 0o751)
    before = os.stat(path)
    with open(path, "rb") as reader:
        good("/api/write", path=path, content="new")
        equal(reader.read(), b"old", "what a reader had open")
    equal((stat.S_IMODE(os.stat(path).st_mode), content(path)), (0o751, b"new"), "after")
    assert os.stat(path).st_ino != before.st_ino
    good("/api/write", path=path, content="new", permissions="0600")
    equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, "chosen mode")
    good("/api/write", path=place("fresh"), content="", permissions=0o4755)
    equal(stat.S_IMODE(os.stat(place("fresh")).st_mode), 0o4755, "mode of a new file")
    good("/api/write", path=place("plain"), content="")
    umask = os.umask(0)
    os.umask(umask)
    equal(stat.S_IMODE(os.stat(place("plain")).st_mode), 0o666 & ~umask, "default mode")


@test
def an_existing_file_keeps_its_owner():
    if os.getuid():
        skip("root, who may give files away")
    path = put("owned", b"old", 0o4755)
    os.chown(path, 1234, 2345)
    os.chmod(path, 0o4755)
    good("/api/write", path=path, content="new")
    now = os.stat(path)
    equal((now.st_uid, now.st_gid, stat.S_IMODE(now.st_mode)), (1234, 2345, 0o4755), "owner")


@test
def links_are_followed_to_what_they_lead_to():
    target = put("links/target", b"old")
    os.symlink("target", place("links/one"))
    os.symlink(place("links/one"), place("links/two"))
    os.symlink("not/yet", place("links/dangling"))
    os.symlink("unmade", place("links/makes"))
    good("/api/write", path=place("links/two"), content="new")
    equal((content(target), os.readlink(place("links/two"))), (b"new", place("links/one")), "target")
    good("/api/write", path=place("links/makes"), content="made")
    equal(content(place("links/unmade")), b"made", "target that was not there")
    fails("FILE_NOT_FOUND", 404, "/api/write", path=place("links/dangling"), content="x")
    os.symlink("circle", place("links/circle"))
    fails("TOO_MANY_LINKS", 500, "/api/write", path=place("links/circle"), content="x")


@test
def only_files_and_character_devices_are_written():
    good("/api/write", path="/dev/null", content="gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    fifo = place("fifo2")
    os.mkfifo(fifo)
    fails("FILESYSTEM_ERROR", 500, "/api/write", path=fifo, content="x")
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)
    os.remove(fifo)
    fails("IS_DIRECTORY", 400, "/api/write", path=FOLDER, content="x")
    fails("IS_DIRECTORY", 400, "/api/write", path=FOLDER + "/", content="x")
    fails("NOT_DIRECTORY", 400, "/api/write", path=put("file") + "/x", content="x")
    fails("NAME_TOO_LONG", 400, "/api/write", path=place("n" * 256), content="x")
    no_temporaries()


@test
def a_client_that_leaves_leaves_nothing():
    body = json.dumps({"path": place("left"), "content": "x" * 20 * MIB}).encode()
    for sent in (len(body) // 2, len(body) - 1, len(body)):
        with connect(SHARED.address, 60.0) as connection:
            connection.send(b"POST /api/write HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
                            % len(body))
            connection.send(body[:sent])
    SHARED.get("/api/ping")
    time.sleep(0.3)
    no_temporaries()
    assert not os.path.exists(place("left")) or len(content(place("left"))) == 20 * MIB


@test
def many_writers_of_one_file_leave_one_whole_content():
    path = place("contested")
    texts = [str(number) * 300000 for number in range(8)]
    threads = [threading.Thread(target=good, args=("/api/write",),
                                kwargs={"path": path, "content": text}) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert content(path).decode() in texts
    no_temporaries()


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
    for path, expected in ((FOLDER, True), (put("file"), True), (place("missing"), False),
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
    fails("VALIDATION_FAILED", 400, "/api/list-files", path=FOLDER, options={"recursive": 5})


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
    slowest, done = [0.0], threading.Event()

    def ping():
        while not done.is_set():
            started = time.monotonic()
            agent.get("/api/ping")
            slowest[0] = max(slowest[0], time.monotonic() - started)
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
    assert slowest[0] < 2, slowest
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
    def open_files():
        return sorted(os.readlink(f"/proc/{SHARED.pid}/fd/{fd}")
                      for fd in os.listdir(f"/proc/{SHARED.pid}/fd"))
    try:
        equal([path for path in open_files() if path.startswith(FOLDER)], [], "descriptors")
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
    no_temporaries()


with Agent() as SHARED:
    FOLDER = os.path.join(SHARED.folder, "files")
    os.makedirs(FOLDER)
    main()
