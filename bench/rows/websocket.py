"""WebSocket echo. nginx has none, so the peer is an echo on libwebsockets. Of the four
tried from Debian 12 (three short rounds each) it led at 64 B and was level with Boost.Beast at
64 KB, before Go's gorilla and node's ws."""

from contextlib import contextmanager

from frame import servers
from frame.row import MORE, Comparison, Row, Work

CONNECTIONS = "32"


@contextmanager
def libwebsockets(context):
    with context.folder() as folder:
        with servers.WebSocketPeer(context.program("websocket-echo-peer"), folder,
                                   context.server_cpu) as server:
            yield server


def echo(context, size: int) -> Comparison:
    with context.ours(lambda: libwebsockets(context)) as ours, libwebsockets(context) as peer:
        def work(server, seconds):
            done = context.load_json("websocket-load", "--target", server.target, "--path", "/echo",
                                     "--connections", CONNECTIONS, "--bytes", str(size),
                                     seconds=seconds)
            return Work(done["messages"], done["p50_us"], done["p99_us"])

        return context.rates(ours, peer, work)


ROWS = [
    Row("websocket_echo_64b", "messages/CPU-s", MORE, "libwebsockets", None,
        lambda context: echo(context, 64)),
    Row("websocket_echo_64kb", "messages/CPU-s", MORE, "libwebsockets", None,
        lambda context: echo(context, 64 << 10)),
]
