#!/usr/bin/python3
"""The page in a real browser: a person's way through it, what it must never do, and how it looks.

The cases are in journey.mjs, walls.mjs and looks.mjs; each has a daemon of its own. Pictures of every view are
kept in $BURROW_PICTURES.
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import ControlPlane  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import ROOT  # noqa: E402
from tap import Skip, main, test  # noqa: E402

HERE = os.path.join(ROOT, "tests/page")
CHROMIUM = "/usr/bin/chromium"
SECONDS = 500


def drive(cases):
    need_launcher()
    for what, is_there in (("chromium", os.path.exists(CHROMIUM)), ("node", shutil.which("node")),
                           ("the clients (packaging/install-clients)", os.path.isdir(os.path.join(HERE, "node_modules")))):
        if not is_there:
            raise Skip(what)
    with ControlPlane() as plane:
        url = f"http://{plane.address}"
        done = subprocess.run(["node", f"{cases}.mjs", url, plane.key, os.environ.get("BURROW_PICTURES", "")], cwd=HERE, timeout=SECONDS,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = done.stdout.decode("utf-8", "replace")
        print("".join(f"# {line}\n" for line in text.splitlines()), end="")
        assert done.returncode == 0, text


@test
def a_person_gets_from_nothing_to_time_travel():
    drive("journey")


@test
def the_page_keeps_its_walls():
    drive("walls")


@test
def every_view_looks_right():
    drive("looks")


@test
def its_types_are_right():
    compiler = os.path.join(HERE, "node_modules/typescript/bin/tsc")
    if not os.path.exists(compiler) or not shutil.which("node"):
        raise Skip("the clients (packaging/install-clients)")
    done = subprocess.run(["node", compiler, "-p", os.path.join(ROOT, "src/web")], stdout=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stdout.decode()


main()
