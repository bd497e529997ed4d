#!/usr/bin/python3
"""Squashfs archives of burrow-keeper against the programs of others: mksquashfs, unsquashfs, tar, git."""

import json
import os
import random
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from contextlib import contextmanager

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import clean_environment, program  # pylint: disable=wrong-import-position
from tap import equal, main, test  # pylint: disable=wrong-import-position

COMPRESSIONS = ("lz4", "zstd", "gzip", "xz")
MEGABYTE = 1 << 20
MEMORY_KB = 48 * 1024  # the most that a job of any size may take


@contextmanager
def scratch():
    folder = tempfile.mkdtemp(prefix="burrow-test-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


class Outcome:
    """What a job said and took."""

    def __init__(self, process, said):
        _, self.status, usage = os.wait4(process.pid, 0)
        process.returncode = self.status
        self.memory_kb = usage.ru_maxrss
        self.lines = [json.loads(line) for line in said.splitlines()]
        self.last = self.lines[-1]


def keeper(arguments, given, data):
    """Run a job: `given` is its descriptor 0, `data` its descriptor 3."""
    launch = ["/bin/sh", "-c", f'exec 3<>"/proc/self/fd/{data}"; exec "$0" "$@"',
              program("burrow-keeper"), *arguments]
    process = subprocess.Popen(launch, stdin=given, stdout=subprocess.PIPE, pass_fds=[data],
                               stderr=subprocess.DEVNULL)
    with process.stdout:
        said = process.stdout.read()
    return Outcome(process, said)


def archive(view, image, **options):
    """Archive /w of the view; the outcome, which must be good."""
    with tempfile.TemporaryFile() as given, open(image, "w+b") as data:
        given.write(json.dumps({"folder": "/w", **options}).encode())
        given.seek(0)
        outcome = keeper(["archive", view], given, data.fileno())
    assert "archived" in outcome.last, outcome.last
    return outcome


def unarchive(image, tar):
    with open(image, "rb") as given, open(tar, "w+b") as data:
        outcome = keeper(["unarchive"], given, data.fileno())
    assert "unpacked" in outcome.last, outcome.last
    return outcome


def quietly(*command, **options):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                   env=clean_environment({"LC_ALL": "C"}), **options)


# --- trees ------------------------------------------------------------------------------------


def attributes_of(path):
    names = [name for name in os.listxattr(path, follow_symlinks=False)
             if name.startswith("user.")]
    return {name: os.getxattr(path, name, follow_symlinks=False) for name in names}


def content_of(path, status):
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb") as file:
            return file.read()
    return os.readlink(path) if stat.S_ISLNK(status.st_mode) else None


def describe(top, left_out=(), attributes=True):
    """{path: all that an archive keeps}; hard links as the first path of the file."""
    top = os.fsencode(top)
    found, first = {}, {}
    for folder, folders, files in os.walk(top):
        folders.sort()
        for name in [b"."] + sorted(folders + files):
            path = os.path.normpath(os.path.join(folder, name))
            relative = os.path.relpath(path, top)
            status = os.lstat(path)
            if relative in found or stat.S_IFMT(status.st_mode) in left_out:
                continue
            is_folder = stat.S_ISDIR(status.st_mode)
            same = relative if is_folder else first.setdefault(status.st_ino, relative)
            found[relative] = (stat.filemode(status.st_mode), status.st_uid, status.st_gid,
                               int(status.st_mtime), content_of(path, status), same,
                               attributes_of(path) if attributes else None)
    return found


def random_name(chooser):
    if chooser.random() < 0.3:
        return chooser.choice([b"\n", b"-rf", b"...", b" ", b"\\", b"\xff\xfe", b"'", b"a\nb"])
    letters = [byte for byte in range(1, 256) if byte not in b"/."]
    return bytes(chooser.choice(letters) for _ in range(chooser.choice([1, 5, 20, 200])))


def make_entry(chooser, path, earlier):
    kind = chooser.random()
    if kind < 0.4:
        with open(path, "wb") as file:
            for _ in range(chooser.randrange(3)):
                file.seek(chooser.choice([0, 100, 5000, 200000]), os.SEEK_CUR)
                file.write(chooser.randbytes(chooser.choice([1, 700, 4096, 140000])))
        earlier.append(path)
    elif kind < 0.65:
        os.mkdir(path)
    elif kind < 0.75:
        os.symlink(chooser.choice([b"..", b"/etc", b"x" * 300, b"\xff"]), path)
    elif kind < 0.85 and earlier:
        os.link(chooser.choice(earlier), path)
        return
    else:
        os.mkfifo(path)
    if os.path.isdir(path) or os.path.isfile(path):
        if not os.path.islink(path) and chooser.random() < 0.3:
            os.setxattr(path, b"user.%d" % chooser.randrange(5), b"v" * chooser.randrange(300))
    os.chown(path, chooser.randrange(70000), chooser.randrange(5), follow_symlinks=False)
    if not os.path.islink(path):
        os.chmod(path, chooser.randrange(0o10000))
    os.utime(path, (0, chooser.randrange(1 << 31)), follow_symlinks=False)


def random_tree(top, seed, entries):
    chooser = random.Random(seed)
    folders, earlier = [os.fsencode(top)], []
    for _ in range(entries):
        path = os.path.join(chooser.choice(folders), random_name(chooser))
        if os.path.lexists(path):
            continue
        make_entry(chooser, path, earlier)
        if os.path.isdir(path) and not os.path.islink(path) and path.count(b"/") < 9:
            folders.append(path)
    for folder in reversed(folders):  # what was made in them changed their times
        os.utime(folder, (0, chooser.randrange(1 << 31)))


def differences(one, other):
    return {path: (one.get(path), other.get(path))
            for path in set(one) | set(other) if one.get(path) != other.get(path)}


# --- tests ------------------------------------------------------------------------------------


@test
def unsquashfs_finds_in_an_archive_what_was_in_the_tree():
    for seed, compression in enumerate(COMPRESSIONS):
        with scratch() as folder:
            os.mkdir(f"{folder}/w")
            random_tree(f"{folder}/w", seed, 120)
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(f"{folder}/w/socket")
            listening.close()
            os.mknod(f"{folder}/w/device", stat.S_IFCHR | 0o600, os.makedev(300, 70000))
            image = f"{folder}/image"
            archive(folder, image, compression=compression, threads=1 + seed % 3)
            quietly("unsquashfs", "-q", "-n", "-d", f"{folder}/out", image)
            equal(differences(describe(f"{folder}/w"), describe(f"{folder}/out")), {},
                  f"{compression}, seed {seed}")
            equal(os.lstat(f"{folder}/out/device").st_rdev, os.makedev(300, 70000))


@test
def tar_finds_in_the_stream_what_was_in_the_tree():
    no_socket = (stat.S_IFSOCK,)
    for seed, compression in enumerate(COMPRESSIONS):
        with scratch() as folder:
            os.mkdir(f"{folder}/w")
            random_tree(f"{folder}/w", 100 + seed, 120)
            archive(folder, f"{folder}/image", compression=compression)
            outcome = unarchive(f"{folder}/image", f"{folder}/tar")
            os.mkdir(f"{folder}/out")
            quietly("tar", "-xpf", f"{folder}/tar", "--xattrs", "--same-owner", "-C",
                    f"{folder}/out")
            equal(differences(describe(f"{folder}/w", no_socket), describe(f"{folder}/out")), {},
                  f"{compression}, seed {seed}")
            equal(outcome.last["unpacked"]["attributes_left_out"], 0)


@test
def images_of_mksquashfs_come_out_as_they_were():
    variants = [["-b", "4096"], ["-b", "1M", "-always-use-fragments"], ["-no-fragments"],
                ["-noI", "-noD", "-noF", "-noX"], ["-no-exports", "-no-duplicates"]]
    with scratch() as folder:
        os.mkdir(f"{folder}/w")
        random_tree(f"{folder}/w", 7, 150)
        expected = describe(f"{folder}/w")
        for number, options in enumerate(variants):
            for compression in COMPRESSIONS[number % 2::2]:
                image, out = f"{folder}/image", f"{folder}/out"
                quietly("mksquashfs", f"{folder}/w", image, "-noappend", "-quiet", "-no-progress",
                        "-comp", compression, *options)
                unarchive(image, f"{folder}/tar")
                os.mkdir(out)
                quietly("tar", "-xpf", f"{folder}/tar", "--xattrs", "--same-owner", "-C", out)
                equal(differences(expected, describe(out)), {}, f"{compression} {options}")
                shutil.rmtree(out)


@test
def the_kernel_mounts_an_archive_with_a_large_folder():
    with scratch() as folder:
        os.mkdir(f"{folder}/w")
        for number in range(5000):
            os.mknod(f"{folder}/w/one of many long names, number {number}")
        archive(folder, f"{folder}/image", compression="lz4")
        quietly("unsquashfs", "-q", "-n", "-d", f"{folder}/out", f"{folder}/image",
                "one of many long names, number 4711")
        equal(os.listdir(f"{folder}/out"), ["one of many long names, number 4711"])
        os.mkdir(f"{folder}/mount")
        quietly("mount", "-o", "loop,ro", f"{folder}/image", f"{folder}/mount")
        try:
            equal(sorted(os.listdir(f"{folder}/mount")), sorted(os.listdir(f"{folder}/w")))
            for number in range(0, 5000, 97):
                os.stat(f"{folder}/mount/one of many long names, number {number}")
            assert not os.path.exists(f"{folder}/mount/one of many long names, number 5001")
        finally:
            quietly("umount", f"{folder}/mount")


@test
def the_same_tree_gives_the_same_archive():
    with scratch() as folder:
        os.mkdir(f"{folder}/w")
        random_tree(f"{folder}/w", 3, 80)
        digests = {archive(folder, f"{folder}/image", compression="zstd",
                           threads=threads).last["archived"]["sha256"] for threads in (1, 2, 4)}
        equal(len(digests), 1, "digests")
        quietly("sha256sum", "-c", input=f"{digests.pop()}  {folder}/image\n".encode())


# --- what is left out -------------------------------------------------------------------------

NAMES = ("a", "b", "ab", ".a", "a b", "A", "[a]")


def names_tree(top, depth=3):
    for name in NAMES:
        path = f"{top}/{name}"
        if depth > 1 and name in ("a", "ab", ".a"):
            os.mkdir(path)
            names_tree(path, depth - 1)
        else:
            os.mknod(path)


def all_paths(top):
    found = []
    for folder, folders, files in os.walk(top):
        if folder == top and ".git" in folders:
            folders.remove(".git")
        found += [os.path.relpath(os.path.join(folder, name), top) for name in folders + files]
    return found


def listed(image):
    """The paths in an image."""
    told = subprocess.run(["unsquashfs", "-l", image], check=True, stdout=subprocess.PIPE).stdout
    return {line[len("squashfs-root/"):] for line in told.decode().splitlines()
            if line.startswith("squashfs-root/")}


def archived_paths(folder, **options):
    archive(folder, f"{folder}/image", **options)
    return {path for path in listed(f"{folder}/image") if path.split("/")[0] != ".git"}


def ignored_by_git(top, paths):
    command = ["git", "-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "-z",
               "--stdin"]
    told = subprocess.run(command, cwd=top, input="\0".join(paths).encode(), check=False,
                          stdout=subprocess.PIPE, env=clean_environment())
    assert told.returncode in (0, 1), told
    return set(told.stdout.decode().split("\0")) - {""}


def is_left_out(path, ignored):
    parts = path.split("/")
    return any("/".join(parts[:count]) in ignored for count in range(1, len(parts) + 1))


def random_line(chooser):
    pieces = ["a", "b", "ab", "*", "**", "?", "/", "/", "[ab]", "[!a]", "[^b]", "[[:alpha:]]",
              ".", " ", "\\a", "\\ ", "A", "[a-b", "]", "\\[a]"]
    line = "".join(chooser.choice(pieces) for _ in range(chooser.choice([1, 1, 2, 3, 4, 6])))
    return chooser.choice(["", "", "", "!", "/", "**/", "#"]) + line + chooser.choice(["", "", "/"])


@test
def gitignore_means_what_it_means_to_git():
    chooser = random.Random(11)
    with scratch() as folder:
        top = f"{folder}/w"
        os.mkdir(top)
        names_tree(top)
        quietly("git", "init", "-q", top)
        paths = all_paths(top)
        for number in range(40):
            places = [top, f"{top}/a", f"{top}/a/ab"]
            for place in places:
                lines = [random_line(chooser) for _ in range(chooser.randrange(4))]
                with open(f"{place}/.gitignore", "w", encoding="utf-8") as file:
                    file.write(chooser.choice(["\n", "\r\n"]).join(lines + [""]))
            present = paths + [os.path.relpath(f"{place}/.gitignore", top) for place in places]
            ignored = ignored_by_git(top, present)
            expected = {path for path in present if not is_left_out(path, ignored)}
            actual = archived_paths(folder, gitignore=True)
            rules = [open(f"{place}/.gitignore", encoding="utf-8").read() for place in places]
            equal(actual ^ expected, set(), f"round {number}, rules {rules}, the difference")


@test
def excludes_mean_what_they_mean_to_mksquashfs():
    chooser = random.Random(12)
    pieces = ["a", "b", "ab", "*", "?", "[ab]", "[!a]", ".", " b", "A", "\\[a]"]
    with scratch() as folder:
        top = f"{folder}/w"
        os.mkdir(top)
        names_tree(top)
        paths = set(all_paths(top))
        for number in range(25):
            # One name each: of "... a/b" mksquashfs 4.5 leaves out all of a. And none that means
            # something else at the beginning of a line of its exclude file.
            patterns = ["".join(chooser.choice(pieces) for _ in range(chooser.choice([1, 2, 2, 3])))
                        for _ in range(3)]
            patterns = [text for text in patterns if text[0] not in " .\\"]
            with open(f"{folder}/lines", "w", encoding="utf-8") as file:
                file.write("".join(f"{text}\n... {text}\n" for text in patterns))
            quietly("mksquashfs", top, f"{folder}/theirs", "-noappend", "-quiet", "-no-progress",
                    "-wildcards", "-ef", f"{folder}/lines")
            expected = listed(f"{folder}/theirs")
            assert expected <= paths
            actual = archived_paths(folder, excludes=patterns)
            equal(actual ^ expected, set(), f"round {number}, excludes {patterns}, the difference")


# --- size -------------------------------------------------------------------------------------


@test
def memory_does_not_grow_with_the_tree():
    with scratch() as folder:
        os.mkdir(f"{folder}/w")
        piece = random.Random(1).randbytes(MEGABYTE) + b"compressible " * 80000
        for number in range(150):
            with open(f"{folder}/w/{number}", "wb") as file:
                file.write(piece[number:])
                file.write(piece[:MEGABYTE // 16])
        for number in range(3000):
            with open(f"{folder}/w/small-{number}", "wb") as file:
                file.write(b"%d" % number)
        made = archive(folder, f"{folder}/image", compression="zstd", threads=2)
        unpacked = unarchive(f"{folder}/image", f"{folder}/tar")
        equal(made.last["archived"]["bytes"], unpacked.last["unpacked"]["bytes"])
        assert made.last["archived"]["bytes"] > 300 * 1000 * 1000
        print(f"# memory: archive {made.memory_kb} kB, unarchive {unpacked.memory_kb} kB")
        assert made.memory_kb < MEMORY_KB and unpacked.memory_kb < MEMORY_KB


@test
def a_job_tells_how_far_it_is_and_what_is_wrong():
    with scratch() as folder:
        os.mkdir(f"{folder}/w")
        with open(f"{folder}/image", "w+b") as data, tempfile.TemporaryFile() as given:
            given.write(b'{"folder":"/missing"}')
            given.seek(0)
            outcome = keeper(["archive", folder], given, data.fileno())
        assert outcome.status != 0
        equal(outcome.last["error"]["code"], "not_found")
        with open(f"{folder}/image", "wb") as file:
            file.write(b"hsqs" * 100)
        with open(f"{folder}/image", "rb") as given, open(f"{folder}/tar", "w+b") as data:
            outcome = keeper(["unarchive"], given, data.fileno())
        assert outcome.status != 0
        equal(outcome.last["error"]["code"], "invalid_request")


main()
