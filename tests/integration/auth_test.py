#!/usr/bin/python3
"""Who may do what: keys, users, logins and cookies, throttling, and what a restart keeps."""

import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from http_raw import connect, get, request  # noqa: E402
from program import PATIENCE, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

ADA = {"name": "Ada", "email": "ada@example.org", "password": "correct horse"}
EVE = {"name": "Eve", "email": "eve@example.org", "password": "battery staple"}


def wait_until_ready(server):
    wait_until(lambda: get(server.address, "/ready").status == 200, "its store is open")


def ask(server, method, path, body=None, key=None, headers=()):
    """The response, with .json when it is that."""
    lines = [("Host", server.address), *headers]
    if key:
        lines.append(("Authorization", f"Bearer {key}"))
    data = b"" if body is None else json.dumps(body).encode()
    answer = request(server.address, method, path, lines, data)
    answer.json = None
    if answer.headers.get("Content-Type", "").startswith("application/json"):
        answer.json = json.loads(answer.body)
    return answer


def make_user(server, who, **fields):
    answer = ask(server, "POST", "/burrow/v1/users", {**who, **fields}, server.key)
    equal(answer.status, 201, "status of a new user")
    return answer.json["id"]


def make_key(server, key=None, **fields):
    answer = ask(server, "POST", "/burrow/v1/keys", {"name": "test", **fields}, key or server.key)
    equal(answer.status, 201, f"status of a new key: {answer.json}")
    return answer.json


def whoami(server, key=None, headers=()):
    return ask(server, "GET", "/burrow/v1/whoami", key=key, headers=headers)


@test
def the_first_key_is_the_administrators_and_survives_a_restart():
    with Burrow() as server:
        wait_until_ready(server)
        key = server.key
        answer = whoami(server, key)
        equal(answer.json["scope"], "admin", "scope")
        equal(answer.json["user"]["name"], "admin", "name")
        kept = os.path.join(server.data, "keys", "admin")
        equal(os.stat(kept).st_mode & 0o777, 0o600, "mode of the key's file")
        made = make_key(server, scope="read")
        server.stop()
        server.start()
        wait_until_ready(server)
        equal(whoami(server, key).status, 200, "status of the first key")
        equal(whoami(server, made["key"]).json["scope"], "read", "scope of the other one")
        names = [each["name"] for each in ask(server, "GET", "/burrow/v1/keys", key=key).json["keys"]]
        equal(names, ["first", "test"], "keys")


@test
def no_secret_is_in_the_database_or_the_log():
    with Burrow() as server:
        wait_until_ready(server)
        made = make_key(server)
        make_user(server, ADA)
        answer = ask(server, "POST", "/api/auth/sign-in/email", ADA)
        equal(answer.status, 200, "status")
        key = server.key
        server.stop()
        secrets = (made["key"], key, ADA["password"], answer.json["token"])
        seen = 0
        for folder, _, names in os.walk(os.path.join(server.data, "db")):
            for name in names:
                seen += 1
                with open(os.path.join(folder, name), "rb") as file:
                    content = file.read()
                for secret in secrets:
                    assert secret.encode() not in content, f"a secret is in {name}"
        assert seen, "no database was found"
        log = server.log()
        for secret in secrets:
            assert secret not in log, "a secret is in the log"


@test
def wrong_missing_revoked_and_expired_keys_look_alike():
    with Burrow() as server:
        wait_until_ready(server)
        revoked = make_key(server)
        equal(ask(server, "DELETE", f"/burrow/v1/keys/{revoked['prefix']}", key=server.key).status,
              204, "status of the revocation")
        # A busy machine may take longer to ask than the key is good for; then a longer one does.
        for seconds in (1, 4, 16, 64):
            short = make_key(server, expiresIn=seconds)
            if (before := whoami(server, short["key"]).status) == 200:
                break
        equal(before, 200, "status before it expires")
        wait_until(lambda: whoami(server, short["key"]).status == 401, "it expires", 2 * seconds + PATIENCE)
        errors = set()
        for key in ("burrow_wrong", "x", revoked["key"], short["key"]):
            answer = whoami(server, key)
            equal(answer.status, 401, "status")
            equal(answer.headers["WWW-Authenticate"], "Bearer", "WWW-Authenticate")
            errors.add(answer.json["error"]["message"])
        equal(len(errors), 1, "different messages")
        equal(whoami(server).status, 401, "status without a key")


@test
def a_flood_of_wrong_keys_is_slowed_down_and_right_ones_are_not():
    with Burrow() as server:
        wait_until_ready(server)
        statuses = [whoami(server, "burrow_guess").status for _ in range(30)]
        assert 401 in statuses and statuses[-1] == 429, statuses
        answer = whoami(server, "burrow_guess", [("X-Forwarded-For", "10.1.2.3")])
        equal(answer.status, 429, "status with an address of one's own making")
        assert int(answer.headers["Retry-After"]) >= 1, "Retry-After"
        equal(whoami(server, server.key).status, 200, "status of the right key")
        time.sleep(1.2)
        entries = ask(server, "GET", "/burrow/v1/audit", key=server.key).json["entries"]
        denied = [each for each in entries if each["outcome"] in ("unauthenticated", "rate_limited")]
        assert 2 <= len(denied) <= 6, denied
        assert any("times" in each["detail"] for each in denied), denied


@test
def behind_a_trusted_proxy_every_client_has_its_own_tries():
    with Burrow("--trusted-proxies", "127.0.0.1") as server:
        wait_until_ready(server)
        for _ in range(25):
            answer = whoami(server, "burrow_guess", [("X-Forwarded-For", "192.0.2.1")])
        equal(answer.status, 429, "status of the one that floods")
        answer = whoami(server, "burrow_guess", [("X-Forwarded-For", "192.0.2.2")])
        equal(answer.status, 401, "status of its neighbour")


@test
def what_belongs_to_others_is_not_there():
    with Burrow() as server:
        wait_until_ready(server)
        ada, eve = make_user(server, ADA), make_user(server, EVE)
        key = make_key(server, user=eve)["key"]
        hers = make_key(server, user=ada)
        equal(ask(server, "GET", f"/burrow/v1/users/{ada}", key=key).status, 404, "another user")
        equal(ask(server, "DELETE", f"/burrow/v1/keys/{hers['id']}", key=key).status, 404,
              "another user's key")
        listed = ask(server, "GET", "/burrow/v1/users", key=key).json["users"]
        equal([each["id"] for each in listed], [eve], "users that are listed")
        listed = ask(server, "GET", "/burrow/v1/keys", key=key).json["keys"]
        equal({each["userId"] for each in listed}, {eve}, "whose keys are listed")
        for path in ("/burrow/v1/audit", "/metrics"):
            equal(ask(server, "GET", path, key=key).status, 403, f"status of {path}")


@test
def scopes_are_walls():
    with Burrow() as server:
        wait_until_ready(server)
        eve = make_user(server, EVE)
        write = make_key(server, user=eve, scope="write")["key"]
        read = make_key(server, user=eve, scope="read")["key"]
        for key, method, path, body, status in (
                (read, "GET", "/burrow/v1/keys", None, 200),
                (read, "POST", "/burrow/v1/keys", {"name": "x"}, 403),
                (read, "PATCH", "/burrow/v1/users/me", {"name": "x"}, 403),
                (write, "POST", "/burrow/v1/keys", {"name": "x", "scope": "admin"}, 403),
                (write, "POST", "/burrow/v1/keys", {"name": "x", "user": "admin"}, 404),
                (write, "POST", "/burrow/v1/users", {"name": "x"}, 403),
                (write, "PATCH", "/burrow/v1/users/me", {"role": "admin"}, 403),
                (write, "PATCH", "/burrow/v1/users/me", {"password": "a new password"}, 400),
                (write, "POST", "/burrow/v1/keys", {"name": "x"}, 201)):
            equal(ask(server, method, path, body, key).status, status, f"{method} {path} {body}")


# What nginx sends for `location / { proxy_pass http://127.0.0.1:PORT; }`, whoever asked it.
LIKE_NGINX = """POST /api/auth/sign-up/email HTTP/1.0\r
Host: {address}\r
Connection: close\r
Content-Length: {length}\r
User-Agent: curl/7.88.1\r
Accept: */*\r
Content-Type: application/json\r
\r
{body}"""


@test
def loopback_makes_nobody_the_administrator():
    with Burrow() as server:
        wait_until_ready(server)
        equal(ask(server, "GET", "/api/auth/signup-status").json,
              {"enabled": False, "signupEnabled": False, "isFirstUser": False}, "what is told")
        answer = ask(server, "POST", "/api/auth/sign-up/email", ADA)
        equal((answer.status, answer.json["code"]), (403, "SIGNUP_DISABLED"), "on this machine")
        assert "burrow user create" in answer.json["message"], answer.json
        with connect(server.address) as connection:
            body = json.dumps(ADA)
            connection.send(LIKE_NGINX.format(address=server.address, length=len(body),
                                              body=body).encode())
            equal(connection.response().status, 403, "through a proxy on this machine")
    with Burrow("--sign-up", "open") as server:
        wait_until_ready(server)
        answer = ask(server, "POST", "/api/auth/sign-up/email", ADA)
        equal((answer.status, answer.json["user"]["role"]), (200, "user"), "where everybody may")
        answer = ask(server, "POST", "/api/auth/sign-up/email", EVE, server.key)
        equal((answer.status, answer.json["user"]["role"]), (200, "admin"), "with the key")


@test
def the_seeds_way_in_works_with_a_jar_of_cookies():
    with Burrow() as server:
        wait_until_ready(server)
        status = ask(server, "GET", "/api/auth/signup-status", key=server.key).json
        equal(status["signupEnabled"], True, "signupEnabled")
        answer = ask(server, "POST", "/api/auth/sign-up/email", ADA, server.key)
        equal(answer.status, 200, f"status: {answer.json}")
        equal(answer.json["user"]["email"], ADA["email"], "email")
        answer = ask(server, "POST", "/api/auth/sign-in/email",
                     {"email": ADA["email"], "password": ADA["password"]})
        cookie, _, attributes = answer.headers["Set-Cookie"].partition(";")
        assert cookie.startswith("burrow_session="), cookie
        for word in ("HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=604800"):
            assert word in attributes, attributes
        jar = [("Cookie", cookie)]
        session = ask(server, "GET", "/api/auth/get-session", headers=jar).json
        equal(session["user"]["name"], "Ada", "name")
        equal(session["session"]["userId"], session["user"]["id"], "userId")
        equal(whoami(server, answer.json["token"]).json["credential"], "login", "as bearer")
        other = [("Cookie", cookie.replace("burrow_session", "better-auth.session_token"))]
        equal(whoami(server, headers=other).status, 200, "status with the other name")
        equal(ask(server, "POST", "/burrow/v1/keys", {"name": "x"}, headers=jar).status, 201,
              "a client without Origin")
        equal(ask(server, "POST", "/api/auth/sign-up/email", EVE).status, 403, "a second sign-up")
        equal(ask(server, "POST", "/api/auth/sign-out", headers=jar).json, {"success": True}, "out")
        equal(whoami(server, headers=jar).status, 401, "status afterwards")
        equal(ask(server, "GET", "/api/auth/get-session", headers=jar).body, b"null", "session")


@test
def a_page_of_another_origin_cannot_ride_on_the_cookie():
    with Burrow("--cors-origins", "https://app.example") as server:
        wait_until_ready(server)
        make_user(server, ADA)
        token = ask(server, "POST", "/api/auth/sign-in/email", ADA).json["token"]
        jar = ("Cookie", f"burrow_session={token}")
        body = {"name": "x"}
        for extra, status in ((("Origin", "https://evil.example"), 403),
                              (("Origin", "null"), 403),
                              (("Sec-Fetch-Site", "cross-site"), 403),
                              (("Sec-Fetch-Site", "same-site"), 403),
                              (("Referer", "https://evil.example/page"), 403),
                              (("Origin", f"http://{server.address}"), 201),
                              (("Origin", "https://app.example"), 201),
                              (("Sec-Fetch-Site", "same-origin"), 201)):
            answer = ask(server, "POST", "/burrow/v1/keys", body, headers=[jar, extra])
            equal(answer.status, status, f"status with {extra}")
        evil = [("Origin", "https://evil.example")]
        equal(ask(server, "POST", "/burrow/v1/keys", body, token, evil).status, 201,
              "a key in a header is no cookie")
        equal(ask(server, "POST", "/api/auth/sign-in/email", ADA, headers=evil).status, 403,
              "logging somebody else in")


@test
def pages_are_let_in_only_when_configured():
    preflight = [("Origin", "https://app.example"), ("Access-Control-Request-Method", "POST")]
    with Burrow() as server:
        answer = ask(server, "OPTIONS", "/burrow/v1/keys", headers=preflight)
        assert "Access-Control-Allow-Origin" not in answer.headers, answer.headers
        answer = ask(server, "GET", "/health", headers=preflight[:1])
        assert "Access-Control-Allow-Origin" not in answer.headers, answer.headers
    with Burrow("--cors-origins", "https://app.example") as server:
        answer = ask(server, "OPTIONS", "/burrow/v1/keys", headers=preflight)
        equal(answer.status, 204, "status")
        equal(answer.headers["Access-Control-Allow-Origin"], "https://app.example", "origin")
        answer = ask(server, "GET", "/health", headers=preflight[:1])
        equal(answer.headers["Access-Control-Allow-Origin"], "https://app.example", "origin")


@test
def guessing_passwords_is_slow_and_says_nothing():
    with Burrow() as server:
        wait_until_ready(server)
        make_user(server, ADA)
        bodies = []
        for email in (ADA["email"], "nobody@example.org"):
            answer = ask(server, "POST", "/api/auth/sign-in/email",
                         {"email": email, "password": "wrong horse"})
            equal(answer.status, 401, "status")
            bodies.append(answer.body)
        equal(bodies[0], bodies[1], "what is said")
        statuses = [ask(server, "POST", "/api/auth/sign-in/email",
                        {"email": ADA["email"], "password": "wrong horse"}).status
                    for _ in range(12)]
        equal(statuses[-1], 429, f"status at last, of {statuses}")


@test
def a_disabled_user_is_out_at_once():
    with Burrow() as server:
        wait_until_ready(server)
        eve = make_user(server, EVE)
        key = make_key(server, user=eve)["key"]
        token = ask(server, "POST", "/api/auth/sign-in/email", EVE).json["token"]
        path = f"/burrow/v1/users/{eve}"
        equal(ask(server, "PATCH", path, {"disabled": True}, server.key).status, 200, "status")
        equal(whoami(server, key).status, 401, "status of the key")
        equal(whoami(server, token).status, 401, "status of the login")
        equal(ask(server, "POST", "/api/auth/sign-in/email", EVE).status, 401, "status of a new login")


@test
def requests_per_minute_are_counted_per_owner():
    with Burrow("--quota-requests", "20") as server:
        wait_until_ready(server)
        eve = make_user(server, EVE)
        key = make_key(server, user=eve)["key"]
        answer = whoami(server, key)
        equal(answer.headers["X-RateLimit-Limit"], "20", "limit")
        statuses = [whoami(server, key).status for _ in range(30)]
        equal(statuses[-1], 429, "status at last")
        answer = whoami(server, key)
        equal(answer.json["error"]["code"], "rate_limited", "code")
        assert int(answer.headers["Retry-After"]) >= 1, "Retry-After"
        equal(answer.headers["X-RateLimit-Remaining"], "0", "remaining")
        equal(ask(server, "GET", "/health", key=key).status, 200, "public routes are not counted")


@test
def without_keys_everybody_is_the_administrator():
    with Burrow("--no-auth") as server:
        wait_until_ready(server)
        answer = whoami(server)
        equal(answer.json["scope"], "admin", "scope")
        equal(answer.json["credential"], "none", "credential")
        equal(ask(server, "POST", "/burrow/v1/users", EVE).status, 201, "status of a new user")


main()
