#!/usr/bin/python3
"""Cloning with the real git: from a real git server on loopback and from files, what it answers,
how it fails, and where the password never is.

# timeout: 600
"""

import json
import os
import shutil
import socket
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent, find_processes, processes  # noqa: E402
from git_server import GitServer, git  # noqa: E402
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

SECRET = "s3cret-t0ken-42"
COUNTER = iter(range(1000))


def fresh():
    return os.path.join(FOLDER, "clones", f"clone-{next(COUNTER)}")


def ask(url, agent=None, **fields):
    response = (agent or SHARED).post("/api/git/checkout", {"repoUrl": url, **fields})
    return response.status, json.loads(response.body)


def clone(url, **fields):
    status, body = ask(url, **fields)
    equal((status, body.get("success")), (200, True), f"answer {body}")
    return body


def refuse(url, status, code, **fields):
    got, body = ask(url, **fields)
    equal((got, body["code"], body["httpStatus"]), (status, code, status), f"answer {body}")
    assert SECRET not in json.dumps(body), body
    return body


# --- clones --------------------------------------------------------------------------------------


@test
def a_clone_is_the_image_s_user_s_and_its_folders_too():
    if os.geteuid():
        skip("it takes root to give files away")
    target = os.path.join(fresh(), "deep", "one")
    with Agent(environment={"PATH": os.environ["PATH"], "BURROW_USER": "4242:43"}) as agent:
        status, body = ask(SERVER.url("one"), agent, targetDir=target)
        equal((status, body.get("branch")), (200, "main"), f"answer {body}")
    owners = {(os.lstat(path).st_uid, os.lstat(path).st_gid)
              for folder, names, files in os.walk(os.path.dirname(target))
              for path in [folder, *(os.path.join(folder, name) for name in names + files)]}
    equal(owners, {(4242, 43)}, "owners")
    equal(os.stat(os.path.dirname(os.path.dirname(target))).st_uid, 4242, "folders above")
    equal(os.stat(FOLDER).st_uid, 0, "a folder that was there")


@test
def a_repository_is_cloned_over_http():
    target = fresh()
    body = clone(SERVER.url("one"), targetDir=target)
    equal(set(body), {"success", "repoUrl", "branch", "targetDir", "timestamp"}, "fields")
    equal((body["repoUrl"], body["branch"], body["targetDir"]),
          (SERVER.url("one"), "main", target), "answer")
    with open(os.path.join(target, "file"), encoding="ascii") as file:
        equal(file.read(), "version 3\n", "content")
    equal(os.listdir(os.path.join(target, "sub")), [], "submodules are left alone")


@test
def a_file_url_is_cloned():
    equal(clone("file://" + SERVER.path("one"), targetDir=fresh())["branch"], "main", "branch")


@test
def the_branch_asked_for_is_checked_out():
    target = fresh()
    equal(clone(SERVER.url("one"), targetDir=target, branch="topic")["branch"], "topic", "branch")
    equal(git("branch", "--show-current", folder=target), "topic", "branch there")


@test
def a_tag_is_no_branch_but_is_named():
    equal(clone(SERVER.url("one"), targetDir=fresh(), branch="v1")["branch"], "v1", "branch")


@test
def depth_cuts_the_history():
    target = fresh()
    clone(SERVER.url("one"), targetDir=target, depth=1)
    equal(git("rev-list", "--count", "HEAD", folder=target), "1", "commits")


@test
def a_clone_is_partial_where_the_server_can():
    target = fresh()
    clone(SERVER.url("one"), targetDir=target)
    equal(git("config", "remote.origin.partialclonefilter", folder=target), "blob:none", "filter")
    missing = git("rev-list", "--objects", "--all", "--missing=print", folder=target)
    equal(sum(line.startswith("?") for line in missing.splitlines()), 2, "old blobs left there")


@test
def a_relative_target_begins_where_the_session_is():
    _, body = ask("file:///nonexistent/x", targetDir="burrow-no-such/x",
                  sessionId="__DISABLE_SESSION__")
    target = body["context"]["targetDir"]
    assert target.startswith("/") and target.endswith("/burrow-no-such/x"), target
    assert not os.path.exists(os.path.dirname(target)), "what was made is gone"


@test
def missing_parents_are_made():
    target = os.path.join(fresh(), "a", "b")
    clone(SERVER.url("one"), targetDir=target)
    assert os.path.exists(os.path.join(target, "file"))


@test
def an_empty_folder_will_do():
    target = fresh()
    os.makedirs(target)
    clone(SERVER.url("one"), targetDir=target)


# --- credentials ---------------------------------------------------------------------------------


def with_password(function):
    SERVER.password = ("me", SECRET)
    try:
        return function()
    finally:
        SERVER.password = None


def files_with(folder, secret):
    found = []
    for path, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(path, name), "rb") as file:
                if secret.encode() in file.read():
                    found.append(os.path.join(path, name))
    return found


@test
def a_password_opens_the_door_and_is_nowhere_afterwards():
    target = fresh()
    body = with_password(lambda: clone(SERVER.url("one", f"me:{SECRET}@"), targetDir=target))
    equal(body["repoUrl"], SERVER.url("one"), "URL in the answer")
    equal(git("config", "remote.origin.url", folder=target), SERVER.url("one"), "URL kept")
    equal(files_with(target, SECRET), [], "files with the password")
    assert SECRET not in SHARED.log(), "log"


@test
def a_password_may_be_escaped():
    SERVER.password = ("me@home", "p%40 ss:w/rd")
    try:
        clone(SERVER.url("one", "me%40home:p%2540%20ss%3aw%2Frd@"), targetDir=fresh())
    finally:
        SERVER.password = None


@test
def a_token_as_the_user_is_enough():
    SERVER.password = (SECRET, "")
    try:
        clone(SERVER.url("one", SECRET + "@"), targetDir=fresh())
    finally:
        SERVER.password = None


@test
def a_helper_of_the_user_is_not_told_the_password():
    home = os.path.join(FOLDER, "home")
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(home, ".gitconfig"), "w", encoding="ascii") as file:
        file.write("[credential]\n\thelper = store\n")
    with Agent(environment={"HOME": home}) as agent:
        status, body = with_password(lambda: ask(SERVER.url("one", f"me:{SECRET}@"), agent,
                                                 targetDir=fresh()))
        equal(status, 200, f"answer {body}")
    equal(files_with(home, SECRET), [], "files with the password")


@test
def a_redirect_does_not_get_the_password():
    with GitServer(SERVER.folder) as other:
        SERVER.redirect_to = f"http://127.0.0.1:{other.port}"
        other.password = ("me", SECRET)
        try:
            refuse(SERVER.url("one", f"me:{SECRET}@"), 401, "GIT_AUTH_FAILED", targetDir=fresh())
        finally:
            SERVER.redirect_to = None
        equal([entry[2] for entry in other.requests if entry[2]], [], "credentials sent on")


@test
def no_command_line_ever_holds_the_password():
    SERVER.stalls = True
    SERVER.stalled.clear()
    results = []
    url = SERVER.url("one", f"me:{SECRET}@")
    thread = threading.Thread(target=lambda: results.append(ask(url, targetDir=fresh(),
                                                                timeoutMs=4000)))
    try:
        thread.start()
        assert SERVER.stalled.wait(30), "git came"
        assert find_processes(f"127.0.0.1:{SERVER.port}/one.git"), "git runs"
        equal(find_processes(SECRET), [], "processes with the password in their arguments")
    finally:
        thread.join(60)
        SERVER.stalls = False
    equal(results[0][0], 502, f"answer {results}")
    assert SECRET not in json.dumps(results)


# --- errors --------------------------------------------------------------------------------------


@test
def a_wrong_or_missing_password_is_an_authentication_error():
    def both():
        body = refuse(SERVER.url("one", f"me:{SECRET}x@"), 401, "GIT_AUTH_FAILED",
                      targetDir=fresh())
        equal(body["context"]["exitCode"], 128, "exit code")
        equal(body["context"]["repository"], SERVER.url("one"), "repository")
        assert body["suggestion"], body
        refuse(SERVER.url("one"), 401, "GIT_AUTH_FAILED", targetDir=fresh())
    with_password(both)


@test
def a_missing_repository_is_not_found():
    for url in (SERVER.url("none"), "file://" + SERVER.path("none")):
        target = fresh()
        body = refuse(url, 404, "GIT_REPOSITORY_NOT_FOUND", targetDir=target)
        equal(body["operation"], "git.checkout", "operation")
        equal((body["context"]["repository"], body["context"]["targetDir"]), (url, target),
              "context")
        assert body["context"]["stderr"], body
        assert not os.path.exists(target), "nothing is left"


@test
def a_missing_branch_is_not_found():
    target = os.path.join(fresh(), "a", "b")
    body = refuse(SERVER.url("one"), 404, "GIT_BRANCH_NOT_FOUND", branch="none", targetDir=target)
    equal(body["context"]["branch"], "none", "branch")
    assert not os.path.exists(os.path.dirname(os.path.dirname(target))), "nothing is left"


@test
def a_full_target_stays_as_it_is():
    target = fresh()
    os.makedirs(target)
    with open(os.path.join(target, "mine"), "w", encoding="ascii") as file:
        file.write("mine")
    refuse(SERVER.url("one"), 500, "GIT_CLONE_FAILED", targetDir=target)
    equal(os.listdir(target), ["mine"], "content")
    refuse(SERVER.url("one"), 500, "GIT_CLONE_FAILED", targetDir=os.path.join(target, "mine"))
    refuse(SERVER.url("one"), 500, "GIT_CLONE_FAILED", targetDir=os.path.join(target, "mine/x"))


@test
def a_server_that_is_not_there_is_a_network_error():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        refuse(f"http://127.0.0.1:{unused.getsockname()[1]}/x.git", 502, "GIT_NETWORK_ERROR",
               targetDir=fresh())


@test
def a_server_that_stalls_runs_into_the_timeout():
    SERVER.stalls = True
    target = fresh()
    try:
        body = refuse(SERVER.url("one"), 502, "GIT_NETWORK_ERROR", targetDir=target, timeoutMs=400)
        equal(body["context"]["exitCode"], 124, "exit code")
    finally:
        SERVER.stalls = False
    assert not os.path.exists(target), "nothing is left"
    wait_until(lambda: not find_processes(target), "end of git")


@test
def a_client_that_leaves_cancels_the_clone():
    SERVER.stalls = True
    SERVER.stalled.clear()
    target = os.path.join(fresh(), "deep")
    document = json.dumps({"repoUrl": SERVER.url("one"), "targetDir": target}).encode()
    try:
        with connect(SHARED.address) as connection:
            connection.send(b"POST /api/git/checkout HTTP/1.1\r\nHost: a\r\nContent-Length: %d"
                            b"\r\n\r\n%s" % (len(document), document))
            assert SERVER.stalled.wait(30), "git came"
        wait_until(lambda: not find_processes(target), "end of git")
        wait_until(lambda: not os.path.exists(os.path.dirname(target)), "end of its folder")
    finally:
        SERVER.stalls = False
    equal(SHARED.get("/api/ping").status, 200, "the agent")


@test
def a_killed_clone_leaves_nothing():
    SERVER.stalls = True
    SERVER.stalled.clear()
    target = fresh()
    results = []
    thread = threading.Thread(target=lambda: results.append(ask(SERVER.url("one"),
                                                                targetDir=target)))
    try:
        thread.start()
        assert SERVER.stalled.wait(30), "git came"
        for pid in find_processes(target):
            if processes().get(pid, (0, ""))[1] == "git":
                os.kill(pid, 9)
        thread.join(60)
    finally:
        SERVER.stalls = False
    equal((results[0][0], results[0][1]["code"], results[0][1]["context"]["exitCode"]),
          (500, "GIT_CLONE_FAILED", 137), f"answer {results}")
    assert not os.path.exists(target), "nothing is left"


@test
def urls_that_are_none_are_refused():
    for url in ("", "not-a-url", "-x", "--upload-pack=x", "ext::sh -c id", "git://127.0.0.1/x",
                "/etc", f"ssh://a:{SECRET}@127.0.0.1/x", f"http://127.0.0.1/x?t={SECRET}"):
        body = refuse(url, 400, "INVALID_GIT_URL", targetDir=fresh())
        equal(body["context"]["validationErrors"][0]["field"], "repoUrl", "field")


@test
def wrong_fields_are_refused():
    for fields in ({"branch": "-x"}, {"branch": ""}, {"branch": 1}, {"depth": 0}, {"depth": "x"},
                   {"targetDir": 7}, {"timeoutMs": 0}, {"targetDir": "x" * 5000}):
        body = refuse(SERVER.url("one"), 400, "VALIDATION_FAILED", **fields)
        equal(body["context"]["validationErrors"][0]["field"], list(fields)[0], "field")
    status, body = SHARED.post("/api/git/checkout", {}), None
    equal(status.status, 400, f"no URL {body}")


@test
def an_image_without_git_says_so():
    with Agent(environment={"PATH": "/nonexistent"}) as agent:
        target = fresh()
        status, body = ask(SERVER.url("one"), agent, targetDir=target)
        equal((status, body["code"], body["context"]["exitCode"]),
              (500, "GIT_OPERATION_FAILED", 127), f"answer {body}")
        assert "git is not installed" in body["message"], body
        assert not os.path.exists(target), "nothing is left"


@test
def the_agent_has_nothing_left_open():
    SHARED.wait_until_idle()
    wait_until(lambda: SHARED.open_files() <= FILES, "descriptors closed")


FOLDER = tempfile.mkdtemp(prefix="burrow-test-git-")
try:
    with GitServer(FOLDER) as SERVER, Agent(environment={"HOME": "/nonexistent"}) as SHARED:
        SERVER.add("one")
        ask("file:///nonexistent", targetDir=fresh())  # from now on there is a session
        FILES = SHARED.open_files() + 2
        main()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
