#!/usr/bin/python3
# timeout: 120
"""The lines of the README, as they stand there."""

import os
import re
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), folder) for folder in ("..", "../../lib")]

from guest import KEY, MACHINE, burrow, destroy_all, inside, run  # noqa: E402
from tap import equal, main, test  # noqa: E402


@test
def a_sandbox_is_made_and_runs_a_command():
    destroy_all()
    equal(burrow("create", "demo"), "demo\n")
    equal(burrow("exec", "demo", "--", "python3", "-c", "print(6 * 7)"), "42\n")


@test
def a_shell_at_a_terminal_has_its_prompt_and_ends_with_its_status():
    # script(1) gives it a terminal.
    done = MACHINE.run("echo 'echo $((6 * 7)); exit 3' | script -qec 'burrow shell demo' /dev/null")
    assert "root:/workspace#" in done.out and "42" in done.out, done
    equal(done.status, 3, "status")


@test
def it_is_listed_and_a_misspelt_name_is_guessed():
    lines = burrow("ls").splitlines()
    equal(lines[0].split(), ["NAME", "STATUS", "IMAGE", "CREATED", "ACTIVE", "ID"])
    equal(lines[1].split()[:3], ["demo", "running", "-"])
    done = run("exec", "dmo", "true")
    assert done.status != 0, done
    equal(done.err, "burrow: no such sandbox 'dmo'; did you mean 'demo'?\n")


@test
def a_server_inside_has_a_url():
    inside("demo", "echo hello >index.html; python3 -m http.server 8080 >/dev/null 2>&1 &")
    url = burrow("port", "expose", "demo", "8080").strip()
    assert re.fullmatch(r"http://8080-\w+-\w+\.localhost:8787/", url), url
    host = url.removeprefix("http://").split(":")[0]
    # Whether the resolver knows names below localhost is not what is tried here.
    equal(MACHINE.good(f"curl -s --retry 20 --retry-all-errors --retry-delay 1 --fail "
                       f"--resolve {host}:8787:127.0.0.1 {url}"), "hello\n")


@test
def a_snapshot_is_compared_forked_and_gone_back_to():
    inside("demo", "echo a >notes; echo 1 >numbers; rm index.html")
    burrow("snapshot", "create", "demo", "--name", "before")
    inside("demo", "rm notes; echo more >>numbers; echo x >new")
    equal(burrow("diff", "before").splitlines(),
          ["+ workspace/new", "- workspace/notes", "~ workspace/numbers (content, time)"])
    equal(burrow("fork", "demo", "--name", "twin"), "twin\n")
    assert burrow("rollback", "demo", "before").startswith("what it was is kept as snapshot ")
    equal(inside("demo", "ls; cat numbers").split(), ["notes", "numbers", "1"], "after the rollback")
    equal(inside("twin", "ls").split(), ["new", "numbers"], "the fork")


@test
def a_command_runs_over_http():
    answer = MACHINE.good(f'curl -s -H "Authorization: Bearer $(cat {KEY})" '
                          "http://127.0.0.1:8787/burrow/v1/sandboxes/demo/exec "
                          "-d '{\"command\": \"echo hi; exit 3\"}'")
    assert '"stdout":"hi\\n","stderr":"","success":false,"exitCode":3' in answer, answer


@test
def one_command_runs_in_a_sandbox_of_its_own():
    equal(burrow("run", "--memory", "512M", "--timeout", "300s", "--", "python3", "-c", "print(6 * 7)"), "42\n")


main()
