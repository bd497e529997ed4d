#!/usr/bin/python3
"""Tests of the bench's frame; needs no server and no build. Run: bench/frame_test.py"""

import itertools
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

from frame import control_plane, plot, process, sandboxes, table, wrk  # noqa: E402
from frame.failure import RowFailed  # noqa: E402
from frame.row import (LESS, MORE, Comparison, Goal, Row, failed_result, percentile,  # noqa: E402
                       result_of, rounded)
from rows import control_plane as plane_rows  # noqa: E402
from rows import sandbox  # noqa: E402

WRK_REPORT = """Running 2s test @ http://127.0.0.1:1/json
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   413.34us  301.51us   9.06ms   93.13%
    Req/Sec   157.22k    10.31k  172.60k    75.00%
  Latency Distribution
     50%  359.00us
     75%  442.00us
     90%  570.00us
     99%    1.69ms
  312345 requests in 2.00s, 70.00MB read
{trouble}Requests/sec: 156150.10
"""


def row(better=MORE, goal=None, peer="nginx, static"):
    return Row("name", "unit", better, peer, goal, None)


def report(*results):
    machine = {"commit": None, "changed": True, "cpu": "<cpu & co>", "cores": 2, "kernel": "6.1",
               "date": "2026-01-01T00:00:00+00:00"}
    return {"machine": machine, "quick": True, "self_check": False, "rows": list(results)}


class Rows(unittest.TestCase):
    def test_p99_is_on_the_bad_side(self):
        samples = list(range(1, 101))
        self.assertEqual(percentile(samples, 99, LESS), 99)
        self.assertEqual(percentile(samples, 99, MORE), 2)
        self.assertEqual(percentile([5.0], 99, MORE), 5.0)

    def test_pairs_cancel_noise_that_both_sides_share(self):
        result = result_of(row(), Comparison([100, 50, 10], [200, 100, 20]))
        self.assertEqual(result["ratio"], 0.5)
        self.assertEqual((result["ratio_low"], result["ratio_high"]), (0.5, 0.5))

    def test_unpaired_samples_compare_by_their_medians(self):
        result = result_of(row(LESS), Comparison([1, 2, 3], [4], paired=False))
        self.assertEqual(result["ratio"], 0.5)

    def test_goals_hold_at_the_bound_and_not_past_it(self):
        at_least, at_most = Goal("ratio", ">=", 0.6), Goal("p50", "<=", 8192)
        self.assertTrue(result_of(row(MORE, at_least), Comparison([6], [10]))["holds"])
        self.assertFalse(result_of(row(MORE, at_least), Comparison([5.9999], [10]))["holds"])
        self.assertTrue(result_of(row(LESS, at_most), Comparison([8192]))["holds"])
        self.assertFalse(result_of(row(LESS, at_most), Comparison([8193]))["holds"])

    def test_without_a_goal_nothing_holds_or_fails(self):
        self.assertIsNone(result_of(row(), Comparison([1], [1]))["holds"])

    def test_numbers_keep_four_digits(self):
        self.assertEqual(rounded(123456.7), 123457.0)
        self.assertEqual(rounded(0.123456), 0.1235)
        self.assertEqual(rounded(0), 0)


class Wrk(unittest.TestCase):
    def test_a_report_is_read(self):
        work = wrk.parse(WRK_REPORT.format(trouble=""))
        self.assertEqual((work.done, work.p50_us, work.p99_us), (312345, 359.0, 1690.0))

    def test_failed_requests_fail_the_row(self):
        for trouble in ("  Non-2xx or 3xx responses: 7\n",
                        "  Socket errors: connect 0, read 3, write 0, timeout 0\n"):
            with self.assertRaises(RowFailed):
                wrk.parse(WRK_REPORT.format(trouble=trouble))


class Pictures(unittest.TestCase):
    def results(self):
        return [
            result_of(row(MORE, Goal("ratio", ">=", 0.6)), Comparison([6, 7], [10, 9])),
            result_of(row(LESS, Goal("p50", "<=", 8192)), Comparison([4000], [500])),
            result_of(row(LESS, Goal("p99", "<=", 50), None), Comparison([40, 45])),
            result_of(row(MORE, None), Comparison([1000], [1])),
            result_of(row(LESS, None), Comparison([0], [0.5])),
            result_of(row(LESS, None), Comparison([0.5], [0])),
            failed_result(row(MORE, Goal("ratio", ">=", 0.6)), "wrk is missing & <so on>"),
        ]

    def test_right_is_better_in_the_plot(self):
        higher, smaller, alone = self.results()[:3]
        self.assertEqual(plot.score(higher), (higher["ratio"], 0.6))
        bar, goal = plot.score(smaller)
        self.assertAlmostEqual(bar, 500 / 4000)
        self.assertAlmostEqual(goal, 500 / 8192)
        self.assertEqual(plot.score(alone), (50 / 45, 1.0))

    def test_the_plot_is_well_formed_whatever_happened(self):
        for results in ([], self.results()):
            xml.etree.ElementTree.fromstring(plot.render(report(*results)))

    def test_the_table_shows_every_row(self):
        text = table.render(self.results())
        self.assertEqual(len(text.splitlines()), 2 + len(self.results()))
        self.assertIn("not measured: wrk is missing", text)


class Processes(unittest.TestCase):
    def test_what_a_load_program_says_on_failure_is_the_reason(self):
        with self.assertRaisesRegex(RowFailed, "no luck"):
            process.run_load(["sh", "-c", "echo no luck >&2; exit 1"], 0, 5)

    def test_a_load_program_that_hangs_is_ended(self):
        with self.assertRaisesRegex(RowFailed, "did not end"):
            process.run_load(["sleep", "60"], 0, 0.1)

    def test_a_missing_program_fails_the_row(self):
        with self.assertRaisesRegex(RowFailed, "No such file"):
            process.run_load(["/nonexistent/load"], 0, 1)


class Sandboxes(unittest.TestCase):
    def test_a_turn_counts_once_however_many_times_it_took(self):
        times = itertools.cycle([[1000, 2000, 90000], [2000, 4000, 4000]])
        comparison = sandbox.take_turns(2, lambda: next(times), lambda: next(times))
        self.assertEqual((comparison.ours, comparison.peer), ([2, 2], [4, 4]))
        self.assertEqual(comparison.extra["single_ms"]["ours"]["p99"], 90)

    def test_a_turn_is_beside_what_came_before_and_after_it(self):
        self.assertEqual(sandbox.beside([10, 20, 40]), [15, 30])

    def test_the_tree_holds_what_the_command_needs(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder) / "tree"
            sandboxes.make_tree(tree)
            for file in (sandboxes.COMMAND, *sandboxes.libraries_of(sandboxes.COMMAND)):
                self.assertTrue((tree / file.lstrip("/")).is_file(), file)

    def test_a_program_without_libraries_fails_the_row(self):
        with self.assertRaises(RowFailed):
            sandboxes.libraries_of("/etc/passwd")

    def test_containers_get_the_namespaces_and_limits_that_ours_have(self):
        linux = sandboxes.container_config(Path("/tree"), "name")["linux"]
        self.assertEqual(len(linux["namespaces"]), 7)
        self.assertEqual(linux["resources"]["memory"]["limit"], sandboxes.MEMORY)
        self.assertEqual(linux["resources"]["pids"]["limit"], sandboxes.PIDS)


class ControlPlane(unittest.TestCase):
    def test_steps_of_one_life_are_added_and_others_left_out(self):
        done = {"wall_us": 9, "create_us": [1, 2], "exec_us": [10, 20], "destroy_us": [100, 200]}
        self.assertEqual(plane_rows.sums(done, "create", "exec"), [11, 22])

    def test_an_empty_group_is_taken_away_and_a_missing_one_is_gone(self):
        with tempfile.TemporaryDirectory() as folder:
            group = Path(folder) / "group"
            self.assertTrue(control_plane.clear_group(str(group)))
            group.mkdir()
            (group / "cgroup.procs").touch()
            self.assertFalse(control_plane.clear_group(str(group)))  # a file is in it
            (group / "cgroup.procs").unlink()
            group.rmdir()
            self.assertTrue(control_plane.clear_group(str(group)))

    def test_only_mounts_below_are_ours(self):
        self.assertEqual(control_plane.mounts_below(("/nonexistent",)), [])
        self.assertIn("/proc", control_plane.mounts_below(("",)))

    def test_a_running_process_is_pinned_with_all_its_threads(self):
        cpu = min(os.sched_getaffinity(0))
        with process.spawn(["sleep", "60"], None) as child:
            process.pin(child.pid, cpu)
            self.assertEqual(os.sched_getaffinity(child.pid), {cpu})
            process.stop(child)

    def test_waiting_ends_after_the_time_that_was_given(self):
        with process.spawn(["sleep", "60"], None) as child:
            with self.assertRaisesRegex(RowFailed, "within 0.1 s"):
                process.wait_until(lambda: False, child, "sleep", 0.1)
            process.stop(child)


if __name__ == "__main__":
    unittest.main()
