"""Everything on a host that belongs to sandboxes, found without asking their launcher.

    traces(data, run, "burrow-test-7")      # {"disk": {ids}, "cgroup": {ids}, ...}
"""

import os
import struct

from host_mounts import pool_store
from outpost import groups_of

ID_RECORD, ID_LENGTH, ID_TAKEN = 64, 26, 1  # of the table of id ranges: id_range_internal.h
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
        "id range": _id_ranges(f"{run}/ids"),
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


def _id_ranges(folder):
    found = set()
    for name in names_in(folder):
        with open(f"{folder}/{name}", "rb") as file:
            table = file.read()
        for at in range(ID_RECORD, len(table) - ID_RECORD + 1, ID_RECORD):
            text, state = struct.unpack_from(f"{ID_LENGTH}sxB", table, at)
            if state == ID_TAKEN:
                found.add(text.decode("ascii"))
    return found


def _networks(folder):
    found = set()
    for name in filter(str.isdigit, names_in(folder)):
        try:
            found.add(os.readlink(f"{folder}/{name}")[:ID_LENGTH])
        except FileNotFoundError:
            continue  # given back just now
    return found
