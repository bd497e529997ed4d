#!/usr/bin/python3
"""Many sessions, many commands: an agent afterwards is as it was before.

# timeout: 600
"""

import concurrent.futures
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import NO_SESSION, Agent, processes  # noqa: E402
from http_raw import connect  # noqa: E402
from program import wait_until  # noqa: E402
from soak import FULL  # noqa: E402
from tap import equal, main, test  # noqa: E402

SESSIONS = 500 if FULL else 100
COMMANDS = 10000 if FULL else 2000
COMMANDS_OF_A_SESSION = 3000 if FULL else 1000
CALLERS = 16  # clients at a time, for what is not about being at the same time
PARALLEL = 200 if FULL else 50
STALL_SECONDS = 3  # after which a worker that takes nothing is replaced
BUSY_CALLERS = 4
GROWTH = 1.05
IDLE_KB = 300
# What one session leaves in the heap's free lists and in code that ran for the first time.
AFTER_SESSION_SLACK_KB = 64
SECONDS = 60


class Client:
    """One connection, kept open from call to call."""

    def __init__(self, agent):
        self.connection = connect(agent.address, SECONDS)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def post(self, path, document):
        body = json.dumps(document).encode()
        self.connection.send(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                             % (path.encode(), len(body), body))
        response = self.connection.response()
        equal(response.status, 200, f"status of {path} {document}: {response.body[:200]}")
        return json.loads(response.body)

    def activity(self):
        self.connection.send(b"GET /burrow/activity HTTP/1.1\r\nHost: a\r\n\r\n")
        return json.loads(self.connection.response().body)

    def wait_until_quiet(self):
        """Nothing of the last commands is left, seen twice: the loop turned in between."""
        def is_quiet():
            return not any(activity[name] for activity in (self.activity(), self.activity())
                           for name in ("running", "background"))
        wait_until(is_quiet, "nothing is running")

    def execute(self, session, **fields):
        return self.post("/api/execute", {"sessionId": session, **fields})


def descendants(agent):
    """Pids of all that descends from the agent, its worker included."""
    parents = {pid: parent for pid, (parent, _) in processes().items()}
    found, fresh = set(), {agent.pid}
    while fresh:
        fresh = {pid for pid, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def smaps_kb(pid, field):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(field + ":"))


def resident_kb(agent):
    """{name: kB} of what stays: the agent and the worker that waits for the next command."""
    workers = wait_until(lambda: [pid for pid, name in agent.children().items()
                                  if name == "burrow-worker"], "there is a worker")
    return {"agent": agent.memory_kb(), "worker": smaps_kb(workers[0], "Anonymous")}


def settle(agent):
    """(descriptors, processes) when only the asking connection is open and nothing runs."""
    wait_until(lambda: len(descendants(agent)) == 1, "only the worker is left")
    return agent.settled_files(), len(descendants(agent))


def by_many(agent, callers, items, call):
    """call(client, item) of all items by so many clients at a time; the results in order."""
    clients = [Client(agent) for _ in range(callers)]
    free = list(clients)

    def one(item):
        client = free.pop()
        try:
            return call(client, item)
        finally:
            free.append(client)

    with concurrent.futures.ThreadPoolExecutor(callers) as pool:
        try:
            return list(pool.map(one, items))
        finally:
            for client in clients:
                client.connection.close()


def grew_too_much(before, after):
    return [f"{name}: {before[name]} kB, then {after[name]} kB" for name in before
            if after[name] > before[name] * GROWTH]


# --- sessions -------------------------------------------------------------------------------------


@test
def hundreds_of_sessions_answer_and_leave_nothing():
    names = [f"s{number}" for number in range(SESSIONS)]
    with Agent() as agent:
        agent.run("true")
        before, started = settle(agent), time.monotonic()
        by_many(agent, CALLERS, names,
                lambda client, name: client.post("/api/session/create", {"id": name}))
        by_many(agent, CALLERS, names,
                lambda client, name: client.execute(name, command=f"X={name}; cd /usr"))
        made = time.monotonic()
        living = processes()
        equal(sum(living[pid][1] == "bash" for pid in descendants(agent)), SESSIONS, "shells")
        answers = by_many(agent, CALLERS, names, lambda client, name: client.execute(
            name, command="echo $X $PWD $BASHPID; (exit 3)"))
        said = [answer["stdout"].split() for answer in answers]
        equal([words[:2] for words in said], [[name, "/usr"] for name in names], "what they know")
        equal({answer["exitCode"] for answer in answers}, {3}, "exit codes")
        equal(len({words[2] for words in said}), SESSIONS, "different shells")
        memory = agent.memory_kb()
        answered = time.monotonic()
        by_many(agent, CALLERS, names,
                lambda client, name: client.post("/api/session/delete", {"sessionId": name}))
        equal(settle(agent), before, "descriptors and processes")
        print(f"# {SESSIONS} sessions: made {made - started:.1f} s, asked {answered - made:.1f} s, "
              f"deleted {time.monotonic() - answered:.1f} s; agent {memory} kB with them, "
              f"{agent.memory_kb()} kB without")
        equal(agent.run("echo on")["stdout"], "on\n", "a command afterwards")


# --- commands -------------------------------------------------------------------------------------


@test
def many_parallel_commands_are_all_right():
    with Agent() as agent:
        agent.run("true")
        before, started = settle(agent), time.monotonic()
        answers = by_many(agent, PARALLEL, range(PARALLEL), lambda client, number: client.execute(
            NO_SESSION, command=f"echo out {number}; echo err {number} >&2; exit {number}"))
        for number, answer in enumerate(answers):
            equal((answer["stdout"], answer["stderr"], answer["exitCode"]),
                  (f"out {number}\n", f"err {number}\n", number), f"command {number}")
        print(f"# {PARALLEL} parallel commands: {time.monotonic() - started:.1f} s")
        equal(settle(agent), before, "descriptors and processes")


def endure(session, fields, first, last):
    """So many commands one after the other: the last of them cost no more than the first ones."""
    with Agent() as agent:
        with Client(agent) as client:
            def some(count):
                started = time.monotonic()
                for _ in range(count):
                    answer = client.execute(session, **fields)
                    equal((answer["exitCode"], answer["stdout"], answer["stderr"]), (0, "", ""),
                          "answer")
                took = time.monotonic() - started
                client.wait_until_quiet()
                return took / count * 1e6
            early = some(first)
            files, memory = agent.open_files(), resident_kb(agent)
            late = some(last - first)
            after = resident_kb(agent)
            print(f"# {last} commands: {early:.0f} us each, later {late:.0f} us; "
                  f"kB after {first} {memory}, after {last} {after}; {files} descriptors")
            equal(agent.open_files(), files, "descriptors")
            equal("the worker ended" in agent.log(), False, "a worker had to be replaced")
            equal(grew_too_much(memory, after), [], "memory")


@test
def thousands_of_commands_leave_no_trace():
    endure(NO_SESSION, {"argv": ["/bin/true"]}, COMMANDS // 2, COMMANDS)


@test
def thousands_of_commands_of_a_session_leave_no_trace():
    endure("one", {"command": "/bin/true"}, COMMANDS_OF_A_SESSION // 2, COMMANDS_OF_A_SESSION)


@test
def a_worker_that_always_has_something_to_do_is_not_taken_for_a_stopped_one():
    with Agent() as agent:
        end = time.monotonic() + 2 * STALL_SECONDS + 1

        def until_the_end(client, _):
            count = 0
            while time.monotonic() < end:
                equal(client.execute(NO_SESSION, argv=["/bin/true"])["exitCode"], 0, "exit code")
                count += 1
            return count
        count = sum(by_many(agent, BUSY_CALLERS, range(BUSY_CALLERS), until_the_end))
        print(f"# {count} commands of {BUSY_CALLERS} clients")
        equal("the worker ended" in agent.log(), False, "a worker had to be replaced")


# --- idle -----------------------------------------------------------------------------------------


@test
def an_idle_agent_has_at_most_300_kb_of_its_own():
    with Agent() as agent:
        idle, anonymous = smaps_kb(agent.pid, "Private_Dirty"), agent.anonymous_kb()
        with Client(agent) as client:
            equal(client.execute("one", command="echo hi")["stdout"], "hi", "a command")
            client.post("/api/session/delete", {"sessionId": "one"})
        settle(agent)
        after = smaps_kb(agent.pid, "Private_Dirty")
        print(f"# private dirty: {idle} kB idle, {anonymous} kB with what its worker shares, "
              f"{after} kB after a session")
        assert anonymous <= IDLE_KB, f"{anonymous} kB"
        assert after <= idle + AFTER_SESSION_SLACK_KB, f"{after} kB after a session"


main()
