#!/usr/bin/python3
"""The agents of the image `agent` at work in real sandboxes without a network; the model that says what the test
wants is inside, too.

Needs the image: `burrow image prepare --data DIR agent` once, and BURROW_AGENT_DATA=DIR.

# timeout: 900
"""

import base64
import json
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from control_plane import NATIVE, ControlPlane  # noqa: E402
from harness_demo import HarnessDemo  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import ROOT, wait_until  # noqa: E402
from scripted_model import KEY  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

MODEL = "http://127.0.0.1:4999"
SCRIPT = '''
import sys, time
sys.path.insert(0, "/opt/model")
from scripted_model import *

TOOLS = {"bash": {"command": "echo from the tool >made; cat made", "description": "say"},
         "Bash": {"command": "echo from the tool >made; cat made", "description": "say"},
         "exec_command": {"cmd": "echo from the tool >made; cat made"}}

def script(question):
    if not question.tools:
        return Say("A title")
    if "RUN" in question.text and not question.has_tool_result:
        tool = next(name for name in TOOLS if name in question.tools)
        return Tool(tool, TOOLS[tool], text="let me see")
    return Say("all is done")

with ScriptedModel(script, port=4999):
    time.sleep(3600)
'''


class House:
    """A service whose sandboxes are of the agent image."""

    def __enter__(self):
        need_launcher()
        data = os.environ.get("BURROW_AGENT_DATA")
        if not data or not os.path.exists(f"{data}/images/agent"):
            skip("the image agent: burrow image prepare --data DIR agent, BURROW_AGENT_DATA=DIR")
        shutil.rmtree(f"{data}/daemon", ignore_errors=True)  # of an earlier test: its key was told then
        self.plane = ControlPlane("--stock", "0", data=data).__enter__()
        return self

    def __exit__(self, *rest):
        self.plane.__exit__(*rest)

    def sandbox(self, name):
        box = self.plane.create(name, image="agent", network="none")
        with open(f"{ROOT}/tests/lib/scripted_model.py", "rb") as file:
            model = base64.b64encode(file.read()).decode()
        script = base64.b64encode(SCRIPT.encode()).decode()
        made = self.plane.execute(name, f"mkdir -p /opt/model && echo {model} | base64 -d >/opt/model/scripted_model.py && "
                                        f"echo {script} | base64 -d >/opt/model/run.py && "
                                        "(setsid python3 /opt/model/run.py >/dev/null 2>&1 &)")
        equal(made["exitCode"], 0, made)
        wait_until(lambda: self.plane.execute(name, f"curl -s {MODEL}/v1/models")["exitCode"] == 0, "the model")
        return box["id"]

    def harness(self, sandbox, **place):
        with open(f"{self.plane.run}/serve/records/{sandbox}", encoding="ascii") as file:
            record = dict(line.split() for line in file if line.count(" ") == 1)
        return HarnessDemo(f"unix:{self.plane.run}/serve/agents/{sandbox}.sock", f"/proc/{record['pid']}/ns/net",
                           folder="/workspace", **place)

    def destroy(self, name):
        self.plane.call("DELETE", f"{NATIVE}/sandboxes/{name}")


OPENCODE = {"enabled_providers": ["scripted"], "model": "scripted/one", "small_model": "scripted/one", "provider": {
    "scripted": {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{MODEL}/v1", "apiKey": KEY}, "models": {
        "one": {"name": "One", "tool_call": True, "limit": {"context": 128000, "output": 8192}}}}}}
CODEX = {"model": "scripted-1", "model_provider": "scripted", "model_providers.scripted": {
    "name": "scripted", "base_url": f"{MODEL}/v1", "wire_api": "responses", "experimental_bearer_token": KEY}}
CLAUDE = {"env": {"ANTHROPIC_BASE_URL": MODEL, "ANTHROPIC_API_KEY": KEY}}


def finishes(house, name, harness):
    """One task with a call of a tool."""
    turn = harness.prompt("RUN")
    end = turn.ended()
    equal((end["failure"], end["answer"]), (None, "all is done"))
    equal(house.plane.execute(name, "cat /workspace/made")["stdout"], "from the tool\n")
    return turn


@test
def opencode_works_survives_a_freeze_and_remembers_after_a_hibernation():
    with House() as house:
        sandbox = house.sandbox("oc")
        config = {**OPENCODE, "plugin": []}
        # A plugin in TypeScript: what it needs is in the image (no minute of waiting for a network).
        house.plane.execute("oc", "mkdir -p /workspace/.opencode/plugin && echo 'export const Mark = async () => { await "
                                  "Bun.write(\"/workspace/mark\", \"x\"); return {} }' >/workspace/.opencode/plugin/mark.ts")
        with house.harness(sandbox, config=config) as harness:
            begun = time.monotonic()
            equal(harness.ensure()["failure"], None)
            print(f"# ready after {time.monotonic() - begun:.1f} s, with a plugin")
            turn = finishes(house, "oc", harness)
            equal(house.plane.execute("oc", "cat /workspace/mark")["stdout"], "x")
            house.plane.call("POST", f"{NATIVE}/sandboxes/oc/sleep", {})
            house.plane.call("POST", f"{NATIVE}/sandboxes/oc/wake", {})
            begun = time.monotonic()
            equal(harness.prompt("more", session=turn.session()).ended()["answer"], "all is done")
            print(f"# a turn after a freeze took {time.monotonic() - begun:.2f} s")
            harness.do("quiesce")
            equal(harness.wait("quiesced")["failure"], None)
            equal(harness.prompt("again", session=turn.session()).ended()["answer"], "all is done")
        house.destroy("oc")


@test
def claude_code_and_codex_finish_a_task_with_a_tool():
    with House() as house:
        sandbox = house.sandbox("cc")
        for kind, config in (("claude", CLAUDE), ("codex", CODEX)):
            house.plane.execute("cc", "rm -f /workspace/made")
            with house.harness(sandbox, kind=kind, config=config) as harness:
                begun = time.monotonic()
                turn = finishes(house, "cc", harness)
                print(f"# {kind}: a task with a tool took {time.monotonic() - begun:.1f} s")
                equal(harness.prompt("more", session=turn.session()).ended()["answer"], "all is done")
        equal(json.loads(house.plane.execute("cc", "cat /proc/net/dev | grep -c : | jq -c .")["stdout"]), 1, "only lo")
        house.destroy("cc")


main()
