#!/usr/bin/python3
"""Agent servers and turns of the harness, against an OpenCode that misbehaves as it is told
(tests/lib/fake_opencode.py), on a real burrow-agent.

# timeout: 600
"""

import json
import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from harness_demo import HarnessDemo, new_id  # noqa: E402
from outpost import enter  # noqa: E402
from program import ROOT, wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

enter()  # the port is OpenCode's own, so the network is ours


class Place:
    """An agent, a folder to work in, and a PATH with the fake in it."""

    def __init__(self, **fake):
        self.fake = fake

    def __enter__(self):
        if os.geteuid() != 0:
            skip("root, for a network of its own")
        self.room = tempfile.TemporaryDirectory(prefix="burrow-harness-")
        self.folder = f"{self.room.name}/work"
        programs = f"{self.room.name}/bin"
        os.makedirs(self.folder)
        os.makedirs(programs)
        os.symlink(f"{ROOT}/tests/lib/fake_opencode.py", f"{programs}/opencode")
        path = f"{programs}:{os.environ['PATH']}"
        self.agent = Agent(environment={"PATH": path, "HOME": self.room.name})
        self.agent.__enter__()
        return self

    def __exit__(self, *rest):
        self.agent.__exit__(*rest)
        self.room.cleanup()

    def harness(self, **place):
        place.setdefault("config", {"fake": self.fake})
        return HarnessDemo(self.agent.address, folder=self.folder, **place)

    def lines(self, name):
        try:
            with open(f"{self.folder}/{name}", encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []

    def prompts(self):
        return [json.loads(line)["parts"][0]["text"] for line in self.lines("prompts")]

    def go(self):
        with open(f"{self.folder}/go", "w", encoding="ascii"):
            pass


def kinds(turn):
    return [line["tells"] for line in turn.told]


@test
def a_turn_tells_what_the_agent_does_and_ends_with_its_answer():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("say:hello tool:bash say:world", title="a title")
        end = turn.ended()
        equal(end["failure"], None)
        equal(end["answer"], "helloworld")
        equal(end["cancelled"], False)
        equal([part["type"] for part in end["parts"]], ["text", "tool", "text"])
        equal((end["provider"], end["model"], end["info"]["role"]), ("fake", "fake-1", "assistant"))
        equal(end["usage"], {"input": 5, "output": 7, "reasoning": 1, "cacheRead": 2, "cacheWrite": 3,
                             "costMicros": 250000, "costKnown": True})
        equal(sorted(turn.text().values()), ["hello", "world"])
        equal(kinds(turn)[0], "began")
        equal(kinds(turn)[-1], "ended")
        states = [line["body"]["state"]["status"] for line in turn.all("part") if line["body"]["type"] == "tool"]
        equal(states, ["running", "completed"])
        parts = [json.dumps(line["body"], sort_keys=True) for line in turn.all("part")]
        equal(len(parts), len(set(parts)), "parts, each told once")


@test
def the_next_turn_goes_on_in_the_same_conversation():
    with Place() as place, place.harness() as harness:
        first = harness.prompt("say:one")
        session = first.session()
        first.ended()
        second = harness.prompt("say:two", session=session)
        equal(second.session(), session)
        equal(second.ended()["answer"], "two")
        equal(place.prompts(), ["say:one", "say:two"])


@test
def one_start_is_shared_by_all_who_want_the_server():
    with Place() as place, place.harness() as harness:
        for _ in range(5):
            harness.do("ensure")
        turns = [harness.prompt(f"say:{number}") for number in range(5)]
        for _ in range(5):
            equal(harness.wait("ready")["failure"], None)
        equal([turn.ended()["answer"] for turn in turns], ["0", "1", "2", "3", "4"])
        equal(len("".join(place.lines("starts"))), 1, "starts")
        equal((harness.look()["state"], harness.look()["version"]), ("ready", "1.18.0"))


@test
def the_first_connection_that_is_never_answered_is_not_waited_for():
    with Place(lose_first=True) as place, place.harness() as harness:
        equal(harness.ensure()["failure"], None)
        equal(harness.prompt("say:hi").ended()["answer"], "hi")


@test
def an_agent_of_1_0_speaks_through_the_same_turn():
    with Place(generation="1.0") as place, place.harness() as harness:
        turn = harness.prompt("say:hello ask:bash")
        asked = turn.permit("always")
        equal((asked["body"]["permission"], asked["body"]["patterns"]), ("bash", ["bash *"]))
        equal(turn.wait("answered")["reply"], "always")
        equal(turn.ended()["answer"], "helloalways")
        equal(sorted(turn.text().values()), ["always", "hello"])


@test
def a_permission_is_asked_for_and_answered():
    with Place() as place, place.harness() as harness:
        for reply, answer in (("once", "once"), ("reject", None)):
            turn = harness.prompt("ask:bash")
            equal(turn.permit(reply, message="because")["body"]["permission"], "bash")
            end = turn.ended()
            if answer:
                equal(end["answer"], answer)
            else:
                equal(end["failure"]["message"], "APIError: the user rejected it")


@test
def what_a_sub_agent_asks_for_reaches_its_turn():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("child:edit")
        turn.permit()
        equal(turn.ended()["answer"], "once")


@test
def a_question_is_answered_or_refused():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("question")
        asked = turn.wait("question")
        turn.do("question", request=asked["id"], answers=[["blue"]])
        equal(harness.wait("told")["failure"], None)
        equal(turn.ended()["answer"], '[["blue"]]')
        turn = harness.prompt("question")
        turn.do("question", request=turn.wait("question")["id"])
        equal(turn.ended()["answer"], '"rejected"')


@test
def an_answer_to_what_nobody_asked_is_refused():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("wait")
        turn.session()
        turn.do("permission", request="per_nothing", reply="once")
        equal(harness.wait("permitted")["failure"]["code"], "not_found")
        place.go()
        turn.ended()


@test
def a_cancelled_turn_ends_as_cancelled_and_the_next_one_works():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("say:begun wait say:never")
        turn.wait("delta")
        turn.do("cancel")
        end = turn.ended()
        equal((end["failure"], end["cancelled"], end["answer"]), (None, True, "begun"))
        after = harness.prompt("say:next", session=turn.session())
        equal((after.ended()["answer"], after.told[-1]["cancelled"]), ("next", False))


@test
def a_cancel_works_before_the_server_is_ready_and_while_a_permission_waits():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("say:never")
        turn.do("cancel")
        end = turn.ended()
        equal((end["failure"], end["cancelled"]), (None, True))
        turn = harness.prompt("ask:bash")
        turn.wait("permission")
        turn.do("cancel")
        equal(turn.ended()["cancelled"], True)
        assert "say:never" not in place.prompts()


@test
def an_agent_that_is_deaf_to_aborts_keeps_nobody():
    with Place(deaf_abort=True) as place, place.harness() as harness:
        turn = harness.prompt("wait")
        turn.session()
        turn.do("cancel")
        equal(turn.ended()["cancelled"], True)


@test
def errors_of_the_model_are_the_turns():
    with Place() as place, place.harness() as harness:
        end = harness.prompt("say:half fail:overloaded").ended()
        equal(end["failure"], {"code": "upstream_failed", "message": "APIError: overloaded"})
        equal(end["answer"], "half")


@test
def a_server_that_crashes_takes_its_turn_along_and_is_started_again():
    with Place() as place, place.harness() as harness:
        end = harness.prompt("say:half crash").ended()
        equal(end["failure"]["code"], "upstream_failed")
        assert end["failure"]["message"].startswith("agent_lost"), end
        equal(harness.prompt("say:again").ended()["answer"], "again")
        equal(harness.look()["starts"], 2)


@test
def a_cut_stream_of_events_is_taken_up_again_and_nothing_is_missed():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("say:one cut quiet:two say:three")
        end = turn.ended()
        equal(end["answer"], "onetwothree")
        told = [line["body"]["text"] for line in turn.all("part") if line["body"]["type"] == "text"]
        equal(sorted(told), ["one", "three", "two"])


@test
def a_permission_that_was_asked_for_while_nobody_listened_is_told():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("cut ask:bash")
        turn.permit()
        equal(turn.ended()["answer"], "once")


@test
def parts_are_cut_to_a_size_and_huge_events_end_only_the_stream():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("big huge say:end")
        equal(turn.ended()["answer"], "end")
        outputs = [line["body"] for line in turn.all("part") if line["body"]["type"] == "tool"]
        equal(len(outputs), 2)
        assert all(len(body["state"]["output"]) <= 64 * 1024 and body["truncated"] for body in outputs)


@test
def answers_that_are_compressed_unasked_fail_the_turn():
    with Place(gzip=True) as place, place.harness(startMs=2000) as harness:
        ready = harness.ensure()
        equal(ready["failure"]["code"], "upstream_timeout")


@test
def a_silent_server_is_given_up_in_time_and_killed():
    with Place(mute=True) as place, place.harness(startMs=2000) as harness:
        ready = harness.ensure()
        equal((ready["failure"]["code"], ready["state"]), ("upstream_timeout", "failed"))
        processes = json.loads(place.agent.get("/api/process/list").body)["processes"]
        equal([process["status"] for process in processes], ["killed"])


@test
def a_server_that_ends_is_started_again_after_a_pause():
    with Place(exits=2) as place, place.harness() as harness:
        equal(harness.ensure()["failure"], None)
        equal(harness.look()["starts"], 3)


@test
def without_the_program_it_says_what_to_do():
    with Place() as place, place.harness() as harness:
        os.unlink(f"{place.room.name}/bin/opencode")
        ready = harness.ensure()
        assert "agent image" in ready["failure"]["message"], ready
        assert "opencode" in ready["lastWords"], ready


@test
def a_turn_is_found_again_after_a_restart_and_never_prompted_twice():
    with Place() as place:
        with place.harness() as harness:
            turn = harness.prompt("say:one wait say:two")
            session = turn.session()
            turn.wait("delta")
            harness.kill()
        with place.harness() as harness:
            found = harness.find(turn.name, session)
            found.session()
            place.go()
            end = found.ended()
            equal((end["failure"], end["answer"]), (None, "onetwo"))
            equal(place.prompts(), ["say:one wait say:two"])
        with place.harness() as harness:
            equal(harness.find(turn.name, session).ended()["answer"], "onetwo")
            lost = harness.find(new_id(), session).ended()
            assert lost["failure"]["message"].startswith("agent_lost"), lost
            equal(len(place.prompts()), 1)


@test
def a_permission_that_waits_is_told_again_after_a_restart():
    with Place() as place:
        with place.harness() as harness:
            turn = harness.prompt("ask:bash")
            session = turn.session()
            turn.wait("permission")
            harness.kill()
        with place.harness() as harness:
            found = harness.find(turn.name, session)
            found.permit()
            equal(found.ended()["answer"], "once")


@test
def a_turn_whose_server_is_gone_is_lost_and_nothing_is_started_for_it():
    with Place() as place:
        with place.harness() as harness:
            turn = harness.prompt("wait")
            session = turn.session()
            wait_until(place.prompts, "the prompt")
            harness.kill()
        os.kill(json.loads(place.agent.get("/api/process/list").body)["processes"][0]["pid"], signal.SIGKILL)
        wait_until(lambda: b'"running"' not in place.agent.get("/api/process/list").body, "it is dead")
        with place.harness() as harness:
            end = harness.find(turn.name, session).ended()
            assert end["failure"]["message"].startswith("agent_lost"), end
            equal(harness.look()["state"], "absent")
            equal(len("".join(place.lines("starts"))), 1)


@test
def the_config_is_the_callers_with_ours_on_top():
    with Place() as place:
        config = {"fake": {}, "autoupdate": True, "share": "auto", "theme": "dark",
                  "provider": {"anthropic": {"options": {"apiKey": "sk-theirs", "timeout": 7}}}}
        with place.harness(config=config, permission="ask", models={"anthropic": True, "google": "gemini"}) as harness:
            harness.ensure()
            answer = json.loads(place.agent.get("/api/process/list").body)["processes"][0]
            with open(f"/proc/{answer['pid']}/environ", "rb") as file:
                environment = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
            told = json.loads(environment[b"OPENCODE_CONFIG_CONTENT"])
        equal(told["theme"], "dark")
        equal((told["autoupdate"], told["share"], told["permission"]), (False, "disabled", {"*": "ask"}))
        equal(told["provider"]["anthropic"]["options"],
              {"apiKey": "burrow-anthropic", "timeout": 7, "baseURL": "http://127.66.0.1:8790/anthropic/v1"})
        equal(told["provider"]["google"]["options"]["baseURL"], "http://127.66.0.1:8790/gemini/v1beta")
        equal(sorted(told["enabled_providers"]), ["anthropic", "google"])


@test
def quiesced_it_ends_and_the_next_turn_starts_it_again():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("say:one")
        turn.ended()
        harness.do("quiesce")
        equal(harness.wait("quiesced")["failure"], None)
        equal(harness.look()["state"], "absent")
        equal(harness.prompt("say:two").ended()["answer"], "two")


@test
def a_forgotten_sandbox_ends_its_turns_as_lost():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("wait")
        turn.session()
        harness.do("forget")
        end = turn.ended()
        assert end["failure"]["message"].startswith("agent_lost"), end


@test
def a_turn_that_is_left_tells_nothing_and_goes_on():
    with Place() as place, place.harness() as harness:
        turn = harness.prompt("say:one wait say:two")
        turn.wait("delta")
        turn.do("leave")
        place.go()
        other = harness.prompt("say:other")
        other.ended()
        equal(turn.all("ended"), [])
        found = harness.find(turn.name, turn.session())
        equal(found.ended()["answer"], "onetwo")


# --- programs that print lines -----------------------------------------------------------------

PROGRAM = """
echo '{"session":"talk-1"}'
printf '%s\n' '{"delta":"wor","part":"p"}' '{"delta":"king","part":"p"}'
echo '{"type":"text","id":"p","text":"working"}'
echo '{"type":"tool","id":"t","tool":"bash","state":{"status":"completed","input":{},"output":"hi"}}'
echo "the prompt was: $BURROW_PROMPT of $BURROW_SESSION"
echo '{"usage":{"input":3,"output":4},"cost":0.001}'
echo x >>starts
while [ -e hold ]; do sleep 0.05; done
"""


def runs(place, command=PROGRAM, **fields):
    return place.harness(kind="command", command=command, config={}, **fields)


@test
def a_program_that_prints_lines_is_an_agent():
    with Place() as place, runs(place) as harness:
        equal(harness.ensure()["state"], "ready")
        turn = harness.prompt("it's \"quoted\" $HOME")
        end = turn.ended()
        equal((end["failure"], turn.session()), (None, "talk-1"))
        equal(end["answer"], "the prompt was: it's \"quoted\" $HOME of ")
        equal(turn.text(), {"p": "working"})
        equal([line["id"] for line in turn.all("part")][:2], ["p", "t"])
        equal((end["usage"]["input"], end["usage"]["costMicros"], end["usage"]["costKnown"]), (3, 1000, True))
        end = harness.prompt("again", session="talk-1").ended()
        assert end["answer"].endswith("again of talk-1"), end


@test
def a_program_that_fails_says_why():
    with Place() as place, runs(place, "echo no way >&2; exit 5") as harness:
        equal(harness.prompt("x").ended()["failure"]["message"], "the agent ended with exit code 5: no way\n")
    with Place() as place, runs(place, "burrow-no-such-program") as harness:
        assert "no such program" in harness.prompt("x").ended()["failure"]["message"]
    with Place() as place, runs(place, "echo '{\"type\":\"error\",\"message\":\"too dear\"}'") as harness:
        equal(harness.prompt("x").ended()["failure"]["message"], "error: too dear")
    with Place() as place, place.harness(kind="nonsense", config={}) as harness:
        equal(harness.prompt("x").ended()["failure"]["code"], "invalid_request")


@test
def a_run_is_cancelled_and_leaves_no_process():
    with Place() as place, runs(place) as harness:
        with open(f"{place.folder}/hold", "w", encoding="ascii"):
            pass
        turn = harness.prompt("x")
        turn.wait("part")
        turn.do("cancel")
        end = turn.ended()
        equal((end["failure"], end["cancelled"]), (None, True))
        early = harness.prompt("y")
        early.do("cancel")
        equal(early.ended()["cancelled"], True)
        processes = json.loads(place.agent.get("/api/process/list").body)["processes"]
        equal([process["status"] for process in processes if process["status"] == "running"], [])


@test
def a_run_is_found_again_and_not_started_twice():
    with Place() as place:
        with open(f"{place.folder}/hold", "w", encoding="ascii"):
            pass
        with runs(place) as harness:
            turn = harness.prompt("x")
            turn.wait("part")
            harness.kill()
        with runs(place) as harness:
            found = harness.find(turn.name, "talk-1")
            found.wait("part")
            os.unlink(f"{place.folder}/hold")
            equal(found.ended()["failure"], None)
            equal(harness.find(turn.name, "talk-1").ended()["usage"]["output"], 4)
            assert harness.find(new_id(), None).ended()["failure"]["message"].startswith("agent_lost")
            equal(place.lines("starts"), ["x"])


@test
def endless_lines_and_output_end_no_turn():
    command = "head -c 6000000 /dev/zero | tr '\\0' x; echo; yes '{\"type\":\"step\"}' | head -n 60000; echo the end"
    with Place() as place, runs(place, command) as harness:
        end = harness.prompt("x").ended()
        equal(end["failure"], None)
        assert end["answer"].endswith("the end"), end["answer"][-200:]


main()
