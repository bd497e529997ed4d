#!/usr/bin/python3
# timeout: 900
"""`burrow image build --debian`: a system from packages. Few of them: what is fetched comes from Debian's mirrors."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from image_place import ImagePlace  # noqa: E402
from program import clean_environment, program  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

SECONDS = 840


# $0 is for this build alone: others on the machine use /var/tmp, too.
WITH_OWN_TMP = 'mount --bind "$0" /var/tmp && exec "$@"'


def build(place, *words):
    """The status and what it said; minutes. Nothing is left where it worked."""
    environment = clean_environment()
    if "http_proxy" in os.environ:
        environment["http_proxy"] = os.environ["http_proxy"]
    with tempfile.TemporaryDirectory(prefix="burrow-test-", dir="/var/tmp") as folder:
        os.chmod(folder, 0o1777)
        done = subprocess.run(["unshare", "--mount", "sh", "-c", WITH_OWN_TMP, folder, program(), "image", "--data",
                               place.data, "--run", place.run_folder, "build", "--debian", *words],
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        equal(os.listdir(folder), [], "left behind")
    return done.returncode, done.stdout.decode(errors="replace")


@test
def packages_become_an_image_that_runs():
    with ImagePlace() as place:
        if not shutil.which("mmdebstrap"):
            skip("mmdebstrap")
        status, out = build(place, "--packages", "jq", "small")
        equal(status, 0, out)
        status, out = place.sandbox("small", "echo '{\"a\": [1, 2]}' | jq .a[1]; . /etc/os-release; echo $ID; "
                                             "apt-get --version | head -c 4; stat -c %u:%g:%a /bin/su /tmp; "
                                             "cat /etc/resolv.conf; ls /etc/hostname 2>/dev/null; dpkg --audit")
        equal((status, out), (0, "2\ndebian\napt 0:0:4755\n0:0:1777\nnameserver 169.254.1.1\n"), "in it")
        assert f"layer {'':6}" in place.image("inspect", "small")[1]


@test
def a_failure_is_told_and_leaves_nothing():
    with ImagePlace() as place:
        if not shutil.which("mmdebstrap"):
            skip("mmdebstrap")
        status, out = build(place, "--mirror", "file:///no/such/mirror", "bad")
        equal(status, 1, out)
        assert "burrow image: mmdebstrap failed, for the reasons above" in out, out
        equal(place.image("ls")[1].count("\n"), 1, "images")
        equal(place.layers(), [], "layers")
        equal(build(place, "Bad Name")[0], 1, "a name that cannot be")
        equal(build(place, "a", "b")[0], 2, "too many words")


main()
