#!/usr/bin/python3
"""`burrow image` and `burrow bind`: folders that root registers by name."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import run_as_nobody, run_burrow  # noqa: E402
from program import clean_environment, program  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

VERBS = ("image", "bind")


class Place:
    """A data folder (not made yet) and a folder that may be registered."""

    def __enter__(self):
        if os.geteuid() != 0:
            skip("root")
        # pylint: disable=consider-using-with
        # On a disk: what is beneath /dev, as memory may be, cannot be registered.
        self.folder = tempfile.TemporaryDirectory(prefix="burrow-test-", dir="/var/tmp")
        self.data = os.path.join(self.folder.name, "data")
        self.root = os.path.join(self.folder.name, "root")
        os.mkdir(self.root, 0o755)
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, verb, *words):
        return run_burrow(verb, "--data", self.data, *words)

    def names(self, verb):
        """{name: folder} as `ls` prints them."""
        status, output = self.run(verb, "ls")
        equal(status, 0, f"{verb} ls: {output}")
        return dict(line.split(None, 1) for line in output.splitlines())


@test
def a_folder_is_added_listed_and_removed():
    for verb in VERBS:
        with Place() as place:
            equal(place.run(verb, "add", "mine", place.root), (0, ""), f"{verb} add")
            equal(place.names(verb)["mine"], place.root, "folder")
            equal(place.run(verb, "rm", "mine"), (0, ""), f"{verb} rm")
            equal("mine" in place.names(verb), False, "listed after rm")
            assert os.path.isdir(place.root), "the folder itself is gone"


@test
def a_path_from_here_is_taken_as_such():
    with Place() as place:
        done = subprocess.run([program(), "image", "--data", place.data, "add", "mine", "root"],
                              cwd=place.folder.name, env=clean_environment(), check=False)
        equal(done.returncode, 0, "status")
        equal(place.names("image")["mine"], place.root, "folder")


@test
def the_registries_are_closed_to_others_and_the_data_folder_is_not():
    with Place() as place:
        for verb in VERBS:
            place.run(verb, "add", "mine", place.root)
            equal(os.stat(f"{place.data}/{verb}s").st_mode & 0o777, 0o700, f"mode of {verb}s")
        equal(os.stat(place.data).st_mode & 0o777, 0o755, "mode of the data folder")


@test
def looking_makes_nothing():
    with Place() as place:
        equal(list(place.names("image")), ["host"], "images")
        equal(place.names("bind"), {}, "binds")
        status, output = place.run("image", "rm", "mine")
        equal((status, output), (1, "burrow image: there is no image 'mine'\n"), "rm")
        equal(os.path.exists(place.data), False, "data folder")


@test
def places_of_the_host_are_refused_in_a_sentence():
    for verb in VERBS:
        with Place() as place:
            for folder in ("/", "/etc", "/etc/ssl", "/root", "/home", "/proc", "/sys/kernel", "/dev",
                           place.data, place.root + "/missing"):
                status, output = place.run(verb, "add", "mine", folder)
                equal(status, 1, f"{verb} add {folder}: {output}")
                assert output.startswith(f"burrow {verb}: ") and output.count("\n") == 1, output
            os.chmod(place.root, 0o777)
            status, output = place.run(verb, "add", "mine", place.root)
            equal(status, 1, "a folder that others can change")
            assert "others than root can change it" in output, output
            assert "mine" not in place.names(verb)


@test
def names_follow_the_rule_and_the_built_in_one_is_taken():
    with Place() as place:
        for name in ("A", "../x", "", ".x", "a b", "x" * 65):
            equal(place.run("image", "add", name, place.root)[0], 1, f"name '{name}'")
        status, output = place.run("image", "add", "host", place.root)
        equal((status, output), (1, "burrow image: 'host' is the built-in image\n"), "host")
        equal(place.run("bind", "add", "host", place.root), (0, ""), "a bind called host")


@test
def wrong_words_are_refused_with_the_usage():
    for verb in VERBS:
        for words in ([], ["add"], ["add", "x"], ["ls", "x"], ["frob"], ["--nonsense", "ls"]):
            status, output = run_burrow(verb, *words)
            equal(status, 2, f"{verb} {words}")
            assert f"usage: burrow {verb}" in output, output


@test
def without_root_it_says_so_with_status_2():
    if os.geteuid() != 0:
        skip("root")
    for verb in VERBS:
        equal(run_as_nobody("burrow-admin", verb, "ls"),
              (2, f"burrow {verb}: needs root: run it with sudo\n"), "answer")


main()
