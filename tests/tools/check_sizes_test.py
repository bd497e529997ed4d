#!/usr/bin/python3
"""tools/check-sizes on planted files of each language."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from burrow import ROOT  # noqa: E402
from tap import main, test  # noqa: E402


def check(name, text):
    """(exit status, output) of check-sizes on a tree with this one file."""
    with tempfile.TemporaryDirectory() as root:
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write(text)
        result = subprocess.run([os.path.join(ROOT, "tools/check-sizes"), root],
                                capture_output=True, text=True, check=False)
        return result.returncode, result.stdout + result.stderr


def c_function(lines):
    """A C function whose braces are `lines` lines apart, both counted."""
    return "int f(void)\n{\n" + "    g();\n" * (lines - 2) + "}\n"


@test
def short_files_pass_without_a_word():
    status, output = check("a.c", c_function(60))
    assert status == 0 and "0 warnings" in output, output


@test
def a_longish_function_warns_and_a_long_one_fails():
    status, output = check("a.c", c_function(61))
    assert status == 0 and "a.c:2: warning: function of 61 lines" in output, output
    status, output = check("a.c", c_function(120))
    assert status == 0, output
    status, output = check("a.c", c_function(121))
    assert status == 1 and "function of 121 lines" in output, output


@test
def a_longish_file_warns_and_a_long_one_fails():
    status, output = check("a.h", "\n" * 601)
    assert status == 0 and "warning: file of 601 lines" in output, output
    status, output = check("a.h", "\n" * 1001)
    assert status == 1 and "file of 1001 lines" in output, output


@test
def tables_are_not_functions():
    status, output = check("a.c", "static const int t[] = {\n" + "    1,\n" * 200 + "};\n")
    assert status == 0 and "0 warnings" in output, output


@test
def functions_of_scripts_are_measured_too():
    for name, text in {
            "a.py": "def f():\n" + "    g()\n" * 121,
            "a.sh": "f() {\n" + "    g\n" * 121 + "}\n",
            "a.js": "class A {\n    go(x) {\n" + "        g();\n" * 121 + "    }\n}\n",
            "b.js": "const f = async (x) => {\n" + "    g();\n" * 121 + "};\n",
            "tool": "#!/usr/bin/python3\ndef f():\n" + "    g()\n" * 121}.items():
        status, output = check(name, text)
        assert status == 1 and f"{name}:" in output, (name, output)


@test
def other_files_are_left_alone():
    status, output = check("a.svg", "<g/>\n" * 5000)
    assert status == 0 and "0 files" in output, output


main()
