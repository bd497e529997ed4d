"""Sandboxes with walls left out: tests/support/wall_lab.c as a class.

    with WallLab() as lab:                                   # inside an outer guard
        answer = lab.run(["hidden_proc"], "/bin/cat", "/proc/keys")   # a fresh sandbox for it
        answer["exitCode"], answer["stdout"]
        box = lab.start([])                                  # one that stays, all walls up
        box.run("echo hi")["stdout"]                         # as Agent of agent.py
        lab.stop(box, keep=True)
        box = lab.start([], disk_of=box)                     # another on the same disk

    WallLab("--memory", "100000000")                         # flags of wall_lab

The folder of the built test programs is /lab inside. Raises tap.Skip where a machine cannot do it.
"""

import json
import os
import subprocess

from agent import Agent
from program import SLOW, program
from tap import Skip

PLACE = "/lab"  # of the bound folder
UNABLE = 77
STOP_SECONDS = 30 * SLOW
TIMEOUT = 120  # unless the flags say otherwise
NEEDS = "a sandbox (root, user namespaces, idmapped mounts, btrfs on a loop device)"


def slowly(seconds):
    """A time for --timeout, on this machine."""
    return str(round(seconds * SLOW))


class Box(Agent):
    """The agent of a sandbox that the lab started: an Agent that is not ours to start or stop."""

    def __init__(self, answer):  # pylint: disable=super-init-not-called
        self.id = answer["id"]
        self.address = "unix:" + answer["socket"]
        self.headers = []


class WallLab:
    def __init__(self, *flags):
        tests = os.path.dirname(program("wall_lab"))
        self.command = [program("wall_lab"), "--agent", program("burrow-agent"),
                        "--bind-ro", f"{tests}:{PLACE}", "--timeout", slowly(TIMEOUT), *flags]
        self.process = None

    def __enter__(self):
        # pylint: disable=consider-using-with
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.terminate()  # it cleans up
            status = self.process.wait(STOP_SECONDS)
        self.process.stdout.close()
        if kind is None and status != 0:
            raise AssertionError(f"wall_lab ended with status {status}")

    def ask(self, *words):
        """One command; its answer, whatever it is."""
        try:
            self.process.stdin.write(" ".join(words) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the missing answer says it
        line = self.process.stdout.readline()
        if not line:
            if self.process.wait(STOP_SECONDS) == UNABLE:
                raise Skip(NEEDS)
            raise AssertionError(f"wall_lab ended with status {self.process.returncode}")
        return json.loads(line)

    def _ask_well(self, *words):
        answer = self.ask(*words)
        if "error" in answer:
            raise AssertionError(f"{' '.join(words)}: {answer['error']}")
        return answer

    def run(self, without, *argv):
        """Run a program in a fresh sandbox without these walls; words without blanks."""
        return self._ask_well("run", ",".join(without) or "-", *argv)

    def start(self, without, disk_of=None):
        return Box(self._ask_well("start", ",".join(without) or "-",
                                  *([disk_of.id] if disk_of else [])))

    def stop(self, box, keep=False):
        self._ask_well("stop", box.id, *(["keep"] if keep else []))
