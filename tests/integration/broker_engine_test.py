#!/usr/bin/python3
"""The egress broker alone: routes, metering, proxy requests, tunnels and interception, as programs in a
sandbox use them. What hostile ones try is in broker_attacks_test.py."""

import contextlib
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from broker_demo import BrokerDemo, certificates, drain, read_head  # noqa: E402
from scripted_model import KEY, Cut, Fail, Say, ScriptedModel, Usage, Wait  # noqa: E402
from tap import equal, main, test  # noqa: E402

ANTHROPIC, RESPONSES, CHAT, GOOGLE = 1, 2, 3, 4
USED = Usage(input=11, output=7, cache_read=5, cache_write=0, reasoning=3)


def routes(model, words=""):
    return "\n".join([
        f"route anthropic base={model.url}/v1 format={ANTHROPIC} header=x-api-key:{KEY} local {words}",
        f"route responses base={model.url}/v1 format={RESPONSES} header=authorization:Bearer+{KEY} local {words}",
        f"route chat base={model.url}/v1 format={CHAT} header=authorization:Bearer+{KEY} local {words}",
        f"route google base={model.url}/v1beta format={GOOGLE} header=x-goog-api-key:{KEY} local {words}",
    ])


def body(**more):
    return json.dumps({"model": "scripted", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}],
                       "input": "hi", "contents": [{"parts": [{"text": "hi"}]}], **more})


ASKS = {
    "anthropic": ("/anthropic/messages", {"x-api-key": "burrow-anthropic"}),
    "responses": ("/responses/responses", {"authorization": "Bearer burrow-openai"}),
    "chat": ("/chat/chat/completions", {"authorization": "Bearer burrow-openai"}),
    "google": ("/google/models/scripted:generateContent", {"x-goog-api-key": "burrow-google"}),
}


def ask(demo, kind, stream):
    path, headers = ASKS[kind]
    if kind == "google" and stream:
        path = path.replace("generateContent", "streamGenerateContent") + "?alt=sse"
    return demo.ask("POST", path, body(**({"stream": True} if stream else {})),
                    {"content-type": "application/json", **headers})


def numbers(line):
    return {name: line[name] for name in ("input", "output", "reasoning", "cache_read", "cache_write")}


@test
def usage_is_read_from_every_format_streamed_and_whole():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        for kind in ASKS:
            for stream in (False, True):
                model.script = [Say("Hello from the model", USED)]
                before = len(demo.lines("ended"))
                status, _, got = ask(demo, kind, stream)
                equal(status, 200, f"status of {kind}")
                assert b"Hello" in got or b"ello" in got, got
                line = demo.told("ended", lambda line: line["grant"] > before)
                wanted = {"input": 11, "output": 7, "reasoning": 3, "cache_read": 5, "cache_write": 0}
                if kind == "anthropic":  # which does not tell them apart
                    wanted |= {"output": 10, "reasoning": 0}
                equal(numbers(line), wanted, f"usage of {kind}, stream {stream}")
                equal((line["known"], line["partial"], line["model"], line["failure"]),
                      (True, False, "scripted", None), kind)
        assert KEY not in demo.log()


@test
def what_a_client_proves_itself_with_stays_outside_and_the_key_is_put_in():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        equal(demo.ask("POST", "/google/models/scripted:generateContent?key=burrow-google&a=b", body(),
                       {"authorization": "Bearer mine", "cookie": "a=b", "api-key": "mine", "Accept-Encoding": "gzip",
                        "proxy-authorization": "Basic eDp5", "x-kept": "yes"})[0], 200, "status")
        question = model.questions[-1]
        for name in ("authorization", "cookie", "api-key", "proxy-authorization"):
            assert question.headers.get(name) is None, name
        equal(question.query, {"a": ["b"]}, "query")
        equal((question.headers["x-kept"], question.headers["accept-encoding"], question.headers["host"]),
              ("yes", "identity", model.url.rpartition("/")[2]), "headers")
        equal(demo.told("asked")["placeholder"], "mine", "placeholder")


@test
def a_stream_that_breaks_is_counted_as_far_as_it_came():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        model.script = [Cut("a long text that is cut somewhere", after=3)]
        try:
            ask(demo, "chat", True)
        except Exception:  # pylint: disable=broad-exception-caught
            pass  # the client sees that it is cut, however it says so
        line = demo.told("ended")
        assert line["partial"] and line["known"] and line["output"] > 0, line


@test
def a_used_up_budget_cuts_a_stream_in_the_form_of_its_api():
    with ScriptedModel() as model, BrokerDemo(routes(model, "cut=10")) as demo:
        for kind in ("anthropic", "responses", "chat"):
            model.script = [Say("x" * 4000, Usage(output=500))]
            status, _, got = ask(demo, kind, True)
            last = got.decode().strip().rpartition("data: ")[2]
            equal(status, 200, "status")
            error = json.loads(last)
            assert "budget" in json.dumps(error), last
            assert error.get("type") == "error" or "error" in error, last
            assert len(got) < 60000, len(got)
        equal(len([line for line in demo.lines("ended") if line["failure"] == "the budget was used up"]), 3, "cut")


@test
def refusals_speak_the_language_of_the_api():
    with BrokerDemo("route anthropic deny=budget_exceeded format=1\nroute chat deny=egress_denied format=3\n"
                    "route google deny=budget_exceeded format=4") as demo:
        status, headers, got = demo.ask("POST", "/anthropic/v1/messages", "{}")
        equal((status, json.loads(got)["type"], json.loads(got)["error"]["type"]), (429, "error", "budget_exceeded"), "it")
        equal(headers["x-should-retry"], "false", "retry")
        status, _, got = demo.ask("POST", "/chat/v1/chat/completions", "{}")
        equal((status, json.loads(got)["error"]["code"]), (403, "egress_denied"), "chat")
        status, _, got = demo.ask("POST", "/google/v1beta/models/x:generateContent", "{}")
        equal((status, json.loads(got)["error"]["status"]), (429, "RESOURCE_EXHAUSTED"), "google")
        status, _, got = demo.ask("GET", "/nothing/v1/models")
        equal((status, json.loads(got)["error"]["type"]), (403, "egress_denied"), "no route")


@test
def errors_of_the_model_come_through_as_they_are():
    with ScriptedModel() as model, BrokerDemo(routes(model)) as demo:
        model.script = [Fail(529, "overloaded", {"retry-after": "3"})]
        status, headers, got = ask(demo, "anthropic", False)
        equal((status, headers["retry-after"], json.loads(got)["error"]["message"]), (529, "3", "overloaded"), "it")
        line = demo.told("ended")
        equal((line["known"], line["status"]), (False, 529), "record")

# --- proxy requests, tunnels, interception -----------------------------------------------------


class Site(http.server.BaseHTTPRequestHandler):
    """Says what it was asked."""
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def do_GET(self):
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("Location", "http://127.0.0.1:1/inside")
            self.send_header("Set-Cookie", "session=1")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        length = int(self.headers.get("Content-Length") or 0)
        told = json.dumps({"path": self.path, "headers": dict(self.headers.items()),
                           "body": self.rfile.read(length).decode()}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_POST = do_GET


@contextlib.contextmanager
def site(certificate=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    if certificate:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class FakeServer:
    """Accepts connections, waits for the end of a head on each, and says always the same."""

    def __init__(self, answer, waits=True):
        self.answer, self.waits, self.heard = answer, waits, []
        self.server = socket.create_server(("127.0.0.1", 0))

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.server.accept()
                threading.Thread(target=self.serve_one, args=(sock,), daemon=True).start()

    def serve_one(self, sock):
        with sock, contextlib.suppress(OSError):
            if self.waits:
                self.heard.append(read_head(sock))
            sock.sendall(self.answer)
            drain(sock)

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self.server.getsockname()[1]

    def __exit__(self, *_):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


def read_reply(sock):
    head = read_head(sock).decode().lower()
    length, got = int(head.partition("content-length: ")[2].partition("\r\n")[0]), b""
    while len(got) < length:
        got += sock.recv(length - len(got))
    return json.loads(got)


@test
def a_plain_request_goes_through_the_proxy_and_redirects_come_back():
    with site() as port, BrokerDemo(f"host site.test:{port} local", hosts={"site.test": "127.0.0.1"}) as demo:
        status, _, got = demo.ask("GET", f"http://site.test:{port}/a/../b?c=d", headers={"Cookie": "mine=1", "Host": f"site.test:{port}"})
        equal(status, 200, "status")
        equal(json.loads(got)["path"], "/b?c=d", "path")
        equal(json.loads(got)["headers"]["Cookie"], "mine=1", "a client's own where nothing is put in")
        status, headers, _ = demo.ask("GET", f"http://site.test:{port}/redirect", headers={"Host": f"site.test:{port}"})
        equal((status, headers["location"], headers["set-cookie"]), (302, "http://127.0.0.1:1/inside", "session=1"), "redirect")
        equal(len(demo.asked()), 2, "asked")


@test
def a_mapped_name_arrives_at_port_80():
    with site() as port, BrokerDemo("host site.test:80 local header=x-proof:secret", hosts={"site.test": "127.0.0.1"}) as demo:
        del port
        status, _, _ = demo.ask("GET", "/x", port=80, headers={"Host": "site.test"})
        equal(status in (502, 504), True, "nobody listens at 80 outside")
        equal((demo.asked()[0]["way"], demo.asked()[0]["host"], demo.asked()[0]["port"]), (1, "site.test", 80), "asked")


@test
def connect_to_port_80_is_plain_http_inside():
    with site() as port, BrokerDemo(f"host site.test:{port} local", hosts={"site.test": "127.0.0.1"}) as demo:
        del port
        sock, _ = demo.tunnel("site.test:80")
        with sock:
            sock.sendall(b"GET /x HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
            assert b"403" in drain(sock).split(b"\r\n")[0]
        equal((demo.asked()[0]["way"], demo.asked()[0]["path"]), (1, "/x"), "asked")


@test
def a_tunnel_carries_tls_to_the_host_that_was_asked_for():
    with tempfile.TemporaryDirectory() as folder:
        ca, both = certificates(folder, "site.test")
        with site(both) as port, BrokerDemo(f"host site.test:{port} verdict=tunnel local",
                                            hosts={"site.test": "127.0.0.1"}) as demo:
            context = ssl.create_default_context(cafile=ca)
            with demo.secure(f"site.test:{port}", context=context) as sock:
                sock.sendall(b"GET /x HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
                assert b'"path": "/x"' in drain(sock)
            line = demo.told("ended")
            equal((line["way"], line["host"], line["status"]), (2, "site.test", 200), "record")
            assert line["sent"] > 300 and line["received"] > 500, line


@test
def tls_is_ended_for_a_host_with_a_credential():
    with tempfile.TemporaryDirectory() as folder:
        ca, both = certificates(folder, "site.test", "localhost")
        with site(both) as port, BrokerDemo(f"host site.test:{port} verdict=intercept header=authorization:Bearer+secret local",
                                            "--intercept", "site.test", ca=ca, hosts={"site.test": "127.0.0.1"}) as demo:
            with demo.secure(f"site.test:{port}") as sock:
                for path in ("/one", "/two"):
                    sock.sendall(f"GET {path} HTTP/1.1\r\nHost: site.test:{port}\r\nAuthorization: Bearer burrow-x\r\n\r\n".encode())
                    got = read_reply(sock)
                    equal((got["path"], got["headers"]["authorization"]), (path, "Bearer secret"), "request")
                sock.sendall(f"GET /redirect HTTP/1.1\r\nHost: site.test:{port}\r\n\r\n".encode())
                head = read_head(sock)
                assert b"Location: http://127.0.0.1:1/inside" in head and b"ookie" not in head, head
            equal([line["way"] for line in demo.asked()], [2, 3, 3, 3], "ways")
            demo.told("ended", lambda line: line["way"] == 2)
            assert "secret" not in demo.log()


@test
def the_name_at_port_443_is_enough():
    with tempfile.TemporaryDirectory() as folder:
        ca, _ = certificates(folder, "site.test")
        with BrokerDemo("host site.test verdict=intercept local", "--intercept", "site.test", ca=ca,
                        hosts={"site.test": "127.0.0.1"}) as demo:
            with demo.secure(None, name="site.test", port=443) as sock:
                sock.sendall(b"GET /x HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n")
                answer = drain(sock)
                assert b" 502 " in answer.split(b"\r\n")[0], answer  # nobody listens at 443 outside
            equal([(line["way"], line["port"]) for line in demo.asked()], [(2, 443), (3, 443)], "asked")


@test
def a_websocket_becomes_a_tunnel():
    with FakeServer(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello") as port:
        with BrokerDemo(f"host site.test:{port} local", hosts={"site.test": "127.0.0.1"}) as demo:
            with demo.connect() as sock:
                sock.sendall(f"GET http://site.test:{port}/ws HTTP/1.1\r\nHost: site.test:{port}\r\nUpgrade: websocket\r\n"
                             "Connection: Upgrade\r\nSec-WebSocket-Key: x\r\n\r\n".encode())
                assert b" 101 " in read_head(sock)
                equal(sock.recv(5), b"hello", "behind the head")
                sock.sendall(b"ping")
            line = demo.told("ended")
            equal((line["status"], line["received"]), (101, 5), "record")


@test
def a_forward_is_a_plain_connection():
    with FakeServer(b"220 ready\r\n", waits=False) as port:
        with BrokerDemo(f"tcp db.test:{port} local", "--forward", f"127.66.1.1:{port}:db.test",
                        hosts={"db.test": "127.0.0.1"}) as demo:
            with demo.connect(port, "127.66.1.1") as sock:
                equal(sock.recv(100), b"220 ready\r\n", "greeting")
            equal((demo.asked()[0]["way"], demo.asked()[0]["host"]), (4, "db.test"), "asked")
            equal(demo.told("ended")["received"], 11, "record")


@test
def a_right_that_is_gone_cuts_what_lasts():
    with ScriptedModel() as model, FakeServer(b"hi", waits=False) as port:
        gate = threading.Event()
        with BrokerDemo(routes(model) + f"\ntcp db.test:{port} local", "--forward", f"127.66.1.1:{port}:db.test",
                        hosts={"db.test": "127.0.0.1"}) as demo:
            model.script = [Wait(gate, Say("never seen"), between=True)]
            with demo.connect(port, "127.66.1.1") as tunnel, demo.connect() as stream:
                equal(tunnel.recv(2), b"hi", "tunnel")
                data = body(stream=True).encode()
                stream.sendall(b"POST /chat/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
                assert b" 200 " in read_head(stream)
                demo.cut()
                equal(drain(tunnel), b"", "tunnel")
                drain(stream)
                equal(len(demo.lines("ended")), 2, "both are told")
            gate.set()
            equal(demo.ask("GET", "/chat/models")[0], 200, "and the doors are open")


@test
def the_authority_is_good_for_its_hosts_alone():
    with BrokerDemo("", "--intercept", "one.test", "--intercept", "two.test") as demo:
        shown = subprocess.run(["openssl", "x509", "-noout", "-text"], input=demo.authority(), text=True, check=True,
                               capture_output=True).stdout
        for part in ("CA:TRUE, pathlen:0", "Certificate Sign", "DNS:one.test", "DNS:two.test", "Subject Key Identifier",
                     "X509v3 Name Constraints: critical", "X509v3 Basic Constraints: critical",
                     "X509v3 Key Usage: critical"):
            assert part in shown, (part, shown)
        equal(demo.lines("authority")[0]["has_key"], True, "key")
        assert "PRIVATE" not in demo.log()


main()
