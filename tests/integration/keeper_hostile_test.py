#!/usr/bin/python3
"""Squashfs images of an enemy: burrow-keeper ends, says why, and its stream leads nowhere.

Each is an image of mksquashfs, not compressed, in which something was changed that lies."""

import json
import os
import struct
import subprocess
import sys
import tarfile
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from program import PATIENCE, clean_environment, program  # pylint: disable=wrong-import-position
from tap import equal, main, skip, test  # pylint: disable=wrong-import-position

PLAIN = ["-noI", "-noD", "-noF", "-noX", "-no-fragments", "-no-exports", "-no-xattrs"]
STREAM_MAX = 4 << 20  # nobody reads more of it
MEMORY = 256 << 20
SUPERBLOCK, INODES, FOLDERS = 96, 64, 72  # the second and third say where tables begin
ROOT, INODE_COUNT, BLOCK_SIZE = 32, 4, 12
FOLDER = 1  # as a type


class Image:
    """Bytes, and where in them the inodes and names of its entries are."""

    def __init__(self, data):
        self.data = data
        self.inodes, self.folders = struct.unpack_from("<QQ", data, INODES)

    def put(self, at, form, *values):
        changed = bytearray(self.data)
        struct.pack_into("<" + form, changed, at, *values)
        return bytes(changed)

    def name(self, name):
        """Where an entry's name begins; 8 bytes before it are place, number, type and length."""
        return self.data.index(name, self.folders)

    def inode(self, name):
        return self.inodes + 2 + struct.unpack_from("<H", self.data, self.name(name) - 8)[0]

    @property
    def root(self):
        return struct.unpack_from("<Q", self.data, ROOT)[0] & 0xffff


def make_image(folder):
    """A tree in which each name is there once: zz is a folder, in it another and a file."""
    os.makedirs(f"{folder}/tree/zz/inner")
    with open(f"{folder}/tree/file", "wb") as file:
        file.write(os.urandom(9000))
    with open(f"{folder}/tree/zz/leaf", "wb") as file:
        file.write(b"leaf")
    os.symlink("target", f"{folder}/tree/link")
    os.link(f"{folder}/tree/file", f"{folder}/tree/name2")
    try:
        subprocess.run(["mksquashfs", f"{folder}/tree", f"{folder}/image", "-noappend", "-quiet",
                        "-no-progress", *PLAIN], check=True, stdout=subprocess.DEVNULL,
                       env=clean_environment())
    except FileNotFoundError:
        skip("the program mksquashfs")
    with open(f"{folder}/image", "rb") as file:
        return Image(file.read())


def unpack(folder, data):
    """(what the keeper said at last, the stream, the signal that ended it or 0)"""
    path = f"{folder}/changed"
    with open(path, "wb") as file:
        file.write(data)
    launch = ["/bin/sh", "-c", f'ulimit -v {MEMORY >> 10}; exec 3>&1 >"$1"; exec "$0" unarchive',
              program("burrow-keeper"), f"{folder}/said"]
    with open(path, "rb") as given, subprocess.Popen(launch, stdin=given, stdout=subprocess.PIPE,
                                                     stderr=subprocess.DEVNULL) as process:
        stream = process.stdout.read(STREAM_MAX)
        process.stdout.close()
        status = process.wait(PATIENCE)
    with open(f"{folder}/said", encoding="utf-8") as file:
        lines = file.read().splitlines()
    return json.loads(lines[-1]) if lines else {}, stream, -status if status < 0 else 0


def members(folder, stream):
    """Names and targets of hard links in as much of a stream as there is."""
    with open(f"{folder}/stream", "wb") as file:
        file.write(stream)
    found = []
    try:
        with tarfile.open(f"{folder}/stream") as tar:
            for member in tar:
                found.append(member.name)
                if member.islnk():
                    found.append(member.linkname)
    except (tarfile.TarError, EOFError):
        pass
    return found


def check(folder, what, data):
    said, stream, signal = unpack(folder, data)
    equal(signal, 0, f"{what}: the signal that ended it")
    assert "unpacked" in said or "error" in said, f"{what}: {said}"
    for name in members(folder, stream):
        parts = name.split("/")
        assert ".." not in parts and not name.startswith("/"), f"{what}: {name!r}"
    return said


def lies(image):
    """{what: the image}"""
    folder, file, link, name = image.inode(b"zz"), image.inode(b"leaf"), image.inode(b"link"), b"zz"
    end, word = len(image.data), 0xffffffff
    found = {
        "a folder that is in itself": image.put(image.name(b"inner") - 8, "H", folder - image.inodes - 2),
        "the top in a folder": image.put(image.name(b"inner") - 8, "H", image.root),
        "a name of two dots": image.put(image.name(name), "2s", b".."),
        "a name with a slash": image.put(image.name(name), "2s", b"/z"),
        "a name with a NUL": image.put(image.name(name), "2s", b"z\0"),
        "a name of a dot": image.put(image.name(name) - 2, "H2s", 0, b"./"),
        "a name that never ends": image.put(image.name(name) - 2, "H", 0xffff),
        "names out of order": image.put(image.name(b"name2"), "5s", b"aaaaa"),
        "the same name twice": image.put(image.name(b"link"), "4s", b"file"),
        "a file that is a folder": image.put(image.name(b"file") - 4, "H", FOLDER),
        "a top that is a file": image.put(ROOT, "Q", file - image.inodes - 2),
        "a top beyond the end": image.put(ROOT, "Q", 1 << 62),
        "no inodes": image.put(INODE_COUNT, "I", 0),
        "endless inodes": image.put(INODE_COUNT, "I", word),
        "blocks of nothing": image.put(BLOCK_SIZE, "I", 0),
        "blocks of 4 GB": image.put(BLOCK_SIZE, "I", 1 << 31),
        "a file of 4 GB": image.put(file + 28, "I", word),
        "a file beyond the end": image.put(file + 16, "I", end + 1),
        "a block beyond the end": image.put(file + 32, "I", 0x1ffffff),
        "a block of zeros without end": image.put(file + 28, "II", word, 0),
        "a fragment that is not there": image.put(file + 20, "I", 7),
        "a link of 4 GB": image.put(link + 20, "I", word),
        "a link to nothing": image.put(link + 20, "I", 0),
        "a folder of 64 KB": image.put(folder + 24, "H", 0xffff),
        "a folder without entries": image.put(folder + 24, "H", 0),
        "a folder that begins elsewhere": image.put(folder + 16, "I", 1 << 20),
        "inodes where the folders are": image.put(INODES, "Q", image.folders),
        "tables beyond the end": image.put(INODES, "QQ", 1 << 40, 1 << 40),
        "tables at the top": image.put(INODES, "QQ", 0, 0),
    }
    for at in range(8, SUPERBLOCK, 8):
        found[f"all ones at {at}"] = image.put(at, "Q", (1 << 64) - 1)
    for cut in range(0, end, max(1, end // 40)):
        found[f"cut at {cut}"] = image.data[:cut]
    for at in range(image.inodes, image.folders + 120, 2):
        for value in (0, 0x7fff, 0xffff):
            if at + 2 <= end:
                found[f"{value} at {at}"] = image.put(at, "H", value)
    return found


REFUSED = ("a folder that is in itself", "the top in a folder", "a name of two dots",
           "a name with a slash", "a name with a NUL", "a name that never ends", "a file that is a folder",
           "a top that is a file", "a top beyond the end", "endless inodes", "blocks of nothing",
           "blocks of 4 GB", "a block beyond the end", "a file beyond the end", "a link of 4 GB",
           "tables beyond the end")


@test
def an_image_that_lies_is_refused_and_its_stream_leads_nowhere():
    with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
        image = make_image(folder)
        equal("unpacked" in check(folder, "the truth", image.data), True, "it is an image")
        told = {what: check(folder, what, data) for what, data in lies(image).items()}
        print(f"# {len(told)} lies, {sum('error' in said for said in told.values())} refused")
        wrong = {what: told[what] for what in REFUSED if "error" not in told[what]}
        equal(wrong, {}, "lies that were believed")


main()
