#!/usr/bin/python3
"""Request smuggling: what could be read in two ways is refused before anyone behind us sees it.

Every form is sent with a second request right behind it. The answer must be one 400 and a closed
connection; the second request must be neither answered nor logged nor passed on to an upstream.
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow  # noqa: E402
from fake_upstream import FakeUpstream, read_request  # noqa: E402
from http_raw import connect, request  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

SECOND = b"GET /second HTTP/1.1\r\nHost: localhost\r\n\r\n"
HOST = b"Host: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
NO_CHUNKS = b"0\r\n\r\n"


def post(headers, body=b"", version=b"HTTP/1.1", host=HOST):
    return b"POST /health " + version + b"\r\n" + host + headers + b"\r\n" + body


# Forms that are refused with their head: nothing behind the server may see even their first byte.
HEADS = {
    "content_length_with_chunked": post(b"Content-Length: 5\r\n" + CHUNKED, NO_CHUNKS),
    "chunked_with_content_length": post(CHUNKED + b"Content-Length: 5\r\n", NO_CHUNKS),
    "chunked_with_content_length_0": post(CHUNKED + b"Content-Length: 0\r\n", NO_CHUNKS),
    "two_content_lengths": post(b"Content-Length: 5\r\nContent-Length: 6\r\n", b"12345"),
    "two_equal_content_lengths": post(b"Content-Length: 5\r\nContent-Length: 5\r\n", b"12345"),
    "a_list_of_content_lengths": post(b"Content-Length: 5, 5\r\n", b"12345"),
    "a_content_length_with_plus": post(b"Content-Length: +5\r\n", b"12345"),
    "a_negative_content_length": post(b"Content-Length: -5\r\n", b"12345"),
    "a_hexadecimal_content_length": post(b"Content-Length: 0x5\r\n", b"12345"),
    "a_content_length_with_a_gap": post(b"Content-Length: 5 0\r\n", b"12345"),
    "an_empty_content_length": post(b"Content-Length:\r\n"),
    "a_content_length_past_64_bits": post(b"Content-Length: 18446744073709551621\r\n", b"12345"),
    "a_content_length_past_63_bits": post(b"Content-Length: 9223372036854775808\r\n", b"12345"),
    "a_coding_like_chunked": post(b"Transfer-Encoding: xchunked\r\n", NO_CHUNKS),
    "chunked_then_identity": post(b"Transfer-Encoding: chunked, identity\r\n", NO_CHUNKS),
    "gzip_then_chunked": post(b"Transfer-Encoding: gzip, chunked\r\n", NO_CHUNKS),
    "the_coding_identity": post(b"Transfer-Encoding: identity\r\n", NO_CHUNKS),
    "chunked_twice": post(CHUNKED + CHUNKED, NO_CHUNKS),
    "chunked_twice_in_one_list": post(b"Transfer-Encoding: chunked, chunked\r\n", NO_CHUNKS),
    "chunked_in_quotes": post(b'Transfer-Encoding: "chunked"\r\n', NO_CHUNKS),
    "chunked_behind_a_vertical_tab": post(b"Transfer-Encoding: \x0bchunked\r\n", NO_CHUNKS),
    "chunked_with_a_parameter": post(b"Transfer-Encoding: chunked;a=b\r\n", NO_CHUNKS),
    "an_empty_transfer_encoding": post(b"Transfer-Encoding:\r\n", NO_CHUNKS),
    "chunked_in_http_1_0": post(CHUNKED, NO_CHUNKS, version=b"HTTP/1.0"),
    "a_bare_cr_before_a_header": post(b"X:\rxTransfer-Encoding: chunked\r\n", NO_CHUNKS),
    "a_bare_cr_ending_a_value": post(b"X: a\rTransfer-Encoding: chunked\r\n", NO_CHUNKS),
    "a_bare_cr_in_a_value": post(b"X: a\rb\r\n"),
    "a_space_before_the_colon_of_host": post(b"", host=b"Host : localhost\r\n"),
    "a_space_before_the_colon_of_chunked": post(b"Transfer-Encoding : chunked\r\n", NO_CHUNKS),
    "a_space_before_the_colon_of_length": post(b"Content-Length : 5\r\n", b"12345"),
    "a_tab_before_the_colon": post(b"Transfer-Encoding\t: chunked\r\n", NO_CHUNKS),
    "a_line_folded_with_a_space": post(b"X: a\r\n b\r\n"),
    "a_line_folded_with_a_tab": post(b"X: a\r\n\tb\r\n"),
    "a_folded_empty_value": post(b"X:\r\n b\r\n"),
    "a_folded_transfer_encoding": post(b"Transfer-Encoding:\r\n chunked\r\n", NO_CHUNKS),
    "a_folded_content_length": post(b"Content-Length: 1\r\n 0\r\n", b"12345"),
    "a_folded_empty_value_of_blanks": post(b"X:\r\n \r\n"),
    "a_fold_of_blanks_alone": post(b"X: a\r\n \r\n"),
    "a_space_before_the_first_header": post(b"", host=b" " + HOST),
    "a_missing_host": post(b"", host=b""),
    "two_hosts": post(b"", host=b"Host: a\r\nHost: b\r\n"),
    "two_equal_hosts": post(b"", host=HOST + HOST),
    "a_host_with_a_user": post(b"", host=b"Host: user@localhost\r\n"),
    "a_host_with_a_path": post(b"", host=b"Host: localhost/x\r\n"),
    "a_host_with_a_gap": post(b"", host=b"Host: a b\r\n"),
    "a_list_of_hosts": post(b"", host=b"Host: a, b\r\n"),
    "a_host_with_a_false_port": post(b"", host=b"Host: localhost:http\r\n"),
    "a_header_ended_by_lf": post(b"X: a\nTransfer-Encoding: chunked\r\n", NO_CHUNKS),
    "a_head_of_lf_lines": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "a_nul_in_a_value": post(b"X: a\0b\r\n"),
    "a_nul_in_a_name": post(b"X\0: a\r\n"),
    "an_escape_character_in_a_value": post(b"X: \x1b[2J\r\n"),
    "a_name_outside_ascii": post(b"X\xff: a\r\n"),
    "a_header_without_colon": post(b"Transfer-Encoding chunked\r\n", NO_CHUNKS),
    "a_header_without_name": post(b": a\r\n"),
    "a_space_in_the_target": b"GET /a b HTTP/1.1\r\n" + HOST + b"\r\n",
    "a_control_character_in_the_target": b"GET /a\x01b HTTP/1.1\r\n" + HOST + b"\r\n",
    "a_lower_case_protocol": b"GET /health http/1.1\r\n" + HOST + b"\r\n",
    "a_made_up_method": b"GTE /health HTTP/1.1\r\n" + HOST + b"\r\n",
}

# Forms that show only in the body: a proxy that streams has begun to pass it on, but must never
# complete it.
BODIES = {
    "a_space_behind_a_chunk_size": b"5 \r\nhello\r\n0\r\n\r\n",
    "lf_in_a_chunk_extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "a_cr_in_a_chunk_extension": b"5;a\rb\r\nhello\r\n0\r\n\r\n",
    "a_chunk_size_ended_by_lf": b"5\nhello\r\n0\r\n\r\n",
    "a_chunk_size_with_0x": b"0x5\r\nhello\r\n0\r\n\r\n",
    "a_chunk_size_with_plus": b"+5\r\nhello\r\n0\r\n\r\n",
    "a_negative_chunk_size": b"-5\r\nhello\r\n0\r\n\r\n",
    "a_chunk_size_past_64_bits": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "an_empty_chunk_size": b"\r\nhello\r\n0\r\n\r\n",
    "a_chunk_without_its_crlf": b"5\r\nhello0\r\n\r\n",
    "a_chunk_ended_by_lf": b"5\r\nhello\n0\r\n\r\n",
    "a_chunk_longer_than_it_says": b"5\r\nhello!\r\n0\r\n\r\n",
    "a_folded_trailer": b"5\r\nhello\r\n0\r\nX: a\r\n b\r\n\r\n",
    "a_trailer_with_a_space_before_its_colon": b"5\r\nhello\r\n0\r\nX : a\r\n\r\n",
}


def answer_to(address, attack):
    """The only answer; fails when another follows or the connection stays open."""
    with connect(address) as connection:
        connection.send(attack + SECOND)
        response = connection.response()
        rest = connection.read_to_end()
        equal(rest, b"", "bytes behind the answer")
        return response


def refused(address, attack):
    response = answer_to(address, attack)
    equal(response.status, 400, "status")
    equal(response.headers["connection"], "close", "Connection")


def sentence(name, function, *arguments):
    """Register a test under a name made from a table."""
    def run():
        function(*arguments)
    run.__name__ = name
    test(run)


def burrow_refuses(attack):
    refused(BURROW.address, attack)


def proxy_refuses_the_head(attack):
    before = UPSTREAM.connections, len(UPSTREAM.received)
    refused(PROXY.address, attack)
    equal((UPSTREAM.connections, len(UPSTREAM.received)), before, "connections and bytes upstream")


def demo_refuses_the_body(body):
    attack = b"POST /sink HTTP/1.1\r\n" + HOST + CHUNKED + b"\r\n" + body
    refused(DEMO.address, attack)


def proxy_never_completes_the_body(body):
    answered = len(ANSWERED)
    refused(PROXY.address, post(CHUNKED, body))
    equal(len(ANSWERED), answered, "requests that were complete upstream")


def burrow_cuts_after_the_body(body):
    """It answers 405 from the head alone; what the body hides must still not be answered."""
    equal(answer_to(BURROW.address, post(CHUNKED, body)).status, 405, "status")


for form, bytes_sent in HEADS.items():
    sentence(f"burrow_refuses_{form}", burrow_refuses, bytes_sent)
for form, bytes_sent in HEADS.items():
    sentence(f"the_proxy_keeps_from_its_upstream_{form}", proxy_refuses_the_head, bytes_sent)
for form, bytes_sent in BODIES.items():
    sentence(f"a_streaming_route_refuses_{form}", demo_refuses_the_body, bytes_sent)
for form, bytes_sent in BODIES.items():
    sentence(f"the_proxy_never_completes_{form}", proxy_never_completes_the_body, bytes_sent)
for form, bytes_sent in BODIES.items():
    sentence(f"burrow_answers_nothing_behind_{form}", burrow_cuts_after_the_body, bytes_sent)


@test
def other_versions_of_http_are_refused_with_505():
    for version in (b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/3.0"):
        response = answer_to(BURROW.address, b"GET /health " + version + b"\r\n" + HOST + b"\r\n")
        equal(response.status, 505, f"status for {version}")


@test
def a_request_line_without_version_is_refused_with_505():
    equal(answer_to(BURROW.address, b"GET /health\r\n" + HOST + b"\r\n").status, 505, "status")


@test
def forms_split_into_single_bytes_are_refused_too():
    for form in ("a_bare_cr_before_a_header", "a_line_folded_with_a_space",
                 "a_folded_empty_value", "a_folded_empty_value_of_blanks", "two_hosts",
                 "content_length_with_chunked", "a_space_before_the_colon_of_length"):
        with connect(BURROW.address) as connection:
            try:
                for at in range(len(HEADS[form])):
                    connection.send(HEADS[form][at:at + 1])
            except (BrokenPipeError, ConnectionResetError):
                pass  # refused before its end
            equal(connection.response().status, 400, f"status for {form}")
            equal(connection.read_to_end(), b"", "bytes behind the answer")


@test
def a_refused_request_behind_a_good_one_leaves_the_good_one_answered():
    with connect(BURROW.address) as connection:
        connection.send(b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n" + HEADS["two_hosts"] + SECOND)
        equal(connection.response().status, 200, "the good one")
        equal(connection.response().status, 400, "the bad one")
        assert connection.is_closed_by_peer()


@test
def nothing_behind_a_refused_request_was_logged_or_passed_on():
    """Last of the file but one: over everything sent above."""
    equal(request(BURROW.address, "GET", "/last").status, 404, "the end of the log")
    wait_until(lambda: '"/last"' in BURROW.log(), "the end of the log")
    assert '"/second"' not in BURROW.log(), "burrow took a smuggled request"
    assert b"/second" not in UPSTREAM.received, "the upstream saw a smuggled request"
    assert not any(line.get("path") == "/second" for line in DEMO.requests() + PROXY.requests())


@test
def well_formed_requests_do_pass():
    """The tests above could fail: the same route, log and upstream work for honest clients."""
    good = post(CHUNKED, b"5\r\nhello\r\n0\r\n\r\n")
    with connect(PROXY.address) as connection:
        connection.send(good + SECOND)
        equal(connection.response().status, 200, "the first")
        equal(connection.response().status, 200, "the second")
    assert b"/second" in UPSTREAM.received
    equal(ANSWERED[-2:], ["/health", "/second"], "complete requests upstream")
    with connect(BURROW.address) as connection:
        connection.send(SECOND)
        equal(connection.response().status, 404, "status")
    wait_until(lambda: '"/second"' in BURROW.log(), "a line of log")


ANSWERED = []


def answer_honestly(connection):
    while True:
        complete = read_request(connection)
        ANSWERED.append(complete.target)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


with Burrow() as BURROW, NetDemo() as DEMO, FakeUpstream(answer_honestly) as UPSTREAM, \
        NetDemo(proxy_to=UPSTREAM.address) as PROXY:
    main()
