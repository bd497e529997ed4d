#!/usr/bin/python3
"""Limits of size, number and time: what is too large or too slow ends, and others do not notice."""

import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from http_raw import connect, get  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from program import PATIENCE, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20
SHORT = ("--head-timeout", "500", "--body-timeout", "500", "--idle-timeout", "500",
         "--stall-timeout", "500")


def status_of(address, message):
    """Status of the answer to raw bytes; the connection must be closed behind it."""
    with connect(address) as connection:
        try:
            connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            pass  # answered before it was all sent
        response = connection.response()
        assert connection.is_closed_by_peer(), "left open"
        return response.status


# --- sizes ---------------------------------------------------------------------------------------


@test
def a_target_over_16_kib_gets_414():
    with Burrow() as server:
        long = b"GET /" + b"a" * 17000 + b" HTTP/1.1\r\nHost: a\r\n\r\n"
        equal(status_of(server.address, long), 414, "status")
        fits = "/" + "a" * 16000
        equal(get(server.address, fits).status, 404, "a target that just fits")


@test
def headers_over_64_kib_get_431():
    with Burrow() as server:
        one = b"X: " + b"a" * 70000 + b"\r\n"
        many = b"".join(b"X-%02d: " % n + b"a" * 1000 + b"\r\n" for n in range(70))
        for headers in (one, many):
            head = b"GET /health HTTP/1.1\r\nHost: a\r\n" + headers + b"\r\n"
            equal(status_of(server.address, head), 431, "status")
        endless = b"GET /health HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 200000
        equal(status_of(server.address, endless), 431, "a header that never ends")


@test
def more_than_128_headers_get_431():
    with Burrow() as server:
        def head(count):
            return b"GET /health HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * count + b"\r\n"
        equal(status_of(server.address, head(128)), 431, "status")
        with connect(server.address) as connection:
            connection.send(head(127))
            equal(connection.response().status, 200, "128 headers with Host")


@test
def an_announced_body_over_the_limit_gets_413_at_once():
    with NetDemo() as demo, connect(demo.address) as connection:
        connection.send(b"POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n"
                        % (MIB + 1))
        equal(connection.response().status, 413, "status")


@test
def a_chunked_body_over_the_limit_gets_413():
    piece = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with NetDemo() as demo:
        head = b"POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        equal(status_of(demo.address, head + piece * 17), 413, "status")
        with connect(demo.address) as connection:
            connection.send(head + piece * 16 + b"0\r\n\r\n")
            equal(len(connection.response().body), MIB, "a body that just fits")


@test
def a_body_for_a_route_without_a_limit_of_its_own_is_small():
    with Burrow() as server, connect(server.address) as connection:
        connection.send(b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n")
        equal(connection.response().status, 413, "status")


@test
def chunk_framing_must_be_worth_its_data():
    with NetDemo() as demo:
        head = b"POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
        padded = b"1;" + b"e" * 1000 + b"\r\nx\r\n"
        equal(status_of(demo.address, head + padded * 200), 400, "status")


# --- time ----------------------------------------------------------------------------------------


def assert_served(address):
    """A fast client is answered, whatever slow ones do."""
    for _ in range(3):
        equal(get(address, "/json").status, 200, "status")


@test
def a_head_sent_byte_by_byte_gets_408_while_others_are_served():
    with NetDemo(*SHORT) as demo, connect(demo.address) as slow:
        slow.socket.settimeout(0.02)
        started = time.monotonic()
        slow.send(b"G")
        assert_served(demo.address)
        for byte in b"ET /json HTTP/1.1\r\nHost: a\r\nX-Slow: " + b"a" * 1000:
            try:
                slow.send(bytes([byte]))
                if slow.read_some():
                    break
            except TimeoutError:
                pass
        else:
            raise AssertionError("never cut off")
        assert time.monotonic() - started > 0.45, "cut off too early"
        slow.socket.settimeout(PATIENCE)
        response = slow.response()
        equal((response.status, response.headers["connection"]), (408, "close"), "answer")
        assert slow.is_closed_by_peer()


@test
def a_body_that_stops_coming_gets_408():
    with NetDemo(*SHORT) as demo, connect(demo.address) as slow:
        slow.send(b"POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf")
        assert_served(demo.address)
        equal(slow.response().status, 408, "status")
        assert slow.is_closed_by_peer()


@test
def a_body_that_keeps_coming_slowly_is_taken():
    with NetDemo(*SHORT) as demo, connect(demo.address) as slow:
        slow.send(b"POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n")
        for byte in b"steady":
            time.sleep(0.15)  # longer than the timeout in all
            slow.send(bytes([byte]))
        equal(slow.response().body, b"steady", "echo")


@test
def an_idle_connection_is_closed_without_a_word():
    with NetDemo(*SHORT) as demo, connect(demo.address) as fresh, connect(demo.address) as used:
        used.send(b"GET /json HTTP/1.1\r\nHost: a\r\n\r\n")
        equal(used.response().status, 200, "status")
        assert fresh.is_closed_by_peer() and used.is_closed_by_peer()


@test
def a_reader_that_stalls_is_cut():
    with NetDemo(*SHORT) as demo:
        before = demo.open_files()
        with connect(demo.address) as stalled:
            stalled.send(b"GET /bytes/1000000000 HTTP/1.1\r\nHost: a\r\n\r\n")
            wait_until(lambda: demo.open_files() > before, "the connection")
            assert_served(demo.address)
            line = [line for line in demo.requests(4) if "/bytes" in line["path"]][0]
            assert line["sent"] < 1000000000, "it was sent after all"
            wait_until(lambda: demo.open_files() <= before, "its descriptor to be closed")


@test
def a_reader_that_is_slow_but_steady_is_not_cut():
    with NetDemo(*SHORT) as demo, connect(demo.address) as steady:
        steady.send(b"GET /bytes/30000000 HTTP/1.1\r\nHost: a\r\n\r\n")
        missing = int(steady.response_head().headers["content-length"]) - len(steady.buffer)
        while missing:
            time.sleep(0.05)  # three times the timeout in all
            piece = steady.socket.recv(min(missing, 1000000), socket.MSG_WAITALL)
            assert piece, f"cut with {missing} bytes to come"
            missing -= len(piece)


@test
def timeouts_of_burrow_come_from_its_settings():
    with Burrow("--head-timeout", "300ms", "--idle-timeout", "1") as server:
        with connect(server.address) as slow:
            slow.send(b"GET /hea")
            equal(slow.response().status, 408, "status")


# --- numbers -------------------------------------------------------------------------------------


@test
def connections_beyond_the_maximum_wait_until_there_is_room():
    with NetDemo("--connections", "5") as demo:
        clients = [connect(demo.address) for _ in range(5)]
        try:
            for client in clients:
                client.send(b"GET /json HTTP/1.1\r\nHost: a\r\n\r\n")
                equal(client.response().status, 200, "status")
            with connect(demo.address) as waiting:
                waiting.send(b"GET /json HTTP/1.1\r\nHost: a\r\n\r\n")
                waiting.socket.settimeout(0.3)
                try:
                    waiting.read_some()
                    raise AssertionError("a sixth connection was served")
                except TimeoutError:
                    pass
                clients.pop().close()
                waiting.socket.settimeout(PATIENCE)
                equal(waiting.response().status, 200, "once there is room")
        finally:
            for client in clients:
                client.close()


@test
def closed_connections_leave_no_descriptor_behind():
    with NetDemo() as demo:
        get(demo.address, "/json")
        before = demo.open_files()
        for _ in range(200):
            with connect(demo.address) as connection:
                connection.send(b"GET /json HTTP/1.1\r\nHost: a\r\n\r\nGET /js")
                connection.response()
        wait_until(lambda: demo.open_files() <= before, "descriptors to be closed")


main()
