#!/usr/bin/python3
"""Files through the agent: what clients read and write, and what they are told.

# timeout: 600
"""

import base64
import json
import os
import socket
import stat
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from agent_files import (content, events, fails, folder_of_files, good,  # noqa: E402
                         no_temporaries, nothing_open, place, put, temporaries)
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from shared import SHARED  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MIB = 1 << 20
SLICE = 65535


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
    fails("IS_DIRECTORY", 400, "/api/read", path=folder_of_files())
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
            total = 0
            for chunk in connection.chunks():
                total += len(chunk)
                if total > 100 * MIB:
                    break
            agent.get("/api/ping")
            assert agent.memory_kb() < 16384, agent.memory_kb()
        wait_until(lambda: path not in agent.open_paths(),
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
    fails("IS_DIRECTORY", 400, "/api/write", path=folder_of_files(), content="x")
    fails("IS_DIRECTORY", 400, "/api/write", path=folder_of_files() + "/", content="x")
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
    wait_until(lambda: not temporaries(), "nothing temporary is left")
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


@test
def nothing_is_left_open():
    nothing_open()


with Agent() as AGENT:
    SHARED.stand_for(AGENT)
    main()
