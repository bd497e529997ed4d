"""The harness with real agents: tests/support/harness_demo.c on the agent of a sandbox, line by line.

    with HarnessDemo(agent.address) as harness:            # or (address, netns) of a sandbox
        turn = harness.prompt("say hi", config={...})
        turn.wait("permission"); turn.permit("once")
        turn.ended()["answer"]

`told` are all lines so far; `wait` gives the first that fits and was not given before by the same name.
"""

import json
import queue
import random
import subprocess
import threading
import time

from program import START_SECONDS, STOP_SECONDS, clean_environment, program

WAIT_SECONDS = 240  # a busy machine starts a model's client slowly
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def new_id():
    return "".join(random.choice(ALPHABET) for _ in range(25)) + random.choice("aeimquy4")


class Turn:
    def __init__(self, harness, name):
        self.harness, self.name, self.told, self.given = harness, name, [], set()

    def wait(self, tells, seconds=WAIT_SECONDS, **fields):
        """The next line of this kind (whose members have these values)."""
        return self.harness.wait_for(
            lambda: self.take(tells, fields), f"{tells} {fields} of a turn; told: {self.told[-5:]}", seconds)

    def take(self, tells, fields):
        for number, line in enumerate(self.told):
            if number in self.given or line["tells"] != tells:
                continue
            if all(line.get(name) == value for name, value in fields.items()):
                self.given.add(number)
                return line
        return None

    def all(self, tells):
        return [line for line in self.told if line["tells"] == tells]

    def session(self):
        """Asked for any number of times."""
        began = self.all("began") or [self.wait("began")]
        return began[0]["session"]

    def ended(self, seconds=WAIT_SECONDS):
        return self.wait("ended", seconds)

    def text(self):
        """What was told in pieces, by part."""
        pieces = {}
        for line in self.all("delta"):
            pieces[line["part"]] = pieces.get(line["part"], "") + line["text"]
        return pieces

    def do(self, what, **fields):
        self.harness.do(what, turn=self.name, **fields)

    def permit(self, reply="once", **fields):
        asked = self.wait("permission")
        self.do("permission", request=asked["id"], reply=reply, **fields)
        answer = self.harness.wait("permitted")
        assert answer["failure"] is None, answer
        return asked


class HarnessDemo:
    def __init__(self, agent, netns=None, kind="opencode", **place):
        self.arguments = [program("harness_demo"), agent] + ([netns] if netns else [])
        self.place = {"kind": kind, **place}
        self.told, self.given, self.turns = [], set(), {}
        self.lines, self.process, self.reader = queue.Queue(), None, None
        self.is_killed = False

    def __enter__(self):
        self.process = subprocess.Popen(self.arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=clean_environment(), bufsize=0)
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        return self

    def read(self):
        for line in self.process.stdout:
            self.lines.put(json.loads(line))
        self.lines.put(None)

    def __exit__(self, kind, *_):
        self.process.stdin.close()
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.reader.join()
        self.process.stdout.close()
        if kind is None and not self.is_killed:
            assert status == 0, f"harness_demo ended with {status}"

    def kill(self):
        """As a daemon dies: no goodbye."""
        self.is_killed = True
        self.process.kill()
        self.process.wait()

    def do(self, what, **fields):
        line = {"do": what, **self.place, **fields}
        self.process.stdin.write(json.dumps(line).encode() + b"\n")

    def take_lines(self, seconds):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return
        assert line is not None, f"harness_demo is gone: {self.told[-5:]}"
        self.told.append(line)
        if line.get("turn") in self.turns:
            self.turns[line["turn"]].told.append(line)

    def wait_for(self, look, what, seconds=WAIT_SECONDS):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = look()
            if found is not None:
                return found
            self.take_lines(0.1)
        raise AssertionError(f"waited in vain for {what}")

    def wait(self, tells, seconds=START_SECONDS):
        def look():
            for number, line in enumerate(self.told):
                if number not in self.given and line["tells"] == tells:
                    self.given.add(number)
                    return line
            return None
        return self.wait_for(look, f"{tells}; told: {self.told[-5:]}", seconds)

    def ensure(self, **place):
        self.do("ensure", **place)
        return self.wait("ready", WAIT_SECONDS)

    def look(self):
        self.do("look")
        return self.wait("look")

    def prompt(self, text, what="prompt", turn=None, **fields):
        name = turn or new_id()
        self.turns[name] = Turn(self, name)
        self.do(what, turn=name, parts=[{"type": "text", "text": text}], **fields)
        return self.turns[name]

    def find(self, turn, session, **fields):
        return self.prompt("", "find", turn, session=session, **fields)
