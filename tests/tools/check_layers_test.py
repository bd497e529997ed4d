#!/usr/bin/python3
"""tools/check-layers on small planted trees: each rule must be able to fail."""

import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from burrow import ROOT  # noqa: E402
from tap import main, test  # noqa: E402


def check(files):
    """(exit status, output) of check-layers on a tree of {path: text}, with the real table."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            where = os.path.join(root, "src", path)
            os.makedirs(os.path.dirname(where), exist_ok=True)
            with open(where, "w", encoding="utf-8") as file:
                file.write(text)
        os.mkdir(os.path.join(root, "tools"))
        shutil.copy(os.path.join(ROOT, "tools/layers.txt"), os.path.join(root, "tools"))
        result = subprocess.run([os.path.join(ROOT, "tools/check-layers"), root],
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr


def accepts(files):
    status, output = check(files)
    assert status == 0, output


def refuses(files, said):
    status, output = check(files)
    assert status == 1, f"accepted:\n{output}"
    assert said in output, output


@test
def an_include_of_a_lower_layer_is_accepted():
    accepts({"base/a.h": "", "net/b.c": '#include <uv.h>\n#include "base/a.h"\n'})


@test
def an_include_of_a_higher_layer_is_refused_with_its_place():
    refuses({"net/a.h": "", "base/b.c": '\n  #  include "net/a.h"\n'}, "src/base/b.c:2")


@test
def net_does_not_know_json():
    refuses({"json/a.h": "", "net/b.c": '#include "json/a.h"\n'}, "net may include only")


@test
def the_domain_sees_the_store_by_its_interface_only():
    accepts({"store/store.h": "", "domain/a.c": '#include "store/store.h"\n'})
    refuses({"store/sqlite.h": "", "domain/a.c": '#include "store/sqlite.h"\n'}, "domain may")


@test
def the_daemon_does_not_contain_the_launcher_but_the_launcher_does():
    include = '#include "launcher/residents/plan.h"\n'
    refuses({"launcher/residents/plan.h": "", "programs/burrow.c": include}, "programs may include only")
    accepts({"launcher/residents/plan.h": "", "programs/burrow_launcher.c": include})


@test
def a_bare_or_climbing_file_name_is_refused():
    refuses({"base/a.h": "", "base/b.c": '#include "a.h"\n'}, "folder/file.h")
    refuses({"base/a.h": "", "base/b.c": '#include "base/../base/a.h"\n'}, "folder/file.h")


@test
def a_missing_file_is_refused():
    refuses({"base/b.c": '#include "base/gone.h"\n'}, "no such file")


@test
def a_folder_without_a_row_is_refused():
    refuses({"base/a.h": "", "misc/b.c": '#include "base/a.h"\n'}, "no row for misc")


@test
def a_test_or_fuzzer_may_include_only_its_own_module():
    files = {"base/text.c": "", "base/id.c": ""}
    include = '#include "base/text.c"\n'
    accepts({**files, "base/text_test.c": include, "base/text_fuzz.c": include,
             "base/text_growth_test.c": include})
    refuses({**files, "base/id_test.c": include}, "own module")
    refuses({**files, "base/id_more.c": include}, "own module")


@test
def only_one_module_mounts():
    for call in ("mount(a, b, c, 0, NULL);", "syscall(SYS_move_mount, 1);", "x = umount2(path, 0);"):
        refuses({"launcher/a.c": f"    {call}\n"}, "src/launcher/a.c:1: mounts are made through")
        accepts({"sys/mount/sys_mount.c": f"    {call}\n", "launcher/a_test.c": f"    {call}\n"})
    accepts({"api/a.c": "    client->mount(x);\n    sys_mount_attach(a, b);\n    unmount(b);\n"})
    accepts({"store/a.c": '    "CREATE TABLE mount("\n    /* The older mount(2). */\n'})


@test
def nobody_copies_a_mount_with_its_group_or_mounts_on_the_host():
    refuses({"launcher/keeper.c": "sys_mount_copy_in_group(a, b, c);\n"}, "private_mounts")
    accepts({"launcher/sandbox/sandbox.c": "sys_mount_copy_in_group(a, b, c);\n"})
    refuses({"launcher/disk/disk_pool.c": "host_mounts_keep_namespace(a, b, c);\n"}, "router's namespace")


main()
