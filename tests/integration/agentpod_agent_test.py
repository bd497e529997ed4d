#!/usr/bin/python3
"""AgentPod's API with the real OpenCode in sandboxes and a scripted model behind it: its guide's lines word for
word, messages, the proxy to OpenCode, tasks, streams, teams and workflows.

# timeout: 900
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent_lab import MODEL, AgentLab  # noqa: E402
from control_plane import NATIVE  # noqa: E402
from launcher import need_launcher  # noqa: E402
from program import ROOT, wait_until  # noqa: E402
from scripted_model import Fail, Say, Tool, Wait  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

# The guide's, word for word.
SEND_MESSAGE = """curl -X POST https://agentpod-sandbox.mail-88a.workers.dev/sandbox/test-1/message \\
  -H "Content-Type: application/json" \\
  -d '{"message":"What is 2+2?"}'"""
SIGN_IN = """curl -X POST http://api.localhost/api/auth/sign-in/email \\
  -H "Content-Type: application/json" \\
  -c /tmp/cookies.txt \\
  -d '{"email":"user@example.com","password":"password"}'"""
RUN_TASK = """curl -X POST http://api.localhost/api/v2/agents/task \\
  -H "Content-Type: application/json" \\
  -b /tmp/cookies.txt \\
  -d '{"message":"What is 2+2?","provider":"cloudflare"}'"""

AGENTS = "/api/v2/agents"
_labs = []


def lab():
    """One for all tests."""
    need_launcher()
    if not _labs:
        _labs.append(AgentLab("--sign-up", "open").__enter__())
    return _labs[0]


def ask(method, path, body=None, **options):
    answer = lab_ask(method, path, body, **options)
    return answer.status, json.loads(answer.body)


def lab_ask(method, path, body=None, **options):
    options.setdefault("timeout", AgentLab.PATIENCE)
    return _labs[0].ask(method, path, body, **options)


def sandbox(name):
    lab()
    status, answer = ask("POST", "/sandbox", {"id": name, "userId": "user-1"})
    equal(status, 200, f"{answer}")
    assert "agentError" not in answer, answer
    return answer


def shell(line, room):
    line = line.replace("https://agentpod-sandbox.mail-88a.workers.dev", f"http://{lab().address}")
    line = line.replace("http://api.localhost", f"http://{lab().address}").replace("/tmp/cookies.txt", f"{room}/cookies")
    if "cookies" not in line:
        line = line.replace("curl", f"curl -H 'authorization: Bearer {lab().key}'")
    done = subprocess.run(["sh", "-c", line.replace("curl", "curl -s")], stdout=subprocess.PIPE, check=True,
                          timeout=AgentLab.PATIENCE)
    return json.loads(done.stdout)


def answer_with(script):
    """What the model says to questions of turns; OpenCode also asks it for a title."""
    lab().model.script = lambda question: script(question) if question.tools else Say("a title")


# --- the guide --------------------------------------------------------------------------------


@test
def the_guide_s_message_and_task_work_word_for_word():
    answer = sandbox("test-1")
    equal(answer, {"success": True, "status": "running", "serverPort": 4096, "sandboxId": "test-1",
                   "opencodeUrl": "/sandbox/test-1/opencode", "filesWritten": 0}, "create")
    answer_with(lambda question: Say("4"))
    with tempfile.TemporaryDirectory() as room:
        answer = shell(SEND_MESSAGE, room)
        equal(answer["response"], "4", "response")
        assert answer["sessionId"].startswith("ses_"), answer
        assert [part["text"] for part in answer["parts"] if part["type"] == "text"] == ["4"], answer
        equal(sorted(answer["sync"]), ["syncedFiles", "totalSize"], "sync")
        lab().call("POST", "/api/auth/sign-up/email",
                   {"name": "user", "email": "user@example.com", "password": "password"}, key="")
        shell(SIGN_IN, room)
        answer = shell(RUN_TASK, room)
    equal(answer["response"], "4", f"{answer}")
    equal(sorted(answer), ["parts", "response", "sandboxId", "sessionId", "taskId"], "members")
    equal(answer["sandboxId"], "task-" + answer["taskId"], "sandboxId")
    equal(len(answer["taskId"]), 12, "taskId")


# --- messages ---------------------------------------------------------------------------------


@test
def a_message_uses_tools_and_its_session_goes_on():
    sandbox("talk")
    answer_with(lambda question: Say("done") if question.has_tool_result else
                Tool("bash", {"command": "echo made >made.txt", "description": "make a file"}))
    status, first = ask("POST", "/sandbox/talk/message", {"message": "make it", "nonsense": [1], "model": MODEL})
    equal((status, first["response"]), (200, "done"), f"{first}")
    assert first["sync"]["syncedFiles"] >= 1, first
    equal(lab().execute("talk", "cat /home/user/workspace/made.txt")["stdout"], "made\n", "the file")
    answer_with(lambda question: Say(f"{len(question.texts)} texts"))
    status, second = ask("POST", "/sandbox/talk/message", {"message": "and?", "sessionId": first["sessionId"]})
    equal((status, second["sessionId"]), (200, first["sessionId"]), f"{second}")
    equal(second["info"]["sessionID"], first["sessionId"], "info")
    events = lab().call("GET", f"{NATIVE}/sandboxes/talk/events?type=session.&limit=1000")["events"]
    equal([event["type"] for event in events], ["session.message"] * 2, "events")
    equal(events[-1]["data"]["sessionId"], first["sessionId"], "event")


@test
def agentpod_s_way_to_a_session_asks_no_model():
    sandbox("talk")
    before = len(lab().model.questions)
    status, made = ask("POST", "/sandbox/talk/message", {"message": "Initialize session", "title": "Task abc"})
    equal((status, made["response"], made["parts"]), (200, "", []), f"{made}")
    equal(len(lab().model.questions), before, "questions to the model")
    answer_with(lambda question: Say("here"))
    status, answer = ask("POST", "/sandbox/talk/message", {"message": "hi", "sessionId": made["sessionId"]})
    equal((status, answer["sessionId"], answer["response"]), (200, made["sessionId"], "here"), f"{answer}")


@test
def messages_that_cannot_be_say_why():
    sandbox("talk")
    equal(ask("POST", "/sandbox/talk/message", {})[0], 400, "no message")
    equal(ask("POST", "/sandbox/talk/message", {"message": ""})[0], 400, "an empty one")
    equal(ask("POST", "/sandbox/talk/message", {"message": "x", "sessionId": "ses_none"})[0], 404, "unknown session")
    equal(ask("POST", "/sandbox/nobody/message", {"message": "x"})[0], 404, "unknown sandbox")
    answer_with(lambda question: Fail(401, "no such key"))
    status, answer = ask("POST", "/sandbox/talk/message", {"message": "x"})
    equal((status, sorted(answer)), (502, ["code", "error", "sessionId"]), f"{answer}")
    equal(ask("POST", "/sandbox/talk/message", {"message": "x"}, key=lab().user("nosy"))[0], 404, "somebody else's")
    assert "burrow_sandbox_message_latency_seconds_count" in lab_ask("GET", "/metrics").body.decode(), "metrics"


@test
def a_sandbox_without_the_program_is_made_all_the_same_and_says_so():
    lab().create("bare", image="host")
    status, answer = ask("POST", "/sandbox", {"id": "bare"})
    equal(status, 200, f"{answer}")
    assert "opencode" in answer["agentError"], answer
    status, answer = ask("POST", "/sandbox/bare/message", {"message": "x"})
    equal(status, 502, f"{answer}")
    assert "opencode" in answer["error"], answer


# --- the proxy --------------------------------------------------------------------------------


@test
def opencode_is_there_behind_the_prefix():
    sandbox("talk")
    at = "/sandbox/talk/opencode"
    status, made = ask("POST", f"{at}/session", {"title": "by hand"})
    equal((status, made["title"]), (200, "by hand"), f"{made}")
    assert made["id"] in [session["id"] for session in ask("GET", f"{at}/session")[1]], "the list"
    answer_with(lambda question: Say("through"))
    status, answer = ask("POST", f"{at}/session/{made['id']}/message", {"parts": [{"type": "text", "text": "hi"}],
                                                                        "model": MODEL})
    equal((status, sorted(answer)), (200, ["info", "parts"]), f"{answer}")
    equal([part["text"] for part in answer["parts"] if part["type"] == "text"], ["through"], "text")
    status, answer = ask("POST", f"{at}/session/{made['id']}/message",
                         {"parts": [{"type": "text", "text": "noted"}], "noReply": True})
    equal((status, answer["info"]["role"]), (200, "user"), f"{answer}")
    equal(ask("GET", f"{at}/session/ses_none")[0], 404, "OpenCode's own 404")
    equal(lab_ask("DELETE", f"{at}/session/{made['id']}").status, 200, "delete")


@test
def its_events_stream_and_its_sleep_ends():
    sandbox("dozer")
    lab().call("POST", f"{NATIVE}/sandboxes/dozer/sleep")
    done = subprocess.run(["curl", "-s", "-N", "-m", "8", "-H", f"authorization: Bearer {lab().key}",
                           f"http://{lab().address}/sandbox/dozer/opencode/event"], stdout=subprocess.PIPE, check=False)
    assert b"server.connected" in done.stdout, done.stdout
    equal(lab().call("GET", "/sandbox/dozer")["status"], "running", "awake")


@test
def browsers_are_sent_to_an_origin_of_its_own():
    sandbox("talk")
    answer = lab_ask("GET", "/sandbox/talk/opencode/", headers=[("Host", lab().address)])
    equal(answer.status, 302, "the rule")
    there = urllib.parse.parse_qs(urllib.parse.urlsplit({key.lower(): value for key, value in answer.headers}["location"]).query)["url"]
    equal(there, [f"http://{lab().address}/sandbox/talk/opencode"], "url")
    answer = lab_ask("GET", {key.lower(): value for key, value in answer.headers}["location"], headers=[("Accept", "text/html")])
    equal(answer.status, 302, "on to the preview")
    assert {key.lower(): value for key, value in answer.headers}["location"].startswith("http://4096-"), answer.headers
    answer = lab_ask("GET", "/sandbox/talk/opencode/config")
    equal((answer.status, {key.lower(): value for key, value in answer.headers}["content-security-policy"]), (200, "sandbox"), "no page of ours")


@test
def its_web_client_works_in_a_browser():
    page = f"{ROOT}/tests/page"
    for what, is_there in (("chromium", os.path.exists("/usr/bin/chromium")), ("node", shutil.which("node")),
                           ("the clients (packaging/install-clients)", os.path.isdir(f"{page}/node_modules"))):
        if not is_there:
            skip(what)
    lab()
    user = {"name": "viewer", "email": "viewer@example.com", "password": "long enough"}
    ask("POST", "/api/auth/sign-up/email", user, key="")
    key = ask("POST", "/api/auth/sign-in/email", user, key="")[1]["token"]
    equal(ask("POST", "/sandbox", {"id": "seen"}, key=key)[0], 200, "its sandbox")
    done = subprocess.run(["node", "opencode.mjs", f"http://{lab().address}", "", "", "seen", user["email"],
                           user["password"]], cwd=page, timeout=200, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    assert done.returncode == 0, done.stdout.decode()


# --- tasks ------------------------------------------------------------------------------------


def frames(body):
    """The data of all events, in order."""
    blocks = [block for block in body.decode().split("\n\n") if block.strip()]
    for block in blocks:
        assert block.startswith("event: message\ndata: "), block
    return [json.loads(block.split("data: ", 1)[1]) for block in blocks]


@test
def a_task_is_kept_as_a_row():
    sandbox("talk")
    answer_with(lambda question: Say("kept"))
    status, made = ask("POST", f"{AGENTS}/task", {"message": "remember", "sandboxId": "talk", "model": MODEL,
                                                  "provider": "docker"})
    equal((status, made["response"], made["sandboxId"]), (200, "kept", "talk"), f"{made}")
    row = ask("GET", f"{AGENTS}/task/{made['taskId']}")[1]
    equal(sorted(row), sorted("id userId sandboxId provider status message response gitUrl modelProvider modelId "
                              "sessionId createdAt completedAt error metadata".split()), "columns")
    equal([row[key] for key in ("id", "provider", "status", "message", "response", "sessionId", "error")],
          [made["taskId"], "docker", "completed", "remember", "kept", made["sessionId"], None], "row")
    page = ask("GET", f"{AGENTS}/tasks?limit=1")[1]
    equal((page["tasks"][0]["id"], page["limit"], page["offset"]), (made["taskId"], 1, 0), "list")
    equal(ask("GET", f"{AGENTS}/task/none"), (404, {"error": "Task not found", "code": "not_found"}), "none")
    equal(ask("GET", f"{AGENTS}/task/{made['taskId']}", key=lab().user("other"))[0], 404, "somebody else's")
    answer_with(lambda question: Fail(401, "no such key"))
    status, failed = ask("POST", f"{AGENTS}/task", {"message": "x", "sandboxId": "talk", "model": MODEL})
    equal(status, 500, f"{failed}")
    equal(ask("GET", f"{AGENTS}/task/{failed['taskId']}")[1]["status"], "failed", "row of a failure")


@test
def providers_and_names_that_are_none_are_refused():
    lab()
    equal(sorted(ask("GET", f"{AGENTS}/providers")[1]), ["cloudflare", "docker"], "providers")
    equal(ask("POST", f"{AGENTS}/task", {"message": "x", "provider": "podman"})[0], 400, "provider")
    equal(ask("POST", f"{AGENTS}/task", {"provider": "docker"})[0], 400, "no message")
    equal(ask("POST", f"{AGENTS}/task", {"message": "x", "sandboxId": "nobody"})[0] >= 400, True, "sandbox")


@test
def a_task_is_told_as_it_goes_on_in_the_user_s_own_sandbox():
    lab()
    for round_, is_new in ((1, True), (2, False)):
        answer_with(lambda question: Say("one two three four five"))
        told = frames(lab_ask("POST", f"{AGENTS}/task/stream", {"message": "count"}).body)
        told = [frame for frame in told if frame["type"] != "keepalive"]
        equal((told[0]["type"], told[-1]["type"]), ("start", "done"), f"round {round_}: {told}")
        equal("".join(frame["content"] for frame in told if frame["type"] == "chunk"), "one two three four five", "text")
        assert len([frame for frame in told if frame["type"] == "chunk"]) > 1, told
        said = [frame["message"] for frame in told if frame["type"] == "status"]
        assert said[0].startswith("Creating" if is_new else "Using"), said
        equal(said[1:], ["Sandbox ready", "Initializing AI...", "AI is thinking..."], "status")
        equal(told[-1]["createdNewSandbox"], is_new, "createdNewSandbox")
        assert told[-1]["sandboxId"].startswith("quick-task-"), told
        assert told[-1]["messageId"].startswith("msg_") and told[-1]["sessionId"].startswith("ses_"), told
    answer_with(lambda question: Fail(401, "no such key"))
    equal(frames(lab_ask("POST", f"{AGENTS}/task/stream", {"message": "x"}).body)[-1]["type"], "error", "a failure")


@test
def a_team_works_and_who_fails_says_so_in_his_place():
    lab()
    answer_with(lambda question: Fail(401, "no such key") if "fail" in question.text else Say(f"I am {question.text}"))
    status, answer = ask("POST", f"{AGENTS}/team", {"agents": [{"role": "writer", "message": "one"},
                                                               {"role": "critic", "message": "fail"}]})
    equal(status, 200, f"{answer}")
    first, second = answer["agents"]
    equal([first["role"], second["role"]], ["writer", "critic"], "roles")
    texts = [part["text"] for part in first["response"]["parts"] if part["type"] == "text"]
    assert texts and "one" in texts[0], first
    assert "error" in second and "error" not in first, answer
    shown = ask("GET", f"{AGENTS}/team/{answer['teamId']}")[1]
    equal(shown["status"], "partial", f"{shown}")


# --- workflows --------------------------------------------------------------------------------


def node(name, kind, **parameters):
    return {"id": name, "name": name, "type": kind, "position": [0, 0], "parameters": parameters}


def link(*edges):
    connections = {}
    for source, target, kind in edges:
        connections.setdefault(source, {"main": []})["main"].append([{"node": target, "type": kind, "index": 0}])
    return connections


def execute(name, nodes, edges, **trigger):
    return ask("POST", "/workflow/execute", {"executionId": name, "workflowId": "w", "triggerType": "manual",
                                             "workflow": {"nodes": nodes, "connections": link(*edges)},
                                             "triggerData": trigger})


def status_of(name):
    return ask("GET", f"/workflow/{name}/status")[1]


def ended(name):
    wait_until(lambda: status_of(name)["status"] not in ("queued", "running"), f"the end of {name}", 60)
    return status_of(name)


@test
def workflows_are_checked_before_they_run():
    lab()
    equal(ask("POST", "/workflow/validate", {"workflow": {"nodes": []}})[1],
          {"valid": False, "errors": ["Workflow has no nodes"]}, "nothing")
    status, answer = execute("bad", [node("a", "nonsense"), node("b", "email")], [])
    equal((status, answer["error"]), (400, "Invalid workflow"), f"{answer}")
    assert answer["errors"][0] == "Unknown node type: nonsense (node: a)" and "email" in answer["errors"][1], answer
    errors = ask("POST", "/workflow/validate", {"workflow": {
        "nodes": [node("a", "merge"), node("b", "merge")], "connections": link(("a", "b", "main"), ("b", "a", "main"))}})[1]
    assert not errors["valid"] and "cycle" in errors["errors"][0], errors
    drawn = {"nodes": [{"id": "a", "type": "trigger", "position": {"x": 0, "y": 0},
                        "data": {"nodeType": "manual-trigger", "label": "Go"}}], "edges": []}
    equal(ask("POST", "/workflow/validate", {"workflow": drawn})[1], {"valid": True, "errors": []}, "as drawn")
    equal(ask("GET", "/workflow/none/status"), (404, {"error": "Workflow instance not found", "code": "not_found"}), "none")


@test
def a_workflow_takes_one_branch_and_asks_an_agent():
    sandbox("talk")
    answer_with(lambda question: Say("ninety"))
    nodes = [node("go", "manual-trigger"),
             node("if", "condition", conditions=[{"field": "trigger.data.n", "operator": "greaterThan", "value": 5,
                                                  "outputBranch": "big"}]),
             node("ask", "ai-chat", prompt="What is {{trigger.data.n}}?", provider="scripted", model="scripted",
                  sandboxId="talk"),
             node("small", "wait", duration="1h"),
             node("keep", "set-variable", variables=[{"name": "answer", "value": "{{steps.ask.data.response}}"}])]
    edges = [("go", "if", "main"), ("if", "ask", "big"), ("if", "small", "default"), ("ask", "keep", "main")]
    equal(execute("one", nodes, edges, n=90)[0], 202, "accepted")
    told = ended("one")
    equal((told["status"], told["error"]), ("complete", None), f"{told}")
    steps = told["output"]["steps"]
    equal(steps["keep"]["data"]["variables"], {"answer": "ninety"}, "the answer")
    equal(steps["small"]["data"], {"skipped": True}, "the other branch")
    equal(execute("one", nodes, edges)[0], 409, "the same id again")


@test
def an_execution_waits_for_an_approval_and_survives_the_daemon():
    sandbox("talk")
    gate = threading.Event()
    answer_with(lambda question: Wait(gate, Say("late")))
    nodes = [node("yes", "approval", message="may I?"), node("ask", "ai-chat", prompt="go", provider="scripted",
                                                             model="scripted", sandboxId="talk"),
             node("end", "merge")]
    execute("gated", nodes, [("yes", "ask", "main"), ("ask", "end", "main")])
    wait_until(lambda: status_of("gated")["status"] == "paused", "it waits", 30)
    lab().kill_hard("daemon")
    equal(status_of("gated")["status"], "paused", "it waits still")
    equal(ask("POST", "/workflow/gated/resume")[1]["status"], "running", "resumed")
    asked = len(_labs[0].model.questions)
    _labs[0].model.script = lambda question: Wait(gate, Say("late")) if question.tools else Say("a title")
    wait_until(lambda: len(_labs[0].model.questions) > asked, "the model is asked", 60)
    _labs[0].kill_hard("daemon")
    gate.set()
    told = ended("gated")
    equal((told["status"], told["output"]["steps"]["ask"]["data"]["response"]), ("complete", "late"), f"{told}")
    prompts = [question for question in _labs[0].model.questions[asked:] if question.tools]
    equal(len(prompts), 1, "prompted once")


@test
def an_execution_can_be_held_and_ended():
    lab()
    execute("long", [node("nap", "wait", duration="1h")], [])
    wait_until(lambda: status_of("long")["status"] == "running", "it runs", 30)
    equal(ask("POST", "/workflow/long/pause")[1], {"executionId": "long", "status": "paused"}, "paused")
    equal(status_of("long")["status"], "paused", "paused")
    equal(ask("POST", "/workflow/long/terminate")[1]["status"], "terminated", "terminated")
    equal(status_of("long")["status"], "terminated", "terminated")
    equal(ask("POST", "/workflow/long/resume")[0], 409, "it is over")
    execute("caught", [node("bad", "parse-json", input="{"), node("on", "error-handler", onError="fallback",
                                                                  fallbackValue=7)], [("bad", "on", "main")])
    told = ended("caught")
    equal((told["status"], told["output"]["steps"]["on"]["data"]["fallbackValue"]), ("complete", 7), f"{told}")
    execute("uncaught", [node("bad", "parse-json", input="{"), node("next", "merge")], [("bad", "next", "main")])
    told = ended("uncaught")
    equal(told["status"], "errored", f"{told}")
    assert "next" not in told["output"]["steps"] and "JSON" in told["error"], told


try:
    main()
finally:
    # Not at exit: Python waits for the threads of the model before it comes to that.
    for one in _labs:
        one.__exit__(None, None, None)
