"""A place of its own for a test that fills a machine with sandboxes and kills launchers.

    from outpost import enter
    enter()                       # first thing of the program, before any test

From then on the program is in pid, mount and network namespaces of its own, with a folder and a
name for its cgroups. Whatever it starts ends with it, also when it is killed: the kernel ends the
processes and mounts, and a watchman outside removes folder and groups. Orphans, which sandboxes
become when their launcher is killed, are reaped as on any machine.
"""

import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

from scratch import choose_folder

VARIABLE = "BURROW_OUTPOST"
CLEAN_SECONDS = 30.0
NAMESPACES = ["--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def folder():
    """Our folder, which only root can change."""
    return os.environ[VARIABLE]


def cgroup():
    """A name for the base group of this program: no other has it, in an outpost or out of one."""
    # In an outpost pids are small and many tests have the same; its folder is its own.
    return os.path.basename(os.environ.get(VARIABLE, f"burrow-test-{os.getpid()}"))


def network_name():
    """Likewise for a network link and its tables; links have short names."""
    return f"bt-{os.getpid()}"


def enter():
    """Without root: nothing happens, and the tests skip themselves."""
    if os.geteuid() != 0:
        return
    if VARIABLE in os.environ:
        _start_loopback()
        _be_first_process()
        return
    choose_folder()
    path = tempfile.mkdtemp(prefix="burrow-test-")
    os.chmod(path, 0o755)
    os.environ[VARIABLE] = path
    _start_watchman(path)
    os.execvp("unshare", ["unshare", *NAMESPACES, sys.executable, *sys.argv])


def _start_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(any_socket, SIOCGIFFLAGS, name))[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def _be_first_process():
    """Go on as a child; the parent reaps whoever loses his parent."""
    child = os.fork()
    if child == 0:
        return
    status = 1
    try:
        while True:
            pid, status = os.waitpid(-1, 0)
            if pid == child:
                break
    except KeyboardInterrupt:
        os.kill(child, signal.SIGKILL)
    os._exit(os.waitstatus_to_exitcode(status) & 0xff)


# --- what is left ------------------------------------------------------------------------------


def groups_of(name):
    """Directories of all groups of that name, in every hierarchy, the innermost first."""
    found = []
    for parent, folders, _ in os.walk("/sys/fs/cgroup"):
        if name in folders:
            top = os.path.join(parent, name)
            found += [path for path, _, _ in os.walk(top)]
            folders.remove(name)
    return sorted(found, key=len, reverse=True)


def remove_groups(name):
    """True when none is left. Processes in them are on their way out, or are killed."""
    for path in groups_of(name):
        try:
            with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
            os.rmdir(path)
        except OSError:
            continue
    return not groups_of(name)


def unmount(path):
    """Everything beneath that folder, in this mount namespace."""
    with open("/proc/self/mounts", encoding="utf-8") as file:
        places = [line.split()[1] for line in file]
    for place in reversed([place for place in places if place.startswith(path + "/")]):
        subprocess.run(["umount", "--lazy", place], check=False)


def _start_watchman(path):
    """In a session and with an environment of its own, so that whoever ends the test's processes
    does not end this one. The pipe is open as long as the test lives."""
    reading, writing = os.pipe()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BURROW_")}
    # pylint: disable=consider-using-with
    subprocess.Popen([sys.executable, os.path.abspath(__file__), path], stdin=reading,
                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=kept, cwd="/",
                     start_new_session=True)
    os.close(reading)
    os.set_inheritable(writing, True)


def _watch(path):
    sys.stdin.buffer.read()
    deadline = time.monotonic() + CLEAN_SECONDS
    while not remove_groups(os.path.basename(path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    shutil.rmtree(path, ignore_errors=True)


if __name__ == "__main__":
    _watch(sys.argv[1])
