#!/usr/bin/python3
"""`burrow image import`: images of containers, from friends and from others.

# timeout: 600
"""

import fcntl
import os
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from image_place import ImagePlace  # noqa: E402
from images import (digest, docker_save, document, entry, file, folder, gone, layer, layout, link, opaque,  # noqa: E402
                    programs, write_folder, zstd)
from tap import equal, main, test  # noqa: E402

CONFIG = {"Env": ["PATH=/bin", "GREETING=hello there", "BURROW_WORKSPACE=/not/this"], "WorkingDir": "/srv/work",
          "User": "1000:1000", "Entrypoint": ["/bin/sh"], "Cmd": ["-c", "echo"],
          "ExposedPorts": {"8080/tcp": {}, "53/udp": {}}}


BASE = None


def base():
    global BASE  # pylint: disable=global-statement
    BASE = BASE or layer([*programs("sh", "cat", "ls", "env", "stat", "id"),
                          file("etc/old", b"old\n"), folder("opt/full"), file("opt/full/a"), file("etc/kept", b"kept\n"),
                          file("etc/theirs", b"", uid=33, gid=44, mode=0o640), folder("srv"), folder("srv/work")])
    return BASE


TOP = layer([gone("etc/old"), opaque("opt/full"), file("opt/full/b"), file("etc/new", b"new\n"),
             link("etc/link", "/etc/new"), file("./usr/deep/er", b"x")])


def check_sandbox(place, name):
    status, out = place.sandbox(name, "cat /etc/new /etc/kept /etc/link; ls /opt/full; ls /etc/old 2>&1; "
                                      "stat -c %u:%g:%a /etc/theirs; echo $GREETING; ls /proc/self/fd >/dev/null && pwd")
    assert "new\nkept\nnew\nb\n" in out, out
    assert "'/etc/old': No such file" in out, out
    assert "33:44:640\nhello there\n/srv/work\n" in out, out
    equal(status, 0, out)


@test
def a_layout_runs_with_its_layers_on_each_other_and_its_environment():
    with ImagePlace() as place:
        write_folder(f"{place.folder}/layout", layout([base(), TOP], CONFIG))
        status, out = place.image("import", "mine", f"{place.folder}/layout")
        equal((status, out), (0, "layer 1 of 2: unpacked\nlayer 2 of 2: unpacked\n"), "import")
        equal(place.layers(), sorted([digest(base()), digest(TOP)]), "layers")
        check_sandbox(place, "mine")
        equal(place.image("ls")[1].split("\n")[1].split(), ["mine", "(imported)"], "ls")


@test
def saved_archives_of_both_kinds_and_all_compressions_give_the_same_image():
    with ImagePlace() as place:
        for name, files in (("saved", docker_save([base(), TOP], CONFIG)),
                            ("oci", layout([base(), TOP], CONFIG)),
                            ("zstd", layout([base(), TOP], CONFIG, zstd)),
                            ("plain", layout([base(), TOP], CONFIG, bytes))):
            status, out = place.image("import", name, place.archive(files))
            equal(status, 0, f"{name}: {out}")
            said = "unpacked" if name == "saved" else "here already"
            equal(out, f"layer 1 of 2: {said}\nlayer 2 of 2: {said}\n", name)
            equal(place.image("inspect", name), place.image("inspect", "saved"), name)
        equal(len(place.layers()), 2, "layers are shared")
        check_sandbox(place, "zstd")


@test
def inspect_says_what_the_maker_wants():
    with ImagePlace() as place:
        place.image("import", "mine", place.archive(docker_save([TOP], CONFIG)))
        status, out = place.image("inspect", "mine")
        equal(status, 0, out)
        equal(out, f"layer       {digest(TOP)}\nenv         PATH=/bin\nenv         GREETING=hello there\n"
                   "env         BURROW_WORKSPACE=/not/this\nuser        1000:1000\nworkdir     /srv/work\n"
                   "entrypoint  /bin/sh\ncmd         -c\ncmd         echo\nport        8080/tcp\nport        53/udp\n",
              "inspect")
        equal(place.image("inspect", "other"), (1, "burrow image: there is no image 'other'\n"), "another")
        equal(place.image("inspect", "host"), (0, "built in    this machine's /usr\n"), "host")


@test
def words_of_an_image_do_nothing_to_a_terminal():
    with ImagePlace() as place:
        config = {"Env": ["A=\033[2J\x9b2J\u202e", "B=gr\u00fc\u00df"]}
        status, out = place.image("import", "odd", place.archive(docker_save([base()], config)))
        equal(status, 0, out)
        equal(place.image("inspect", "odd")[1].split("\n")[1:3], ["env         A=?[2J??2J???", "env         B=gr\u00fc\u00df"],
              "inspect")


@test
def prune_deletes_what_no_image_has():
    with ImagePlace() as place:
        place.image("import", "two", place.archive(docker_save([base(), TOP])))
        place.image("import", "one", place.archive(docker_save([base()])))
        os.makedirs(f"{place.data}/images/.layers/.new-left/behind")
        equal(place.image("rm", "two"), (0, ""), "rm")
        equal(len(place.layers()), 3, "layers after rm")
        equal(place.image("prune"), (0, "2 deleted\n"), "prune")
        equal(place.layers(), [digest(base())], "layers")
        equal(place.sandbox("one", "cat /etc/kept"), (0, "kept\n"), "the other image")
        status, out = place.sandbox("two", "true")
        equal(status, 125, out)
        assert "there is no image 'two'" in out, out


@test
def prune_waits_for_nobody_who_makes_an_image():
    with ImagePlace() as place:
        place.image("import", "one", place.archive(docker_save([base()])))
        place.image("rm", "one")
        layers = os.open(f"{place.data}/images/.layers", os.O_RDONLY)
        fcntl.flock(layers, fcntl.LOCK_SH)
        status, out = place.image("prune")
        equal(status, 1, out)
        assert "try again when it is done" in out, out
        equal(place.layers(), [digest(base())], "layers")
        os.close(layers)
        equal(place.image("prune"), (0, "1 deleted\n"), "prune")


@test
def a_damaged_entry_ends_prune():
    with ImagePlace() as place:
        place.image("import", "one", place.archive(docker_save([base()])))
        os.truncate(f"{place.data}/images/one", 20)
        status, out = place.image("prune")
        equal(status, 1, out)
        assert "image 'one' cannot be read" in out, out
        equal(place.layers(), [digest(base())], "layers")


@test
def names_of_steps_are_the_builds_own():
    with ImagePlace() as place:
        name = "step-" + "0" * 56
        archive = place.archive(docker_save([base()]))
        for words in (["import", name, archive], ["pull", name, "localhost:1/a"], ["debian", name, "", "", ""],
                      ["add", name, place.folder]):
            status, out = place.image(*words)
            equal(status, 1, out)
            assert "names like this one are those of builds" in out, out
        equal(place.layers(), [], "layers")


@test
def a_layer_that_comes_twice_is_there_once():
    with ImagePlace() as place:
        status, out = place.image("import", "mine", place.archive(docker_save([base(), TOP, layer([]), TOP, layer([])])))
        equal(status, 0, out)
        equal(len(place.layers()), 3, "layers")
        equal(place.sandbox("mine", "cat /etc/new"), (0, "new\n"), "runs")


@test
def many_layers_are_on_each_other_up_to_the_limit():
    with ImagePlace() as place:
        many = [layer([file("etc/top", b"%d\n" % number), file(f"etc/n{number}")]) for number in range(127)]
        status, out = place.image("import", "many", place.archive(docker_save([base(), *many])))
        equal(status, 0, out)
        equal(place.sandbox("many", "cat /etc/top; cat /etc/n0 /etc/n126 && echo both"), (0, "126\nboth\n"), "runs")
        status, out = place.image("import", "more", place.archive(docker_save([base(), *many, TOP])))
        equal(status, 1, out)
        equal("more" in place.image("ls")[1], False, "listed")


def refused(place, answer, why):
    status, out = answer
    equal(status, 1, out)
    assert out.startswith("burrow image: ") and out.count("\n") == 1 and why in out, out
    equal(place.layers(), [], "layers of a refused image")
    equal(place.image("ls")[1].count("\n"), 1, "images")


@test
def hostile_layers_are_refused_and_leave_nothing():
    with ImagePlace() as place:
        for entries, why in (
                ([file("../out")], "leads out of the image"),
                ([file("a/../../out")], "leads out of the image"),
                ([link("a", "/etc"), file("a/out")], "no folder"),
                ([link("a", "../../.."), folder("a/b")], "no folder"),
                ([entry("a", tarfile.LNKTYPE, linkname="/etc/shadow")], "cannot be unpacked"),
                ([entry("a", tarfile.LNKTYPE, linkname="../../x")], "cannot be unpacked"),
                ([link("l", "/etc"), entry("a", tarfile.LNKTYPE, linkname="l/shadow")], "no folder"),
                ([file("x/.wh...")], "cannot be unpacked"),
                ([file("/".join("d" * 300))], "cannot be unpacked"),
        ):
            refused(place, place.import_layer(entries), why)
        assert not os.path.exists(f"{place.folder}/out")


@test
def what_is_left_out_is_left_out():
    with ImagePlace() as place:
        status, out = place.import_layer([
            entry("dev/sda", tarfile.BLKTYPE, devmajor=8), entry("dev/mem", tarfile.CHRTYPE, devmajor=1, devminor=1),
            file(".wh..wh.plnk"), file("big", uid=4000000, gid=70000), file("suid", mode=0o4755)])
        equal(status, 0, out)
        tree = f"{place.data}/images/.layers/{place.layers()[0]}"
        equal(sorted(os.listdir(tree)), ["big", "dev", "suid"], "tree")
        equal(os.listdir(f"{tree}/dev"), [], "devices")
        status = os.stat(f"{tree}/big")
        equal((status.st_uid, status.st_gid), (65534, 65534), "owner")
        equal(os.stat(f"{place.data}/images").st_mode & 0o777, 0o700, "nobody else gets to it")


@test
def damaged_and_foreign_images_are_refused_in_a_sentence():
    with ImagePlace() as place:
        good = layout([TOP])
        blobs = sorted((name for name in good if name.startswith("blobs")), key=lambda name: len(good[name]))
        for name in blobs:
            broken = {**good, name: good[name][:-1] + bytes([good[name][-1] ^ 1])}
            status, out = place.image("import", "broken", place.archive(broken))
            equal(status, 1, f"{name}: {out}")
            assert "damaged" in out, out
            missing = {other: content for other, content in good.items() if other != name}
            refused(place, place.image("import", "missing", place.archive(missing)), "the image has no 'blobs/")
        wrong = docker_save([TOP])
        wrong[next(name for name in wrong if name.endswith("layer.tar"))] = layer([file("other")])
        refused(place, place.image("import", "wrong", place.archive(wrong)), "what it holds is damaged")
        refused(place, place.image("import", "far", place.archive(layout([TOP], architecture="vax"))), "for linux/vax")
        refused(place, place.image("import", "no", place.archive({"hello": b""})), "neither index.json nor")
        refused(place, place.image("import", "two", place.archive({"manifest.json": document([{}, {}])})), "2 images")
        with open(f"{place.folder}/text", "wb") as out:
            out.write(b"hello" * 1000)
        refused(place, place.image("import", "text", f"{place.folder}/text"), "no tar archive")
        with open(f"{place.folder}/cut", "wb") as out, open(place.archive(good), "rb") as whole:
            out.write(whole.read()[:2000])
        refused(place, place.image("import", "cut", f"{place.folder}/cut"), "cut short")
        refused(place, place.image("import", "none", f"{place.folder}/none"), "No such file")
        refused(place, place.image("import", "Host", place.archive(good)), "the name of an image")
        refused(place, place.image("import", "host", place.archive(good)), "built-in")


@test
def a_layout_cannot_lead_out_of_its_folder():
    with ImagePlace() as place:
        path = f"{place.folder}/layout"
        write_folder(path, layout([TOP]))
        os.rename(f"{path}/index.json", f"{place.folder}/index.json")
        os.symlink("../index.json", f"{path}/index.json")
        status, out = place.image("import", "mine", path)
        equal(status, 1, out)
        equal(place.layers(), [], "layers")


main()
