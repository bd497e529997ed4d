"""What a machine is made of, and what became different about it.

    remember(machine)          # before the package comes
    changes(machine)           # {"mounts": ["+ line", "- line"], ...}, without what has not changed

The same file is run inside the machine, where it prints the state as JSON: {area: [line]}.
"""

import difflib
import glob
import json
import os
import re
import subprocess
import sys

TREES = ("/etc", "/usr", "/var", "/root", "/srv", "/opt")
# What changes by itself, or because packages are installed and removed.
NOISE = re.compile(r"^(/var/(log|cache|backups|tmp)/|/var/lib/(dpkg|apt|systemd|dbus|ucf|private)/|/root/|"
                   r"/etc/(ld\.so\.cache|mtab|.*~|\.pwd\.lock|(passwd|shadow|group|gshadow|subuid|subgid)-?)( |$)|"
                   r"/usr/(lib|share)/.*/__pycache__/)")
# Of processes and groups: those of logins and of whoever looks, and udev's workers, which come and go.
OURS = re.compile(r"\(udev-worker\)|sshd|\(sd-pam\)|systemd --user|python3|^root -?(bash|sh)\b|ssh-session|"
                  r"user\.slice|user@|"
                  r"systemd-(timedate|hostname|locale|logind|udevd|userwork)|dbus|polkit|sftp|agetty|"
                  r"systemd-tmpfiles|\.scope$|-?run-[\w-]+\.(service|mount)|modprobe@|ext4lazy|\.mount$|\.swap$")


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""  # gone meanwhile


def output_of(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.decode(errors="replace").splitlines()


def processes():
    """"user words" of all that are not the kernel's."""
    lines = output_of("ps", "-eo", "ppid=,pid=,user:20=,args=")
    return sorted(" ".join(line.split()[2:]) for line in lines if line.split()[0] != "2" and line.split()[1] != "2")


def files(tops):
    """What is not a folder, on the filesystems of these. find is many times quicker than os.walk."""
    return output_of("find", *tops, "-xdev", "!", "-type", "d", "-printf", "%p %y%m %U:%G %s %Ts\\n")


def mounts():
    """Sorted and without numbers, which are others after a reboot. Linux names the size of a tmpfs only while it is
    not half of memory, and how much memory there is changes a little during each boot."""
    lines = [line.split(" ", 3)[3] for line in text_of("/proc/1/mountinfo").splitlines()]
    lines = [re.sub(r" (shared|master):\d+", r" \1", line) for line in lines]
    lines = [re.sub(r"\bsize=\w+,", "", line) for line in lines]
    return sorted(re.sub(r"\b(nr_inodes|fd|pipe_ino)=\w+", r"\1=N", line) for line in lines)


def groups():
    return sorted(folder for folder, _, _ in os.walk("/sys/fs/cgroup"))


def state():
    return {
        "mounts": mounts(),
        "processes": [line for line in processes() if not OURS.search(line)],
        "local files": sorted(files(["/usr/local"])),
        "files": sorted(line for line in files(TREES) if not NOISE.match(line)),
        "runtime files": sorted(line.split()[0] for line in files(["/run", "/dev/shm", "/tmp"])
                                if "burrow" in line),
        "loop devices": sorted(output_of("losetup", "--list", "--noheadings", "--output", "NAME,BACK-FILE")),
        "groups": [path for path in groups() if not OURS.search(path)],
        "tables": output_of("nft", "list", "ruleset"),
        "links": sorted(line.split(": ")[1].split("@")[0] for line in output_of("ip", "-o", "link")),
        "addresses": sorted(" ".join(line.split()[1:4]) for line in output_of("ip", "-o", "address")),
        "users": sorted(text_of("/etc/passwd").splitlines() + text_of("/etc/group").splitlines() +
                        text_of("/etc/subuid").splitlines()),
        "sysctls": [f"{path} {text_of(path).strip()}" for path in sorted(
            glob.glob("/proc/sys/net/ipv[46]/conf/*/forwarding") + ["/proc/sys/net/ipv4/ip_forward",
                                                                   "/proc/sys/kernel/core_pattern"])],
    }


# --- on this side ---------------------------------------------------------------------------------


def ask(machine):
    with open(os.path.abspath(__file__), "rb") as file:
        return json.loads(machine.good("python3 -B -", stdin=file.read(), seconds=60))


def remember(machine, name="before"):
    with open(os.path.join(machine.folder, name), "w", encoding="utf-8") as file:
        json.dump(ask(machine), file)


def changes(machine, name="before"):
    """Areas that are different from what remember() saw, as lines with + and -."""
    with open(os.path.join(machine.folder, name), encoding="utf-8") as file:
        before = json.load(file)
    found = {}
    for area, now in ask(machine).items():
        lines = [line for line in difflib.unified_diff(before[area], now, lineterm="", n=0)
                 if not line.startswith(("+++", "---", "@@"))]
        if lines:
            found[area] = lines
    return found


if __name__ == "__main__":
    json.dump(state(), sys.stdout)
