#!/usr/bin/python3
# timeout: 600
"""Sleep in tiers, down to the object store and back, against the daemon with real sandboxes and a
folder as its object store. One daemon serves all tests; each test has sandboxes of its own."""

import glob
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from host_mounts import pool_store  # noqa: E402
from http_raw import request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
CACHE = 16 << 20
SQUASH_ABOVE = 3


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def events(name):
    page = PLANE.call("GET", of(name, "/events?limit=100"))
    return [one["type"] for one in page["events"]]


def tier(name):
    return PLANE.sandbox(name)["tier"]


def offload(name):
    """Put it to sleep, and wait until its disk is only in the object store."""
    PLANE.call("POST", of(name, "/sleep"))
    wait_until(lambda: tier(name) == "offloaded", f"{name} is offloaded")


def offloads(name):
    """How many layers its disk had each time."""
    page = PLANE.call("GET", of(name, "/events?limit=100"))
    return [one["data"]["layers"] for one in page["events"] if one["type"] == "sandbox.offloaded"]


def stored_bytes():
    return sum(os.path.getsize(one) for one in layers())


def collect(**how):
    """Garbage is not collected while a disk is on its way: again until it is."""
    done = []

    def is_done():
        answer = PLANE.ask("POST", f"{NATIVE}/gc", how)
        if answer.status == 503:
            return False
        done.append(json.loads(answer.body))
        return True
    wait_until(is_done, "garbage is collected")
    return done[0]


def fsck():
    found = PLANE.call("POST", f"{NATIVE}/fsck", {"deep": True}, timeout=60)
    equal((found["lost"], [one for one in found["findings"] if one["is"] == "lost"]), (0, []), "lost")


def layers():
    return glob.glob(os.path.join(PLANE.data, "daemon", "objects", "layers", "*", "*"))


@test
def any_request_wakes_it_from_the_store_as_it_was():
    box = PLANE.create("deep", env={"GREETING": "hello"}, hibernateAfter="100ms", offloadAfter="100ms",
                       startup=["echo run >> /workspace/runs"])
    PLANE.execute("deep", "mkdir -p /srv/work; cd /srv/work; export HERE=1", sessionId="mine")
    PLANE.execute("deep", "seq 100000 > /srv/work/numbers; ln -s numbers /srv/work/link; "
                          "chmod 640 /srv/work/numbers; rm -f /etc/motd")
    port = PLANE.call("POST", of("deep", "/ports"), {"port": 8080})
    wait_until(lambda: PLANE.execute("deep", "cat /workspace/runs")["stdout"] == "run\n", "startup")
    offload("deep")
    equal(PLANE.sandbox("deep")["status"], "hibernated", "status")
    assert layers(), "nothing is in the store"

    answer = PLANE.execute("deep", "pwd; echo $HERE; echo $GREETING", sessionId="mine", timeout=60)
    equal(answer["stdout"].split(), ["/srv/work", "1", "hello"], "session and environment")
    answer = PLANE.execute("deep", "tail -1 link; stat -c %a numbers; test -e /etc/motd || echo no",
                           sessionId="mine")
    equal(answer["stdout"].split(), ["100000", "640", "no"], "files")
    after = PLANE.sandbox("deep")
    equal((after["id"], after["tier"]), (box["id"], "running"), "id and tier")
    ports = PLANE.call("GET", of("deep", "/ports"))["ports"]
    equal([one["token"] for one in ports], [port["token"]], "the port's token")
    wait_until(lambda: PLANE.execute("deep", "cat /workspace/runs")["stdout"] == "run\nrun\n",
               "startup again")
    told = events("deep")
    for kind in ("sandbox.hibernated", "sandbox.offloaded", "sandbox.restored", "sandbox.woken"):
        assert kind in told, told


@test
def what_is_written_after_a_wake_goes_to_the_store_and_back_too():
    PLANE.create("twice", hibernateAfter="100ms", offloadAfter="100ms")
    for round_number in range(2):
        PLANE.execute("twice", f"echo {round_number} >> /workspace/log", timeout=60)
        offload("twice")
    equal(PLANE.execute("twice", "cat /workspace/log", timeout=60)["stdout"], "0\n1\n", "log")


@test
def a_restart_of_the_daemon_keeps_it_offloaded():
    PLANE.create("kept", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("kept", "echo here > /workspace/file")
    offload("kept")
    PLANE.stop()
    PLANE.start()
    equal(tier("kept"), "offloaded", "tier")
    equal(PLANE.execute("kept", "cat /workspace/file", timeout=60)["stdout"], "here\n", "file")


@test
def a_store_that_takes_nothing_leaves_the_disk_here_and_is_told():
    folder = os.path.join(PLANE.data, "daemon", "objects", "layers")
    PLANE.create("full", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("full", "echo here > /workspace/file; date +%N > /workspace/own")
    os.rename(folder, folder + ".away")
    with open(folder, "wb"):
        pass  # a file where the store wants a folder
    try:
        PLANE.call("POST", of("full", "/sleep"))
        wait_until(lambda: "sandbox.save_failed" in events("full"), "it is told")
        box = PLANE.sandbox("full")
        equal((box["status"], box["tier"]), ("hibernated", "hibernated"), "status and tier")
        assert "could not be stored" in box["reason"], box["reason"]
        equal(PLANE.execute("full", "cat /workspace/file")["stdout"], "here\n", "file")
    finally:
        os.unlink(folder)
        os.rename(folder + ".away", folder)


def is_usable(name):
    try:
        return PLANE.execute(name, "true", timeout=60)["exitCode"] == 0
    except Refused as refusal:
        assert "tried again in" in refusal.body["error"]["message"], refusal
        return False


@test
def a_layer_that_was_changed_is_refused_and_stays_where_it_is():
    before = set(layers())
    PLANE.create("spoilt", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("spoilt", "head -c 100000 /dev/urandom > /workspace/noise")
    offload("spoilt")
    layer = max(set(layers()) - before, key=os.path.getsize)
    with open(layer, "r+b") as file:
        good = file.read()
        file.seek(len(good) // 2)
        file.write(bytes([good[len(good) // 2] ^ 1]))
    for _ in range(2):
        try:
            PLANE.execute("spoilt", "true", timeout=60)
            raise AssertionError("a spoilt disk was used")
        except Refused as refusal:
            assert refusal.status >= 500, refusal
            assert "brought back" in refusal.body["error"]["message"], refusal
    box = PLANE.sandbox("spoilt")
    equal((box["status"], box["tier"]), ("hibernated", "offloaded"), "status and tier")
    assert "sandbox.restore_failed" in events("spoilt"), events("spoilt")
    with open(layer, "r+b") as file:
        file.write(good)
    wait_until(lambda: is_usable("spoilt"), "it is tried again, after a while")
    equal(PLANE.execute("spoilt", "stat -c %s /workspace/noise", timeout=60)["stdout"], "100000\n",
          "the good one")


@test
def whatever_lies_in_the_place_of_a_layer_is_no_disk():
    """Another's layer, a part, more, nothing, a link to a file of the host, a folder."""
    stored, eve = {}, PLANE.user("eve-layers")
    for name in ("swapped", "short", "empty", "longer", "link", "folder", "away"):
        before = set(layers())
        key = eve if name == "swapped" else None
        PLANE.create(name, key=key, hibernateAfter="100ms", offloadAfter="100ms")
        PLANE.execute(name, f"head -c 50000 /dev/urandom > /workspace/noise; echo {name} > /workspace/name", key=key)
        PLANE.call("POST", of(name, "/sleep"), key=key)
        wait_until(lambda name=name, key=key: PLANE.sandbox(name, key)["tier"] == "offloaded", f"{name} is offloaded")
        stored[name] = max(set(layers()) - before, key=os.path.getsize)
    for path in stored.values():
        os.rename(path, path + ".good")
    with open(stored["short"] + ".good", "rb") as file:
        good = file.read()
    for name, data in (("short", good[:-1]), ("empty", b""), ("longer", None)):
        with open(stored[name], "wb") as file:
            if data is None:
                with open(stored[name] + ".good", "rb") as whole:
                    data = whole.read() + b"\0"
            file.write(data)
    shutil.copy(stored["longer"] + ".good", stored["swapped"])
    os.symlink("/etc/passwd", stored["link"])
    os.mkdir(stored["folder"])
    for name in stored:
        answer = PLANE.ask("POST", of(name, "/exec"), {"command": "true"}, key=eve if name == "swapped" else None,
                           timeout=60)
        assert (answer.status == 410 or answer.status >= 500) and b"root:" not in answer.body, (name, answer)
    for name, path in stored.items():
        if name == "folder":
            os.rmdir(path)
        os.replace(path + ".good", path)
    for name in stored:
        key = eve if name == "swapped" else None
        wait_until(lambda name=name, key=key: PLANE.ask("POST", of(name, "/exec"), {"command": "true"},
                                                        key=key).status == 200, f"{name} is tried again")
        equal(PLANE.execute(name, "cat /workspace/name", key=key)["stdout"], f"{name}\n", "what is in it")
        PLANE.call("DELETE", of(name), key=key)


@test
def an_offloaded_one_is_its_owners_alone():
    """Nobody else can wake it, read it, make something of it or learn that it is there; nor can a key
    for another sandbox of its owner, or whoever has a preview's URL."""
    ann, eve = PLANE.user("ann-offloaded"), PLANE.user("eve-offloaded")
    box = PLANE.create("hers", key=ann, hibernateAfter="100ms", offloadAfter="100ms")["id"]
    other = PLANE.create("another", key=ann)["id"]
    narrow = PLANE.call("POST", f"{NATIVE}/keys", {"name": "n", "scope": "sandbox", "sandbox": other}, key=ann)["key"]
    PLANE.execute("hers", "echo secret > /workspace/secret", key=ann)
    shot = PLANE.call("POST", of("hers", "/snapshots"), {"name": "hershot"}, key=ann)["id"]
    port = PLANE.call("POST", of("hers", "/ports"), {"port": 8080}, key=ann)
    PLANE.call("POST", of("hers", "/sleep"), key=ann)
    wait_until(lambda: PLANE.sandbox("hers", ann)["tier"] == "offloaded", "it is offloaded")
    asked = [("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/start"), ("POST", "/wake"), ("POST", "/touch"),
             ("POST", "/stop"), ("POST", "/sleep"), ("GET", "/stats"), ("POST", "/exec"), ("POST", "/fork"),
             ("POST", "/rollback"), ("GET", "/diff?from=hershot"), ("POST", "/snapshots"), ("POST", "/backups"),
             ("POST", "/sync"), ("GET", "/files/workspace/secret"), ("GET", "/archive?path=/workspace"),
             ("GET", "/ports"), ("POST", "/mounts")]
    bodies = {"/exec": {"command": "true"}, "/rollback": {"snapshot": shot}, "/mounts": {"path": "/m", "bucket": "b"},
              "": {"labels": {}}}
    for key in (eve, narrow):
        for name in ("hers", box):
            for method, path in asked:
                body = None if method in ("GET", "DELETE") else bodies.get(path, {})
                answer = PLANE.ask(method, of(name, path), body, key=key)
                assert answer.status == 404 or (key == narrow and answer.status == 403), (method, path, answer)
                assert b"secret" not in answer.body, answer
            told = PLANE.ask("GET", of(name, "/events"), key=key)  # as of one that never was
            assert told.status in (403, 404) or json.loads(told.body)["events"] == [], told
        for path, body in ((f"/snapshots/{shot}/fork", {}), ("/sandboxes", {"snapshot": shot}),
                           ("/sandboxes", {"from": shot}), ("/snapshots/hershot/fork", {})):
            answer = PLANE.ask("POST", NATIVE + path, body, key=key)
            assert answer.status in (400, 403, 404), (path, answer)
        told = PLANE.ask("GET", f"{NATIVE}/sandboxes", key=key).body + PLANE.ask("GET", f"{NATIVE}/snapshots", key=key).body
        assert box.encode() not in told and shot.encode() not in told, told
    answer = request(PLANE.address, "GET", "/", [("Host", port["url"].split("/")[2])])
    equal(answer.status, 410, "its preview")
    equal(PLANE.sandbox("hers", ann)["tier"], "offloaded", "tier: nobody woke it")
    equal(PLANE.execute("hers", "cat /workspace/secret", key=ann, timeout=60)["stdout"], "secret\n", "to its owner")
    for name in ("hers", "another"):
        PLANE.call("DELETE", of(name), key=ann)


@test
def a_snapshot_of_an_offloaded_one_has_its_files():
    PLANE.create("seen", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("seen", "echo here > /workspace/file")
    offload("seen")
    shot = PLANE.call("POST", of("seen", "/snapshots"), {}, timeout=60)
    fork = PLANE.call("POST", f"{NATIVE}/snapshots/{shot['id']}/fork", {"name": "copy"})
    equal(len(fork["sandboxes"]), 1, "forks")
    equal(PLANE.execute("copy", "cat /workspace/file")["stdout"], "here\n", "file")


@test
def layers_go_when_nobody_names_them_and_not_before():
    PLANE.create("named", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("named", "head -c 1000 /dev/urandom > /workspace/noise")
    offload("named")
    mine = max(layers(), key=os.path.getmtime)
    kept = collect()
    assert mine in layers() and kept["layers"] == 0, kept  # the others are too young
    collect(grace=0)
    assert mine in layers(), "a layer that is named is gone"
    PLANE.execute("named", "sha256sum /workspace/noise", timeout=60)
    collect(grace=0)
    assert mine in layers(), "what its disk will be told apart from is gone"
    PLANE.call("DELETE", of("named"))
    gone = collect(grace=0)
    assert mine not in layers() and gone["layers"] >= 1, gone
    stranger = PLANE.user("stranger")
    equal(PLANE.ask("POST", f"{NATIVE}/gc", {}, key=stranger).status, 403, "only administrators")


@test
def after_a_wake_only_what_changed_is_stored():
    PLANE.create("grown", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("grown", "cd /workspace; head -c 3000000 /dev/urandom > noise; mkdir -p old/deep; "
                           "echo x > old/deep/x; echo 1 > changed; ln changed linked; rm /etc/motd")
    noise = PLANE.execute("grown", "sha256sum /workspace/noise")["stdout"]
    offload("grown")
    before = stored_bytes()
    PLANE.execute("grown", "cd /workspace; rm -r old; mkdir old; echo y > old/y; echo 2 >> changed; "
                           "cp -p noise again; mv again noise; echo new > fresh", timeout=60)
    offload("grown")
    equal(offloads("grown"), [1, 2], "layers")
    assert stored_bytes() - before < 300000, (before, stored_bytes())
    answer = PLANE.execute("grown", "cd /workspace; ls; ls old; cat linked; stat -c %h changed; "
                                    "test -e /etc/motd || echo none", timeout=60)
    equal(answer["stdout"].split(), ["changed", "fresh", "linked", "noise", "old", "y", "1", "2",
                                     "2", "none"], "files")
    equal(PLANE.execute("grown", "sha256sum /workspace/noise")["stdout"], noise, "a large file")
    fsck()


@test
def forks_of_one_snapshot_share_what_is_stored():
    PLANE.create("tree", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("tree", "head -c 3000000 /dev/urandom > /workspace/noise")
    noise = PLANE.execute("tree", "sha256sum /workspace/noise")["stdout"]
    shot = PLANE.call("POST", of("tree", "/snapshots"), {"name": "tree"})
    PLANE.call("POST", f"{NATIVE}/snapshots/{shot['id']}/fork", {"name": "twig", "count": 2})
    for name in ("twig-1", "twig-2"):
        PLANE.execute(name, f"echo {name} > /workspace/name")
    before = stored_bytes()
    offload("twig-1")
    first = stored_bytes() - before
    offload("twig-2")
    second = stored_bytes() - before - first
    assert first > 2900000 and second < 300000, (first, second)
    collect(grace=0)
    for name in ("twig-1", "twig-2"):
        answer = PLANE.execute(name, "sha256sum /workspace/noise; cat /workspace/name", timeout=60)
        equal(answer["stdout"], f"{noise}{name}\n", "files")
    fsck()


def snapshot_state(name):
    return PLANE.call("GET", f"{NATIVE}/snapshots/{name}")["state"]


@test
def a_snapshot_that_is_only_in_the_store_opens_as_ever():
    PLANE.create("big", hibernateAfter="100ms", offloadAfter="100ms")
    PLANE.execute("big", f"head -c {2 * CACHE} /dev/urandom > /workspace/noise", timeout=60)
    noise = PLANE.execute("big", "sha256sum /workspace/noise", timeout=60)["stdout"]
    before = set(layers())
    shot = PLANE.call("POST", of("big", "/snapshots"), {"name": "bigshot"})["id"]
    PLANE.call("POST", f"{NATIVE}/snapshots/bigshot/fork", {"name": "bigfork"})
    offload("bigfork")
    wait_until(lambda: snapshot_state("bigshot") == "stored", "it is only in the store")
    wait_until(lambda: not os.path.exists(f"{pool_store(PLANE.data)}/snapshots/{shot}"),
               "it is not here any more")
    fsck()

    layer = max(set(layers()) - before, key=os.path.getsize)
    with open(layer, "r+b") as file:
        file.seek(CACHE)
        good = file.read(1)
        file.seek(CACHE)
        file.write(bytes([good[0] ^ 1]))
    try:
        PLANE.call("POST", f"{NATIVE}/snapshots/bigshot/fork", {"name": "spoilt"}, timeout=60)
        raise AssertionError("a spoilt layer was used")
    except Refused as refusal:
        assert refusal.status >= 500 and "brought back" in str(refusal.body), refusal
    equal(snapshot_state("bigshot"), "stored", "state")
    with open(layer, "r+b") as file:
        file.seek(CACHE)
        file.write(good)

    PLANE.call("POST", f"{NATIVE}/snapshots/bigshot/fork", {"name": "opened"}, timeout=60)
    equal(PLANE.execute("opened", "sha256sum /workspace/noise", timeout=60)["stdout"], noise, "file")
    PLANE.execute("big", "echo other > /workspace/noise; echo new > /workspace/new")
    told = PLANE.call("GET", of("big", "/diff?from=bigshot"), timeout=60)
    assert "workspace/new" in json.dumps(told), told
    wait_until(lambda: snapshot_state("bigshot") == "stored", "it left again")
    PLANE.call("POST", of("big", "/rollback"), {"snapshot": "bigshot"}, timeout=60)
    equal(PLANE.execute("big", "sha256sum /workspace/noise; ls /workspace", timeout=60)["stdout"],
          f"{noise}noise\n", "what it went back to")
    told = events("big")
    for kind in ("snapshot.stored", "snapshot.evicted", "snapshot.fetched", "snapshot.fetch_failed"):
        assert kind in told, (kind, told)


@test
def long_lists_become_one_layer():
    PLANE.create("long", hibernateAfter="100ms", offloadAfter="100ms")
    for number in range(SQUASH_ABOVE + 1):
        PLANE.execute("long", f"cd /workspace; echo {number} > {number}; rm -f {number - 2}", timeout=60)
        offload("long")
    equal(offloads("long"), list(range(1, SQUASH_ABOVE + 2)), "layers")
    wait_until(lambda: "sandbox.squashed" in events("long"), "it is squashed")
    equal(tier("long"), "offloaded", "tier")
    collect(grace=0)
    fsck()
    last = SQUASH_ABOVE
    equal(PLANE.execute("long", "cd /workspace; cat *", timeout=60)["stdout"].split(),
          [str(last - 1), str(last)], "files")


@test
def figures_are_told_by_tier():
    text = PLANE.ask("GET", "/metrics").body.decode()
    for name in ("burrow_tier_wake_seconds", "burrow_tier_sleep_seconds"):
        line = [one for one in text.splitlines() if one.startswith(f'{name}_count{{tier="offloaded"}}')]
        assert line and int(line[0].split()[1]) > 0, (name, line)


@test
def times_and_commands_are_checked_and_shown():
    box = PLANE.create("shown", freezeFor="5m", hibernateAfter=0, startup=["true"])
    equal((box["freezeFor"], box["hibernateAfter"], box["startup"]), (300, 0, ["true"]), "fields")
    assert "offloadAfter" not in box, box
    box = PLANE.call("PATCH", of("shown"), {"offloadAfter": "1h", "startup": []})
    equal((box["offloadAfter"], box.get("startup")), (3600, None), "changed")
    box = PLANE.call("PATCH", of("shown"), {"offloadAfter": None, "hibernateAfter": None})
    assert not {"offloadAfter", "hibernateAfter"} & set(box), box  # as the daemon's settings say
    equal(box["freezeFor"], 300, "what was not spoken of")
    for wrong in ({"startup": ["x"] * 17}, {"startup": [""]}, {"startup": ["x" * 9000]},
                  {"freezeFor": "soon"}, {"offloadAfter": -1}):
        try:
            PLANE.create(None, **wrong)
            raise AssertionError(f"{json.dumps(wrong)[:40]} was taken")
        except Refused as refusal:
            equal(refusal.status, 400, str(refusal))


sys.exit(main_with_plane("tiers", "--snapshot-cache", str(CACHE), "--squash-above", str(SQUASH_ABOVE)))
