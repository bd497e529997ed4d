#!/usr/bin/python3
# timeout: 600
"""What an image wants of its sandboxes: its user, its command, and templates that name it.

One daemon serves all tests of the API; it has the images `theirs`, `numbers` and `broken`."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import run_burrow  # noqa: E402
from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from image_place import ImagePlace  # noqa: E402
from images import docker_save, file, folder, layer, programs, write_archive  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
PASSWD = b"root:x:0:0::/root:/bin/sh\nmaker:x:1000:1001::/home/maker:/bin/sh\n"
WHO = "id -u; id -g; echo $HOME"

IMAGES = {
    "theirs": {"User": "maker:staff", "Entrypoint": ["/bin/sh", "-c"], "WorkingDir": "/srv",
               "Cmd": ["echo \"started as $(id -u) with $MODE\" > /tmp/started; exec sleep 1000"]},
    "numbers": {"User": "4242:43"},
    "home": {"User": "maker", "Env": ["PATH=/bin", "HOME=/root"]},
    "groups": {"User": "maker"},
    "broken": {"User": "nobody-here"},
}


def content():
    return layer([*programs("sh", "bash", "cat", "id", "env", "sleep", "ls", "touch"), file("etc/passwd", PASSWD),
                  file("etc/group", b"staff:x:50:\nteam:x:60:other,maker\nfriends:x:61:maker\n"), folder("home/maker", uid=1000, gid=1001), folder("srv")])


def import_images(path, call):
    base = content()
    for name, config in IMAGES.items():
        write_archive(path, docker_save([base], {"Env": ["PATH=/bin"], **config}))
        status, out = call("import", name, path)
        equal(status, 0, out)


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def output(name, command, **fields):
    return PLANE.execute(name, command, **fields)["stdout"]


# --- burrow run -----------------------------------------------------------------------------------

@test
def run_without_a_command_runs_that_of_the_image():
    with ImagePlace() as place:
        base = content()
        for name, config in (("both", {"Entrypoint": ["/bin/sh", "-c"], "Cmd": ["echo \"$(id -u) here\""], "User": "maker"}),
                             ("cmd", {"Cmd": ["echo"]}), ("none", {})):
            status, out = place.image("import", name, place.archive(docker_save([base], {"Env": ["PATH=/bin"], **config})))
            equal(status, 0, out)
        run = ["run", "--data", place.data, "--run-folder", place.run_folder, *place.own_names, "--image"]
        equal(place.call(*run, "both"), (0, "1000 here\n"), "both")
        equal(place.call(*run, "both", "--", "id", "-u"), (0, "1000\n"), "words of ours alone")
        status, out = place.call(*run, "none")
        equal((status, out), (2, "burrow: no command is given, and image 'none' names none\n"), "none")
        equal(place.call(*run, "host")[0], 2, "host")
        equal(place.call("run")[0], 2, "no image")


@test
def an_image_without_a_resolver_is_told_of_ours_and_keeps_its_own():
    with ImagePlace() as place:
        for name, files, expected in (("without", [], "nameserver 169.254.1.1\n"),
                                      ("empty", [file("etc/resolv.conf")], "nameserver 169.254.1.1\n"),
                                      ("own", [file("etc/resolv.conf", b"nameserver 192.0.2.1\n")], "nameserver 192.0.2.1\n")):
            status, out = place.image("import", name, place.archive(docker_save([content(), layer(files)], {"Env": ["PATH=/bin"]})))
            equal(status, 0, out)
            equal(place.sandbox(name, "cat /etc/resolv.conf"), (0, expected), name)


# --- the user -------------------------------------------------------------------------------------

@test
def commands_sessions_and_processes_are_the_image_s_user():
    PLANE.create("user", image="theirs")
    equal(output("user", WHO), "1000\n50\n/home/maker\n", "exec")
    equal(output("user", ["id", "-u"]), "1000\n", "argv")
    equal(output("user", WHO, user="root"), "0\n0\n/root\n", "another one who is named")
    equal(output("user", "touch /workspace/mine /srv/not 2>/dev/null; ls /workspace"), "mine\n", "what it may write")
    PLANE.call("POST", of("user", "/sessions"), {"id": "s"})
    equal(output("user", "id -u; cd /tmp", sessionId="s"), "1000", "session")
    equal(output("user", "pwd", sessionId="s"), "/tmp", "session goes on")
    PLANE.call("POST", of("user", "/processes"), {"command": "id -u > /tmp/process"})
    wait_until(lambda: output("user", "cat /tmp/process 2>/dev/null") == "1000\n", "the process has said who it is")
    PLANE.call("DELETE", of("user"))


@test
def what_the_api_makes_is_the_image_s_user_s():
    PLANE.create("files", image="theirs")
    put = of("files", "/files/workspace/made/by/api")
    equal(PLANE.ask("PUT", put, b"one").status, 200, "a file in new folders")
    PLANE.call("POST", of("files", "/files/workspace/other"), {"action": "mkdir"})
    equal(output("files", "cd /workspace; ls -dn made made/by made/by/api other /srv | "
                          "while read mode links user group rest; do echo $user:$group; done"),
          "0:0\n" + 4 * "1000:50\n", "owners")
    equal(output("files", "echo two > /workspace/made/by/api && touch /workspace/made/new && echo done"), "done\n", "changed")
    output("files", "echo mine > /workspace/roots", user="root")
    equal(PLANE.ask("PUT", of("files", "/files/workspace/roots"), b"again").status, 200, "one that is there")
    equal(output("files", "ls -n /workspace/roots").split()[2], "0", "keeps its owner")
    PLANE.call("DELETE", of("files"))


@test
def home_is_the_user_s_unless_somebody_chose_another():
    PLANE.create("home", image="home")
    equal(output("home", WHO), "1000\n1001\n/root\n", "the image did")
    PLANE.call("DELETE", of("home"))
    PLANE.create("groups", image="groups")
    equal(output("groups", WHO), "1000\n1001\n/home/maker\n", "nobody did")
    equal(output("groups", WHO, env={"HOME": "/srv"}), "1000\n1001\n/srv\n", "the request did")
    equal(output("groups", "id -G"), "1001 60 61\n", "groups that name the user")
    PLANE.call("DELETE", of("groups"))


@test
def a_number_needs_no_account():
    PLANE.create("number", image="numbers")
    equal(output("number", WHO), "4242\n43\n/\n", "exec")
    PLANE.call("DELETE", of("number"))


@test
def a_user_that_the_image_lacks_is_told():
    PLANE.create("lost", image="broken")
    for command in ("/exec", "/processes"):
        try:
            PLANE.call("POST", of("lost", command), {"command": "id"})
        except Refused as refusal:
            assert "such user" in json.dumps(refusal.body), refusal
        else:
            raise AssertionError(f"{command} was not refused")
    equal(output("lost", "id -u", user="root"), "0\n", "root is there")
    PLANE.call("DELETE", of("lost"))


# --- its command, and templates -------------------------------------------------------------------

@test
def a_template_names_an_image_and_starts_its_command():
    template = {"image": "theirs", "env": {"MODE": "one", "A": "1"}, "limits": {"memory": "256M"},
                "startup": ["@entrypoint", "echo second > /tmp/second"]}
    PLANE.call("PUT", f"{NATIVE}/templates/ready", template)
    box = PLANE.create("ready", template="ready", env={"A": "2"})
    equal((box["image"], box["limits"]["memory"], box["env"], box["startup"]),
          ("theirs", 256 << 20, {"MODE": "one", "A": "2"}, template["startup"]), "spec")
    wait_until(lambda: output("ready", "cat /tmp/started /tmp/second 2>/dev/null") ==
               "started as 1000 with one\nsecond\n", "both were started")
    listed = PLANE.call("GET", of("ready", "/processes"))["processes"]
    equal([one["status"] for one in listed if one["command"] == "@entrypoint"], ["running"], "as a process")
    output("ready", "echo > /tmp/started", user="root")
    PLANE.call("POST", of("ready", "/stop"))
    PLANE.call("POST", of("ready", "/start"))
    wait_until(lambda: output("ready", "cat /tmp/started") == "started as 1000 with one\n", "and once more after a start")
    PLANE.call("DELETE", of("ready"))
    PLANE.call("DELETE", f"{NATIVE}/templates/ready")


@test
def a_command_is_not_started_by_itself_and_may_be_missing():
    PLANE.create("quiet", image="theirs")
    equal(PLANE.call("GET", of("quiet", "/processes"))["processes"], [], "processes")
    PLANE.call("DELETE", of("quiet"))
    PLANE.create("none", image="numbers")
    try:
        PLANE.call("POST", of("none", "/processes"), {"command": "@entrypoint"})
    except Refused as refusal:
        assert "names no command" in json.dumps(refusal.body), refusal
    else:
        raise AssertionError("it was not refused")
    PLANE.call("DELETE", of("none"))


def prepare():
    import_images(f"{PLANE.folder}/archive.tar", lambda *words: run_burrow(
        "image", "--data", PLANE.data, "--run", PLANE.run, *words))


sys.exit(main_with_plane("images", prepare=prepare))
