#!/usr/bin/python3
"""What a sandbox reaches through its network, and what it must not, wall by wall.

A world of network namespaces (tests/support/wall_world.h) with a real router; inside, real agents.

# timeout: 600
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from bomb_lab import ATTACK_NETWORK, BombLab
from tap import equal, main, skip, test
from wall_lab import slowly

INTERNET = "25.0.113.10"
ELSEWHERE = "25.51.100.7"
PRIVATE = "10.9.9.9"
HOST = "192.0.2.2"
NAMES = "169.254.1.1"
PRIVATE_NAMES = "10.255.0.53"
CONNECTIONS = 8  # of the lab's router

RULES = ("router_rules", "host_rules")
RAW = ("seccomp.raw_sockets", "capability.net_raw", "network_owner")

# An attempt of a sandbox that has raw sockets, and the walls of the network that hold it. {other}
# is the address of another sandbox, where somebody listens.
ROWS = [
    (f"tcp {HOST}", RULES),                       # an address of the host
    ("tcp 25.7.7.2", RULES),                   # that in its network
    ("tcp 25.7.7.1", RULES),                      # the next machine on its link
    ("tcp 203.0.113.77", RULES),                  # nobody's
    ("tcp 198.18.254.0", RULES),                  # its end of our uplink
    (f"udp {HOST}", RULES),
    (f"icmp {HOST}", RULES),
    (f"tcp {PRIVATE}", RULES),
    ("tcp 192.168.50.5", RULES),
    ("tcp 172.16.5.5", RULES),
    ("tcp 100.64.0.9", RULES),
    (f"udp {PRIVATE_NAMES}", RULES),              # a name server, past ours
    (f"icmp {PRIVATE}", RULES),
    ("tcp 169.254.169.254", RULES),               # metadata of most clouds
    ("tcp 169.254.9.9", RULES),                   # others that are link-local
    ("tcp 100.100.100.200", RULES),               # metadata of others
    ("tcp 168.63.129.16", RULES),
    ("tcp 192.0.0.192", RULES),
    ("arrive 198.18.254.1", ("router_rules",)),   # the router itself
    ("arrive 169.254.1.1", ("router_rules",)),
    ("icmp 169.254.1.1", ("router_rules",)),
    ("tcp {other}", ("router_rules",)),
    ("udp {other}", ("router_rules",)),
    ("icmp {other}", ("router_rules",)),
    ("forge {other} " + INTERNET, RULES + ("source_check",)),
    ("forge 25.0.113.77 " + INTERNET, RULES + ("source_check",)),
    ("forge_bound {other} " + INTERNET, RULES + ("source_check",)),
]


def attempt(box, *attempts):
    """{attempt: result} of one run."""
    printed = box.run(argv=[ATTACK_NETWORK, *" , ".join(attempts).split()])["stdout"]
    results = {}
    for line, name in zip(printed.splitlines(), attempts, strict=True):
        results[name] = line.removeprefix(name).strip()
    return results


def expect(box, expected):
    """expected: {attempt: how its result begins}."""
    results = attempt(box, *expected)
    wrong = {name: results[name] for name, start in expected.items()
             if not results[name].startswith(start)}
    equal(wrong, {})


def serve(box):
    equal(box.run(f"{ATTACK_NETWORK} serve")["exitCode"], 0, "start of the server inside")


def subsets(walls):
    """Sets to leave out: all of them, all but one each, none."""
    whole = frozenset(walls)
    return {whole, frozenset()} | {whole - {wall} for wall in walls}


def try_all(lab, box, rows):
    """{(attempt, walls left out): result}"""
    wanted, results = {}, {}
    for name, walls in rows:
        for without in subsets(walls):
            wanted.setdefault(without, []).append(name)
    for without, names in wanted.items():
        lab.open(sorted(without))
        for name, result in attempt(box, *names).items():
            results[name, without] = result
    return results


@test
def every_way_out_is_held_by_each_of_its_walls_alone():
    wrong = []
    with BombLab("--network", "--timeout", slowly(150)) as lab:
        box, other = lab.start(RAW), lab.start([])
        serve(other)
        lab.join(box)
        address = lab.join(other)
        rows = [(name.format(other=address), walls) for name, walls in ROWS]
        results = try_all(lab, box, rows)
    for (name, without), result in sorted(results.items(), key=str):
        walls = frozenset(dict(rows)[name])
        expected = "succeeded" if without == walls else "refused"
        # EPROTO: the forger could not even ask what arrived.
        if not result.startswith(expected) or "EPROTO" in result and without == walls:
            wrong.append(f"{name} behind {', '.join(sorted(walls - without)) or 'none'}: {result}")
    print(f"# {len(rows)} attempts, {len(results)} tries")
    equal("\n".join(wrong), "")


@test
def the_internet_is_reached_by_translation_and_names_are_asked_through_us():
    with BombLab("--network") as lab:
        box = lab.start([])
        lab.join(box)
        expect(box, {
            f"tcp {INTERNET}": "succeeded 25.7.7.2",  # the host's address, not the sandbox's
            f"tcp {ELSEWHERE}": "succeeded",
            f"udp {INTERNET}": "succeeded",
            f"udp {NAMES}": "succeeded",
            f"udp {PRIVATE_NAMES}": "refused EHOSTUNREACH",
            "udp 169.254.1.3": "refused",                # we have two name servers, not three
            "tcp 127.0.0.1": "refused ECONNREFUSED",     # its own, where nobody listens
        })


@test
def raw_packets_and_foreign_sources_need_rights_that_nobody_has():
    with BombLab("--network") as lab:
        box, other = lab.start([]), lab.start([])
        lab.join(box)
        address = lab.join(other)
        lab.open(["router_rules", "host_rules", "source_check"])  # only the sandbox's own walls
        expect(box, {
            f"icmp {INTERNET}": "refused EPERM",
            f"forge {address} {INTERNET}": "refused EPERM",
            f"forge_bound {address} {INTERNET}": "refused ENETUNREACH",
            f"udp {INTERNET}": "succeeded",
        })


@test
def without_a_network_nothing_is_reached():
    targets = [INTERNET, PRIVATE, HOST, NAMES, "169.254.169.254", "198.18.254.0", "10.66.0.1"]
    with BombLab("--network") as lab:
        lab.open(["router_rules", "host_rules", "source_check"])
        box = lab.start(RAW)
        ways = [f"{kind} {target}" for target in targets for kind in ("tcp", "udp", "icmp")]
        ways += ["tcp6 fe80::1", "tcp6 2001:db8::1", "tcp6 ::ffff:25.0.113.10"]
        expect(box, dict.fromkeys(ways, "refused E"))
        serve(box)
        expect(box, {"tcp 127.0.0.1": "succeeded", "udp 127.0.0.1": "succeeded"})
        lab.open([])
        lab.join(box)  # the same sandbox with one
        expect(box, {f"tcp {INTERNET}": "succeeded"})


@test
def abstract_sockets_are_seen_inside_only():
    listen = ("import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('\\0burrow-other'); "
              "s.listen(); print('ready', flush=True); time.sleep(60)")
    connect = ("import socket; s = socket.socket(socket.AF_UNIX); "
               "print(s.connect_ex('\\0burrow-other'))")
    with BombLab("--network") as lab:
        box, other = lab.start([]), lab.start([])
        lab.join(box), lab.join(other)  # pylint: disable=expression-not-assigned
        other.run(f"python3 -c \"{listen}\" >/tmp/said 2>&1 & "
                  "until grep -q ready /tmp/said; do sleep 0.01; done")
        equal(other.run(f"python3 -c \"{connect}\"")["stdout"], "0\n", "its own")
        equal(box.run(f"python3 -c \"{connect}\"")["stdout"], "111\n", "the other's")  # refused


@test
def ipv6_is_held_inside_and_by_the_router_each_alone():
    inside = ("read_only_proc", "capability.net_admin", "network_owner")
    outside = ("no_ipv6", "router_rules")
    with BombLab("--network") as lab:
        box, walled = lab.start(inside), lab.start([])
        lab.join(box), lab.join(walled)  # pylint: disable=expression-not-assigned
        lab.open(outside)
        routers = {each: lab.router_ipv6(each) for each in (box, walled)}
        if not all(routers.values()):
            skip("IPv6 in the kernel")
        expect(walled, {"enable_ipv6": "refused", f"tcp6 {routers[walled]}": "refused"})
        expect(box, {"enable_ipv6": "succeeded", f"tcp6 {routers[box]}": "succeeded"})
        for wall in outside:
            lab.open(set(outside) - {wall})
            expect(box, {f"tcp6 {routers[box]}": "refused"})
        lab.open([])
        expect(box, {f"tcp6 {routers[box]}": "refused", f"tcp {INTERNET}": "succeeded"})


@test
def rules_of_its_own_open_networks_and_ports_and_close_others():
    with BombLab("--network") as lab:
        box = lab.start([])
        lab.join(box)
        lab.set_policy(box, "allow:10.9.9.0/24:tcp:80-80", f"refuse:{ELSEWHERE}/32:any:0-65535")
        expect(box, {
            f"tcp {PRIVATE}": "succeeded",
            f"udp {PRIVATE}": "refused",        # another protocol
            "tcp 192.168.50.5": "refused",      # another network
            f"tcp {ELSEWHERE}": "refused",
            f"udp {ELSEWHERE}": "refused",
            f"tcp {INTERNET}": "succeeded",
        })
        lab.set_policy(box, "allow:10.9.9.0/24:tcp:81-90")
        expect(box, {f"tcp {PRIVATE}": "refused", f"tcp {INTERNET}": "succeeded"})
        lab.set_policy(box, "only_listed", f"allow:{ELSEWHERE}/32:tcp:80-80")
        expect(box, {
            f"tcp {ELSEWHERE}": "succeeded",
            f"tcp {INTERNET}": "refused",
            f"udp {INTERNET}": "refused",
            f"udp {NAMES}": "succeeded",
        })
        lab.set_policy(box, "no_names")
        expect(box, {f"udp {NAMES}": "refused", f"tcp {INTERNET}": "succeeded"})
        lab.set_policy(box)
        expect(box, {f"udp {NAMES}": "succeeded", f"tcp {PRIVATE}": "refused"})


@test
def no_rule_opens_the_host_metadata_or_another_sandbox():
    with BombLab("--network") as lab:
        box, other = lab.start(RAW), lab.start([])
        serve(other)
        lab.join(box)
        address = lab.join(other)
        lab.set_policy(box, "allow:0.0.0.0/0:any:0-65535")
        expect(box, {
            f"tcp {PRIVATE}": "succeeded",  # what it does open
            **dict.fromkeys((f"tcp {HOST}", "tcp 25.7.7.2", "tcp 198.18.254.0",
                             "tcp 169.254.169.254", "tcp 100.100.100.200", "tcp 168.63.129.16",
                             "arrive 169.254.1.1", f"tcp {address}", f"udp {address}",
                             f"icmp {address}", f"forge {address} {INTERNET}"), "refused"),
        })


@test
def connections_are_limited_for_each_sandbox_alone():
    more = CONNECTIONS + 4
    with BombLab("--network") as lab:
        box, other = lab.start([]), lab.start([])
        lab.join(box), lab.join(other)  # pylint: disable=expression-not-assigned
        expect(box, {f"many {INTERNET} {more}": f"refused EHOSTUNREACH after {CONNECTIONS}"})
        expect(other, {f"many {INTERNET} {CONNECTIONS}": "succeeded"})
        lab.open(["connection_limit"])
        unlimited = lab.start([])
        lab.join(unlimited)
        expect(unlimited, {f"many {INTERNET} {more}": "succeeded"})
        lab.open([])
        lab.set_policy(other, "connections:3")
        expect(other, {f"many {INTERNET} {CONNECTIONS}": "refused EHOSTUNREACH"})


main()
