"""WebSocket as frames on a socket: a client that may break every rule of RFC 6455.

    with open_websocket(demo.address, "/echo") as client:
        client.send(TEXT, b"hello")
        client.receive()                        # (True, TEXT, b"hello"): final, opcode, payload
        client.close(1000)
"""

import base64
import hashlib
import os
import struct

from http_raw import connect

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def handshake(path, key, extra=()):
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket",
             "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
    return "\r\n".join([*lines, *extra]).encode() + b"\r\n\r\n"


def accept_of(key):
    """Sec-WebSocket-Accept for a Sec-WebSocket-Key."""
    return base64.b64encode(hashlib.sha1(key.encode() + GUID).digest()).decode()


def frame(opcode, payload=b"", final=True, masked=True, reserved=0):
    first = (0x80 if final else 0) | reserved << 4 | opcode
    bit = 0x80 if masked else 0
    if len(payload) < 126:
        head = struct.pack("!BB", first, bit | len(payload))
    elif len(payload) < 65536:
        head = struct.pack("!BBH", first, bit | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, bit | 127, len(payload))
    return head + (mask(payload) if masked else payload)


def mask(payload):
    """The mask and the payload under it."""
    key = os.urandom(4)
    pad = key * (len(payload) // 4 + 1)
    hidden = int.from_bytes(payload, "big") ^ int.from_bytes(pad[:len(payload)], "big")
    return key + hidden.to_bytes(len(payload), "big")


def close_payload(code, reason=b""):
    return struct.pack("!H", code) + reason


class WebSocket:
    def __init__(self, connection):
        self.connection = connection

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.connection.close()

    def send(self, opcode, payload=b"", **options):
        self.connection.send(frame(opcode, payload, **options))

    def receive(self):
        """(final, opcode, payload) of the next frame, which must be well-formed for a server."""
        first, second = self.connection.read_exactly(2)
        if first & 0x70 or second & 0x80:
            raise AssertionError(f"reserved bits or a mask from a server: {first:#x} {second:#x}")
        length = second & 0x7F
        if length == 126:
            length, = struct.unpack("!H", self.connection.read_exactly(2))
        elif length == 127:
            length, = struct.unpack("!Q", self.connection.read_exactly(8))
        return bool(first & 0x80), first & 0x0F, self.connection.read_exactly(length)

    def receive_message(self):
        """(opcode, payload) of a whole data message."""
        final, opcode, payload = self.receive()
        while not final:
            final, more, piece = self.receive()
            if more != CONTINUATION:
                raise AssertionError(f"opcode {more} inside a message")
            payload += piece
        return opcode, payload

    def receive_close(self):
        """The code of the close frame that must come next, None when it has none."""
        _, opcode, payload = self.receive()
        if opcode != CLOSE:
            raise AssertionError(f"expected a close frame, got opcode {opcode}: {payload[:80]!r}")
        return struct.unpack("!H", payload[:2])[0] if payload else None

    def is_closed_by_peer(self):
        return self.connection.is_closed_by_peer()


def open_websocket(address, path="/echo", extra=(), ahead=b""):
    """Connect and shake hands; `ahead` is sent together with the handshake."""
    key = base64.b64encode(os.urandom(16)).decode()
    connection = connect(address)
    try:
        connection.send(handshake(path, key, extra) + ahead)
        response = connection.response_head()
        if response.status != 101 or response.headers["sec-websocket-accept"] != accept_of(key):
            raise AssertionError(f"no upgrade: {response}")
    except BaseException:
        connection.close()
        raise
    return WebSocket(connection)
