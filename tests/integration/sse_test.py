#!/usr/bin/python3
"""Server-sent events: the stream a browser reads, and where it goes on after a break."""

import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from fake_upstream import FakeUpstream, read_request  # noqa: E402
from http_raw import connect, get  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from program import PATIENCE  # noqa: E402
from tap import equal, main, test  # noqa: E402


def events(body):
    """[(id, type, data)] by the rules of the format, strictly."""
    blocks = body.decode().split("\n\n")
    equal(blocks.pop(), "", "what follows the last empty line")
    found = []
    for block in blocks:
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((fields["id"], fields["event"], fields["data"]))
    return found


def counted(first):
    return [(str(n), "count", str(n)) for n in range(first, 6)]


@test
def events_come_with_id_type_and_data():
    response = get(DEMO.address, "/sse")
    equal(response.status, 200, "status")
    equal(response.headers["content-type"], "text/event-stream", "Content-Type")
    equal(response.headers["cache-control"], "no-cache", "Cache-Control")
    equal(events(response.body), counted(1), "events")


@test
def last_event_id_in_the_header_goes_on_behind_it():
    equal(events(get(DEMO.address, "/sse", [("Last-Event-ID", "3")]).body), counted(4), "events")


@test
def last_event_id_in_the_query_does_the_same():
    equal(events(get(DEMO.address, "/sse?lastEventId=2").body), counted(3), "events")


@test
def the_header_wins_over_the_query():
    response = get(DEMO.address, "/sse?lastEventId=1", [("Last-Event-ID", "4")])
    equal(events(response.body), counted(5), "events")


@test
def a_cursor_at_the_end_gives_no_events():
    equal(get(DEMO.address, "/sse", [("Last-Event-ID", "5")]).body, b"", "body")


@test
def the_connection_goes_on_behind_a_stream_that_ended():
    with connect(DEMO.address) as connection:
        for _ in range(3):
            connection.send(b"GET /sse HTTP/1.1\r\nHost: a\r\n\r\n")
            equal(events(connection.response().body), counted(1), "events")


@test
def curl_reads_the_stream_unbuffered():
    done = subprocess.run(["curl", "-sSN", "-H", "Last-Event-ID: 2", f"http://{DEMO.address}/sse"],
                          stdout=subprocess.PIPE, timeout=10, check=True)
    equal(events(done.stdout), counted(3), "events")


@test
def an_event_passes_through_the_proxy_before_the_next_is_made():
    """Nothing on the way may wait for more: the upstream sends the second only when told."""
    seen = threading.Event()

    def script(connection):
        read_request(connection)
        connection.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
        if seen.wait(PATIENCE):
            connection.send(b"data: 2\n\n")
    with FakeUpstream(script) as upstream, NetDemo(proxy_to=upstream.address) as proxy:
        with connect(proxy.address) as connection:
            connection.send(b"GET /events HTTP/1.1\r\nHost: a\r\n\r\n")
            equal(connection.response_head().status, 200, "status")
            chunks = connection.chunks()
            equal(next(chunks), b"data: 1\n\n", "the first event")
            seen.set()
            equal(next(chunks), b"data: 2\n\n", "the second event")


with NetDemo() as DEMO:
    main()
