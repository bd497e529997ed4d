#!/usr/bin/python3
"""An OpenCode server that misbehaves as it is told, for tests: put into PATH under the name `opencode`.

What it does is the member "fake" of its config (OPENCODE_CONFIG_CONTENT):

    generation    "1.18" (default) or "1.0": names of events, no /global/health, no /permission
    lose_first    the first connection is accepted and never answered
    exits         how many starts end at once, with exit code 3 and a word on stderr
    mute          it listens and never answers
    gzip          answers are compressed, whatever was asked for
    deaf_abort    aborts are answered and do nothing

A prompt's text is a list of words, done one after the other:

    say:TEXT      text in two deltas       ask:NAME     a permission, waited for
    tool:NAME     a call of a tool         question     a question, waited for
    child         the permission is asked in the session of a sub-agent
    fail:TEXT     the model's error        crash        it ends
    cut           all event streams break  quiet:TEXT   text of which no event tells
    wait          until the file "go" is in its folder; idle (an early idle is sent)
    huge          a part of 3 MB           big          a part of 200 kB

Everything it was prompted with is in "prompts" in its folder, one JSON a line. An idle is told twice.
"""

import gzip
import http.server
import json
import os
import queue
import sys
import threading
import time

CONFIG = json.loads(os.environ.get("OPENCODE_CONFIG_CONTENT") or "{}")
FAKE = CONFIG.get("fake", {})
OLD = FAKE.get("generation") == "1.0"
STEP_SECONDS = 0.02


class State:
    def __init__(self):
        self.lock = threading.RLock()
        self.streams, self.sessions, self.busy = [], {}, set()
        self.waiting, self.answers, self.aborted = {}, {}, set()
        self.count = 0

    def new_id(self, kind):
        with self.lock:
            self.count += 1
            return f"{kind}_{int(time.time() * 1000) * 0x1000 & 0xffffffffffff:012x}{self.count:014d}"


STATE = State()


def tell(kind, **properties):
    with STATE.lock:
        for stream in STATE.streams:
            stream.put({"id": STATE.new_id("evt"), "type": kind, "properties": properties})


class Aborted(Exception):
    pass


class Failed(Exception):
    pass


class Run(threading.Thread):
    """One prompt."""

    def __init__(self, session, body):
        super().__init__(daemon=True)
        self.session, self.body = session, body
        self.user = {"id": body.get("messageID") or STATE.new_id("msg"), "role": "user", "sessionID": session}
        self.info = self.message = None

    def run(self):
        tell("session.idle", sessionID=self.session)  # one that does not count
        tell("message.updated", sessionID=self.session, info=self.user)
        words = self.body["parts"][0]["text"]
        self.told({"id": STATE.new_id("prt"), "type": "text", "text": words, "messageID": self.user["id"]})
        tell("session.status", sessionID=self.session, status={"type": "busy"})
        self.info = {"id": STATE.new_id("msg"), "role": "assistant", "sessionID": self.session, "cost": 0.25,
                     "parentID": self.user["id"], "providerID": "fake", "modelID": "fake-1", "time": {"created": 1},
                     "tokens": {"input": 5, "output": 7, "reasoning": 1, "cache": {"read": 2, "write": 3}}}
        self.message = {"info": self.info, "parts": []}
        with STATE.lock:
            STATE.sessions[self.session].append(self.message)
        tell("message.updated", sessionID=self.session, info=self.info)
        try:
            for word in words.split():
                self.check()
                time.sleep(STEP_SECONDS)
                name, _, value = word.partition(":")
                getattr(self, "do_" + name)(value)
            self.info["finish"] = "stop"
        except Aborted:
            self.fail("MessageAbortedError", "The operation was aborted.")
        except Failed as failure:
            self.fail("APIError", str(failure))
        self.rest()

    def rest(self):
        self.info["time"]["completed"] = 2
        with STATE.lock:
            STATE.busy.discard(self.session)
        tell("message.updated", sessionID=self.session, info=self.info)
        for _ in range(2):
            tell("session.status", sessionID=self.session, status={"type": "idle"})
            tell("session.idle", sessionID=self.session)

    def check(self):
        if self.session in STATE.aborted:
            STATE.aborted.discard(self.session)
            raise Aborted

    def fail(self, name, message):
        self.info["error"] = {"name": name, "data": {"message": message}}
        tell("session.error", sessionID=self.session, error=self.info["error"])

    def told(self, part, **more):
        tell("message.part.updated", sessionID=self.session, part={**part, "sessionID": self.session}, **more)

    def add(self, part):
        part = {"id": STATE.new_id("prt"), "messageID": self.info["id"], "sessionID": self.session, **part}
        with STATE.lock:
            self.message["parts"].append(part)
        return part

    # --- words ---------------------------------------------------------------------------------

    def do_say(self, text):
        part = self.add({"type": "text", "text": "", "time": {"start": 1}})
        half = len(text) // 2
        for piece in (text[:half], text[half:]):
            part["text"] += piece
            if OLD:
                self.told(part, delta=piece)
            else:
                tell("message.part.delta", sessionID=self.session, messageID=self.info["id"], partID=part["id"],
                     field="text", delta=piece)
        part["time"] = {"start": 1, "end": 2}
        self.told(part)

    def do_quiet(self, text):
        self.add({"type": "text", "text": text, "time": {"start": 1, "end": 2}})

    def do_tool(self, name):
        part = self.add({"type": "tool", "tool": name, "callID": "call_1", "state": {"status": "running", "input": {}}})
        self.told(part)
        part["state"] = {"status": "completed", "input": {}, "output": "done"}
        self.told(part)

    def do_big(self, _):
        part = self.add({"type": "tool", "tool": "read", "callID": "call_2",
                         "state": {"status": "completed", "input": {}, "output": "x" * 200_000}})
        self.told(part)

    def do_huge(self, _):
        part = self.add({"type": "tool", "tool": "read", "callID": "call_3",
                         "state": {"status": "completed", "input": {}, "output": "x" * 3_000_000}})
        self.told(part)

    def await_answer(self, request):
        while request not in STATE.answers:
            if self.session in STATE.aborted:
                STATE.waiting.pop(request, None)
                self.check()
            time.sleep(STEP_SECONDS)
        return STATE.answers[request]

    def ask_in(self, session, name):
        request = STATE.new_id("per")
        asked = {"id": request, "sessionID": session, "metadata": {"command": name}}
        if OLD:
            asked.update(type=name, pattern=f"{name} *", messageID=self.info["id"], callID="call_1", title=name)
        else:
            asked.update(permission=name, patterns=[f"{name} *"], always=[])
        STATE.waiting[request] = asked
        tell("permission.updated" if OLD else "permission.asked", **asked)
        reply = self.await_answer(request)
        if reply == "reject":
            raise Failed("the user rejected it")
        self.do_say(reply)

    def do_ask(self, name):
        self.ask_in(self.session, name)

    def do_child(self, name):
        child = STATE.new_id("ses")
        tell("session.created", info={"id": child, "parentID": self.session})
        self.ask_in(child, name or "bash")

    def do_question(self, _):
        request = STATE.new_id("que")
        asked = {"id": request, "sessionID": self.session, "questions": [{"question": "which?", "options": []}]}
        STATE.waiting[request] = asked
        tell("question.asked", **asked)
        self.do_say(json.dumps(self.await_answer(request)).replace(" ", ""))

    def do_fail(self, text):
        raise Failed(text)

    def do_crash(self, _):
        print("fake: crashed as it was told", file=sys.stderr, flush=True)
        os._exit(9)

    def do_cut(self, _):
        with STATE.lock:
            for stream in STATE.streams:
                stream.put(None)
            STATE.streams.clear()

    def do_idle(self, _):
        tell("session.idle", sessionID=self.session)

    def do_wait(self, _):
        while not os.path.exists("go"):
            self.check()
            time.sleep(STEP_SECONDS)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def send(self, status, document=None):
        raw = b"" if document is None else json.dumps(document).encode()
        self.send_response(status)
        if FAKE.get("gzip") and raw:
            raw = gzip.compress(raw)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "{}")

    def do_GET(self):  # noqa: N802
        path = self.path.partition("?")[0]
        parts = path.strip("/").split("/")
        if path == "/global/health":
            self.send(500, {"error": "no such path"}) if OLD else self.send(200, {"healthy": True, "version": "1.18.0"})
        elif path == "/path":
            self.send(200, {"directory": os.getcwd()})
        elif path == "/event":
            self.send_events()
        elif path == "/session/status":
            self.send(200, {session: {"type": "busy"} for session in STATE.busy})
        elif path in ("/permission", "/question") and not OLD:
            kind = "per" if path == "/permission" else "que"
            self.send(200, [asked for name, asked in STATE.waiting.items() if name.startswith(kind)])
        elif parts[0] == "session" and parts[-1] == "message" and parts[1] in STATE.sessions:
            self.send(200, STATE.sessions[parts[1]])
        else:
            self.send(404, {"name": "NotFoundError"})

    def send_events(self):
        stream = queue.Queue()
        stream.put({"type": "server.connected", "properties": {}})
        with STATE.lock:
            STATE.streams.append(stream)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while (event := stream.get()) is not None:
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

    def do_POST(self):  # noqa: N802
        parts, body = self.path.strip("/").split("/"), self.body()
        if parts == ["session"]:
            session = STATE.new_id("ses")
            STATE.sessions[session] = []
            self.send(200, {"id": session, "title": body.get("title")})
        elif parts[0] == "session" and parts[1] not in STATE.sessions:
            self.send(404, {"name": "NotFoundError"})
        elif parts[-1] == "prompt_async":
            self.prompt(parts[1], body)
        elif parts[-1] == "abort":
            if not FAKE.get("deaf_abort"):
                STATE.aborted.add(parts[1])
            self.send(200, True)
        elif parts[0] in ("permission", "question") or "permissions" in parts:
            self.answer(parts, body)
        else:
            self.send(404, {"name": "NotFoundError"})

    def prompt(self, session, body):
        with open("prompts", "a", encoding="utf-8") as file:
            file.write(json.dumps(body) + "\n")
        if not isinstance(body.get("parts"), list):
            self.send(400, {"name": "BadRequest"})
            return
        run = Run(session, body)
        with STATE.lock:
            STATE.busy.add(session)
            STATE.aborted.discard(session)
            STATE.sessions[session].append({"info": run.user, "parts": body["parts"]})
        self.send(204)
        run.start()

    def answer(self, parts, body):
        old = "permissions" in parts
        request = parts[3] if old else parts[1]
        asked = STATE.waiting.pop(request, None)
        if not asked or old != OLD:
            self.send(404, {"name": "NotFoundError"})
            return
        self.send(200, True)
        if parts[0] == "question":
            STATE.answers[request] = body.get("answers", "rejected")
            kind = "replied" if parts[2] == "reply" else "rejected"
            tell(f"question.{kind}", sessionID=asked["sessionID"], requestID=request)
            return
        reply = body["response" if old else "reply"]
        STATE.answers[request] = reply
        if old:
            tell("permission.replied", sessionID=asked["sessionID"], permissionID=request, response=reply)
        else:
            tell("permission.replied", sessionID=asked["sessionID"], requestID=request, reply=reply)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    lost = []

    def process_request(self, request, client_address):
        if FAKE.get("mute") or (FAKE.get("lose_first") and not self.lost):
            self.lost.append(request)  # open, and never answered
            return
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        pass


def count_start():
    with open("starts", "a+", encoding="ascii") as file:
        file.write("x")
        file.seek(0)
        return len(file.read())


def main():
    if count_start() <= FAKE.get("exits", 0):
        print("fake: ends as it was told", file=sys.stderr)
        sys.exit(3)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    Server(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
