"""State in the object store: workspaces mirrored, buckets mounted, disks that come back; and what a
plain pool costs.

The store is the default, a folder of the host: beside it stands what the host does with the same
bytes on the same filesystem, without us. All files are in the page cache on both sides; what is
written is synced on both.
"""

import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from frame import control_plane
from frame.failure import RowFailed
from frame.row import LESS, MORE, Comparison, Goal, Row
from frame.sandboxes import root_folder
from rows.state import (CREATE, FILES, MEGABYTE, SANDBOXES, SECOND_MS, SMALL, TURNS, Client, client,
                        fsyncs_with, made_with)

SYNC_TURNS = 3
MOUNT_MB = 256
OFFLOAD_SECONDS = 60
DEEP = {"hibernateAfter": "1s", "offloadAfter": "1s"}
MKFS = "/usr/sbin/mkfs.btrfs"


def timed(*words) -> float:
    """Milliseconds that a command takes."""
    begin = time.perf_counter()
    subprocess.run([str(word) for word in words], check=True)
    return (time.perf_counter() - begin) * SECOND_MS


# --- mirrors -----------------------------------------------------------------------------------


def sync_first(context) -> Comparison:
    """The first sync of a tree, beside a copy of the same tree on the host, synced."""
    ours, peer = [], []
    with root_folder("burrow-bench-", "/var/tmp") as place, client(context) as burrow:
        tree, copy = place / "tree", place / "copy"
        tree.mkdir()
        subprocess.run(["sh", "-c", FILES.replace("/workspace", str(tree))], check=True)
        for _ in range(SYNC_TURNS):
            name = made_with(burrow, FILES)
            ours.append(burrow.verb(name, "sync", {})[0])
            burrow.destroy(name)
            peer.append(timed("sh", "-c", f"cp -r {tree} {copy} && sync --file-system {copy}"))
            shutil.rmtree(copy)
    return Comparison(ours, peer)


def sync_second(context) -> Comparison:
    """Again, when nothing was changed, beside the first time."""
    ours, peer = [], []
    with client(context) as burrow:
        for _ in range(SYNC_TURNS):
            name = made_with(burrow, FILES)
            peer.append(burrow.verb(name, "sync", {})[0])
            took, told = burrow.verb(name, "sync", {})
            if told["syncedFiles"] or not told["unchangedFiles"]:
                raise RowFailed(f"the second sync was no second one: {told}")
            ours.append(took)
            burrow.destroy(name)
    return Comparison(ours, peer)


# --- mounts ------------------------------------------------------------------------------------


@contextmanager
def mounted(context):
    """(burrow, name, folder of the bucket on the host)"""
    with control_plane.burrow(context, "--stock", 0) as daemon:
        burrow = Client(daemon)
        name = made_with(burrow, f"head -c {MOUNT_MB}M /dev/urandom >/workspace/file && sync")
        burrow.verb(name, "mounts", {"path": "/bench", "bucket": "bench"})
        burrow.run(name, "echo there >/bench/there")
        yield burrow, name, next((daemon.data / "daemon" / "buckets").glob("*/bench"))


def rate(milliseconds: float) -> float:
    return MOUNT_MB * (1 << 20) / MEGABYTE / milliseconds * SECOND_MS


def mount_write(context) -> Comparison:
    """A file copied into the mount until its close returned, beside the store's own work: the same
    bytes copied to the store's filesystem and synced."""
    ours, peer = [], []
    with mounted(context) as (burrow, name, bucket):
        for turn in range(context.rounds):
            took, done = burrow.verb(name, "exec", {"command": f"cp /workspace/file /bench/{turn}",
                                                    "timeout": "10m"})
            if done["exitCode"]:
                raise RowFailed(done["stderr"])
            ours.append(rate(took))
            source, copy = bucket / str(turn), bucket.parent / "copy"
            peer.append(rate(timed("sh", "-c", f"cp {source} {copy} && sync {copy}")))
            copy.unlink()
            burrow.run(name, f"rm /bench/{turn}")
    return Comparison(ours, peer)


def mount_read(context) -> Comparison:
    """A file of the mount read once, beside the object's file read on the host."""
    ours, peer = [], []
    with mounted(context) as (burrow, name, bucket):
        for turn in range(context.rounds):
            burrow.run(name, f"cp /workspace/file /bench/{turn}")
            took, done = burrow.verb(name, "exec", {"command": f"cat /bench/{turn} >/dev/null",
                                                    "timeout": "10m"})
            if done["exitCode"]:
                raise RowFailed(done["stderr"])
            ours.append(rate(took))
            peer.append(rate(timed("sh", "-c", f"cat {bucket / str(turn)} >/dev/null")))
            burrow.run(name, f"rm /bench/{turn}")
    return Comparison(ours, peer)


# --- disks -------------------------------------------------------------------------------------


def wait_until_offloaded(burrow: Client, name: str):
    deadline = time.monotonic() + OFFLOAD_SECONDS
    while burrow.call("GET", f"{SANDBOXES}/{name}")["tier"] != "offloaded":
        if time.monotonic() > deadline:
            raise RowFailed("it was not offloaded")
        time.sleep(0.05)


def wake_offloaded(context) -> Comparison:
    """An exec that finds the disk in the object store alone, beside an empty create."""
    ours, peer = [], []
    with client(context) as burrow:
        name = made_with(burrow, SMALL)
        burrow.call("PATCH", f"{SANDBOXES}/{name}", DEEP)
        for _ in range(TURNS if context.rounds > 3 else 3):
            burrow.verb(name, "sleep")
            wait_until_offloaded(burrow, name)
            ours.append(burrow.verb(name, "exec", {"command": "true"})[0])
            took, other = burrow.create()
            peer.append(took)
            burrow.destroy(other)
    return Comparison(ours, peer)


@contextmanager
def plain_client(context):
    """On plain folders, which is what a host without btrfs has."""
    with context.folder() as folder:
        wrapper = Path(folder, "without-btrfs")
        wrapper.write_text(f"#!/bin/sh\nmount --bind /dev/null {MKFS} && exec \"$@\"\n")
        wrapper.chmod(0o755)
        with control_plane.burrow(context, "--stock", 0,
                                  through=("unshare", "--mount", wrapper)) as burrow:
            if list((burrow.data / "pool").glob("*.btrfs")):
                raise RowFailed("the pool is no plain folder")
            yield Client(burrow)


ROWS = [
    Row("sync_first", "ms, 10,000 files", LESS, "cp -r and sync on the host", None, sync_first),
    Row("sync_second", "ms, nothing changed", LESS, "the first sync", Goal("ratio", "<=", 0.2),
        sync_second),
    Row("mount_write", "MB/s, 256 MB", MORE, "cp and sync beside the store", None, mount_write),
    Row("mount_read", "MB/s, 256 MB", MORE, "the object's file on the host", None, mount_read),
    Row("wake_offloaded", "ms, 10 MB", LESS, CREATE, None, wake_offloaded),
    Row("disk_fsync_plain", "SQLite commits/s", MORE, "the host's own filesystem", None,
        fsyncs_with(plain_client)),
]
