"""Counting results the same way in every tool.

A tool that runs tests keeps one Outcome and calls finish() at its end. On its own it then prints
the line `N passed, N failed, N skipped`; run by tools/run-suite (which sets BURROW_OUTCOME) it
appends its results to that file instead, so that only the suite prints the line.
"""

import json
import os

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"
UNSTABLE = "unstable"  # failed, and passed when it ran alone; counted as it came out then


class Outcome:
    def __init__(self):
        self.results = []  # (status, name, detail)

    def add(self, status, name, detail=""):
        self.results.append((status, name, detail))

    def count(self, status):
        return sum(1 for result in self.results if result[0] == status)

    def line(self):
        return ", ".join(f"{self.count(status)} {status}" for status in (PASSED, FAILED, SKIPPED))

    def read(self, path):
        with open(path, encoding="utf-8") as lines:
            self.results += [tuple(json.loads(line)) for line in lines]

    def drop(self, status, reason):
        """Forget results of a status whose details contain `reason`; [name] of them."""
        gone = [result for result in self.results if result[0] == status and reason in result[2]]
        self.results = [result for result in self.results if result not in gone]
        return [name for _, name, _ in gone]

    def print_failed_and_skipped(self):
        """Failures last, each with its reason: often the end of a log is all there is to see."""
        for _, name, log in filter(lambda result: result[0] == UNSTABLE, self.results):
            print(f"{UNSTABLE}: {name}: it passed when it ran alone; this was its first run:\n{log}")
        skipped = {}  # (program, reason): names of its tests
        for _, name, detail in filter(lambda result: result[0] == SKIPPED, self.results):
            program, _, test = name.rpartition(": ")
            skipped.setdefault((program, detail), []).append(test)
        for (program, detail), tests in skipped.items():
            what = tests[0] if len(tests) == 1 else f"{len(tests)} tests"
            print(f"{SKIPPED}: {program}: {what}: {detail}")
        for _, name, detail in filter(lambda result: result[0] == FAILED, self.results):
            print(f"{FAILED}: {name}: {detail}" if detail else f"{FAILED}: {name}")

    def finish(self):
        """Report as described above; returns the exit status of the program."""
        path = os.environ.get("BURROW_OUTCOME")
        if path:
            with open(path, "a", encoding="utf-8") as lines:
                lines.writelines(json.dumps(result) + "\n" for result in self.results)
        else:
            self.print_failed_and_skipped()
            print(self.line(), flush=True)
        return 1 if self.count(FAILED) else 0
