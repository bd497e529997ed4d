"""Where temporary folders of tests are: in memory, when there is enough of it.

Starting a service makes a disk pool, and databases wait for the disk at every step. On a busy disk that
is most of the time that tests take; what it is to lose power is tried by tests/faults on a disk of its
own. TMPDIR, when it is set, says it.
"""

import os
import tempfile

MEMORY_FOLDER = "/dev/shm"
# Since then a tmpfs has extended attributes of users, and can be mounted with other ids.
LINUX_MIN = (6, 6)
AVAILABLE_MIN_KB = 6 << 20


def _available_kb():
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))


def _can_be_in_memory():
    linux = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    return (linux >= LINUX_MIN and os.path.ismount(MEMORY_FOLDER) and
            not os.statvfs(MEMORY_FOLDER).f_flag & os.ST_NOEXEC and
            _available_kb() >= AVAILABLE_MIN_KB)


def choose_folder():
    """For this program and those that it starts; before it makes its first one."""
    if "TMPDIR" not in os.environ and _can_be_in_memory():
        os.environ["TMPDIR"] = tempfile.tempdir = MEMORY_FOLDER
