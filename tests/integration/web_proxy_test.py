#!/usr/bin/python3
# timeout: 300
"""Burrow behind real web servers, nginx and Caddy, set up as docs/operations.md says: everything
works, and who is behind them gets no right by it."""

import hashlib
import json
import os
import random
import ssl
import sys
import time
from contextlib import suppress

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from control_plane import NATIVE, main_with_plane  # noqa: E402
from http_raw import request  # noqa: E402
from preview_shop import Shop  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, test  # noqa: E402
from web_proxy import API, PREVIEWS, Caddy, Nginx, need  # noqa: E402
from websocket_raw import BINARY, CLOSE, WebSocket, accept_of, frame, handshake  # noqa: E402

PLANE = None  # set by main_with_plane
BOX = "shop"
SHOP = None
NONCE = "dGhlIHNhbXBsZSBub25jZQ=="
LARGE = 20 << 20
HIJACK_SECONDS = 0.2  # Caddy 2.6 loses what comes before it has given up its own reader
ADA = {"name": "Ada", "email": "ada@example.org", "password": "correct horse"}
TRIES = 40  # more than any address has


def behind_each(function):
    """A test behind nginx and one behind Caddy."""
    def begin(kind):
        def run():
            need(kind)
            with kind(PLANE) as proxy:
                function(proxy)
        run.__name__ = f"{function.__name__}_behind_{kind.program}"
        test(run)
    for kind in (Nginx, Caddy):
        begin(kind)
    return function


def ask(proxy, method, path, body=None, key=None, headers=(), source="127.0.0.1", host=API):
    """The answer to one request through the proxy; `body` is bytes, or anything else as JSON."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{proxy.port}", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    if key:
        lines.append(f"Authorization: Bearer {key}")
    if body is not None and not isinstance(body, bytes):
        body = json.dumps(body).encode()
        lines.append("Content-Type: application/json")
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    with proxy.connect(host, source) as connection:
        connection.send("\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b""))
        return connection.response(method)


def preview_host():
    """The name of the preview, without our port."""
    return SHOP.host.partition(":")[0]


def open_socket(proxy, path, host=API, key=None):
    """A WebSocket through the proxy."""
    connection = proxy.connect(host)
    extra = [f"Authorization: Bearer {key}"] if key else []
    shake = handshake(path, NONCE, extra).replace(b"Host: localhost",
                                                  f"Host: {host}:{proxy.port}".encode())
    connection.send(shake)
    head = connection.response_head()
    equal((head.status, head.headers["sec-websocket-accept"]), (101, accept_of(NONCE)), path)
    return WebSocket(connection)


# --- what works ----------------------------------------------------------------------------------

@behind_each
def previews_come_by_their_host(proxy):
    answer = ask(proxy, "POST", "/some/path?x=1", b"hello", host=preview_host())
    equal(answer.status, 200, answer)
    told = json.loads(answer.body)
    equal((told["method"], told["path"], told["body"]), ("POST", "/some/path?x=1", "hello"), "told")
    headers = dict(told["headers"])
    equal(headers["x-forwarded-proto"], "https", "how the client came")
    equal(headers["x-forwarded-for"], "127.0.0.1", "who the client is")
    equal(headers["x-original-url"], f"https://{preview_host()}:{proxy.port}/some/path?x=1", "url")
    wrong = preview_host().replace(SHOP.exposed["token"], "x" * 16)
    equal(ask(proxy, "GET", "/", host=wrong).status, 404, "a wrong token")
    equal(ask(proxy, "GET", "/burrow/v1/whoami", host=wrong, key=PLANE.key).status, 404, "the API")
    with open_socket(proxy, "/socket", preview_host()) as client:
        time.sleep(HIJACK_SECONDS)
        client.connection.send(frame(1, b"through all"))
        equal(client.receive()[2], b"through all", "echo")


@behind_each
def terminals_come_over_websockets(proxy):
    with open_socket(proxy, f"{NATIVE}/sandboxes/{BOX}/terminals?sessionId={proxy.port}",
                     key=PLANE.key) as client:
        client.receive()  # it is ready
        client.send(BINARY, b"echo $((6*7))-told\n")
        told = b""
        while b"42-told" not in told:
            _, opcode, payload = client.receive()
            assert opcode != CLOSE, payload
            told += payload


@behind_each
def events_come_at_once(proxy):
    lines = [f"GET {NATIVE}/events?stream=1 HTTP/1.1", f"Host: {API}", f"Authorization: Bearer {PLANE.key}"]
    with proxy.connect(API) as connection:
        connection.send("\r\n".join(lines).encode() + b"\r\n\r\n")
        equal(connection.response_head().headers["content-type"], "text/event-stream", "type")
        mark = f"m{proxy.port}"
        PLANE.call("PATCH", f"{NATIVE}/sandboxes/{BOX}", {"labels": {"mark": mark}})
        connection.read_until(b"sandbox.")


@behind_each
def large_files_go_both_ways(proxy):
    data = random.Random(1).randbytes(LARGE)
    path = f"{NATIVE}/sandboxes/{BOX}/files/workspace/large"
    equal(ask(proxy, "PUT", path, data, PLANE.key).status // 100, 2, "put")
    answer = ask(proxy, "GET", path, key=PLANE.key)
    equal(hashlib.sha256(answer.body).digest(), hashlib.sha256(data).digest(), "got")
    chunks = b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"
    with proxy.connect(API) as connection:
        connection.send(f"PUT {path} HTTP/1.1\r\nHost: {API}\r\nAuthorization: Bearer {PLANE.key}\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n".encode() + chunks)
        equal(connection.response().status // 100, 2, "put in chunks")
    equal(ask(proxy, "GET", path, key=PLANE.key).body, b"hello world", "got")


# --- who one is ----------------------------------------------------------------------------------

@behind_each
def an_address_is_the_proxys_word_and_not_the_clients(proxy):
    """Whoever lies about where he comes from is still himself: he alone has too many tries."""
    liar, honest = f"127.0.{proxy.port % 250}.7", f"127.0.{proxy.port % 250}.8"
    lies = [[("X-Forwarded-For", "10.9.8.7")], [("X-Forwarded-For", "127.0.0.1, 127.0.0.1")],
            [("X-Forwarded-For", "10.9.8.7"), ("X-Forwarded-For", "127.0.0.1")],
            [("X-Forwarded-For", "a" * 3000)], [("X-Forwarded-For", "127.0.0.1, " * 200)],
            [("X-Real-IP", "127.0.0.1"), ("Forwarded", "for=127.0.0.1")], [("X_Forwarded_For", "1.1.1.1")]]
    asked = [ask(proxy, "GET", f"{NATIVE}/whoami", key="burrow_wrong", source=liar, headers=lie) for lie in lies]
    equal({answer.status for answer in asked}, {401}, "wrong keys")
    ids = {answer.headers["x-request-id"] for answer in asked}

    def addresses():
        told = PLANE.call("GET", f"{NATIVE}/audit?limit=1000")["entries"]
        return [entry["address"] for entry in told if entry["requestId"] in ids]
    # More of the same from one address is counted; of another there would be an entry.
    wait_until(addresses, "it is in the audit log")
    # Another address each time, as he says.
    statuses = [ask(proxy, "GET", f"{NATIVE}/whoami", key=f"burrow_wrong{number}", source=liar,
                    headers=[("X-Forwarded-For", f"10.0.0.{number}")]).status
                for number in range(TRIES)]
    assert 429 in statuses, statuses
    for lie in lies:
        equal(ask(proxy, "GET", f"{NATIVE}/whoami", key=PLANE.key, source=honest,
                  headers=lie).status, 200, f"{lie}"[:80])
    equal(ask(proxy, "GET", f"{NATIVE}/whoami", key="burrow_wrong", source=honest).status, 401, "another")
    equal(set(addresses()), {liar}, "where the audit log says that they came from")


@behind_each
def a_login_is_bound_to_tls(proxy):
    person = {**ADA, "email": f"{proxy.port}@example.org"}
    PLANE.call("POST", f"{NATIVE}/users", person)
    answer = ask(proxy, "POST", "/api/auth/sign-in/email", person)
    equal(answer.status, 200, answer)
    cookies = answer.headers.all("set-cookie")
    assert cookies and all(one.startswith("__Host-") and "Secure" in one and "HttpOnly" in one
                           for one in cookies), cookies
    name, _, value = cookies[0].split(";")[0].partition("=")
    equal(ask(proxy, "GET", f"{NATIVE}/whoami", headers=[("Cookie", f"{name}={value}")]).status, 200, "it")
    equal(ask(proxy, "GET", f"{NATIVE}/whoami",
              headers=[("Cookie", f"{name.removeprefix('__Host-')}={value}")]).status, 401, "planted")
    # It reaches no application, and a page of one cannot use it.
    told = ask(proxy, "GET", "/look", host=preview_host(), headers=[("Cookie", f"{name}={value}; a=1")])
    assert value not in told.body.decode(), told
    equal(ask(proxy, "POST", f"{NATIVE}/sandboxes", {}, headers=[
        ("Cookie", f"{name}={value}"), ("Origin", f"https://{preview_host()}")]).status, 403, "CSRF")


def the_door_is_shut(kind, *flags):
    """Nobody becomes an administrator of a fresh daemon behind the proxy, whatever he says."""
    with Burrow(*flags) as server:
        wait_until(lambda: request(server.address, "GET", "/ready").status == 200, "its store is open")
        with kind(server) as proxy:
            for headers in ((), [("X-Forwarded-For", "127.0.0.1")], [("X-Forwarded-Proto", "http")],
                            [("X-Real-IP", "127.0.0.1")], [("X-Forwarded-Host", "127.0.0.1")]):
                answer = ask(proxy, "POST", "/api/auth/sign-up/email", ADA, headers=headers)
                equal(answer.status, 403, answer)
            equal(ask(proxy, "GET", f"{NATIVE}/users").status, 401, "the users")
            equal(ask(proxy, "GET", f"{NATIVE}/users", key=server.key).status, 200, "with the key")
            equal(ask(proxy, "POST", "/api/auth/sign-up/email", ADA, server.key).status, 200, "with the key")


def everybody_stands_before_a_shut_door(kind):
    need(kind)
    the_door_is_shut(kind)
    the_door_is_shut(kind, "--trusted-proxies", "127.0.0.1")


@test
def everybody_stands_before_a_shut_door_behind_nginx():
    everybody_stands_before_a_shut_door(Nginx)


@test
def everybody_stands_before_a_shut_door_behind_caddy():
    everybody_stands_before_a_shut_door(Caddy)


# --- what is read twice --------------------------------------------------------------------------

POST = f"POST {NATIVE}/whoami HTTP/1.1\r\nHost: {API}\r\nConnection: close\r\n".encode()
SECOND = b"GET /smuggled HTTP/1.1\r\nHost: " + API.encode() + b"\r\n\r\n"
AMBIGUOUS = (b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" % (5 + len(SECOND)),
             b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
             b"Transfer-Encoding: xchunked\r\nContent-Length: %d\r\n\r\n" % len(SECOND),
             b"Transfer-Encoding : chunked\r\nContent-Length: %d\r\n\r\n" % len(SECOND),
             b"Transfer_Encoding: chunked\r\nContent-Length: %d\r\n\r\n" % len(SECOND),
             b"Content-Length: 0\r\nContent-Length: %d\r\n\r\n" % len(SECOND),
             b"Content-Length: %d\r\nExpect: 100-continue\r\n\r\n" % len(SECOND),
             b"Upgrade: websocket\r\nConnection: Upgrade\r\nContent-Length: %d\r\n\r\n" % len(SECOND),
             b"Connection: Content-Length\r\nContent-Length: %d\r\n\r\n" % len(SECOND),
             b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n"
             b"Content-Length: %d\r\n\r\n" % len(SECOND))


@behind_each
def no_second_request_is_smuggled_past_it(proxy):
    """The client says that it asks once: what we take for a second request, the proxy did not."""
    before = PLANE.log().count("/smuggled")
    for rest in AMBIGUOUS:
        with proxy.connect(API) as connection, suppress(ConnectionError, ssl.SSLError):
            connection.send(POST + rest + SECOND)
            while connection.read_some():
                pass
        assert connection.buffer.startswith(b"HTTP/1.1 "), (rest, connection.buffer)
    ask(proxy, "GET", f"/behind-{proxy.port}", key=PLANE.key)
    wait_until(lambda: f"/behind-{proxy.port}" in PLANE.log(), "what came last is in the log")
    equal(PLANE.log().count("/smuggled"), before, "requests that nobody made")


@test
def no_application_makes_nginx_tell_its_own_files():
    need(Nginx)
    inside = (r"    location / \{", "    location /internal/ { internal; alias /etc/; }\n    location / {")
    with Nginx(PLANE, inside) as proxy:
        PLANE.call("PUT", f"{NATIVE}/sandboxes/{BOX}/files/workspace/teller.py", TELLER.encode())
        PLANE.call("POST", f"{NATIVE}/sandboxes/{BOX}/processes", {"command": "exec python3 teller.py"})
        exposed = PLANE.call("POST", f"{NATIVE}/sandboxes/{BOX}/ports", {"port": 8090})
        host = exposed["url"].split("/")[2].partition(":")[0]
        answer = wait_until(lambda: (told := ask(proxy, "GET", "/", host=host)).status == 200 and told,
                            "the application")
        equal(answer.body, b"mine", "of the application, and of no file of the host")
        equal(ask(proxy, "GET", "/internal/passwd").status, 404, "internal")


TELLER = '''
import http.server

class Teller(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        for name in ("X-Accel-Redirect", "X-Sendfile", "X-Accel-Buffering"):
            self.send_header(name, "/internal/passwd")
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"mine")

http.server.HTTPServer(("127.0.0.1", 8090), Teller).serve_forever()
'''


def open_shop():
    global SHOP  # pylint: disable=global-statement
    SHOP = Shop(PLANE, name=BOX)


sys.exit(main_with_plane("behind proxies", "--trusted-proxies", "127.0.0.1", "--preview-host", f"https://{PREVIEWS}",
                         prepare=open_shop))
