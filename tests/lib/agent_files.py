"""Asking an agent for files, for the tests of those.

    path = put("folder/name", b"content")   # without the agent
    good("/api/read", path=path)["content"]
    fails("FILE_NOT_FOUND", 404, "/api/read", path=place("none"))
"""

import json
import os

from shared import SHARED
from tap import equal


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


def folder_of_files():
    """Where the files of a test lie."""
    folder = os.path.join(SHARED.folder, "files")
    os.makedirs(folder, exist_ok=True)
    return folder


def place(name):
    return os.path.join(folder_of_files(), name)


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


def temporaries(folder=None):
    return [name for _, _, names in os.walk(folder or folder_of_files()) for name in names
            if name.startswith(".burrow-")]


def no_temporaries(folder=None):
    equal(temporaries(folder), [], "temporary files left behind")


def nothing_open():
    """The agent holds no file of a test any more, and left none of its own."""
    held = [path for path in SHARED.open_paths() if path.startswith(folder_of_files())]
    equal(held, [], "descriptors")
    no_temporaries()
