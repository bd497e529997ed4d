#!/usr/bin/python3
"""Folders as tar archives: out, in, beside the real tar, and what hostile archives meet.

# timeout: 600
"""

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20


def target(path, **query):
    return "/burrow/archive?" + urllib.parse.urlencode({"path": path, **query})


def export(path, **query):
    response = SHARED.get(target(path, **query))
    equal((response.status, response.headers["content-type"]), (200, "application/x-tar"), "head")
    return response.body


def send(path, data, **query):
    """(status, document)"""
    response = request(SHARED.address, "PUT", target(path, **query), [], data, 60.0)
    return response.status, json.loads(response.body)


def bring(path, data, **query):
    status, document = send(path, data, **query)
    if status != 200:
        raise AssertionError(f"{status} {document}")
    return document


def refused(path, data, *words, **query):
    status, document = send(path, data, **query)
    equal((status, document["code"]), (400, "VALIDATION_FAILED"), str(document))
    for word in words:
        assert word in document["message"], (word, document["message"])
    equal(document["operation"], "archive.import", "operation")
    equal(document["context"]["path"], path, "path")


def fresh(name):
    path = os.path.join(FOLDER, name)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def describe(path):
    """Everything that an archive keeps of a folder."""
    found, inodes = {}, {}
    for folder, folders, files in os.walk(path):
        for name in folders + files + ["."]:
            full = os.path.normpath(os.path.join(folder, name))
            status = os.lstat(full)
            relative = os.path.relpath(full, path)
            link = os.readlink(full) if os.path.islink(full) else None
            data = None
            if os.path.isfile(full) and link is None:
                with open(full, "rb") as file:
                    data = file.read()
            found[relative] = (status.st_mode, status.st_uid, status.st_gid,
                               status.st_mtime_ns, link, data)
            if status.st_nlink > 1 and data is not None:
                inodes.setdefault(status.st_ino, set()).add(relative)
    return found, sorted(map(sorted, inodes.values()))


def make_tree(path):
    """Everything that folders hold."""
    long = "n" * 120
    os.makedirs(f"{path}/a/{long}/{long}")
    os.makedirs(f"{path}/empty")
    for name, data in (("a/small", b"small\n"), ("none", b""), ("block", b"b" * 512),
                       ("big", os.urandom(300001)), (f"a/{long}/{long}/deep", b"deep"),
                       ("sp ace\nline", b"x"), ("Grüße", b"y"), ("m" * 100, b"z"),
                       ("m" * 101, b"z")):
        with open(f"{path}/{name}", "wb") as file:
            file.write(data)
    with open(os.fsencode(path) + b"/bad\xff", "wb") as file:
        file.write(b"bad")
    os.symlink("../none", f"{path}/a/link")
    os.symlink(f"{long}/{long}/deep", f"{path}/a/long-link")
    os.link(f"{path}/big", f"{path}/a/hard")
    os.link(f"{path}/a/{long}/{long}/deep", f"{path}/hard-deep")
    os.mkfifo(f"{path}/pipe")
    os.chmod(f"{path}/a/small", 0o4751)
    os.chmod(f"{path}/empty", 0o1777)
    os.utime(f"{path}/none", ns=(0, -1_250_000_000))
    os.utime(f"{path}/block", ns=(0, 5_000_000_000))
    os.utime(f"{path}/empty", ns=(0, 123456789_123456789))


def tar(*arguments, data=None):
    return subprocess.run(["tar", *arguments], input=data, stdout=subprocess.PIPE, check=True).stdout


# --- there and back ------------------------------------------------------------------------------


@test
def a_folder_comes_back_as_it_was():
    source, copy = fresh("source"), fresh("copy")
    make_tree(source)
    before = describe(source)
    document = bring(copy, export(source))
    equal((document["success"], document["path"]), (True, copy), "reply")
    equal(describe(copy), before, "tree")
    equal(document["entries"], len(before[0]), "entries")
    equal(describe(source), before, "the source itself")
    equal(bring(copy, export(source))["entries"], len(before[0]), "once more over itself")
    equal(describe(copy), before, "tree")


@test
def tar_reads_what_we_write():
    source, copy = fresh("source"), fresh("copy")
    make_tree(source)
    tar("-x", "-p", "-C", copy, data=export(source))
    equal(describe(copy), describe(source), "tree")
    names = tar("-t", data=export(source)).decode().splitlines()
    equal((names[0], len(names)), ("./", len(describe(source)[0])), "names")
    with tarfile.open(fileobj=io.BytesIO(export(source))) as archive:
        equal(len(archive.getmembers()), len(names), "members, as Python sees them")


@test
def we_read_what_tar_writes():
    for form in ("ustar", "pax", "gnu", "oldgnu", "v7"):
        source, copy = fresh("source"), fresh("copy")
        make_tree(source)
        if form in ("ustar", "v7"):  # they have no room for these
            shutil.rmtree(f"{source}/a")
            for name in ("m" * 101, "hard-deep"):
                os.remove(f"{source}/{name}")
            os.utime(f"{source}/none", ns=(0, 0))
        if form == "v7":
            for name in ("pipe", "m" * 100):
                os.remove(f"{source}/{name}")
        before, links = describe(source)
        bring(copy, tar("-c", f"--format={form}", "-C", source, "."))
        after = describe(copy)
        equal(after[1], links, f"hard links of {form}")
        exact = form == "pax"
        equal({name: (*entry[:3], entry[3] if exact else entry[3] // 10**9, *entry[4:])
               for name, entry in after[0].items()},
              {name: (*entry[:3], entry[3] if exact else entry[3] // 10**9, *entry[4:])
               for name, entry in before.items()}, f"tree of {form}")


@test
def archives_may_come_in_the_smallest_pieces():
    source, copy = fresh("source"), fresh("copy")
    make_tree(source)
    os.truncate(f"{source}/big", 3000)
    data = export(source)
    with connect(SHARED.address, 60.0) as connection:
        connection.send(b"PUT %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        % target(copy).encode())
        for at in range(0, len(data), 397):
            piece = data[at:at + 397]
            connection.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        connection.send(b"0\r\n\r\n")
        equal(connection.response("PUT").status, 200, "status")
    equal(describe(copy), describe(source), "tree")


@test
def excluded_paths_are_left_out():
    source = fresh("source")
    for name in ("a/b/c", "a/d", "e", "ae"):
        os.makedirs(os.path.dirname(f"{source}/{name}"), exist_ok=True)
        with open(f"{source}/{name}", "wb"):
            pass
    names = tar("-t", data=export(source, excludes="./a/b,e,no/such")).decode().split()
    equal(sorted(names), ["./", "./a/", "./a/d", "./ae"], "names")


@test
def sockets_are_left_out():
    source = fresh("source")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{source}/socket")
        equal(tar("-t", data=export(source)).decode().split(), ["./"], "names")


@test
def large_files_cost_no_memory():
    source, copy = fresh("source"), fresh("copy")
    with open(f"{source}/huge", "wb") as file:
        file.truncate(400 * MIB)
        file.seek(399 * MIB)
        file.write(b"end")
    with Agent() as agent:
        with connect(agent.address, 60.0) as reader, connect(agent.address, 60.0) as writer:
            reader.send(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % target(source).encode())
            equal(reader.response_head().status, 200, "status")
            writer.send(b"PUT %s HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        % target(copy).encode())
            for chunk in reader.chunks():
                writer.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            writer.send(b"0\r\n\r\n")
            equal(writer.response("PUT").status, 200, "status")
        assert agent.memory_kb("VmHWM") < 24 * 1024, agent.memory_kb("VmHWM")
    equal(os.path.getsize(f"{copy}/huge"), 400 * MIB, "size")
    with open(f"{copy}/huge", "rb") as file:
        file.seek(399 * MIB)
        equal(file.read(4), b"end\0", "end")
    shutil.rmtree(source)
    shutil.rmtree(copy)


@test
def many_small_files_are_carried_and_nobody_waits():
    source, copy = fresh("source"), fresh("copy")
    for number in range(5000):
        folder = f"{source}/{number % 50}"
        os.makedirs(folder, exist_ok=True)
        with open(f"{folder}/{number}", "w", encoding="ascii") as file:
            file.write(str(number))
    data = export(source)
    equal(bring(copy, data)["entries"], 5051, "entries")
    equal(describe(copy), describe(source), "tree")


@test
def a_client_that_leaves_leaves_no_half_file():
    copy = fresh("copy")
    data = archive(("first", b"first"), ("second", b"s" * 8 * MIB))
    with connect(SHARED.address, 60.0) as connection:
        connection.send(b"PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
                        % (target(copy).encode(), len(data)))
        connection.send(data[:4 * MIB])
        wait_until(lambda: len(os.listdir(copy)) == 2, "the second file has begun")
    wait_until(lambda: os.listdir(copy) == ["first"], "what was begun is gone")
    source = fresh("source")
    with open(f"{source}/huge", "wb") as file:
        file.truncate(1 << 30)
    with connect(SHARED.address, 60.0) as connection:
        connection.send(b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % target(source).encode())
        connection.response_head()
    wait_until(lambda: not [path for path in SHARED.open_paths() if path.startswith(FOLDER)],
               "its files are closed")


# --- hostile archives ----------------------------------------------------------------------------


def member(name, data=b"", kind=tarfile.REGTYPE, link="", **fields):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def archive(*members, form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as made:
        for each in members:
            info, data = each if isinstance(each[0], tarfile.TarInfo) else member(*each)
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def secret():
    path = os.path.join(FOLDER, "secret")
    with open(path, "wb") as file:
        file.write(b"secret")
    return path


@test
def paths_that_lead_out_are_refused():
    copy, outside = fresh("copy"), secret()
    for name in ("/etc/evil", "../secret", "a/../../secret", "..", "a/..", outside):
        refused(copy, archive((name, b"evil")), name)
    for name in ("../secret", "/abs"):
        refused(copy, archive(member(name, kind=tarfile.DIRTYPE)), name)
    with open(outside, "rb") as file:
        equal(file.read(), b"secret", "what is outside")
    equal(os.listdir(copy), [], "what is inside")


@test
def links_that_lead_out_are_refused():
    copy, outside = fresh("copy"), secret()
    for link in ("/etc/passwd", "../secret", "a/../../secret", "a/..", outside):
        refused(copy, archive(member("link", kind=tarfile.SYMTYPE, link=link)), "link", "leads out")
        if link != "a/..":
            refused(copy, archive(member("hard", kind=tarfile.LNKTYPE, link=link)), "leads out")
    equal(os.listdir(copy), [], "what is inside")
    bring(copy, archive(member("a/b/link", kind=tarfile.SYMTYPE, link="../../x")))
    refused(copy, archive(member("a/b/link", kind=tarfile.SYMTYPE, link="../../../x")), "a/b/link")
    bring(copy, archive(member("out", kind=tarfile.SYMTYPE, link="/usr/bin/python3")), links="any")
    equal(os.readlink(f"{copy}/out"), "/usr/bin/python3", "a link that was wanted")


@test
def nothing_is_written_through_a_link():
    copy, outside = fresh("copy"), fresh("outside")
    os.symlink(outside, f"{copy}/door")
    for each in (("door/evil", b"x"), member("door/evil", kind=tarfile.DIRTYPE),
                 member("door/evil", kind=tarfile.SYMTYPE, link="x"),
                 member("door", kind=tarfile.DIRTYPE)):
        refused(copy, archive(each), "door", "symbolic link")
    made = archive(member("way", kind=tarfile.SYMTYPE, link=outside), ("way/evil", b"x"))
    refused(copy, made, "way/evil", "symbolic link", links="any")
    equal(os.listdir(outside), [], "what is outside")
    # A file takes the place of a link; it does not go where the link leads.
    os.symlink(f"{outside}/file", f"{copy}/file")
    with open(f"{outside}/file", "wb") as file:
        file.write(b"kept")
    bring(copy, archive(("file", b"new")))
    equal((os.path.islink(f"{copy}/file"), os.path.getsize(f"{outside}/file")), (False, 4), "file")
    os.symlink(f"{outside}/file", f"{copy}/pointer")
    second = archive(member("name", kind=tarfile.LNKTYPE, link="pointer"))
    refused(copy, second, "name", "leads out")
    bring(copy, second, links="any")
    assert os.path.islink(f"{copy}/name"), "a hard link of a link is a link"


@test
def an_archive_takes_the_place_of_a_folder():
    copy = fresh("copy")
    bring(copy, archive(("old", b"old"), ("both", b"old"), ("deep/er", b"old")))
    bring(copy, archive(("both", b"new"), ("fresh", b"new")), replace="1")
    equal(sorted(os.listdir(copy)), ["both", "fresh"], "what is inside, and nothing hidden")
    with open(f"{copy}/both", "rb") as file:
        equal(file.read(), b"new", "a file that was in both")
    new = f"{copy}/made"
    bring(new, archive(member(".", kind=tarfile.DIRTYPE, mode=0o2750), ("file", b"x")),
          replace="1")
    equal(os.stat(new).st_mode & 0o7777, 0o2750, "mode of a folder that was made for it")
    bring(new, archive(), replace="1")
    equal(os.listdir(new), [], "an empty archive empties it")
    equal(send(copy, archive(("x", b"x")), replace="maybe")[0], 400, "another word")


@test
def a_replacement_that_fails_changes_nothing():
    copy = fresh("copy")
    bring(copy, archive(("kept", b"kept")))
    refused(copy, archive(("new", b"new"), ("../evil", b"x")), "evil", replace="1")
    equal(os.listdir(copy), ["kept"], "after a bad entry")
    data = archive(("first", b"f" * 4 * MIB))
    with connect(SHARED.address, 60.0) as connection:
        connection.send(b"PUT %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
                        % (target(copy, replace="1").encode(), len(data)))
        connection.send(data[:MIB])
        wait_until(lambda: len(os.listdir(copy)) == 2, "it has begun")
    wait_until(lambda: os.listdir(copy) == ["kept"], "after a client that left")


@test
def devices_and_strange_types_are_refused():
    copy = fresh("copy")
    for kind in (tarfile.CHRTYPE, tarfile.BLKTYPE, b"S", b"M", b"Z"):
        refused(copy, archive(member("thing", kind=kind)), "thing")
    equal(os.listdir(copy), [], "what is inside")


@test
def archives_that_lie_or_end_early_are_refused():
    copy = fresh("copy")
    data = archive(("a", b"a" * 1000), ("b", b"b" * 1000))
    refused(copy, data[:512 + 700], "cut short", "'a'")
    refused(copy, data[:512 + 1024], "cut short", "'a'")
    refused(copy, data[:100], "cut short")
    refused(copy, b"", "cut short")
    refused(copy, b"no archive" * 100, "no tar archive")
    refused(copy, data[:512 + 1024] + b"x" * 512, "damaged", "'a'")
    damaged = bytearray(data)
    damaged[3] ^= 1
    refused(copy, bytes(damaged), "no tar archive")
    assert not [name for name in os.listdir(copy) if name.startswith(".burrow")]
    huge = member("huge")[0]
    huge.size = 1 << 60
    refused(copy, huge.tobuf(tarfile.PAX_FORMAT) + b"x" * 4096, "cut short", "huge")
    pax = member("x", pax_headers={"GNU.sparse.major": "1"})
    refused(copy, archive(pax), "sparse")


@test
def long_paths_are_refused():
    copy = fresh("copy")
    refused(copy, archive(("n" * 300, b"")), "too long")
    refused(copy, archive(("a/" * 300 + "b", b"")), "too long")
    refused(copy, archive(("ab/" * 2000 + "b", b"")), "too long")
    refused(copy, archive(("ab/" * 2000 + "b", b""), form=tarfile.GNU_FORMAT), "too long")
    bring(copy, archive(("a/" * 200 + "b", b"")))


@test
def what_is_in_the_way_is_named():
    copy = fresh("copy")
    os.makedirs(f"{copy}/folder/full")
    for each in (("folder", b"x"), member("folder", kind=tarfile.SYMTYPE, link="x")):
        status, document = send(copy, archive(("before", b"x"), each))
        equal((status, document["code"]), (400, "IS_DIRECTORY"), str(document))
        assert "'folder'" in document["message"], document
    with open(f"{copy}/file", "wb"):
        pass
    status, document = send(copy, archive(("file/below", b"x")))
    equal((status, document["code"]), (400, "NOT_DIRECTORY"), str(document))
    equal(sorted(os.listdir(copy)), ["before", "file", "folder"], "what is inside")
    status, document = send(f"{copy}/file", archive())
    equal((status, document["code"]), (400, "NOT_DIRECTORY"), str(document))


@test
def the_folder_is_made_and_must_be_named():
    copy = os.path.join(fresh("copy"), "new/deep")
    bring(copy, archive(("a", b"a")))
    equal(os.listdir(copy), ["a"], "what is inside")
    for method in ("GET", "PUT"):
        response = request(SHARED.address, method, "/burrow/archive", [], b"", 10.0)
        equal(json.loads(response.body)["code"], "VALIDATION_FAILED", method)
    for path, code in (("/no/such", "FILE_NOT_FOUND"), ("/etc/passwd", "NOT_DIRECTORY")):
        equal(json.loads(SHARED.get(target(path)).body)["code"], code, path)
    status, document = send(copy, archive(), links="some")
    equal((status, document["code"]), (400, "VALIDATION_FAILED"), str(document))
    capabilities = json.loads(SHARED.get("/burrow/handshake").body)["capabilities"]
    assert "archive" in capabilities, capabilities


with Agent() as SHARED:
    FOLDER = os.path.join(SHARED.folder, "files")
    os.makedirs(FOLDER)
    main()
