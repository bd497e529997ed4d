#!/usr/bin/python3
"""The egress broker under too much of everything, and with peers that are too slow: memory that is flat,
connections that wait, streams that are counted however they end."""

import contextlib
import json
import os
import resource
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from broker_demo import BrokerDemo, drain, read_head  # noqa: E402
from broker_world import HOST, MB, reasons, status_of, world  # noqa: E402
from program import wait_until  # noqa: E402
from scripted_model import KEY, Cut, ScriptedModel  # noqa: E402
from tap import equal, main, test  # noqa: E402


@test
def one_gigabyte_each_way_is_flat():
    size = 1024 * MB if os.environ.get("BURROW_FULL") else 192 * MB
    piece = b"x" * MB

    def serve(sock):
        head = read_head(sock)
        if head.startswith(b"POST"):
            got = 0
            while got < size:
                got += len(sock.recv(MB))
            sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            return
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % size)
        for _ in range(size // MB):
            sock.sendall(piece)

    with world(serve) as demo:
        equal(demo.ask("GET", "/api/small-is-not")[0], 200, "status")
        with demo.connect() as sock:
            sock.sendall(b"POST /api/up HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size // MB):
                sock.sendall(piece)
            equal(status_of(read_head(sock)), 200, "upload")
        with demo.connect() as sock:
            sock.sendall(b"GET /api/down HTTP/1.1\r\nHost: x\r\n\r\n")
            read_head(sock)
            got = 0
            while got < size:
                got += len(sock.recv(MB))
        assert demo.memory_kb("VmHWM") < 64 * 1024 * (4 if "asan" in os.environ.get("BURROW_BUILD", "") else 1), \
            demo.memory_kb("VmHWM")
        assert max(line["sent"] for line in demo.lines("ended")) == size


@test
def a_reader_that_does_not_read_holds_back_its_own_upstream_alone():
    sent = [0]

    def serve(sock):
        read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
        sock.settimeout(1)
        with contextlib.suppress(OSError):
            while True:
                sent[0] += sock.send(b"x" * 65536)

    with world(serve) as demo, demo.connect() as slow:
        slow.sendall(b"GET /api/x HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_until(lambda: sent[0] and (before := sent[0]) and not time.sleep(0.5) and sent[0] == before, "the upstream to be held back")
        assert sent[0] < 64 * MB, sent
        equal(demo.ask("GET", "/nothing/x")[0], 403, "others are served")


@test
def a_chat_body_of_any_size_is_rewritten_in_passing():
    with ScriptedModel() as model:
        with BrokerDemo(f"route chat base={model.url}/v1 format=3 header=authorization:Bearer+{KEY} local") as demo:
            question = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x" * (8 * MB)}], "stream": True})
            equal(demo.ask("POST", "/chat/chat/completions", question)[0], 200, "status")
            equal(model.questions[-1].body["stream_options"], {"include_usage": True}, "the wish")
            equal(len(model.questions[-1].text), 8 * MB, "the rest")
            for told, wanted in (('"stream_options":{"include_usage":false},"stream":true', {"include_usage": True}),
                                 ('"stream_options":{},"stream":true', {"include_usage": True}),
                                 ('"stream":true,"stream_options":null', {"include_usage": True}),
                                 ('"str\\u0065am":true', {"include_usage": True}),
                                 ('"stream":true,"stream_options":{"a":1}', {"a": 1, "include_usage": True}),
                                 ('"stream":false', None)):
                before = len(demo.lines("ended"))
                demo.ask("POST", "/chat/chat/completions", '{"model":"m","messages":[],' + told + "}")
                equal(model.questions[-1].body.get("stream_options"), wanted, told)
                line = demo.told("ended", lambda line, before=before: line["grant"] > before)
                equal((line["known"], line["partial"], line["output"]), (True, False, 7), told)


@test
def ten_thousand_connections_of_one_sandbox_wait():
    count = 10000 if os.environ.get("BURROW_FULL") else 1500
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, count + 1000), hard))
    held = []
    try:
        with world(flags=("--connections", "64")) as demo:
            kept = demo.connect()
            for _ in range(count):
                sock = demo.inside_socket()
                sock.setblocking(False)
                sock.connect_ex(("127.66.0.1", 8790))
                held.append(sock)
            demo.told("violated", lambda line: line["reason"] == "too_many_connections")
            assert demo.open_files() < 64 + 40, demo.open_files()
            kept.sendall(b"GET /api/x HTTP/1.1\r\nHost: x\r\n\r\n")
            equal(status_of(read_head(kept)), 200, "who is in is served")
            kept.close()
            while held:
                held.pop().close()
            wait_until(lambda: demo.open_files() < 40, "all to be gone")
            equal(demo.ask("GET", "/api/x")[0], 200, "and others get in again")
            equal(reasons(demo).count("too_many_connections"), 1, "told once")
    finally:
        for sock in held:
            sock.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@test
def an_owner_has_his_share_of_connections():
    with world(flags=("--share", "5")) as demo:
        kept = [demo.http() for _ in range(5)]
        for connection in kept:  # they are taken in order: all of them are in
            connection.request("GET", "/api/x")
            equal(connection.getresponse().read(), b"ok", "answer")
        equal(demo.raw(b"GET /api/x HTTP/1.1\r\nHost: x\r\n\r\n"), b"", "one more")
        for connection in kept:
            connection.close()
        wait_until(lambda: demo.raw(b"GET /api/x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").endswith(b"ok"),
                   "the share to be given back")


@test
def who_says_nothing_is_sent_away():
    with world(flags=("--hello-ms", "100")) as demo:
        demo.policy(f"host {HOST}:{demo.upstream.port} verdict=tunnel local")
        sock, _ = demo.tunnel(f"{HOST}:{demo.upstream.port}")
        with sock:
            equal(drain(sock), b"", "after a CONNECT")
        equal(demo.raw(b"\x16\x03", port=443), b"", "at the door of TLS")
        failure = demo.told("ended")["failure"]
        assert "in time" in failure, failure


@test
def a_client_that_leaves_takes_its_upstream_along():
    gone = threading.Event()

    def serve(sock):
        read_head(sock)
        sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
        drain(sock)
        gone.set()

    with world(serve) as demo:
        with demo.connect() as sock:
            sock.sendall(b"GET /api/x HTTP/1.1\r\nHost: x\r\n\r\n")
            read_head(sock)
        assert gone.wait(60), "the upstream was left waiting"
        equal(demo.told("ended")["failure"], "the client left", "failure")


@test
def a_cut_stream_is_never_for_free():
    with ScriptedModel() as model:
        with BrokerDemo(f"route chat base={model.url}/v1 format=3 header=authorization:Bearer+{KEY} local") as demo:
            model.script = [Cut("abcdefgh" * 20, after=12)]
            with contextlib.suppress(Exception):
                demo.ask("POST", "/chat/chat/completions", '{"model":"m","messages":[],"stream":true}')
            line = demo.told("ended")
            assert line["partial"] and line["known"] and line["output"] >= 11, line


main()
