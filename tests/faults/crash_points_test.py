#!/usr/bin/python3
# timeout: 900
"""The daemon dies at every named crash point (base/crash_point.h) once, in the middle of the operation
that passes there. Afterwards: what was acknowledged is so, what was under way has happened or has not,
every sandbox works or is gone, names can be used again, and nothing is left on the host.

A point is armed for its third time: two operations are acknowledged before, and a daemon that is
started again, with the same environment, gets through its recovery.

    BURROW_FULL=1        all points instead of every third
"""

import contextlib
import http.client
import os
import re
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, ControlPlane, Refused  # noqa: E402
from host_mounts import delete_disk  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import ROOT, wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, main, test  # noqa: E402
from traces import traces  # noqa: E402

PART = 3
NTH = 3
COMMITS = 12  # of a daemon that starts for the first time some are its own
SECONDS = 60.0

# How to get there: what is done before, the operation, and the statuses a sandbox may have afterwards
# when it was acknowledged, and when it was under way. None: it is gone.
ASLEEP = ("frozen", "hibernated")
OPERATIONS = {
    "create": ((), "create", ("running",), ("running", None)),
    "destroy": ((), "destroy", (None,), ("running", "stopped", None)),
    "sleep": ((), "sleep", ASLEEP, ("running", *ASLEEP)),
    "wake": (("sleep",), "wake", ("running",), ("running", *ASLEEP)),
    "stop": ((), "stop", ("stopped",), ("running", "stopped")),
    "start": (("stop",), "start", ("running",), ("running", "stopped")),
    "snapshot": ((), "snapshot", ("running",), ("running",)),
    "delete": (("snapshot",), "delete", ("running",), ("running",)),
    "fork": ((), "fork", ("running",), ("running",)),
    "forks": ((), "forks", ("running",), ("running",)),
    "rollback": (("snapshot",), "rollback", ("running",), ("running", "stopped")),
    "backup": ((), "backup", ("running",), ("running",)),
    "unbackup": (("backup",), "unbackup", ("running",), ("running",)),
    "restore": (("backup",), "restore", ("running",), ("running",)),
    "mount": ((), "mount", ("running",), ("running",)),
    "sync": ((), "sync", ("running",), ("running",)),
    "unsync": (("sync",), "sync/restore", ("running",), ("running",)),
}

# Points that are not called after their operation: which it is, and how often it passes there.
OTHERS = {
    "fork.copied": ("forks", 1),
    "backup.delete.kept": ("unbackup", 1),
    "backup.delete.objects": ("unbackup", 1),
    "backup.restore.restored": ("restore", 1),
    "workspace.sync.begun": ("sync", 1),
    "workspace.sync.snapshot": ("sync", 1),
    "workspace.sync.stored": ("sync", 1),
    "workspace.sync.kept": ("sync", 1),
    "workspace.restore.restored": ("unsync", 1),
    "objects.put.before": ("backup", 2),
    "objects.put.moved": ("backup", 2),
}


def points_in_source():
    """Every name that is in the code of the daemon."""
    found = set()
    for folder, _, names in os.walk(os.path.join(ROOT, "src")):
        if "launcher" in os.path.relpath(folder, ROOT).split(os.sep):
            continue  # launcher_points_test.py
        for name in names:
            if name.endswith(".c") and not name.endswith("_test.c"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    found |= set(re.findall(r'(?:CRASH_POINT\(|\.point = )"([^"]+)"', file.read()))
    return found


class Crashed(Exception):
    """No answer came."""


class Doomed(ControlPlane):
    """A daemon that dies at a point."""

    dies_again = False  # what it does after a start leads to the point

    def __init__(self, point, nth, *flags):
        super().__init__("--stock", "0", *flags, environment={"BURROW_CRASH_POINT": f"{point}:{nth}"})
        self.filled = {}  # name: what is in its file
        self.labels = {}  # name: its label `of`, where that is another name
        self.boxes = {}  # name: (id, statuses it may have)
        self.snapshots = {}  # name: states it may have; None: it is gone
        self.backups = {}  # name: whether it is there; None: it may be
        self.sessions = set()  # names of those with a session that must not be lost

    def ask_for(self, method, path, body=None):
        try:
            return self.call(method, path, body, timeout=SECONDS)
        except (OSError, EOFError, http.client.HTTPException):
            raise Crashed from None

    def do(self, verb, name):
        at = f"{NATIVE}/sandboxes/{name}"
        if verb == "create":
            return self.ask_for("POST", f"{NATIVE}/sandboxes",
                                {"name": name, "labels": {"of": name}, "network": "none"})
        if verb == "destroy":
            return self.ask_for("DELETE", at)
        if verb in ("snapshot", "delete", "fork", "forks", "rollback"):
            return self.do_with_disk(verb, name, at)
        if verb in ("backup", "unbackup", "restore"):
            return self.do_with_backup(verb, name, at)
        if verb == "mount":
            return self.ask_for("POST", f"{at}/mounts", {"path": "/data", "bucket": "data"})
        return self.ask_for("POST", f"{at}/{verb}", {})

    def do_with_disk(self, verb, name, at):
        """What is there for sure once it is acknowledged, and what may be there before."""
        if verb in ("fork", "forks"):
            return self.do_fork(name, at, 2 if verb == "forks" else 1)
        if verb == "rollback":
            return self.ask_for("POST", f"{at}/rollback", {"snapshot": name})
        self.snapshots[name] = ("ready", None)
        if verb == "snapshot":
            answer = self.ask_for("POST", f"{at}/snapshots", {"name": name})
        else:
            answer = self.ask_for("DELETE", f"{NATIVE}/snapshots/{name}")
        self.snapshots[name] = ("ready",) if verb == "snapshot" else (None,)
        return answer

    def do_fork(self, name, at, count):
        """One has the name, several are numbered; labels are those of the origin."""
        forks = [f"{name}f"] if count == 1 else [f"{name}f-{number + 1}" for number in range(count)]
        for fork in forks:
            self.boxes[fork] = (None, ("running", None))
            self.filled[fork] = name
            self.labels[fork] = name
        made = self.ask_for("POST", f"{at}/fork", {"name": f"{name}f", "count": count})["sandboxes"]
        for box in made:
            self.boxes[box["name"]] = (box["id"], ("running",))
        return made[0]

    def found_backups(self):
        """Name to id."""
        found = self.call("GET", f"{NATIVE}/backups?limit=1000", timeout=SECONDS)["backups"]
        return {one["name"]: one["id"] for one in found}

    def do_with_backup(self, verb, name, at):
        if verb == "restore":
            return self.ask_for("POST", f"{at}/restore", {"backup": self.found_backups()[name]})
        if verb == "backup":
            self.backups[name] = None
            answer = self.ask_for("POST", f"{at}/backups", {"name": name})
        else:
            gone = self.found_backups()[name]
            self.backups[name] = None
            answer = self.ask_for("DELETE", f"{NATIVE}/backups/{gone}")
        self.backups[name] = verb == "backup"
        return answer

    def make(self, name):
        """One with a file whose content is its name."""
        box = self.do("create", name)
        answer = self.ask("PUT", f"{NATIVE}/sandboxes/{name}/files/workspace/own", name.encode())
        assert answer.status < 300, answer
        self.boxes[name] = (box["id"], ("running",))
        self.filled[name] = name

    def open_session(self, name):
        """Where it is and what it exports is its own."""
        answer = self.execute(name, f"cd /tmp && export OWN={name}", sessionId="own", timeout=SECONDS)
        equal(answer["exitCode"], 0, "session")
        self.sessions.add(name)

    def revive(self):
        """The launcher starts the daemon again; then all of it is started again without the point."""
        if not self.dies_again:
            wait_until(self.is_ready, "the daemon is started again", SECONDS)
        doomed = self.daemon_pid
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        # It goes a moment after its launcher, and would answer until then.
        wait_until(lambda: not doomed or not os.path.exists(f"/proc/{doomed}"), "its end", SECONDS)
        del self.environment["BURROW_CRASH_POINT"]
        self.launch()
        wait_until(self.is_ready, "the launcher is started again", SECONDS)

    def statuses(self):
        found = self.call("GET", f"{NATIVE}/sandboxes?limit=1000", timeout=SECONDS)["sandboxes"]
        return {box["name"]: (box["id"], box["status"]) for box in found}

    # --- afterwards ------------------------------------------------------------------------------

    def check(self):
        """The ledger against what is there."""
        found = self.statuses()
        for name, (box, fine) in self.boxes.items():
            there = found.pop(name, (box, None))
            assert there[1] in fine, f"{name} is {there[1]}, not one of {fine}"
            if box and there[1]:
                equal(there[0], box, f"id of {name}")
            if there[1]:
                self.use(name, there[1], self.filled.get(name, ""))
            else:
                self.use_name_again(name, box)
        equal(found, {}, "sandboxes nobody asked for")
        self.check_snapshots()
        self.check_backups()
        self.check_promises()

    def check_promises(self):
        """Everything that is known of is there, byte by byte."""
        found = self.call("POST", f"{NATIVE}/fsck", {"deep": True}, timeout=SECONDS)
        lost = [one for one in found["findings"] if one["is"] == "lost"]
        equal((found["lost"], lost), (0, []), "what fsck says is lost")

    def found_snapshots(self):
        return self.call("GET", f"{NATIVE}/snapshots?limit=1000", timeout=SECONDS)["snapshots"]

    def check_snapshots(self):
        """Those that were acknowledged open; the others are whole, or not there."""
        found = {one["name"]: one["state"] for one in self.found_snapshots() if one["name"]}
        for name, fine in self.snapshots.items():
            assert found.get(name) in fine, f"snapshot {name} is {found.get(name)}, not of {fine}"
            if name not in found:
                continue
            opened = self.ask_for("POST", f"{NATIVE}/snapshots/{name}/fork", {})["sandboxes"][0]["id"]
            equal(self.execute(opened, "cat own", timeout=SECONDS)["stdout"], name, "what is in it")
            self.ask_for("DELETE", f"{NATIVE}/sandboxes/{opened}")

    def check_backups(self):
        """Those that are there can be restored, also those whose deletion was cut off."""
        found = self.found_backups()
        for name, is_there in self.backups.items():
            assert is_there in (None, name in found), f"backup {name}: {is_there}, {found}"
            if name not in found:
                continue
            box = self.do("create", f"{name}-restored")["id"]
            self.ask_for("POST", f"{NATIVE}/sandboxes/{box}/restore", {"backup": found[name]})
            equal(self.execute(box, "cat own", timeout=SECONDS)["stdout"], name, "what is in it")
            self.ask_for("DELETE", f"{NATIVE}/sandboxes/{box}")

    def use(self, name, status, content):
        """It works, and its disk is its own."""
        if status == "stopped":
            self.do("start", name)
        answer = self.execute(name, "cat own 2>/dev/null; echo .", timeout=SECONDS)
        equal(answer["stdout"].strip(), f"{content}.", f"what is in {name}")
        equal(self.sandbox(name)["labels"]["of"], self.labels.get(name, name), f"labels of {name}")
        if name in self.sessions:
            answer = self.execute(name, "echo $PWD $OWN", sessionId="own", timeout=SECONDS)
            equal(answer["stdout"].strip(), f"/tmp {name}", f"session of {name}")

    def use_name_again(self, name, box):
        self.labels.pop(name, None)
        again = self.do("create", name)
        assert again["id"] != box, f"{name} came back: {again}"
        self.use(name, "running", "")

    def check_traces(self):
        """Whatever is on the host belongs to a sandbox that is there."""
        def strangers():
            known = {box for box, _ in self.statuses().values()}
            known |= {one["id"] for one in self.found_snapshots()}
            found = traces(self.data, self.run, self.cgroup)
            return {kind: ids - known for kind, ids in found.items() if ids - known}
        wait_until(lambda: not strangers(), "nothing but known sandboxes on the host", SECONDS)
        disks = traces(self.data, self.run, self.cgroup)["disk"]
        missing = {box for box, _ in self.statuses().values()} - disks
        equal(missing, set(), "sandboxes whose disk was not found: this looks in the wrong place")


def provoke(plane, verb, before, acknowledged, unsure):
    """The operation on one sandbox after the other until the daemon is dead."""
    for number in range(NTH):
        name = f"box{number}"
        if verb != "create":
            plane.make(name)
        for step in before:
            plane.do(step, name)
    for number in range(NTH):
        name = f"box{number}"
        box = plane.boxes.get(name, (None,))[0]
        plane.boxes[name] = (box, unsure)
        try:
            answer = plane.do(verb, name)
        except Crashed:
            equal(number, NTH - 1, f"{verb} that the daemon died of")
            return
        plane.boxes[name] = (answer["id"] if verb == "create" else box, acknowledged)
    raise AssertionError(f"the daemon did not die of the {NTH}th {verb}")


def run_to_the_end(plane, provoked, settled=lambda: None):
    plane.start()
    try:
        daemon = plane.daemon_pid
        provoked()
        wait_until(lambda: plane.daemon_pid not in (None, daemon), "another daemon", SECONDS)
        plane.revive()
        settled()
        plane.check()
        plane.check_traces()
        for name in plane.statuses():
            plane.do("destroy", name)
        for one in plane.found_snapshots():
            plane.ask_for("DELETE", f"{NATIVE}/snapshots/{one['id']}")
        plane.check_traces()
        plane.stop()
    except BaseException:
        print("\n".join(f"# log: {line}" for line in plane.log().splitlines()[-30:]))
        raise
    finally:
        plane.kill()


# --- the points ----------------------------------------------------------------------------------


def point_of_domain(point):
    first, second = point.split(".")[:2]
    verb, times = OTHERS.get(point, (None, 1))
    if not verb:
        verb = second if first == "domain" or second == "delete" else first
    before, operation, acknowledged, unsure = OPERATIONS[verb]
    plane = Doomed(point, NTH * times)
    run_to_the_end(plane, lambda: provoke(plane, operation, before, acknowledged, unsure))


def point_of_hibernation(point):
    """Sleep that stops comes by itself, some time after sleep that freezes."""
    plane = Doomed(point, NTH, "--hibernate-after", "200ms")

    def provoked():
        daemon = plane.daemon_pid
        for number in range(NTH):
            plane.make(f"box{number}")
            plane.open_session(f"box{number}")
            plane.boxes[f"box{number}"] = (plane.boxes[f"box{number}"][0], ("running", *ASLEEP))
        for number in range(NTH):
            try:
                plane.do("sleep", f"box{number}")
            except Crashed:  # where nothing can be frozen it is the sleep itself
                break
        wait_until(lambda: plane.daemon_pid != daemon, "the daemon dies", SECONDS)
    run_to_the_end(plane, provoked)


def make_and_offload(plane, fine):
    """All of them into the object store, or until the daemon dies."""
    for number in range(NTH):
        plane.make(f"box{number}")
    for number in range(NTH):
        name = f"box{number}"
        plane.boxes[name] = (plane.boxes[name][0], fine)
        plane.do("sleep", name)


def point_of_offload(point):
    plane = Doomed(point, NTH, "--hibernate-after", "200ms", "--offload-after", "200ms")

    def provoked():
        daemon = plane.daemon_pid
        make_and_offload(plane, ("running", *ASLEEP))
        wait_until(lambda: plane.daemon_pid != daemon, "the daemon dies", SECONDS)
    run_to_the_end(plane, provoked)


def wait_for_offload(plane):
    for number in range(NTH):
        wait_until(lambda name=f"box{number}": plane.sandbox(name)["tier"] == "offloaded",
                   f"box{number} is in the object store", SECONDS)


def point_of_fetch(point):
    plane = Doomed(point, NTH, "--hibernate-after", "200ms", "--offload-after", "200ms")

    def provoked():
        make_and_offload(plane, ("running", *ASLEEP))
        wait_for_offload(plane)
        for number in range(NTH):
            try:
                plane.do("wake", f"box{number}")
            except Crashed:
                equal(number, NTH - 1, "wake that the daemon died of")
                return
        raise AssertionError("the daemon did not die")
    run_to_the_end(plane, provoked)


def point_of_collection(point):
    """Layers of sandboxes that are gone are garbage."""
    plane = Doomed(point, NTH, "--hibernate-after", "200ms", "--offload-after", "200ms")

    def provoked():
        make_and_offload(plane, (None,))
        wait_for_offload(plane)
        for number in range(NTH):
            plane.do("destroy", f"box{number}")
            try:
                found = plane.ask_for("POST", f"{NATIVE}/gc", {"grace": 0})
                equal(found["layers"], 1, "layers that nobody names")
            except Crashed:
                equal(number, NTH - 1, "collection that the daemon died of")
                return
        raise AssertionError("the daemon did not die")
    run_to_the_end(plane, provoked)


# Whatever is stored leaves this machine; lists of two layers are long.
LAYERED = ("--hibernate-after", "200ms", "--offload-after", "200ms", "--snapshot-cache", "1",
           "--squash-above", "1")


def fork_and_offload(plane, number):
    """A snapshot, and a sandbox made from it that goes to the object store: so does the snapshot."""
    name, fork = f"box{number}", f"box{number}f"
    plane.make(name)
    plane.do("snapshot", name)
    plane.snapshots[name] = ("ready", "stored")
    made = plane.ask_for("POST", f"{NATIVE}/snapshots/{name}/fork",
                         {"name": fork, "labels": {"of": fork}})["sandboxes"][0]
    plane.boxes[fork] = (made["id"], ("running", *ASLEEP))
    plane.filled[fork] = name
    plane.do("sleep", fork)


def point_of_stored_snapshot(point):
    plane = Doomed(point, NTH, *LAYERED)

    def is_stored(number):
        try:
            return plane.call("GET", f"{NATIVE}/snapshots/box{number}",
                              timeout=SECONDS)["state"] == "stored"
        except (OSError, EOFError, http.client.HTTPException):
            raise Crashed from None

    def provoked():
        daemon = plane.daemon_pid
        try:
            for number in range(NTH):
                fork_and_offload(plane, number)
                wait_until(lambda n=number: plane.daemon_pid != daemon or is_stored(n),
                           "the snapshot is only in the store", SECONDS)
                if plane.daemon_pid != daemon:
                    return
                opened = f"box{number}o"
                plane.boxes[opened] = (None, ("running", None))
                plane.filled[opened] = f"box{number}"
                made = plane.ask_for("POST", f"{NATIVE}/snapshots/box{number}/fork",
                                     {"name": opened, "labels": {"of": opened}})
                plane.boxes[opened] = (made["sandboxes"][0]["id"], ("running",))
        except Crashed:
            return  # what came back leaves again: some points are passed sooner than others
        wait_until(lambda: plane.daemon_pid != daemon, "the daemon dies", SECONDS)
    run_to_the_end(plane, provoked)


def point_of_squash(point):
    plane = Doomed(point, NTH, *LAYERED)

    def provoked():
        daemon = plane.daemon_pid
        make_and_offload(plane, ("running", *ASLEEP))
        wait_for_offload(plane)
        try:
            for number in range(NTH):
                plane.do("wake", f"box{number}")
                plane.do("sleep", f"box{number}")
        except Crashed:
            pass  # the first ones may be there already
        wait_until(lambda: plane.daemon_pid != daemon, "the daemon dies", SECONDS)
    run_to_the_end(plane, provoked)


def point_of_purge(point):
    """What was mirrored of a workspace goes beside the answer of its destroy."""
    plane = Doomed(point, NTH)

    def provoked():
        daemon = plane.daemon_pid
        for number in range(NTH):
            plane.make(f"box{number}")
            plane.do("sync", f"box{number}")
        for number in range(NTH):
            plane.boxes[f"box{number}"] = (plane.boxes[f"box{number}"][0], (None,))
            try:
                plane.do("destroy", f"box{number}")
            except Crashed:
                equal(number, NTH - 1, "the destroy of which the daemon died")
        wait_until(lambda: plane.daemon_pid != daemon, "the daemon dies", SECONDS)
    run_to_the_end(plane, provoked)


def point_of_rebuild(point):
    """Disks that are gone are made anew at wake, from mirrors."""
    plane = Doomed(point, NTH)

    def provoked():
        for number in range(NTH):
            plane.make(f"box{number}")
            plane.do("sync", f"box{number}")
            plane.do("stop", f"box{number}")
            box = plane.boxes[f"box{number}"][0]
            plane.boxes[f"box{number}"] = (box, ("running", "stopped"))
            delete_disk(plane.data, f"disks/{box}")
        daemon = plane.daemon_pid
        os.kill(daemon, signal.SIGKILL)
        wait_until(lambda: plane.daemon_pid not in (None, daemon), "another daemon", SECONDS)
        wait_until(plane.is_ready, "it is ready", SECONDS)
        for number in range(NTH):
            try:
                plane.do("start", f"box{number}")
            except Crashed:
                equal(number, NTH - 1, "start that the daemon died of")
                return
        raise AssertionError("the daemon did not die")
    run_to_the_end(plane, provoked)


def point_of_store(point):
    plane = Doomed(point, COMMITS)

    def provoked():
        for number in range(COMMITS + 1):
            name = f"box{number}"
            plane.boxes[name] = (None, ("running", None))
            try:
                box = plane.do("create", name)
            except Crashed:
                return
            except Refused as refused:
                raise AssertionError(f"{name}: {refused}") from None
            plane.boxes[name] = (box["id"], ("running",))
        raise AssertionError(f"the daemon lives after {COMMITS} commits")
    run_to_the_end(plane, provoked)


# --- agents --------------------------------------------------------------------------------------

# An agent that asks, or a checkout of a team: domain_crash_test.c and task_test.c die there.
ELSEWHERE = ("turn.asked", "team.base.made", "team.base.kept")
OVER = ("done", "failed", "cancelled", "partial")
AGENT = {"kind": "command", "command": "echo x >>/workspace/starts; echo 1"}
TASK = {**AGENT, "text": "count", "cleanup": "destroy"}
# What is asked for, and where the one thing that comes of it is found.
WORK = {"task": ("/tasks", {**TASK, "idempotencyKey": "once"}, "tasks"),
        "team": ("/teams", {**TASK, "members": [{"role": "a", "text": "1"}, {"role": "b", "text": "2"}]}, "teams"),
        "schedule": ("/schedules/news/run", {}, "tasks"),
        "turn": ("{talk}/turns", {"text": "count", "idempotencyKey": "once"}, "turns")}


class DoomedWithAgents(Doomed):
    """What agents were asked for is done once, or told as lost."""

    talk = None  # a conversation
    dies_again = True

    def ask_agents(self, verb, again=False):
        path, body, _ = WORK[verb]
        if verb == "schedule" and not again:
            self.ask_for("POST", f"{NATIVE}/schedules", {"name": "news", "cron": "0 0 1 1 *", "task": TASK})
        if verb == "turn" and not again:
            self.make("box0")
            made = self.ask_for("POST", f"{NATIVE}/sandboxes/box0/conversations", AGENT)
            self.talk = f"/sandboxes/box0/conversations/{made['id']}"
        self.ask_for("POST", NATIVE + path.format(talk=self.talk), body)

    def check_agents(self, verb):
        path, body, kind = WORK[verb]
        if "idempotencyKey" in body:
            self.ask_agents(verb, again=True)  # who was not answered asks again
        path = path.format(talk=self.talk).removesuffix("/schedules/news/run") or "/tasks"

        def all_over():
            found = self.call("GET", NATIVE + path, timeout=SECONDS)[kind]
            return all(one["state"] in OVER for one in found) and (found or verb != "task")
        wait_until(all_over, f"{kind} are over", SECONDS)
        assert len(self.call("GET", NATIVE + path)[kind]) <= 1, "it was asked for once"
        wait_until(lambda: not [name for name in self.statuses() if name not in self.boxes],
                   "sandboxes of tasks are taken away", SECONDS)
        if verb == "turn":
            starts = self.execute("box0", "cat /workspace/starts || true", timeout=SECONDS)["stdout"]
            assert starts in ("", "x\n"), f"the agent was started more than once: {starts!r}"


def point_of_agents(point):
    verb = point.partition(".")[0]
    plane = DoomedWithAgents(point, 1)

    def provoked():
        daemon = plane.daemon_pid
        with contextlib.suppress(Crashed):
            plane.ask_agents(verb)
        wait_until(lambda: plane.daemon_pid != daemon, "the daemon dies", SECONDS)
    run_to_the_end(plane, provoked, lambda: plane.check_agents(verb))


def how_to(point):
    if point.startswith(("turn.", "task.", "team.", "schedule.")):
        return point_of_agents
    if point in ("domain.sleep.saved", "domain.sleep.stopped"):
        return point_of_hibernation
    if point.startswith("rebuild."):
        return point_of_rebuild
    if point == "workspace.purge.objects":
        return point_of_purge
    if point.startswith("offload."):
        return point_of_offload
    if point.startswith(("snapshot.store.", "snapshot.evict.", "snapshot.fetch.")):
        return point_of_stored_snapshot
    if point.startswith("squash."):
        return point_of_squash
    if point.startswith("restore."):
        return point_of_fetch
    if point == "gc.rows":
        return point_of_collection
    return point_of_store if point.startswith("store.") else point_of_domain


def add_test(point):
    def dies_there():
        need_launcher()
        how_to(point)(point)
    dies_there.__name__ = f"a_daemon_may_die_at_{point.replace('.', '_')}"
    test(dies_there)


for each in sorted(points_in_source() - set(ELSEWHERE))[::1 if FULL else PART]:
    add_test(each)

main()
