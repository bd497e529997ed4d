#!/usr/bin/python3
# timeout: 600
"""What is one owner's is not there for another: every route of every dialect is asked for the things
of Alice with the keys of others, with narrow keys of her own, and with none.

A route added to a table of the daemon is walked by itself (tests/lib/api_routes.py). An answer about
something of Alice's must be the answer about something that does not exist, word by word."""

import json
import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from api_routes import AGENTPOD, BOX, BRIDGE, STACKMEMORY, WEBSOCKETS  # noqa: E402
from control_plane import NATIVE  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from tenants import PORT, comparable, leaks, look, made_up, show, visit, world  # noqa: E402

# Whoever comes may ask these, and why.
PUBLIC = {
    ("POST", "/api/auth/sign-up/email"): "makes a login; the setting sign-up says who may",
    ("POST", "/api/auth/sign-in/email"): "makes a login",
    ("POST", "/api/auth/sign-out"): "ends the login it is sent with; fine without",
    ("GET", "/api/auth/get-session"): "null without a login",
    ("GET", "/api/auth/session"): "null without a login",
    ("GET", "/api/auth/signup-status"): "a page asks before anybody is logged in",
    ("POST", "/api/v2/cloudflare/webhook"): "opened by the service token, which is no key",
    ("GET", "/health"): "says nothing",
    ("GET", "/ready"): "says nothing",
    ("GET", f"{NATIVE}/version"): "a version",
    ("GET", f"{NATIVE}/openapi.json"): "the same for all who run this version",
    ("GET", f"{NATIVE}/docs"): "the same for all who run this version",
}

PERSIST = ("POST", f"{BRIDGE}/persist")  # reads, though it is a POST

LAZY = "makes a sandbox of the caller's own where there is none"
OWN = "of the caller's own, which this walk may have made"
WEBSOCKET = "426 without an upgrade, whatever is asked for; 404 with one"
IDEMPOTENT = "removing what is not there is fine; nothing is told by it"

# Routes whose answer to a stranger is no 404; it is that about something that does not exist, too.
NOT_404 = {
    ("DELETE", BRIDGE): IDEMPOTENT,
    ("DELETE", f"{BRIDGE}/session/{{session}}"): LAZY,
    ("DELETE", f"{BRIDGE}/tunnel/{{port}}"): LAZY,
    ("GET", f"{BRIDGE}/running"): "whether it runs; false for what is not there",
    ("POST", f"{BRIDGE}/exec"): LAZY,
    ("GET", f"{BRIDGE}/file/{{path}}"): LAZY,
    ("PUT", f"{BRIDGE}/file/{{path}}"): LAZY,
    ("POST", f"{BRIDGE}/persist"): LAZY,
    ("POST", f"{BRIDGE}/hydrate"): LAZY,
    ("POST", f"{BRIDGE}/session"): LAZY,
    ("GET", f"{BRIDGE}/pty"): LAZY,
    ("POST", f"{BRIDGE}/tunnel/{{port}}"): LAZY,
    ("POST", f"{BRIDGE}/mount"): LAZY,
    ("POST", f"{BRIDGE}/unmount"): LAZY,
    ("POST", f"{STACKMEMORY}/bootstrap"): LAZY,
    ("POST", f"{STACKMEMORY}/exec"): LAZY,
    ("GET", f"{STACKMEMORY}/files"): LAZY,
    ("PUT", f"{STACKMEMORY}/files"): LAZY,
    ("GET", f"{STACKMEMORY}/ls"): LAZY,
    ("GET", f"{STACKMEMORY}/terminal"): LAZY,
    ("POST", f"{STACKMEMORY}/destroy"): IDEMPOTENT,
    ("POST", f"{STACKMEMORY}/mount"): LAZY,
    ("POST", f"{STACKMEMORY}/backup"): LAZY,
    ("POST", f"{STACKMEMORY}/restore"): LAZY,
    ("GET", "/api/v2/sandboxes/{id}/terminal"): "the WebSocket opens and is closed with 1008",
    ("GET", f"{BOX}/events"): "an empty list: a log outlives its sandbox, and whoever had it may read on",
    ("GET", f"{BOX}/snapshots"): "an empty list: snapshots outlive their sandbox",
    ("PUT", f"{NATIVE}/credentials/{{credential}}"): OWN,
    ("DELETE", f"{NATIVE}/credentials/{{credential}}"): OWN,
    ("PUT", f"{NATIVE}/templates/{{name}}"): OWN,
    ("DELETE", f"{NATIVE}/templates/{{name}}"): OWN,
    ("GET", f"{BOX}/exec/ws"): WEBSOCKET,
    ("GET", f"{BOX}/terminals"): WEBSOCKET,
    ("DELETE", f"{NATIVE}/users/{{user}}"): "403 for all but administrators",
}

# GET routes that have another test for Alice's own: WebSockets, and what is passed through.
NOT_OF_THE_WALK = {pattern for pattern, _ in WEBSOCKETS} | {f"{BOX}/diff", f"{AGENTPOD}/opencode", f"{AGENTPOD}/opencode/{{path}}"}  # which needs a query


def is_told_apart(route, told, values, twin, others):
    """Whether the answer about Alice's differs from the one about what does not exist."""
    if NOT_404.get(route.key) == OWN:
        return False
    if told.status != twin.status:
        return True
    # Both are new sandboxes of the stranger's own: what is in them may differ.
    if NOT_404.get(route.key) == LAZY:
        return False
    return comparable(told, values) != comparable(twin, others)


def walk(key_of, scope_refusals=False, own=()):
    """Problems of a stranger's walk: what it was told about Alice's things, and of others that do not
    exist. Sandboxes are named by id and by name."""
    fine = (404, 403) if scope_refusals else (404,)
    problems = []
    for route in world().routes:
        key = key_of(route)
        for box in (world().box["id"], "alicebox"):
            values = world().values(box)
            for upgrade in ((False, True) if route.method == "GET" else (False,)):
                told = visit(route, key, values, upgrade=upgrade)
                if leaks(told, own):
                    problems.append(f"{route}: {leaks(told, own)} in {told}")
                if not route.parameters:
                    continue
                others = made_up(values)
                twin = visit(route, key, others, upgrade=upgrade)
                if is_told_apart(route, told, values, twin, others):
                    problems.append(f"{route}: {told}, but of one that does not exist {twin}")
                if told.status not in fine and route.key not in NOT_404:
                    problems.append(f"{route}: {told}")
    return problems


# --- who has no key ------------------------------------------------------------------------------


@test
def the_routes_without_a_key_are_the_ones_with_a_reason():
    equal({route.key for route in world().routes if route.is_public}, set(PUBLIC), "public routes")


@test
def without_a_good_key_every_other_route_is_401():
    plane = world().plane
    expired = world().make_key(user=world().user["id"], scope="write", expiresIn=1)
    revoked = world().make_key(user=world().user["id"], scope="write")
    plane.call("DELETE", f"{NATIVE}/keys/{revoked['id']}")
    before = world().state()
    time.sleep(1.1)
    problems = []
    for key in ("", "burrow_nonsense", world().key[:-1], expired["key"], revoked["key"]):
        for route in world().routes:
            if route.is_public:
                continue
            values = world().values(world().box["id"])
            answers = [visit(route, key, values)]
            if route.method == "GET":
                answers.append(visit(route, key, values, upgrade=True))
                answers.append(look(key, "HEAD", route.fill(values)))
            problems += [f"{route} with the key {key[:14]!r}: {told}" for told in answers
                         if told.status != 401 or leaks(told)]
    show(problems)
    world().must_be(before)


# --- who has another's key -----------------------------------------------------------------------


@test
def the_names_that_the_walk_uses_are_those_of_real_things():
    problems = []
    for route in world().routes:
        if route.method != "GET" or not route.parameters or "{rest}" in route.pattern:
            continue
        if route.pattern in NOT_OF_THE_WALK or route.summary == "Unknown routes":
            continue
        told = visit(route, world().key, world().values(world().box["id"]))
        if told.status in (400, 401, 403, 404):
            problems.append(f"{route}: {told}")
    show(problems)


@test
def for_another_user_nothing_of_alices_exists():
    before = world().state()
    # One stranger per dialect: some make sandboxes of that name for whoever asks.
    problems = walk(lambda route: world().stranger(route.dialect))
    show(problems)
    world().must_be(before)


@test
def nor_for_another_user_who_may_only_read():
    plane = world().plane
    reader = plane.user("eve-reader", scope="read")
    before = world().state()
    problems = walk(lambda route: reader, scope_refusals=True)
    show(problems)
    world().must_be(before)
    found = plane.call("GET", f"{NATIVE}/sandboxes", key=reader)["sandboxes"]
    equal(found, [], "sandboxes made by one who may only read")


@test
def a_websocket_is_opened_for_its_owner_alone():
    by_pattern = {route.pattern: route for route in world().routes if route.method == "GET"}
    eve, problems = world().stranger("native"), []
    for pattern, more in WEBSOCKETS:
        values = {**world().values(world().box["id"]), **more}
        query = f"?sessionId=session-{world().mark}"
        for who, key, fine in (("nobody", "", 401), ("eve", eve, 404), ("alice", world().key, 101)):
            if who == "eve" and by_pattern[pattern].key in NOT_404:
                continue
            told = look(key, "GET", by_pattern[pattern].fill(values) + query, upgrade=True)
            if told.status != fine:
                problems.append(f"{pattern} {more} for {who}: {told}")
    show(problems)


@test
def what_a_dialect_makes_for_a_stranger_is_the_strangers():
    """Eve may have a sandbox of the same name; one named by Alice's id stays Eve's, too."""
    eve, plane = world().plane.user("eve-namesake"), world().plane
    for name in ("alicebox", world().box["id"]):
        told = look(eve, "POST", f"/v1/sandbox/{name}/exec", {"argv": ["cat", "/workspace/secret"]})
        assert told.status in (200, 400, 404, 409) and not leaks(told), told
    found = plane.call("GET", f"{NATIVE}/sandboxes", key=eve)["sandboxes"]
    assert all(box["id"] not in (world().box["id"], world().little["id"]) for box in found), found
    equal(plane.sandbox(world().box["id"])["name"], "alicebox", "what an administrator is told")
    equal(plane.sandbox(world().box["id"], key=world().key)["id"], world().box["id"], "Alice's")
    for box in found:
        plane.call("DELETE", f"{NATIVE}/sandboxes/{box['id']}", key=eve)
    equal(plane.sandbox("alicebox", key=world().key)["id"], world().box["id"], "Alice's afterwards")


@test
def fields_that_name_anothers_things_name_nothing():
    eve, box = world().stranger("native"), world().box["id"]
    user = world().user["id"]
    asked = [
        ("POST", f"{NATIVE}/keys", {"name": "k", "scope": "sandbox", "sandbox": "HERE"}, box),
        ("POST", f"{NATIVE}/keys", {"name": "k", "scope": "port", "sandbox": "HERE", "port": PORT},
         box),
        ("POST", f"{NATIVE}/keys", {"name": "k", "scope": "write", "user": "HERE"}, user),
        ("GET", f"{NATIVE}/sandboxes?owner=HERE", None, user),
        ("GET", f"{NATIVE}/keys?user=HERE", None, user),
        ("GET", f"{NATIVE}/events?sandbox=HERE", None, box),
        ("GET", f"{NATIVE}/sandboxes?prefix=alice", None, box),
        ("GET", f"{NATIVE}/sandboxes?label=of={world().mark}", None, box),
    ]
    problems = []
    for method, path, body, value in asked:
        def send(name, method=method, path=path, body=body):
            text = json.dumps(body).replace("HERE", name).encode() if body else None
            return look(eve, method, path.replace("HERE", name), text)
        other = made_up(world().values(box))["id"]
        told, twin = send(value), send(other)
        if ((told.status, comparable(told, {"id": value})) !=
                (twin.status, comparable(twin, {"id": other})) or leaks(told)):
            problems.append(f"{method} {path} {body}: {told}, but {twin}")
        if method == "POST" and told.status < 300:
            problems.append(f"{method} {path} {body}: {told}")
    show(problems)


@test
def the_pages_of_anothers_list_are_not_there():
    page = world().call("GET", f"{NATIVE}/sandboxes?limit=1")
    assert page["nextCursor"], page
    told = look(world().stranger("native"), "GET",
                f"{NATIVE}/sandboxes?limit=10&cursor={page['nextCursor']}")
    assert not leaks(told), told


@test
def an_idempotency_key_of_anothers_repeats_nothing():
    plane, eve = world().plane, world().plane.user("eve-repeats")
    headers = [("Idempotency-Key", world().mark)]
    mine = plane.call("POST", f"{NATIVE}/sandboxes", {}, key=world().key, headers=headers)
    again = plane.call("POST", f"{NATIVE}/sandboxes", {}, key=world().key, headers=headers)
    hers = plane.call("POST", f"{NATIVE}/sandboxes", {}, key=eve, headers=headers)
    equal(again["id"], mine["id"], "Alice's own")
    assert hers["id"] != mine["id"], hers
    plane.call("DELETE", f"{NATIVE}/sandboxes/{mine['id']}", key=world().key)
    plane.call("DELETE", f"{NATIVE}/sandboxes/{hers['id']}", key=eve)


@test
def an_idempotency_key_of_a_wide_key_repeats_nothing_to_a_narrow_one():
    narrow = world().make_key(user=world().user["id"], scope="sandbox",
                              sandbox=world().little["id"])["key"]
    headers = [("Idempotency-Key", f"wide-{world().mark}")]
    order = {"command": "echo other-secret"}

    def run(at, key):
        return world().plane.ask("POST", f"{at}/exec", order, key=key, headers=headers)

    equal(run(world().at, world().key).status, 200, "the wide key")
    equal(run(world().at, world().key).headers["Idempotency-Replayed"], "true", "and again")
    told = run(world().at, narrow)
    equal(told.status, 404, f"another sandbox by the narrow key: {told.body}")
    equal(run(f"{NATIVE}/sandboxes/alicelittle", narrow).status, 200, "its own sandbox")


# --- what is told as it happens -------------------------------------------------------------------


@test
def a_stream_of_events_tells_of_ones_own():
    plane, eve = world().plane, world().plane.user("eve-listens")
    narrow = world().make_key(user=world().user["id"], scope="sandbox",
                              sandbox=world().little["id"])["key"]
    connections = []
    for key in (eve, narrow):
        for start in ("", "?after=0"):
            connection = connect(plane.address)
            connection.send(f"GET {NATIVE}/events{start} HTTP/1.1\r\nHost: localhost\r\n"
                            f"Accept: text/event-stream\r\nAuthorization: Bearer {key}\r\n\r\n".encode())
            equal(connection.response_head().status, 200, "status")
            connections.append((key, connection))
    passing = plane.create("alicepassing", key=world().key)
    world().call("PATCH", f"{NATIVE}/sandboxes/{passing['id']}", {"labels": {"of": world().mark}})
    world().call("DELETE", f"{NATIVE}/sandboxes/{passing['id']}")
    own = {eve: plane.create("evesbox", key=eve)["id"], narrow: world().little["id"]}
    world().call("PATCH", f"{NATIVE}/sandboxes/alicelittle", {"labels": {"a": "b"}})
    for key, connection in connections:
        while own[key].encode() not in connection.buffer:
            assert connection.read_some(), "the stream ended"
        foreign = [world().mark, world().box["id"], passing["id"], "alicepassing"]
        foreign += [world().little["id"]] if key == eve else [own[eve], "evesbox"]
        seen = [word for word in foreign if word.encode() in connection.buffer]
        equal(seen, [], "what a stream told of others")
        connection.close()
    page = json.dumps(plane.call("GET", f"{NATIVE}/events?limit=1000", key=eve))
    equal([word for word in (world().mark, passing["id"]) if word in page], [], "the page")


@test
def a_webhook_is_told_of_ones_own():
    plane, eve = world().plane, world().plane.user("eve-hooks")
    hook = plane.call("POST", f"{NATIVE}/webhooks", {"url": "http://127.0.0.1:9/"}, key=eve)
    passing = plane.create("alicehooked", key=world().key)
    world().call("DELETE", f"{NATIVE}/sandboxes/{passing['id']}")
    plane.create("evehooked", key=eve)

    def deliveries():
        text = json.dumps(plane.call("GET", f"{NATIVE}/webhooks/{hook['id']}/deliveries", key=eve))
        return "sandbox.created" in text and text
    told = wait_until(deliveries, "a delivery of Eve's own")
    assert passing["id"] not in told and "alicehooked" not in told, told


@test
def metrics_and_the_audit_log_are_the_administrators():
    for path in ("/metrics", f"{NATIVE}/audit"):
        for key, status in (("", 401), (world().stranger("native"), 403), (world().key, 403),
                            (world().plane.key, 200)):
            equal(look(key, "GET", path).status, status, f"{path} with {key[:14]!r}")
    text = look(world().plane.key, "GET", "/metrics").body.decode()
    equal([mark for mark in world().marks if mark in text], [], "names in the metrics")


@test
def a_preview_is_opened_by_its_own_token_alone():
    plane, eve = world().plane, world().plane.user("eve-previews")
    box = plane.create("eveport", key=eve)
    port = plane.call("POST", f"{NATIVE}/sandboxes/{box['id']}/ports", {"port": PORT}, key=eve)
    other = world().call("POST", f"{world().at}/ports", {"port": PORT + 1})
    good, alice = world().port["token"], world().box["id"]
    hosts = {
        "eve's token": f"{PORT}-{alice}-{port['token']}", "another port's": f"{PORT}-{alice}-{other['token']}",
        "no token": f"{PORT}-{alice}-", "half a token": f"{PORT}-{alice}-{good[:8]}",
        "alice's token at eve's": f"{PORT}-{box['id']}-{good}",
        "not exposed": f"{PORT + 2}-{alice}-{good}",
        "no sandbox": f"{PORT}-{made_up(world().values(alice))['id']}-{good}",
    }
    answers = {}
    for what, host in hosts.items():
        for key in ("", eve, world().key):
            lines = [("Host", f"{host}.localhost")]
            lines += [("Authorization", f"Bearer {key}")] if key else []
            answer = request(plane.address, "GET", "/", lines)
            answers[what, key[:14]] = (answer.status, re.sub(rb"[a-z2-7]{26}", b"", answer.body))
    equal({status for status, _ in answers.values()}, {404}, "statuses")
    equal(len(set(answers.values())), 1, f"different answers: {answers}")
    # With the token: nothing listens there, which only its holder is told.
    equal(request(plane.address, "GET", "/", [("Host", f"{PORT}-{alice}-{good}.localhost")]).status,
          502, "with its own token")
    plane.ask("DELETE", f"{world().at}/ports/{PORT + 1}", key=world().key)


# --- narrow keys of Alice's own -----------------------------------------------------------------


@test
def a_key_for_reading_changes_nothing():
    key, before = world().spare["key"], world().state()
    problems = []
    for route in world().routes:
        if route.is_public:
            continue
        told = visit(route, key, world().values(world().box["id"]))
        if (route.method != "GET" and route.key != PERSIST and
                told.status not in (403, 404, 501)):
            problems.append(f"{route}: {told}")
        if route.method == "GET":
            told = visit(route, key, world().values(world().box["id"]), upgrade=True)
            if told.status == 101:
                problems.append(f"{route}: a WebSocket for a key that may only read")
    show(problems)
    world().must_be(before)
    equal(look(key, "GET", world().at).status, 200, "reading")


@test
def a_key_for_one_sandbox_sees_no_other():
    key = world().make_key(user=world().user["id"], scope="sandbox",
                           sandbox=world().little["id"])["key"]
    before = world().state()
    problems = walk(lambda route: key, scope_refusals=True, own=world().narrow_marks)
    show(problems)
    world().must_be(before)
    at = f"{NATIVE}/sandboxes/alicelittle"
    equal(look(key, "POST", f"{at}/exec", {"command": "true"}).status, 200, "its own sandbox")
    equal(look(key, "DELETE", at).status, 403, "removing it")
    equal(look(key, "PATCH", at, {"labels": {"a": "c"}}).status, 403, "changing it")
    listed = json.loads(look(key, "GET", f"{NATIVE}/sandboxes").body)["sandboxes"]
    equal([box["name"] for box in listed], ["alicelittle"], "its list")


@test
def a_key_for_one_sandbox_mounts_no_bucket():
    key = world().make_key(user=world().user["id"], scope="sandbox",
                           sandbox=world().little["id"])["key"]
    for path, body in ((f"{NATIVE}/sandboxes/alicelittle/mounts", {"path": "/p", "bucket": "payroll"}),
                       ("/v1/sandboxes/alicelittle/mount", {"mountPath": "/p", "prefix": "/x"}),
                       ("/v1/sandboxes/alicelittle/bootstrap", {"mountProjectData": True}),
                       ("/v1/sandbox/alicelittle/mount",
                        {"bucket": "payroll", "mountPath": "/p", "options": {"localBucket": True}})):
        told = look(key, "POST", path, body)
        equal(told.status, 403, f"{path}: {told.body}")
        assert b"'write'" in told.body, told.body
    equal(json.loads(look(key, "GET", f"{NATIVE}/sandboxes/alicelittle/mounts").body)["mounts"], [],
          "mounts")


@test
def a_key_for_one_sandbox_brings_nothing_of_another_into_it():
    """What is stored has its own ids, and belongs to the same owner."""
    key = world().make_key(user=world().user["id"], scope="sandbox", sandbox=world().little["id"])["key"]
    backup, shot = world().backup["id"], world().snapshot["id"]
    little = f"{NATIVE}/sandboxes/alicelittle"
    for method, path, body in (
            ("POST", f"{little}/restore", {"backup": backup}), ("GET", f"{NATIVE}/backups/{backup}", None),
            ("POST", "/v1/sandboxes/alicelittle/restore", {"backup": backup}),
            ("DELETE", f"{NATIVE}/backups/{backup}", None), ("POST", f"{little}/sync/restore", {}),
            ("GET", f"{little}/diff?from={shot}", None), ("GET", f"{NATIVE}/snapshots/{shot}/diff", None),
            ("POST", f"{little}/rollback", {"snapshot": shot}), ("POST", f"{NATIVE}/snapshots/{shot}/fork", {}),
            ("POST", f"{NATIVE}/sandboxes", {"snapshot": shot}), ("POST", "/sandbox", {"id": "x", "userId": "u"})):
        told = look(key, method, path, body)
        assert told.status in (403, 404), (method, path, told)
        assert not leaks(told, world().narrow_marks), (method, path, told)
    for kind in ("backups", "snapshots"):
        equal(json.loads(look(key, "GET", f"{NATIVE}/{kind}").body)[kind], [], kind)


@test
def who_may_only_look_is_told_no_token_of_a_preview():
    at, spare = f"{world().at}/ports", world().spare["key"]
    token = world().port["token"]
    assert token.encode() in look(world().key, "GET", at).body, "Alice's own list"
    told = look(spare, "GET", at)
    equal([port["port"] for port in json.loads(told.body)["ports"]], [PORT], "ports that are shown")
    assert token.encode() not in told.body, told.body


@test
def a_key_for_one_port_opens_no_route():
    key = world().make_key(user=world().user["id"], scope="port", sandbox=world().little["id"],
                           port=PORT)["key"]
    before = world().state()
    own, problems = world().narrow_marks, []
    for route in world().routes:
        for box in (world().box["id"], world().little["id"]):
            values = world().values(box)
            told = visit(route, key, values)
            if leaks(told, own):
                problems.append(f"{route}: {leaks(told, own)} in {told}")
            if told.status < 300 and not route.is_public and route.parameters:
                problems.append(f"{route}: {told}")
    show(problems)
    world().must_be(before)


main()
