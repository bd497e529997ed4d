"""An upstream that hears everything, and a broker whose policy leads to it: for tests of what goes wrong.

    with world(b"HTTP/1.1 200 OK\\r\\n...") as demo:    # a BrokerDemo: site.test by proxy, and the route `api`
        demo.upstream.heard                           # the heads of what came
"""

import contextlib
import socket
import threading

from broker_demo import BrokerDemo, read_head

SECRET = "sk-planted-7f3a9c"
HOST = "site.test"
MB = 1 << 20


class Upstream:
    """Hears every byte that comes and answers each connection with `answer` (bytes, or a function of the socket)."""

    def __init__(self, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", address="127.0.0.1", port=0):
        self.answer, self.heard, self.connections = answer, [], 0
        self.server = socket.create_server((address, port), backlog=512)
        self.port = self.server.getsockname()[1]

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self.server.accept()
                self.connections += 1
                threading.Thread(target=self.serve_one, args=(sock,), daemon=True).start()

    def serve_one(self, sock):
        with sock, contextlib.suppress(OSError):
            sock.settimeout(60)
            if callable(self.answer):
                self.answer(sock)
                return
            while head := read_head(sock):
                self.heard.append(head)
                sock.sendall(self.answer)

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        with contextlib.suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()


@contextlib.contextmanager
def world(answer=None, words="", flags=(), hosts=None, extra=""):
    """An upstream that is site.test, and a broker whose policy has it with a credential: by proxy, and as a route."""
    with Upstream(answer) if answer is not None else Upstream() as upstream:
        policy = (f"host {HOST}:{upstream.port} header=authorization:Bearer+{SECRET} local {words}\n"
                  f"route api base=http://127.0.0.1:{upstream.port}/base header=authorization:Bearer+{SECRET} local {words}\n"
                  + extra)
        with BrokerDemo(policy, *flags, hosts={HOST: "127.0.0.1", **(hosts or {})}) as demo:
            demo.upstream = upstream
            yield demo
            assert SECRET not in demo.log(), "the key is in the log"


def status_of(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.") else None


def reasons(demo):
    return [line["reason"] for line in demo.lines("violated")]
