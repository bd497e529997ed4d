#!/usr/bin/python3
"""tools/check-names on small planted trees: each rule must be able to fail."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from burrow import ROOT  # noqa: E402
from tap import main, test  # noqa: E402

LIST = "tools/names.txt"


def plant(root, files):
    for path, text in files.items():
        where = os.path.join(root, path)
        os.makedirs(os.path.dirname(where), exist_ok=True)
        with open(where, "w", encoding="utf-8") as file:
            file.write(text)


def run_check(root, *options):
    result = subprocess.run([os.path.join(ROOT, "tools/check-names"), *options, root],
                            capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


def check(files):
    """(exit status, output) of check-names on a tree of {path: text}."""
    with tempfile.TemporaryDirectory() as root:
        plant(root, {LIST: "", **files})
        return run_check(root)


def accepts(files):
    status, output = check(files)
    assert status == 0, output


def refuses(files, said):
    status, output = check(files)
    assert status == 1, f"accepted:\n{output}"
    assert said in output, output


STRUCT = "struct change {\n    int a;\n};\n"


def function(name):
    return f"static int {name}(int a)\n{{\n    return a;\n}}\n"


@test
def a_struct_is_defined_once():
    accepts({"src/a/a.c": STRUCT})
    refuses({"src/a/a.c": STRUCT, "src/b/b.h": STRUCT}, "struct change is defined 2 times")


@test
def structs_of_tests_are_told_from_each_other_but_not_from_the_product():
    accepts({"src/a/a.c": STRUCT, "src/a/a_test.c": STRUCT})
    refuses({"src/a/a_testing.h": STRUCT, "src/a/b_test.c": STRUCT}, "in 2 tests")


@test
def a_bare_verb_is_refused_with_its_place():
    accepts({"src/a/a.c": function("a_fail")})
    refuses({"src/a/a.c": function("fail")}, "src/a/a.c")
    refuses({"src/a/a.c": "static void\nfail(int a)\n{\n}\n"}, "static fail()")
    accepts({"src/a/a_test.c": function("fail")})


@test
def a_name_is_in_three_files_at_most():
    files = {f"src/a/{name}.c": function("on_kept") for name in "abc"}
    accepts(files)
    refuses({**files, "src/b/d.c": function("on_kept")}, "on_kept() is in 4 files")


@test
def the_list_excuses_a_count_and_no_more():
    excused = {LIST: "verb fail 2\n", "src/a/a.c": function("fail"), "src/a/b.c": function("fail")}
    accepts(excused)
    refuses({**excused, "src/a/c.c": function("fail")}, "in 3 files")


@test
def pruning_leaves_what_is_still_there():
    with tempfile.TemporaryDirectory() as root:
        plant(root, {LIST: "# why\nverb fail 3\nverb send 1\n", "src/a/a.c": function("fail")})
        assert run_check(root, "--prune")[0] == 0
        with open(os.path.join(root, LIST), encoding="utf-8") as file:
            assert file.read() == "# why\nverb fail 1\n"


@test
def the_list_does_not_grow():
    def git(root, *words):
        subprocess.run(["git", "-C", root, "-c", "user.name=t", "-c", "user.email=t@t", *words],
                       capture_output=True, check=True)

    with tempfile.TemporaryDirectory() as root:
        plant(root, {LIST: "verb fail 1\n", "src/a/a.c": function("fail")})
        git(root, "init", "-q")
        git(root, "add", ".")
        git(root, "commit", "-qm", "a: b")
        git(root, "update-ref", "refs/remotes/origin/main", "HEAD")
        assert run_check(root)[0] == 0
        plant(root, {LIST: "verb fail 2\n", "src/a/b.c": function("fail")})
        status, output = run_check(root)
        assert status == 1 and "may only shrink" in output, output


main()
