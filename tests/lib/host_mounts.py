"""The mounts of the host, as users have them, and those that only launchers have.

    share()                  # from here on this program's mounts are its own, and shared
    before = table()         # /proc/self/mountinfo
    pool_store("/tmp/data")  # the disk pool's folder, seen through a launcher that has it mounted
    delete_disk("/tmp/data", f"disks/{id}")

systemd makes every mount of a host shared: what is mounted beneath one of them, in whichever
namespace a copy of it came to, appears on the host too. A machine without systemd hides that, so
every test program (tap.py) runs in a namespace where it is so.
"""

import ctypes
import difflib
import os
import subprocess

CLONE_NEWNS = 0x00020000
MS_REC, MS_PRIVATE, MS_SHARED = 0x4000, 1 << 18, 1 << 20
LIBC = ctypes.CDLL(None, use_errno=True)


def share():
    """Without root: nothing happens. False then."""
    if os.geteuid() != 0:
        return False
    _must(LIBC.unshare(CLONE_NEWNS))
    # First out of the machine's own groups, then into new ones.
    for kind in (MS_PRIVATE, MS_SHARED):
        _must(LIBC.mount(None, b"/", None, ctypes.c_ulong(MS_REC | kind), None))
    return True


def _must(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), f"shared mounts: {os.strerror(ctypes.get_errno())}")


def table(pid="self"):
    """The mounts that a process sees, as one text."""
    with open(f"/proc/{pid}/mountinfo", encoding="utf-8") as file:
        return file.read()


def _has_place(line):
    """Whether a mount's folder is there still. Who removes one, somewhere else on the machine, takes
    along what other namespaces have mounted on it."""
    return os.path.lexists(line.split()[4].encode().decode("unicode_escape"))


def changes_since(before):
    """What we made different from an earlier table, as a diff; "" when nothing is."""
    now = table().splitlines()
    kept = [line for line in before.splitlines() if line in now or _has_place(line)]
    return "\n".join(difflib.unified_diff(kept, now, lineterm="", n=0))


def _started(pid):
    """When a process was started, in the kernel's ticks."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        return int(file.read().rpartition(")")[2].split()[19])


def _who_has(place):
    """The oldest process that has something mounted there, or None. Others may be sandboxes and
    keepers on their way, which leave these mounts in a moment."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if f" {place} " in table(pid):
                found.append((_started(pid), pid))
        except OSError:
            continue  # it ended meanwhile
    return min(found)[1] if found else None


def pool_store(data):
    """The store of the disk pool in `data`: a path that leads there from outside of the launcher
    that has it mounted, or the folder itself while nobody has."""
    place = f"{data}/pool/store"
    pid = _who_has(place)
    return f"/proc/{pid}/root{place}" if pid else place


def delete_disk(data, disk):
    """Take "disks/ID" or "snapshots/ID" away behind everybody's back, as a broken machine does."""
    place = f"{data}/pool/store"
    inner = "/d" if disk.startswith("snapshots/") else ""  # a folder around a subvolume
    subprocess.run(["nsenter", "--mount", "--target", _who_has(place), "btrfs", "subvolume", "delete",
                    f"{place}/{disk}{inner}"], check=True, stdout=subprocess.DEVNULL)
    if inner:
        os.rmdir(f"{pool_store(data)}/{disk}")
