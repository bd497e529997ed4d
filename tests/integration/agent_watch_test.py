#!/usr/bin/python3
"""File watches: what changes below a folder, told once and in time; and checks.

# timeout: 600
"""

import json
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from file_watch import (Watch, Workspace, check, inotify_watches, refusal,  # noqa: E402
                        wait_until_nothing_is_watched, workspace_agent)
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402


# --- what is told --------------------------------------------------------------------------------


@test
def a_stream_says_what_it_watches_and_what_happens():
    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as watch:
        equal(watch.first["path"], work.path(), "path")
        assert watch.first["watchId"].startswith("watch-1-"), watch.first
        equal(watch.head.headers["content-type"], "text/event-stream", "type")
        path = work.write("file")
        event = watch.wait_change("create", path)
        equal(list(event), ["type", "eventType", "path", "isDirectory", "timestamp"], "fields")
        watch.wait_change("modify", path)
        os.rename(path, work.path("other"))
        watch.wait_change("move_from", path)
        watch.wait_change("move_to", work.path("other"))
        os.chmod(work.path("other"), 0o600)
        os.unlink(work.path("other"))
        watch.wait_change("delete", work.path("other"))
        os.mkdir(work.path("folder"))
        watch.wait_change("create", work.path("folder"), True)
        os.rmdir(work.path("folder"))
        watch.wait_change("delete", work.path("folder"), True)
        kinds = {kind for kind, _ in watch.settle()}
        equal(kinds, {"create", "modify", "move_from", "move_to", "delete"}, "kinds")


@test
def many_writes_are_one_event():
    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as watch:
        with open(work.path("log"), "wb", buffering=0) as file:
            for _ in range(200):
                file.write(b"x")
        count = watch.settle().count(("modify", work.path("log")))
        assert 1 <= count <= 100, count


@test
def only_the_events_asked_for_are_told():
    with workspace_agent() as (work, agent):
        work.write("file")
        with Watch(agent, path=work.path(), events=["attrib", "delete"]) as watch:
            work.write("file", "more")
            os.chmod(work.path("file"), 0o600)
            watch.wait_change("attrib", work.path("file"))
            os.unlink(work.path("file"))
            watch.wait_change("delete", work.path("file"))
            equal({kind for kind, _ in watch.settle()}, {"attrib", "delete"}, "kinds")


@test
def relative_paths_begin_in_the_workspace():
    with workspace_agent() as (work, agent):
        work.mkdir("a/b")
        with Watch(agent, path="a/./b/../b") as watch:
            equal(watch.first["path"], work.path("a/b"), "path")
            watch.wait_change("create", work.write("a/b/file"))


@test
def a_link_inside_the_workspace_is_followed_under_its_own_name():
    with workspace_agent() as (work, agent):
        work.mkdir("real")
        os.symlink(work.path("real"), work.path("link"))
        with Watch(agent, path=work.path("link")) as watch:
            work.write("real/file")
            watch.wait_change("create", work.path("link/file"))


@test
def a_file_can_be_watched_and_replaced():
    with workspace_agent() as (work, agent):
        path = work.write("file")
        with Watch(agent, path=path) as watch:
            equal(watch.first["path"], path, "path")
            work.write("other")
            work.write("file", "new")
            watch.wait_change("modify", path)
            os.rename(work.path("other"), path)
            watch.wait_change("move_to", path)
            os.unlink(path)
            watch.wait_change("delete", path)
            work.write("file")
            watch.wait_change("create", path)
            equal({name for _, name in watch.settle()}, {path}, "paths")


@test
def strange_names_are_told():
    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as watch:
        for name in ("with space", "quote\"'", "new\nline", "\u00e4\u20ac", "a" * 255):
            watch.wait_change("create", work.write(name))
        with open(os.fsencode(work.path()) + b"/bad\xff", "wb"):
            pass
        watch.wait_change("create", work.path("bad\ufffd"))


# --- globs ---------------------------------------------------------------------------------------


def named(watch, work):
    return {os.path.relpath(path, work.path()) for _, path in watch.settle()}


@test
def noise_is_excluded_unless_somebody_says_otherwise():
    with workspace_agent() as (work, agent):
        for name in (".git", "node_modules/x", "src"):
            work.mkdir(name)
        with Watch(agent, path=work.path()) as watch:
            for name in (".git/HEAD", "node_modules/x/y", ".DS_Store", "src/a", ".gitignore"):
                work.write(name)
            work.mkdir("src/node_modules/deep")
            work.write("src/node_modules/deep/b")
            equal(named(watch, work), {"src/a", ".gitignore"}, "by default")
        with Watch(agent, path=work.path(), exclude=["*.log"]) as watch:
            for name in (".git/index", "src/a.log", "src/b"):
                work.write(name)
            equal(named(watch, work), {".git/index", "src/b"}, "with an exclude")


@test
def included_files_are_found_anywhere():
    with workspace_agent() as (work, agent):
        with Watch(agent, path=work.path(), include=["*.ts", "docs/**/*.md"]) as watch:
            for name in ("src/deep", "docs/x"):
                work.mkdir(name)
            for name in ("a.ts", "a.js", "src/deep/b.ts", "docs/top.md", "docs/x/y.md", "z.md"):
                work.write(name)
            equal(named(watch, work), {"a.ts", "src/deep/b.ts", "docs/top.md", "docs/x/y.md"},
                  "paths")


@test
def without_recursion_only_the_folder_itself_is_watched():
    with workspace_agent() as (work, agent):
        work.mkdir("old")
        with Watch(agent, path=work.path(), recursive=False) as watch:
            work.write("old/hidden")
            work.mkdir("new")
            work.write("new/hidden")
            work.write("seen")
            equal(named(watch, work), {"new", "seen"}, "paths")
            equal(inotify_watches(agent), [2], "watches: it, and the folder around it")


# --- folders that come and go --------------------------------------------------------------------


@test
def files_in_new_folders_are_told_exactly_once():
    rounds = 200
    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as watch:
        expected = []
        for number in range(rounds):
            top = work.path(f"r{number}")
            os.makedirs(f"{top}/a/b/c")
            for name in ("1", "a/2", "a/b/3", "a/b/c/4"):
                os.close(os.open(f"{top}/{name}", os.O_CREAT | os.O_WRONLY))
            expected += [top, f"{top}/a", f"{top}/a/b", f"{top}/a/b/c", f"{top}/1", f"{top}/a/2",
                         f"{top}/a/b/3", f"{top}/a/b/c/4"]
            if number % 50 == 0:
                time.sleep(0.1)
        watch.wait(lambda: len(watch.events) > len(expected), "all files")
        told = [path for kind, path in watch.settle() if kind == "create"]
        equal(sorted(set(expected) - set(told)), [], "lost")
        equal(len(told), len(expected), "told")


@test
def new_folders_go_on_being_followed():
    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as watch:
        os.makedirs(work.path("a/b/c"))
        watch.wait_change("create", work.path("a/b/c"), True)
        watch.settle()
        watch.wait_change("create", work.write("a/b/c/late"))
        shutil.rmtree(work.path("a"))
        watch.wait_change("delete", work.path("a"), True)
        watch.wait_change("delete", work.path("a/b/c/late"))
        wait_until(lambda: inotify_watches(agent) == [2], "watches of the deleted are gone")


@test
def a_folder_that_moves_keeps_being_watched_under_its_new_name():
    with workspace_agent() as (work, agent):
        work.mkdir("old/deep")
        work.write("old/deep/file")
        work.mkdir("place")
        with Watch(agent, path=work.path()) as watch:
            os.rename(work.path("old"), work.path("place/new"))
            watch.wait_change("move_from", work.path("old"), True)
            watch.wait_change("move_to", work.path("place/new"), True)
            equal(watch.settle(), [("move_from", work.path("old")),
                                   ("move_to", work.path("place/new"))], "contents say nothing")
            watch.wait_change("create", work.write("place/new/deep/later"))
            equal(inotify_watches(agent), [5], "watches")


@test
def a_folder_that_moves_in_brings_its_files_and_one_that_moves_out_is_left():
    with workspace_agent() as (work, agent), Workspace() as outside:
        outside.mkdir("box/inner")
        outside.write("box/inner/file")
        with Watch(agent, path=work.path()) as watch:
            os.rename(outside.path("box"), work.path("box"))
            watch.wait_change("move_to", work.path("box"), True)
            watch.wait_change("create", work.path("box/inner/file"))
            os.rename(work.path("box"), outside.path("back"))
            watch.wait_change("move_from", work.path("box"), True)
            wait_until(lambda: inotify_watches(agent) == [2], "watches of the moved are gone")
            count = len(watch.events)
            outside.write("back/inner/other")
            watch.settle()
            equal(len(watch.events), count, "events of what is outside")


@test
def renames_that_race_lose_nothing():
    """Folders are made, renamed and made again faster than anybody can look."""
    with workspace_agent() as (work, agent), Watch(agent, path=work.path()) as watch:
        for number in range(100):
            os.makedirs(work.path(f"a{number}/x"))
            os.rename(work.path(f"a{number}"), work.path(f"b{number}"))
            os.makedirs(work.path(f"a{number}/y"))
            os.rename(work.path(f"b{number}/x"), work.path(f"a{number}/z"))
        watch.settle()
        for number in range(100):
            for name in (f"b{number}/1", f"a{number}/2", f"a{number}/y/3", f"a{number}/z/4"):
                work.write(name)
        told = {path for kind, path in watch.settle() if kind == "create"}
        lost = [name for number in range(100)
                for name in (f"b{number}/1", f"a{number}/2", f"a{number}/y/3", f"a{number}/z/4")
                if work.path(name) not in told]
        equal(lost, [], "lost")


@test
def a_root_that_goes_ends_the_stream():
    with workspace_agent() as (work, agent):
        for name, end in (("gone", os.rmdir), ("moved", lambda path: os.rename(path, path + "2"))):
            work.mkdir(name)
            # Somebody stands in the folder: it is not freed when it is deleted.
            holder = os.open(work.path(name), os.O_PATH)
            with Watch(agent, path=work.path(name)) as watch:
                end(work.path(name))
                event = watch.wait_for(lambda event: event["type"] == "stopped")
                assert name[:3] in event["reason"] or "deleted" in event["reason"], event
                watch.wait(lambda watch=watch: watch.ended, "the end of the stream")
            os.close(holder)
        work.mkdir("above/below")
        with Watch(agent, path=work.path("above/below")) as watch:
            os.rename(work.path("above"), work.path("elsewhere"))
            watch.wait_for(lambda event: event["type"] == "stopped")
        wait_until_nothing_is_watched(agent)
        equal(refusal(agent, path=work.path("gone"))[:2], (404, "FILE_NOT_FOUND"), "afterwards")


# --- checks --------------------------------------------------------------------------------------


@test
def a_check_tells_whether_anything_changed_since_the_last():
    with workspace_agent() as (work, agent):
        first = check(agent, path=work.path())
        equal(list(first), ["success", "status", "version", "timestamp"], "fields")
        equal(first["status"], "unchanged", "the first")
        again = check(agent, path=work.path(), since=first["version"])
        equal((again["status"], again["version"]), ("unchanged", first["version"]), "nothing new")
        for number in range(50):  # whoever has written may ask at once
            work.mkdir(f"d{number}/e")
            work.write(f"d{number}/e/file")
            changed = check(agent, path=work.path(), since=again["version"])
            equal(changed["status"], "changed", "after a write")
            again = check(agent, path=work.path(), since=changed["version"])
            equal(again["status"], "unchanged", "and now")
        work.mkdir(".git")
        again = check(agent, path=work.path(), since=again["version"])
        equal(again["status"], "unchanged", "what is excluded")


@test
def checks_and_streams_with_the_same_wishes_share_a_watcher():
    with workspace_agent() as (work, agent):
        version = check(agent, path=work.path(), exclude=["b", "a", "a"])["version"]
        with Watch(agent, path=work.path(), exclude=["a", "b"]) as watch:
            equal(watch.first["watchId"], version.rpartition(":")[0], "id")
            watch.wait_change("create", work.write("file"))
        equal(check(agent, path=work.path(), exclude=["b", "a"], since=version)["status"],
              "changed", "afterwards")


@test
def versions_of_other_watchers_ask_for_a_resync():
    with workspace_agent() as (work, agent):
        work.mkdir("a")
        old = "watch-1-1700000000000:7"
        answer = check(agent, path=work.path("a"), since=old)
        equal((answer["status"], answer["reason"]), ("resync", "expired"), "a new watcher")
        equal(list(answer), ["success", "status", "reason", "version", "timestamp"], "fields")
        answer = check(agent, path=work.path("a"), since=old)
        equal((answer["status"], answer["reason"]), ("resync", "restarted"), "an old one")
        head = answer["version"].rpartition(":")[0]
        for since in ("nonsense", ":1", "x:", "x:1y", "x:-1", f"{head}:99"):
            equal(refusal(agent, "/api/watch/check", path=work.path("a"), since=since)[:2],
                  (400, "VALIDATION_FAILED"), since)


@test
def only_so_many_watchers_are_retained():
    with workspace_agent() as (work, agent):
        versions = []
        for number in range(70):
            work.mkdir(f"{number}")
            versions.append(check(agent, path=work.path(f"{number}"))["version"])
            time.sleep(0.002)
        answer = check(agent, path=work.path("0"), since=versions[0])
        equal((answer["status"], answer.get("reason")), ("resync", "expired"), "the oldest")
        answer = check(agent, path=work.path("69"), since=versions[69])
        equal(answer["status"], "unchanged", "the newest")


@test
def a_check_of_what_was_deleted_finds_nothing():
    with workspace_agent() as (work, agent):
        work.mkdir("a")
        version = check(agent, path=work.path("a"))["version"]
        os.rmdir(work.path("a"))
        wait_until(lambda: refusal_or_none(agent, work.path("a"), version) ==
                   (404, "FILE_NOT_FOUND"), "404")
        work.mkdir("a")
        answer = check(agent, path=work.path("a"), since=version)
        equal((answer["status"], answer["reason"]), ("resync", "expired"), "made again")


def refusal_or_none(agent, path, since):
    response = agent.post("/api/watch/check", {"path": path, "since": since})
    return None if response.status == 200 else (response.status,
                                                json.loads(response.body)["code"])


# --- what is refused -----------------------------------------------------------------------------


@test
def only_the_workspace_can_be_watched():
    with workspace_agent() as (work, agent), Workspace() as outside:
        os.symlink(outside.path(), work.path("out"))
        os.symlink("loop", work.path("loop"))
        denied = (403, "PERMISSION_DENIED")
        for path in ("/", "/etc", "..", "a/../..", work.path("../x"), work.path("out"),
                     work.path() + "2", work.path("out/..")[:-2] + "."):
            for route in ("/api/watch", "/api/watch/check"):
                equal(refusal(agent, route, path=path)[:2], denied, f"{route} {path}")
        status, code, body = refusal(agent, path=work.path("missing"))
        equal((status, code), (404, "FILE_NOT_FOUND"), "missing")
        equal(body["context"], {"path": work.path("missing"), "operation": "watch.start"},
              "context")
        equal(refusal(agent, path=work.path("loop"))[:2], (500, "TOO_MANY_LINKS"), "loop")
        wait_until_nothing_is_watched(agent)


@test
def wishes_that_make_no_sense_are_refused():
    with workspace_agent() as (work, agent):
        for fields in ({}, {"path": ""}, {"path": "  "}, {"path": 7}, {"path": "a\0b"},
                       {"path": work.path(), "recursive": "yes"},
                       {"path": work.path(), "include": ["a"], "exclude": ["b"]},
                       {"path": work.path(), "include": "a"},
                       {"path": work.path(), "include": [1]},
                       {"path": work.path(), "include": [""]},
                       {"path": work.path(), "exclude": ["[a-z]"]},
                       {"path": work.path(), "exclude": ["{a,b}"]},
                       {"path": work.path(), "events": ["close"]},
                       {"path": work.path(), "exclude": ["x"] * 1000},
                       {"path": work.path(), "exclude": ["x" * 2000]}):
            response = agent.post("/api/watch", fields)
            assert response.status in (400, 500), (fields, response)
            if "\0" not in str(fields.get("path")):
                equal(json.loads(response.body)["code"], "VALIDATION_FAILED", f"{fields}"[:200])


main()
