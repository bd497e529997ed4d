"""A tiny harness for tests in Python, printing TAP for tools/run-tests.

    from tap import main, skip, test

    @test
    def a_closed_listener_refuses_connections():
        assert ...

    @test
    def a_frozen_sandbox_keeps_its_memory():
        skip("a cgroup v2 hierarchy")       # says what this machine is missing

    @patient
    def a_delivery_that_failed_is_tried_again():
        ...                                 # which is after ten seconds

    main()

Tests run in the order of the file and are named by sentences. Any exception is a failure, shown
with its traceback. With arguments, or with BURROW_ONLY="word word", main() runs only the tests whose
names contain one of them.

As root they run where mounts are shared, as they are on a host with systemd (host_mounts.py), and
one more test follows them: that the host's mounts are at the end what they were, to the byte.
"""

import itertools
import os
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import host_mounts

PATIENT_MAX = 16  # at once

_tests = []


class Skip(Exception):
    """Raised by skip(); its text is what is missing."""


def test(function):
    _tests.append(function)
    return function


def patient(function):
    """A test that mostly waits for what a program does after some time. Those that follow each other
    in a file run at once: each must stand for itself."""
    function.is_patient = True
    return test(function)


def skip(missing):
    raise Skip(missing)


def equal(actual, expected, what="value"):
    """Fail with both values in the message unless they are equal."""
    if actual != expected:
        raise AssertionError(f"{what}: expected {expected!r}, got {actual!r}")


def _run(number, function):
    """Run one test and print its result; True unless it failed."""
    name, lines = function.__name__, []
    try:
        function()
        lines.append(f"ok {number} - {name}")
        return True
    except Skip as missing:
        lines += [f"# skip: {missing}", f"ok {number} - {name} # SKIP {missing}"]
        return True
    except Exception:  # pylint: disable=broad-except
        lines.append(f"not ok {number} - {name}")
        lines += [f"# {line}" for line in traceback.format_exc().splitlines()]
        return False
    finally:
        # At once, because others may be printing, too.
        sys.stdout.write("\n".join(lines) + "\n")
        sys.stdout.flush()


def _run_all(functions):
    """Whether each went well, in the order of the file."""
    results, numbered = [], list(enumerate(functions, 1))
    for is_patient, several in itertools.groupby(numbered, lambda one: hasattr(one[1], "is_patient")):
        if is_patient:
            with ThreadPoolExecutor(PATIENT_MAX) as pool:
                results += pool.map(lambda one: _run(*one), several)
        else:
            results += [_run(*one) for one in several]
    return results


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
    sys.exit(0 if all(_run_all(chosen)) else 1)
