"""The files of the tree that people wrote: tracked, or new and not ignored."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def source_files(root=ROOT):
    """Sorted paths relative to `root`. Without git (a release archive, or a clone that git does
    not trust) every file outside build folders."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    if listing.returncode == 0:
        paths = os.fsdecode(listing.stdout).split("\0")
    else:
        paths = walk(root)
    # Deleted but still tracked files are listed by git, too.
    return sorted({path for path in paths if os.path.isfile(os.path.join(root, path))})


def walk(root):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not is_generated(name)]
        for name in files:
            yield os.path.relpath(os.path.join(folder, name), root)


def is_generated(folder):
    return folder in (".git", "build", "node_modules", "__pycache__") or folder.startswith("build-")
