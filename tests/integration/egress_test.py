#!/usr/bin/python3
# timeout: 600
"""What leaves sandboxes by a policy, against the daemon with real sandboxes: models by base URL with no
key inside, budgets, interception, tunnels, plain TCP, over freezes, hibernation and kill -9. One daemon
serves all tests; each test has sandboxes of its own."""

import contextlib
import datetime
import http.server
import json
import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from broker_demo import certificates  # noqa: E402
from control_plane import NATIVE, ControlPlane, Refused, main_with_plane  # noqa: E402
from program import wait_until  # noqa: E402
from scripted_model import KEY, Say, ScriptedModel, Usage, Wait  # noqa: E402
from tap import equal, test  # noqa: E402

PLANE = None  # the daemon
MODEL = None  # the model that its routes lead to
TLS = None  # a server of TLS that asks for a password
ECHO = None  # a plain TCP server
SECRET = "planted-credential-of-a-host"
NAMES = ("secret.test", "plain.test", "tcp.test")
TLS_PORT, PORT_TEXT = 443, ""
USED = Usage(input=11, output=7)


def of(name, path=""):
    return f"{NATIVE}/sandboxes/{name}{path}"


def policy(**more):
    return {"models": {"anthropic": "model", "openai": "model-openai", "google": "model-google"}, **more}


def make(name, key=None, **more):
    return PLANE.create(name, key=key, network="none", egress=policy(**more))


def run(name, command, **more):
    done = PLANE.execute(name, command, **more)
    return done["exitCode"], done["stdout"], done["stderr"]


def ask(name, path="/v1/messages", label="x-api-key: $ANTHROPIC_API_KEY", base="$ANTHROPIC_BASE_URL", **body):
    """A request to a model by curl inside: (status, body)."""
    body = {"model": "scripted", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}],
            "input": "hi", "contents": [{"parts": [{"text": "hi"}]}], **body}
    status, out, err = run(name, f"curl -sS -N -w '\\n%{{http_code}}' -H 'content-type: application/json' -H \"{label}\" "
                                 f"-d '{json.dumps(body)}' \"{base}{path}\"")
    text, _, code = out.rpartition("\n")
    return int(code or 0), text if status == 0 else text + err


def egress(name, key=None):
    return PLANE.call("GET", of(name, "/egress"), key=key)


def events(name, kind, count=1):
    def found():
        page = PLANE.call("GET", of(name, f"/events?type={kind}&limit=1000"))["events"]
        return len(page) >= count and [one["data"] for one in page]
    return wait_until(found, f"{count} of {kind}")


# --- models -----------------------------------------------------------------------------------------

@test
def a_sandbox_without_network_reaches_models_and_has_no_key():
    make("models")
    MODEL.script = None
    for path, label, base in (
            ("/v1/messages", "x-api-key: $ANTHROPIC_API_KEY", "$ANTHROPIC_BASE_URL"),
            ("/responses", "authorization: Bearer $OPENAI_API_KEY", "$OPENAI_BASE_URL"),
            ("/chat/completions", "authorization: Bearer $OPENAI_API_KEY", "$OPENAI_BASE_URL"),
            ("/v1beta/models/scripted:generateContent", "x-goog-api-key: $GEMINI_API_KEY", "$GOOGLE_GEMINI_BASE_URL")):
        for stream in (False, True):
            if "google" in base.lower() and stream:
                path = path.replace("generateContent", "streamGenerateContent") + "?alt=sse"
            status, text = ask("models", path, label, base, **({"stream": True} if stream else {}))
            equal(status, 200, f"status of {path} ({text})")
            assert "said" in text or "You" in text, text
            equal(MODEL.questions[-1].key, KEY, "key at the model")
    told = events("models", "egress.request", 8)
    equal({one["route"] for one in told}, {"anthropic", "openai", "google"}, "routes")
    assert all(one["tokens"]["input"] > 0 and one["costMicros"] > 0 and one["model"] == "scripted" for one in told), told
    assert KEY not in json.dumps(told) + json.dumps(egress("models")) + PLANE.log()
    equal(run("models", "env | grep -c burrow- || true")[1].strip() != "0", True, "labels inside")
    equal(run("models", f"env | grep {KEY}")[0], 1, "the key is not inside")


@test
def python_and_node_reach_it_too():
    make("clients")
    MODEL.script = None
    code = ("import os, json, urllib.request as u; r = u.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', "
            "json.dumps({'model': 'scripted', 'messages': [{'role': 'user', 'content': 'py'}]}).encode(), "
            "{'x-api-key': os.environ['ANTHROPIC_API_KEY'], 'content-type': 'application/json'}); print(u.urlopen(r).read())")
    status, out, err = run("clients", ["python3", "-c", code])
    equal(status, 0, err)
    assert "You said: py" in out, out
    code = ("fetch(process.env.OPENAI_BASE_URL + '/chat/completions', {method: 'POST', headers: {'content-type': "
            "'application/json', authorization: 'Bearer ' + process.env.OPENAI_API_KEY}, body: JSON.stringify({model: "
            "'scripted', messages: [{role: 'user', content: 'js'}]})}).then(r => r.text()).then(console.log)")
    status, out, err = run("clients", ["node", "-e", code])
    equal(status, 0, err)
    assert "You said: js" in out, out


@test
def only_what_models_are_asked_by_gets_out():
    make("paths")
    equal(ask("paths", "/v1/files")[0], 404, "files")
    equal(ask("paths", "/v1/messages/batches")[0], 404, "batches")
    status, text = ask("paths", "/v1/x", base="http://127.66.0.1:8790/other")
    equal(status, 403, text)
    equal(json.loads(text)["error"]["type"], "egress_denied", "type")
    denied = events("paths", "egress.denied", 2)
    equal({one["reason"] for one in denied}, {"path", "route"}, "reasons")
    status, text = ask("paths", label="x-api-key: burrow-openai")
    equal(status, 403, text)
    equal(events("paths", "egress.violation")[0]["reason"], "placeholder", "reason")
    asked = len(MODEL.questions)
    status, text = ask("paths", label=f"x-api-key: {PLANE.key}")
    equal((status, len(MODEL.questions)), (403, asked), text)


@test
def nothing_else_is_reached():
    """From inside: no route, no other host, no address of this machine, no name server."""
    make("alone")
    code = """
import socket
def tried(family, kind, address):
    with socket.socket(family, kind) as sock:
        sock.settimeout(3)
        try:
            sock.connect(address)
            return True
        except OSError:
            return False
seen = []
for address in ("1.1.1.1", "10.0.0.1", "169.254.169.254", "192.168.1.1", "172.17.0.1"):
    for port in (53, 80, 443, 8787, 8790):
        if tried(socket.AF_INET, socket.SOCK_STREAM, (address, port)):
            seen.append((address, port))
for port in list(range(1, 1024)) + [int(PORT), 8787]:
    if tried(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)):
        seen.append(("127.0.0.1", port))
try:
    seen.append(socket.getaddrinfo("example.org", 80))
except OSError:
    pass
with open("/proc/net/route") as routes:
    seen += routes.read().splitlines()[1:]
print(seen)
""".replace("PORT", repr(PLANE.address.rpartition(":")[2]))
    status, out, err = run("alone", ["python3", "-c", code], timeout=120)
    equal((status, out.strip()), (0, "[]"), err)
    status, _, err = run("alone", "curl -sS -m 10 http://example.org/")
    assert status == 22 or status == 0 or "403" in err or status == 56, (status, err)
    equal(run("alone", "curl -s -o /dev/null -w '%{http_code}' http://example.org/")[1], "403", "denied host")
    equal(run("alone", "curl -s -o /dev/null -w '%{http_connect}' https://example.org/")[1], "403", "denied host, TLS")


# --- budgets ----------------------------------------------------------------------------------------

@test
def a_budget_cuts_a_stream_and_refuses_what_follows():
    make("budget", budget={"tokensPerDay": 300})
    MODEL.script = [Say("x" * 4000, Usage(input=11, output=500))]
    status, text = ask("budget", stream=True)
    equal(status, 200, text)
    assert "budget" in text, text[-300:]
    status, text = ask("budget")
    equal(status, 429, text)
    error = json.loads(text)
    equal((error["type"], error["error"]["type"]), ("error", "budget_exceeded"), "error")
    assert "tokens of today" in error["error"]["message"], error
    told = events("budget", "egress.request")
    assert told[0]["partial"] and told[0]["tokens"]["output"] > 0, told
    assert "used_up" in {one["reason"] for one in events("budget", "egress.budget")}
    # It is the sandbox's, and goes on with another one.
    PLANE.call("PATCH", of("budget", "/egress"), {"budget": {"tokensPerDay": 100000}})
    MODEL.script = None
    equal(ask("budget")[0], 200, "after more was given")


@test
def requests_of_a_minute_are_counted():
    make("minute", budget={"requestsPerMinute": 2})
    MODEL.script = None
    equal([ask("minute")[0] for _ in range(3)], [200, 200, 429], "statuses")


@test
def usage_is_added_up_and_outlasts_the_sandbox():
    eve = PLANE.user("eve-of-usage")
    PLANE.call("PUT", f"{NATIVE}/credentials/model", {"kind": "anthropic", "value": KEY}, key=eve)
    box = PLANE.create("spender", key=eve, network="none", labels={"task": "t1"},
                       egress={"models": {"anthropic": "model"}})
    MODEL.script = [Say("a", USED), Say("b", USED)]
    for _ in range(2):
        done = PLANE.execute(
            "spender", "curl -sS -H \"x-api-key: $ANTHROPIC_API_KEY\" -d '{\"model\":\"scripted\",\"messages\":[]}' "
            "$ANTHROPIC_BASE_URL/v1/messages", key=eve)
        equal(done["exitCode"], 0, done)
    PLANE.call("DELETE", of("spender"), key=eve)

    def told(by):
        return wait_until(lambda: [one for one in PLANE.call("GET", f"{NATIVE}/usage?by={by}", key=eve)["usage"]
                                   if one["requests"] == 2 and not one["partial"]], f"usage by {by}")[0]
    for by, key in (("sandbox", box["id"]), ("model", "scripted"), ("task", "t1"), ("route", "anthropic")):
        one = told(by)
        equal((one[by], one["tokens"]["input"], one["tokens"]["output"]), (key, 22, 14), by)
        # 3 and 15 for a million tokens
        equal((one["cost"], one["costKnown"]), ("0.000276", True), "cost")
    everybody = PLANE.call("GET", f"{NATIVE}/usage?by=owner")["usage"]
    assert len(everybody) >= 2, everybody
    page = PLANE.call("GET", f"{NATIVE}/usage?by=owner&limit=1")
    equal((len(page["usage"]), page["nextCursor"]), (1, page["usage"][0]["owner"]), "a page")
    assert PLANE.call("GET", f"{NATIVE}/usage?by=owner&limit=1&cursor={page['nextCursor']}")["usage"] != page["usage"]


@test
def a_model_of_unknown_price_costs_null_and_never_nothing():
    make("priceless")
    MODEL.script = None
    equal(ask("priceless", model="nobody-knows")[0], 200, "status")
    told = events("priceless", "egress.request")[0]
    equal((told["model"], told["costMicros"]), ("nobody-knows", None), "cost")
    usage = wait_until(lambda: [one for one in PLANE.call("GET", f"{NATIVE}/usage?by=model")["usage"]
                                if one["model"] == "nobody-knows" and one["unpriced"]], "usage")[0]
    equal((usage["costKnown"], usage["costMicros"]), (False, 0), "usage")


# --- hosts ------------------------------------------------------------------------------------------

@test
def tls_of_a_host_with_a_credential_is_ended_and_the_secret_put_in():
    PLANE.call("PUT", f"{NATIVE}/credentials/secret",
               {"kind": "bearer", "value": SECRET, "hosts": ["secret.test"]})
    make("inside", rules=[{"host": "secret.test", "credential": "secret", "paths": ["/open/**"]}])
    TLS.seen.clear()
    for how in ("", "--noproxy '*' "):  # by the proxy, and by the name in /etc/hosts
        status, out, err = run("inside", f"curl -sS {how}https://secret.test/open/door")
        equal((status, out), (0, "open sesame"), err)
    equal({one[1] for one in TLS.seen}, {f"Bearer {SECRET}"}, "what the server saw")
    status, out, _ = run("inside", "curl -sS -w '%{http_code}' https://secret.test/closed")
    assert out.endswith("403"), out
    status, out, err = run("inside", ["node", "-e",
                                      "fetch('https://secret.test/open/x').then(r => r.text()).then(console.log)"])
    equal((status, out.strip()), (0, "open sesame"), err)
    status, out, err = run("inside", ["python3", "-c", "import urllib.request as u; "
                                                       "print(u.urlopen('https://secret.test/open/y').read())"])
    equal((status, out.strip()), (0, "b'open sesame'"), err)
    equal(run("inside", f"env | grep -c '{SECRET}'; grep -rlF '{SECRET}' /workspace /run /etc /tmp 2>/dev/null")[1].strip(),
          "0", "the secret is not inside")
    # A credential that is gone opens nothing.
    PLANE.call("DELETE", f"{NATIVE}/credentials/secret")
    assert run("inside", "curl -sS -w '%{http_code}' https://secret.test/open/door")[1].endswith("403")


@test
def other_hosts_are_tunnelled_and_see_nothing_of_ours():
    make("tunnel", rules=[{"host": "plain.test"}])
    TLS.seen.clear()
    status, out, err = run("tunnel", "curl -sS -k -H 'authorization: Bearer mine' https://plain.test/")
    equal((status, out), (0, "open sesame"), err)
    equal(TLS.seen, [("plain.test", "Bearer mine")], "seen")
    told = events("tunnel", "egress.request")[0]
    equal((told["way"], told["host"], told["port"]), ("connect", "plain.test", 443), "told")
    assert told["received"] > 0 and "path" not in told, told


@test
def plain_tcp_goes_where_a_rule_says():
    made = make("tcp", rules=[{"host": "tcp.test", "port": ECHO.port, "protocol": "tcp"}])
    equal(made["egress"]["rules"][0]["protocol"], "tcp", "rule")
    listening = egress("tcp")["listening"]
    equal(listening, [f"127.66.1.1:{ECHO.port} tcp.test"], "listening")
    code = (f"import socket; s = socket.create_connection(('tcp.test', {ECHO.port}), 10); s.sendall(b'hello'); "
            "print(s.recv(100))")
    status, out, err = run("tcp", ["python3", "-c", code])
    equal((status, out.strip()), (0, "b'HELLO'"), err)


@test
def a_refresh_token_becomes_a_key_outside_and_another_one_when_it_expires():
    with tokens() as server:
        PLANE.call("PUT", f"{NATIVE}/credentials/login", {
            "kind": "oauth", "api": "openai", "refreshToken": "refresh-1", "clientId": "me",
            "tokenUrl": f"http://127.0.0.1:{server.server_address[1]}/token"})
        PLANE.create("logged-in", network="none", egress={"models": {"openai": "login"}})
        MODEL.script = None
        label, base = "authorization: Bearer $OPENAI_API_KEY", "$OPENAI_BASE_URL"
        status, text = ask("logged-in", "/chat/completions", label, base)
        equal(status, 200, text)
        # It expires within five minutes: another one is asked for by itself, with the newest refresh token.
        wait_until(lambda: len(server.seen) > 1, "it is renewed")
        equal(server.seen[:2], ["refresh-1", "refresh-2"], "refresh tokens")
        server.status = 400

        def is_over():
            shown = PLANE.call("GET", f"{NATIVE}/credentials/login")
            return "log in again" in shown.get("failure", "") and shown["expiresAt"] < wall_clock()
        wait_until(is_over, "it has expired and is not renewed")
        status, text = ask("logged-in", "/chat/completions", label, base)
        assert status >= 400 and "renew" in text and "refresh-" not in text, (status, text)
        types = [one["type"] for one in PLANE.call("GET", f"{NATIVE}/events?type=credential.&limit=1000")["events"]]
        assert "credential.renewal_failed" in types, types


# --- changes ----------------------------------------------------------------------------------------

@test
def a_policy_changes_while_it_runs():
    PLANE.create("changing", network="none")
    equal(egress("changing")["open"], False, "open")
    equal(run("changing", "curl -s -m 5 http://127.66.0.1:8790/anthropic/v1/models")[0] != 0, True, "nothing listens")
    PLANE.call("PATCH", of("changing", "/egress"), {"models": {"anthropic": "model"}})
    equal(egress("changing")["open"], True, "open")
    MODEL.script = None
    equal(ask("changing")[0], 200, "by the new policy")
    PLANE.call("PATCH", of("changing", "/egress"), {"rules": [{"host": "plain.test"}]})
    assert "plain.test" in run("changing", "cat /etc/hosts")[1]
    equal(ask("changing")[0], 200, "what was not said stays")
    PLANE.call("PATCH", of("changing"), {"egress": None})
    equal(egress("changing")["policy"], None, "policy")
    assert "plain.test" not in run("changing", "cat /etc/hosts; env")[1]
    equal(run("changing", "curl -s -m 5 http://127.66.0.1:8790/anthropic/v1/models")[0] != 0, True, "it is closed")


@test
def policies_and_credentials_that_cannot_be_meant_are_refused():
    for body, word in (({"rules": [{"host": "*", "credential": "x"}]}, "credential"),
                       ({"rules": [{"host": "https://x"}]}, "host"), ({"budget": {"costPerDay": "much"}}, "costPerDay")):
        try:
            PLANE.create("wrong", network="none", egress=body)
        except Refused as refusal:
            equal(refusal.status, 400, body)
            assert word in refusal.body["error"]["message"], refusal.body
        else:
            raise AssertionError(body)
    for body, word in (({"kind": "header", "value": "x", "hosts": ["a.test"]}, "header"),
                       ({"kind": "bearer", "value": "x"}, "hosts"), ({"kind": "bearer", "value": "a\nb"}, "value"),
                       ({"kind": "anthropic"}, "value"), ({"kind": "nothing", "value": "x"}, "kind"),
                       ({"kind": "bearer", "value": "x", "hosts": ["*"]}, "hosts")):
        answer = PLANE.ask("PUT", f"{NATIVE}/credentials/wrong", body)
        equal(answer.status, 400, body)
        assert word in json.loads(answer.body)["error"]["message"], answer.body


@test
def a_credential_is_shown_without_its_value_and_goes_nowhere_else():
    shown = PLANE.call("PUT", f"{NATIVE}/credentials/shown", {"kind": "basic", "value": f"me:{SECRET}", "hosts": ["a.test"]})
    assert SECRET not in json.dumps([shown, PLANE.call("GET", f"{NATIVE}/credentials"),
                                     PLANE.call("GET", f"{NATIVE}/credentials/shown")])
    equal((shown["kind"], shown["hosts"]), ("basic", ["a.test"]), "shown")
    make("elsewhere", rules=[{"host": "secret.test", "credential": "shown"}])
    TLS.seen.clear()
    status, out, _ = run("elsewhere", "curl -sS -w '%{http_code}' https://secret.test/open/door")
    assert out.endswith("403") and "not for host" in out, out
    equal(TLS.seen, [], "nothing was asked")


@test
def defaults_of_an_owner_are_what_new_sandboxes_get():
    eve = PLANE.user("eve-of-defaults")
    equal(PLANE.ask("PATCH", f"{NATIVE}/egress", {"budget": {"tokensPerDay": 5}}, key=eve).status, 403, "her own budget")
    PLANE.call("PATCH", f"{NATIVE}/egress", {"policy": {"rules": [{"host": "plain.test"}]}}, key=eve)
    equal(PLANE.create("by-default", key=eve, network="none")["egress"]["rules"], [{"host": "plain.test"}], "policy")
    equal(PLANE.call("PATCH", f"{NATIVE}/egress?owner=eve-of-defaults", {"budget": {"tokensPerDay": 1}})["budget"],
          {"tokensPerDay": 1}, "budget")
    PLANE.call("PUT", f"{NATIVE}/credentials/model", {"kind": "anthropic", "value": KEY}, key=eve)
    PLANE.create("limited", key=eve, network="none", egress={"models": {"anthropic": "model"}})
    MODEL.script = [Say("one", USED)]
    command = ("curl -s -o /dev/null -w '%{http_code}' -d '{\"model\":\"scripted\",\"messages\":[]}' "
               "$ANTHROPIC_BASE_URL/v1/messages")
    equal([PLANE.execute("limited", command, key=eve)["stdout"] for _ in range(2)], ["200", "429"], "statuses")


# --- over sleep and death -----------------------------------------------------------------------------

@test
def it_is_there_after_a_freeze_and_after_hibernation():
    make("sleepy", rules=[{"host": "plain.test"}])
    MODEL.script = None
    PLANE.call("POST", of("sleepy", "/sleep"))
    equal(ask("sleepy")[0], 200, "after a freeze")
    PLANE.call("PATCH", of("sleepy"), {"hibernateAfter": "1s"})
    PLANE.call("POST", of("sleepy", "/sleep"))
    wait_until(lambda: PLANE.sandbox("sleepy")["status"] == "hibernated", "it is hibernated")
    equal(egress("sleepy")["open"], False, "open without processes")
    equal(ask("sleepy")[0], 200, "after hibernation")
    PLANE.call("POST", of("sleepy", "/stop"))
    wait_until(lambda: not egress("sleepy")["open"], "it is closed")
    PLANE.call("POST", of("sleepy", "/start"))
    equal(ask("sleepy")[0], 200, "after a stop")
    fork = PLANE.call("POST", of("sleepy", "/fork"), {"name": "dreamer"})
    assert fork, fork
    equal(ask("dreamer")[0], 200, "of a fork")


@test
def it_is_there_after_kill_9_and_no_cost_is_lost():
    PLANE.create("survivor", network="none", labels={"task": "survival"}, egress=policy(budget={"tokensPerDay": 100}))
    PLANE.create("frozen-survivor", network="none", egress=policy())
    PLANE.call("POST", of("frozen-survivor", "/sleep"))
    MODEL.script = [Say("a", Usage(input=50, output=40))]
    equal(ask("survivor")[0], 200, "before")
    wait_until(lambda: [one for one in PLANE.call("GET", f"{NATIVE}/usage?by=task")["usage"]
                        if one["task"] == "survival" and one["tokens"]["input"] == 50], "it is kept")
    gate = threading.Event()
    MODEL.script = [Wait(gate, Say("b", Usage(input=2, output=1)), between=True)]
    streaming = threading.Thread(target=ask_quietly, args=("survivor",))
    streaming.start()
    wait_until(lambda: [one for one in PLANE.call("GET", f"{NATIVE}/usage?by=task")["usage"]
                        if one["task"] == "survival" and one["partial"] == 1], "one is under way")
    PLANE.kill_hard("daemon")
    gate.set()
    streaming.join()
    wait_until(lambda: egress("survivor")["open"], "it is open again")
    usage = [one for one in PLANE.call("GET", f"{NATIVE}/usage?by=task")["usage"] if one["task"] == "survival"][0]
    equal((usage["requests"], usage["partial"]), (2, 1), "requests")
    assert usage["tokens"]["input"] >= 50 and usage["tokens"]["output"] >= 40, usage
    MODEL.script = None
    statuses = [ask("survivor")[0] for _ in range(3)]
    equal(statuses[-1], 429, "the budget goes on")
    equal(ask("frozen-survivor")[0], 200, "one that was frozen")


def ask_quietly(name):
    with contextlib.suppress(Exception):
        ask(name, stream=True)


# --- what they talk to --------------------------------------------------------------------------------

class TlsHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def do_GET(self):
        self.server.seen.append((self.headers["host"], self.headers.get("authorization")))
        self.send_response(200)
        self.send_header("Content-Length", "11")
        self.end_headers()
        self.wfile.write(b"open sesame")


class TlsServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


@contextlib.contextmanager
def tls_server(both):
    server = TlsServer(("127.0.0.1", TLS_PORT), TlsHandler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class TokenHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def do_POST(self):
        form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.server.seen.append(form["refresh_token"][0])
        body = json.dumps({"access_token": KEY, "refresh_token": f"refresh-{len(self.server.seen) + 1}",
                           "expires_in": 1}).encode()
        status = self.server.status
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body if status == 200 else b"{}")


@contextlib.contextmanager
def tokens():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), TokenHandler)
    server.seen, server.status = [], 200
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def wall_clock():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class Echo:
    """Says everything again, in capitals."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                connection = self.socket.accept()[0]
            except OSError:
                return
            with connection:
                while data := connection.recv(1000):
                    connection.sendall(data.upper())


class EgressPlane(ControlPlane):
    authority = None

    def __init__(self, *flags):
        super().__init__(*flags, environment={"SSL_CERT_FILE": self.authority})


def prepare():
    for name, kind in (("model", "anthropic"), ("model-openai", "openai"), ("model-google", "google")):
        PLANE.call("PUT", f"{NATIVE}/credentials/{name}", {"kind": kind, "value": KEY})


def serve_names(folder):
    """Names of our own, in the mount namespace that is ours."""
    path = os.path.join(folder, "hosts")
    with open(path, "w", encoding="ascii") as file:
        file.write("127.0.0.1 localhost\n" + "".join(f"127.0.0.1 {name}\n" for name in NAMES))
    subprocess.run(["mount", "--bind", path, "/etc/hosts"], check=True)


def whole():
    global MODEL, TLS, ECHO
    if os.geteuid() != 0:
        return main_with_plane("egress")
    with tempfile.TemporaryDirectory() as folder, ScriptedModel() as MODEL:
        serve_names(folder)
        os.chmod(folder, 0o755)
        EgressPlane.authority, both = certificates(folder, *NAMES)
        os.chmod(EgressPlane.authority, 0o644)
        ECHO = Echo()
        with tls_server(both) as TLS:
            return main_with_plane(
                "egress", "--broker-networks", "127.0.0.1", "--prices", "scripted=3/15",
                "--model-upstreams", f"anthropic={MODEL.url}/v1,openai={MODEL.url}/v1,google={MODEL.url}/v1beta",
                plane=EgressPlane, prepare=prepare)


sys.exit(whole())
