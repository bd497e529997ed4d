#!/usr/bin/python3
# timeout: 400
"""`burrow attack` against a Burrow with its own presets: all is held, nothing stays; and where a wall, a
quota or a limit is switched off, it says so and its exit status, too.

    BURROW_FULL=1        every attack there is, instead of some of the shares"""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, ControlPlane, main_with_plane  # noqa: E402
from program import clean_environment, program, wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon, with presets
SECONDS = 1500 if FULL else 300
HELD, BROKEN, FAILED, STOPPED = 0, 1, 3, 130
# Of the shares; each takes seconds.
SOME = ("event_streams", "terminals", "half_heads", "request_flood", "templates", "spinning", "bucket_holes")


def command(plane, *words):
    return [program(), "attack", "--url", f"http://{plane.address}", "--key", plane.key, *words]


def environment():
    return clean_environment({"HOME": "/nonexistent"})


def attack(*words, plane=None):
    """(exit status, the document it printed)."""
    done = subprocess.run(command(plane or PLANE, "--json", *words), env=environment(), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=SECONDS, check=False)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        raise AssertionError(f"status {done.returncode}: {done.stdout!r} {done.stderr!r}") from None


def only(*names):
    return [word for name in names for word in ("--only", name)]


def verdicts(told):
    return {each["name"]: each["verdict"] for each in told["attacks"]}


def leftovers(plane=None):
    plane = plane or PLANE
    users = [user["name"] for user in plane.call("GET", f"{NATIVE}/users")["users"] if user["name"].startswith("burrow-attack-")]
    boxes = [box["name"] for box in plane.call("GET", f"{NATIVE}/sandboxes")["sandboxes"]]
    here = [name for folder in ("/var/tmp", "/usr/local") for name in os.listdir(folder) if name.startswith("burrow-attack-")]
    return users + boxes + here


def all_held(group, fewest, *words):
    status, told = attack(group, *words)
    for each in told["attacks"]:
        print(f"# {each['group']} {each['name']}: {each['verdict']}: {each['told']}")
    bad = [each for each in told["attacks"] if each["verdict"] == "broken"]
    equal(bad, [], "what was not held")
    equal((status, told["leftNothing"]), (HELD, True), "the end")
    assert told["held"] >= fewest, f"{told['held']} attacks"
    equal(leftovers(), [], "what is left")


@test
def nobody_gets_out():
    all_held("escape", 100)


@test
def nobody_finds_what_is_anothers():
    all_held("tenancy", 13)


@test
def nobody_comes_in_who_may_not():
    all_held("door", 40)


@test
def nobody_takes_what_all_share():
    all_held("shares", 50 if FULL else len(SOME), *([] if FULL else only(*SOME)))


@test
def the_list_has_every_group_and_at_least_forty_attacks_on_shares():
    text = subprocess.run([program(), "attack", "--list"], env=environment(), stdout=subprocess.PIPE, check=True).stdout.decode()
    groups, group = {}, None
    for line in text.splitlines():
        if line.startswith("    "):
            groups[group].append(line.split()[0])
        else:
            group = line.partition(":")[0]
            groups[group] = []
    equal(list(groups), ["escape", "tenancy", "shares", "door"], "groups")
    assert len(groups["shares"]) >= 40, groups["shares"]
    every = [name for names in groups.values() for name in names]
    equal(len(every), len(set(every)), "names that are there once")
    assert set(SOME) <= set(groups["shares"]), SOME


@test
def the_table_is_for_people():
    done = subprocess.run(command(PLANE, *only("no_key", "call_x32")), env=environment(), stdout=subprocess.PIPE, check=False)
    equal(done.returncode, HELD, "status")
    lines = done.stdout.decode().splitlines()
    assert any(line.split() == ["escape", "call_x32", "held", "refused", "ENOSYS"] for line in lines), lines
    assert any(line.split() == ["door", "no_key", "held", "status", "401"] for line in lines), lines
    equal(lines[-1], "2 held, 0 broken, 0 not tried; nothing of it is left", "the last line")


# --- it can fail ---------------------------------------------------------------------------------


@test
def a_limit_that_is_not_there_is_told():
    names = ("templates", "webhooks", "event_streams", "request_flood")
    with ControlPlane("--share-limits", "templates=0,webhooks=1000,event_streams=1000", "--quota-requests", "0") as plane:
        status, told = attack(*only(*names), plane=plane)
        equal((status, verdicts(told)), (BROKEN, {name: "broken" for name in names}), "all of them")
        for each in told["attacks"]:
            assert "nothing ended it: no refusal named" in each["told"], each
        equal(leftovers(plane), [], "what is left")


@test
def a_door_that_is_open_is_told():
    with ControlPlane("--sign-up", "open") as plane:
        status, told = attack(*only("sign_up_is_closed", "no_key"), plane=plane)
        equal((status, verdicts(told)), (BROKEN, {"sign_up_is_closed": "broken", "no_key": "held"}), "the open one")
        equal(leftovers(plane), [], "the account that was made")


def attacked_process():
    """A process of the attempt that takes seconds, inside the sandbox."""
    for name in os.listdir("/proc"):
        with suppress(OSError):
            if name.isdigit():
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if file.read() == b"/workspace/attack\0mount_on_host\0":
                        return int(name)
    return None


@test
def a_wall_that_is_taken_away_is_told():
    """The mask over /proc/interrupts is unmounted while another attempt, which takes seconds, goes on."""
    with subprocess.Popen(command(PLANE, "--json", *only("mount_on_host", "see_interrupts")), env=environment(),
                          stdout=subprocess.PIPE) as process:
        pid = wait_until(attacked_process, "a process of the attempt")
        subprocess.run(["nsenter", "-t", str(pid), "-m", "-p", "umount", "/proc/interrupts"], check=True)
        told = json.loads(process.stdout.read())
    equal((process.returncode, verdicts(told)), (BROKEN, {"mount_on_host": "held", "see_interrupts": "broken"}), "the wall")
    equal(leftovers(), [], "what is left")


# --- it leaves nothing ---------------------------------------------------------------------------


def stopped_in_the_middle(number):
    with subprocess.Popen(command(PLANE, "--json", "shares", *only("held_requests", "spinning")), env=environment(),
                          stdout=subprocess.PIPE) as process:
        wait_until(lambda: len(leftovers()) >= 4, "users and sandboxes")
        process.send_signal(number)
        told = json.loads(process.stdout.read())
    equal((process.returncode, told["leftNothing"]), (STOPPED, True), "the end")
    equal(leftovers(), [], "what is left")


@test
def who_interrupts_it_finds_nothing():
    stopped_in_the_middle(signal.SIGINT)
    stopped_in_the_middle(signal.SIGTERM)


@test
def what_a_killed_one_left_can_be_taken_away():
    with subprocess.Popen(command(PLANE, *only("held_requests")), env=environment(), stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: len(leftovers()) >= 4, "users and sandboxes")
        process.kill()
    assert leftovers(), "it was killed, and cannot have"
    wait_until(lambda: subprocess.run(command(PLANE, "--clean"), env=environment(), check=False,
                                      stdout=subprocess.DEVNULL).returncode == 0 and not leftovers(), "all is taken away")


@test
def a_daemon_that_goes_away_is_told():
    with ControlPlane() as plane:
        with subprocess.Popen(command(plane, *only("held_requests")), env=environment(), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            wait_until(lambda: len(leftovers(plane)) >= 4, "users and sandboxes")
            plane.kill_hard("daemon")
            process.communicate()
        assert process.returncode in (BROKEN, FAILED), process.returncode
        wait_until(lambda: not leftovers(plane) or subprocess.run(
            command(plane, "--clean"), env=environment(), check=False, stdout=subprocess.DEVNULL).returncode, "all is gone")


@test
def who_may_not_is_told_before_anything_is_made():
    key = PLANE.user("somebody")
    done = subprocess.run([program(), "attack", "--url", f"http://{PLANE.address}", "--key", key], env=environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    equal((done.returncode, done.stdout), (FAILED, b""), done.stderr)
    assert b"the administrator's key is needed" in done.stderr, done.stderr
    for words, complaint in ((["doors"], b"'doors' is no group of attacks"), (only("call_x33"), b"there is no attack 'call_x33'")):
        done = subprocess.run(command(PLANE, *words), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        equal(done.returncode, 2, done.stderr)
        assert complaint in done.stderr, done.stderr
    equal(leftovers(), [], "what is left")


if __name__ == "__main__":
    sys.exit(main_with_plane("attack"))
