#!/usr/bin/python3
"""A sandbox that takes all it can get: it gets its share, and its agent goes on answering.

Every attempt of resources.txt against the wall that holds it, then the bombs themselves.

# timeout: 600
"""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from bomb_lab import ATTACK_RESOURCES, BombLab, expect_answers, held
from program import wait_until
from soak import FULL
from tap import equal, main, skip, test
from wall_lab import slowly

ROWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "resources.txt")
MEGABYTE = 1 << 20
MEMORY, DISK, PIDS = 64 * MEGABYTE, 16 * MEGABYTE, 64
RESERVE_PIDS = 16  # of the agent
KILLED = 128 + 9
ORPHANS = 4000 if FULL else 400  # times 25
SMALL = ("--memory", str(MEMORY), "--disk", str(DISK), "--pids", str(PIDS), "--cpu", "1000")
GAPS = ("gap", "gap_v1")
NO_SWITCH = "-"
# What these take stays when they are killed, so that the next command has no memory either.
STAYS = ("segments", "semaphores", "messages")


class Row:
    def __init__(self, name, goal, wall, *notes):
        self.name, self.goal, self.wall = name, goal, wall
        self.is_gap = notes and notes[0] in GAPS
        self.missing = set(notes[0].split(",")) if notes and not self.is_gap else set()


def read_rows():
    with open(ROWS, encoding="ascii") as file:
        return [Row(*line.split()) for line in file if line.strip() and line[0] != "#"]


def result_of(answer, name):
    """"succeeded 100", "refused ENOSPC 17" or "killed": who takes all memory may not say more."""
    if answer["exitCode"] == KILLED:
        return "killed"
    return answer["stdout"].strip().removeprefix(name).strip()


def is_held(result):
    return result == "killed" or result.startswith("refused")


def bomb(name, goal=1):
    return f"exec {ATTACK_RESOURCES} {name} {goal}"


def expect_life(box, after=""):
    """It runs commands, and their exit status is exact."""
    # The kernel frees the memory of its victim some milliseconds after its end, and kills whoever
    # asks for some in between.
    wait_until(lambda: box.run("true")["exitCode"] == 0, f"commands run again {after}")
    answer = box.run("echo alive; exit 7")
    equal((answer["stdout"], answer["exitCode"]), ("alive\n", 7), f"a command afterwards {after}")
    equal(box.run("kill -9 $$")["exitCode"], KILLED, "one that is killed")


# --- walls ----------------------------------------------------------------------------------------

def try_row(lab, row):
    """(what is wrong or "", what to tell or "")"""
    walls = [] if row.wall == NO_SWITCH else [row.wall]
    free = f"succeeded {row.goal}"
    if walls:
        free = result_of(lab.run(walls, ATTACK_RESOURCES, row.name, row.goal), row.name)
    walled = result_of(lab.run([], ATTACK_RESOURCES, row.name, row.goal), row.name)
    if row.is_gap:
        return "", "" if is_held(walled) else f"not held: {row.name}: {walled}"
    if not is_held(walled):
        return f"{row.name} behind {row.wall}: {walled}", ""
    if free != f"succeeded {row.goal}":
        if free.split()[1:2] and free.split()[1] in row.missing:
            return "", f"this machine has not so many, so only seen refused: {row.name}"
        return f"{row.name} without {row.wall}: {free}", ""
    return "", ""


@test
def everything_is_had_without_its_wall_and_refused_with_it():
    wrong = []
    rows = read_rows()
    with BombLab(*SMALL, "--timeout", slowly(200)) as lab:
        for row in rows:
            failure, remark = try_row(lab, row)
            wrong += [failure] if failure else []
            if remark:
                print(f"# {remark}")
    print(f"# {len(rows)} attempts")
    equal("\n".join(wrong), "")


# --- the sandbox itself goes on -------------------------------------------------------------------

@test
def after_each_attempt_the_agent_runs_commands_and_no_process_is_left():
    with BombLab(*SMALL, "--timeout", slowly(120)) as lab:
        box = lab.start([])
        expect_life(box)
        before = settled_stats(lab, box)
        for row in read_rows():
            if row.name in STAYS or row.is_gap:
                continue
            answer = box.run(bomb(row.name, row.goal))
            equal(is_held(result_of(answer, row.name)), True, f"{row.name} is held")
            if row.wall == "disk_limit" or "files" in row.name or "inodes" in row.name:
                box.run("rm -rf /workspace/* /tmp/* /dev/shm/* /dev/burrow-lab")
            wait_until(lambda: lab.stats(box).get("pids", 0) <= before.get("pids", 0),
                       f"no process after {row.name}")
            expect_life(box, f"({row.name})")
        equal(lab.stats(box).get("oom_kills_agent"), 0, "the agent was never chosen")


@test
def a_kill_for_lack_of_memory_is_counted_as_one():
    with BombLab(*SMALL) as lab:
        box = lab.start([])
        stats = lab.stats(box)
        if "oom_kills_work" not in stats:
            skip("a memory controller that counts its victims")
        equal(stats["oom_kills_work"], 0)
        equal(box.run("kill -9 $$")["exitCode"], KILLED)
        equal(lab.stats(box)["oom_kills_work"], 0, "an ordinary kill is none")
        answer = box.run(bomb("memory", 100))
        equal(is_held(result_of(answer, "memory")), True)
        after = lab.stats(box)
        equal(after["oom_kills_work"] >= 1, True, "victims")
        equal(after["oom_kills_agent"], 0)
        # The command itself: 137, and the count says why.
        equal(box.run("exec tail /dev/zero")["exitCode"], KILLED)
        equal(lab.stats(box)["oom_kills_work"] > after["oom_kills_work"], True)
        expect_life(box)


@test
def memory_that_stays_is_given_back_when_the_limit_is_raised():
    with BombLab(*SMALL, "--timeout", slowly(100)) as lab:
        for name in STAYS[:1]:
            box = lab.start([])
            equal(is_held(result_of(box.run(bomb(name, 100)), name)), True, name)
            expect_answers(box, 5)
            lab.set_memory(box, 2 * MEMORY)
            box.run("ipcrm --all=shm")
            lab.set_memory(box, MEMORY)
            expect_life(box)
            lab.stop(box)


# --- bombs ----------------------------------------------------------------------------------------

def settled_stats(lab, box):
    """Once nothing ends any more: who waits for a command goes a moment after its answer."""
    def are_settled():
        first = lab.stats(box)
        time.sleep(0.2)
        return lab.stats(box).get("pids") == first.get("pids") and first
    return wait_until(are_settled, "the number of processes stays")


def expect_no_more(lab, box, before):
    """As many processes as before; else says which there are."""
    try:
        wait_until(lambda: lab.stats(box)["pids"] <= before["pids"], "the bomb is gone")
    except AssertionError as failure:
        left = box.run("ps -eo pid,ppid,pgid,stat,args")
        raise AssertionError(f"{failure}: {before['pids']} before, now {lab.stats(box)}: {left}") from failure


@test
def a_fork_bomb_ends_with_its_time_and_the_sandbox_goes_on():
    with BombLab(*SMALL) as lab:
        box = lab.start([])
        expect_life(box)
        before = settled_stats(lab, box)
        killer = threading.Thread(target=lambda: box.run(
            f"{ATTACK_RESOURCES} bomb 1 hold", timeoutMs=3000))
        killer.start()
        wait_until(lambda: lab.stats(box)["pids_refused"] > before["pids_refused"], "the wall")
        expect_answers(box, 20)
        equal(lab.stats(box)["pids"] <= PIDS, True, "processes")
        killer.join()
        expect_no_more(lab, box, before)
        expect_life(box)


@test
def a_storm_of_processes_kills_none_but_its_own():
    with BombLab(*SMALL) as lab:
        box, other = lab.start([]), lab.start([])
        with held(other, "memory", 20):
            for _ in range(3):
                box.run(f"for i in 1 2 3 4 5 6 7 8; do {bomb('storm', 12)} & done; wait")
                expect_answers(box, 5)
            equal(lab.stats(other).get("oom_kills_work"), 0, "victims in the other")
            expect_life(other)
        expect_life(box)
        equal(lab.stats(box).get("oom_kills_agent"), 0, "victims beside the agent")


@test
def a_full_disk_says_so_and_can_be_emptied_and_filled_again():
    with BombLab(*SMALL) as lab:
        box, other = lab.start([]), lab.start([])
        if "disk_bytes" not in lab.stats(box):
            skip("a disk pool with limits")
        for name, goal, folder in (("disk", 30, "/workspace"), ("temporary_files", 30, "/tmp"),
                                   ("inodes", 20000, "/workspace")):
            result = result_of(box.run(bomb(name, goal)), name)
            equal(result.split()[1] in ("ENOSPC", "EDQUOT"), True, result)
            equal(box.run(f"rm -rf {folder}/*")["exitCode"], 0, "delete everything")
            again = f"head -c 4M /dev/urandom >{folder}/again && cat {folder}/again | wc -c"
            wait_until(lambda: box.run(again)["stdout"] == f"{4 * MEGABYTE}\n",  # pylint: disable=cell-var-from-loop
                       f"there is room again after {name}")
            box.run(f"rm -rf {folder}/*")
            equal(other.run("head -c 1M /dev/urandom >/workspace/file")["exitCode"], 0, "others")
        equal(lab.stats(box)["disk_bytes"] <= DISK, True, "what is counted")


@test
def one_sandbox_at_its_share_of_watches_leaves_others_theirs():
    with open("/proc/sys/fs/inotify/max_user_instances", encoding="ascii") as file:
        of_all = int(file.read())
    with BombLab(*SMALL) as lab:
        greedy, other = lab.start([]), lab.start([])
        share = int(other.run("cat /proc/sys/user/max_inotify_instances")["stdout"])
        if of_all < 3 * share:
            skip(f"fs.inotify.max_user_instances of {3 * share}, as the launcher sets it")
        with held(greedy, "watchers", share + 1) as said:
            equal(said, f"watchers refused EMFILE {share}")
            answer = other.run(bomb("watchers", share))
            equal(answer["stdout"], f"watchers succeeded {share}\n", "the other's")


@test
def zombies_and_many_short_processes_leave_nothing():
    with BombLab("--pids", str(PIDS), "--guard-cpu", "2000", "--timeout", slowly(150)) as lab:
        box = lab.start(["cpu_limit"])  # not what is tried here
        expect_life(box)
        before = settled_stats(lab, box)["pids"]
        numbers = "ls /proc | grep -c '^[0-9]'"
        listed = box.run(numbers)["stdout"]
        for _ in range(5):
            equal(result_of(box.run(bomb("zombies", 100)), "zombies").split()[:2],
                  ["refused", "EAGAIN"])
        answers = []
        runner = threading.Thread(target=lambda: answers.append(box.run(bomb("orphans", ORPHANS))))
        runner.start()
        while runner.is_alive():
            expect_answers(box, 1)
            time.sleep(0.1)
        runner.join()
        equal(answers[0]["stdout"], f"orphans succeeded {ORPHANS}\n")
        wait_until(lambda: lab.stats(box)["pids"] <= before, "no process is left")
        wait_until(lambda: int(box.run(numbers)["stdout"]) <= int(listed) + 1, "few processes are listed")
        expect_life(box)


# --- cores ----------------------------------------------------------------------------------------

@test
def a_crash_leaves_no_core_and_starts_no_handler():
    with open("/proc/sys/kernel/core_pattern", encoding="ascii") as file:
        pattern = file.read().strip()
    if pattern.startswith("@"):
        print("# cores go to a socket of this host, which knows no limit: only the file is seen")
    with BombLab() as lab:
        box = lab.start([])
        limits = box.run("grep 'core file' /proc/self/limits")["stdout"].split()
        # 1, not 0: for a piped handler the kernel looks at nothing else (process_limit.h).
        equal(limits[4:6], ["1", "1"], "limit of cores")
        answer = box.run("cd /workspace; ulimit -c unlimited; sh -c 'kill -SEGV $$'; echo $?; ls -A")
        equal(answer["stdout"], "139\n", "status, and files afterwards")
        equal(box.run("exec sh -c 'kill -SEGV $$'")["exitCode"], 139)


main()
