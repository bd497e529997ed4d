#!/usr/bin/python3
"""Ports seen by the agent: waiting until one answers, and who listens.

# timeout: 600
"""

import contextlib
import http.server
import json
import os
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Agent  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

NO_SESSION = "__DISABLE_SESSION__"


# --- asking --------------------------------------------------------------------------------------


@contextlib.contextmanager
def watching(port, agent=None, **fields):
    """The events of a port watch, as they come."""
    body = json.dumps({"port": port, **fields}).encode()
    with connect((agent or SHARED).address, 30) as connection:
        connection.send(b"POST /api/port-watch HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s"
                        % (len(body), body))
        head = connection.response_head()
        equal((head.status, head.headers["content-type"]), (200, "text/event-stream"), "head")
        yield events_on(connection)


def events_on(connection):
    pending = b""
    for chunk in connection.chunks():
        *frames, pending = (pending + chunk).split(b"\n\n")
        for frame in frames:
            yield json.loads(frame.removeprefix(b"data: "))


def watch(port, **fields):
    with watching(port, **fields) as events:
        return list(events)


def start(command):
    reply = SHARED.post("/api/process/start", {"command": command, "sessionId": NO_SESSION})
    return json.loads(reply.body)["processId"]


def kill(identity):
    equal(request(SHARED.address, "DELETE", f"/api/process/{identity}", timeout=30).status, 200,
          "kill")


def ports():
    response = SHARED.get("/burrow/ports")
    equal(response.status, 200, "status")
    return json.loads(response.body)["ports"]


# --- servers -------------------------------------------------------------------------------------


@contextlib.contextmanager
def listener(address="127.0.0.1", port=0):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((address, port))
        server.listen()
        yield server.getsockname()[1]


def free_port():
    """A port at which nobody listens now."""
    with listener() as port:
        return port


@contextlib.contextmanager
def web(statuses, seen=None):
    """A server that answers with these statuses, the last one for ever; its port."""
    left = list(statuses)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            if seen is not None:
                seen.append((self.path, self.headers["Host"]))
            self.send_response(left.pop(0) if len(left) > 1 else left[0])
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, format, *args):  # pylint: disable=redefined-builtin
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# --- waiting for a port --------------------------------------------------------------------------


@test
def an_open_port_is_ready_at_once():
    with listener() as port:
        equal(watch(port, mode="tcp"),
              [{"type": "watching", "port": port}, {"type": "ready", "port": port}], "events")


@test
def a_port_of_ipv6_alone_counts():
    try:
        with listener("::1") as port:
            equal(watch(port, mode="tcp")[-1]["type"], "ready", "last event")
    except OSError:
        pass  # this machine has no IPv6


@test
def a_port_that_opens_later_is_seen():
    port = free_port()
    with watching(port, mode="tcp") as events:
        equal(next(events)["type"], "watching", "first")
        time.sleep(0.7)
        with listener(port=port):
            equal(next(events), {"type": "ready", "port": port}, "second")
        equal(list(events), [], "more")


@test
def a_client_may_wait_for_ever_or_leave():
    port = free_port()
    before = SHARED.open_files()
    for mode in ("tcp", "http"):
        with watching(port, mode=mode, interval=100) as events:
            equal(next(events)["type"], "watching", "first")
            time.sleep(0.3)
    wait_until(lambda: SHARED.open_files() <= before, "the watches to be gone")
    began = SHARED.cpu_seconds()
    time.sleep(0.5)
    assert SHARED.cpu_seconds() - began < 0.2, "somebody still tries"


@test
def waiting_is_not_busy():
    port = free_port()
    with watching(port, mode="tcp") as events:
        next(events)
        time.sleep(0.3)
        began = SHARED.cpu_seconds()
        time.sleep(1)
        assert SHARED.cpu_seconds() - began < 0.2, SHARED.cpu_seconds() - began


@test
def http_wants_a_status_in_the_range():
    seen = []
    with web([500, 503, 404, 200], seen) as port:
        equal(watch(port, path="/health?deep=1")[-1],
              {"type": "ready", "port": port, "statusCode": 200}, "last event")
        equal(seen, [("/health?deep=1", f"localhost:{port}")] * 4, "requests")
        equal(watch(port, statusMin=200, statusMax=200)[-1]["statusCode"], 200, "exactly 200")
    with web([404]) as port:
        equal(watch(port, statusMin=400, statusMax=499)[-1]["statusCode"], 404, "other range")


@test
def http_is_not_ready_before_it_speaks_http():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with watching(port) as events:
            next(events)
            for answer in (b"SSH-2.0-OpenSSH_9\r\n", b"HTTP/1.1 2", b""):
                peer, _ = server.accept()
                peer.sendall(answer)
                peer.close()
            peer, _ = server.accept()
            for byte in b"HTTP/1.1 204 No Content\r\n\r\n":
                peer.sendall(bytes([byte]))
                time.sleep(0.002)
            equal(next(events), {"type": "ready", "port": port, "statusCode": 204}, "ready")
            peer.close()


@test
def a_silent_server_is_given_up_and_tried_again():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        with watching(port) as events:
            next(events)
            silent, _ = server.accept()
            server.settimeout(60)
            peer, _ = server.accept()
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            equal(next(events)["type"], "ready", "second event")
            peer.close()
            silent.close()


@test
def a_process_that_exits_early_ends_the_wait():
    port = free_port()
    identity = start("sleep 0.5; exit 9")
    found = watch(port, mode="tcp", processId=identity)
    equal(found[-1], {"type": "process_exited", "port": port, "exitCode": 9}, "last event")
    equal(watch(port, mode="tcp", processId=identity)[-1]["type"], "process_exited",
          "of one that had ended")


@test
def the_port_of_a_process_is_waited_for():
    port = free_port()
    identity = start(f"sleep 0.3; exec /usr/bin/python3 -m http.server {port} --bind 127.0.0.1")
    equal(watch(port, processId=identity)[-1], {"type": "ready", "port": port, "statusCode": 200},
          "last event")
    kill(identity)


@test
def an_unknown_process_is_an_error():
    found = watch(free_port(), processId="nobody")
    equal((found[-1]["type"], found[-1]["error"]), ("error", "Process not found"), "last event")


@test
def what_is_no_request_is_refused():
    for document in ({}, {"port": 0}, {"port": 65536}, {"port": "x"}, {"port": 80, "mode": "udp"},
                     {"port": 80, "path": "health"}, {"port": 80, "path": "/a b"},
                     {"port": 80, "path": "/\r\nX: y"}, {"port": 80, "statusMin": 5},
                     {"port": 80, "interval": -1}):
        response = SHARED.post("/api/port-watch", document)
        equal((response.status, json.loads(response.body)["code"]), (400, "VALIDATION_FAILED"),
              str(document))


@test
def many_watches_at_once():
    port = free_port()
    found = []
    watchers = [threading.Thread(target=lambda: found.append(watch(port, mode="tcp")[-1]["type"]))
                for _ in range(50)]
    for watcher in watchers:
        watcher.start()
    time.sleep(0.5)
    with listener(port=port):
        for watcher in watchers:
            watcher.join()
    equal(found, ["ready"] * 50, "last events")


# --- who listens ---------------------------------------------------------------------------------


@test
def listening_ports_have_a_process_and_its_command():
    port = free_port()
    identity = start(f"exec /usr/bin/python3 -m http.server {port} --bind 127.0.0.1")
    watch(port, processId=identity)
    found = [entry for entry in ports() if entry["port"] == port]
    pid = json.loads(SHARED.get(f"/api/process/{identity}").body)["process"]["pid"]
    equal(found, [{"port": port, "address": "127.0.0.1", "pid": pid,
                   "command": f"/usr/bin/python3 -m http.server {port} --bind 127.0.0.1"}], "entry")
    kill(identity)
    equal([entry for entry in ports() if entry["port"] == port], [], "after its end")


@test
def every_listener_is_there_sorted_by_port():
    with listener() as first, listener("0.0.0.0") as second:
        found = ports()
        numbers = [entry["port"] for entry in found]
        equal(numbers, sorted(numbers), "order")
        mine = {entry["port"]: (entry["address"], entry["pid"]) for entry in found
                if entry["port"] in (first, second)}
        equal(mine, {first: ("127.0.0.1", os.getpid()), second: ("0.0.0.0", os.getpid())}, "mine")


@test
def connections_are_no_listeners_and_cost_nothing():
    with listener() as port:
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(100)]
        equal(len([entry for entry in ports() if entry["port"] == port]), 1, "entries")
        for client in clients:
            client.close()


@test
def the_handshake_tells_of_it():
    found = json.loads(SHARED.get("/burrow/handshake").body)["capabilities"]
    assert "ports" in found and "processes" in found, found


if __name__ == "__main__":
    with Agent() as SHARED:
        main()
