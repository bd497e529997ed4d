"""docs/soak-results.md: one row for each soak that ran, the newest first."""

import os
import subprocess
import time

from source_files import ROOT

PATH = os.path.join(ROOT, "docs/soak-results.md")
HEAD = """# Soaks that ran

`make soak PART=...` adds a row; [testing.md](testing.md) says what the parts are.

| date | commit | part | result | minutes |
|---|---|---|---|--:|
"""


def commit():
    """The commit under test; with + when files differ from it."""
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--abbrev=7", "--dirty=+",
                           "--exclude=*"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode().strip() or "not in git"


def add_row(part, seconds, outcome):
    try:
        with open(PATH, encoding="utf-8") as file:
            rows = file.read().removeprefix(HEAD)
    except FileNotFoundError:
        rows = ""
    row = (f"| {time.strftime('%Y-%m-%d', time.gmtime())} | {commit()} | {part} | {outcome.line()} | "
           f"{seconds / 60:.0f} |\n")
    with open(PATH, "w", encoding="utf-8") as file:
        file.write(HEAD + row + rows)
