#!/usr/bin/python3
"""tools/run-tests on programs that misbehave in every way it must notice."""

import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from burrow import ROOT  # noqa: E402
from tap import equal, main, test  # noqa: E402


# It leaves a mark beside itself the first time.
FAILS_ONCE = ("echo 1..1; if [ -e $0.seen ]; then echo ok 1 - a; exit 0; fi; touch $0.seen\n"
              "echo 'because of x'; echo not ok 1 - a; exit 1")
# Says when it begins and ends, and ends only when nobody else of those that bear neighbours is left to begin.
NEIGHBOUR = """#!/bin/sh
{mark}
echo +{name} >>{folder}/order
[ {name} = alone ] || while [ "$(grep -c '^+[abc]$' {folder}/order)" -lt 3 ]; do sleep 0.01; done
echo -{name} >>{folder}/order
echo 1..1; echo ok 1 - {name}
"""


def write_script(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, 0o755)


def run(script, *flags):
    """(exit status, last line, all output) of run-tests on one shell script."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "sample_test")
        write_script(path, "#!/bin/sh\n" + script)
        result = subprocess.run([os.path.join(ROOT, "tools/run-tests"), *flags, path],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                check=False)
        return result.returncode, result.stdout.splitlines()[-1], result.stdout


def expect(script, line, said="", flags=()):
    status, last, output = run(script, *flags)
    equal(last, line, output)
    equal(status, 0 if " 0 failed" in line else 1, "exit status")
    assert said in output, output


@test
def passes_failures_and_skips_are_counted():
    expect("echo 1..3; echo ok 1 - a; echo not ok 2 - b; echo '# skip: a moon'\n"
           "echo 'ok 3 - c # SKIP'; exit 1", "1 passed, 1 failed, 1 skipped",
           "skipped: sample_test: c: a moon")


@test
def the_dialect_of_cmocka_is_understood():
    expect("echo 1..1; echo ok 1 - a; echo 1..1; echo '# skip: a moon'\n"
           "echo 'not ok 1 # SKIP b'", "1 passed, 0 failed, 1 skipped", "b: a moon")


@test
def a_skip_that_names_nothing_fails():
    expect("echo 1..1; echo 'ok 1 # SKIP b'", "0 passed, 1 failed, 0 skipped", "what is missing")


@test
def a_crash_after_the_last_test_fails():
    expect("echo 1..1; echo ok 1 - a; kill -SEGV $$", "1 passed, 1 failed, 0 skipped", "SIGSEGV")


@test
def an_exit_status_without_a_failed_test_fails():
    expect("echo 1..1; echo ok 1 - a; exit 3", "1 passed, 1 failed, 0 skipped", "exit status 3")


@test
def silence_and_an_empty_plan_fail():
    expect("exit 0", "0 passed, 1 failed, 0 skipped", "printed no plan")
    expect("echo 1..0", "0 passed, 1 failed, 0 skipped", "ran no test")


@test
def tests_that_were_planned_but_not_run_fail():
    expect("echo 1..2; echo ok 1 - a", "1 passed, 1 failed, 0 skipped", "planned 2")


@test
def the_output_of_a_failure_is_shown():
    expect("echo 1..1; echo 'because of x' >&2; echo not ok 1 - a; exit 1",
           "0 passed, 1 failed, 0 skipped", "| because of x")


@test
def the_reason_of_a_failure_is_in_the_summary():
    cmocka = ("echo 1..2; echo not ok 1 - a; echo '# 0x1 != 0x2'; echo '# t.c:6: error: Failure!'\n"
              "echo 'ERROR: in vain'; echo not ok 2 - b; echo '# t.c:9: error: Failure!'\n"
              "echo '# not ok - group'; exit 2")
    line = "0 passed, 2 failed, 0 skipped"
    expect(cmocka, line, "failed: sample_test: a: 0x1 != 0x2; t.c:6: error: Failure!\n")
    expect(cmocka, line, "failed: sample_test: b: in vain; t.c:9: error: Failure!\n")
    expect("echo 1..1; echo '../s.c:7: x is 2' >&2; echo not ok 1 - a; echo '# 0x1 != 0'\n"
           "echo '# t.h:3: error: Failure!'; exit 1", "0 passed, 1 failed, 0 skipped",
           "failed: sample_test: a: ../s.c:7: x is 2; 0x1 != 0; t.h:3: error: Failure!\n")
    expect("echo 1..2; echo not ok 1 - a; echo '# Traceback'; echo '#   File x'\n"
           "echo '# AssertionError: 1 is not 2'; echo '# of the next'; echo ok 2 - b; exit 1",
           "1 passed, 1 failed, 0 skipped", "failed: sample_test: a: AssertionError: 1 is not 2\n")


@test
def skips_of_one_program_for_one_reason_are_one_line():
    expect("echo 1..2; for i in 1 2; do echo '# skip: a moon'; echo \"ok $i - t$i # SKIP\"; done",
           "0 passed, 0 failed, 2 skipped", "skipped: sample_test: 2 tests: a moon\n")


@test
def a_hanging_program_is_killed_with_its_children():
    expect("echo 1..1; sleep 98765 & sleep 98765", "0 passed, 1 failed, 0 skipped",
           "timed out after 1 s", flags=("--timeout", "1"))
    equal(sleepers("98765"), [], "processes left")


@test
def a_process_left_behind_fails_even_in_a_session_of_its_own():
    expect("echo 1..1; setsid sleep 98764 & sleep 0.2; echo ok 1 - a",
           "1 passed, 1 failed, 0 skipped", "left behind: sleep")
    equal(sleepers("98764"), [], "processes left")


@test
def without_a_retry_a_failure_is_final():
    expect(FAILS_ONCE, "0 passed, 1 failed, 0 skipped")


@test
def what_passes_when_it_runs_alone_is_named_unstable_with_its_first_output():
    status, last, output = run(FAILS_ONCE, "--retry")
    equal((status, last), (0, "1 passed, 0 failed, 0 skipped"), output)
    assert "unstable: sample_test" in output, output
    assert output.rindex("| because of x") > output.index("unstable: sample_test"), output


@test
def what_fails_twice_fails():
    expect("echo 1..1; echo not ok 1 - a; exit 1", "0 passed, 1 failed, 0 skipped", "once more, alone: 1",
           flags=("--retry",))


@test
def what_a_sanitizer_found_is_not_tried_again():
    expect(FAILS_ONCE.replace("because of x", "==1==ERROR: AddressSanitizer: heap-use-after-free"),
           "0 passed, 1 failed, 0 skipped", flags=("--retry",))


@test
def one_that_wants_to_be_alone_has_no_neighbours():
    with tempfile.TemporaryDirectory() as folder:
        names = ("a", "alone", "b", "c")
        for name in names:
            write_script(f"{folder}/{name}_test.py", NEIGHBOUR.format(
                folder=folder, name=name, mark="# alone: it measures" if name == "alone" else ""))
        done = subprocess.run([os.path.join(ROOT, "tools/run-tests"), "--jobs", "4",
                               *(f"{folder}/{name}_test.py" for name in names)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        equal(done.returncode, 0, done.stdout)
        with open(f"{folder}/order", encoding="ascii") as file:
            order = file.read().split()
        equal(order[-2:], ["+alone", "-alone"], f"order {order}")


@test
def the_longest_run_first():
    sys.path.insert(0, os.path.join(ROOT, "tools"))
    import test_order  # pylint: disable=import-outside-toplevel
    with tempfile.TemporaryDirectory() as folder:
        test_order.TIMES = os.path.join(folder, "times.txt")
        equal(test_order.longest_first(["/x/b", "/x/a"]), ["/x/a", "/x/b"], "without times")
        test_order.keep_times({"b": 7.4, "a": 0.2, "c": 30.0})
        test_order.keep_times({"b": 9.0})
        equal(test_order.read_times(), {"c": 30.0, "b": 9.0}, "kept")
        equal(test_order.longest_first(["/x/a", "/x/b", "/y/c"]), ["/y/c", "/x/b", "/x/a"])


@test
def what_cannot_be_run_fails():
    status, last, output = run("", "/nonexistent/program")
    equal(status, 1, output)
    assert last.startswith("0 passed, 2 failed"), output


def sleepers(seconds):
    """Pids of living `sleep SECONDS`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read() == f"sleep\0{seconds}\0".encode():
                    found.append(pid)
        except OSError:
            pass
    return found


main()
