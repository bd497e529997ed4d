#!/usr/bin/python3
"""burrow run: one command in a fresh sandbox, as root, with a launcher of its own.

# timeout: 600
"""

import fcntl
import functools
import os
import pty
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import find_processes, own_time, runs_in_front  # noqa: E402
from host_mounts import pool_store  # noqa: E402
from launcher import Service, need_launcher  # noqa: E402
from outpost import cgroup, groups_of, network_name, remove_groups  # noqa: E402
from program import PATIENCE, clean_environment, program, wait_until  # noqa: E402
from tap import Skip, equal, main, skip, test  # noqa: E402
from traces import id_ranges  # noqa: E402

MIB = 1 << 20
SECONDS = PATIENCE


@functools.lru_cache
def missing():
    """What this machine lacks to run sandboxes, or None."""
    try:
        need_launcher()
        return None
    except Skip as reason:
        return str(reason)


def sandbox_test(function):
    """A test that needs sandboxes."""
    @functools.wraps(function)
    def checked():
        if missing():
            skip(missing())
        function()
    return test(checked)


class Site:
    """Folders and a cgroup of our own; leaving checks that nothing but the pool's file is left."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="burrow-test-")
        self.cgroup = cgroup()
        self.words = [program(), "run", "--data", f"{self.folder}/data", "--run-folder",
                      f"{self.folder}/run", "--cgroup", self.cgroup, "--network-name",
                      network_name()]
        self.started = []

    def start(self, *words, **options):
        """A Popen; its environment is clean."""
        # pylint: disable=consider-using-with
        self.started.append(subprocess.Popen([*self.words, *words], env=clean_environment(),
                                             **options))
        return self.started[-1]

    def run(self, *words, stdin=b"", **options):
        """(status, stdout, stderr)"""
        done = subprocess.run([*self.words, *words], env=clean_environment(), input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=SECONDS,
                              check=False, **options)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace")

    def shell(self, script, *words, **options):
        return self.run(*words, "--", "sh", "-c", script, **options)

    def left(self):
        """What of ours is on the host, as sentences."""
        found = [f"cgroup {group}" for group in groups_of(self.cgroup)]
        with open("/proc/self/mountinfo", encoding="utf-8") as lines:
            found += [f"mount {line.strip()}" for line in lines if self.folder in line]
        loops = subprocess.run(["losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE"],
                               stdout=subprocess.PIPE, check=False).stdout.decode()
        found += [f"loop {line}" for line in loops.splitlines() if self.folder in line]
        found += [f"process {pid}" for pid in find_processes(self.folder)]
        found += [f"id range of {name}" for name in id_ranges(f"{self.folder}/run")]
        if os.path.isdir(f"{self.folder}/run"):
            found += [f"instance {name}" for name in os.listdir(f"{self.folder}/run")
                      if name.startswith("once-")]
        disks = pool_store(f"{self.folder}/data")
        if os.path.isdir(disks):
            found += [f"disk {name}" for name in os.listdir(disks)]
        return found

    def check_clean(self):
        wait_until(lambda: not self.left(), f"nothing is left, but {self.left()}")

    def done(self):
        for process in self.started:
            if process.poll() is None:  # the failing test has said so
                process.kill()
                process.wait()
        if self.started:
            wait_until(lambda: not find_processes(self.folder), "launchers have cleaned up")
        remove_groups(self.cgroup)  # none but after a failing test
        shutil.rmtree(self.folder, ignore_errors=True)


# --- the command's own ---------------------------------------------------------------------------


@sandbox_test
def status_and_output_are_the_commands():
    equal(SITE.shell("echo out; echo err >&2; exit 7"), (7, b"out\n", "err\n"), "result")
    for status in (0, 1, 42, 255):
        equal(SITE.shell(f"exit {status}"), (status, b"", ""), "status")
    for number in (2, 9, 15):
        equal(SITE.shell(f"kill -{number} $$")[0], 128 + number, "signal")


@sandbox_test
def what_cannot_be_run_is_said_as_shells_do():
    for words, expected in ((["no-such-program"], 127), (["/etc/passwd"], 126),
                            (["--cwd", "/no/such", "true"], 125)):
        status, out, err = SITE.run(*words)
        equal((status, out), (expected, b""), str(words))
        assert err.startswith("burrow: ") and err.count("\n") == 1, err


@test
def wrong_words_are_refused_before_anything_is_made():
    for words in ([], ["--dance", "true"], ["--memory", "much", "true"], ["--net", "host", "true"],
                  ["--bind-ro", "/no/such:/x", "true"], ["--env", "A-B=c", "true"]):
        status, out, err = SITE.run(*words)
        equal((status, out), (2, b""), str(words))
        assert err.startswith("burrow: "), err


@sandbox_test
def an_unknown_image_is_a_failure_of_the_sandbox():
    status, _, err = SITE.run("--image", "no-such-image", "true")
    equal((status, "no-such-image" in err), (125, True), err)


def run_as_nobody(*words):
    """The build may lie where nobody cannot go: the program is handed over open."""
    with open(program(), "rb") as file:
        os.set_inheritable(file.fileno(), True)
        command = [f"/proc/self/fd/{file.fileno()}", "run", *words]
        if os.geteuid() == 0:
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                       "--inh-caps=-all", *command]
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=clean_environment(), cwd="/",
                              pass_fds=[file.fileno()], timeout=SECONDS, check=False)


@test
def help_names_the_defaults_and_a_plan_needs_no_root():
    status, out, _ = SITE.run("--help")
    equal(status, 0, "status")
    assert b"2G" in out and b"1024" in out and b"4G" in out, out
    done = run_as_nobody("--plan", "--memory", "512M", "--bind-ro", "/usr:/x", "--", "true")
    equal(done.returncode, 0, done.stderr.decode())
    for part in (b"memory    512 MiB", b"network   none", b"/usr", b"/x"):
        assert part in done.stdout, done.stdout


@test
def who_is_not_root_is_told_so():
    done = run_as_nobody("--", "true")
    equal(done.returncode, 2, "status")
    assert b"root" in done.stderr, done.stderr


@sandbox_test
def stdin_and_stdout_carry_any_bytes_to_their_end():
    data = bytes(range(256)) * 4096
    status, out, err = SITE.run("cat", stdin=data)
    equal((status, out == data, err), (0, True, ""), "a megabyte of all bytes")
    equal(SITE.run("cat", stdin=b""), (0, b"", ""), "nothing")
    with tempfile.TemporaryFile() as file:
        file.write(b"skipped" + data)
        file.seek(7)
        done = subprocess.run([*SITE.words, "cat"], stdin=file, stdout=subprocess.PIPE,
                              check=False, timeout=SECONDS)
        equal((done.returncode, done.stdout == data), (0, True), "a file as stdin")
    with tempfile.TemporaryFile() as file:
        file.write(b"before ")
        file.flush()
        subprocess.run([*SITE.words, "echo", "after"], stdin=subprocess.DEVNULL, stdout=file,
                       check=True, timeout=SECONDS)
        file.seek(0)
        equal(file.read(), b"before after\n", "a file as stdout")


@sandbox_test
def a_hundred_megabytes_pass_both_ways_in_flat_memory():
    sums = {"sent": 0, "received": 0}
    process = SITE.start("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    piece = os.urandom(MIB)

    def feed():
        for _ in range(100):
            process.stdin.write(piece)
        process.stdin.close()
    feeder = threading.Thread(target=feed)
    feeder.start()
    highest = 0
    while sums["received"] < 100 * MIB:
        got = process.stdout.read(MIB)
        assert got == piece, f"other bytes after {sums['received']}"
        sums["received"] += len(got)
        highest = max(highest, memory_kb(process.pid))
    equal(process.stdout.read(), b"", "the end")
    feeder.join()
    process.stdout.close()
    equal(process.wait(SECONDS), 0, "status")
    assert highest < 30000, f"{highest} kB"


def memory_kb(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


@sandbox_test
def a_reader_that_leaves_breaks_the_pipe():
    process = SITE.start("yes", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    equal(process.stdout.read(2), b"y\n", "output")
    process.stdout.close()
    equal(process.wait(SECONDS), 128 + signal.SIGPIPE, "status")


@sandbox_test
def a_writer_learns_that_nobody_reads():
    process = SITE.start("sh", "-c", "exec <&-; sleep 3", stdin=subprocess.PIPE)
    try:
        for _ in range(1000):
            process.stdin.write(b"x" * 65536)
        raise AssertionError("the pipe takes everything")
    except BrokenPipeError:
        pass
    finally:
        try:
            process.stdin.close()
        except BrokenPipeError:
            pass
    equal(process.wait(SECONDS), 0, "status")


# --- the sandbox ---------------------------------------------------------------------------------


@sandbox_test
def variables_and_folder_are_as_asked():
    equal(SITE.shell("echo $A-$B-$PWD", "--env", "A=x y", "--env", "B=1", "--env", "B=2",
                     "--cwd", "/usr")[1], b"x y-2-/usr\n", "seen")
    equal(SITE.shell("pwd; echo ${HOME:+home} ${PATH:+path}")[1], b"/workspace\nhome path\n",
          "without options")


@sandbox_test
def a_bind_is_seen_and_read_only():
    # Not where SITE is, which may be beneath /dev: that can be bound by nobody.
    with tempfile.TemporaryDirectory(prefix="burrow-test-", dir="/var/tmp") as shown:
        os.makedirs(f"{shown}/deep")
        with open(f"{shown}/deep/file", "w", encoding="ascii") as file:
            file.write("here\n")
        os.chmod(shown, 0o755)
        status, out, err = SITE.shell("cat /shown/deep/file; touch /shown/new", "--bind-ro",
                                      f"{shown}:/shown")
        equal((status, out), (1, b"here\n"), err)
        assert "Read-only" in err, err
        equal(os.listdir(shown), ["deep"], "afterwards")


@sandbox_test
def the_disk_has_its_limit():
    script = "head -c 300000000 /dev/zero >/workspace/big; echo $?; rm /workspace/big && echo freed"
    status, out, err = SITE.shell(script, "--disk", "64M")
    if "cannot enforce --disk" in err:
        skip("a disk pool with quotas")
    equal((status, out.split()), (0, [b"1", b"freed"]), err)


@sandbox_test
def a_lack_of_memory_is_said():
    status, _, err = SITE.run("--memory", "64M", "--", "/usr/bin/python3", "-c",
                              "x = bytearray(500000000)")
    if "cannot enforce --memory" in err:
        skip("a memory controller")
    equal((status, "killed: out of memory (limit 64M)" in err), (137, True), err)
    status, _, err = SITE.shell("/usr/bin/python3 -c 'x = bytearray(500000000)'; exit 5",
                                "--memory", "64M")
    equal((status, "out of memory (limit 64M)" in err), (5, True), err)


@sandbox_test
def processes_have_their_limit():
    status, _, err = SITE.shell("for i in $(seq 60); do sleep 2 & done; wait", "--pids", "20")
    if "cannot enforce --pids" in err:
        skip("a pids controller")
    assert status != 0 and "fork" in err.lower(), (status, err)


@sandbox_test
def the_network_is_loopback_only():
    status, out, _ = SITE.shell("cat /proc/net/dev | tail -n +3 | cut -d: -f1")
    equal((status, out.split()), (0, [b"lo"]), "interfaces")


# --- ends ----------------------------------------------------------------------------------------


@sandbox_test
def a_time_that_is_over_kills_everything():
    status, _, err = SITE.shell("(setsid {0} &); {0}".format(f"sleep {own_time(4720)}"), "--timeout", "500ms")
    equal(status, 124, err)
    equal(find_processes(own_time(4720)), [], "left")


@sandbox_test
def signals_pass_through():
    script = "trap 'echo got; exit 9' {0}; echo ready; while :; do sleep 0.01; done"
    for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
        process = SITE.start("sh", "-c", script.format(name), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        equal(process.stdout.readline(), b"ready\n", "start")
        process.send_signal(getattr(signal, "SIG" + name))
        equal((process.stdout.read(), process.wait(SECONDS)), (b"got\n", 9), name)
        process.stdout.close()


@sandbox_test
def signals_pass_input_that_nobody_reads():
    with open("/dev/zero", "rb") as zeros:
        process = SITE.start("sh", "-c", "echo ready; exec sleep 4721", stdin=zeros,
                             stdout=subprocess.PIPE)
        equal(process.stdout.readline(), b"ready\n", "start")
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        equal(process.wait(SECONDS), 130, "status")
        process.stdout.close()


@sandbox_test
def an_interrupt_at_any_time_leaves_nothing():
    for tenth in range(0, 12):
        process = SITE.start("sleep", "4722", stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             start_new_session=True)
        time.sleep(tenth * 0.01)
        os.killpg(process.pid, signal.SIGINT)  # as the terminal does it
        status = process.wait(SECONDS)
        assert status in (130, -signal.SIGINT), status
    SITE.check_clean()


@sandbox_test
def a_killed_run_leaves_nothing():
    for delay in (0.03, 0.1, 0.3):
        process = SITE.start("sleep", own_time(4723), stdin=subprocess.DEVNULL)
        time.sleep(delay)
        process.kill()
        process.wait()
    SITE.check_clean()
    equal(find_processes(own_time(4723)), [], "left")


@sandbox_test
def ten_at_once_are_strangers_to_each_other():
    script = "echo $0 >/workspace/me; sleep 0.5; cat /workspace/me; cat /proc/self/uid_map"
    running = [SITE.start("sh", "-c", script, str(number), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE) for number in range(10)]
    maps = set()
    for number, process in enumerate(running):
        out, _ = process.communicate(timeout=SECONDS)
        name, ids = out.decode().split("\n", 1)
        equal((process.returncode, name), (0, str(number)), "result")
        maps.add(ids)
    equal(len(maps), 10, "id ranges")
    SITE.check_clean()


# --- terminals -----------------------------------------------------------------------------------


class Terminal:
    """`burrow run --tty` at a terminal of ours."""

    def __init__(self, *words, columns=90, rows=30):
        self.control, self.terminal = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.terminal)
        self.seen = b""
        self.process = SITE.start("--tty", *words, stdin=self.terminal, stdout=self.terminal,
                                  stderr=self.terminal, start_new_session=True,
                                  preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.control)
        os.close(self.terminal)

    def resize(self, columns, rows):
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def write(self, data):
        os.write(self.control, data)

    def read_until(self, mark, seconds=PATIENCE):
        deadline = time.monotonic() + seconds
        os.set_blocking(self.control, False)
        while mark not in self.seen:
            if time.monotonic() > deadline:
                raise AssertionError(f"no {mark!r} in {self.seen!r}")
            try:
                self.seen += os.read(self.control, 4096)
            except (BlockingIOError, OSError):
                time.sleep(0.01)
        before, _, self.seen = self.seen.partition(mark)
        return before

    def is_restored(self):
        return termios.tcgetattr(self.terminal) == self.before


SHELL = ("--env", "PS1=ready> ", "--", "bash", "--norc", "-i")


@sandbox_test
def a_terminal_passes_keys_jobs_and_size():
    with Terminal(*SHELL) as terminal:
        terminal.read_until(b"ready> ")
        terminal.write(b"stty size; tty\r")
        terminal.read_until(b"30 90\r\n/dev/pts/")
        terminal.write(f"sleep {own_time(4724)}\r".encode())
        wait_until(lambda: runs_in_front(f"sleep\0{own_time(4724)}"), "the job runs")
        terminal.write(b"\x1a")
        terminal.read_until(b"Stopped")
        terminal.write(b"fg\r")
        wait_until(lambda: runs_in_front(f"sleep\0{own_time(4724)}"), "the job goes on")
        terminal.write(b"\x03")
        terminal.read_until(b"ready> ")
        wait_until(lambda: not find_processes(own_time(4724)), "the job is interrupted")
        terminal.resize(50, 20)
        wait_until(lambda: size_inside(terminal) == b"20 50", "the new size is seen")
        terminal.write(b"exit 3\r")
        equal(terminal.process.wait(SECONDS), 3, "status")
        assert terminal.is_restored(), "the terminal is not as before"


def size_inside(terminal):
    terminal.write(b"stty size | sed s/^/now:/\r")
    terminal.read_until(b"\rnow:")
    return terminal.read_until(b"\r\n")


@sandbox_test
def a_terminal_is_restored_however_it_ends():
    for end in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        with Terminal("--", "sh", "-c", "echo ready; exec sleep 4725") as terminal:
            terminal.read_until(b"ready")
            assert not terminal.is_restored(), "the terminal is not raw"
            terminal.process.send_signal(end)
            equal(terminal.process.wait(SECONDS), 128 + end, "status")
            assert terminal.is_restored(), f"not restored after {end}"
    with Terminal("--timeout", "200ms", "sleep", "4725") as terminal:
        equal(terminal.process.wait(SECONDS), 124, "status")
        assert terminal.is_restored(), "not restored after a timeout"


@sandbox_test
def a_terminal_inside_needs_none_outside():
    status, out, _ = SITE.run("--tty", "--", "sh", "-c", "tty; stty size")
    equal(status, 0, "status")
    assert re.fullmatch(rb"/dev/pts/\d+\r\n24 80\r\n.*", out, re.DOTALL), out


# --- beside others -------------------------------------------------------------------------------


@sandbox_test
def it_works_beside_a_running_daemon():
    with Service() as service:
        done = subprocess.run([program(), "run", "--data", service.data, "--run-folder",
                               service.run, "--cgroup", service.cgroup, "--", "echo", "beside"],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              env=clean_environment(), check=False, timeout=SECONDS)
        equal((done.returncode, done.stdout), (0, b"beside\n"), "result")
        assert service.process.poll() is None, "the daemon ended"


@sandbox_test
def nothing_is_left_in_the_end():
    SITE.check_clean()


def run_all():
    try:
        main()
    finally:
        SITE.done()


SITE = Site()
run_all()
