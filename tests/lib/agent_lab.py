"""An image with the real OpenCode in it, and a scripted model that sandboxes without a network reach.

    with AgentLab("--sign-up", "open") as lab:          # a ControlPlane, its agent image prepared
        lab.model.script = [Say("four")]
        lab.call("POST", "/sandbox", {"id": "a"}, timeout=lab.PATIENCE)

The model listens on loopback inside every sandbox: its socket is made in the sandbox's own network, as
root can. Which of them are there is looked at all the time, so those that tasks make have it, too.
"""

import ctypes
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading

from control_plane import NATIVE, ControlPlane
from images import programs
from program import ROOT
from scripted_model import KEY, Handler, ScriptedModel, Server
from tap import skip

PORT = 9100
MODEL = {"providerID": "scripted", "modelID": "scripted"}
CONFIG = {
    "model": "scripted/scripted", "small_model": "scripted/scripted",
    "provider": {"scripted": {
        "npm": "@ai-sdk/openai-compatible", "name": "Scripted",
        "options": {"baseURL": f"http://127.0.0.1:{PORT}/v1", "apiKey": KEY},
        "models": {"scripted": {"name": "Scripted model", "tool_call": True,
                                "limit": {"context": 128000, "output": 8192}}}}}}
CLONE_NEWNET = 0x40000000
TOOLS = ("sh", "bash", "cat", "mkdir", "mv", "cp", "ls", "rm", "git", "env", "sleep", "echo", "true", "id", "wc")


def opencode():
    """The program, as packaging/install-clients puts it there; without it the test is skipped."""
    for path in (os.environ.get("BURROW_OPENCODE", ""),
                 f"{ROOT}/packaging/recipes/agent/node_modules/opencode-linux-x64/bin/opencode"):
        if path and os.path.exists(path):
            return path
    return skip("OpenCode (packaging/install-clients)")


def write_image(root):
    for info, content in programs(*TOOLS):
        path = f"{root}/{info.name}"
        if info.isdir():
            os.makedirs(path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, info.mode)
    for name in ("usr/bin", "root/.config/opencode", "proc", "sys", "dev", "run", "workspace", "home/user", "var/tmp"):
        os.makedirs(f"{root}/{name}", exist_ok=True)
    shutil.copy(opencode(), f"{root}/usr/bin/opencode")
    said = subprocess.run(["ldd", opencode()], stdout=subprocess.PIPE, check=True).stdout.decode()
    for library in re.findall(r"(/\S+) \(0x", said):
        os.makedirs(os.path.dirname(root + library), exist_ok=True)
        shutil.copy(library, root + library)
    with open(f"{root}/etc/passwd", "w", encoding="ascii") as file:
        file.write("root:x:0:0:root:/root:/bin/sh\n")
    with open(f"{root}/root/.config/opencode/opencode.json", "w", encoding="ascii") as file:
        json.dump(CONFIG, file)


def process_of(sandbox):
    """Some process of a sandbox; None when there is none."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
                if sandbox in file.read():
                    return pid
        except OSError:
            pass
    return None


def listen_in(pid):
    """A server of the scripted kind, whose socket is in the network of that process. The thread is spent."""
    made = []

    def run():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/proc/{pid}/ns/net", "rb") as space:
            if libc.setns(space.fileno(), CLONE_NEWNET):
                return
        made.append(Server(("127.0.0.1", PORT), Handler))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return made[0] if made else None


class AgentLab(ControlPlane):
    PATIENCE = 120

    def __init__(self, *flags, **options):
        self.room = tempfile.TemporaryDirectory(prefix="burrow-agents-", dir="/var/tmp")
        os.chmod(self.room.name, 0o755)
        write_image(self.room.name)
        super().__init__(*flags, **options)
        self.model = ScriptedModel()
        self.servers, self.threads, self.ending = {}, [], threading.Event()

    def __enter__(self):
        subprocess.run([self.path(), "image", "add", "agent", self.room.name, "--data", self.data], check=True,
                       stdout=subprocess.DEVNULL)
        super().__enter__()
        self.model.__enter__()
        self.start_thread(self.watch)
        return self

    def __exit__(self, *rest):
        self.ending.set()
        for server in self.servers.values():
            server.shutdown()
            server.server_close()
        for thread in self.threads:
            thread.join()
        self.model.__exit__()
        super().__exit__(*rest)
        self.room.cleanup()

    def start_thread(self, run):
        thread = threading.Thread(target=run, daemon=True)
        self.threads.append(thread)
        thread.start()

    def watch(self):
        while not self.ending.wait(0.1):
            try:
                boxes = self.call("GET", f"{NATIVE}/sandboxes?limit=1000")["sandboxes"]
            except Exception:  # pylint: disable=broad-exception-caught
                continue  # the daemon is away, which some tests want
            for box in boxes:
                self.serve(box["id"])

    def serve(self, sandbox):
        pid = sandbox not in self.servers and not self.ending.is_set() and process_of(sandbox)
        server = listen_in(pid) if pid else None
        if server:
            server.owner = self.model
            self.servers[sandbox] = server
            self.start_thread(lambda: server.serve_forever(poll_interval=0.05))
