#!/usr/bin/python3
# timeout: 600
"""Hosts as their owners have made them: each test changes something, uses sandboxes, and puts it back."""

import contextlib
import os
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import MACHINE, UNIT, api, burrow, create, destroy_all, execute, inside, is_ready  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from world import HOST, HOST6, NAME, close_world, open_world  # noqa: E402

DROP_IN = "/run/systemd/system/burrow.service.d"


def restart():
    MACHINE.good(f"systemctl daemon-reload && systemctl restart {UNIT}")
    wait_until(is_ready, "it serves", 90)


@contextlib.contextmanager
def surrounded(do, undo, over=True):
    """The daemon started where `do` was done."""
    MACHINE.good(do)
    try:
        if over:
            restart()
        yield
    finally:
        destroy_all()
        MACHINE.good(undo)
        if over:
            restart()


@contextlib.contextmanager
def unit_with(*lines):
    text = "\\n".join(("[Service]", *lines))
    with surrounded(f"mkdir -p {DROP_IN} && printf '{text}\\n' >{DROP_IN}/test.conf", f"rm -r {DROP_IN}"):
        yield


def expect_use(name="used", **fields):
    """A sandbox works, for root and for others in it, with files, a copy and a network."""
    create(name, **fields)
    equal(inside(name, "echo hi >file; cat file; python3 -c 'print(6 * 7)'").split(), ["hi", "42"])
    equal(inside(name, "setpriv --reuid 1000 --regid 1000 --clear-groups sh -c "
                       "'cat /etc/passwd >/dev/null && ls / >/dev/null && echo x >/tmp/x && id -u'"), "1000\n")
    api("POST", f"/sandboxes/{name}/fork", {"name": f"{name}-fork"})
    equal(inside(f"{name}-fork", "cat file"), "hi\n", "the fork")
    equal(burrow("run", "--", "echo", "hi"), "hi\n", "a run")


def expect_traffic(box):
    equal(inside(box, f"curl -s --max-time 60 http://{NAME}/"), f"{HOST}\n", "by name")


# --- settings of the machine -------------------------------------------------------------------


@test
def umask_077():
    with unit_with("UMask=0077"):
        expect_use()
    equal(MACHINE.good("umask 077; burrow run -- setpriv --reuid 1000 --regid 1000 --clear-groups "
                       "sh -c 'ls / >/dev/null && cat /etc/hosts >/dev/null && echo fine'"), "fine\n")


@test
def a_turkish_locale():
    with unit_with("Environment=LC_ALL=tr_TR.UTF-8 LANG=tr_TR.UTF-8"):
        expect_use()
        equal(MACHINE.good("LC_ALL=tr_TR.UTF-8 burrow ls --names | head -1"), "used-fork\n")
        equal(MACHINE.run("LC_ALL=tr_TR.UTF-8 burrow doctor").status, 0)
        equal(MACHINE.good("LC_ALL=tr_TR.UTF-8 burrow run --memory 512M --cpus 0.5 -- echo hi"), "hi\n", "0.5 of 0,5")


@test
def no_user_namespaces_for_others():
    with surrounded("sysctl -q kernel.unprivileged_userns_clone=0", "sysctl -q kernel.unprivileged_userns_clone=1"):
        expect_use()
        equal(MACHINE.run("burrow doctor").status, 0)


@test
def temporary_files_in_memory():
    was = MACHINE.run("findmnt -n -o FSTYPE /tmp").out.strip()
    do, undo = "mount -t tmpfs -o size=64M,nosuid,nodev,noexec tmpfs /tmp", "umount /tmp"
    with surrounded(do, undo):
        equal(MACHINE.good("findmnt -n -o FSTYPE /tmp").split()[-1], "tmpfs")
        expect_use()
        equal(inside("used", "head -c 100M /dev/zero >/tmp/large; stat -c %s /tmp/large"), f"{100 << 20}\n",
              "its own is a disk")
    equal(MACHINE.run("findmnt -n -o FSTYPE /tmp").out.strip(), was)


@test
def no_forwarding_until_there_is_a_router():
    with surrounded("sysctl -q net.ipv4.ip_forward=0", "sysctl -q net.ipv4.ip_forward=0"):
        open_world(MACHINE)
        try:
            create("out", network="nat")
            expect_traffic("out")
        finally:
            close_world(MACHINE)


@test
def a_resolv_conf_that_is_a_link():
    open_world(MACHINE)
    try:
        with surrounded("mkdir -p /run/names && mv /etc/resolv.conf /run/names/ && ln -s ../run/names/resolv.conf /etc/",
                        "rm /etc/resolv.conf && mv /run/names/resolv.conf /etc/ && rmdir /run/names"):
            create("out", network="nat")
            expect_traffic("out")
            equal(inside("out", "test -L /etc/resolv.conf && readlink /etc/resolv.conf || echo file"), "file\n")
            assert "names can be resolved" in MACHINE.good("burrow doctor")
    finally:
        close_world(MACHINE)


# --- what others do ----------------------------------------------------------------------------


@test
def mounts_of_others_come_and_go():
    make = """truncate -s 128M /run/disk && mkfs.btrfs -q /run/disk && mkdir -p /mnt/later && mount -o loop /run/disk /mnt/later
        && mount -t tmpfs tmpfs /usr/local/share && echo theirs >/usr/local/share/file"""
    create("before")
    MACHINE.good(make.replace("\n", " "))
    try:
        expect_use()
        equal(execute("before", "ls /mnt/later")["exitCode"] != 0, True, "seen in a sandbox")
    finally:
        # Nobody holds them: neither sandboxes nor the launcher.
        MACHINE.good("umount /mnt/later /usr/local/share && rmdir /mnt/later")
        wait_until(lambda: "/run/disk" not in MACHINE.good("losetup -a"), "the loop device is free", 30)
        MACHINE.good("rm /run/disk")
        destroy_all()


@test
def rules_of_others_stay_and_are_told_when_they_drop():
    theirs = "table inet theirs { chain forward { type filter hook forward priority 0; policy POLICY; }; " \
             "chain out { type filter hook output priority 0; policy accept; tcp dport 9 drop; }; }"
    open_world(MACHINE)
    try:
        with surrounded(f"nft '{theirs.replace('POLICY', 'accept')}'", "nft delete table inet theirs", over=False):
            before = MACHINE.good("nft list table inet theirs")
            create("out", network="nat")
            expect_traffic("out")
            restart()
            expect_traffic("out")
            equal(MACHINE.good("nft list table inet theirs"), before, "their rules")
        with surrounded(f"nft '{theirs.replace('POLICY', 'drop')}'", "nft delete table inet theirs", over=False):
            assert "warning  the host's network" in MACHINE.run("burrow doctor").out
        create("out", network="nat")
        expect_traffic("out")
        destroy_all()
    finally:
        close_world(MACHINE)


@test
def a_host_that_forwards_ipv6():
    open_world(MACHINE)
    try:
        with surrounded("sysctl -q net.ipv6.conf.all.forwarding=1", "sysctl -q net.ipv6.conf.all.forwarding=0"):
            create("out", network="nat")
            expect_traffic("out")
            assert execute("out", f"curl -s --max-time 5 'http://[{HOST6}]:22/'")["exitCode"] not in (0, 1, 52, 56)
            equal(inside("out", "grep -v ' lo$' /proc/net/if_inet6 || true"), "", "addresses")
    finally:
        close_world(MACHINE)


@test
def apparmor_is_on_and_has_refused_nothing():
    equal(MACHINE.good("cat /sys/module/apparmor/parameters/enabled"), "Y\n")
    denied = MACHINE.run("journalctl --no-pager -k -g 'apparmor=\"DENIED\"'").out
    equal([line for line in denied.splitlines() if "DENIED" in line], [])


main()
