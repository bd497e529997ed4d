"""The agent in a chroot of its own, as the entrypoint of somebody's container has it.

    with RootAgent() as agent:
        agent.host                      # "127.0.0.1:PORT"
        agent.run("pwd")                # as tests/lib/agent.py

The root is a tmpfs with the host's /usr (read-only), /etc, /dev and an own /proc, /tmp, /workspace,
/home/user and /var/backups. The agent is PID 1 of a pid namespace, so everything in it ends with it.
"""

import os
import shutil
import subprocess

from agent import Agent
from program import free_port, program, wait_until

# $1 the folder, $2 the agent, the rest its arguments.
SCRIPT = r"""
set -e
root=$1 agent=$2
shift 2
mount -t tmpfs -o mode=0755 tmpfs "$root"
cd "$root"
mkdir -p usr etc dev proc sys run tmp root workspace home/user var/backups var/tmp
chmod 1777 tmp var/tmp
mount --rbind -o ro /usr usr
mount --bind -o ro /etc etc
mount --rbind /dev dev
mount -t proc proc proc
for link in bin sbin lib lib32 lib64 libx32; do
    [ ! -L "/$link" ] || cp -a "/$link" "$link"
done
cp "$agent" burrow-agent
exec chroot . /burrow-agent "$@"
"""


def can_make_roots():
    return os.geteuid() == 0


class RootAgent(Agent):
    def __init__(self, *flags, entrypoint=("sleep", "infinity"), environment=None):
        super().__init__(*flags)
        self.host = f"127.0.0.1:{free_port()}"
        self.address = self.host
        self.arguments = ["--listen", self.host, *flags, "--", *entrypoint]
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                            "HOME": "/root", "LANG": "C.UTF-8", **(environment or {})}
        self.root = os.path.join(self.folder, "root")
        os.mkdir(self.root)
        self.expected_status = 143  # the entrypoint's, ended by our SIGTERM

    def start(self):
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "--pid", "--fork",
                 "--kill-child", "sh", "-c", SCRIPT, "sh", self.root, program(self.name),
                 *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)
        wait_until(self.is_ready_or_fail, "start of the agent in its root")

    def stop(self):
        """unshare(1) passes no signals on; its end takes the agent along."""
        self.process.kill()
        self.process.wait()

    def kill(self):
        if self.process and self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
