"""A Debian machine in QEMU, driven over ssh.

    with Machine("12") as machine:                  # a fresh disk, booted; off and gone afterwards
        machine.good("uname -r")                    # what the command printed; it must succeed
        machine.run("false").status
        machine.send("/root/x", b"bytes")
        machine.reboot()

    machine = Machine.running()                     # in a test: the one that tests/vm/run started

The disk of tests/vm/image is never written to: a run has an overlay of its own. `machine.slow` says how
many times slower than this host it is; limits of time are multiplied by it (BURROW_SLOW).
"""

import collections
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VARIABLE = "BURROW_VM"  # the folder of the machine that runs
BOOT_SECONDS, COMMAND_SECONDS, STOP_SECONDS = 600, 120, 180
TRIAL_SECONDS = 20
PR_SET_PDEATHSIG = 1
# A small job of the kind that tests are: an interpreter, and bytes.
SPEED = """
import hashlib, time
def job():
    started = time.perf_counter()
    total = sum(i * i % 7 for i in range(300000))
    hashlib.sha256(bytes(4000000)).digest()
    return time.perf_counter() - started
print(min(job() for _ in range(3)))
"""
Done = collections.namedtuple("Done", "status out err")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def outside_of_tests():
    """An environment by which the harness does not take a process for one of the test's."""
    return {name: value for name, value in os.environ.items() if name != "BURROW_TEST_MARK"}


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Machine:
    def __init__(self, suite, keep=False):
        self.suite, self.keep = suite, keep
        self.image = os.path.join(ROOT, "build-vm", suite)
        # Short, because the path of a unix socket is.
        self.folder = tempfile.mkdtemp(prefix="burrow-vm-")
        self.console = os.path.join(self.image, "console.log")
        self.port, self.slow, self.qemu, self.accel = free_port(), 1.0, None, "tcg"

    @classmethod
    def running(cls):
        """The machine that tests/vm/run has started."""
        self = cls.__new__(cls)
        self.qemu = None
        with open(os.path.join(os.environ[VARIABLE], "state"), encoding="utf-8") as file:
            self.__dict__.update(json.load(file))
        return self

    def save(self):
        """For running()."""
        state = {name: value for name, value in self.__dict__.items() if name != "qemu"}
        with open(os.path.join(self.folder, "state"), "w", encoding="utf-8") as file:
            json.dump(state, file)

    def __enter__(self):
        try:
            self.accel = choose_accel(self)
            self.start()
            self.wait_until_up()
            self.slow = max(1.0, self.speed() / speed_here())
            self.save()
        except BaseException:
            self.stop(hard=True)
            raise
        return self

    def __exit__(self, kind, *_):
        if self.keep:
            print(f"The machine goes on. {self.how_to_enter()}\nTo end it: kill {self.qemu.pid}; "
                  f"rm -r {self.folder}", flush=True)
        else:
            self.stop(hard=kind is not None)

    # --- the machine ------------------------------------------------------------------------------

    def start(self):
        disk = os.path.join(self.folder, "disk")
        subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b",
                        os.path.join(self.image, "disk"), disk], check=True)
        with open(f"{self.folder}/qemu.log", "wb") as log:
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.qemu = subprocess.Popen(
                self.command(disk, self.accel, self.console), stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True, preexec_fn=None if self.keep else die_with_parent)

    def command(self, disk, accel, console, words="quiet"):
        return ["qemu-system-x86_64", "-machine", "q35", "-cpu", "max", "-smp", "2", "-m", "4096",
                "-accel", "tcg,thread=multi" if accel == "tcg" else accel,
                "-kernel", f"{self.image}/vmlinuz", "-initrd", f"{self.image}/initrd",
                "-append", f"root=/dev/vda rw console=ttyS0 {words}",
                "-drive", f"file={disk},if=virtio,cache=unsafe",
                "-netdev", f"user,id=n0,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22",
                "-device", "virtio-net-pci,netdev=n0", "-device", "virtio-rng-pci",
                "-serial", f"file:{console}", "-display", "none"]

    def wait_until_up(self, seconds=BOOT_SECONDS):
        deadline = time.monotonic() + seconds
        while True:
            if self.qemu and self.qemu.poll() is not None:
                raise AssertionError(f"qemu ended with status {self.qemu.returncode}")
            try:
                self.connect()
                if self.run("systemctl is-system-running --wait").out.strip() != "":
                    return
            except (AssertionError, subprocess.TimeoutExpired):
                pass
            if time.monotonic() > deadline:
                raise AssertionError(f"the machine did not come up, see {self.console}")
            time.sleep(1)

    def reboot(self):
        """Seconds that it took to go down, and all of it."""
        before, started = self.boot_id(), time.monotonic()
        self.run("systemctl --no-block reboot")
        self.disconnect()
        with open(self.console, "rb") as console:
            console.seek(0, os.SEEK_END)
            seen = b""
            while b"reboot: Restarting system" not in seen:
                if time.monotonic() - started > BOOT_SECONDS:
                    raise AssertionError(f"it did not go down, see {self.console}")
                time.sleep(0.2)
                seen += console.read()
        down = time.monotonic() - started
        self.wait_until_up()
        if self.boot_id() == before:
            raise AssertionError("it did not reboot")
        return down, time.monotonic() - started

    def boot_id(self):
        return self.good("cat /proc/sys/kernel/random/boot_id")

    def speed(self):
        return float(self.good("python3 -", stdin=SPEED.encode()))

    def stop(self, hard=False):
        """Politely, unless it was in trouble; nothing of it stays."""
        try:
            if self.qemu and self.qemu.poll() is None and not hard:
                self.run("systemctl --no-block poweroff")
                self.qemu.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            print(f"the machine did not power off in {STOP_SECONDS} s", file=sys.stderr)
        finally:
            self.disconnect()
            if self.qemu and self.qemu.poll() is None:
                self.qemu.kill()
                self.qemu.wait()
            shutil.rmtree(self.folder, ignore_errors=True)

    # --- ssh --------------------------------------------------------------------------------------

    def ssh(self, *words):
        return ["ssh", "-i", f"{self.image}/key", "-p", str(self.port), "-o", "LogLevel=ERROR",
                "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
                "-o", f"ControlPath={self.folder}/ssh", *words]

    def how_to_enter(self):
        return f"To enter: ssh -i {self.image}/key -p {self.port} -o StrictHostKeyChecking=no root@127.0.0.1"

    def connect(self):
        """One connection that all commands share: a handshake takes a second under emulation."""
        done = subprocess.run(
            self.ssh("-o", "ConnectTimeout=20", "-o", "ControlMaster=yes", "-o", "ControlPersist=yes", "-N", "-f",
                     "root@127.0.0.1"), env=outside_of_tests(), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, timeout=60, check=False)
        if done.returncode != 0:
            raise AssertionError("no ssh")

    def disconnect(self):
        subprocess.run(self.ssh("-O", "exit", "root@127.0.0.1"), stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)

    def start_command(self, command, terminal=False, **options):
        """A Popen of a command in the machine."""
        return subprocess.Popen(self.ssh(*(["-tt"] if terminal else []), "root@127.0.0.1", command), **options)

    def run(self, command, stdin=b"", seconds=COMMAND_SECONDS):
        """Done(status, out, err) of a command of its shell, as text."""
        done = subprocess.run(self.ssh("root@127.0.0.1", command), input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=seconds * self.slow, check=False)
        return Done(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def good(self, command, **options):
        """What it printed; it must succeed."""
        done = self.run(command, **options)
        if done.status != 0:
            raise AssertionError(f"{command}: status {done.status}: {done.out}{done.err}")
        return done.out

    def send(self, path, data):
        """A file into the machine."""
        self.good(f"cat >{path}", stdin=data)


def choose_accel(machine):
    """VM_ACCEL, or KVM where it boots this kernel; a device node alone proves nothing."""
    if os.environ.get("VM_ACCEL"):
        return os.environ["VM_ACCEL"]
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    console = os.path.join(machine.folder, "trial")
    command = machine.command("null-co://", "kvm", console, words="panic=1") + ["-no-reboot"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          preexec_fn=die_with_parent) as trial:
        try:
            deadline = time.monotonic() + TRIAL_SECONDS
            while trial.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
                with open(console, "rb") as file:
                    if b"Run /init as init process" in file.read():
                        return "kvm"
            return "tcg"
        finally:
            trial.kill()


def speed_here():
    done = subprocess.run(["/usr/bin/python3", "-c", SPEED], stdout=subprocess.PIPE, check=True)
    return float(done.stdout)
