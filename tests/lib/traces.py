"""Everything on a host that belongs to sandboxes, found without asking their launcher.

    traces(data, run, "burrow-test-7")      # {"disk": {ids}, "cgroup": {ids}, ...}
"""

import os
import struct

from host_mounts import pool_store
from outpost import groups_of

# Of the table of id ranges, which all launchers of a host share: id_range_internal.h
ID_TABLE = "/run/burrow/ids/id-ranges"
ID_RECORD, ID_LENGTH, ID_TAKEN = 64, 26, 1
ID_FORMAT = f"={ID_LENGTH}sxBIQQ"  # sandbox, state, owner, start of that, user
INSTANCE_PARTS = {"record": "records", "socket": "agents"}


def names_in(path):
    """Names in a folder; none when it is not there."""
    try:
        return os.listdir(path)
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
        return []


def traces(data, run, group):
    """{kind: ids}; what is no id is named as it is."""
    store = pool_store(data)
    found = {
        "cgroup": _groups(group),
        "disk": set(names_in(f"{store}/disks")),
        "snapshot": set(names_in(f"{store}/snapshots")),
        "trash": set(names_in(f"{store}/trash")),
        "id range": id_ranges(run),
        "network": _networks(f"{run}/network/slots"),
    }
    for kind, part in INSTANCE_PARTS.items():
        found[kind] = {name.split(".")[0] for instance in names_in(run)
                       for name in names_in(f"{run}/{instance}/{part}")}
    return found


def _groups(group):
    found = set()
    for path in groups_of(group):
        beneath = path.partition(f"/{group}/")[2]
        if beneath:
            found.add(beneath.split("/")[0])
    return found


def _user_hash(run):
    """As the table calls those who work in that run folder: FNV-1a."""
    total = 0xcbf29ce484222325
    for byte in run.encode():
        total = (total ^ byte) * 0x100000001b3 % (1 << 64)
    return total


def id_ranges(run):
    """Ids of the sandboxes that have a range, of those who work in that run folder."""
    try:
        with open(ID_TABLE, "rb") as file:
            table = file.read()
    except FileNotFoundError:
        return set()
    rows = [struct.unpack_from(ID_FORMAT, table, at)
            for at in range(ID_RECORD, len(table) - ID_RECORD + 1, ID_RECORD)]
    return {text.decode("ascii") for text, state, _, _, user in rows
            if state == ID_TAKEN and user == _user_hash(run)}


def _networks(folder):
    found = set()
    for name in filter(str.isdigit, names_in(folder)):
        try:
            found.add(os.readlink(f"{folder}/{name}")[:ID_LENGTH])
        except FileNotFoundError:
            continue  # given back just now
    return found
