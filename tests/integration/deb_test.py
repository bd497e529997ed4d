#!/usr/bin/python3
# timeout: 600
"""The Debian package: made, installed, removed and purged, in a copy of this machine's root.

The copy is an overlay in a mount namespace of its own: dpkg works as on a real machine, and nothing
of it reaches the host.
"""

import atexit
import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from program import ROOT  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

IN_COPY = r"""
set -eu
mount -t tmpfs scratch "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay copy -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t tmpfs run "$1/root/run"
mount --rbind /proc "$1/root/proc"
mount --rbind /dev "$1/root/dev"
cp "$2" "$1/root/package.deb"
cd /
chroot "$1/root" /bin/sh -euc "$3"
"""

FILES = ("/usr/bin/burrow /usr/bin/burrow-launcher /usr/bin/burrow-admin /usr/bin/burrow-agent /usr/bin/burrow-keeper "
         "/usr/bin/burrow-puller /usr/bin/burrow-attack-inside /lib/systemd/system/burrow.service "
         "/lib/systemd/system/burrow-sandboxes.service /etc/burrow/burrow.ini /usr/share/man/man1/burrow.1.gz "
         "/usr/share/bash-completion/completions/burrow /usr/share/zsh/vendor-completions/_burrow "
         "/usr/share/burrow/alerts.yml /usr/share/burrow/recipes/agent/Dockerfile "
         "/usr/share/burrow/recipes/agent/fetch-packages /usr/share/burrow/recipes/agent/package-lock.json")


def run(*command):
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, timeout=240)
    output = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}:\n{output}"
    return output


@functools.lru_cache
def package():
    """Its path. Made once: compressing it takes most of the time."""
    folder = tempfile.mkdtemp(prefix="burrow-test-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    run("packaging/make-deb", folder)
    packages = [name for name in os.listdir(folder) if name.endswith(".deb")]
    equal(len(packages), 1, "packages made")
    return os.path.join(folder, packages[0])


def in_copy(script):
    """What the script prints, run with the package beside it as /package.deb."""
    if os.geteuid() != 0:
        skip("root")
    with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
        place = os.path.join(folder, "copy")
        os.mkdir(place)
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", IN_COPY,
                   "copy", place, package(), script)


@test
def the_package_says_what_it_is_and_needs():
    control = run("dpkg-deb", "--field", package())
    assert re.search(r"^Package: burrow$", control, re.MULTILINE), control
    for library in ("libuv1", "libssl3", "libsqlite3-0", "libjansson4", "libcurl4"):
        assert re.search(rf"^Depends:.*\b{library}\b", control, re.MULTILINE), f"{library}: {control}"


@test
def installed_it_works_and_removed_it_keeps_what_was_kept():
    output = in_copy(f"""
        userdel burrow 2>/dev/null || true
        dpkg --install /package.deb
        ls {FILES}
        burrow version
        getent passwd burrow
        test "$(stat -c %a /etc/burrow/burrow.ini)" = 644
        mkdir -p /var/lib/burrow && touch /var/lib/burrow/kept
        dpkg --remove burrow
        test ! -e /usr/bin/burrow
        test -e /var/lib/burrow/kept
        test -e /etc/burrow/burrow.ini
        dpkg --purge burrow
        test ! -e /var/lib/burrow
        test ! -e /etc/burrow
        ! getent passwd burrow
        ! dpkg -l burrow 2>/dev/null | grep -q '^ii'
        echo all is well""")
    assert "all is well" in output, output


@test
def a_second_install_is_an_upgrade_and_keeps_settings():
    output = in_copy("""
        dpkg --install /package.deb
        echo 'listen = 127.0.0.1:9999' >>/etc/burrow/burrow.ini
        dpkg --install /package.deb
        grep -q 127.0.0.1:9999 /etc/burrow/burrow.ini
        echo all is well""")
    assert "all is well" in output, output


@test
def the_unit_is_one_that_systemd_understands():
    output = in_copy("""
        dpkg --install /package.deb
        command -v systemd-analyze >/dev/null || { echo no systemd; exit 0; }
        systemd-analyze verify --man=no /lib/systemd/system/burrow.service
        echo all is well""")
    if "no systemd" in output:
        skip("systemd-analyze")
    assert "all is well" in output, output


main()
