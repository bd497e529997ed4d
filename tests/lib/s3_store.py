"""A small object store that speaks enough S3 for mounts and for the daemon, until its mood changes.

    with S3Store() as store:
        store.endpoint                          # "http://127.0.0.1:PORT"
        store.objects["bucket/key"]             # bytes, as they were put
        store.mood = silent                     # from now on: a function of (store, connection, request)
        store.waiting                           # requests that a mood holds

A mood returns True when it has answered, or held, the request itself. Moods that lie or hang are below.
"""

import hashlib
import threading
import urllib.parse
from xml.sax.saxutils import escape

from fake_upstream import FakeUpstream, read_request

DATE = "Thu, 01 Jan 2026 00:00:00 GMT"
DATES = f"Last-Modified: {DATE}\r\nDate: {DATE}\r\n"
PAGE_MAX = 1000


class S3Store(FakeUpstream):
    def __init__(self):
        super().__init__(self.talk)
        self.objects, self.metadata = {}, {}
        self.mood = None
        self.waiting = 0
        self.over = threading.Event()

    @property
    def endpoint(self):
        return f"http://{self.address}"

    def __exit__(self, *reason):
        self.over.set()
        super().__exit__(*reason)

    def hold(self):
        """Until the test is over."""
        with self.lock:
            self.waiting += 1
        self.over.wait()

    def talk(self, connection):
        while True:
            request = read_request(connection)
            if not (self.mood and self.mood(self, connection, request)):
                self.answer(connection, request)

    def answer(self, connection, request):
        path, _, query = request.target.partition("?")
        key = urllib.parse.unquote(path).lstrip("/")
        asked = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        if request.method == "GET" and "list-type" in asked:
            return reply(connection, 200, self.listing(key.strip("/"), asked))
        if request.method == "PUT":
            with self.lock:
                self.objects[key] = request.body
                self.metadata[key] = [(name, value) for name, value in request.headers
                                      if name.lower().startswith("x-amz-meta-")]
            return reply(connection, 200, headers=f"ETag: {tag_of(request.body)}\r\n{DATES}")
        if request.method in ("DELETE", "POST"):
            self.objects.pop(key, None)
            return reply(connection, 204 if request.method == "DELETE" else 200,
                         b"" if request.method == "DELETE" else b"<DeleteResult></DeleteResult>")
        if request.method == "HEAD" and "/" not in key:  # a bucket: there are all
            return reply(connection, 200)
        if key not in self.objects:
            body = b"<Error><Code>NoSuchKey</Code></Error>"
            return reply(connection, 404, b"" if request.method == "HEAD" else body)
        return self.tell(connection, request, key)

    def tell(self, connection, request, key):
        data, extra = self.objects[key], ""
        status, part = 200, data
        if "range" in request.headers:
            first, _, last = request.headers["range"].partition("=")[2].partition("-")
            first = int(first)
            if first >= len(data):
                return reply(connection, 416)
            part = data[first:int(last) + 1 if last else None]
            status, extra = 206, f"Content-Range: bytes {first}-{first + len(part) - 1}/{len(data)}\r\n"
        extra += "".join(f"{name}: {value}\r\n" for name, value in self.metadata[key])
        extra += f"ETag: {tag_of(data)}\r\n{DATES}"
        if request.method == "HEAD":
            return connection.send(f"HTTP/1.1 200 OK\r\n{extra}Content-Length: {len(data)}\r\n\r\n".encode())
        return reply(connection, status, part, extra)

    def listing(self, bucket, asked):
        prefix, after = asked.get("prefix", ""), asked.get("start-after", "")
        delimiter, limit = asked.get("delimiter", ""), int(asked.get("max-keys", PAGE_MAX))
        entries, folders = [], []
        for whole in sorted(self.objects):
            owner, _, key = whole.partition("/")
            if owner != bucket or not key.startswith(prefix) or key <= after:
                continue
            rest, slash, _ = key[len(prefix):].partition(delimiter) if delimiter else ("", "", "")
            if slash and prefix + rest + slash not in folders and prefix + rest + slash > after:
                folders.append(prefix + rest + slash)
            elif not slash:
                entries.append(listed(key, self.objects[whole]))
        told = "".join(f"<CommonPrefixes><Prefix>{quoted(one)}</Prefix></CommonPrefixes>" for one in folders)
        return list_document("".join(entries[:limit]) + told, len(entries) > limit)


def tag_of(data):
    return f'"{hashlib.md5(data).hexdigest()}"'


def quoted(key):
    return escape(urllib.parse.quote(key))


def listed(key, data=b""):
    return (f"<Contents><Key>{quoted(key)}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{escape(tag_of(data))}</ETag><Size>{len(data)}</Size></Contents>")


def list_document(entries, is_truncated=False):
    return (f"<?xml version='1.0'?><ListBucketResult><Name>b</Name><EncodingType>url</EncodingType>"
            f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>{entries}</ListBucketResult>").encode()


def reply(connection, status, body=b"", headers=""):
    connection.send(f"HTTP/1.1 {status} x\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body)


# --- moods ---------------------------------------------------------------------------------------

def silent(store, _, __):
    """Takes a request and never answers."""
    store.hold()
    return True


def dripping(store, connection, request):
    """A byte of the head now and then, which is enough for no timeout between bytes."""
    del request
    for byte in b"HTTP/1.1 200 OK\r\nX-Endless: " + b"a" * 10000:
        connection.send(bytes([byte]))
        if store.over.wait(0.2):
            break
    return True


def endless_head(store, connection, request):
    del request
    while not store.over.is_set():
        connection.send(b"HTTP/1.1 200 OK\r\n" + b"X-More: " + b"a" * 8000 + b"\r\n")


def endless_body(store, connection, request):
    connection.send(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nTransfer-Encoding: chunked\r\n\r\n')
    while not store.over.is_set():
        connection.send(b"10000\r\n" + b"<" * 65536 + b"\r\n")


def too_short(store, connection, request):
    """Says more than comes."""
    if request.method != "GET":
        return False
    connection.send(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 1000000\r\n\r\n<a')
    connection.close()
    raise EOFError


def too_long(store, connection, request):
    """Says less than comes: the rest looks like another answer."""
    if request.method != "GET":
        return False
    connection.send(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 2\r\n\r\n<aHTTP/1.1 200 OK\r\n'
                    b'ETag: "b"\r\nContent-Length: 9\r\n\r\nsmuggled!')
    return True


def negative(store, connection, request):
    connection.send(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: -1\r\n\r\n')
    return True


def huge(store, connection, request):
    """An object of exabytes, and a listing that says the same."""
    connection.send(b'HTTP/1.1 200 OK\r\nETag: "a"\r\nContent-Length: 9223372036854775807\r\n\r\n')
    return store.hold() or True


def nonsense(store, connection, request):
    reply(connection, 200, b"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b SYSTEM 'file:///etc/passwd'>"
          b"<!ENTITY c '&b;&b;&b;&b;'>]><ListBucketResult><Contents><Key>&c;</Key><Size>-5</Size>")
    return True


def endless_list(store, connection, request):
    """Every page says that there is more, with new keys."""
    if "list-type" not in request.target:
        return False
    after = urllib.parse.parse_qs(request.target.partition("?")[2]).get("start-after", ["k"])[0]
    after = after.rpartition("/")[2]
    count = int(after[1:] or 0) if after[1:].isdigit() else 0
    prefix = urllib.parse.parse_qs(request.target.partition("?")[2]).get("prefix", [""])[0]
    reply(connection, 200, list_document("".join(
        listed(f"{prefix}k{count + number:012}") for number in range(1, PAGE_MAX + 1)), True))
    return True


def same_list(store, connection, request):
    """Every page is the first one, and says that there is more."""
    if "list-type" not in request.target:
        return False
    reply(connection, 200, list_document(listed("a") + listed("b"), True))
    return True


def odd_names(store, connection, request):
    """Keys that no file can have, or that lead elsewhere."""
    if "list-type" not in request.target:
        return False
    keys = ("..", "../up", "/abs", "a//b", ".", "a\0b", "\n", "x" * 300, "b/../../c", "\udcff".encode(
        "utf-8", "surrogateescape").decode("latin-1"), "%2e%2e/x", "ok")
    reply(connection, 200, list_document("".join(listed(key) for key in keys)))
    return True


def redirecting(store, connection, request):
    reply(connection, 307, headers="Location: http://169.254.169.254/latest/meta-data\r\n")
    return True


def refusing(store, connection, request):
    reply(connection, 403, b"<Error><Code>AccessDenied</Code><Message>\x1b[31mred</Message></Error>")
    return True


def failing(store, connection, request):
    reply(connection, 503, b"<Error><Code>SlowDown</Code></Error>", "Retry-After: 999999999\r\n")
    return True


HANGING = (silent, dripping, huge)
LYING = (endless_head, endless_body, too_short, too_long, negative, nonsense, endless_list, same_list,
         odd_names, redirecting, refusing, failing)
