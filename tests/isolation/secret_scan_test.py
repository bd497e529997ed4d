#!/usr/bin/python3
# timeout: 600
"""A sandbox that uses buckets of an S3 store, the daemon's and one with keys of its user, holds no
credential: not in a file, an environment, a command line, the mount table, an open descriptor or the
memory of any process in it, its agent and whoever serves its mounts included. What finds nothing finds
what was planted in each of those places.

All of it is looked at from outside, as root: a scan inside would bring what it looks for."""

import base64
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, ControlPlane  # noqa: E402
from launcher import need_launcher  # noqa: E402
from outpost import groups_of  # noqa: E402
from scripted_model import KEY, ScriptedModel  # noqa: E402
from swift import Swift  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

BUCKET, OTHER_BUCKET = "bucket-of-the-daemon", "bucket-of-a-user"
NOT_FILES = ("proc", "sys", "usr")  # at the top of a sandbox: not files, or the host's own
CHUNK = 1 << 20
KEY_MIN = 16  # shorter contents of key files are no secrets
PLANTED = {
    "file": b"planted-in-a-file-of-it",
    "environment": b"planted-in-an-environment",
    "command line": b"planted-in-a-command-line",
    "mounts": b"planted-in-the-mount-table",
    "descriptor": b"planted-in-the-name-of-an-open-file",
    "memory": b"planted-in-a-variable-of-a-shell",
    "memory of PID 1": b"planted-in-a-session-of-the-agent",
}


# --- looking --------------------------------------------------------------------------------------


def processes_of(plane, box):
    """Pids of all its processes, the agent's first; also of those that are in one of its namespaces
    and not in its groups."""
    pids = set()
    for group in groups_of(plane.cgroup):
        if f"/{box}" in group:
            with open(f"{group}/cgroup.procs", encoding="ascii") as file:
                pids |= {int(word) for word in file.read().split()}
    inside = {namespace(pid, kind) for pid in pids for kind in ("pid", "mnt")} - {None}
    pids |= {int(name) for name in os.listdir("/proc") if name.isdigit() and
             inside & {namespace(name, kind) for kind in ("pid", "mnt")}}
    return sorted(pids)


def namespace(pid, kind):
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None  # gone meanwhile


def words_in(file, words, length=None):
    """Those that are in the next `length` bytes; a word may lie across two reads."""
    overlap, tail, found = max(map(len, words)) - 1, b"", set()
    while length is None or length > 0:
        piece = file.read(CHUNK if length is None else min(CHUNK, length))
        if not piece:
            break
        text = tail + piece
        found |= {word for word in words if word in text}
        tail = text[-overlap:]
        length = None if length is None else length - len(piece)
    return found


def words_in_file(path, words):
    try:
        with open(path, "rb", buffering=0) as file:
            return words_in(file, words)
    except OSError:
        return set()  # gone meanwhile


def scan_files(pid, words, counts):
    top = f"/proc/{pid}/root"
    for folder, folders, names in os.walk(top):
        if folder == top:
            folders[:] = [name for name in folders if name not in NOT_FILES]
        # A mount of a bucket holds what its user has put there, and is not ours to open.
        folders[:] = [name for name in folders if not is_bucket(os.path.join(folder, name))]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                counts["files"] += 1
                for word in words_in_file(path, words):
                    yield "file", path[len(top):], word


def is_bucket(path):
    try:
        os.stat(path)
        return False
    except PermissionError:
        return True
    except OSError:
        return False


def scan_memory(pid, words, counts):
    with open(f"/proc/{pid}/maps", encoding="ascii", errors="replace") as file:
        regions = [line.split()[:2] for line in file]
    found = set()
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for limits, rights in regions:
            begin, end = (int(text, 16) for text in limits.split("-"))
            if not rights.startswith("r"):
                continue
            try:
                memory.seek(begin)
                found |= words_in(memory, words, end - begin)
                counts["memory"] += end - begin
            except (OSError, ValueError):
                continue  # no memory of a program: vvar, vsyscall
    return found


def scan_descriptors(plane, pid, words):
    """Words in the names of what is open; the daemon's own files count as one."""
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{name}").encode()
        except OSError:
            continue
        yield from (word for word in words if word in target)
        if target.startswith(f"{plane.data}/daemon".encode()):
            yield target


def scan(plane, box, words):
    """{(kind, where, word)}, and how much was looked at."""
    pids = processes_of(plane, box)
    counts = {"processes": len(pids), "files": 0, "memory": 0}
    found = set(scan_files(pids[0], words, counts))
    for pid in pids:
        inside = f"pid {pid}"
        for kind, names in (("environment", ("environ",)), ("command line", ("cmdline",)),
                            ("mounts", ("mounts", "mountinfo", "mountstats"))):
            for name in names:
                found |= {(kind, inside, word) for word in words_in_file(f"/proc/{pid}/{name}", words)}
        try:
            found |= {("descriptor", inside, word) for word in scan_descriptors(plane, pid, words)}
            for word in scan_memory(pid, words, counts):
                found.add(("memory of PID 1" if pid == pids[0] else "memory", inside, word))
        except (FileNotFoundError, ProcessLookupError):  # a command's supervisor that was just ending
            if os.path.exists(f"/proc/{pid}"):
                raise
    return found, counts


# --- the sandbox ----------------------------------------------------------------------------------


def secrets_of(plane, swift):
    """All that must not be inside, in the spellings it could have there."""
    plain = [swift.secret_key, swift.access_key, swift.endpoint.split("//")[1], BUCKET, OTHER_BUCKET,
             plane.key]
    words = {word.encode() for word in plain}
    words |= {base64.b64encode(word) for word in words}
    for folder, _, names in os.walk(f"{plane.data}/daemon/keys"):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                key = file.read().strip()
            words |= {key, key.hex().encode()} if len(key) >= KEY_MIN else set()
    return words


def plant(plane, box):
    """One word at each place, as a careless user would."""
    def text(kind):
        return PLANTED[kind].decode()
    at = f"{NATIVE}/sandboxes/{box}"
    plane.call("PUT", f"{at}/files/tmp/notes", b"a: " + PLANTED["file"])
    plane.call("POST", f"{at}/mounts", {"path": f"/{text('mounts')}", "bucket": BUCKET})
    plane.execute(box, f"{'X=' + text('environment')} sleep 1000 >/dev/null 2>&1 &")
    plane.execute(box, f"bash -c 'sleep 1000; : {text('command line')}' >/dev/null 2>&1 &")
    name = f"/tmp/{text('descriptor')}"
    plane.execute(box, f"touch {name}; sleep 1000 <{name} >/dev/null 2>&1 &")
    plane.call("POST", f"{at}/sessions", {"id": "s", "env": {"Y": text("memory of PID 1")}})
    plane.execute(box, f"Z={text('memory')}", sessionId="s")


@test
def no_credential_is_in_a_sandbox_and_planted_ones_are_found():
    need_launcher()
    if not os.path.exists("/dev/fuse"):
        skip("/dev/fuse")
    with Swift() as swift:
        for bucket in (BUCKET, OTHER_BUCKET):
            swift.make_bucket(bucket)
        with ControlPlane("--stock", "0", "--objects", "s3", "--s3-endpoint", swift.endpoint,
                          "--s3-bucket", BUCKET, "--s3-access-key", swift.access_key, "--s3-region",
                          swift.region, "--mount-networks", "127.0.0.0/8",
                          environment={"BURROW_S3_SECRET_KEY": swift.secret_key}) as plane:
            look_at(plane, swift)


def look_at(plane, swift):
    box = plane.create("box", network="none")["id"]
    at = f"{NATIVE}/sandboxes/{box}"
    plane.call("POST", f"{at}/mounts", {"path": "/persist", "bucket": "data"}, timeout=60)
    plane.call("POST", f"{at}/mounts", {
        "path": "/theirs", "bucket": OTHER_BUCKET, "endpoint": swift.endpoint, "region": swift.region,
        "accessKeyId": swift.access_key, "secretAccessKey": swift.secret_key}, timeout=60)
    for place in ("/persist", "/theirs"):
        done = plane.execute(box, f"echo x > {place}/a && cat {place}/a", timeout=60)
        equal(done["stdout"], "x\n", f"a file in {place}: {done}")
    plane.call("POST", f"{at}/backups", {}, timeout=60)
    plane.execute(box, "true", sessionId="s0")
    found, counts = scan(plane, box, secrets_of(plane, swift))
    print(f"# looked at {counts}", flush=True)
    equal(found, set(), "credentials")
    plant(plane, box)
    found, counts = scan(plane, box, set(PLANTED.values()))
    for kind, word in PLANTED.items():
        assert any((kind, word) == (one[0], one[2]) for one in found), f"not found: {kind} in {found}"
    plane.call("DELETE", at)


# --- credentials of the egress broker ---------------------------------------------------------------


def spellings(*secrets):
    """As they are, and as a header or a database could have them."""
    plain = {secret.encode() for secret in secrets}
    return plain | {base64.b64encode(word) for word in plain} | {word.hex().encode() for word in plain}


def kept_by(plane, words):
    """Files of the daemon's own, but for its keys, and its log, in which one of the words is."""
    found = {("log", "log", word) for word in words if word in plane.log().encode()}
    for folder, folders, names in os.walk(f"{plane.data}/daemon"):
        folders[:] = [name for name in folders if name != "keys"]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path):
                found |= {("kept", path, word) for word in words_in_file(path, words)}
    return found


@test
def no_credential_that_was_put_into_requests_is_in_a_sandbox_or_readable_on_disk():
    need_launcher()
    secret = "planted-credential-for-a-host-of-the-outside"
    words = spellings(KEY, secret)
    with ScriptedModel() as model, ControlPlane("--stock", "0", "--model-upstreams",
                                                f"anthropic={model.url}/v1,openai={model.url}/v1") as plane:
        for name, body in (("model", {"kind": "anthropic", "value": KEY}), ("chat", {"kind": "openai", "value": KEY}),
                           ("host", {"kind": "basic", "value": f"me:{secret}", "hosts": ["host.test"]})):
            plane.call("PUT", f"{NATIVE}/credentials/{name}", body)
        box = plane.create("agent", network="none", egress={
            "rules": [{"host": "host.test", "credential": "host"}],
            "models": {"anthropic": "model", "openai": "chat"}})["id"]
        at = f"{NATIVE}/sandboxes/{box}"
        for path in ("$ANTHROPIC_BASE_URL/v1/messages", "$OPENAI_BASE_URL/chat/completions"):
            done = plane.execute(box, "curl -sS -d '{\"model\":\"m\",\"stream\":true,\"messages\":"
                                      f"[{{\"role\":\"user\",\"content\":\"hi\"}}]}}' {path} | tee -a /workspace/told")
            assert "You" in done["stdout"], done
        equal(model.questions[-1].key, KEY, "what the model was shown")
        plane.execute(box, "curl -s https://host.test/; env > /workspace/variables; sleep 1000 >/dev/null 2>&1 &")
        plane.call("POST", f"{at}/snapshots", {"name": "kept"}, timeout=60)
        plane.call("POST", f"{at}/backups", {}, timeout=60)
        plane.call("POST", f"{NATIVE}/snapshots/kept/fork", {"name": "copy"}, timeout=60)
        for one in (box, plane.sandbox("copy")["id"]):
            found, counts = scan(plane, one, words)
            print(f"# looked at {counts}", flush=True)
            equal(found, set(), "credentials inside")
        equal(kept_by(plane, words), set(), "credentials on disk and in the log")
        told = [plane.ask("GET", path).body for path in (
            f"{NATIVE}/credentials", f"{NATIVE}/events?limit=1000", f"{at}/egress", f"{NATIVE}/audit", "/metrics", at)]
        equal([word for word in words for body in told if word in body], [], "credentials in answers")
        # What finds nothing finds what a careless user puts there.
        plane.call("PUT", f"{at}/files/tmp/notes", KEY.encode())
        plane.execute(box, f"X={secret} sleep 1000 >/dev/null 2>&1 &")
        found, _ = scan(plane, box, words)
        equal({("file", KEY.encode()), ("environment", secret.encode())} - {(one[0], one[2]) for one in found}, set(),
              f"planted ones that were not found in {found}")
        plane.call("DELETE", at)


main()
