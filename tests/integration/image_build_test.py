#!/usr/bin/python3
"""`burrow image build`: Dockerfiles, done step by step in sandboxes.

# timeout: 600
"""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from image_place import ImagePlace  # noqa: E402
from images import docker_save, file, folder, layer, programs  # noqa: E402
from program import clean_environment, program  # noqa: E402
from tap import equal, main, test  # noqa: E402

PROGRAMS = ("sh", "cat", "ls", "env", "stat", "id", "rm", "mkdir", "touch", "mv", "ln")
PASSWD = b"root:x:0:0::/root:/bin/sh\nuser:x:1000:1001::/:/bin/sh\n"


class Site(ImagePlace):
    """With a context beside it."""

    def __enter__(self):
        super().__enter__()
        self.context = f"{self.folder}/context"
        os.mkdir(self.context)
        return self

    def write(self, name, content, mode=0o644):
        path = f"{self.context}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as out:
            out.write(content)
        os.chmod(path, mode)

    def build(self, recipe, *options, name="mine"):
        self.write("Dockerfile", recipe)
        return self.image("build", *self.own_names, *options, name, self.context)

    def built(self, recipe, *options, name="mine"):
        status, out = self.build(recipe, *options, name=name)
        equal(status, 0, out)
        return out

    def inspect(self, name="mine"):
        """{key: [words]}"""
        status, out = self.image("inspect", name)
        equal(status, 0, out)
        found = {}
        for line in out.splitlines():
            key, word = line.split(None, 1)
            found.setdefault(key, []).append(word)
        return found

    def prepare_base(self):
        """An imported image `base` that has programs and accounts."""
        content = layer([*programs(*PROGRAMS), file("etc/passwd", PASSWD), file("etc/group", b"staff:x:50:\n"),
                         folder("opt"), file("opt/old", b"old\n"), file("etc/kept", b"kept\n")])
        status, out = self.image("import", "base", self.archive(docker_save(
            [content], {"Env": ["PATH=/bin", "FROM_BASE=yes"], "Cmd": ["theirs"], "WorkingDir": "/opt"})))
        equal(status, 0, out)


@test
def every_instruction_does_what_it_says():
    with Site() as site:
        site.prepare_base()
        site.write("a.txt", "A\n")
        site.write("src/one.c", "1\n")
        site.write("src/deep/two.c", "2\n", 0o755)
        site.write("src/skip.log", "no\n")
        site.write(".dockerignore", "**/*.log\n")
        out = site.built("""# a comment
ARG WHO=nobody
ARG HIDDEN=seen
FROM base
ARG WHO=nobody
ENV GREETING="hello $WHO" EMPTY=
WORKDIR /srv
WORKDIR app
COPY a.txt src/ ./
COPY --chown=user:staff a.txt /opt/theirs
COPY *.txt src/o?e.c /opt/many/
COPY ["a.txt", "/opt"]
RUN echo "$GREETING $WHO$HIDDEN $FROM_BASE $(id -u)" > out \\
    # in between
    && rm /opt/old && mv /etc/kept /etc/moved
USER user
RUN ["/bin/sh", "-c", "id -u > /tmp/id; id -g >> /tmp/id; pwd >> /tmp/id"]
EXPOSE 80 53/udp
ENTRYPOINT ["/bin/sh", "-c"]
CMD ["echo run"]
""", "--build-arg", "WHO=world", "--net", "none")
        assert "step 12/17: RUN echo" in out and "image mine: 9 layers" in out, out
        seen = site.inspect()
        equal(len(seen.pop("layer")), 9, "layers with that of the base")
        equal(seen, {"env": ["PATH=/bin", "FROM_BASE=yes", "GREETING=hello world", "EMPTY="], "user": ["user"],
                     "workdir": ["/srv/app"], "entrypoint": ["/bin/sh", "-c"], "cmd": ["echo run"],
                     "port": ["80/tcp", "53/udp"]}, "inspect")
        status, out = site.sandbox("mine", "cat out /tmp/id; ls /opt /opt/many /srv/app /etc; "
                                           "stat -c '%n %a %u:%g' /opt/theirs deep/two.c; echo $GREETING; pwd")
        equal(status, 0, out)
        equal(out, "hello world world yes 0\n1000\n1001\n/srv/app\n"
                   "/etc:\ngroup\nmoved\npasswd\nresolv.conf\n\n"
                   "/opt:\na.txt\nmany\ntheirs\n\n/opt/many:\na.txt\none.c\n\n/srv/app:\na.txt\ndeep\none.c\nout\n"
                   "/opt/theirs 644 1000:50\ndeep/two.c 755 0:0\nhello world\n/srv/app\n", "in it")


@test
def a_copy_goes_where_links_lead_and_its_owner_gets_what_is_made_for_it():
    with Site() as site:
        site.prepare_base()
        site.write("tool", "T\n")
        site.write("app/main", "M\n")
        site.built("""FROM base
RUN mkdir /opt/there && ln -s there /opt/link && touch /opt/plain && ln -s plain /opt/name
COPY tool /opt/link
COPY app /opt/link
COPY tool /opt/name
COPY --chown=user:staff app /made/for/them
COPY --chown=user:staff tool /opt/link/alone/tool
COPY --chown=user:staff tool /opt
""", "--net", "none")
        status, out = site.sandbox("mine", "cd /opt; stat -c '%n %F %u:%g' link there link/tool link/main plain name "
                                           "there/alone there/alone/tool tool /opt /made /made/for /made/for/them/main")
        equal(status, 0, out)
        equal(out, "link symbolic link 0:0\nthere directory 0:0\nlink/tool regular file 0:0\n"
                   "link/main regular file 0:0\nplain regular empty file 0:0\nname regular file 0:0\n"
                   "there/alone directory 1000:50\nthere/alone/tool regular file 1000:50\n"
                   "tool regular file 1000:50\n/opt directory 0:0\n/made directory 1000:50\n"
                   "/made/for directory 1000:50\n/made/for/them/main regular file 1000:50\n", "whose what is")


@test
def a_step_is_done_again_only_when_something_it_depends_on_changed():
    recipe = "FROM host\nCOPY a /srv/a\nRUN cat /proc/sys/kernel/random/uuid > /srv/id\n"
    with Site() as site:
        site.write("a", "1")
        equal(site.built(recipe).count("done before"), 0, "first")
        first = site.inspect()
        equal(first["base"], ["host"], "base")
        equal(site.built(recipe + "CMD x\n", name="other").count("done before"), 2, "same steps")
        equal(site.inspect("other")["layer"], first["layer"], "layers are shared")
        os.utime(f"{site.context}/a", (1, 1))
        equal(site.built(recipe).count("done before"), 2, "another time of the file")
        site.write("a", "2")
        equal(site.built(recipe).count("done before"), 0, "another content")
        equal(site.built(recipe, "--no-cache").count("done before"), 0, "--no-cache")
        equal(site.built(recipe.replace("RUN", "ENV A=1\nRUN")).count("done before"), 1, "another environment")
        equal(site.image("rm", "mine")[0], 0, "rm")
        equal(site.image("rm", "other")[0], 0, "rm")
        equal(site.image("prune")[0], 0, "prune")
        equal(site.layers(), [], "layers after prune")
        equal(site.built(recipe).count("done before"), 0, "after prune")


@test
def a_failed_build_changes_nothing_and_says_which_line():
    with Site() as site:
        site.built("FROM host\nRUN touch /srv/good\n")
        before = site.inspect()
        for recipe, why in (
                ("FROM host\nRUN echo complaint; exit 3\n", "line 2: RUN: it ended with status 3"),
                ("FROM host\n\nRUN [\"/no/such\"]\n", "line 3: RUN: "),
                ("FROM host\nCOPY missing /x\n", "line 2: COPY: there is no 'missing' in the context"),
                ("FROM host\nCOPY ../x /x\n", "line 2: COPY: '../x' leads out of the context"),
                ("FROM host\nCOPY --chown=nobody-here Dockerfile /x\n", "line 2: COPY: there is no user 'nobody-here'"),
                ("FROM host\nUSER nobody-here\nRUN true\n", "line 3: RUN: there is no such user"),
                ("ARG B=--help\nFROM $B\n", "line 2: FROM: the name of an image has"),
                ("FROM missing\n", "line 1: FROM: there is no image 'missing'"),
                ("FROM host\nADD a b\n", "line 2: 'ADD' is not one of the instructions"),
                ("FROM host\nRUN kill -9 $$\n", "line 2: RUN: it was ended by signal 9")):
            status, out = site.build(recipe)
            equal(status, 1, f"{recipe}: {out}")
            assert f"burrow image build: {why}" in out or f"Dockerfile: {why}" in out, out
            equal(site.inspect(), before, "the image")
        assert "complaint" in site.build("FROM host\nRUN echo complaint; exit 3\n")[1]
        equal([name for name in site.layers() if name.startswith(".")], [], "left behind")


@test
def a_build_leaves_room_on_the_disk_of_its_temporary_files():
    with Site() as site:
        small = f"{site.folder}/small"
        os.mkdir(small)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", small], check=True)
        try:
            site.write("a", "1")
            for step in ("COPY a /srv/a", "RUN touch /srv/a"):
                site.write("Dockerfile", f"FROM host\n{step}\n")
                status, out = site.image("build", *site.own_names, "--net", "none", "mine", site.context,
                                         environment={"TMPDIR": small})
                equal(status, 1, out)
                assert "No space left on device" in out, out
        finally:
            subprocess.run(["umount", small], check=True)
        equal(site.layers(), [], "layers")


@test
def a_step_is_in_a_sandbox_and_without_a_network_when_told_so():
    with Site() as site:
        out = site.built("FROM host\nRUN ls /sys/class/net /proc/1/root 2>&1; hostname; cat /proc/net/dev; "
                         "mknod /srv/disk b 8 0 || echo no device\n", "--net", "none")
        assert "no device" in out and "eth0" not in out, out
        assert not os.path.exists("/srv/disk")


@test
def a_folder_can_be_a_base_and_a_built_image_too():
    # On a disk: what is beneath /dev, as memory may be, cannot be registered.
    with Site() as site, tempfile.TemporaryDirectory(prefix="burrow-test-", dir="/var/tmp") as disk:
        root = f"{disk}/root"
        os.mkdir(root, 0o755)
        for info, content in programs(*PROGRAMS):
            path = f"{root}/{info.name}"
            if info.isdir():
                os.makedirs(path, exist_ok=True)
                continue
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as out:
                out.write(content)
            os.chmod(path, 0o755)
        equal(site.image("add", "folder", root)[0], 0, "add")
        site.built("FROM folder\nENV PATH=/bin\nRUN echo one > /one\n", name="first")
        site.built("FROM first\nRUN echo two > /two; rm /one\n", name="second")
        equal(site.inspect("second")["base"], ["folder"], "base")
        equal(len(site.inspect("second")["layer"]), 2, "layers")
        equal(site.sandbox("second", "cat /two; ls /one 2>/dev/null || echo gone"), (0, "two\ngone\n"), "second")
        equal(site.sandbox("first", "cat /one"), (0, "one\n"), "first")
        recipe = "FROM folder\nENV PATH=/bin\nRUN echo one > /one\n"
        equal(site.built(recipe).count("done before"), 1, "the same folder")
        os.rename(root, f"{root}-before")
        shutil.copytree(f"{root}-before", root, symlinks=True)
        equal(site.built(recipe).count("done before"), 0, "another folder of that path")


def in_layers(site):
    """Paths of all that is in any of the layers."""
    layers = f"{site.data}/images/.layers"
    return {os.path.relpath(f"{where}/{name}", layers).split("/", 1)[1]
            for where, inner, files in os.walk(layers) if where != layers for name in inner + files}


@test
def what_a_sandbox_makes_of_itself_is_in_no_layer():
    with Site() as site:
        site.prepare_base()
        before = in_layers(site)
        out = site.built("FROM base\nRUN true\nRUN cat /etc/resolv.conf && touch /workspace\n")
        assert "nameserver 169.254.1.1\n" in out and "image mine: 2 layers" in out, out
        equal(in_layers(site) - before, {"workspace"}, "what the steps made")
        out = site.built("FROM base\nRUN touch /workspace/mine && echo x > /etc/resolv.conf\n")
        equal(site.sandbox("mine", "cat /etc/resolv.conf; ls /workspace; stat -c %a /workspace"),
              (0, "x\nmine\n777\n"), "what a step wrote itself")


@test
def words_of_a_dockerfile_do_nothing_to_a_terminal():
    with Site() as site:
        status, out = site.build("FROM host\nENV A=\033[2J\x9b2J\nCOPY no\x1bne /\n", "--net", "none")
        equal(status, 1, out)
        assert "ENV A=?[2J??2J\n" in out and "there is no 'no?ne' in the context" in out, out
        status, out = site.build("FROM host\n\033[2J x\n", "--net", "none")
        equal(status, 1, out)
        assert "'?[2J' is not one of" in out, out


# More than a pipe takes: the step stands still until somebody reads it.
TALK = "i=0; while [ $i -lt 9000 ]; do echo 0123456789abcdef; i=$((i+1)); done"


@test
def nothing_is_pruned_from_under_a_build():
    with Site() as site:
        site.prepare_base()
        site.write("Dockerfile", f"FROM base\nRUN {TALK}\n")
        with subprocess.Popen([program(), "image", "--data", site.data, "--run", site.run_folder, "build",
                               *site.own_names, "mine", site.context], env=clean_environment(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE) as build:
            while not build.stdout.readline().startswith(b"0123"):
                pass
            status, out = site.image("prune")
            while build.stdout.readline():
                pass
        equal(build.returncode, 0, "build")
        equal(status, 1, out)
        assert "an image is built, imported or pulled" in out, out
        equal(site.image("prune")[0], 0, "prune")


@test
def wrong_words_are_refused_with_the_usage():
    with Site() as site:
        for words in ([], ["x"], ["x", "y", "z"], ["--net", "some", "x", "y"], ["--build-arg", "x", "a", "b"]):
            status, out = site.image("build", *words)
            equal(status, 2, f"{words}")
            assert "usage: burrow image build" in out, out
        equal(site.image("build", "--help")[0], 0, "help")
        status, out = site.image("build", "host", site.context)
        equal(status, 1, "no Dockerfile")
        os.symlink("/etc/passwd", f"{site.context}/Dockerfile")
        status, out = site.image("build", "mine", site.context)
        equal((status, "root:" in out), (1, False), out)
        assert "'Dockerfile' is a link" in out, out


main()
