"""A tiny harness for tests in Python, printing TAP for tools/run-tests.

    from tap import main, skip, test

    @test
    def a_closed_listener_refuses_connections():
        assert ...

    @test
    def a_frozen_sandbox_keeps_its_memory():
        skip("a cgroup v2 hierarchy")       # says what this machine is missing

    main()

Tests run in the order of the file and are named by sentences. Any exception is a failure, shown
with its traceback. With arguments, or with BURROW_ONLY="word word", main() runs only the tests whose
names contain one of them.

As root they run where mounts are shared, as they are on a host with systemd (host_mounts.py), and
one more test follows them: that the host's mounts are at the end what they were, to the byte.
"""

import os
import sys
import traceback

import host_mounts

_tests = []


class Skip(Exception):
    """Raised by skip(); its text is what is missing."""


def test(function):
    _tests.append(function)
    return function


def skip(missing):
    raise Skip(missing)


def equal(actual, expected, what="value"):
    """Fail with both values in the message unless they are equal."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def _run(number, function):
    """Run one test and print its result; True unless it failed."""
    name = function.__name__
    try:
        function()
        print(f"ok {number} - {name}", flush=True)
        return True
    except Skip as missing:
        print(f"# skip: {missing}\nok {number} - {name} # SKIP {missing}", flush=True)
        return True
    except Exception:  # pylint: disable=broad-except
        print(f"not ok {number} - {name}")
        for line in traceback.format_exc().splitlines():
            print(f"# {line}")
        sys.stdout.flush()
        return False


def _expect_mounts(before):
    """A test that the host's mounts are as before."""
    def the_mounts_of_the_host_are_as_before():
        equal(host_mounts.changes_since(before), "", "changes")
    return the_mounts_of_the_host_are_as_before


def main():
    """Run the tests of the calling file and exit with status 1 if any failed."""
    wanted = sys.argv[1:] or os.environ.get("BURROW_ONLY", "").split()
    chosen = [function for function in _tests
              if not wanted or any(word in function.__name__ for word in wanted)]
    if host_mounts.share():
        chosen.append(_expect_mounts(host_mounts.table()))
    print(f"1..{len(chosen)}", flush=True)
    results = [_run(number, function) for number, function in enumerate(chosen, 1)]
    sys.exit(0 if all(results) else 1)
