#!/usr/bin/python3
# timeout: 600
"""Large bodies in little memory: 2 GB through server and proxy both ways, and back-pressure."""

import os
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from fake_upstream import FakeUpstream, read_request_head  # noqa: E402
from http_raw import connect  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from program import PATIENCE, wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

SIZE = 2 << 30
CHUNKED_SIZE = SIZE // 8  # several times what would fit, and curl is slow at it
MEMORY_MAX_KB = 64 * 1024
MIB = 1 << 20
PIECE = 128 * 1024  # LOOP_SCRATCH_SIZE: the most one read of the server takes


def socket_buffer_max(name):
    """The most the kernel gives a TCP socket by itself."""
    with open(f"/proc/sys/net/ipv4/{name}", encoding="ascii") as file:
        return int(file.read().split()[2])


SEND_MAX, RECEIVE_MAX = socket_buffer_max("tcp_wmem"), socket_buffer_max("tcp_rmem")


def download(address, path, size):
    """Take `size` bytes of body and drop them where they are, in the kernel."""
    with connect(address) as connection:
        connection.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
        equal(connection.response_head().status, 200, "status")
        got = len(connection.buffer)
        buffer = bytearray(4 * MIB)
        while piece := connection.socket.recv_into(buffer, 0, socket.MSG_TRUNC):
            got += piece
    equal(got, size, "bytes of body")


def post_head(path, size):
    return f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n".encode()


def upload(address, path, size):
    buffer = bytes(4 * MIB)
    with connect(address) as connection:
        connection.send(post_head(path, size))
        sent = 0
        while sent < size:
            sent += connection.socket.send(buffer[:min(len(buffer), size - sent)])
        return connection.response()


def assert_small(*programs):
    for one in programs:
        peak = one.memory_kb("VmHWM")
        assert peak < MEMORY_MAX_KB, f"{' '.join(one.arguments)}: {peak} kB at its peak"


def curl(*arguments):
    done = subprocess.run(["curl", "-sS", *arguments], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, timeout=60, check=True)
    return done.stdout.decode()


# --- 2 GB ----------------------------------------------------------------------------------------


@test
def two_gigabytes_down_stay_small():
    with NetDemo() as demo:
        download(demo.address, f"/bytes/{SIZE}", SIZE)
        assert_small(demo)


@test
def two_gigabytes_up_stay_small():
    with NetDemo() as demo:
        equal(upload(demo.address, "/sink", SIZE).body, b'{"bytes":%d}\n' % SIZE, "counted")
        assert_small(demo)


def curl_chunks_both_ways(server, folder):
    url = f"http://{server.address}"
    counted = curl("-o", "/dev/null", "-w", "%{size_download}",
                   f"{url}/bytes/{CHUNKED_SIZE}?chunked=1")
    equal(counted, str(CHUNKED_SIZE), "bytes down")
    with open(f"{folder}/hole", "wb") as file:
        file.truncate(CHUNKED_SIZE)
    counted = curl("-T", f"{folder}/hole", "-H", "Transfer-Encoding: chunked", f"{url}/sink")
    equal(counted, '{"bytes":%d}\n' % CHUNKED_SIZE, "bytes up")


@test
def chunks_stay_small_both_ways():
    with NetDemo() as demo:
        curl_chunks_both_ways(demo, demo.folder)
        assert_small(demo)


@test
def two_gigabytes_through_the_proxy_stay_small_both_ways():
    with NetDemo() as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        download(proxy.address, f"/bytes/{SIZE}", SIZE)
        equal(upload(proxy.address, "/sink", SIZE).body, b'{"bytes":%d}\n' % SIZE, "counted")
        assert_small(proxy, upstream)


@test
def chunks_through_the_proxy_stay_small_both_ways():
    with NetDemo() as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        curl_chunks_both_ways(proxy, proxy.folder)
        assert_small(proxy, upstream)


# --- back-pressure -------------------------------------------------------------------------------


def slow_reader(address):
    """A client that asks for much and reads nothing, with a small fixed receive buffer."""
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    raw.settimeout(PATIENCE)
    host, _, port = address.rpartition(":")
    raw.connect((host, int(port)))
    raw.sendall(f"GET /bytes/{SIZE} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
    return raw


def settled(measure):
    """The value of measure() once it has not changed for half a second."""
    before, same = measure(), 0
    while same < 5:
        time.sleep(0.1)
        now = measure()
        same = same + 1 if now == before else 0
        before = now
    return before


@test
def a_slow_reader_stops_the_producer():
    with NetDemo() as demo:
        quiet = demo.memory_kb()
        with slow_reader(demo.address):
            time.sleep(1)
            grown = demo.memory_kb() - quiet
            assert grown < 4096, f"{grown} kB more for one slow reader"
        sent = demo.requests(1)[0]["sent"]
        assert sent < SEND_MAX + 2 * 65536 + MIB, f"{sent} bytes were made for nobody"


@test
def fifty_slow_readers_cost_little():
    with NetDemo() as demo:
        readers = [slow_reader(demo.address) for _ in range(50)]
        try:
            time.sleep(1)
            assert_small(demo)
        finally:
            for reader in readers:
                reader.close()


@test
def a_slow_reader_behind_the_proxy_stops_the_upstream():
    with NetDemo() as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        with slow_reader(proxy.address):
            settled(lambda: (proxy.cpu_seconds(), upstream.cpu_seconds()))
            assert_small(proxy, upstream)
        made = upstream.requests(1)[0]["sent"]
        passed = proxy.requests(1)[0]["sent"]
        assert passed < SEND_MAX + 2 * 65536 + MIB, f"{passed} bytes passed on"
        assert made < passed + SEND_MAX + RECEIVE_MAX + 2 * MIB, f"{made} bytes made"


def upload_for(address, path, seconds):
    """Bytes a client gets rid of in that time."""
    buffer = bytes(MIB)
    with connect(address) as connection:
        connection.send(post_head(path, SIZE))
        deadline, sent = time.monotonic() + seconds, 0
        connection.socket.settimeout(0.1)
        while time.monotonic() < deadline and sent < SIZE:
            try:
                sent += connection.socket.send(buffer)
            except TimeoutError:
                pass
    return sent


@test
def a_slow_consumer_stops_the_uploader():
    """/slow-sink takes a piece every 20 ms."""
    with NetDemo() as demo:
        quiet = demo.memory_kb()
        began = time.monotonic()
        sent = upload_for(demo.address, "/slow-sink", 1.5)
        allowed = (time.monotonic() - began) / 0.020 * PIECE + SEND_MAX + RECEIVE_MAX + MIB
        assert sent < allowed, f"{sent} of at most {allowed} bytes"
        assert demo.memory_kb("VmHWM") - quiet < 4096, f"{demo.memory_kb('VmHWM')} kB"


def deaf_upstream(wake):
    """It takes the head and then nothing, until told to hang up."""
    def script(connection):
        read_request_head(connection)
        wake.wait(PATIENCE)
    return FakeUpstream(script)


@test
def an_upstream_that_reads_nothing_stops_the_uploader():
    wake = threading.Event()
    with deaf_upstream(wake) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        sent = upload_for(proxy.address, "/", 1.5)
        wake.set()
        allowed = 2 * (SEND_MAX + RECEIVE_MAX) + MIB
        assert sent < allowed, f"{sent} of at most {allowed} bytes"
        assert_small(proxy)


@test
def an_upload_that_was_stopped_ends_when_its_upstream_does():
    wake = threading.Event()
    with deaf_upstream(wake) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        before = proxy.open_files()
        with connect(proxy.address) as connection:
            connection.send(post_head("/", SIZE))
            connection.socket.settimeout(0.3)
            try:
                while True:
                    connection.socket.send(bytes(MIB))
            except TimeoutError:
                wake.set()
            connection.socket.settimeout(PATIENCE)
            equal(connection.response().status, 502, "status")
            assert connection.is_closed_by_peer(), "left open with its body unread"
        wait_until(lambda: proxy.open_files() <= before, "descriptors to be closed")


main()
