#!/usr/bin/python3
"""WebSocket (RFC 6455) as a client sees it, including clients that break the rules."""

import asyncio
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from http_raw import connect, get  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from program import PATIENCE, wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402
from websocket_raw import (  # noqa: E402
    BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, close_payload, frame, handshake, open_websocket)

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
MESSAGE_MAX = 16 * 1024 * 1024


# --- messages ------------------------------------------------------------------------------------


@test
def text_and_binary_come_back():
    with open_websocket(DEMO.address) as client:
        client.send(TEXT, "grüße 🐇".encode())
        equal(client.receive(), (True, TEXT, "grüße 🐇".encode()), "text")
        client.send(BINARY, bytes(range(256)))
        equal(client.receive(), (True, BINARY, bytes(range(256))), "binary")


@test
def messages_of_every_length_form_come_back():
    with open_websocket(DEMO.address) as client:
        for size in (0, 1, 125, 126, 127, 65535, 65536, 1000000, MESSAGE_MAX):
            payload = os.urandom(size)
            client.send(BINARY, payload)
            equal(client.receive_message() == (BINARY, payload), True, f"echo of {size} bytes")


@test
def many_messages_in_one_write_come_back_in_order():
    with open_websocket(DEMO.address) as client:
        client.connection.send(b"".join(frame(TEXT, b"%d" % n) for n in range(1000)))
        equal([client.receive()[2] for _ in range(1000)], [b"%d" % n for n in range(1000)], "echo")


@test
def frames_split_into_single_bytes_are_understood():
    with open_websocket(DEMO.address) as client:
        for byte in frame(TEXT, b"bit by bit") + frame(BINARY, b"x" * 130):
            client.connection.send(bytes([byte]))
        equal(client.receive()[2], b"bit by bit", "text")
        equal(client.receive()[2], b"x" * 130, "binary")


@test
def frames_sent_ahead_of_the_answer_are_not_lost():
    with open_websocket(DEMO.address, ahead=frame(TEXT, b"early")) as client:
        equal(client.receive(), (True, TEXT, b"early"), "echo")


@test
def fragments_become_one_message_with_control_frames_between():
    with open_websocket(DEMO.address) as client:
        euro = "€".encode()
        client.send(TEXT, b"price: " + euro[:1], final=False)  # a character may be split
        client.send(PING, b"still there?")
        client.send(CONTINUATION, euro[1:2], final=False)
        client.send(CONTINUATION, b"", final=False)
        client.send(CONTINUATION, euro[2:] + b" 5")
        equal(client.receive(), (True, PONG, b"still there?"), "pong")
        equal(client.receive_message(), (TEXT, "price: € 5".encode()), "message")


@test
def a_ping_is_answered_with_its_payload():
    with open_websocket(DEMO.address) as client:
        for payload in (b"", b"p" * 125):
            client.send(PING, payload)
            equal(client.receive(), (True, PONG, payload), "pong")
        client.send(PONG, b"nobody asked")
        client.send(TEXT, b"on")
        equal(client.receive()[2], b"on", "a pong nobody asked for is passed over")


# --- closing -------------------------------------------------------------------------------------


def closes_with(expected, *frames):
    """Send raw frames: the server must answer with a close frame of that code and hang up."""
    with open_websocket(DEMO.address) as client:
        client.connection.send(b"".join(frames))
        equal(client.receive_close(), expected, "close code")
        assert client.is_closed_by_peer(), "left open"


@test
def a_close_is_answered_with_its_code():
    for code in (1000, 1001, 1003, 1011, 3000, 4999):
        closes_with(code, frame(CLOSE, close_payload(code, b"bye")))


@test
def a_close_without_code_is_answered_without_one_or_with_1000():
    with open_websocket(DEMO.address) as client:
        client.send(CLOSE)
        assert client.receive_close() in (None, 1000)
        assert client.is_closed_by_peer()


@test
def nothing_is_answered_behind_a_close():
    with open_websocket(DEMO.address) as client:
        client.connection.send(frame(CLOSE, close_payload(1000)) + frame(TEXT, b"too late"))
        equal(client.receive_close(), 1000, "close code")
        assert client.is_closed_by_peer()


@test
def forbidden_close_codes_get_1002():
    for code in (0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535):
        closes_with(1002, frame(CLOSE, close_payload(code)))
    closes_with(1002, frame(CLOSE, b"\x03"))


@test
def invalid_utf8_gets_1007():
    for text in (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"cut \xe2\x82"):
        closes_with(1007, frame(TEXT, text))
    closes_with(1007, frame(TEXT, b"\xe2\x82", final=False), frame(CONTINUATION, b"x"))
    closes_with(1007, frame(CLOSE, close_payload(1000, b"\xff")))


@test
def invalid_utf8_is_noticed_before_the_message_ends():
    closes_with(1007, frame(TEXT, b"ok \xff", final=False))


@test
def an_unmasked_frame_gets_1002():
    closes_with(1002, frame(TEXT, b"plain", masked=False))


@test
def broken_framing_gets_1002():
    closes_with(1002, frame(TEXT, b"x", reserved=4))
    closes_with(1002, frame(3, b"unknown opcode"))
    closes_with(1002, frame(11, b"unknown control opcode"))
    closes_with(1002, frame(CONTINUATION, b"of nothing"))
    closes_with(1002, frame(TEXT, b"a", final=False), frame(TEXT, b"b"))
    closes_with(1002, frame(PING, b"x" * 126))
    closes_with(1002, frame(PING, b"x", final=False))
    closes_with(1002, b"\x82\xfe\x00\x05" + b"\0" * 9)  # 5 in the long form


@test
def a_message_over_the_limit_gets_1009_before_it_is_read():
    head = frame(BINARY, b"")[:1] + b"\xff" + (MESSAGE_MAX + 1).to_bytes(8, "big") + b"\0" * 4
    closes_with(1009, head)


@test
def fragments_over_the_limit_get_1009():
    half = b"h" * (MESSAGE_MAX // 2)
    closes_with(1009, frame(BINARY, half, final=False), frame(CONTINUATION, half, final=False),
                frame(CONTINUATION, b"h"))


@test
def a_length_with_the_top_bit_set_is_refused():
    with open_websocket(DEMO.address) as client:
        client.connection.send(b"\x82\xff" + b"\xff" * 8 + b"\0" * 4)
        assert client.receive_close() in (1002, 1009)
        assert client.is_closed_by_peer()


@test
def a_client_that_vanishes_leaves_no_descriptor_behind():
    with NetDemo() as demo:
        get(demo.address, "/json")
        before = demo.open_files()
        for _ in range(20):
            with open_websocket(demo.address) as client:
                client.send(TEXT, b"hi", final=False)
        wait_until(lambda: demo.open_files() <= before, "descriptors to be closed")


@test
def a_draining_server_says_1001():
    with NetDemo() as demo, open_websocket(demo.address) as client:
        demo.signal()
        equal(client.receive_close(), 1001, "close code")
        client.send(CLOSE, close_payload(1001))
        assert client.is_closed_by_peer()
        client.connection.close()  # until then the server lingers
        equal(demo.wait(), 0, "status")


# --- the handshake -------------------------------------------------------------------------------


def answer_to(message):
    with connect(DEMO.address) as connection:
        connection.send(message)
        return connection.response()


def without(name):
    lines = handshake("/echo", KEY).split(b"\r\n")
    return b"\r\n".join(line for line in lines if not line.lower().startswith(name + b":"))


@test
def the_handshake_of_the_standard_gives_its_answer():
    with connect(DEMO.address) as connection:
        connection.send(handshake("/echo", KEY))
        response = connection.response_head()
        equal(response.status, 101, "status")
        equal(response.headers["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", "accept")
        equal(response.headers["upgrade"].lower(), "websocket", "Upgrade")
        equal(response.headers["connection"].lower(), "upgrade", "Connection")


@test
def extensions_and_protocols_nobody_speaks_are_not_accepted():
    with connect(DEMO.address) as connection:
        connection.send(handshake("/echo", KEY, ["Sec-WebSocket-Extensions: permessage-deflate",
                                                 "Sec-WebSocket-Protocol: chat"]))
        response = connection.response_head()
        equal(response.status, 101, "status")
        assert "sec-websocket-extensions" not in response.headers
        assert "sec-websocket-protocol" not in response.headers


@test
def a_plain_request_gets_426_and_is_told_what_to_do():
    response = get(DEMO.address, "/echo")
    equal(response.status, 426, "status")
    equal(response.headers["upgrade"], "websocket", "Upgrade")
    equal(response.headers["sec-websocket-version"], "13", "version")


@test
def other_versions_and_protocols_get_426():
    message = handshake("/echo", KEY)
    equal(answer_to(message.replace(b"Version: 13", b"Version: 8")).status, 426, "version 8")
    equal(answer_to(without(b"sec-websocket-version")).status, 426, "no version")
    equal(answer_to(message.replace(b"Upgrade: websocket", b"Upgrade: h2c")).status, 426, "h2c")
    equal(answer_to(without(b"upgrade")).status, 426, "no Upgrade")


@test
def a_broken_key_gets_400():
    equal(answer_to(without(b"sec-websocket-key")).status, 400, "no key")
    for key in ("", "c2hvcnQ=", "not base64 at all!!!!!!!", KEY + KEY):
        equal(answer_to(handshake("/echo", key)).status, 400, f"key {key!r}")


@test
def a_refused_handshake_leaves_the_connection_usable():
    with connect(DEMO.address) as connection:
        connection.send(handshake("/echo", "bad"))
        equal(connection.response().status, 400, "status")
        connection.send(b"GET /json HTTP/1.1\r\nHost: a\r\n\r\n")
        equal(connection.response().status, 200, "the next request")


# --- a client of others --------------------------------------------------------------------------


@test
def the_client_of_python3_websockets_is_satisfied():
    try:
        import websockets  # pylint: disable=import-outside-toplevel
    except ImportError:
        skip("the package python3-websockets")

    async def talk():
        async with websockets.connect(f"ws://{DEMO.address}/echo", max_size=None) as client:
            for message in ("hello", "🐇" * 1000, b"\0" * 100000, b"z" * 5000000):
                await client.send(message)
                equal(await client.recv() == message, True, "echo")
            await client.send(iter(["in ", "three ", "fragments"]))
            equal(await client.recv(), "in three fragments", "fragments")
            await asyncio.wait_for(await client.ping(), PATIENCE)
        equal(client.close_code, 1000, "close code")
    asyncio.run(talk())


with NetDemo() as DEMO:
    main()
