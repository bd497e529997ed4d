"""Facts without which numbers mean nothing: the machine, the code, the peers."""

import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path


def _version(*arguments):
    """The first version number a command prints, on stdout or stderr; None when it cannot."""
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"\d+\.\d+[\w.]*", done.stdout + done.stderr)
    return found and found.group(0)


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _commit(root: Path) -> dict:
    done = subprocess.run(["git", "rev-parse", "--verify", "HEAD"], cwd=root, capture_output=True,
                          text=True)
    changed = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True,
                             text=True)
    return {
        "commit": done.stdout.strip() if done.returncode == 0 else None,
        "changed": bool(changed.stdout.strip()),
    }


def facts(root: Path, build: Path) -> dict:
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(os.getloadavg()[0], 2),
        **_commit(root),
        "peers": {
            "nginx": _version("nginx", "-v") or _version("/usr/sbin/nginx", "-v"),
            "wrk": _version("wrk", "-v"),
            "libwebsockets": _version(str(build / "bench/websocket-echo-peer"), "--version"),
            "bubblewrap": _version("bwrap", "--version"),
            "crun": _version("crun", "--version"),
            "runc": _version("runc", "--version"),
        },
    }
