#!/usr/bin/python3
"""The reverse proxy: transparent but for what belongs to one hop, honest about failures."""

import os
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import free_port  # noqa: E402
from fake_upstream import FakeUpstream, read_request, read_request_head  # noqa: E402
from http_raw import connect, get, request  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from program import PATIENCE, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from websocket_raw import (  # noqa: E402
    BINARY, CLOSE, accept_of, close_payload, frame, open_websocket)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Scripted:
    """A proxy with a fake upstream that answers every request with the same bytes."""

    def __init__(self, answer=OK):
        self.requests = []
        self.answer = answer
        self.upstream = FakeUpstream(self.serve)
        self.proxy = None

    def serve(self, connection):
        while True:
            self.requests.append(read_request(connection))
            connection.send(self.answer)

    def __enter__(self):
        self.upstream.__enter__()
        self.proxy = NetDemo(proxy_to=self.upstream.address)
        self.proxy.__enter__()
        return self

    def __exit__(self, *failure):
        try:
            self.proxy.__exit__(*failure)
        finally:
            self.upstream.__exit__()

    @property
    def address(self):
        return self.proxy.address


# --- the request on its way up -------------------------------------------------------------------


@test
def headers_go_up_in_order_with_duplicates_and_their_case():
    sent = [("Host", "example.org:81"), ("x-a", "1"), ("X-B", "two  words"), ("x-a", "2"),
            ("Cookie", "a=b"), ("ACCEPT", "*/*"), ("X-Empty", ""), ("Cookie", "c=d"),
            ("X-Utf8", "gr\xc3\xbc\xc3\x9fe"), ("Authorization", "Bearer x"), ("Via", "1.1 me")]
    with Scripted() as case:
        equal(request(case.address, "GET", "/path/%2F?a=b&c", sent).status, 200, "status")
        received = case.requests[0]
        equal((received.method, received.target), ("GET", "/path/%2F?a=b&c"), "request line")
        equal(list(received.headers)[:len(sent)], sent, "headers")
        equal([name for name, _ in received.headers][len(sent):],
              ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"], "what was added")


@test
def headers_of_one_hop_stay_here():
    hop = [("Connection", "close, X-Mine"), ("X-Mine", "secret"), ("Keep-Alive", "timeout=5"),
           ("Proxy-Authorization", "Basic x"), ("TE", "trailers"), ("Proxy-Connection", "close"),
           ("Trailer", "X-Sum"), ("Upgrade", "h2c"), ("Connection", "x-other"), ("X-Other", "1"),
           ("X-Kept", "1")]
    with Scripted() as case:
        message = b"GET / HTTP/1.1\r\nHost: a\r\n" + b"".join(
            f"{name}: {value}\r\n".encode() for name, value in hop) + b"\r\n"
        with connect(case.address) as connection:
            connection.send(message)
            equal(connection.response().status, 200, "status")
        names = {name.lower() for name, _ in case.requests[0].headers}
        equal(names, {"host", "x-kept", "x-forwarded-for", "x-forwarded-proto",
                      "x-forwarded-host"}, "names upstream")


@test
def who_asked_is_told_and_what_the_client_claimed_is_dropped():
    claims = [("Host", "shop.example"), ("X-Forwarded-For", "10.0.0.1"),
              ("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "bank.example"),
              ("Forwarded", "for=10.0.0.1"), ("x-forwarded-for", "10.0.0.2")]
    with Scripted() as case:
        request(case.address, "GET", "/", claims)
        headers = case.requests[0].headers
        equal(headers["x-forwarded-for"], "127.0.0.1", "X-Forwarded-For")
        equal(headers["x-forwarded-proto"], "http", "X-Forwarded-Proto")
        equal(headers["x-forwarded-host"], "shop.example", "X-Forwarded-Host")
        assert "forwarded" not in headers


@test
def an_absolute_target_goes_up_as_its_path():
    with Scripted() as case:
        with connect(case.address) as connection:
            connection.send(b"GET http://other.example/p?q=1 HTTP/1.1\r\n"
                            b"Host: other.example\r\n\r\n")
            connection.response()
        equal(case.requests[0].target, "/p?q=1", "target")
        equal(case.requests[0].headers["host"], "other.example", "Host")


@test
def bodies_of_both_kinds_go_up_whole():
    with Scripted() as case:
        request(case.address, "POST", "/a", body=b"x" * 300000)
        with connect(case.address) as connection:
            connection.send(b"PUT /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                            b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n")
            equal(connection.response().status, 200, "status")
            connection.send(b"POST /c HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            equal(connection.response().status, 200, "status")
        equal([len(case.requests[0].body), case.requests[1].body, case.requests[2].body],
              [300000, b"abcdefg", b""], "bodies")
        equal(case.requests[1].headers["transfer-encoding"], "chunked", "framing")
        equal(case.requests[2].headers["content-length"], "0", "an empty body that was announced")


@test
def expect_is_answered_here():
    with Scripted() as case, connect(case.address) as connection:
        connection.send(b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                        b"Content-Length: 2\r\n\r\n")
        equal(connection.response_head().status, 100, "interim status")
        connection.send(b"hi")
        equal(connection.response().status, 200, "status")
        assert "expect" not in case.requests[0].headers


# --- the response on its way down ----------------------------------------------------------------


@test
def headers_come_down_in_order_without_those_of_one_hop():
    answer = (b"HTTP/1.1 201 Made\r\nSet-Cookie: a=1\r\nServer: fake\r\nset-cookie: b=2\r\n"
              b"Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=9\r\nDate: yesterday\r\n"
              b"Proxy-Authenticate: Basic\r\nX-Empty:\r\nContent-Length: 0\r\n\r\n")
    with Scripted(answer) as case, connect(case.address) as connection:
        connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        response = connection.response()
        equal(response.status, 201, "status")
        ours = ("x-request-id", "content-length")
        equal([pair for pair in response.headers if pair[0].lower() not in ours],
              [("Set-Cookie", "a=1"), ("Server", "fake"), ("set-cookie", "b=2"),
               ("Date", "yesterday"), ("X-Empty", "")], "headers")


@test
def a_response_without_length_comes_down_in_chunks():
    def script(connection):
        read_request(connection)
        connection.send(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
    with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        with connect(proxy.address) as connection:
            for _ in range(2):
                connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                response = connection.response()
                equal(response.headers["transfer-encoding"], "chunked", "framing")
                equal(response.body, b"until the end", "body")


@test
def a_response_in_chunks_comes_down_whole():
    answer = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
              b"5;x=y\r\nhello\r\n6\r\n world\r\n0\r\nX-Trailer: 1\r\n\r\n")
    with Scripted(answer) as case:
        equal(get(case.address, "/").body, b"hello world", "body")


@test
def interim_responses_of_the_upstream_are_passed_over():
    with Scripted(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK) as case:
        response = get(case.address, "/")
        equal((response.status, response.body), (200, b"ok"), "answer")


@test
def responses_without_a_body_keep_the_connection_in_step():
    for status in (b"204 No Content", b"304 Not Modified"):
        answer = b"HTTP/1.1 " + status + b"\r\nETag: x\r\n\r\n"
        with Scripted(answer) as case, connect(case.address) as connection:
            for _ in range(2):
                connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                response = connection.response()
                equal(response.status, int(status[:3]), "status")
                assert "transfer-encoding" not in response.headers, response
            equal(case.upstream.connections, 1, "connections upstream")


@test
def head_brings_the_length_and_no_body():
    with Scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 12345\r\n\r\n") as case:
        with connect(case.address) as connection:
            for _ in range(2):
                connection.send(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
                response = connection.response("HEAD")
                equal(response.headers["content-length"], "12345", "Content-Length")
            equal([one.method for one in case.requests], ["HEAD", "HEAD"], "methods upstream")


# --- connections ---------------------------------------------------------------------------------


@test
def connections_to_the_upstream_are_used_again():
    with Scripted() as case:
        for _ in range(20):
            equal(get(case.address, "/").status, 200, "status")
        equal((case.upstream.connections, len(case.requests)), (1, 20), "connections, requests")


@test
def a_kept_connection_that_the_upstream_closed_is_replaced():
    def script(connection):
        read_request(connection)
        connection.send(OK)  # says nothing about closing, and closes
    with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        for _ in range(20):
            equal(get(proxy.address, "/").status, 200, "status")


@test
def an_upstream_that_is_down_gives_502():
    with NetDemo(proxy_to=f"127.0.0.1:{free_port()}") as proxy:
        equal(get(proxy.address, "/").status, 502, "status")
        equal(get(proxy.address, "/again").status, 502, "status of the next one")


@test
def an_upstream_that_talks_nonsense_gives_502():
    for answer in (b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n"
                   b"Content-Length: 2\r\n\r\n12", b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100000):
        def script(connection, answer=answer):
            read_request(connection)
            connection.send(answer)
        with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
            equal(get(proxy.address, "/").status, 502, f"status for {answer[:30]}")


@test
def an_upstream_that_hangs_up_without_a_word_gives_502():
    with FakeUpstream(read_request) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        equal(request(proxy.address, "POST", "/", body=b"once").status, 502, "status")


@test
def an_upstream_that_dies_in_its_body_cuts_the_client():
    """A clean end would make half an answer look whole."""
    for framing in (b"Content-Length: 100\r\n\r\nhalf",
                    b"Transfer-Encoding: chunked\r\n\r\n64\r\nhalf"):
        def script(connection, framing=framing):
            read_request(connection)
            connection.send(b"HTTP/1.1 200 OK\r\n" + framing)
        with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
            with connect(proxy.address) as connection:
                connection.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
                try:
                    body = connection.response().body
                    raise AssertionError(f"a whole answer: {body}")
                except (EOFError, ConnectionResetError):
                    pass


@test
def a_client_that_leaves_cancels_the_request_upstream():
    gone = threading.Event()

    def script(connection):
        read_request_head(connection)
        if connection.is_closed_by_peer():
            gone.set()
    with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        with connect(proxy.address) as connection:
            connection.send(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda: b"/long" in upstream.received, "the request upstream")
        assert gone.wait(PATIENCE), "the upstream still works for nobody"
        equal(proxy.requests(1)[0]["status"], 499, "status in the log")


@test
def data_nobody_asked_for_ends_a_kept_connection():
    """A response sent ahead must never answer the next request."""
    with Scripted(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged") as case:
        for _ in range(5):
            equal(get(case.address, "/").body, b"ok", "body")
        equal(case.upstream.connections, 5, "connections upstream")


# --- tunnels -------------------------------------------------------------------------------------


@test
def a_websocket_works_through_the_proxy():
    with FakeUpstream(tunnel_echo) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        with open_websocket(proxy.address, "/tunnel") as client:
            for size in (0, 1, 125, 126, 65535, 65536, 300000):
                client.send(BINARY, b"z" * size)
                equal(len(client.receive()[2]), size, "echo")
            client.send(CLOSE, close_payload(1000))
            equal(client.receive_close(), 1000, "close code")


def tunnel_echo(connection):
    """A WebSocket server that sends every frame back unmasked."""
    accept = accept_of(read_request_head(connection).headers["sec-websocket-key"])
    connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "
                    b"Upgrade\r\nSec-WebSocket-Accept: " + accept.encode() + b"\r\n\r\n")
    while True:
        first, second = connection.read_exactly(2)
        length = second & 0x7F
        if length > 125:
            length = int.from_bytes(connection.read_exactly(2 if length == 126 else 8), "big")
        key = connection.read_exactly(4)
        hidden = connection.read_exactly(length)
        plain = bytes(byte ^ key[at & 3] for at, byte in enumerate(hidden))
        connection.send(frame(first & 15, plain, masked=False))


@test
def bytes_sent_ahead_of_an_upgrade_reach_the_other_side():
    def script(connection):
        read_request_head(connection)
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: demo\r\n"
                        b"Connection: Upgrade\r\n\r\nahead-down")
        connection.read_until(b"ahead-up")
        connection.send(b"got it")
    with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        with connect(proxy.address) as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                            b"Upgrade: demo\r\n\r\nahead-up")
            response = connection.response_head()
            equal((response.status, response.headers["upgrade"]), (101, "demo"), "upgrade")
            equal(connection.read_to_end(), b"ahead-downgot it", "bytes down the tunnel")


@test
def a_refused_upgrade_is_an_ordinary_answer():
    with Scripted(b"HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno") as case:
        with connect(case.address) as connection:
            for _ in range(2):
                connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                                b"Upgrade: demo\r\n\r\n")
                equal(connection.response().status, 403, "status")


@test
def an_upgrade_nobody_asked_for_gives_502():
    with Scripted(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: demo\r\n"
                  b"Connection: Upgrade\r\n\r\n") as case:
        equal(get(case.address, "/").status, 502, "status")


@test
def each_end_of_a_tunnel_is_passed_on():
    def script(connection):
        read_request_head(connection)
        connection.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: demo\r\n"
                        b"Connection: Upgrade\r\n\r\n")
        everything = connection.read_to_end()
        connection.send(b"%d bytes" % len(everything))
    with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        with connect(proxy.address) as connection:
            connection.send(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
                            b"Upgrade: demo\r\n\r\n")
            equal(connection.response_head().status, 101, "status")
            connection.send(b"t" * 1000000)
            connection.socket.shutdown(socket.SHUT_WR)
            equal(connection.read_to_end(), b"1000000 bytes", "what came back after our end")


main()
