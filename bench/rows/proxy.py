"""Our reverse proxy beside nginx's, in front of the same upstream."""

from contextlib import contextmanager

from frame import wrk
from frame.row import MORE, Comparison, Goal, Row, Work

SMALL, LARGE = 1024, 64 << 20
MEGABYTE = 1e6
CONNECTIONS = "4"
GOAL = Goal("ratio", ">=", 0.7)
PEER = "nginx proxy_pass, keep-alive upstream"

# Streaming as our proxy does: without the limit of 0, nginx would write to a file whatever the
# client does not take at once. Buffers of 64 KB make it 2.7 times faster with large bodies than its
# own of 4 KB (256 KB: 15 % more, for four times the memory).
PROXY_HTTP = """
    upstream files {{ server {target}; keepalive 128; keepalive_requests 1000000000; }}
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_set_header X-Forwarded-Proto $scheme;
    proxy_max_temp_file_size 0;
    proxy_buffer_size 64k;
    proxy_buffers 8 64k;
    proxy_busy_buffers_size 128k;
"""
PROXY_LOCATION = "location / { proxy_pass http://files; }"


@contextmanager
def upstream(context):
    """Static files. Not measured, so it logs nothing and shares the load's core if need be."""
    with context.nginx(cpu=context.upstream_cpu, access_log=False) as server:
        server.add_file(f"/file/{SMALL}", bytes(SMALL))
        server.add_file(f"/file/{LARGE}", bytes(LARGE))
        yield server


def compare(context, work) -> Comparison:
    with upstream(context) as files:
        def nginx():
            return context.nginx(locations=PROXY_LOCATION,
                                 http=PROXY_HTTP.format(target=files.target))

        with context.ours(nginx, proxy_to=files.target) as ours, nginx() as peer:
            return context.rates(ours, peer, work)


def small(context) -> Comparison:
    return compare(context, lambda server, seconds: wrk.run(
        context, server, f"/file/{SMALL}", seconds))


def large(context) -> Comparison:
    def work(server, seconds):
        done = context.load_json("http-load", "download", "--target", server.target, "--path",
                                 f"/file/{LARGE}", "--connections", CONNECTIONS, seconds=seconds)
        return Work(done["bytes"] / MEGABYTE)

    return compare(context, work)


ROWS = [
    Row("proxy_1kb", "requests/CPU-s", MORE, PEER, GOAL, small),
    Row("proxy_64mb", "MB/CPU-s", MORE, PEER, GOAL, large),
]
