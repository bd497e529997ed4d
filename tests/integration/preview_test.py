#!/usr/bin/python3
# timeout: 600
"""Previews: a port of a sandbox from outside, by host name and by path, and nothing else with it."""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import free_port  # noqa: E402
from control_plane import NATIVE, ControlPlane, Refused  # noqa: E402
from http_raw import connect, request  # noqa: E402
from launcher import need_launcher  # noqa: E402
from preview_shop import PORT, Shop  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import accept_of, frame, handshake  # noqa: E402

KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@test
def a_request_reaches_the_application_and_its_answer_comes_back():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        answer = shop.get("/some/path?x=1", method="POST", body=b"hello")
        equal(answer.status, 200, "status")
        told = json.loads(answer.body)
        equal((told["method"], told["path"], told["body"]), ("POST", "/some/path?x=1", "hello"), "told")
        headers = shop.seen()
        equal(headers["x-forwarded-host"], [shop.host], "x-forwarded-host")
        equal(headers["x-sandbox-name"], [shop.id], "x-sandbox-name")
        equal(headers["x-original-url"], [f"http://{shop.host}/look"], "x-original-url")
        # A path of the API is the application's here.
        equal(json.loads(shop.get("/health").body)["path"], "/health", "path")
        equal(json.loads(shop.get("/burrow/v1/version").body)["path"], "/burrow/v1/version", "path")


@test
def nothing_of_ours_goes_in_and_no_cookie_leaves_its_host():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        headers = shop.seen([("Cookie", "a=1; burrow_session=secret; b=2"),
                             ("Authorization", f"Bearer {plane.key}")])
        equal(headers["cookie"], ["a=1; b=2"], "cookies")
        assert "authorization" not in headers, headers
        equal(shop.seen([("Authorization", "Bearer theirs")])["authorization"], ["Bearer theirs"],
              "their own key")
        person = {"email": "ada@example.org", "password": "correct horse"}
        plane.call("POST", f"{NATIVE}/users", {"name": "Ada", **person})
        login = plane.call("POST", "/api/auth/sign-in/email", person)["token"]
        assert "authorization" not in shop.seen([("Authorization", f"Bearer {login}")]), "a login"
        for secret in (plane.key, login):
            for path in (f"/look?a=1&token={secret}", f"/look?a=1&authorization=Bearer%20{secret}",
                         f"/look?a=1&token=theirs&%74oken={secret}"):
                answer = shop.get(path, [("Referer", f"http://{shop.host}{path}")])
                assert secret.encode() not in answer.body, answer.body
                told = json.loads(answer.body)
                assert told["path"].startswith("/look?a=1"), told
        equal(json.loads(shop.get("/look?token=theirs").body)["path"], "/look?token=theirs",
              "their own token")
        answer = shop.get("/cookies")
        equal(answer.headers.all("set-cookie"), ["a=1; Path=/", "b=2"], "set-cookie")
        equal(answer.headers.all("referrer-policy"), ["same-origin"], "referrer-policy")


@test
def redirects_and_event_streams_pass_untouched():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        answer = shop.get("/redirect")
        equal((answer.status, answer.headers["location"]), (307, "/elsewhere"), "redirect")
        answer = shop.get("/events")
        equal(answer.headers["content-type"], "text/event-stream", "type")
        equal(answer.body, b"data: one\n\ndata: two\n\n", "events")


@test
def websockets_pass_and_are_cut_when_the_port_is_closed():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        with connect(plane.address) as connection:
            connection.send(handshake("/socket", KEY).replace(b"Host: localhost",
                                                              f"Host: {shop.host}".encode()))
            response = connection.response_head()
            equal((response.status, response.headers["sec-websocket-accept"]),
                  (101, accept_of(KEY)), "handshake")
            connection.send(frame(1, b"through the wall"))
            equal(connection.read_exactly(2 + 16)[2:], b"through the wall", "echo")
            plane.call("DELETE", f"{NATIVE}/sandboxes/{shop.id}/ports/{PORT}")
            assert connection.is_closed_by_peer(), "the tunnel is open"
        equal(shop.get("/").status, 404, "status once the port is closed")


@test
def wrong_tokens_ports_and_sandboxes_are_all_404():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        port, name, token = shop.host.split(".")[0].split("-")
        rest = shop.host.split(".", 1)[1]
        wrong = [f"{port}-{name}-{'x' * len(token)}", f"8081-{name}-{token}",
                 f"{port}-{'a' * 26}-{token}", f"{port}-{name}-", f"{port}-{name}",
                 f"{port}-{name}-{token}x", f"{port}-{name.upper()}-{token}"]
        for label in wrong:
            answer = request(plane.address, "GET", "/", [("Host", f"{label}.{rest}")])
            equal(answer.status, 404, f"status of {label}")
            equal(json.loads(answer.body)["code"], "INVALID_TOKEN", f"code of {label}")
        # Not meant for a preview: the API.
        equal(request(plane.address, "GET", "/health", [("Host", f"www.{rest}")]).status, 200, "www")


@test
def a_token_can_be_chosen_and_changed_and_the_old_one_is_of_no_use():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        first = shop.host
        equal(shop.expose()["token"], shop.exposed["token"], "token of a second expose")
        shop.exposed = shop.expose(token="mine_1")
        equal(shop.exposed["token"], "mine_1", "token")
        equal(shop.get("/").status, 200, "status by the new token")
        equal(request(plane.address, "GET", "/", [("Host", first)]).status, 404, "by the old one")
        for token in ("", "UPPER", "with-dash", "x" * 17):
            try:
                shop.expose(token=token)
                raise AssertionError(f"the token {token!r} was taken")
            except Refused as refused:
                equal(refused.status, 400, f"status for {token!r}")
        for port in (80, 1023, 3000, 0, 65536):
            try:
                plane.call("POST", f"{NATIVE}/sandboxes/{shop.id}/ports", {"port": port})
                raise AssertionError(f"port {port} was exposed")
            except Refused as refused:
                equal(refused.status, 400, f"status for {port}")


@test
def a_sleeping_sandbox_is_not_woken_unless_the_port_says_so():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        plane.call("POST", f"{NATIVE}/sandboxes/{shop.id}/sleep", {})
        answer = shop.get("/")
        equal((answer.status, json.loads(answer.body)["code"]), (410, "STALE_PREVIEW_URL"), "stale")
        equal(plane.sandbox(shop.id)["status"], "frozen", "status")
        shop.expose(wake=True)
        equal(shop.get("/").status, 200, "status with wake")
        equal(plane.sandbox(shop.id)["status"], "running", "status")


@test
def previews_survive_a_restart_of_the_sandbox_with_the_same_token():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        for verb in ("stop", "start"):
            plane.call("POST", f"{NATIVE}/sandboxes/{shop.id}/{verb}", {})
        answer = shop.get("/", [("Accept", "text/html")])
        equal(answer.status, 502, "status while nothing listens")
        assert b"<html" in answer.body or b"<!doctype" in answer.body, answer
        plane.call("POST", f"{NATIVE}/sandboxes/{shop.id}/processes",
                   {"command": "exec python3 app.py"})
        wait_until(lambda: shop.get("/").status == 200, "the application, again")


@test
def many_requests_at_once_all_find_their_way():
    need_launcher()
    with ControlPlane() as plane:
        shop = Shop(plane)
        connections = [connect(plane.address) for _ in range(60)]
        try:
            for connection in connections:
                connection.send(f"GET /many HTTP/1.1\r\nHost: {shop.host}\r\n\r\n".encode())
            equal([connection.response().status for connection in connections], [200] * 60,
                  "statuses")
        finally:
            for connection in connections:
                connection.close()


@test
def by_path_there_is_a_listener_of_its_own_without_cookies():
    need_launcher()
    address = f"127.0.0.1:{free_port()}"
    with ControlPlane("--preview-listen", address) as plane:
        shop = Shop(plane)
        name = shop.host.split(".")[0]
        answer = request(address, "GET", f"/{name}/look?x=1", [("Cookie", "a=1")])
        equal(answer.status, 200, "status")
        told = json.loads(answer.body)
        equal(told["path"], "/look?x=1", "path")
        assert not [value for header, value in told["headers"] if header == "cookie"], told
        assert answer.headers["content-security-policy"].startswith("sandbox"), answer
        equal(request(address, "GET", f"/{name}/cookies").headers.all("set-cookie"), [], "set-cookie")
        equal(request(address, "GET", f"/{name}").headers["location"], f"/{name}/", "location")
        equal(request(address, "GET", "/burrow/v1/version").status, 404, "the API there")
        equal(request(address, "GET", "/health").status, 404, "the API there")
        assert shop.exposed["token"] not in plane.log(), "a token in the log"


ORDERS = r'''
import http.server

class Orders(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        for name, value in (("Content-Security-Policy", "sandbox allow-same-origin allow-scripts"),
                            ("Set-Cookie", "a=1; Path=/"), ("Service-Worker-Allowed", "/"),
                            ("Clear-Site-Data", '"*"'), ("Referrer-Policy", "unsafe-url"),
                            ("Strict-Transport-Security", "max-age=99999999; includeSubDomains")):
            self.send_header(name, value)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

http.server.HTTPServer(("127.0.0.1", 8081), Orders).serve_forever()
'''


@test
def nothing_but_applications_is_reached_by_path():
    need_launcher()
    address = f"127.0.0.1:{free_port()}"
    with ControlPlane("--preview-listen", address, "--trusted-proxies", "127.0.0.1") as plane:
        shop = Shop(plane)
        name = shop.host.split(".")[0]
        key = [("Authorization", f"Bearer {plane.key}")]
        plane.call("POST", f"{NATIVE}/users", {"name": "Ada", "email": "ada@example.org", "password": "correct horse"})
        login = plane.call("POST", "/api/auth/sign-in/email", {"email": "ada@example.org",
                                                              "password": "correct horse"})["token"]
        # No route of the API, whoever asks and whatever the host is called.
        for path in (f"{NATIVE}/whoami", f"{NATIVE}/sandboxes", "/health", "/ready", "/metrics", "/", "/v1/pool/stats",
                     "/api/auth/get-session", f"/{name[:-1]}x/", f"/x{name}/", f"//{name}/look", "/../burrow/v1/whoami",
                     "http://localhost/burrow/v1/whoami", f"/%2e%2e/{name}/look", f"/{name}%2f..%2flook"):
            for host in ("localhost", shop.host, plane.address):
                answer = request(address, "GET", path, [("Host", host), *key])
                assert answer.status in (400, 404), (path, host, answer)
                assert b"admin" not in answer.body, answer
        # What looks like a way up is the application's.
        answer = request(address, "GET", f"/{name}/..%2f..%2fburrow/v1/whoami", key)
        assert answer.status == 400 or json.loads(answer.body)["path"].startswith("/.."), answer
        # Neither a key nor a login reaches it, by header, cookie, query or referrer.
        for secret in (plane.key, login):
            answer = request(address, "GET", f"/{name}/look?token={secret}", [
                ("Authorization", f"Bearer {secret}"), ("Cookie", f"__Host-better-auth.session_token={secret}"),
                ("Referer", f"http://{address}/{name}/x?token={secret}"), ("X-Forwarded-For", "10.9.8.7")])
            equal(answer.status, 200, answer)
            assert secret not in answer.body.decode(), answer.body
            told = dict(json.loads(answer.body)["headers"])
            equal(told["x-forwarded-for"], "10.9.8.7", "who asks, as the proxy says")
        # A WebSocket comes through and is cut; one that sleeps is not woken.
        with connect(address) as connection:
            connection.send(handshake(f"/{name}/socket", KEY))
            equal(connection.response_head().status, 101, "handshake")
            connection.send(frame(1, b"by path"))
            equal(connection.read_exactly(2 + 7)[2:], b"by path", "echo")
            plane.call("POST", f"{NATIVE}/sandboxes/{shop.id}/sleep", {})
        equal(request(address, "GET", f"/{name}/").status, 410, "asleep")
        equal(plane.sandbox(shop.id)["status"], "frozen", "status")
        for word in (shop.exposed["token"], plane.key, login):
            assert word not in plane.log(), "a token in the log"


@test
def by_path_an_application_orders_the_browser_nothing():
    """All of them are of one origin: what one page says there holds for the others."""
    need_launcher()
    address = f"127.0.0.1:{free_port()}"
    with ControlPlane("--preview-listen", address) as plane:
        box = plane.create("orders")["id"]
        plane.ask("PUT", f"{NATIVE}/sandboxes/{box}/files/workspace/orders.py", ORDERS.encode())
        plane.call("POST", f"{NATIVE}/sandboxes/{box}/processes", {"command": "exec python3 orders.py"})
        exposed = plane.call("POST", f"{NATIVE}/sandboxes/{box}/ports", {"port": 8081})
        name = exposed["url"].split("/")[2].split(".")[0]
        answer = wait_until(lambda: (told := request(address, "GET", f"/{name}/")).status == 200 and told,
                            "the application")
        policies = answer.headers.all("content-security-policy")
        assert any(one.startswith("sandbox ") and "allow-same-origin" not in one for one in policies), policies
        for header in ("set-cookie", "service-worker-allowed", "clear-site-data", "strict-transport-security"):
            equal(answer.headers.all(header), [], header)
        equal(answer.headers.all("referrer-policy"), ["no-referrer"], "referrer-policy")


@test
def tokens_are_not_in_the_log():
    need_launcher()
    with ControlPlane("--log-level", "debug") as plane:
        shop = Shop(plane)
        shop.get("/")
        assert shop.exposed["token"] not in plane.log(), "a token in the log"


main()
