"""Servers and load programs as child processes: pinned, counted, and always ended."""

import ctypes
import os
import resource
import signal
import subprocess
import time
from pathlib import Path
from typing import Optional

from frame.failure import RowFailed

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
START_SECONDS = 10
STOP_SECONDS = 8  # our own server drains for up to 5
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None, use_errno=True)


def _in_child(cpu: Optional[int]):
    """Runs between fork and exec: pin, raise the file limit, and go when the bench goes."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if cpu is not None:
        os.sched_setaffinity(0, {cpu})
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def spawn(arguments: list, cpu: Optional[int], **options) -> subprocess.Popen:
    """Start a program on one core (None: on all), in a session of its own: Ctrl-C reaches only the
    bench, which then ends its children in order."""
    try:
        return subprocess.Popen([str(argument) for argument in arguments],
                                preexec_fn=lambda: _in_child(cpu), start_new_session=True,
                                **options)
    except OSError as error:
        raise RowFailed(f"start {arguments[0]}: {error.strerror}") from error


def stop(process: subprocess.Popen):
    """End a child: politely, then not. Returns once it is gone."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def run_load(arguments: list, cpu: Optional[int], limit_seconds: float) -> str:
    """Run a load program to its end and return what it printed."""
    with spawn(arguments, cpu, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
               stdin=subprocess.DEVNULL) as process:
        try:
            output, errors = process.communicate(timeout=limit_seconds)
        except subprocess.TimeoutExpired as error:
            raise RowFailed(f"{arguments[0]} did not end within {limit_seconds:.0f} s") from error
        finally:
            stop(process)
    if process.returncode != 0:
        raise RowFailed(errors.strip() or f"{arguments[0]} exited with {process.returncode}")
    return output


def pin(pid: int, cpu: int):
    """A process that runs already, with all its threads, on one core."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})


def children_of(pid: int) -> list:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads, in steps of 10 ms."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_SECOND


def resident_bytes(pid: int) -> int:
    """Resident memory. smaps_rollup is exact where VmRSS lags behind per-core counters."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * 1024
    raise RowFailed(f"no Rss for process {pid}")


def wait_until(condition, process: subprocess.Popen, what: str, seconds: float = START_SECONDS):
    """Wait until `condition()` is true while `process` lives."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            raise RowFailed(f"{what} exited with {process.returncode} while starting")
        if time.monotonic() > deadline:
            raise RowFailed(f"{what} was not ready within {seconds:g} s")
        time.sleep(0.01)
