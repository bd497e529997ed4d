#!/usr/bin/python3
"""burrow db check and burrow db rotate-keys: care of a database that no daemon has open.

# timeout: 600
"""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import NOBODY, Burrow, run_burrow  # noqa: E402
from http_raw import request  # noqa: E402
from program import admin_key  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

WEBHOOK = {"url": "http://127.0.0.1:9/hook", "secret": "a secret of sixteen"}


def fill(server):
    """One secret in the database, and the daemon stopped."""
    key = admin_key(server.log())
    answer = request(server.address, "POST", "/burrow/v1/webhooks",
                     [("Authorization", f"Bearer {key}"), ("Content-Type", "application/json")],
                     json.dumps(WEBHOOK).encode())
    equal(answer.status, 201, f"a webhook: {answer.body!r}")
    server.stop()


def verb(server, name, *words):
    return run_burrow("db", name, "--data", server.data, *words)


def ring(server):
    with open(os.path.join(server.data, "keys/ring"), encoding="ascii") as file:
        return file.read()


@test
def a_whole_database_is_told_to_be_whole():
    with Burrow() as server:
        fill(server)
        status, output = verb(server, "check")
        equal(status, 0, output)
        assert re.search("schema [0-9]+, 0 problems, [1-9]", output), output
        assert ", 0 of them sealed with an older key" in output, output


@test
def a_damaged_database_and_one_that_is_none_are_told():
    with Burrow() as server:
        fill(server)
        path = os.path.join(server.data, "db/burrow.sqlite")
        size = os.path.getsize(path)
        with open(path, "r+b") as file:
            file.seek(4096)
            file.write(b"\xff" * min(size - 4096, 40960))
        equal(verb(server, "check")[0], 1, "status")
        status, output = verb(server, "check", os.path.join(server.data, "version"))
        equal(status, 1, output)
        assert output.startswith("burrow: "), output
        equal(verb(server, "check", "/nonexistent")[0], 1, "no file")


@test
def secrets_are_sealed_with_a_new_key_and_the_daemon_starts_again():
    with Burrow() as server:
        fill(server)
        before = ring(server)
        status, output = verb(server, "rotate-keys")
        equal(status, 0, output)
        after = ring(server)
        assert after.startswith(before) and after.count("\n") == before.count("\n") + 1
        equal(os.stat(os.path.join(server.data, "keys/ring")).st_mode & 0o777, 0o600, "mode")
        assert ", 0 of them sealed with an older key" in verb(server, "check")[1]
        server.start()


@test
def while_a_daemon_runs_nothing_is_rotated():
    with Burrow() as server:
        before = ring(server)
        status, output = verb(server, "rotate-keys")
        equal(status, 1, output)
        assert "in use by another burrow" in output, output
        equal(ring(server), before, "the ring")


@test
def root_leaves_the_files_to_their_owner():
    if os.geteuid() != 0:
        skip("root")
    with Burrow() as server:
        fill(server)
        os.chmod(server.folder, 0o755)
        for root, folders, files in os.walk(server.data):
            for name in [".", *folders, *files]:
                os.chown(os.path.join(root, name), NOBODY, NOBODY)
        status, output = verb(server, "rotate-keys")
        equal(status, 0, output)
        for name in ("keys/ring", "db/burrow.sqlite"):
            equal(os.stat(os.path.join(server.data, name)).st_uid, NOBODY, f"owner of {name}")


main()
