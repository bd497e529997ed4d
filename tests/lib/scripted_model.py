"""A model server on loopback whose answers the test decides, in the formats of Anthropic, OpenAI (responses and
chat/completions) and Google, whole or streamed.

    with ScriptedModel() as model:                  # says "You said: TEXT" to everything
        model.url                                   # "http://127.0.0.1:PORT"; a base URL may end in /v1, /v1beta
        model.script = [Tool("bash", {"command": "ls"}), Say("done")]     # one per request, then the default again
        model.script = lambda question: Say("no") if question.tools else Fail(429)
        ...
        model.questions[-1].key                     # what the server got: Question

Answers: Say(text), Think(reasoning, text), Tool(name, input), Fail(status), Cut(text, after) and Wait(event, answer).
`usage` of each is what it says was used. The key that is asked for is KEY, in the header that the real API takes it
from; anything else gets that API's own 401. `chunks` are sent one by one, so a reader sees several.
"""

import http.server
import json
import threading
import time
import urllib.parse

KEY = "sk-scripted-0123456789abcdef"
TIMEOUT_SECONDS = 60


class Usage:
    """Tokens of one answer. `input` is without what came from a cache, `output` without reasoning."""

    def __init__(self, input=11, output=7, cache_read=0, cache_write=0, reasoning=0):  # pylint: disable=redefined-builtin
        self.input, self.output = input, output
        self.cache_read, self.cache_write, self.reasoning = cache_read, cache_write, reasoning


class Answer:
    text, reasoning, tool, input = "", "", None, None

    def __init__(self, usage=None):
        self.usage = usage or Usage()


class Say(Answer):
    """Text, streamed in pieces of `piece` characters."""

    def __init__(self, text, usage=None, piece=8):
        super().__init__(usage)
        self.text, self.piece = text, piece


class Think(Say):
    """Reasoning, then text."""

    def __init__(self, reasoning, text, usage=None, piece=8):
        super().__init__(text, usage, piece)
        self.reasoning = reasoning


class Tool(Answer):
    """A call of a tool, perhaps with some text before it."""

    def __init__(self, name, input, text="", usage=None):  # pylint: disable=redefined-builtin
        super().__init__(usage)
        self.tool, self.input, self.text, self.piece = name, input, text, 8


class Fail(Answer):
    """An error in the API's own shape."""

    def __init__(self, status, message="scripted failure", headers=None):
        super().__init__()
        self.status, self.message, self.headers = status, message, headers or {}


class Cut(Say):
    """A stream whose connection breaks behind `after` chunks."""

    def __init__(self, text, after=2, usage=None):
        super().__init__(text, usage)
        self.after = after


class Wait:
    """The answer, once the event is set; `between`: after the first chunk instead of before everything."""

    def __init__(self, event, answer, between=False):
        self.event, self.answer, self.between = event, answer, between


class Question:
    """One request as it came."""

    def __init__(self, handler, body):
        parts = urllib.parse.urlsplit(handler.path)
        self.method, self.path, self.query = handler.command, parts.path, urllib.parse.parse_qs(parts.query)
        self.headers, self.raw = handler.headers, body
        self.body = json.loads(body) if body else {}
        self.format = format_of(self.path)
        self.key = key_of(self)
        self.model = self.body.get("model") or self.path.rpartition("/")[2].partition(":")[0]
        self.stream = bool(self.body.get("stream")) or self.path.endswith(":streamGenerateContent")
        self.tools = tools_of(self.body)
        self.texts = texts_of(self.body.get("messages") or self.body.get("input") or self.body.get("contents") or [])
        self.has_tool_result = any(mark in body for mark in
                                   (b'"tool_result"', b'"function_call_output"', b'"functionResponse"', b'"role":"tool"',
                                    b'"role": "tool"'))

    @property
    def text(self):
        """What the user said last."""
        return self.texts[-1] if self.texts else ""


def format_of(path):
    path = path.removeprefix("/v1beta").removeprefix("/v1")
    if path in ("/messages", "/messages/count_tokens"):
        return "anthropic"
    return {"/responses": "responses", "/chat/completions": "chat", "/embeddings": "embeddings"}.get(
        path, "google" if path.startswith("/models/") and ":" in path else None)


def key_of(question):
    """The key, from where this API takes it; None where there is none."""
    bearer = question.headers.get("authorization", "")
    bearer = bearer[7:] if bearer.lower().startswith("bearer ") else None
    if question.format == "anthropic":
        return question.headers.get("x-api-key") or bearer
    if question.format == "google":
        return question.headers.get("x-goog-api-key") or question.query.get("key", [None])[0]
    return bearer or question.headers.get("x-api-key") or question.headers.get("x-goog-api-key")


def tools_of(body):
    names = []
    for tool in body.get("tools") or []:
        declared = tool.get("functionDeclarations") or [tool.get("function") or tool]
        names += [each.get("name") for each in declared if each.get("name")]
    return names


def texts_of(messages):
    if isinstance(messages, str):
        return [messages]
    found = []
    for message in messages:
        if not isinstance(message, dict) or message.get("role", "user") != "user":
            continue
        content = message.get("content") or message.get("parts") or ""
        if isinstance(content, str):
            found.append(content)
        else:
            found += [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return found


def pieces(text, size):
    return [text[at:at + size] for at in range(0, len(text), size)]


def event(name, data):
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


# --- Anthropic ---------------------------------------------------------------------------------


def anthropic_usage(usage):
    return {"input_tokens": usage.input, "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cache_read, "output_tokens": usage.output + usage.reasoning}


def anthropic_blocks(answer):
    blocks = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": "c2ln"})
    if answer.text:
        blocks.append({"type": "text", "text": answer.text})
    if answer.tool:
        blocks.append({"type": "tool_use", "id": "toolu_scripted", "name": answer.tool, "input": answer.input})
    return blocks


def anthropic_whole(question, answer):
    return {"id": "msg_scripted", "type": "message", "role": "assistant", "model": question.model,
            "content": anthropic_blocks(answer), "stop_reason": "tool_use" if answer.tool else "end_turn",
            "stop_sequence": None, "usage": anthropic_usage(answer.usage)}


def anthropic_deltas(block, answer):
    if block["type"] == "text":
        return [{"type": "text_delta", "text": piece} for piece in pieces(answer.text, answer.piece)]
    if block["type"] == "thinking":
        return [{"type": "thinking_delta", "thinking": answer.reasoning}, {"type": "signature_delta", "signature": "c2ln"}]
    return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(json.dumps(answer.input), 16)]


def anthropic_chunks(question, answer):
    whole = anthropic_whole(question, answer)
    start = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield event("message_start", {"type": "message_start", "message": start})
    for index, block in enumerate(whole["content"]):
        empty = {"text": {"text": ""}, "thinking": {"thinking": "", "signature": ""},
                 "tool_use": {"input": {}}}[block["type"]]
        yield event("content_block_start", {"type": "content_block_start", "index": index,
                                            "content_block": {**block, **empty}})
        for delta in anthropic_deltas(block, answer):
            yield event("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
        yield event("content_block_stop", {"type": "content_block_stop", "index": index})
    yield event("message_delta", {"type": "message_delta",
                                  "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
                                  "usage": {"output_tokens": whole["usage"]["output_tokens"]}})
    yield event("message_stop", {"type": "message_stop"})


# --- OpenAI ------------------------------------------------------------------------------------


def responses_items(answer):
    items = []
    if answer.reasoning:
        items.append({"type": "reasoning", "id": "rs_scripted",
                      "summary": [{"type": "summary_text", "text": answer.reasoning}]})
    if answer.text:
        items.append({"type": "message", "id": "msg_scripted", "role": "assistant", "status": "completed",
                      "content": [{"type": "output_text", "text": answer.text, "annotations": []}]})
    if answer.tool:
        items.append({"type": "function_call", "id": "fc_scripted", "call_id": "call_scripted", "status": "completed",
                      "name": answer.tool, "arguments": json.dumps(answer.input)})
    return items


def responses_whole(question, answer):
    used = answer.usage
    return {"id": "resp_scripted", "object": "response", "created_at": 1700000000, "status": "completed",
            "model": question.model, "output": responses_items(answer), "error": None, "incomplete_details": None,
            "usage": {"input_tokens": used.input + used.cache_read,
                      "input_tokens_details": {"cached_tokens": used.cache_read},
                      "output_tokens": used.output + used.reasoning,
                      "output_tokens_details": {"reasoning_tokens": used.reasoning},
                      "total_tokens": used.input + used.cache_read + used.output + used.reasoning}}


def responses_item_events(index, item, answer):
    place = {"output_index": index, "item_id": item["id"]}
    if item["type"] == "message":
        part = {"type": "output_text", "text": "", "annotations": []}
        yield "response.content_part.added", {**place, "content_index": 0, "part": part}
        for piece in pieces(answer.text, answer.piece):
            yield "response.output_text.delta", {**place, "content_index": 0, "delta": piece}
        yield "response.output_text.done", {**place, "content_index": 0, "text": answer.text}
        yield "response.content_part.done", {**place, "content_index": 0, "part": item["content"][0]}
    elif item["type"] == "function_call":
        for piece in pieces(item["arguments"], 16):
            yield "response.function_call_arguments.delta", {**place, "delta": piece}
        yield "response.function_call_arguments.done", {**place, "arguments": item["arguments"]}


def responses_chunks(question, answer):
    whole = responses_whole(question, answer)
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}
    events = [("response.created", {"response": begun}), ("response.in_progress", {"response": begun})]
    for index, item in enumerate(whole["output"]):
        empty = {"message": {"content": [], "status": "in_progress"}, "function_call": {"arguments": ""},
                 "reasoning": {"summary": []}}[item["type"]]
        events.append(("response.output_item.added", {"output_index": index, "item": {**item, **empty}}))
        events += responses_item_events(index, item, answer)
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    events.append(("response.completed", {"response": whole}))
    for number, (name, data) in enumerate(events):
        yield event(name, {"type": name, "sequence_number": number, **data})


def chat_usage(usage):
    return {"prompt_tokens": usage.input + usage.cache_read, "completion_tokens": usage.output + usage.reasoning,
            "total_tokens": usage.input + usage.cache_read + usage.output + usage.reasoning,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning}}


def chat_call(answer):
    return {"id": "call_scripted", "type": "function",
            "function": {"name": answer.tool, "arguments": json.dumps(answer.input)}}


def chat_whole(question, answer):
    message = {"role": "assistant", "content": answer.text or None}
    if answer.tool:
        message["tool_calls"] = [chat_call(answer)]
    return {"id": "chatcmpl-scripted", "object": "chat.completion", "created": 1700000000, "model": question.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if answer.tool else "stop"}],
            "usage": chat_usage(answer.usage)}


def chat_chunks(question, answer):
    def chunk(delta, finish=None):
        return event(None, {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1700000000,
                            "model": question.model,
                            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(answer.text, answer.piece):
        yield chunk({"content": piece})
    if answer.tool:
        yield chunk({"tool_calls": [{"index": 0, **chat_call(answer)}]})
    yield chunk({}, "tool_calls" if answer.tool else "stop")
    if (question.body.get("stream_options") or {}).get("include_usage"):
        yield event(None, {"id": "chatcmpl-scripted", "object": "chat.completion.chunk", "created": 1700000000,
                           "model": question.model, "choices": [], "usage": chat_usage(answer.usage)})
    yield b"data: [DONE]\n\n"


# --- Google ------------------------------------------------------------------------------------


def google_whole(question, answer, parts=None, finish="STOP"):
    used = answer.usage
    if parts is None:
        parts = [{"text": answer.text}] if answer.text else []
        if answer.tool:
            parts.append({"functionCall": {"name": answer.tool, "args": answer.input}})
    candidate = {"content": {"role": "model", "parts": parts}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": question.model, "responseId": "scripted",
            "usageMetadata": {"promptTokenCount": used.input + used.cache_read, "candidatesTokenCount": used.output,
                              "cachedContentTokenCount": used.cache_read, "thoughtsTokenCount": used.reasoning,
                              "totalTokenCount": used.input + used.cache_read + used.output + used.reasoning}}


def google_chunks(question, answer):
    parts = [{"text": piece} for piece in pieces(answer.text, answer.piece)]
    if answer.tool:
        parts.append({"functionCall": {"name": answer.tool, "args": answer.input}})
    for number, part in enumerate(parts):
        finish = "STOP" if number == len(parts) - 1 else None
        yield event(None, google_whole(question, answer, [part], finish))


FORMATS = {"anthropic": (anthropic_whole, anthropic_chunks), "responses": (responses_whole, responses_chunks),
           "chat": (chat_whole, chat_chunks), "google": (google_whole, google_chunks)}


def error_body(kind, status, message):
    if kind == "anthropic":
        names = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}
        return {"type": "error", "error": {"type": names.get(status, "api_error"), "message": message}}
    if kind == "google":
        names = {401: "UNAUTHENTICATED", 429: "RESOURCE_EXHAUSTED"}
        return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}
    return {"error": {"message": message, "type": "invalid_request_error" if status < 429 else "server_error",
                      "param": None, "code": None}}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def handle(self):
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            pass  # the client left

    def send_whole(self, status, body, headers=()):
        raw = json.dumps(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def read_body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def answer(self):
        question = Question(self, self.read_body())
        model = self.server.owner
        with model.lock:
            model.questions.append(question)
        if self.is_plain(question):
            return
        if question.key != model.key:
            self.send_whole(401, error_body(question.format, 401, "invalid x-api-key"))
            return
        self.send_answer(question, model.answer_to(question))

    do_GET = do_POST = answer

    def is_plain(self, question):
        """Whether it was one of the small calls, which need no script."""
        path = question.path.removeprefix("/v1beta").removeprefix("/v1")
        if question.method == "GET" and path == "/models":
            self.send_whole(200, {"object": "list", "data": [{"id": "scripted-1", "object": "model"}]})
        elif path == "/messages/count_tokens":
            self.send_whole(200, {"input_tokens": len(question.raw) // 4})
        elif path.endswith(":countTokens"):
            self.send_whole(200, {"totalTokens": len(question.raw) // 4})
        elif path == "/embeddings":
            self.send_whole(200, {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
                                  "model": question.model, "usage": {"prompt_tokens": 3, "total_tokens": 3}})
        elif question.format is None:
            self.send_whole(404, error_body(None, 404, f"no such path {question.path}"))
        else:
            return False
        return True

    def send_answer(self, question, answer):
        gate = None
        if isinstance(answer, Wait):
            gate, answer = answer, answer.answer
            if not gate.between:
                gate.event.wait(TIMEOUT_SECONDS)
        if isinstance(answer, Fail):
            self.send_whole(answer.status, error_body(question.format, answer.status, answer.message),
                            answer.headers.items())
        elif question.stream:
            self.send_stream(FORMATS[question.format][1](question, answer), answer, gate)
        else:
            self.send_whole(200, FORMATS[question.format][0](question, answer))

    def send_stream(self, chunks, answer, gate):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, chunk in enumerate(chunks):
            if isinstance(answer, Cut) and number == answer.after:
                self.close_connection = True
                return
            if number == 1 and gate and gate.between:
                gate.event.wait(TIMEOUT_SECONDS)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        pass  # a client that left in the middle is no news


class ScriptedModel:
    def __init__(self, script=None, key=KEY, address="127.0.0.1", port=0):
        self.script, self.key = script, key
        self.questions, self.lock = [], threading.Lock()
        self.server = Server((address, port), Handler)
        self.server.owner = self
        self.port = self.server.server_address[1]
        self.url = f"http://{address}:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def answer_to(self, question):
        with self.lock:
            if callable(self.script):
                return self.script(question)
            if self.script:
                return self.script.pop(0)
        return Say(f"You said: {question.text}")


def main():
    """By hand: python3 tests/lib/scripted_model.py [PORT]"""
    import sys  # pylint: disable=import-outside-toplevel

    with ScriptedModel(port=int(sys.argv[1]) if len(sys.argv) > 1 else 0) as model:
        print(f"{model.url} key {model.key}", flush=True)
        try:
            while True:
                time.sleep(3600)
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
