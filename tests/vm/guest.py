"""Burrow in the machine of tests/vm/run, as a user and root there see it.

    burrow("create", "demo")                       # what the verb printed; it must succeed
    api("PATCH", "/sandboxes/demo", {"limits": {"memory": "80M"}})
    start_inside("demo", "sleep 1000")             # in the background; its pid in the machine
    group_of(pid)                                  # its folder below /sys/fs/cgroup
    journal("-g", "ready")
"""

import itertools
import json
import os
import shlex

from machine import Machine
from program import wait_until

MACHINE = Machine.running()
SLOW = MACHINE.slow
KEY = "/var/lib/burrow/daemon/keys/admin"
UNIT = "burrow.service"
_durations = itertools.count(100000 + os.getpid() % 1000 * 1000)  # of sleeps: one number per process


def run(*words, **options):
    """Done(status, out, err) of a verb."""
    return MACHINE.run(shlex.join(["burrow", *words]), **options)


def burrow(*words, **options):
    return MACHINE.good(shlex.join(["burrow", *words]), **options)


def inside(box, script, **options):
    """What a shell in the sandbox printed; it must succeed."""
    return burrow("exec", box, "--", "sh", "-c", script, **options)


def execute(box, command, **fields):
    """The whole answer of a command: stdout, stderr, exitCode, ..."""
    return api("POST", f"/sandboxes/{box}/exec", {"command": command, **fields})


def status_of(box):
    return api("GET", f"/sandboxes/{box}")["status"]


def api(method, path, body=None, seconds=120):
    """The parsed answer of a call that must succeed."""
    status, answer = ask(method, path, body, seconds)
    if not 200 <= status < 300:
        raise AssertionError(f"{method} {path}: {status} {answer}")
    return json.loads(answer) if answer else None


def ask(method, path, body=None, seconds=120):
    """(status, text), whatever they are."""
    command = (f'curl -s -w "\\n%{{http_code}}" -X {method} -H "Authorization: Bearer $(cat {KEY})" '
               f"http://127.0.0.1:8787/burrow/v1{path}")
    if body is not None:
        command += " -H 'Content-Type: application/json' -d " + shlex.quote(json.dumps(body))
    answer, _, status = MACHINE.good(command, seconds=seconds).rpartition("\n")
    return int(status), answer


def is_ready():
    return MACHINE.run("curl -fs -o /dev/null http://127.0.0.1:8787/ready").status == 0


def create(name, **fields):
    """A fresh sandbox of that name: its answer."""
    if ask("GET", f"/sandboxes/{name}")[0] == 200:
        burrow("rm", name)
    return api("POST", "/sandboxes", {"name": name, **fields})


def destroy_all():
    """No test begins with what another has left."""
    wait_until(is_ready, "it serves", 90)
    for name in burrow("ls", "--names").split():
        burrow("rm", name)


def find(words):
    """Pids in the machine of what runs with exactly this command line."""
    return [int(word) for word in MACHINE.run(f"pgrep -f {shlex.quote(f'^{words}$')}").out.split()]


def start_inside(box, count=1):
    """Sleepers in its background: their pids in the machine."""
    words = [f"sleep {next(_durations)}" for _ in range(count)]
    inside(box, "".join(f"{one} >/dev/null 2>&1 & " for one in words))
    return [wait_until(lambda one=one: find(one), one)[0] for one in words]


def is_alive(pid, words="sleep"):
    return MACHINE.run(f"tr '\\0' ' ' </proc/{pid}/cmdline").out.startswith(words)


def group_of(pid):
    return "/sys/fs/cgroup" + MACHINE.good(f"cat /proc/{pid}/cgroup").strip().split(":")[2]


def read(path):
    return MACHINE.good(f"cat {path}").strip()


def number(path):
    return int(read(path))


def journal(*words):
    return MACHINE.good(shlex.join(["journalctl", "--no-pager", "-o", "cat", "-u", "burrow*", *words]))


def main_pid():
    return int(MACHINE.good(f"systemctl show -P MainPID {UNIT}"))


def daemon_pid():
    """The child of the launcher that runs `burrow`."""
    pids = MACHINE.good("pgrep -x -u burrow burrow").split()
    return int(pids[0])
