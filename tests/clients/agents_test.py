#!/usr/bin/python3
"""OpenCode, Claude Code and Codex as published, driven by the harness on a real burrow-agent, with a model
that says what the test wants. There is no network but loopback.

# timeout: 900
"""

import json
import os
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from harness_demo import HarnessDemo, new_id  # noqa: E402
from outpost import enter  # noqa: E402
from program import ROOT  # noqa: E402
from scripted_model import KEY, Fail, Say, ScriptedModel, Tool, Wait  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

enter()

PACKAGES = f"{ROOT}/packaging/recipes/agent/node_modules"
PROGRAMS = {"opencode": "opencode-linux-x64/bin/opencode",
            "claude": "@anthropic-ai/claude-code-linux-x64/claude",
            "codex": "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"}
TOOLS = {"bash": {"command": "echo from the tool", "description": "say"},
         "Bash": {"command": "echo from the tool", "description": "say"},
         "exec_command": {"cmd": "echo from the tool"}}


def script(question):
    """What the model says, by the last word of the user; a title when no tools are offered."""
    if not question.tools:
        return Say("A title")
    words = question.text
    if "RUN" in words and not question.has_tool_result:
        tool = next(name for name in TOOLS if name in question.tools)
        return Tool(tool, TOOLS[tool], text="let me see")
    if "FAIL" in words:
        return Fail(400, "scripted refusal")
    if "HOLD" in words:
        return Wait(question_gate, Say("held for long"))
    return Say("all is done")


question_gate = threading.Event()


class Room:
    """A home with the programs in its PATH, an agent in it and a model beside it."""

    def __enter__(self):
        if os.geteuid() != 0:
            skip("root, for a network of its own")
        if not os.path.exists(f"{PACKAGES}/{PROGRAMS['opencode']}"):
            skip("the agents from npm: packaging/install-clients")
        question_gate.clear()
        self.room = tempfile.TemporaryDirectory(prefix="burrow-agents-", ignore_cleanup_errors=True)
        self.work, programs = f"{self.room.name}/work", f"{self.room.name}/bin"
        os.makedirs(self.work)
        os.makedirs(programs)
        for name, path in PROGRAMS.items():
            os.symlink(f"{PACKAGES}/{path}", f"{programs}/{name}")
        self.model = ScriptedModel(script)
        self.model.__enter__()
        self.agent = Agent(environment={"PATH": f"{programs}:{os.environ['PATH']}", "HOME": self.room.name})
        self.agent.__enter__()
        return self

    def __exit__(self, *rest):
        question_gate.set()
        self.agent.__exit__(*rest)
        self.model.__exit__(*rest)
        self.room.cleanup()

    def opencode(self, **place):
        provider = {"npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{self.model.url}/v1", "apiKey": KEY},
                    "models": {"one": {"name": "One", "tool_call": True, "limit": {"context": 128000, "output": 8192}}}}
        config = {"enabled_providers": ["scripted"], "model": "scripted/one", "small_model": "scripted/one",
                  "provider": {"scripted": provider}}
        return HarnessDemo(self.agent.address, folder=self.work, config=config, **place)

    def claude(self):
        env = {"ANTHROPIC_BASE_URL": self.model.url, "ANTHROPIC_API_KEY": KEY}
        return HarnessDemo(self.agent.address, kind="claude", folder=self.work, config={"env": env})

    def codex(self):
        provider = {"name": "scripted", "base_url": f"{self.model.url}/v1", "wire_api": "responses",
                    "experimental_bearer_token": KEY}
        config = {"model": "scripted-1", "model_provider": "scripted", "model_providers.scripted": provider}
        return HarnessDemo(self.agent.address, kind="codex", folder=self.work, config=config)

    def asked(self, word):
        """How often the model was asked by a turn with that word, tools offered."""
        return len([question for question in self.model.questions if question.tools and word in question.text])


def tool_of(turn):
    """The last state of the tool that was called."""
    return [line["body"]["state"] for line in turn.all("part") if line["body"]["type"] == "tool"][-1]


@test
def opencode_asks_for_permission_runs_a_tool_and_answers():
    with Room() as room, room.opencode(permission="ask") as harness:
        ready = harness.ensure()
        equal((ready["failure"], ready["starts"]), (None, 1))
        turn = harness.prompt("RUN", title="first")
        equal(turn.permit()["body"]["permission"], "bash")
        end = turn.ended()
        equal((end["failure"], end["answer"], end["cancelled"]), (None, "all is done", False))
        equal((end["provider"], end["model"]), ("scripted", "one"))
        equal((tool_of(turn)["status"], tool_of(turn)["output"]), ("completed", "from the tool\n"))
        equal((end["usage"]["input"], end["usage"]["output"]), (22, 14), "two steps of 11 and 7")
        equal(sorted(turn.text().values()), ["all is done", "let me see"])


@test
def opencode_fails_is_cancelled_and_goes_on_in_one_conversation():
    with Room() as room, room.opencode() as harness:
        turn = harness.prompt("FAIL")
        equal(turn.ended()["failure"]["message"], "APIError: scripted refusal")
        session = turn.session()
        held = harness.prompt("HOLD", session=session)
        harness.wait_for(lambda: room.asked("HOLD") or None, "the model is asked")
        held.do("cancel")
        equal(held.ended()["cancelled"], True)
        question_gate.set()
        equal(harness.prompt("more", session=session).ended()["answer"], "all is done")


@test
def opencode_is_found_again_after_a_restart_and_remembers_after_a_quiesce():
    with Room() as room:
        with room.opencode() as harness:
            turn = harness.prompt("HOLD")
            session = turn.session()
            harness.wait_for(lambda: room.asked("HOLD") or None, "the model is asked")
            harness.kill()
        with room.opencode() as harness:
            found = harness.find(turn.name, session)
            found.session()
            question_gate.set()
            equal(found.ended()["answer"], "held for long")
            equal(room.asked("HOLD"), 1)
            assert harness.find(new_id(), session).ended()["failure"]["message"].startswith("agent_lost")
            harness.do("quiesce")
            equal(harness.wait("quiesced")["failure"], None)
            after = harness.prompt("more", session=session)
            equal(after.ended()["answer"], "all is done")
            equal(room.model.questions[-1].texts[0] != "more", True, "what was said before is known")


@test
def opencode_takes_a_plugin_in_typescript_without_a_network():
    with Room() as room, room.opencode() as harness:
        os.makedirs(f"{room.work}/.opencode/plugin")
        os.symlink(PACKAGES, f"{room.work}/.opencode/node_modules")
        with open(f"{room.work}/.opencode/plugin/mark.ts", "w", encoding="utf-8") as file:
            file.write('import { writeFileSync } from "fs"\n'
                       f'export const Mark = async () => {{ writeFileSync("{room.work}/mark", "x"); return {{}} }}\n')
        equal(harness.prompt("hello").ended()["answer"], "all is done")
        assert os.path.exists(f"{room.work}/mark")


@test
def claude_code_runs_a_tool_answers_and_goes_on():
    with Room() as room, room.claude() as harness:
        turn = harness.prompt("RUN it's $HOME")
        end = turn.ended()
        equal((end["failure"], end["answer"]), (None, "all is done"))
        equal((tool_of(turn)["status"], tool_of(turn)["output"]), ("completed", "from the tool"))
        equal((end["usage"]["input"], end["usage"]["output"], end["usage"]["costKnown"]), (22, 14, True))
        assert "it's $HOME" in json.dumps(room.model.questions[0].body)
        again = harness.prompt("more", session=turn.session())
        equal((again.ended()["answer"], again.session()), ("all is done", turn.session()))
        assert "it's $HOME" in json.dumps(room.model.questions[-1].body), "what was said before is known"


@test
def codex_runs_a_tool_answers_and_goes_on():
    with Room() as room, room.codex() as harness:
        turn = harness.prompt("RUN it's $HOME")
        end = turn.ended()
        equal((end["failure"], end["answer"]), (None, "all is done"))
        equal((tool_of(turn)["status"], tool_of(turn)["output"]), ("completed", "from the tool\n"))
        equal((end["usage"]["input"], end["usage"]["output"]), (22, 14))
        again = harness.prompt("more", session=turn.session())
        equal((again.ended()["answer"], again.session()), ("all is done", turn.session()))
        assert "it's $HOME" in json.dumps(room.model.questions[-1].body), "what was said before is known"


@test
def what_a_model_refuses_fails_their_turns_too():
    with Room() as room:
        with room.claude() as harness:
            assert "scripted refusal" in harness.prompt("FAIL").ended()["failure"]["message"]
        with room.codex() as harness:
            assert "scripted refusal" in harness.prompt("FAIL").ended()["failure"]["message"]


main()
