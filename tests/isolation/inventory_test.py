#!/usr/bin/python3
"""What a program finds in a sandbox, against the committed tables in inventory/.

A change there is a decision: `tests/isolation/inventory_test.py --write` writes the tables anew, and
the difference goes through review. Lines that begin with `?` are things that some kernels or hosts
have and others lack; everything else must be there, and nothing that has no line may be.

# timeout: 600
"""

import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from tap import equal, main, test
from wall_lab import PLACE, WallLab

TABLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "inventory")

CAPABILITIES = r"""
grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/1/status | sed 's/^/init /'
grep -E '^(Cap|NoNewPrivs|Seccomp)' /proc/self/status | sed 's/^/command /'
setpriv --reuid 1000 --regid 1000 --clear-groups grep -E '^(Cap|NoNewPrivs)' /proc/self/status |
    sed 's/^/user /'
"""

# A hidden file is the null device, a hidden folder an empty read-only one.
PROC = r"""
cd /proc
for name in $(ls | grep -v '^[0-9]'); do
    if [ -L $name ]; then kind=link
    elif [ -c $name ]; then kind=hidden
    elif [ -d $name ] && [ -z "$(ls $name 2>&1)" ]; then kind=hidden
    elif [ -d $name ]; then kind=folder
    elif head -c 1 $name >/dev/null 2>&1; then kind=readable
    else kind=closed
    fi
    echo "$name $kind"
done
"""

PROC_WRITABLE = r"""
find /proc -path '/proc/[0-9]*' -prune -o -path /proc/self -prune -o -path /proc/thread-self -prune \
    -o -type f -writable -exec sh -c 'for f; do [ -f "$f" ] && echo "$f"; done; true' sh {} + \
    2>/dev/null
find /proc -path '/proc/[0-9]*' -prune -o -type d -writable -print 2>/dev/null
echo end
"""

PROC_OF_INIT = r"""
cd /proc/1
for name in *; do
    if [ -L $name ]; then readlink $name >/dev/null 2>&1 && echo "$name readable"
    elif [ -d $name ]; then ls $name >/dev/null 2>&1 && echo "$name/ readable"
    else head -c 1 $name >/dev/null 2>&1 && echo "$name readable"
    fi
    [ -f $name ] && (exec 3<>$name) 2>/dev/null && echo "$name writable"
done
true
"""

SYS = "find /sys"

DEV = r"""
find /dev -path '/dev/pts/[0-9]*' -prune -o -printf '%p %M %U:%G %l ' -exec stat -c '%t:%T' {} \;
"""

# Place, type, what the mount and (where that is ours) the filesystem say.
MOUNTS = r"""
while read -r _ _ _ _ place options rest; do
    set -- ${rest#*- }
    case $1 in
        tmpfs|proc|devpts) echo "$place $1 $options $3" ;;
        overlay) echo "$place overlay $options" ;;
        devtmpfs) echo "$place device $options" ;;
        *) echo "$place image $options" ;;
    esac
done </proc/self/mountinfo
"""

DESCRIPTORS = r"find /proc/$PID/fd -mindepth 1 -printf '%f %l\n'"

ENVIRONMENT = "env"

LIMITS = r"""
sed 's/   */\t/g' /proc/self/limits
cd /proc/sys/user && for name in *; do echo "$name $(cat $name)"; done
"""

TOP = r"""find / -maxdepth 1 -printf '%p %M %U:%G %l\n'"""


def same_everywhere(text):
    """Without what is chance: ids of sandboxes, user ids and inodes."""
    text = re.sub(r"\b(uid|gid)=\d+", r"\1=N", text)
    text = re.sub(r"\[\d+\]", "[N]", text)
    text = re.sub(r"(size|nr_inodes)=\d+k?", r"\1=N", text)
    text = re.sub(r"/sys/fs/cgroup/\S*/work/(cgroup.procs|tasks)", "the way into the group `work`", text)
    text = re.sub(r"/sys/fs/cgroup/\S*/work/memory.(oom_control|events)",
                  "the count of victims in the group `work`", text)
    # What the host's own hard limits are, where it may not raise them.
    text = re.sub(r"(Max open files\t\d+)\t\d+", r"\1\tN", text)
    text = re.sub(r"(Max processes)(\t(\d+|unlimited)){2}", r"\1\tN\tN", text)
    # How wide inode numbers are is how the kernel was built, and only some say it.
    text = text.replace(",inode64", "")
    return sorted({line.rstrip() for line in text.splitlines() if line.strip()})


def path_of(name):
    return os.path.join(TABLES, name + ".txt")


def read_table(name):
    with open(path_of(name), encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file if line.strip() and line[0] != "#"]


def write_table(name, found):
    """Keeps comments and optional lines."""
    kept = []
    if os.path.exists(path_of(name)):
        with open(path_of(name), encoding="utf-8") as file:
            kept = [line.rstrip("\n") for line in file if line[:1] in ("#", "?")]
    optional = {line[1:] for line in kept if line[0] == "?"}
    lines = kept + [line for line in found if line not in optional]
    with open(path_of(name), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def compare(name, text):
    found = same_everywhere(text)
    if WRITE:
        write_table(name, found)
        return
    table = read_table(name)
    optional = {line[1:] for line in table if line[0] == "?"}
    needed = {line for line in table if line[0] != "?"}
    missing = sorted(needed - set(found))
    unexpected = sorted(set(found) - needed - optional)
    equal((missing, unexpected), ([], []), f"{name}: (missing, unexpected)")


def inventory(name, script, without=()):
    with WallLab() as lab:
        answer = lab.start(list(without)).run(script)
    equal(answer["exitCode"], 0, answer["stderr"])
    compare(name, answer["stdout"])


@test
def capabilities_are_those_of_the_table():
    inventory("capabilities", CAPABILITIES)


@test
def proc_shows_what_the_table_says():
    inventory("proc", PROC)


@test
def nothing_in_proc_can_be_written_but_ones_own():
    inventory("proc_writable", PROC_WRITABLE)


@test
def of_pid_1_only_names_and_numbers_can_be_read():
    inventory("proc_of_init", PROC_OF_INIT)


@test
def sys_is_empty():
    inventory("sys", SYS)


@test
def dev_has_the_devices_of_the_table():
    inventory("dev", DEV)


@test
def mounts_are_those_of_the_table():
    inventory("mounts", MOUNTS)


@test
def the_root_has_the_folders_of_the_table():
    inventory("root", TOP)


@test
def pid_1_has_the_descriptors_of_the_table():
    # They cannot be listed in a whole sandbox; leaving these out changes nothing about them.
    # How many there are of each kind changes with the host's groups and with what the agent does.
    inventory("descriptors_of_init", f"PID=1; {DESCRIPTORS} | sed 's/^[0-9]* //'",
              without=["hidden_agent", "capability.sys_ptrace"])


@test
def a_command_has_the_descriptors_of_the_table():
    inventory("descriptors", "sleep 9 & PID=$!; sleep 0.3; " + DESCRIPTORS + "; kill $PID")


@test
def a_command_has_the_environment_of_the_table():
    inventory("environment", ENVIRONMENT)


@test
def limits_and_shares_are_those_of_the_table():
    inventory("limits", LIMITS)


@test
def system_calls_of_every_interface_are_answered_as_in_the_table():
    with WallLab() as lab:
        answer = lab.run([], f"{PLACE}/call_inventory")
    equal((answer["exitCode"], answer["stdout"]),
          (0, "refused as in the table: x86-64 305, x32 601, i386 601\n"))


WRITE = sys.argv[1:] == ["--write"]
if WRITE:
    del sys.argv[1:]
main()
