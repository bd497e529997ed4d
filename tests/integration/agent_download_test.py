#!/usr/bin/python3
"""GET /burrow/file, and commands as another user."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from http_raw import request  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

AGENT = None


def get(path, headers=(), method="GET"):
    return request(AGENT.address, method, f"/burrow/file?path={path}", list(headers))


def make(name, content):
    path = os.path.join(AGENT.folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


@test
def a_file_comes_as_it_is():
    content = os.urandom(3_000_000)
    answer = get(make("whole", content))
    equal((answer.status, answer.body == content), (200, True), "status and bytes")
    equal(answer.headers["accept-ranges"], "bytes", "ranges")
    equal(get(make("page.html", b"<p>")).headers["content-type"], "text/html", "type by name")
    equal(get(make("empty", b"")).body, b"", "an empty file")
    assert get("/proc/self/status").body.startswith(b"Name:"), "a file without a size"


@test
def ranges_are_given_and_refused():
    path = make("range", b"0123456789")
    for value, status, body, content_range in (
            ("bytes=0-0", 206, b"0", "bytes 0-0/10"), ("bytes=7-", 206, b"789", "bytes 7-9/10"),
            ("bytes=-2", 206, b"89", "bytes 8-9/10"), ("bytes=5-99", 206, b"56789", "bytes 5-9/10"),
            ("bytes=0-1,3-4", 200, b"0123456789", None)):
        answer = get(path, [("Range", value)])
        equal((answer.status, answer.body, answer.headers.get("content-range")),
              (status, body, content_range), value)
    answer = get(path, [("Range", "bytes=10-")])
    equal((answer.status, answer.headers["content-range"]), (416, "bytes */10"), "behind the end")
    tag = get(path).headers["etag"]
    equal(get(path, [("Range", "bytes=0-0"), ("If-Range", tag)]).status, 206, "the same version")
    make("range", b"9876543210")
    equal(get(path, [("Range", "bytes=0-0"), ("If-Range", tag)]).status, 200, "another version")


@test
def what_is_no_file_is_refused():
    equal(get(os.path.join(AGENT.folder, "none")).status, 404, "a missing one")
    equal(get(AGENT.folder).status, 400, "a folder")
    fifo = os.path.join(AGENT.folder, "fifo")
    os.mkfifo(fifo)
    assert get(fifo).status >= 400, "a pipe"
    equal(request(AGENT.address, "GET", "/burrow/file", []).status, 400, "no path")


@test
def a_command_runs_as_the_user_it_names():
    if os.geteuid() != 0:
        skip("root")
    answer = AGENT.run("id -u; id -G; echo $USER", user="nobody")
    equal(answer["stdout"].split()[0::2], ["65534", "nobody"], "who")
    equal(len(answer["stdout"].split()), 3, "groups")
    equal(AGENT.run(argv=["id", "-u"], user="65534")["stdout"], "65534\n", "by number")
    response = AGENT.post("/api/execute", {"command": "id", "user": "no-such-user",
                                           "sessionId": "__DISABLE_SESSION__"})
    equal(response.status, 400, "nobody of that name")
    response = AGENT.post("/api/execute", {"command": "id", "user": "nobody", "sessionId": "s"})
    equal(response.status, 400, "in a session")
    equal(AGENT.run("id -u")["stdout"], "0\n", "the next one is root's again")


@test
def a_timeout_is_said():
    answer = AGENT.run(argv=["sleep", "9"], timeoutMs=100)
    equal((answer["exitCode"], answer["timedOut"]), (124, True), "answer")
    equal(sorted(AGENT.run("true", plain=True)),
          ["duration", "exitCode", "stderr", "stdout", "success"], "fields of a plain answer")


with Agent() as AGENT:
    main()
