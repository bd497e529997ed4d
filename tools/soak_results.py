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


def git(*words):
    """What git prints; "" where it fails."""
    done = subprocess.run(["git", "-C", ROOT, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode().strip() if done.returncode == 0 else ""


def commit():
    """The commit under test; with + when files other than the results differ from it."""
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/soak-results.md")
    return (git("rev-parse", "--short=7", "HEAD") or "not in git") + ("+" if changed else "")


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


def newest_passed(part):
    """The commit of the newest soak of `part` without a failure; "" when there is none."""
    try:
        with open(PATH, encoding="utf-8") as file:
            lines = file.read().removeprefix(HEAD).splitlines()
    except FileNotFoundError:
        return ""
    for line in lines:
        _, _, made_of, its_part, result, *_ = [cell.strip() for cell in line.split("|")]
        if its_part == part and ", 0 failed" in result and "+" not in made_of:
            return made_of
    return ""
