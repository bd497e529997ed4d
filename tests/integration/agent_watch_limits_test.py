#!/usr/bin/python3
"""File watches and too much of everything: events, folders, clients; and nothing left behind.

# timeout: 600
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from file_watch import (PATIENCE, Watch, Workspace, inotify_watches, refusal,  # noqa: E402
                        wait_until_nothing_is_watched, workspace_agent)
from http_raw import connect  # noqa: E402
from program import program, wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402


# --- too much ------------------------------------------------------------------------------------


@test
def an_overflow_of_the_kernels_queue_is_told_and_healed():
    with open("/proc/sys/fs/inotify/max_queued_events", encoding="ascii") as file:
        limit = int(file.read())
    if limit > 200000:
        skip(f"a queue of inotify that can be filled (it holds {limit})")
    with workspace_agent() as (work, agent):
        work.mkdir("vanishes")
        with Watch(agent, path=work.path()) as watch:
            agent.signal(signal.SIGSTOP)
            try:
                for number in range(limit // 2 + 100):
                    os.close(os.open(work.path(f"{number % 100}"), os.O_CREAT | os.O_WRONLY))
                    os.unlink(work.path(f"{number % 100}"))
                work.mkdir("appears/deep")
                work.write("appears/deep/file")
                os.rmdir(work.path("vanishes"))
            finally:
                agent.signal(signal.SIGCONT)
            event = watch.wait_for(lambda event: event["type"] == "error")
            assert "max_queued_events" in event["error"], event
            watch.wait_change("create", work.path("appears"), True)
            watch.wait_change("create", work.path("appears/deep/file"))
            watch.wait_change("delete", work.path("vanishes"), True)
            watch.wait_change("create", work.write("appears/deep/later"))


class LimitedAgent(Agent):
    """An agent in a user namespace where inotify has limits of its own."""

    def __init__(self, work, name, limit):
        super().__init__(environment={"BURROW_WORKSPACE": work.folder})
        self.script = f"echo {limit} > /proc/sys/user/{name} && exec \"$@\""

    def launch(self):
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                ["unshare", "--user", "--map-root-user", "sh", "-c", self.script, "sh",
                 program(self.name), *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)


def can_limit():
    return subprocess.run(["unshare", "--user", "--map-root-user", "sh", "-c",
                           "echo 5 > /proc/sys/user/max_inotify_watches"],
                          stderr=subprocess.DEVNULL, check=False).returncode == 0


@test
def the_limits_of_inotify_are_named():
    if not can_limit():
        skip("user namespaces with limits of inotify")
    with Workspace() as work:
        work.mkdir("a/b/c/d")
        with LimitedAgent(work, "max_inotify_watches", 4) as agent:
            status, code, body = refusal(agent, path=work.path())
            equal((status, code), (500, "WATCH_START_ERROR"), "refusal")
            assert "fs.inotify.max_user_watches" in body["message"], body
            wait_until_nothing_is_watched(agent)
            with Watch(agent, path=work.path("a/b/c/d"), recursive=False) as watch:
                watch.wait_change("create", work.write("a/b/c/d/file"))
        with LimitedAgent(work, "max_inotify_watches", 3) as agent:
            shutil.rmtree(work.path("a"))
            with Watch(agent, path=work.path()) as watch:
                work.mkdir("x/y/z")
                event = watch.wait_for(lambda event: event["type"] == "error")
                assert "fs.inotify.max_user_watches" in event["error"], event
                watch.wait_change("create", work.write("still"))
        with LimitedAgent(work, "max_inotify_instances", 0) as agent:
            status, code, body = refusal(agent, path=work.path())
            equal((status, code), (500, "WATCH_START_ERROR"), "refusal")
            assert "fs.inotify.max_user_instances" in body["message"], body
            equal(agent.run("echo alive")["stdout"].strip(), "alive", "the agent")


@test
def a_slow_client_misses_events_and_hears_of_it_while_others_go_on():
    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as good:
        slow = connect(agent.address, PATIENCE)
        body = json.dumps({"path": work.path()}).encode()
        slow.send(b"POST /api/watch HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                  % (len(body), body))
        equal(slow.response_head().status, 200, "status")
        rounds, name = 6000, "n" * 200
        before = agent.memory_kb()
        for number in range(rounds):
            os.close(os.open(work.path(f"{name}{number}"), os.O_CREAT | os.O_WRONLY))
            if number % 250 == 249:  # who reads misses nothing, if he is given the time
                good.wait(lambda seen=number: len(good.events) > seen, "those so far")
        good.wait(lambda: len(good.events) > rounds, "all files")
        growth = agent.memory_kb() - before
        assert growth < 8192, f"{growth} kB more"
        pending = b""
        for chunk in slow.chunks():
            pending += chunk
            if b'"type":"error"' in pending and b"dropped" in pending:
                break
        slow.close()


@test
def many_streams_share_one_instance_and_one_watch_per_folder():
    with workspace_agent() as (work, agent):
        for number in range(10):
            work.mkdir(f"d{number}")
        with contextlib.ExitStack() as stack:
            watches = [stack.enter_context(Watch(agent, path=work.path())) for _ in range(40)]
            watches += [stack.enter_context(Watch(agent, path=work.path(), exclude=[f"x{number}"]))
                        for number in range(20)]
            equal(len({watch.first["watchId"] for watch in watches}), 21, "watchers")
            equal(inotify_watches(agent), [12], "watches")
            path = work.write("d3/file")
            for watch in watches:
                watch.wait_change("create", path)
            equal({watch.changes().count(("create", path)) for watch in watches}, {1}, "times")
        wait_until_nothing_is_watched(agent)


@test
def the_agent_answers_while_a_large_tree_is_read_and_given_up():
    folders = 20000
    with workspace_agent() as (work, agent):
        for number in range(100):
            for inner in range(folders // 100):
                os.makedirs(work.path(f"{number}/{inner}"))
        pings, stop = [], threading.Event()

        def ping():
            while not stop.is_set():
                pings.append(agent.get("/api/ping").status)

        thread = threading.Thread(target=ping)
        thread.start()
        try:
            with Watch(agent, path=work.path()) as watch:
                watch.wait_change("create", work.write("99/7/file"))
                equal(inotify_watches(agent), [folders + 102], "watches")
            wait_until_nothing_is_watched(agent)
        finally:
            stop.set()
            thread.join()
        assert len(pings) > 5, "it answered nobody meanwhile"
        equal(set(pings), {200}, "statuses meanwhile")


@test
def a_client_that_leaves_takes_everything_along():
    with workspace_agent() as (work, agent):
        work.mkdir("a/b/c")
        wait_until(lambda: agent.get("/api/ping").status == 200, "ping")
        before = agent.open_files()
        for _ in range(3):
            with Watch(agent, path=work.path()):
                equal(inotify_watches(agent), [5], "watches")
            wait_until_nothing_is_watched(agent)
        wait_until(lambda: agent.open_files() <= before, "descriptors as before")
        equal(inotify_watches(agent), [], "instances")


main()
