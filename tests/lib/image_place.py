"""Folders, a cgroup and a network of one's own, in which images are registered and run.

    with ImagePlace() as place:
        place.image("import", "mine", place.archive(files))      # (status, output)
        place.sandbox("mine", "cat /etc/motd")                   # likewise
"""

import os
import shutil
import subprocess
import tempfile

from images import docker_save, layer, write_archive
from launcher import need_launcher
from outpost import cgroup, network_name, remove_groups
from program import SLOW, clean_environment, program

SECONDS = 60 * SLOW


class ImagePlace:
    """`own_names`: flags of `burrow run` and `burrow image build`."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="burrow-test-")
        self.data, self.run_folder = f"{self.folder}/data", f"{self.folder}/run"
        self.cgroup = cgroup() + "-images"  # a service may run beside it
        self.own_names = ["--cgroup", self.cgroup, "--network-name", network_name() + "i"]

    def __enter__(self):
        need_launcher()
        return self

    def __exit__(self, *_):
        remove_groups(self.cgroup)  # none but after a failing test
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, *words, given=b"", environment=None):
        done = subprocess.run([program(), *words], env=clean_environment(environment), input=given,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        return done.returncode, done.stdout.decode(errors="replace")

    def image(self, *words, **more):
        return self.call("image", "--data", self.data, "--run", self.run_folder, *words, **more)

    def sandbox(self, image, script):
        return self.call("run", "--data", self.data, "--run-folder", self.run_folder, *self.own_names,
                         "--image", image, "--", "/bin/sh", "-c", script)

    def layers(self):
        try:
            return sorted(os.listdir(f"{self.data}/images/.layers"))
        except FileNotFoundError:
            return []

    def archive(self, files, extra=()):
        path = f"{self.folder}/archive.tar"
        write_archive(path, files, extra)
        return path

    def import_layer(self, entries):
        """The answer to an image of one layer."""
        return self.image("import", "hostile", self.archive(docker_save([layer(entries)])))
