#!/usr/bin/python3
# timeout: 600
"""A task of a user who only set a credential: the real OpenCode works in a sandbox without a network, reaches the
model through the egress broker, and the key is nowhere inside."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent_lab import AgentLab  # noqa: E402
from control_plane import NATIVE  # noqa: E402
from launcher import need_launcher  # noqa: E402
from scripted_model import KEY, Say, Tool, Usage  # noqa: E402
from tap import equal, main, test  # noqa: E402

MODELS = {"anthropic": "anthropic/claude-sonnet-4-5", "openai": "openai/gpt-5"}


def task(lab, key, kind):
    return lab.call("POST", f"{NATIVE}/tasks", {"text": "Write 42 into the file answer, then say done.", "wait": True,
                                                "model": MODELS[kind], "cleanup": "keep"}, key=key, timeout=lab.PATIENCE)


def work(question):
    """Of a turn: a tool, then the answer. OpenCode also asks for a title."""
    if not question.tools:
        return Say("a title")
    if question.has_tool_result:
        return Say("done", Usage(input=20, output=5))
    return Tool("bash", {"command": "echo 42 >answer", "description": "writes"}, usage=Usage(input=10, output=3))


@test
def a_task_needs_no_more_than_a_credential():
    need_launcher()
    with AgentLab("--broker-networks", "127.0.0.1/32") as lab:
        lab.model.script = work
        key = lab.user("worker")
        for kind in MODELS:
            lab.call("PUT", f"{NATIVE}/credentials/{kind}", {"kind": kind, "value": KEY, "base": f"{lab.model.url}/v1"},
                     key=key)
            done = task(lab, key, kind)
            equal((done["state"], done["answer"]), ("done", "done"), f"{done}")
            box = done["sandboxId"]
            equal(lab.execute(box, "cat answer", key=key)["stdout"], "42\n")
            equal({question.key for question in lab.model.questions}, {KEY}, "keys that the model was given")
            found = lab.execute(box, f"env; cat /proc/*/environ; grep -rs {KEY[-12:]} /root /workspace /run /etc /tmp", key=key)
            assert KEY[-12:] not in found["stdout"].replace("grep", ""), found
            usage = lab.call("GET", f"{NATIVE}/usage?by=model", key=key)["usage"]
            assert any(row["tokens"]["input"] >= 30 and row["tokens"]["output"] >= 8 for row in usage), usage
            policy = lab.call("GET", f"{NATIVE}/sandboxes/{box}/egress", key=key)["policy"]
            equal(policy["models"][kind]["credential"], kind, f"{policy}")
            lab.model.questions.clear()


main()
