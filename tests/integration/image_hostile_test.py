#!/usr/bin/python3
"""Images of an enemy: what their entries say, how one layer lies about another, and where sandboxes mount.

Every image comes as an archive; a few are pulled from Debian's docker-registry and built upon, too.

# timeout: 600
"""

import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from image_place import ImagePlace  # noqa: E402
from images import docker_save, entry, file, folder, layer, link, programs  # noqa: E402
from registry import Registry  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, main, test  # noqa: E402

GIB = 1 << 30
SIZE_FIELD = slice(124, 136)
CHECKSUM_FIELD = slice(148, 156)


def said(name, content=b"x", **records):
    """A file whose extended header says something else."""
    return file(name, content, pax_headers={key.replace("__", "."): value for key, value in records.items()})


def raw(entries, field, value):
    """The tar with a field of its first head changed, and the checksum right again."""
    bytes_ = bytearray(layer(entries))
    bytes_[field] = value.ljust(field.stop - field.start, b"\0")
    bytes_[CHECKSUM_FIELD] = b" " * 8
    bytes_[CHECKSUM_FIELD] = b"%06o\0 " % sum(bytes_[:512])
    return bytes(bytes_)


def chain(name, depth):
    return "/".join([name] * depth)


# What is refused: (what it is called here, the layer, a part of the sentence).
REFUSED = [
    ("a path that leads out in an extended header", layer([said("a", path="../../out")]), "leads out of the image"),
    ("a path that leads out in the middle", layer([file("a/b/../../../out")]), "leads out of the image"),
    ("NUL in a path", layer([said("a", path="a\0b")]), "malformed"),
    ("NUL in a link", layer([entry("a", tarfile.SYMTYPE, linkname="b", pax_headers={"linkpath": "b\0c"})]), "malformed"),
    ("a name of 256 bytes", layer([file("n" * 256)]), "cannot be unpacked"),
    ("a path of 5,000 bytes", layer([file(chain("deep", 1000))]), "too long"),
    ("a file that is the top", layer([file(".")]), "no folder"),
    ("a link that is the top", layer([link(".", "/etc")]), "no folder"),
    ("a way through a link to the top", layer([link("a", "."), file("a/b")]), "no folder"),
    ("a way through a file", layer([file("a"), file("a/b")]), "no folder"),
    ("a way through a pipe", layer([entry("a", tarfile.FIFOTYPE), file("a/b")]), "no folder"),
    ("a hard link through a link", layer([link("a", "/etc"), entry("b", tarfile.LNKTYPE, linkname="a/shadow")]), "no folder"),
    ("a hard link to a folder", layer([folder("a"), entry("b", tarfile.LNKTYPE, linkname="a")]), "cannot be unpacked"),
    ("a hard link to a mark", layer([file(".wh.a"), entry("b", tarfile.LNKTYPE, linkname="a")]), "cannot be unpacked"),
    ("a mark through a link", layer([link("a", "/etc"), file("a/.wh.passwd")]), "no folder"),
    ("a mark of nothing", layer([file("a/.wh.")]), "cannot be unpacked"),
    ("a file of 65 GiB", raw([file("a")], SIZE_FIELD, b"\x80" + (65 * GIB).to_bytes(11, "big")), "too large"),
    ("a file of 2^63 bytes", raw([file("a")], SIZE_FIELD, b"\x80\0\0\0\x80" + bytes(7)), "no tar archive"),
    ("a file of -1 bytes", raw([file("a")], SIZE_FIELD, b"\xff" * 12), "no tar archive"),
    ("a size of 20 digits", layer([said("a", size="9" * 20)]), "malformed"),
    ("a size that is not there", layer([said("a", size="99999")]), "cut short"),
    ("a sparse file of old", raw([file("a")], slice(156, 157), b"S"), "sparse"),
    ("a sparse file of now", layer([said("a", GNU__sparse__major="1", GNU__sparse__realsize="9999999999")]), "sparse"),
    ("several volumes", raw([file("a")], slice(156, 157), b"M"), "several volumes"),
    ("an unknown kind", raw([file("a")], slice(156, 157), b"\x1b"), "unknown"),
]

# Of these one in three also comes from a registry.
PULLED = REFUSED[::3]


def refused(place, answer, what, why):
    status, out = answer
    last = out.splitlines()[-1]
    equal(status, 1, f"{what}: {out}")
    assert last.startswith("burrow image: ") and why in last, f"{what}: {out}"
    assert out.isprintable() or set(out) - set("\n") == set(c for c in out if c.isprintable()), f"{what}: {out!r}"
    equal(place.layers(), [], f"{what}: layers of a refused image")


@test
def what_an_enemy_says_is_refused_and_leaves_nothing():
    with ImagePlace() as place:
        for what, content, why in REFUSED:
            refused(place, place.image("import", "hostile", place.archive(docker_save([content]))), what, why)
        assert not os.path.exists(f"{place.folder}/out") and not os.path.exists(f"{place.data}/out")


@test
def a_registry_brings_nothing_that_an_archive_may_not():
    with Registry() as registry, ImagePlace() as place:
        for number, (what, content, why) in enumerate(PULLED):
            registry.push("hostile", f"v{number}", [content])
            refused(place, place.image("pull", f"{registry.address}/hostile:v{number}"), what, why)


# Attributes that an entry brings, and whether they come to be.
ATTRIBUTES = {
    "user.kept": True, "user.overlay.opaque": False, "user.overlay.redirect": False, "user.overlay.metacopy": False,
    "user.overlay.whiteout": False, "user.overlay.origin": False, "trusted.overlay.opaque": False,
    "trusted.overlay.redirect": False, "trusted.any": False, "security.capability": False, "security.ima": False,
    "security.selinux": False, "system.posix_acl_access": False,
}


@test
def attributes_that_mean_something_to_a_kernel_are_left_out():
    records = {f"SCHILY.xattr.{name}": "y" for name in ATTRIBUTES}
    with ImagePlace() as place:
        status, out = place.import_layer([file("file", b"x", pax_headers=records), folder("folder", pax_headers=records),
                                          entry("link", tarfile.SYMTYPE, linkname="file", pax_headers=records)])
        equal(status, 0, out)
        tree = f"{place.data}/images/.layers/{place.layers()[0]}"
        wanted = [name for name, kept in ATTRIBUTES.items() if kept]
        equal([os.listxattr(f"{tree}/{name}", follow_symlinks=False) for name in ("file", "folder", "link")],
              [wanted, wanted, []], "attributes")


@test
def names_that_would_speak_to_a_terminal_are_names_and_nothing_else():
    names = ["new\nline", "\x1b[2J", "\x7f", "a b", "-rf", "\\", "\u202e"]
    with ImagePlace() as place:
        status, out = place.import_layer([file(name) for name in names])
        equal(status, 0, out)
        equal(sorted(os.listdir(f"{place.data}/images/.layers/{place.layers()[0]}")), sorted(names), "names")
        equal(place.image("rm", "hostile"), (0, ""), "rm")
        equal(place.image("prune"), (0, "1 deleted\n"), "prune")
        for name in names:  # in the message of our reader, and in that of the tree
            for content in (raw([file(name), file("x")], slice(156, 157), b"S"), layer([file(name), file(f"{name}/x")])):
                status, out = place.image("import", "hostile", place.archive(docker_save([content])))
                equal((status, out.count("\n")), (1, 1), repr(out))
                assert all(character.isprintable() for character in out[:-1]), repr(out)


BASE = [*programs("sh", "cat", "ls", "id", "stat", "cp"), folder("opt"), file("etc/passwd", b"root:x:0:0::/:/bin/sh\n"),
        file("opt/secret", b"below\n"), folder("opt/shut"), file("opt/shut/in", b"below\n")]


@test
def no_layer_reaches_through_a_link_of_another():
    """The kinds of one name change from layer to layer, and an entry goes the way that another made."""
    layers = [layer(BASE),
              layer([link("opt/shut", "/etc"), link("opt/one", "/etc/passwd"), link("var", "../../../../..")]),
              layer([file("opt/shut/passwd", b"evil\n"), file("opt/one", b"evil\n"), file("var/escaped", b"evil\n")]),
              layer([file("opt/kind"), folder("opt/kind"), file("opt/kind/x"), link("opt/kind", "/etc"), file("opt/kind"),
                     file("opt/twice", b"1"), file("opt/twice", b"2"), folder("opt/twin"), folder("opt/twin", mode=0o700)])]
    with ImagePlace() as place:
        status, out = place.image("import", "mine", place.archive(docker_save(layers)))
        equal(status, 0, out)
        status, out = place.sandbox("mine", "cat /etc/passwd /opt/shut/passwd /opt/one; ls /opt/shut; stat -c %F%s /opt/kind; "
                                            "cat /opt/twice; ls /var; stat -c %a /opt/twin")
        equal(status, 0, out)
        equal(out, "root:x:0:0::/:/bin/sh\nevil\nevil\npasswd\nregular empty file0\n2escaped\n700\n", "in it")
        status, out = place.image("import", "far", place.archive(docker_save(
            [layer(BASE), layer([entry("a", tarfile.LNKTYPE, linkname="opt/secret")])])))
        equal((status, "cannot be unpacked" in out), (1, True), f"a hard link into the layer below: {out}")


@test
def set_ids_and_devices_of_an_image_give_nothing():
    with ImagePlace() as place:
        content = layer([*BASE, file("etc/group"), entry("dev/mem", tarfile.CHRTYPE, devmajor=1, devminor=1),
                         entry("opt/null", tarfile.CHRTYPE, devmajor=1, devminor=3)])
        content = content.rstrip(b"\0")
        content += bytes(-len(content) % 512) + layer([
            file("opt/id", b"", mode=0o6755), entry("opt/again", tarfile.LNKTYPE, linkname="opt/id")])
        status, out = place.image("import", "mine", place.archive(docker_save([content], {"User": "1000:1000"})))
        equal(status, 0, out)
        status, out = place.sandbox("mine", "ls /opt; stat -c %a:%h /opt/id; ls /dev/mem 2>&1; cat /proc/self/status")
        assert out.startswith("again\nid\nsecret\nshut\n6755:2\n") and "'/dev/mem': No such" in out, out
        assert "NoNewPrivs:\t1" in out, out


# What a sandbox mounts or writes at, and what an image may have there instead.
TOPS = ["dev", "proc", "sys", "etc", "tmp", "run", "var", "usr/local", "workspace", "home", "etc/resolv.conf", "etc/hosts"]
INSTEAD = {
    "a link out": lambda name: link(name, "/../../../../../../.."),
    "a link to itself": lambda name: link(name, os.path.basename(name)),
    "a file": lambda name: file(name, b"hello"),
    "a pipe": lambda name: entry(name, tarfile.FIFOTYPE),
}


@test
def where_sandboxes_mount_an_image_may_have_anything():
    """In full every pair. Each runs, or is refused in a sentence; the host's own files are what they were (and its mounts, tap.py)."""
    host = {path: os.lstat(path).st_mtime_ns for path in ("/etc", "/dev/null", "/home", "/usr/local", "/etc/hosts", "/proc/1")}
    base = layer([one for one in BASE if one[0].name not in ("etc", "tmp")])
    ran = tried = 0
    with ImagePlace() as place:
        for kind, make in INSTEAD.items():
            for number, name in enumerate(TOPS):
                if not FULL and number % len(INSTEAD) != list(INSTEAD).index(kind):
                    continue  # each place once, each kind three times
                top = layer([make(name)])
                status, out = place.image("import", f"top{number}", place.archive(docker_save([base, top])))
                equal(status, 0, f"{name} as {kind}: {out}")
                status, out = place.sandbox(f"top{number}", "id -u && cat /proc/self/mountinfo")
                ran, tried = ran + (status == 0), tried + 1
                assert status in (0, 125, 126, 127) and out, f"{name} as {kind}: {status} {out}"
                if status:
                    assert out.startswith("burrow: ") and out.count("\n") == 1, f"{name} as {kind}: {out}"
                else:
                    assert out.startswith("0\n") and place.folder not in out, f"{name} as {kind}: {out}"
    print(f"# {ran} of {tried} ran, the others were refused")
    equal({path: os.lstat(path).st_mtime_ns for path in host}, host, "the host's own")


@test
def a_build_on_it_stays_in_it():
    """COPY to links of the base that lead to a folder of the host: refused, or it lands in the image."""
    with ImagePlace() as place:
        os.makedirs(f"{place.folder}/context")
        with open(f"{place.folder}/context/x", "w", encoding="ascii") as out:
            out.write("mine\n")
        out_there = "/../../../../.." + place.folder
        status, out = place.image("import", "base", place.archive(docker_save(
            [layer([*BASE, link("out", out_there), link("far", f"{out_there}/far"),
                    link("opt/up", "../../../../../../.." + place.folder)])], {"Env": ["PATH=/bin"]})))
        equal(status, 0, out)
        before = sorted(os.listdir(place.folder))
        for number, target in enumerate(("/out/", "/out", "/far", "/opt/up/deep/er", "/../../../../.." + place.folder + "/y")):
            with open(f"{place.folder}/context/Dockerfile", "w", encoding="ascii") as text:
                text.write(f"FROM base\nCOPY x {target}\n")
            status, out = place.image("build", *place.own_names, f"mine{number}", f"{place.folder}/context")
            assert status == 0 or out.splitlines()[-1].startswith("burrow image build: line 2: COPY: "), out
            equal(sorted(os.listdir(place.folder)), before, f"the host's folder after {target}")


main()
