#!/usr/bin/python3
"""`burrow doctor`: what it says of this machine, its exit status, and that it leaves nothing."""

import os
import re
import resource
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import run_as_nobody, run_burrow  # noqa: E402
from launcher import Service, need_launcher  # noqa: E402
from outpost import cgroup  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

AREAS = ["rights", "kernel", "mounts", "cgroups", "disk", "ids", "limits", "network", "programs", "walls"]


def need_root():
    if os.geteuid() != 0:
        skip("root")


def doctor(*flags, environment=None):
    """(exit status, {name: (state, detail)}, text) of a doctor with a data folder of its own."""
    with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
        data = os.path.join(folder, "data")
        status, text = run_burrow("doctor", "--data", data, "--run", os.path.join(folder, "run"),
                                  "--cgroup", cgroup(), *flags, environment=environment)
        equal(os.listdir(folder), [], "what it made")
    rows = re.findall(r"^  (on|off|warning|missing) +(.*?)(?:: (.*))?$", text, re.MULTILINE)
    return status, {name: (state, detail) for state, name, detail in rows}, text


def leftovers():
    """What the doctor could leave behind: groups of its name, and mounts where it tries them."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        places = [line.split()[1] for line in file]
    groups = [root for root, _, _ in os.walk("/sys/fs/cgroup") if f"{cgroup()}-doctor-" in root]
    return [place for place in places if re.match("/tmp(/root|/lower)?$", place)] + groups


@test
def every_area_and_wall_is_said_and_summed_up():
    need_root()
    status, rows, text = doctor()
    equal([line for line in text.splitlines() if re.fullmatch("[a-z]+", line)], AREAS, "areas")
    missing = [name for name, (state, _) in rows.items() if state == "missing"]
    equal(status, 1 if missing else 0, f"status with {missing} missing")
    assert text.rstrip().endswith("cannot run here" if missing else "can run here"), text[-200:]
    for name in ("root", "user namespaces", "memory", "freezer", "pool", "ranges", "nftables",
                 "burrow-agent", "burrow-keeper", "seccomp.io_uring", "hidden_proc"):
        assert name in rows, f"no row {name} in {sorted(rows)}"
    equal(rows["seccomp"][0], "on", "the filter")
    equal((rows["shared mounts"][0], rows["private copies of mounts"][0]), ("on", "on"), "mounts")


@test
def what_is_wrong_comes_with_what_to_do():
    need_root()
    _, rows, text = doctor("--user", "burrow-nobody")
    equal(rows["user of the daemon"][0], "warning", "a user that is not there")
    assert "-> useradd --system --no-create-home --shell /usr/sbin/nologin burrow-nobody" in text


@test
def a_missing_feature_is_named_and_ends_with_status_1():
    need_root()
    status, rows, text = doctor(environment={"BURROW_PRETEND_MISSING": "mount_setattr,openat2"})
    equal(status, 1, "status")
    equal(rows["mount_setattr"][0], "missing", "one that is needed")
    equal(rows["openat2"][0], "off", "one with a fallback")
    assert "sandboxes cannot run here" in text, text[-200:]


@test
def a_program_that_is_missing_is_found_out():
    need_root()
    with tempfile.TemporaryDirectory(prefix="burrow-test-") as empty:
        status, rows, _ = doctor("--programs", empty)
    equal((status, rows["burrow-agent"][0]), (1, "missing"), "without an agent")


@test
def the_pool_and_the_files_are_those_of_a_launcher_that_runs():
    need_launcher()
    with Service() as service:
        words = ("doctor", "--data", service.data, "--run", service.run)
        _, text = run_burrow(*words)
        assert re.search(r"on +pool: .*: btrfs in a file, in use", text), text
        assert re.search(r"on +space: .* free of .*, .* free in the filesystem beneath", text), text
        resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (9000, 9001))
        assert re.search(r" nofile: .*9001", run_burrow(*words)[1]), "descriptors are not the launcher's"
        service.stop()
        _, text = run_burrow(*words)
        assert re.search(r"on +pool: .*: btrfs in a file, mounted when a launcher starts", text), text


@test
def nothing_is_left_behind():
    need_root()
    before = leftovers()
    doctor()
    equal(leftovers(), before, "mounts and groups")


@test
def without_root_it_says_so_with_status_2():
    need_root()  # to become somebody else
    equal(run_as_nobody("burrow-admin", "doctor"),
          (2, "burrow doctor: needs root: run it with sudo\n"), "answer")


@test
def wrong_words_are_refused_with_the_usage():
    for flags in (["--nonsense"], ["word"], ["--sandboxes", "0"], ["--sandboxes", "many"]):
        status, text = run_burrow("doctor", *flags)
        equal(status, 2, f"status of {flags}")
        assert "usage: burrow doctor" in text, text
    status, text = run_burrow("doctor", "--help")
    equal(status, 0, "status of --help")
    assert text.startswith("usage: burrow doctor"), text


main()
