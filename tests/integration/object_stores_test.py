#!/usr/bin/python3
"""The stores of objects of `burrow serve`: which ones it opens, and what it says when they fail."""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow, free_port, run_burrow  # noqa: E402
from http_raw import get  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

SECRET = "not-for-anybodys-eyes"
NOBODY_THERE = "http://127.0.0.1:9"


def ready(server):
    return json.loads(get(server.address, "/ready").body)


def s3_flags(endpoint):
    return ("--objects", "s3", "--s3-endpoint", endpoint, "--s3-bucket", "bucket",
            "--s3-access-key", "id")


@test
def folders_of_the_data_folder_are_the_default():
    with Burrow() as server:
        wait_until(lambda: ready(server)["objects"], "a folder that works")
        equal(sorted(os.listdir(os.path.join(server.data, "objects"))), [".tmp"], "objects")
        equal(sorted(os.listdir(os.path.join(server.data, "buckets"))), [".tmp"], "buckets")


@test
def a_file_where_the_folder_should_be_is_named():
    with Burrow() as server:
        wait_until(lambda: ready(server)["objects"], "a folder that works")
        server.stop()
        folder = os.path.join(server.data, "objects")
        os.rmdir(os.path.join(folder, ".tmp"))
        os.rmdir(folder)
        with open(folder, "wb"):
            pass
        status, output = run_burrow("serve", "--data", server.data, "--listen", "127.0.0.1:0")
        equal(status, 2, output)
        assert f"burrow: open the folder of objects '{folder}'" in output, output
        os.unlink(folder)
        server.start()
        wait_until(lambda: ready(server)["objects"], "a folder that works")


@test
def an_s3_store_that_is_away_stops_nothing_and_is_told():
    with tempfile.NamedTemporaryFile("w", prefix="burrow-test-") as file:
        file.write(SECRET + "\n")
        file.flush()
        endpoint = f"http://127.0.0.1:{free_port()}"
        with Burrow(*s3_flags(endpoint), "--s3-secret-key-file", file.name) as server:
            equal(ready(server)["objects"], False, "not before it has answered")
            problem = wait_until(lambda: "connect" in ready(server)["problem"] and
                                 ready(server)["problem"], "a reason", seconds=30)
            assert endpoint in problem, problem
            equal(os.path.exists(os.path.join(server.data, "objects")), False, "a folder")
            server.stop()  # and does not wait for it
            assert SECRET not in server.log(), "the secret is in the log"


@test
def an_s3_store_needs_a_secret_that_is_no_argument():
    with tempfile.TemporaryDirectory(prefix="burrow-test-") as folder:
        start = ("serve", "--data", folder, "--listen", "127.0.0.1:0", *s3_flags(NOBODY_THERE))
        status, output = run_burrow(*start)
        equal(status, 2, output)
        assert "s3-secret-key-file" in output and "BURROW_S3_SECRET_KEY" in output, output
        status, output = run_burrow(*start, "--s3-secret-key", SECRET)
        equal(status, 2, output)
        assert "unknown setting" in output, output
        status, output = run_burrow(*start, "--s3-secret-key-file", folder + "/none")
        equal(status, 2, output)
        assert "read the S3 secret key from" in output, output
    with Burrow(*s3_flags(NOBODY_THERE), environment={"BURROW_S3_SECRET_KEY": SECRET}) as server:
        equal(ready(server)["objects"], False, "opened, and away")


main()
