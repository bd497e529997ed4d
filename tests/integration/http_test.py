#!/usr/bin/python3
"""HTTP/1.1 as clients use it: keep-alive, pipelining, bodies both ways, methods and targets."""

import json
import os
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from http_raw import TIMEOUT_SECONDS, connect, get, request  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from tap import equal, main, test  # noqa: E402

MIB = 1 << 20


def ask(method, path, *headers, body=b"", version="1.1"):
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


# --- connections ---------------------------------------------------------------------------------


@test
def a_connection_is_kept_for_further_requests():
    with connect(DEMO.address) as connection:
        for _ in range(10):
            connection.send(ask("GET", "/json"))
            response = connection.response()
            equal((response.status, "connection" in response.headers), (200, False), "answer")


@test
def connection_close_is_honoured():
    with connect(DEMO.address) as connection:
        connection.send(ask("GET", "/json", "Connection: close"))
        equal(connection.response().headers["connection"], "close", "Connection")
        assert connection.is_closed_by_peer()


@test
def http_1_0_closes_unless_asked_to_keep_the_connection():
    with connect(DEMO.address) as connection:
        connection.send(ask("GET", "/json", "Connection: keep-alive", version="1.0"))
        equal(connection.response().headers["connection"], "keep-alive", "Connection")
        connection.send(ask("GET", "/json", version="1.0"))
        equal(connection.response().status, 200, "status")
        assert connection.is_closed_by_peer()


@test
def http_1_0_gets_no_chunks():
    with connect(DEMO.address) as connection:
        connection.send(ask("GET", "/bytes/100000?chunked=1", version="1.0"))
        response = connection.response()
        assert "transfer-encoding" not in response.headers
        equal(len(response.body), 100000, "bytes until the end of the stream")


@test
def a_hundred_pipelined_requests_are_answered_in_order():
    with connect(DEMO.address) as connection:
        connection.send(b"".join(ask("GET", f"/bytes/{1000 + n}") for n in range(100)))
        equal([len(connection.response().body) for _ in range(100)],
              [1000 + n for n in range(100)], "bodies")


@test
def pipelined_bodies_of_both_kinds_stay_with_their_requests():
    with connect(DEMO.address) as connection:
        connection.send(b"".join(
            ask("POST", "/collect", "Content-Length: 3", body=b"%03d" % n) +
            ask("POST", "/collect", "Transfer-Encoding: chunked", body=chunked(b"c", b"%d" % n))
            for n in range(100)))
        for n in range(100):
            equal(connection.response().body, b"%03d" % n, "body of known length")
            equal(connection.response().body, b"c%d" % n, "chunked body")


@test
def pipelining_without_reading_stops_at_the_sockets_and_loses_nothing():
    """A client that never reads must not make us queue without end."""
    count = 4000
    one = ask("GET", "/bytes/20000")
    with connect(DEMO.address) as connection:
        connection.socket.settimeout(0.5)
        sent = 0
        try:
            while sent < count * len(one):
                sent += connection.socket.send((one * count)[sent:sent + 65536])
        except TimeoutError:
            pass
        assert DEMO.memory_kb() < 64 * 1024, f"{DEMO.memory_kb()} kB"
        connection.socket.settimeout(TIMEOUT_SECONDS)
        for _ in range(sent // len(one)):
            equal(len(connection.response().body), 20000, "body")


@test
def a_half_closed_client_still_gets_its_answers():
    with connect(DEMO.address) as connection:
        connection.send(ask("POST", "/collect", "Content-Length: 2", body=b"hi") * 3)
        connection.socket.shutdown(socket.SHUT_WR)
        equal([connection.response().body for _ in range(3)], [b"hi"] * 3, "bodies")
        assert connection.is_closed_by_peer()


@test
def a_client_that_ends_in_the_middle_of_a_head_is_let_go():
    with connect(DEMO.address) as connection:
        connection.send(b"GET /json HTTP/1.1\r\nHost: lo")
        connection.socket.shutdown(socket.SHUT_WR)
        assert b"200" not in connection.read_to_end()
    equal(get(DEMO.address, "/json").status, 200, "the next client")


# --- bodies --------------------------------------------------------------------------------------


@test
def a_body_in_chunks_arrives_whole():
    with connect(DEMO.address) as connection:
        pieces = [b"a", b"b" * 70000, b"c" * 3, b"\r\n0\r\n\r\n"]
        connection.send(ask("POST", "/collect", "Transfer-Encoding: chunked",
                            body=chunked(*pieces)))
        equal(connection.response().body, b"".join(pieces), "echo")


@test
def a_body_split_into_single_bytes_arrives_whole():
    message = ask("POST", "/collect", "Transfer-Encoding: chunked",
                  body=b"3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n")
    with connect(DEMO.address) as connection:
        connection.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(len(message)):
            connection.send(message[at:at + 1])
        equal(connection.response().body, b"abcde", "echo")


@test
def a_reply_without_known_length_comes_in_chunks():
    response = get(DEMO.address, "/bytes/300000?chunked=1")
    equal(response.headers["transfer-encoding"], "chunked", "Transfer-Encoding")
    assert "content-length" not in response.headers
    equal(response.body, b"b" * 300000, "body")


@test
def a_body_nobody_wants_is_read_away_and_the_connection_kept():
    with connect(DEMO.address) as connection:
        connection.send(ask("GET", "/json", "Content-Length: 60000", body=b"x" * 60000))
        connection.send(ask("GET", "/bytes/5"))
        equal(connection.response().status, 200, "the first")
        equal(connection.response().body, b"bbbbb", "the second")


@test
def expect_100_continue_is_answered_before_the_body():
    with connect(DEMO.address) as connection:
        connection.send(ask("POST", "/collect", "Expect: 100-continue", "Content-Length: 5"))
        equal(connection.response_head().status, 100, "interim status")
        connection.send(b"hello")
        response = connection.response()
        equal((response.status, response.body), (200, b"hello"), "answer")
        connection.send(ask("GET", "/json"))
        equal(connection.response().status, 200, "the next request")


@test
def expect_100_continue_with_a_body_too_large_is_refused_before_the_body():
    with connect(DEMO.address) as connection:
        connection.send(ask("POST", "/collect", "Expect: 100-continue",
                            f"Content-Length: {2 * MIB}"))
        response = connection.response_head()
        equal((response.status, response.headers["connection"]), (413, "close"), "answer")
        connection.read_to_end()


@test
def expect_100_continue_for_an_unknown_path_is_refused_before_the_body():
    with connect(DEMO.address) as connection:
        connection.send(ask("POST", "/nowhere", "Expect: 100-continue", "Content-Length: 5"))
        response = connection.response_head()
        equal((response.status, response.headers["connection"]), (404, "close"), "answer")
        connection.read_to_end()


@test
def another_expectation_gets_417():
    with connect(DEMO.address) as connection:
        connection.send(ask("POST", "/collect", "Expect: miracles", "Content-Length: 2",
                            body=b"hi"))
        equal(connection.response().status, 417, "status")


# --- methods and targets -------------------------------------------------------------------------


@test
def head_answers_with_the_headers_of_get_and_no_body():
    with connect(DEMO.address) as connection:
        connection.send(ask("HEAD", "/bytes/1234") + ask("GET", "/bytes/1234"))
        head = connection.response("HEAD")
        body = connection.response()
        equal(head.status, 200, "status")
        equal(head.headers["content-length"], "1234", "Content-Length")
        equal(len(body.body), 1234, "the body that follows belongs to GET")
        equal([name for name, _ in head.headers], [name for name, _ in body.headers], "names")


@test
def head_of_a_chunked_reply_has_no_body():
    with connect(DEMO.address) as connection:
        connection.send(ask("HEAD", "/bytes/1234?chunked=1") + ask("GET", "/json"))
        equal(connection.response("HEAD").status, 200, "status")
        assert json.loads(connection.response().body)["ok"]


@test
def an_unknown_path_gets_404():
    equal(get(DEMO.address, "/nowhere").status, 404, "status")


@test
def a_wrong_method_gets_405_and_what_is_allowed():
    response = request(DEMO.address, "DELETE", "/sink")
    equal(response.status, 405, "status")
    equal(sorted(response.headers["allow"].replace(" ", "").split(",")), ["POST", "PUT"], "Allow")


@test
def options_tells_what_is_allowed():
    response = request(BURROW.address, "OPTIONS", "/health")
    assert response.status in (200, 204, 405), response
    equal(response.headers["allow"], "GET, HEAD", "Allow")


@test
def an_absolute_target_is_answered_like_its_path():
    with connect(DEMO.address) as connection:
        connection.send(ask("GET", "http://localhost/bytes/7?chunked=1"))
        equal(connection.response().body, b"b" * 7, "body")


@test
def escapes_in_a_path_are_decoded_once():
    equal(len(get(DEMO.address, "/bytes/%31%32").body), 12, "body")
    equal(get(DEMO.address, "/bytes/%2531").status, 400, "a number escaped twice")
    equal(get(DEMO.address, "/bytes%2F12").status, 404, "an escaped slash divides nothing")
    equal(get(DEMO.address, "/bytes/%zz").status, 400, "a broken escape")


@test
def errors_of_burrow_are_json_with_the_request_id():
    response = get(BURROW.address, "/nowhere")
    error = json.loads(response.body)["error"]
    equal(error["code"], "not_found", "code")
    equal(error["requestId"], response.headers["x-request-id"], "request id")
    equal(response.headers["content-type"], "application/json", "Content-Type")


@test
def every_answer_has_a_date_and_an_id_of_its_own():
    began = time.time()
    answers = [get(BURROW.address, "/health") for _ in range(5)]
    equal(len({answer.headers["x-request-id"] for answer in answers}), 5, "different ids")
    for answer in answers:
        parsed = time.strptime(answer.headers["date"], "%a, %d %b %Y %H:%M:%S GMT")
        said = time.mktime(parsed) - time.timezone
        assert began - 2 < said < time.time() + 2, answer.headers["date"]


with Burrow() as BURROW, NetDemo() as DEMO:
    main()
