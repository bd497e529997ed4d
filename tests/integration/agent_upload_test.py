#!/usr/bin/python3
"""PUT /burrow/file: the bytes of a body become a file, whole or not at all."""

import json
import os
import sys
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20


def target(path):
    return "/burrow/file?" + urllib.parse.urlencode({"path": path})


def put(path, data):
    """(status, document)"""
    response = request(SHARED.address, "PUT", target(path), [], data, 60.0)
    return response.status, json.loads(response.body)


def inside(name):
    return os.path.join(SHARED.folder, name)


def content(path):
    with open(path, "rb") as file:
        return file.read()


@test
def every_byte_arrives():
    data = bytes(range(256)) * 1000
    status, document = put(inside("new/deep/a.bin"), data)
    equal((status, document["success"], document["bytesWritten"]), (200, True, len(data)), "put")
    equal(content(inside("new/deep/a.bin")), data, "content")
    equal(put(inside("empty"), b"")[0], 200, "nothing")
    equal(content(inside("empty")), b"", "content")


@test
def a_file_is_replaced_as_a_whole_and_keeps_its_mode():
    path = inside("kept")
    put(path, b"old")
    os.chmod(path, 0o640)
    put(path, b"new")
    equal((content(path), os.stat(path).st_mode & 0o777), (b"new", 0o640), "replaced")


@test
def a_client_that_leaves_changes_nothing():
    path = inside("unchanged")
    put(path, b"old")
    before = set(os.listdir(SHARED.folder))
    with connect(SHARED.address) as connection:
        connection.send(f"PUT {target(path)} HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
                        .encode() + b"x" * 5000)
        wait_until(lambda: set(os.listdir(SHARED.folder)) != before, "the temporary file")
    wait_until(lambda: set(os.listdir(SHARED.folder)) == before, "its end")
    equal(content(path), b"old", "content")


@test
def large_files_cost_no_memory():
    data = os.urandom(MIB) * 64
    before = SHARED.memory_kb("VmHWM")
    equal(put(inside("large"), data)[1]["bytesWritten"], len(data), "bytes")
    grown = SHARED.memory_kb("VmHWM") - before
    assert grown < 8 * 1024, f"{grown} kB"
    os.unlink(inside("large"))


@test
def what_cannot_be_written_has_a_code():
    os.makedirs(inside("folder"), exist_ok=True)
    for path, status, code in ((inside("folder"), 400, "IS_DIRECTORY"),
                               (inside("empty/x"), 400, "NOT_DIRECTORY"),
                               ("x" * 5000, 400, "NAME_TOO_LONG"), ("", 400, "VALIDATION_FAILED")):
        got, document = put(path, b"data")
        equal((got, document["code"], document["operation"]), (status, code, "file.upload"), path)
    equal("file" in json.loads(SHARED.get("/burrow/handshake").body)["capabilities"], True,
          "capability")


with Agent() as SHARED:
    main()
