#!/usr/bin/python3
# timeout: 300
"""Names whose addresses change between the look and the connection: webhooks, buckets of others and
registries are checked at the address that is connected to, and nothing inside hears of them."""

import os
import re
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from outpost import enter  # noqa: E402

enter()

from control_plane import NATIVE, Refused, main_with_plane  # noqa: E402
from fake_upstream import read_request  # noqa: E402
from http_raw import Connection  # noqa: E402
from image_place import ImagePlace  # noqa: E402
from images import layer, programs  # noqa: E402
from name_server import LOOPBACK, OTHER_PUBLIC, PUBLIC, NameServer, publish  # noqa: E402
from program import wait_until  # noqa: E402
from registry import Registry  # noqa: E402
from tap import equal, skip, test  # noqa: E402

PLANE = NAMES = None
INSIDE = ["127.0.0.1", "10.1.2.3", "169.254.169.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "0.0.0.0"]
EMPTY_LIST = (b"<?xml version='1.0'?><ListBucketResult><Name>b</Name><KeyCount>0</KeyCount>"
              b"<IsTruncated>false</IsTruncated></ListBucketResult>")


class Server:
    """On one address and port; `heard` is each request that came, `connections` how many did."""

    def __init__(self, address, port, answer=b""):
        self.answer, self.heard, self.connections = answer, [], 0
        self.listener = socket.create_server((address, port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(Connection(raw),), daemon=True).start()

    def serve(self, connection):
        with connection:
            request = read_request(connection)
            self.heard.append(request)
            body = self.answer(request) if callable(self.answer) else self.answer
            connection.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
                            + body)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Pair:
    """The same port outside, on a public address, and inside, where nobody may be led."""

    def __init__(self, answer=b""):
        self.outside = Server(PUBLIC, 0, answer)
        self.inside = Server(LOOPBACK, self.outside.port, b"a secret of the inside")
        self.port = self.outside.port

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.outside.close()
        self.inside.close()
        if kind is None:
            equal(self.inside.connections, 0, "connections to the inside")


def deliveries(hook, key):
    return PLANE.call("GET", f"{NATIVE}/webhooks/{hook}/deliveries", key=key)["deliveries"]


def hooked(name, answers, port, key):
    """A webhook to that name, and something to tell it."""
    NAMES.answers[name] = answers
    hook = PLANE.call("POST", f"{NATIVE}/webhooks", {"url": f"http://{name}:{port}/h", "events": ["key.created"]},
                      key=key)["id"]
    PLANE.call("POST", f"{NATIVE}/keys", {"name": name, "scope": "read"}, key=key)
    return hook


@test
def a_webhook_goes_to_no_address_that_changed():
    key = PLANE.user("hooker")
    with Pair() as pair:
        hook = hooked("turn.test", [[PUBLIC], [LOOPBACK]], pair.port, key)
        wait_until(lambda: pair.outside.heard, "the first delivery")
        PLANE.call("POST", f"{NATIVE}/keys", {"name": "second", "scope": "read"}, key=key)
        # To the address that is known, or to none.
        tried = wait_until(lambda: (found := deliveries(hook, key)) and all(
            one.get("detail") for one in found) and len(found) == 2 and found, "the second")
        for one in tried:
            assert one["state"] == "delivered" or "no public address" in one["detail"], tried
        PLANE.call("DELETE", f"{NATIVE}/webhooks/{hook}", key=key)


@test
def of_several_addresses_the_public_ones_alone_are_dialled():
    key = PLANE.user("several")
    with Pair() as pair:
        hook = hooked("both.test", [[LOOPBACK, "::1", PUBLIC]], pair.port, key)
        wait_until(lambda: pair.outside.heard, "the delivery")
        PLANE.call("DELETE", f"{NATIVE}/webhooks/{hook}", key=key)


@test
def no_spelling_of_the_inside_is_dialled():
    key = PLANE.user("spelling")
    with Pair() as pair:
        hooks = [hooked(f"inside{number}.test", [[address]], pair.port, key)
                 for number, address in enumerate(INSIDE)]
        for address, hook in zip(INSIDE, hooks):
            tried = wait_until(lambda hook=hook: [one for one in deliveries(hook, key) if one.get("detail")],
                               f"a try of {address}")
            assert "no public address" in tried[0]["detail"], (address, tried)
            PLANE.call("DELETE", f"{NATIVE}/webhooks/{hook}", key=key)


@test
def a_mounted_store_that_moves_inside_is_not_followed():
    key = PLANE.user("mounter")
    with Pair(lambda request: EMPTY_LIST if request.method == "GET" else b"") as pair:
        NAMES.answers["store.test"] = [[PUBLIC]]
        PLANE.create("mounter", key=key)
        PLANE.call("POST", f"{NATIVE}/sandboxes/mounter/mounts", {
            "path": "/m", "bucket": "bucket", "endpoint": f"http://store.test:{pair.port}", "region": "r",
            "accessKeyId": "a", "secretAccessKey": "b"}, key=key)
        equal(PLANE.execute("mounter", "ls /m", key=key)["exitCode"], 0, "listed outside")
        assert pair.outside.heard, "nobody asked"
        NAMES.answers["store.test"] = [[LOOPBACK]]
        told = wait_until(lambda: (answer := PLANE.execute("mounter", "cat /m/secret; echo x > /m/f", key=key))
                          ["stderr"].count("rror") + answer["stderr"].count("denied") and answer, "an error")
        assert "secret of the inside" not in told["stdout"], told
        assert NAMES.asked["store.test"] >= 2, "the name was not asked for again"
        PLANE.call("DELETE", f"{NATIVE}/sandboxes/mounter", key=key)


@test
def a_store_whose_name_is_inside_from_the_second_look_on_is_not_mounted():
    """Checked when the mount is asked for, connected to a moment later."""
    key = PLANE.user("second")
    with Pair(EMPTY_LIST) as pair:
        PLANE.create("second", key=key)
        NAMES.answers["quick.test"] = [[PUBLIC], [LOOPBACK]]
        try:
            PLANE.call("POST", f"{NATIVE}/sandboxes/second/mounts", {
                "path": "/m", "bucket": "bucket", "endpoint": f"http://quick.test:{pair.port}", "region": "r",
                "accessKeyId": "a", "secretAccessKey": "b"}, key=key)
            told = PLANE.execute("second", "ls /m; cat /m/secret", key=key)
            assert "inside" not in told["stdout"], told
        except Refused as refused:
            assert "no public address" in str(refused.body), refused
        PLANE.call("DELETE", f"{NATIVE}/sandboxes/second", key=key)


class Front(Server):
    """A registry on a public address, which sends for blobs to `elsewhere`."""

    def __init__(self, registry):
        super().__init__(OTHER_PUBLIC, 0)
        self.registry, self.elsewhere = registry, ""

    def serve(self, connection):
        with connection:
            request = read_request(connection)
            if "/blobs/" in request.target:
                connection.send(f"HTTP/1.1 307 x\r\nLocation: {self.elsewhere}{request.target}\r\n"
                                "Connection: close\r\nContent-Length: 0\r\n\r\n".encode())
                return
            _, headers, body = self.registry.call("GET", request.target, **dict(request.headers))
            connection.send(f"HTTP/1.1 200 OK\r\nContent-Type: {headers['Content-Type']}\r\n"
                            f"Connection: close\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


@test
def a_registry_sends_nobody_to_a_name_that_moved_inside():
    with Registry() as registry, ImagePlace() as place, Pair() as pair:
        registry.push("tool", "1", [layer(programs("sh"))])
        pair.outside.answer = lambda request: registry.call("GET", request.target)[2]
        front = Front(registry)
        NAMES.answers["registry.test"] = [[OTHER_PUBLIC]]
        for number, addresses in enumerate(([LOOPBACK], ["::1", "::ffff:127.0.0.1"], ["10.1.2.3"])):
            NAMES.answers[f"blobs{number}.test"] = [addresses]
            front.elsewhere = f"http://blobs{number}.test:{pair.port}"
            status, out = place.image("pull", "--plain-http", f"registry.test:{front.port}/tool:1")
            equal(status, 1, out)
            assert re.search("is (loopback|private|mapped|an IPv4)", out), out
            equal(place.layers(), [], "layers")
        # Outside at the first look, and inside from then on: whichever it is, nobody inside is asked.
        NAMES.answers["turning.test"] = [[PUBLIC], [LOOPBACK]]
        front.elsewhere = f"http://turning.test:{pair.port}"
        place.image("pull", "--plain-http", f"registry.test:{front.port}/tool:1")
        assert pair.outside.heard, "the name was never outside"
        front.close()


def start():
    global NAMES  # pylint: disable=global-statement
    if os.geteuid() != 0:
        skip("root")
    for address in (PUBLIC, OTHER_PUBLIC):
        publish(address)
    with NameServer() as NAMES:
        return main_with_plane("changing names")


sys.exit(start())
