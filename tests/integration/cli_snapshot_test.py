#!/usr/bin/python3
# timeout: 600
"""The verbs of the command line for snapshots, forks, rollbacks, diffs and templates."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from cli import good, plane, run  # noqa: E402
from tap import equal, main, test  # noqa: E402


def refused(status, sentence, *words):
    done = run(*words)
    equal(done.status, status, f"status of {words}: {done.err}")
    assert sentence in done.err, f"{words}: {done.err!r} does not say {sentence!r}"


def content(name):
    return run("exec", name, "cat", "file").out.decode()


@test
def a_snapshot_is_made_listed_and_removed():
    plane()
    good("create", "demo")
    good("exec", "demo", "sh", "-c", "echo one > file")
    made = good("snapshot", "create", "demo", "--name", "before").strip()
    for verb in (("snapshot", "create"), ("fork",), ("sync",)):
        assert json.loads(good(*verb, "demo", "--json"))["pauseMs"] > 0, verb
        equal(json.loads(good(*verb, "demo", "--json", "--no-freeze"))["pauseMs"], 0, verb)
    for each in good("snapshot", "ls", "-q").split():
        if each != made:
            good("snapshot", "rm", each)
    rows = good("snapshot", "ls", "demo").splitlines()
    equal(rows[0].split(), ["NAME", "SANDBOX", "REASON", "STATE", "SIZE", "CREATED", "ID"], "titles")
    equal((rows[1].split()[0], rows[1].split()[-1]), ("before", made), "row")
    equal(good("snapshot", "ls", "-q"), f"{made}\n", "ids")
    equal(json.loads(good("snapshot", "ls", "--json"))[0]["reason"], "manual", "JSON")
    other = good("snapshot", "create", "demo", "--ttl", "1h").strip()
    equal(good("snapshot", "rm", other), f"{other}\n", "removed")
    refused(1, "no such snapshot", "snapshot", "rm", "nothing")
    refused(1, "no such sandbox", "snapshot", "create", "dmo")
    refused(2, "create, ls, rm", "snapshot")


@test
def a_rollback_and_a_diff_speak_of_what_changed():
    good("exec", "demo", "sh", "-c", "echo two > file; echo x > added")
    lines = good("diff", "before").splitlines()
    assert "+ workspace/added" in lines, lines
    assert any(line.startswith("~ workspace/file (") for line in lines), lines
    said = good("rollback", "demo", "before")
    assert said.startswith("what it was is kept as snapshot "), said
    equal(content("demo"), "one\n", "file")
    lines = good("diff", said.split()[-1], "before").splitlines()
    assert "- workspace/added" in lines, lines


@test
def forks_are_named_and_changed_as_asked():
    equal(sorted(good("fork", "demo", "--count", "2", "--name", "try").split()), ["try-1", "try-2"],
          "names")
    equal(content("try-2"), "one\n", "file")
    fork = good("fork", "--snapshot", "before", "--env", "MODE=test", "--memory", "256M").strip()
    equal(good("exec", fork, "sh", "-c", "echo $MODE"), "test\n", "variable")
    refused(1, "name a sandbox, or a snapshot", "fork")
    refused(1, "from 1 to 1000", "fork", "demo", "--count", "0")


@test
def templates_are_set_listed_used_and_removed():
    equal(good("template", "set", "ready", "--snapshot", "before", "--env", "MODE=test"), "ready\n",
          "set")
    rows = good("template", "ls").splitlines()
    equal((rows[0].split(), rows[1].split()[0]), (["NAME", "IMAGE", "SNAPSHOT", "UPDATED"], "ready"),
          "list")
    equal(good("create", "made", "--template", "ready"), "made\n", "create")
    equal(content("made"), "one\n", "file")
    refused(1, "template 'ready'", "snapshot", "rm", "before")
    good("template", "rm", "ready")
    refused(1, "no such template", "create", "--template", "ready")


@test
def completion_knows_the_verbs():
    page = good("completion", "bash")
    for word in ("snapshot", "fork", "rollback", "diff", "template"):
        assert word in page, word


main()
