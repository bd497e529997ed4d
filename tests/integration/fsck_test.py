#!/usr/bin/python3
# timeout: 600
"""`burrow fsck` against the daemon with real sandboxes and a folder as its object store: what is there is
fine, what is taken away or changed behind its back is lost, what belongs to nobody is garbage; nothing is
changed by looking. `burrow gc` takes the garbage away. One daemon serves all tests, in their order."""

import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, main_with_plane  # noqa: E402
from host_mounts import delete_disk  # noqa: E402
from program import program, wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
UUID = "11111111-2222-4333-8444-555555555555"


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def objects(*parts):
    return os.path.join(PLANE.data, "daemon", "objects", *parts)


def fsck(deep=False):
    """What it says of each: {(is, what, name): detail}."""
    found = PLANE.call("POST", f"{NATIVE}/fsck", {"deep": deep}, timeout=60)
    equal(found["lost"] + found["garbage"], len(found["findings"]), "findings are counted")
    assert not found["truncated"], found
    return {(one["is"], one["what"], one["name"]): one["detail"] for one in found["findings"]}


def burrow(*words):
    environment = {**os.environ, "BURROW_URL": f"http://{PLANE.address}", "BURROW_API_KEY": PLANE.key}
    return subprocess.run([program("burrow"), *words], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=60, text=True, check=False)


class Away:
    """A file that is not there, for a while."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        os.rename(self.path, f"{PLANE.data}/away")

    def __exit__(self, *_):
        os.rename(f"{PLANE.data}/away", self.path)


def flip(path):
    """One bit, behind the store's back: the attributes of the file stay."""
    with open(path, "r+b") as file:
        first = file.read(1)[0]
        file.seek(0)
        file.write(bytes([first ^ 1]))


@test
def what_is_there_is_fine():
    PLANE.create("plain")
    PLANE.create("deep", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("deep", "head -c 3000000 /dev/urandom > /workspace/noise")
    PLANE.execute("plain", "seq 1000 > /workspace/numbers")
    PLANE.call("POST", of("plain", "/snapshots"), {"name": "shot"})
    PLANE.call("POST", of("plain", "/backups"), {"name": "kept"}, timeout=60)
    PLANE.call("POST", of("plain", "/sync"), {}, timeout=60)
    PLANE.call("POST", of("deep", "/sleep"))
    wait_until(lambda: PLANE.sandbox("deep")["tier"] == "offloaded", "it is offloaded")
    equal(fsck(), {}, "findings")
    found = PLANE.call("POST", f"{NATIVE}/fsck", {"deep": True}, timeout=60)
    equal((found["findings"], found["lost"], found["garbage"]), ([], 0, 0), "findings")
    counts = {kind: found[kind] for kind in ("sandboxes", "snapshots", "layers", "backups",
                                             "workspaces")}
    equal(counts, {"sandboxes": 2, "snapshots": 1, "layers": 1, "backups": 1, "workspaces": 1},
          "what was looked at")
    assert found["bytesRead"] > 3000000, found
    done = burrow("fsck")
    equal((done.returncode, done.stderr), (0, ""), done.stdout)
    assert "0 lost, 0 garbage" in done.stdout, done.stdout


@test
def an_object_that_is_gone_or_changed_is_lost():
    layer, = glob.glob(objects("layers", "*", "*"))
    backup, = glob.glob(objects("backups", "*"))
    name = os.path.relpath(layer, objects("layers"))
    with Away(layer):
        equal([key for key in fsck()], [("lost", "layer", name)], "a layer")
        done = burrow("fsck")
        equal(done.returncode, 1, done.stdout)
        assert f"lost: layer {name}: " in done.stdout, done.stdout
    with Away(f"{backup}/data.sqsh"):
        equal([key for key in fsck()], [("lost", "backup", os.path.basename(backup))], "a backup")
    with Away(glob.glob(objects("manifests", "*"))[0]):
        equal([key for key in fsck()],
              [("lost", "workspace", PLANE.sandbox("plain")["id"])], "a workspace")
    for path, lost in ((layer, ("lost", "layer", name)),
                       (f"{backup}/data.sqsh", ("lost", "backup", os.path.basename(backup)))):
        flip(path)
        equal(fsck(), {}, "nobody reads it")
        equal([key for key in fsck(deep=True)], [lost], "it is read")
        flip(path)
    equal(fsck(deep=True), {}, "all is well again")
    PLANE.execute("deep", "true", timeout=60)  # nothing was changed by looking


@test
def a_disk_or_snapshot_that_is_gone_is_lost():
    box = PLANE.create("doomed")["id"]
    shot = PLANE.call("POST", of("doomed", "/snapshots"), {"name": "doomed"})["id"]
    PLANE.call("POST", of("doomed", "/stop"))
    for folder, what, name in (("snapshots", "snapshot", shot), ("disks", "sandbox", box)):
        delete_disk(PLANE.data, f"{folder}/{name}")
        assert ("lost", what, name) in fsck(), fsck()
    PLANE.call("DELETE", f"{NATIVE}/snapshots/{shot}")
    PLANE.call("DELETE", of("doomed"))
    equal(fsck(), {}, "nobody promises it any more")


@test
def what_belongs_to_nobody_is_garbage_and_gc_takes_it_away():
    owner = os.listdir(objects("layers"))[0]
    strangers = [f"layers/{owner}/{'0' * 64}", f"backups/{UUID}/data.sqsh"]
    for key in strangers:
        os.makedirs(os.path.dirname(objects(key)), exist_ok=True)
        with open(objects(key), "wb") as file:
            file.write(b"hello")
        os.chown(objects(key), os.stat(objects()).st_uid, -1)
        os.chown(os.path.dirname(objects(key)), os.stat(objects()).st_uid, -1)
    equal({key for key in fsck() if key[2] in strangers},
          {("garbage", "object", key) for key in strangers}, "findings")
    done = burrow("fsck")
    equal(done.returncode, 0, "garbage is no loss")
    PLANE.call("POST", f"{NATIVE}/gc", {"grace": "1h"})
    assert all(os.path.exists(objects(key)) for key in strangers), "they are too young"
    gone = PLANE.call("POST", f"{NATIVE}/gc", {"grace": 0})
    equal(gone["objects"], 1, "objects of backups")
    assert gone["layers"] >= 1, gone
    assert not any(os.path.exists(objects(key)) for key in strangers), "they are there"
    equal(fsck(deep=True), {}, "what is left is fine")


@test
def only_administrators_may_look():
    stranger = PLANE.user("stranger")
    equal(PLANE.ask("POST", f"{NATIVE}/fsck", {}, key=stranger).status, 403, "status")
    equal(PLANE.ask("POST", f"{NATIVE}/fsck", {"depth": 1}).status, 400, "an unknown field")


sys.exit(main_with_plane("fsck", "--stock", "0"))
