"""A real `burrow serve` of root's: a launcher, and the daemon as its child, with sandboxes.

    with Service() as service:                     # folders, cgroup and socket of its own; with
                                                   # data=FOLDER that one, which is not removed
        get(service.address, "/ready")
        service.daemon_pid                         # the launcher is service.pid
    # leaving: SIGTERM, exit status 0, and nothing of it is left on the host

    need_launcher()                                # first in a test: skips where this cannot work

The daemon is the user `nobody`, which every system has. Its programs are copies: the build may lie
where that user cannot go.
"""

import os
import shutil
import subprocess

from http_raw import get
from outpost import cgroup, groups_of, network_name, remove_groups
from program import STOP_SECONDS, Program, clean_environment, free_port, program, wait_until
from tap import skip

USER = "nobody"
PROGRAMS = ("burrow", "burrow-launcher", "burrow-admin", "burrow-agent", "burrow-keeper")
POOL_SIZE = "1G"


def need_launcher():
    """Skip where no launcher can work."""
    if os.geteuid() != 0:
        skip("root")
    done = subprocess.run([program("burrow-admin"), "doctor"], env=clean_environment(),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          timeout=STOP_SECONDS)
    if done.returncode != 0:
        missing = [line.strip() for line in done.stdout.decode().splitlines()
                   if line.startswith("  missing")]
        skip(f"what sandboxes need: {'; '.join(missing)}")


def children(pid):
    """Pids of the children of a process with one thread."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def status_of(pid):
    """{field: value} of /proc/PID/status."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


# Run any test on a plain pool, where btrfs would do: BURROW_TEST_POOL=plain.
POOL_KIND = "BURROW_TEST_POOL"


class Service(Program):
    in_use = set()  # numbers of those that are there: two on one host share no names

    def __init__(self, *flags, data=None, environment=None):
        super().__init__("burrow", environment=environment)
        os.chmod(self.folder, 0o755)
        self.number = min(set(range(len(self.in_use) + 1)) - self.in_use)
        self.in_use.add(self.number)
        suffix = f"-{self.number}" if self.number else ""
        self.cgroup, self.network = cgroup() + suffix, network_name() + suffix
        self.data, self.run = data or os.path.join(self.folder, "data"), os.path.join(self.folder, "run")
        self.address = f"127.0.0.1:{free_port()}"
        self.programs = os.path.join(self.folder, "programs")
        os.mkdir(self.programs)
        os.chmod(self.programs, 0o755)  # whatever the umask is
        for name in PROGRAMS:
            shutil.copy(program(name), self.programs)
        self.arguments = ["serve", "--data", self.data, "--run-folder", self.run, "--cgroup",
                          self.cgroup, "--network-name", self.network, "--user", USER, "--pool-size",
                          POOL_SIZE, "--listen", self.address, *flags]
        if os.environ.get(POOL_KIND) == "plain":
            self.make_plain_pool()

    def make_plain_pool(self):
        """A pool that holds something without a filesystem of its own stays a plain one."""
        os.makedirs(self.data, 0o755, exist_ok=True)
        os.makedirs(f"{self.data}/pool/store/disks/kept", 0o700, exist_ok=True)

    def path(self):
        return os.path.join(self.programs, self.name)

    def is_ready(self):
        try:
            return get(self.address, "/ready").status == 200
        except OSError:
            return False

    @property
    def daemon_pid(self):
        """The one child that runs `burrow`."""
        for pid in children(self.pid):
            try:
                if os.readlink(f"/proc/{pid}/exe") == os.path.join(self.programs, "burrow"):
                    return pid
            except OSError:
                continue  # it ended meanwhile
        return None

    def kill(self):
        """Also what outlives a launcher on purpose: sandboxes, their groups, the pool's mount."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.end_sandboxes()
        wait_until(self.unmount, "the pool is unmounted")
        shutil.rmtree(self.folder, ignore_errors=True)
        self.in_use.discard(self.number)

    def groups(self):
        """Our base groups and all beneath, the innermost first."""
        return groups_of(self.cgroup)

    def end_sandboxes(self):
        """Kill whoever is in our groups, and take the groups away."""
        wait_until(lambda: remove_groups(self.cgroup), "the cgroups are gone")

    def unmount(self):
        with open("/proc/self/mounts", encoding="utf-8") as file:
            places = [line.split()[1] for line in file]
        ours = [place for place in places if place.startswith((self.folder + "/", self.data + "/"))]
        for place in reversed(ours):
            subprocess.run(["umount", "--lazy", place], check=False)
        return not ours
