#!/usr/bin/python3
"""`burrow image prepare`: images that come as recipes; here one that needs no network.

# timeout: 300
"""

import fcntl
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from http_raw import get  # noqa: E402
from image_place import ImagePlace  # noqa: E402
from launcher import Service, need_launcher  # noqa: E402
from program import ROOT, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402


class Kitchen(ImagePlace):
    """With a recipe in it."""

    def __enter__(self):
        super().__enter__()
        self.recipe = f"{self.folder}/recipe"
        os.mkdir(self.recipe)
        self.write("FROM host\nENV TASTE=salty\nRUN echo one >/srv/one\n")
        return self

    def write(self, dockerfile):
        with open(f"{self.recipe}/Dockerfile", "w", encoding="utf-8") as file:
            file.write(dockerfile)

    def prepare(self, *options, name="soup"):
        return self.image("prepare", *self.own_names, "--recipe", self.recipe, *options, name)

    def state(self):
        try:
            with open(f"{self.data}/prepare/soup/state", encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""


@test
def a_recipe_becomes_an_image_once():
    with Kitchen() as kitchen:
        status, out = kitchen.prepare()
        equal(status, 0, out)
        assert "step 3 of 3: build it" in out, out
        assert kitchen.state().startswith("ready "), kitchen.state()
        equal(kitchen.sandbox("soup", "cat /srv/one; echo $TASTE"), (0, "one\nsalty\n"))
        equal(kitchen.prepare(), (0, "image soup is ready\n"))
        kitchen.write("FROM host\nRUN echo two >/srv/one\n")
        status, out = kitchen.prepare()
        equal(status, 0, out)
        equal(kitchen.sandbox("soup", "cat /srv/one"), (0, "two\n"))


@test
def in_the_background_its_state_says_how_far_it_is():
    with Kitchen() as kitchen:
        equal(kitchen.prepare("--background"), (0, ""))
        wait_until(lambda: kitchen.state().startswith("ready "), "it is ready", 120)
        equal(kitchen.sandbox("soup", "cat /srv/one"), (0, "one\n"))
        with open(f"{kitchen.data}/prepare/soup/log", encoding="utf-8") as file:
            assert "step 3 of 3" in file.read()
        assert "being prepared" not in kitchen.image("ls")[1]


@test
def one_that_fails_says_so_to_whoever_looks():
    with Kitchen() as kitchen:
        kitchen.write("FROM host\nRUN exit 3\n")
        status, out = kitchen.prepare()
        equal(status, 1, out)
        assert "building the image failed" in out, out
        assert kitchen.state().startswith("failed: building the image"), kitchen.state()
        assert "(failed: building the image" in kitchen.image("ls")[1]
        kitchen.write("FROM host\nRUN true\n")
        equal(kitchen.prepare()[0], 0)


@test
def two_at_a_time_are_refused_and_so_is_what_is_no_recipe():
    with Kitchen() as kitchen:
        os.makedirs(f"{kitchen.data}/prepare/soup")
        folder = os.open(f"{kitchen.data}/prepare/soup", os.O_RDONLY)
        fcntl.flock(folder, fcntl.LOCK_EX)
        status, out = kitchen.prepare()
        os.close(folder)
        equal(status, 1)
        assert "is being prepared already" in out, out
        for name in ("../soup", ".soup"):
            assert "is no name of a recipe" in kitchen.prepare(name=name)[1]
        status, out = kitchen.image("prepare", "no-such-recipe")
        equal(status, 1)
        assert "there is no recipe" in out, out


@test
def a_service_starts_whatever_becomes_of_its_images():
    need_launcher()
    with Service("--prepare-images", "no-such-recipe") as service:
        equal(get(service.address, "/ready").status, 200)
        assert "prepare-images: there is no recipe 'no-such-recipe'" in service.log(), service.log()


@test
def the_recipe_of_the_agents_is_whole():
    folder = f"{ROOT}/packaging/recipes/agent"
    for name in ("packages", "fetch", "fetch-packages", "package.json", "package-lock.json", "Dockerfile"):
        assert os.path.getsize(f"{folder}/{name}") > 0, name
    assert os.access(f"{folder}/fetch-packages", os.X_OK)


main()
