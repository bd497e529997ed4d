#!/usr/bin/python3
"""Background processes of the agent: what they write, and who reads it.

# timeout: 600
"""

import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from agent_processes import (data, delete, ended, events, events_on, logs, process,  # noqa: E402
                             start, viewing)
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from shared import SHARED  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20
LOG_MAX = 2 * MIB


# --- logs and viewers ----------------------------------------------------------------------------


@test
def the_two_outputs_are_kept_apart():
    identity = start("printf out; printf err >&2; printf ' more'; printf '\\377\\0z'")
    ended(identity)
    reply = logs(identity)
    equal(sorted(reply), ["processId", "stderr", "stdout", "success", "timestamp"], "fields")
    equal((reply["stdout"], reply["stderr"]), ("out more\ufffd\0z", "err"), "logs")


@test
def the_log_of_what_just_ended_is_complete():
    for _ in range(20):
        identity = start("seq 2000; echo last >&2")
        if "endTime" in process(identity):
            reply = logs(identity)
            equal((reply["stdout"].splitlines()[-1:], reply["stderr"]), (["2000"], "last\n"),
                  "logs")
    found = list(events(identity))
    equal((len(data(found)), data(found, "stderr")), (len(logs(identity)["stdout"]), "last\n"),
          "streamed")


@test
def a_stream_replays_then_goes_on_and_ends():
    identity = start("echo one; while [ ! -e $GO ]; do sleep 0.02; done; echo two >&2; exit 5",
                     env={"GO": f"{SHARED.folder}/go"})
    wait_until(lambda: "one" in logs(identity)["stdout"], "the first line")
    stream = events(identity)
    info, first = next(stream), next(stream)
    equal((info["type"], info["processId"], info["status"]),
          ("process_info", identity, "running"), "info")
    assert info["command"].startswith("echo one"), info
    equal((first["type"], first["data"], first["processId"]), ("stdout", "one\n", identity),
          "replayed")
    with open(f"{SHARED.folder}/go", "w", encoding="ascii"):
        pass
    second, last = stream
    os.unlink(f"{SHARED.folder}/go")
    equal((second["type"], second["data"]), ("stderr", "two\n"), "live")
    equal((last["type"], last["exitCode"], last["data"], last["processId"]),
          ("exit", 5, "Process completed with exit code 5", identity), "exit")
    replay = list(events(identity))
    equal([event["type"] for event in replay], ["process_info", "stdout", "stderr", "exit"],
          "the whole again")


@test
def output_is_seen_while_the_process_goes_on():
    gate = f"{SHARED.folder}/next"
    identity = start(f"for i in 1 2 3; do echo $i; until rm {gate} 2>/dev/null; do sleep 0.02; done; done")
    seen = []
    for event in events(identity):
        if event["type"] == "stdout":
            seen.append(event["data"])
            open(gate, "wb").close()  # until then it says nothing more
    equal("".join(seen), "1\n2\n3\n", "output")


@test
def characters_cut_by_a_piece_are_whole_in_the_stream():
    text = "\u00e4\u20ac\U0001f600" * 5000
    identity = start("cat \"$FILE\"", env={"FILE": write("wide", text)})
    ended(identity)
    equal(data(events(identity)), text, "streamed")
    equal(logs(identity)["stdout"], text, "logs")


@test
def many_viewers_see_the_same():
    identity = start("for i in $(seq 200); do echo line $i; sleep 0.005; done")
    seen = []
    viewers = [threading.Thread(target=lambda: seen.append(data(events(identity))))
               for _ in range(40)]
    for viewer in viewers:
        viewer.start()
    for viewer in viewers:
        viewer.join()
    expected = "".join(f"line {i}\n" for i in range(1, 201))
    equal(len(seen), 40, "viewers")
    equal([text for text in seen if text != expected], [], "different views")


@test
def old_output_is_dropped_and_that_is_said():
    size = 5 * MIB
    identity = start(f"echo beginning; head -c {size} /dev/zero | tr '\\0' x; echo end")
    ended(identity)
    reply = logs(identity)
    kept = reply["stdout"]
    equal((reply["truncated"], reply["droppedBytes"] + len(kept)), (True, size + 14), "said")
    assert kept.endswith("xend\n") and LOG_MAX * 0.9 < len(kept) <= LOG_MAX, len(kept)
    found = list(events(identity))
    equal((found[1]["type"], found[1]["droppedBytes"]), ("stdout", reply["droppedBytes"]), "note")
    assert str(reply["droppedBytes"]) in found[1]["data"], found[1]
    equal(data(found[2:]), kept, "the rest of the stream")


@test
def a_slow_viewer_stalls_nobody_and_misses_no_end():
    with Agent() as agent:
        size = 20 * MIB
        identity = start("read x < $GO; head -c %d /dev/zero | tr '\\0' y; echo; echo end" % size,
                         env={"GO": fifo(agent, "go")}, agent=agent)
        with viewing(identity, agent) as slow:
            with open(f"{agent.folder}/go", "w", encoding="ascii") as file:
                file.write("\n")
            fast = list(events(identity, agent))  # to the end, while the other does not read
            equal(process(identity, agent)["status"], "completed", "status")
            late = list(events_on(slow))
        for found in (fast, late):
            dropped = sum(event.get("droppedBytes", 0) for event in found)
            text = "".join(event["data"] for event in found
                           if event["type"] == "stdout" and "droppedBytes" not in event)
            equal(dropped + len(text), size + 5, "seen and missed together")
            assert text.endswith("end\n"), text[-10:]
            equal(found[-1]["type"], "exit", "last event")
        assert any("droppedBytes" in event for event in late), "the slow one missed nothing"
        assert agent.memory_kb() < 24 * 1024, agent.memory_kb()


@test
def all_logs_together_are_bounded():
    with Agent() as agent:
        quiet = start("echo quiet", agent=agent)
        for identity in [start(f"head -c {3 * MIB} /dev/zero | tr '\\0' z", agent=agent)
                         for _ in range(12)]:
            ended(identity, agent)
        equal(logs(quiet, agent)["stdout"], "quiet\n", "who said little keeps it")
        assert agent.memory_kb() < 24 * 1024, agent.memory_kb()


@test
def a_viewer_who_leaves_is_nobodys_concern():
    identity = start("while :; do seq 1000; done")
    for _ in range(20):
        with viewing(identity) as connection:
            connection.read_some()
    equal(process(identity)["status"], "running", "status")
    delete(f"/api/process/{identity}")


@test
def logs_are_read_by_slow_clients_while_they_grow():
    identity = start("yes 0123456789")
    wait_until(lambda: "truncated" in logs(identity), "a full log")
    with connect(SHARED.address) as connection:
        connection.send(f"GET /api/process/{identity}/logs HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        time.sleep(0.5)
        found = json.loads(connection.response().body)
    delete(f"/api/process/{identity}")
    assert found["truncated"] and "0123456789\n" in found["stdout"], found["droppedBytes"]


# --- small things --------------------------------------------------------------------------------


def write(name, text):
    path = os.path.join(SHARED.folder, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def fifo(agent, name):
    path = os.path.join(agent.folder, name)
    os.mkfifo(path)
    return path


with Agent() as AGENT:
    SHARED.stand_for(AGENT)
    main()
