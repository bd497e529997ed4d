#!/usr/bin/python3
"""burrow cp: files, folders and streams into a sandbox and out of it, against a real daemon.

# timeout: 600
"""

import filecmp
import io
import json
import os
import stat
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from cli import Terminal, folder, good, plane, run  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20


def inside(script):
    return good("exec", "demo", "sh", "-c", script)


def write(path, data=b"", mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def tree(here):
    """A folder with a bit of everything."""
    write(f"{here}/tree/one", b"1")
    write(f"{here}/tree/bin/tool", b"#!/bin/sh\necho tool\n", 0o755)
    os.makedirs(f"{here}/tree/empty")
    os.symlink("/etc/passwd", f"{here}/tree/away")
    os.symlink("one", f"{here}/tree/near")
    return f"{here}/tree"


@test
def a_file_goes_in_and_comes_out_as_it_was():
    plane()
    good("create", "demo")
    here, data = folder(), os.urandom(5 * MIB + 17)
    write(f"{here}/data", data)
    good("cp", "data", "demo:", cwd=here)
    equal(inside("wc -c </workspace/data").strip(), str(len(data)), "size there")
    good("cp", "demo:data", "back", cwd=here)
    assert filecmp.cmp(f"{here}/data", f"{here}/back", shallow=False)
    equal(sorted(os.listdir(here)), ["back", "data"], "nothing else is left")


@test
def a_file_gets_the_name_it_is_given_or_goes_into_a_folder():
    here = folder()
    write(f"{here}/a", b"a")
    for target, place in (("demo:b", "/workspace/b"), ("demo:/tmp", "/tmp/a"),
                          ("demo:/tmp/new/", "/tmp/new/a"), ("demo:x y/ü:z", "/workspace/x y/ü:z")):
        good("cp", f"{here}/a", target)
        equal(inside(f"cat '{place}'"), "a", target)
    os.mkdir(f"{here}/folder")
    for target in ("folder", "folder/", "."):
        good("cp", "demo:x y/ü:z", target, cwd=here)
        equal(read(os.path.join(here, target, "ü:z")), b"a", target)


@test
def a_program_stays_one_and_special_modes_do_not_come_out():
    here = folder()
    write(f"{here}/tool", b"#!/bin/sh\necho tool\n", 0o755)
    good("cp", f"{here}/tool", "demo:")
    equal(inside("./tool"), "tool\n", "run there")
    inside("cp tool special && chmod 6755 special")
    good("cp", "demo:special", here)
    equal(stat.S_IMODE(os.stat(f"{here}/special").st_mode) & 0o7111, 0o111, "mode here")


@test
def a_folder_goes_in_and_comes_out_with_links_and_modes():
    here = folder()
    good("cp", tree(here), "demo:")
    equal(inside("cd tree && ./bin/tool && readlink away near && ls -A empty"),
          "tool\n/etc/passwd\none\n", "there")
    good("cp", "demo:tree", f"{here}/back")
    back = f"{here}/back"
    equal(sorted(os.listdir(back)), ["away", "bin", "empty", "near", "one"], "names here")
    equal(os.readlink(f"{back}/away"), "/etc/passwd", "link here")
    assert os.access(f"{back}/bin/tool", os.X_OK)


@test
def content_alone_is_copied_with_a_dot_and_a_second_copy_goes_inside():
    here = folder()
    tree(here)
    good("cp", f"{here}/tree/.", "demo:flat")
    good("cp", f"{here}/tree", "demo:flat")
    equal(inside("cat flat/one flat/tree/one"), "11", "there")
    os.mkdir(f"{here}/back")
    good("cp", "demo:flat/.", f"{here}/back")
    good("cp", "demo:flat", f"{here}/back")
    equal((read(f"{here}/back/one"), read(f"{here}/back/flat/one")), (b"1", b"1"), "here")


@test
def a_dash_is_a_stream_and_a_folder_is_then_a_tar_archive():
    data = os.urandom(MIB)
    good("cp", "-", "demo:stream", stdin=data)
    equal(run("cp", "demo:stream", "-").out, data, "back")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("in/tar")
        entry.size = 2
        tar.addfile(entry, io.BytesIO(b"ok"))
    good("cp", "-", "demo:unpacked/", stdin=archive.getvalue())
    equal(inside("cat unpacked/in/tar"), "ok", "unpacked")
    with tarfile.open(fileobj=io.BytesIO(run("cp", "demo:unpacked", "-").out)) as tar:
        assert "./in/tar" in tar.getnames(), tar.getnames()


@test
def what_is_there_stays_whole_when_a_copy_fails():
    here = folder()
    write(f"{here}/kept", b"kept")
    done = run("cp", "demo:nothing", f"{here}/kept")
    equal(done.status, 1, "status")
    assert "nothing" in done.err, done.err
    equal(read(f"{here}/kept"), b"kept", "content")
    equal(os.listdir(here), ["kept"], "nothing half done")


@test
def what_cannot_be_copied_is_told():
    here = folder()
    for words, sentence in (((f"{here}/none", "demo:"), "No such file"),
                            (("demo:x", f"{here}/no/where"), "No such file"),
                            (("demo:x", "demo:y"), "NAME:PATH"), (("x", "y"), "NAME:PATH"),
                            (("dmeo:x", here), "did you mean 'demo'?")):
        done = run("cp", *words)
        equal(done.status, 1, f"{words}: {done.err}")
        assert sentence in done.err, f"{words}: {done.err}"
    inside("touch x && mkdir -p secret")


@test
def a_hostile_archive_makes_no_devices_and_leads_nowhere():
    here = folder()
    inside("rm -rf evil && mkdir -p evil && ln -s /tmp evil/out && echo ok >evil/fine && mkfifo evil/f")
    done = run("cp", "demo:evil", f"{here}/evil")
    assert done.status in (0, 1), done.err
    equal(read(f"{here}/evil/fine"), b"ok\n", "what is good")
    for name in os.listdir(f"{here}/evil"):
        kind = os.lstat(f"{here}/evil/{name}").st_mode
        assert not stat.S_ISBLK(kind) and not stat.S_ISCHR(kind), name


@test
def progress_is_shown_at_a_terminal_alone():
    here = folder()
    with open(f"{here}/big", "wb") as file:
        file.truncate(400 * MIB)
    with Terminal("cp", f"{here}/big", "demo:big", columns=100) as at:
        shown = at.read_until(b" left")
        assert b"big  [" in shown and b"400 MiB" in shown, shown
        equal(at.wait(), 0, "status")
    done = run("cp", "demo:big", "/dev/null", "--json")
    equal((json.loads(done.out), done.err), ({"bytes": 400 * MIB}, ""), "not at a pipe")


main()
