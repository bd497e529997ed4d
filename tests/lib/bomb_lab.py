"""A WallLab whose sandboxes are measured and have a network: for attacks on what is shared.

    with BombLab("--memory", "64000000") as lab:
        box = lab.start([])
        lab.stats(box)["oom_kills_work"]         # as the launcher's statistics say
        lab.set_memory(box, 96 << 20)
    with BombLab("--network") as lab:            # tests/support/wall_world.h
        address = lab.join(box)
        lab.open(["router_rules"])               # of the network; the others are closed again
        lab.set_policy(box, "only_listed", "allow:203.0.113.0/24:tcp:80-80")
"""

from wall_lab import PLACE, WallLab

ATTACK_RESOURCES = f"{PLACE}/attack_resources"
ATTACK_NETWORK = f"{PLACE}/attack_network"


class BombLab(WallLab):
    def stats(self, box):
        return self._ask_well("stats", box.id)

    def set_memory(self, box, size):
        self._ask_well("memory", box.id, str(size))

    def join(self, box):
        return self._ask_well("join", box.id)["address"]

    def open(self, walls):
        self._ask_well("open", ",".join(walls) or "-")

    def set_policy(self, box, *rules):
        self._ask_well("policy", box.id, *rules)

    def router_ipv6(self, box):
        return self._ask_well("router_ipv6", box.id)["address"]
