"""HTTP as bytes on a socket: tests decide what is sent, down to the last CR.

    with connect(server.address) as connection:
        connection.send(b"GET /health HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n")
        response = connection.response()
        response.status, response.headers["content-type"], response.body

Addresses are "127.0.0.1:8787" or "unix:/path". Every operation has a timeout.
"""

import os
import socket

SLOW = float(os.environ.get("BURROW_SLOW", "1"))  # as in program.py
TIMEOUT_SECONDS = 60.0  # as PATIENCE there
NO_BODY = (204, 304)


class Headers(list):
    """[(name, value)] as received. Indexing by name ignores case; a repeated header fails."""

    def all(self, name):
        return [value for key, value in self if key.lower() == name.lower()]

    def get(self, name, default=None):
        values = self.all(name)
        if len(values) > 1:
            raise AssertionError(f"header {name} came {len(values)} times: {values}")
        return values[0] if values else default

    def __getitem__(self, name):
        if not isinstance(name, str):
            return super().__getitem__(name)
        value = self.get(name)
        if value is None:
            raise KeyError(f"no header {name} in {list(self)}")
        return value

    def __contains__(self, name):
        return bool(self.all(name))


class Response:
    def __init__(self, version, status, reason, headers):
        self.version, self.status, self.reason, self.headers = version, status, reason, headers
        self.body = b""

    def __repr__(self):
        return f"<{self.status} {self.reason} {list(self.headers)} {self.body[:200]!r}>"


def parse_head(head):
    """A Response without body from the bytes before the empty line."""
    lines = head.decode("latin-1").split("\r\n")
    version, status, reason = (lines[0].split(" ", 2) + [""])[:3]
    headers = Headers()
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise AssertionError(f"malformed header line {line!r}")
        headers.append((name, value.strip(" \t")))
    return Response(version, int(status), reason, headers)


class Connection:
    def __init__(self, raw):
        self.socket = raw
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def read_some(self):
        """More bytes into the buffer; False at the end of the stream."""
        data = self.socket.recv(65536)
        self.buffer += data
        return bool(data)

    def read_exactly(self, count):
        pieces, missing = [], count
        while missing:
            if not self.buffer and not self.read_some():
                raise EOFError(f"stream ended, {missing} bytes short")
            piece, self.buffer = self.buffer[:missing], self.buffer[missing:]
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def read_until(self, mark):
        """The bytes before `mark`, which is consumed."""
        while mark not in self.buffer:
            if not self.read_some():
                raise EOFError(f"stream ended before {mark!r}; got {self.buffer[:200]!r}")
        data, _, self.buffer = self.buffer.partition(mark)
        return data

    def read_to_end(self):
        while self.read_some():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def is_closed_by_peer(self):
        """Waits for the end of the stream; False when bytes come instead."""
        try:
            return not self.buffer and not self.read_some()
        except ConnectionResetError:
            return True

    def response_head(self):
        """Status and headers only; the body is still to be read."""
        return parse_head(self.read_until(b"\r\n\r\n"))

    def response(self, method="GET"):
        """One whole response; interim 1xx answers other than 101 are passed over."""
        response = self.response_head()
        while 100 <= response.status < 200 and response.status != 101:
            response = self.response_head()
        if method != "HEAD" and response.status not in NO_BODY and response.status != 101:
            response.body = self.read_body(response.headers)
        return response

    def read_body(self, headers):
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return b"".join(self.chunks())
        length = headers.get("content-length")
        return self.read_to_end() if length is None else self.read_exactly(int(length))

    def chunks(self):
        """The chunks of a chunked body, each as its bytes."""
        while True:
            size = int(self.read_until(b"\r\n").split(b";")[0], 16)
            if size == 0:
                while self.read_until(b"\r\n"):  # trailers
                    pass
                return
            yield self.read_exactly(size)
            if self.read_exactly(2) != b"\r\n":
                raise AssertionError("no CRLF after a chunk")


def connect(address, timeout=TIMEOUT_SECONDS):
    if address.startswith("unix:"):
        raw = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        where = address[len("unix:"):]
    else:
        raw = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        host, _, port = address.rpartition(":")
        where = (host, int(port))
    raw.settimeout(timeout * SLOW)
    try:
        raw.connect(where)
    except OSError:
        raw.close()
        raise
    return Connection(raw)


def request(address, method, path, headers=(), body=b"", timeout=TIMEOUT_SECONDS):
    """One well-formed request on a fresh connection."""
    lines = [f"{method} {path} HTTP/1.1"]
    if not any(name.lower() == "host" for name, _ in headers):
        lines.append("Host: localhost")
    lines += [f"{name}: {value}" for name, value in headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    lines.append("Connection: close")
    with connect(address, timeout) as connection:
        connection.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
        return connection.response(method)


def get(address, path, headers=(), timeout=TIMEOUT_SECONDS):
    return request(address, "GET", path, headers, timeout=timeout)
