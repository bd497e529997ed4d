"""Asking an agent for commands in sessions, for the tests of those.

    session = fresh()
    out(session, "cd /usr; pwd")            # of a command that must succeed
    fails(session, "exit 1")                # (status, code, message, context)
    answer = Later(run, session, "sleep 1") # beside others
    answer.get()["exitCode"]
"""

import json
import threading

from shared import SHARED
from tap import equal

_numbers = iter(range(1000000))


def fresh():
    """An id that no test had."""
    return f"s{next(_numbers)}"


def run(session, command, agent=None, **fields):
    """The answer of a command that must run."""
    return (agent or SHARED).run(command, sessionId=session, **fields)


def out(session, command, agent=None, **fields):
    """stdout of a command that must succeed."""
    result = run(session, command, agent, **fields)
    equal((result["exitCode"], result["stderr"]), (0, ""), command)
    return result["stdout"]


def fails(session, command, agent=None, path="/api/execute", **fields):
    """(status, code, message, context) of a command that is answered with an error."""
    response = (agent or SHARED).post(path, {"command": command, "sessionId": session, **fields})
    error = json.loads(response.body)
    assert response.status != 200, error
    return response.status, error["code"], error["message"], error["context"]


def delete(session, agent=None):
    return (agent or SHARED).post("/api/session/delete", {"sessionId": session})


def create(session, agent=None, **fields):
    return (agent or SHARED).post("/api/session/create", {"id": session, **fields})


def is_terminated(session, answer, code):
    equal(answer[:2], (410, "SESSION_TERMINATED"), "error")
    equal(answer[2], f"Session '{session}' shell exited (exit code: {code})", "message")
    equal(answer[3], {"sessionId": session, "exitCode": code}, "context")


class Later(threading.Thread):
    """A call whose answer is asked for later."""

    def __init__(self, function, *arguments, **named):
        super().__init__(daemon=True)
        self.call = lambda: function(*arguments, **named)
        self.result = self.error = None
        self.start()

    def run(self):
        try:
            self.result = self.call()
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def get(self):
        self.join(60)
        assert not self.is_alive(), "no answer"
        if self.error:
            raise self.error
        return self.result
