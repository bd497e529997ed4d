"""What a connection costs that made one request and now does nothing."""

import json
import subprocess
from contextlib import contextmanager

from frame import process
from frame.failure import RowFailed
from frame.row import LESS, Comparison, Goal, Row
from frame.servers import DEFAULT_JSON

CONNECTIONS = 10_000
ROUNDS = 3
WARM_UP = 16


def bytes_per_connection(context, server) -> float:
    """Growth of resident memory. What the kernel holds per socket is not in it, on either side.
    nginx allocates its connection table when it starts, so its part of that is not in it."""
    for _ in range(WARM_UP):
        server.request("GET", "/json")
    before = server.resident_bytes()
    client = process.spawn([context.program("http-load"), "idle", "--target", server.target,
                            "--path", "/json", "--connections", CONNECTIONS], context.load_cpu,
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        held = client.stdout.readline()
        if not held:
            raise RowFailed("the connections could not be opened")
        grown = server.resident_bytes() - before
        client.stdin.close()
        lost = json.loads(client.stdout.readline())["lost"]
    finally:
        process.stop(client)
        client.stdout.close()
    if lost:
        raise RowFailed(f"{lost} of {CONNECTIONS} idle connections were closed by the server")
    return grown / CONNECTIONS


@contextmanager
def nginx_with_json(context):
    with context.nginx() as server:
        server.add_file("/json", DEFAULT_JSON)
        yield server


def idle_connections(context) -> Comparison:
    """A fresh server each time: memory once grown is not given back."""
    comparison = Comparison([], [])
    for _ in range(ROUNDS):
        with context.ours(lambda: nginx_with_json(context)) as ours:
            comparison.ours.append(bytes_per_connection(context, ours))
        with nginx_with_json(context) as peer:
            comparison.peer.append(bytes_per_connection(context, peer))
    return comparison


ROWS = [
    Row("idle_connections", "bytes each of 10,000", LESS, "nginx", Goal("p50", "<=", 8192),
        idle_connections),
]
