"""A small answer, and 64 MB in either direction, beside nginx."""

from contextlib import contextmanager

from frame import servers, wrk
from frame.failure import RowFailed
from frame.row import MORE, Comparison, Goal, Row, Work

BODY = 64 << 20
MEGABYTE = 1e6
DOWNLOAD_PATH = f"/bytes/{BODY}"
CONNECTIONS = "4"

# nginx at its best, not as Debian sets it up: with the file kept open and read rather than sent
# by the kernel, a small answer costs it about half as much.
SMALL_FILE = """
    location = /json {
        sendfile off;
        open_file_cache max=16 inactive=1h;
        open_file_cache_valid 1h;
    }
"""

# What is the same work for an upload? `return 200` answers before the body has come and DAV's PUT
# writes a file, so neither will do. The echo module, which comes with nginx-light, has a command
# that reads the whole body and then goes on. With a buffer for all of it nginx touches no file;
# of the ways tried (DAV, a proxy without the body, a body file) this was its fastest, by 1.2 to 3.
SINK = """
    location = /sink {
        client_body_buffer_size 64m;
        echo_read_request_body;
        echo ok;
    }
"""


@contextmanager
def nginx_with(context, json: bytes = servers.DEFAULT_JSON):
    sink = SINK if servers.ECHO_MODULE.exists() else ""
    with context.nginx(locations=SMALL_FILE + sink) as nginx:
        nginx.add_file("/json", json)
        nginx.add_file(DOWNLOAD_PATH, bytes(BODY))
        yield nginx


def get_json(context) -> Comparison:
    with context.ours(lambda: nginx_with(context)) as ours:
        with nginx_with(context, ours.request("GET", "/json")) as nginx:
            return context.rates(ours, nginx,
                                 lambda server, seconds: wrk.run(context, server, "/json", seconds))


def transfer(context, mode: str, path: str) -> Comparison:
    def work(server, seconds):
        done = context.load_json("http-load", mode, "--target", server.target, "--path", path,
                                 "--connections", CONNECTIONS, "--bytes", str(BODY),
                                 seconds=seconds)
        return Work(done["bytes"] / MEGABYTE)

    with context.ours(lambda: nginx_with(context)) as ours, nginx_with(context) as nginx:
        return context.rates(ours, nginx, work)


def download(context) -> Comparison:
    return transfer(context, "download", DOWNLOAD_PATH)


def upload(context) -> Comparison:
    if not servers.ECHO_MODULE.exists():
        raise RowFailed("nginx's echo module is missing: apt-get install libnginx-mod-http-echo")
    return transfer(context, "upload", "/sink")


ROWS = [
    Row("http_get", "requests/CPU-s", MORE, "nginx, static file of the same size kept open",
        Goal("ratio", ">=", 0.6), get_json),
    Row("http_download_64mb", "MB/CPU-s", MORE, "nginx, static file with sendfile", None, download),
    Row("http_upload_64mb", "MB/CPU-s", MORE, "nginx, echo_read_request_body", None, upload),
]
