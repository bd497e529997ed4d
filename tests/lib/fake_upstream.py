"""An origin behind the proxy whose every byte the test decides.

    def script(connection):                     # connection: http_raw.Connection
        request = read_request(connection)      # or connection.read_until(...)
        connection.send(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nhi")

    with FakeUpstream(script) as upstream:
        ... upstream.address, upstream.connections, upstream.received

Each connection runs the script in a thread and is closed when the script returns or raises. Leaving
closes everything. `received` holds all bytes that came, `connections` how many were accepted.
"""

import socket
import threading

from http_raw import TIMEOUT_SECONDS, Connection, Headers


class Recorder(Connection):
    def __init__(self, raw, upstream):
        super().__init__(raw)
        self.upstream = upstream

    def read_some(self):
        before = len(self.buffer)
        more = super().read_some()
        with self.upstream.lock:
            self.upstream.received += self.buffer[before:]
        return more


class Request:
    def __init__(self, method, target, version, headers):
        self.method, self.target, self.version, self.headers = method, target, version, headers
        self.body = b""


def read_request_head(connection):
    first, *lines = connection.read_until(b"\r\n\r\n").decode("latin-1").split("\r\n")
    headers = Headers()
    for line in lines:
        name, _, value = line.partition(":")
        headers.append((name, value.strip(" \t")))
    return Request(*first.split(" "), headers)


def read_request(connection):
    request = read_request_head(connection)
    if "transfer-encoding" in request.headers or "content-length" in request.headers:
        request.body = connection.read_body(request.headers)
    return request


class FakeUpstream:
    def __init__(self, script):
        self.script = script
        self.received = b""
        self.connections = 0
        self.lock = threading.Lock()
        self.threads, self.sockets = [], []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"

    def __enter__(self):
        self.run(self.accept)
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)  # close alone would not wake accept
        self.listener.close()
        with self.lock:
            for raw in self.sockets:
                try:
                    raw.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        for thread in self.threads:
            thread.join(TIMEOUT_SECONDS)

    def run(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        thread.start()

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            raw.settimeout(TIMEOUT_SECONDS)
            with self.lock:
                self.connections += 1
                self.sockets.append(raw)
            self.run(self.serve, Recorder(raw, self))

    def serve(self, connection):
        try:
            self.script(connection)
        except (EOFError, OSError):
            pass  # the proxy left, or the test is over
        finally:
            connection.close()
