#!/usr/bin/python3
"""Code in the agent that takes its time, and what becomes of code that misbehaves.

# timeout: 600
"""

import json
import os
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent, find_processes, own_time, processes  # noqa: E402
from agent_code import (DEBIAN, NODE, PYTHON, context, create, delete, events_of,  # noqa: E402
                        good, is_well, open_run, run, stream, text)
from program import wait_until  # noqa: E402
from shared import SHARED  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20


# --- time ----------------------------------------------------------------------------------------


@test
def a_timeout_interrupts_and_keeps_the_context():
    for language, setup, forever, kept in (
            (PYTHON, "kept = 5", "while True: pass", "kept"),
            (PYTHON, "kept = 5", "import time; time.sleep(1000)", "kept"),
            (PYTHON, "kept = 5", "import subprocess; subprocess.run(['sleep', '999'])", "kept"),
            (NODE, "var kept = 5", "while (true) {}", "kept"),
            (NODE, "var kept = 5", "await new Promise(() => {})", "kept"),
            (NODE, "var kept = 5", "require('child_process').execSync('sleep 999')", "kept")):
        with context(language) as made:
            good(SHARED, setup, context_id=made)
            error = run(SHARED, forever, context_id=made, timeout_ms=300).error
            equal((error["ename"], error["evalue"]),
                  ("TimeoutError", "Execution timed out after 300ms"), forever)
            equal(text(SHARED, kept, context_id=made), "5", f"after {forever}")


@test
def what_ignores_the_interrupt_is_replaced():
    for language, code, later in (
            (PYTHON, "import signal\nlost = 1\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                     "while True: pass", "'lost' in globals()"),
            (NODE, "globalThis.lost = 1; await 1; while (true) {}", "'lost' in globalThis")):
        with context(language) as made:
            error = run(SHARED, code, context_id=made, timeout_ms=200).error
            equal(error["ename"], "TimeoutError", "error")
            assert "killed and replaced" in error["evalue"], error
            equal(text(SHARED, later, context_id=made).lower(), "false", "a new process")


@test
def a_client_that_leaves_stops_its_code():
    with context() as made:
        with open_run(SHARED, "print(1)\nwhile True: pass", context_id=made) as connection:
            next(events_of(connection))
        equal(text(SHARED, "2", context_id=made, timeout_ms=20000), "2", "the next run")


@test
def runs_of_a_context_wait_for_each_other():
    with context() as made:
        good(SHARED, "log = []", context_id=made)
        code = "import time\nlog.append('in')\ntime.sleep(0.1)\nlog.append('out')"
        threads = [threading.Thread(target=good, args=(SHARED, code), kwargs={"context_id": made})
                   for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        equal(text(SHARED, "log", context_id=made), repr(["in", "out"] * 4), "order")


@test
def contexts_run_side_by_side():
    with context() as one, context() as other:
        with open_run(SHARED, "import time; time.sleep(1000)", context_id=one):
            equal(text(SHARED, "1", context_id=other), "1", "the other does not wait")


# --- code that misbehaves ------------------------------------------------------------------------


@test
def a_context_that_dies_is_gone_and_says_so():
    for language, code in ((PYTHON, "import os; print('last'); os._exit(3)"),
                           (PYTHON, "import os; print('last'); os.kill(os.getpid(), 9)"),
                           (PYTHON, "print('last')\nimport os; os.closerange(3, 100)"),
                           (NODE, "console.log('last'); process.reallyExit(3)"),
                           (NODE, "console.log('last'); process.kill(process.pid, 'SIGKILL'); "
                                  "while (true) {}")):
        made = create(SHARED, language=language)
        outcome = run(SHARED, code, context_id=made)
        equal((outcome.stdout, outcome.error["ename"]), ("last\n", "ContextTerminated"), code)
        response = SHARED.post("/api/execute/code", {"context_id": made, "code": "1"})
        equal((response.status, json.loads(response.body)["code"]), (404, "CONTEXT_NOT_FOUND"),
              code)
    is_well()


@test
def a_default_context_that_died_is_made_anew():
    run(SHARED, "import os; os._exit(1)")
    is_well()
    run(SHARED, "process.abort()", language=NODE)
    equal(text(SHARED, "1", language=NODE), "1", "node")


@test
def the_death_of_the_fork_server_does_not_matter():
    with Agent(environment=DEBIAN) as agent:
        made = create(agent)
        good(agent, "kept = 1", context_id=made)
        parent = int(text(agent, "import os; os.getppid()", context_id=made))
        os.kill(parent, 9)
        equal(text(agent, "kept", context_id=made), "1", "the context")
        wait_until(lambda: parent not in processes(), "the end of the server")
        equal(text(agent, "5", context_id=create(agent)), "5", "a new one")


@test
def code_that_forks_answers_once():
    outcome = good(SHARED, "import os\npid = os.fork()\nprint('child' if pid == 0 else 'parent')\n"
                           "if pid: os.waitpid(pid, 0)\n7")
    equal((outcome.stdout.count("child"), outcome.stdout.count("parent")), (1, 1), "output")
    equal([r["text"] for r in outcome.results], ["7"], "results")
    is_well()


@test
def threads_left_behind_do_no_harm():
    code = "import threading, time\ndef work():\n  for i in range(50): print(i); time.sleep(0.01)\n" \
           "threading.Thread(target=work).start()"
    with context() as made:
        good(SHARED, code, context_id=made)
        time.sleep(0.2)
        equal(text(SHARED, "'well'", context_id=made), "'well'", "later")
    with context(NODE) as made:
        good(SHARED, "setInterval(() => console.log('tick'), 10); "
                     "setTimeout(() => { throw new Error('late') }, 50); 0", context_id=made)
        time.sleep(0.2)
        equal(text(SHARED, "'well'", context_id=made), "'well'", "later")


@test
def endless_output_and_recursion_are_bounded():
    with context() as made:
        outcome = run(SHARED, "while True: print('spam' * 1000)", context_id=made, timeout_ms=500)
        equal(outcome.error["ename"], "TimeoutError", "error")
        equal(run(SHARED, "def f(): f()\nf()", context_id=made).error["ename"], "RecursionError",
              "python")
    equal(run(SHARED, "function r() { r() }; r()", language=NODE).error["ename"], "RangeError",
          "node")
    result = good(SHARED, "'x' * (5 << 20)").results[0]
    assert len(result["text"]) < 2 * MIB and "more characters" in result["text"]
    outcome = good(SHARED, "class Big:\n  def _repr_html_(self): return 'h' * (20 << 20)\nBig()")
    assert "too large" in outcome.stderr and "html" not in outcome.results[0], outcome.stderr
    assert SHARED.anonymous_kb() < 64 * 1024, SHARED.anonymous_kb()


@test
def lies_on_the_channel_end_the_context_only():
    for lie in ("b'garbage\\n'", "b'{}\\n'", "b'x' * (20 << 20)", "b'{\"type\":\"end\"}\\n' * 5",
                "b'{\"type\":\"ready\",\"pid\":1}\\n'", "b'{\"type\":\"failed\",\"errno\":2}\\n'",
                "b'{\"type\":\"result\",\"text\":5,\"json\":{\"a\":[]},\"metadata\":3}\\n'"):
        made = create(SHARED)
        list(stream(SHARED, "import gc, socket\nfor s in gc.get_objects():\n"
                            "  if isinstance(s, socket.socket):\n"
                            f"    try: s.sendall({lie})\n"
                            "    except OSError: pass", context_id=made))
        delete(SHARED, made)
    is_well()


@test
def deleting_a_context_kills_what_it_runs():
    made = create(SHARED)
    ended = []
    code = f"import subprocess; print(1); subprocess.run(['sleep', '{own_time(98765)}'])"
    with open_run(SHARED, code, context_id=made) as connection:
        events = events_of(connection)
        next(events)
        wait_until(lambda: find_processes(own_time(98765)), "start of the child")
        equal(delete(SHARED, made).status, 200, "deletion")
        ended = list(events)
    equal((ended[-1]["type"], ended[-1]["ename"]), ("error", "ContextDeleted"), "last event")
    wait_until(lambda: not find_processes(own_time(98765)), "end of the child")


@test
def only_running_code_is_activity():
    with Agent(environment=DEBIAN) as agent:
        for language, code in ((PYTHON, "import time; print(1); time.sleep(60)"),
                               (NODE, "console.log(1); await new Promise(r => setTimeout(r, 60000))")):
            made = create(agent, language=language)
            wait_until(lambda: agent.activity()["running"] == 0, "an idle agent")
            with open_run(agent, code, context_id=made) as connection:
                next(events_of(connection))
                equal(agent.activity()["running"], 1, language)
            wait_until(lambda: agent.activity()["running"] == 0, "idle again")


@test
def descriptors_do_not_leak():
    def count():
        return len(os.listdir(f"/proc/{SHARED.pid}/fd"))
    with context():
        pass
    before = count()
    for _ in range(30):
        with context() as made:
            good(SHARED, "1", context_id=made)
    wait_until(lambda: count() <= before + 2, "descriptors as before")


with Agent(environment=DEBIAN) as AGENT:
    SHARED.stand_for(AGENT)
    main()
