#!/usr/bin/python3
# timeout: 600
"""`burrow serve` by root: a launcher that is root, and a daemon that is nobody."""

import json
import os
import pwd
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import run_burrow  # noqa: E402
from control_plane import ControlPlane  # noqa: E402
from http_raw import get  # noqa: E402
from launcher import USER, Service, children, need_launcher, status_of  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402


@test
def the_daemon_is_another_user_without_any_right():
    need_launcher()
    with Service() as service:
        launcher, daemon = status_of(service.pid), status_of(service.daemon_pid)
        user = pwd.getpwnam(USER)
        equal(launcher["Uid"].split(), ["0"] * 4, "the launcher's user")
        equal(daemon["Uid"].split(), [str(user.pw_uid)] * 4, "the daemon's user")
        equal(daemon["Gid"].split(), [str(user.pw_gid)] * 4, "the daemon's group")
        equal(daemon["Groups"].split(), [], "further groups")
        for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            equal(int(daemon[field], 16), 0, field)
        equal(daemon["NoNewPrivs"], "1", "no_new_privs")


@test
def it_is_ready_once_the_launcher_has_answered_and_says_so():
    need_launcher()
    with Service() as service:
        equal(json.loads(get(service.address, "/ready").body),
              {"ready": True, "sandboxes": True, "objects": True}, "ready")
        assert "sandboxes are ready" in service.log(), service.log()


@test
def the_daemon_keeps_its_things_apart_and_tells_where_its_key_is():
    need_launcher()
    with Service() as service:
        log = service.log()
        kept = f"{service.data}/daemon/keys/admin"
        assert f"key  in {kept}\n" in log and f"url  http://{service.address}" in log, log
        user = pwd.getpwnam(USER).pw_uid
        equal(os.stat(f"{service.data}/daemon").st_uid, user, "owner of DATA/daemon")
        with open(kept, encoding="ascii") as file:
            assert file.read().strip() not in log, log
        for name in ("pool", "images", "binds"):
            status = os.stat(f"{service.data}/{name}")
            equal((status.st_uid, status.st_mode & 0o777), (0, 0o700), name)


@test
def a_killed_daemon_is_started_again_with_the_same_key():
    need_launcher()
    with Service() as service:
        first = service.daemon_pid
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: service.daemon_pid not in (None, first) and service.is_ready(),
                   "another daemon")
        equal(service.log().count("\nkey  ") + service.log().startswith("key  "), 1, "keys printed")
        assert "starting it again" in service.log(), service.log()


@test
def sigterm_ends_both():
    need_launcher()
    with Service() as service:
        daemon = service.daemon_pid
        service.stop()
        assert not os.path.exists(f"/proc/{daemon}"), "the daemon lives on"
        assert '"stopped"' in service.log(), service.log()


@test
def an_end_takes_the_stock_along_and_leaves_what_is_somebodys():
    need_launcher()
    with ControlPlane("--stock", "2") as plane:
        def sockets():
            return sorted(os.listdir(f"{plane.run}/serve/agents"))
        box = plane.create("mine")["id"]
        plane.execute(box, "echo kept > /workspace/file; (sleep 600 &)")
        wait_until(lambda: len(sockets()) == 3, "two in stock")
        plane.stop()
        equal(sockets(), [f"{box}.sock"], "sandboxes that go on")
        plane.start()
        wait_until(lambda: len(sockets()) == 3, "two in stock again")
        equal(plane.execute(box, "cat /workspace/file; pgrep -c sleep")["stdout"], "kept\n1\n",
              "it went on")


@test
def the_daemon_ends_with_its_launcher():
    need_launcher()
    with Service() as service:
        daemon = service.daemon_pid
        service.signal(signal.SIGKILL)
        service.wait()
        wait_until(lambda: not os.path.exists(f"/proc/{daemon}"), "the daemon is gone")
        # and the next launcher finds the folders as they were
        service.start()
        equal(get(service.address, "/health").status, 200, "health after a crash")


@test
def settings_reach_the_daemon_from_every_source():
    need_launcher()
    with Service("--stock", "0", environment={"BURROW_NO_AUTH": "true"}) as service:
        with open(f"/proc/{service.daemon_pid}/cmdline", "rb") as file:
            words = file.read().decode().split("\0")
        for word in ("--stock=0", "--no-auth=true", f"--data={service.data}/daemon"):
            assert word in words, words
        equal(get(service.address, "/metrics").status, 200, "a route that needs a key otherwise")
        equal(len([pid for pid in children(service.pid) if pid == service.daemon_pid]), 1,
              "daemons")


@test
def the_daemon_has_walls_of_its_own_and_no_variables_of_root():
    need_launcher()
    given = {"ROOTS_SECRET": "x", "LD_LIBRARY_PATH": "/nowhere", "TZ": "UTC", "BURROW_AGENTS": "/nowhere"}
    with Service("--stock", "0", environment=given) as service:
        pid = service.daemon_pid
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = dict(line.split("=", 1) for line in file.read().decode().split("\0") if line)
        owner = os.stat(f"/proc/{pid}/environ").st_uid
        kept = status_of(pid)
    equal({"ROOTS_SECRET", "LD_LIBRARY_PATH", "PATH", "HOME"} & set(variables), set(), "variables of root")
    equal((variables["TZ"], variables["BURROW_AGENTS"]), ("UTC", f"{service.run}/serve/agents"), "variables")
    equal(kept["NoNewPrivs"], "1", "no new privileges")
    if "san" not in os.environ.get("BURROW_BUILD", ""):
        equal((kept["Seccomp"], owner), ("2", 0), "filter, owner of its memory in /proc: it is not dumpable")


@test
def a_user_that_is_missing_or_root_is_refused_with_status_2():
    if os.geteuid() != 0:
        skip("root")
    for user, expected in (("burrow-nobody", "useradd --system --no-create-home --shell "
                                             "/usr/sbin/nologin burrow-nobody"),
                           ("root", "must not run as root")):
        status, output = run_burrow("serve", "--data", "/nonexistent/data", "--user", user,
                                    environment={"BURROW_NO_SANDBOXES": "false"})
        equal(status, 2, f"status with user {user}: {output}")
        assert expected in output and output.count("\n") == 1, output


@test
def a_descriptor_that_is_no_launcher_is_refused():
    for value in ("9", "0", "-1", "x", ""):
        with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
            status, output = run_burrow("serve", "--data", folder, "--listen", "127.0.0.1:0",
                                        environment={"BURROW_LAUNCHER_FD": value})
        equal(status, 2, f"status with '{value}'")
        assert f"'{value}', which is not a launcher's socket" in output, output


main()
