#!/usr/bin/python3
"""Archives of folders with the real squashfs-tools, back again, and to a server in parts.

The agent runs in namespaces of its own, with a fresh /var/backups.

# timeout: 600
"""

import hashlib
import http.server
import json
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from agent import Init, can_unshare, find_processes  # noqa: E402
from git_server import git  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, skip, test  # noqa: E402

SECRET = "X-Amz-Signature=s3cret42"
ARCHIVE = "/var/backups/one.sqsh"
COUNTER = iter(range(1000))


class Machine(Init):
    """With an empty /var/backups that goes away with it."""

    def start(self):
        if not can_unshare():
            skip("unprivileged user namespaces")
        super().start()
        equal(self.run("mount -t tmpfs tmpfs /var/backups")["exitCode"], 0, "a fresh /var/backups")

    def forget_programs(self):
        """As in an image that has none."""
        response = request(self.address, "PUT", "/burrow/environment", self.headers,
                           b'{"env":{"PATH":"/nonexistent"}}')
        equal(response.status, 200, f"new environment {response}")


def ask(operation, fields, agent=None):
    response = (agent or SHARED).post(f"/api/backup/{operation}", fields)
    return response.status, json.loads(response.body)


def succeed(operation, **fields):
    status, body = ask(operation, fields)
    equal((status, body.get("success")), (200, True), f"answer {body}")
    return body


def refuse(operation, status, code, agent=None, **fields):
    got, body = ask(operation, fields, agent)
    equal((got, body["code"], body["httpStatus"]), (status, code, status), f"answer {body}")
    return body


def fresh(files=()):
    folder = os.path.join(FOLDER, f"folder-{next(COUNTER)}")
    os.makedirs(folder)
    for name, content in dict(files).items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    return folder


def content(folder):
    """{relative path: text} of the files below."""
    found = {}
    for path, _, names in os.walk(folder):
        for name in names:
            full = os.path.join(path, name)
            with open(full, encoding="utf-8", errors="replace") as file:
                found[os.path.relpath(full, folder)] = file.read()
    return found


def archived(source, **fields):
    """The files of an archive of `source`."""
    target = fresh()
    succeed("create", dir=source, archivePath=ARCHIVE, **fields)
    succeed("restore", dir=target, archivePath=ARCHIVE)
    return content(target)


def list_backups():
    return sorted(SHARED.run("ls -A /var/backups")["stdout"].split())


# --- archives ------------------------------------------------------------------------------------


@test
def a_folder_goes_into_an_archive_and_back():
    files = {"a": "1", "sub/b": "2", ".hidden": "3", "sub/deep/c d": "4"}
    source = fresh(files)
    os.symlink("a", os.path.join(source, "link"))
    os.chmod(os.path.join(source, "a"), 0o751)
    body = succeed("create", dir=source, archivePath=ARCHIVE)
    equal(body["archivePath"], ARCHIVE, "path")
    size = int(SHARED.run(f"stat -c %s {ARCHIVE}")["stdout"])
    equal(body["sizeBytes"], size, "size")
    equal(list_backups(), ["one.sqsh"], "nothing else is left")
    target = os.path.join(fresh(), "not", "there")
    equal(succeed("restore", dir=target, archivePath=ARCHIVE)["dir"], target, "dir")
    equal(content(target), {**files, "link": "1"}, "content")
    equal(os.readlink(os.path.join(target, "link")), "a", "link")
    equal(os.stat(os.path.join(target, "a")).st_mode & 0o777, 0o751, "mode")


@test
def a_restore_replaces_everything_but_the_folder_itself():
    source, target = fresh({"a": "new", "sub/x": "new"}), fresh({"a": "old", "sub/y": "old",
                                                                "z/z": "old"})
    succeed("create", dir=source, archivePath=ARCHIVE)
    inode = os.stat(target).st_ino
    succeed("restore", dir=target, archivePath=ARCHIVE)
    equal(content(target), {"a": "new", "sub/x": "new"}, "content")
    equal(sorted(os.listdir(target)), ["a", "sub"], "nothing else is left")
    equal(os.stat(target).st_ino, inode, "the folder")


@test
def many_entries_are_replaced():
    source = fresh({f"new-{number}": "n" for number in range(1500)})
    target = fresh({f"old-{number}": "o" for number in range(1500)})
    succeed("create", dir=source, archivePath=ARCHIVE)
    succeed("restore", dir=target, archivePath=ARCHIVE)
    equal(sorted(os.listdir(target)), sorted(os.listdir(source)), "entries")


@test
def every_compression_works():
    source = fresh({"a": "text " * 1000})
    for name in ("gzip", "lz4", "zstd"):
        equal(set(archived(source, compression={"format": name, "threads": 1})), {"a"}, name)


@test
def an_archive_of_before_is_replaced():
    succeed("create", dir=fresh({"a": "1"}), archivePath=ARCHIVE)
    equal(archived(fresh({"b": "2"})), {"b": "2"}, "content")


@test
def excludes_hold_at_any_depth():
    source = fresh({"keep": "1", "x.log": "1", "sub/y.log": "1", "node_modules/m/f": "1",
                    "sub/node_modules/f": "1", "sub/keep": "1", "a/b/c": "1", "dist/f": "1",
                    "[odd] name": "1"})
    equal(set(archived(source, excludes=["**/*.log", "node_modules", "a/b", "/dist/"])),
          {"keep", "sub/keep", "[odd] name"}, "files")


@test
def ignored_files_of_a_repository_are_left_out():
    source = fresh({".gitignore": "*.log\nbuild/\n!kept.log\n", "a": "1", "x.log": "1",
                    "kept.log": "1", "build/big/file": "1", "sub/y.log": "1", "tracked.log": "1",
                    "we[i]rd *.log": "1", "#hash.log": "1", "... dots.log": "1"})
    git("init", "-q", source)
    git("add", "-f", ".gitignore", "a", "tracked.log", folder=source)
    names = {name for name in archived(source, gitignore=True) if not name.startswith(".git/")}
    equal(names, {".gitignore", "a", "kept.log", "tracked.log"}, "files")
    below = fresh({"repo/.gitignore": "*.log\n", "repo/sub/x.log": "1", "repo/sub/y": "1"})
    git("init", "-q", os.path.join(below, "repo"))
    equal(set(archived(os.path.join(below, "repo", "sub"), gitignore=True)), {"y"}, "of a part")


@test
def gitignore_counts_without_a_repository_too():
    source = fresh({".gitignore": "*.log\n", "x.log": "1", "y": "1",
                    "sub/.gitignore": "z\n", "sub/z": "1", "sub/w": "1"})
    equal(set(archived(source, gitignore=True)), {".gitignore", "y", "sub/.gitignore", "sub/w"},
          "files")
    equal(list_backups(), ["one.sqsh"], "nothing else is left")


@test
def jobs_run_one_after_another():
    source = fresh({f"f{number}": "x" * 10000 for number in range(50)})
    results = []

    def create(number):
        results.append(ask("create", {"dir": source, "archivePath": f"/var/backups/n{number}"}))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal([status for status, _ in results], [200] * 6, "answers")
    SHARED.run("rm -f /var/backups/n*")


# --- failures ------------------------------------------------------------------------------------


@test
def paths_outside_are_refused():
    for fields in ({"dir": "/etc"}, {"dir": "tmp"}, {"dir": "/tmp/../etc"}, {"dir": "/tmpx"},
                   {"dir": "/tmp/" + "x" * 5000}, {"archivePath": "/tmp/x"},
                   {"archivePath": "/var/backups/../x"}, {"archivePath": "/var/backups/"},
                   {"compression": {"format": "xz"}}, {"excludes": ["a\nb"]}, {"excludes": [""]}):
        given = {"dir": "/tmp/x", "archivePath": ARCHIVE, **fields}
        refuse("create", 400, "INVALID_BACKUP_CONFIG", **given)
        if "dir" in fields or "archivePath" in fields:
            refuse("restore", 400, "INVALID_BACKUP_CONFIG", **given)
    for fields in ({"dir": 1}, {"archivePath": None}, {"excludes": "x"}, {"gitignore": 1},
                   {"compression": {"threads": 0}}):
        refuse("create", 400, "VALIDATION_FAILED", **{"dir": "/tmp/x", "archivePath": ARCHIVE,
                                                      **fields})


@test
def what_is_not_there_is_said():
    body = refuse("create", 500, "BACKUP_CREATE_FAILED", dir="/tmp/burrow-no-such",
                  archivePath=ARCHIVE)
    equal(body["operation"], "backup.create", "operation")
    body = refuse("restore", 404, "BACKUP_NOT_FOUND", dir=fresh(), archivePath="/var/backups/none")
    equal(body["operation"], "backup.restore", "operation")
    refuse("upload-parts", 404, "BACKUP_NOT_FOUND", archivePath="/var/backups/none",
           parts=[part(1, 0, 1)])


@test
def a_broken_archive_leaves_the_folder_as_it_was():
    target = fresh({"a": "1", "sub/b": "2"})
    succeed("create", dir=fresh({"x": "y" * 100000}), archivePath=ARCHIVE)
    SHARED.run("head -c 300 /var/backups/one.sqsh > /var/backups/cut.sqsh")
    SHARED.run("echo nonsense > /var/backups/none.sqsh")
    for name in ("cut", "none"):
        body = refuse("restore", 500, "BACKUP_RESTORE_FAILED", dir=target,
                      archivePath=f"/var/backups/{name}.sqsh")
        assert body["context"]["stderr"], body
        assert body["context"]["exitCode"], body
    equal(content(target), {"a": "1", "sub/b": "2"}, "content")
    equal(sorted(os.listdir(target)), ["a", "sub"], "nothing else is left")


@test
def a_folder_that_cannot_be_replaced_is_put_back():
    """An entry that is a mount cannot be moved."""
    target = fresh({"a": "1", "b/c": "2", "m/x": "3"})
    succeed("create", dir=fresh({"new": "1"}), archivePath=ARCHIVE)
    SHARED.run(f"mount -t tmpfs tmpfs {target}/m")
    try:
        body = refuse("restore", 500, "BACKUP_RESTORE_FAILED", dir=target, archivePath=ARCHIVE)
        assert "as it was" in body["message"], body
        equal(sorted(os.listdir(target)), ["a", "b", "m"], "entries")
    finally:
        SHARED.run(f"umount {target}/m")
    equal(content(target), {"a": "1", "b/c": "2", "m/x": "3"}, "content")


@test
def a_failed_archive_leaves_the_one_of_before():
    succeed("create", dir=fresh({"old": "1"}), archivePath=ARCHIVE)
    SHARED.run("mkdir -p /var/backups/small && mount -t tmpfs -o size=64k tmpfs /var/backups/small")
    source = fresh({"big": os.urandom(300000).hex()})
    try:
        refuse("create", 500, "BACKUP_CREATE_FAILED", dir=source,
               archivePath="/var/backups/small/x")
        equal(SHARED.run("ls -A /var/backups/small")["stdout"], "", "nothing is left")
    finally:
        SHARED.run("umount /var/backups/small; rmdir /var/backups/small")
    target = fresh()
    succeed("restore", dir=target, archivePath=ARCHIVE)
    equal(content(target), {"old": "1"}, "the old one")


@test
def an_image_without_tools_says_so():
    with Machine() as agent:
        agent.run("echo x > /var/backups/some")
        agent.forget_programs()
        for operation, code, name in (("create", "BACKUP_CREATE_FAILED", "squashfs-tools"),
                                      ("restore", "BACKUP_RESTORE_FAILED", "squashfs-tools"),
                                      ("upload-parts", "BACKUP_CREATE_FAILED", "curl")):
            body = refuse(operation, 500, code, agent, dir=fresh(), archivePath="/var/backups/some",
                          parts=[part(1, 0, 1)])
            assert name in body["message"] and "not installed" in body["message"], body


@test
def a_client_that_leaves_cancels_its_job():
    source = fresh({"big": os.urandom(20_000_000).hex()})
    body = json.dumps({"dir": source, "archivePath": "/var/backups/left",
                       "compression": {"format": "zstd", "threads": 1}}).encode()
    with connect(SHARED.address) as connection:
        connection.send(b"POST /api/backup/create HTTP/1.1\r\nHost: a\r\nContent-Length: %d"
                        b"\r\n\r\n%s" % (len(body), body))
        wait_until(lambda: find_processes("mksquashfs", SHARED.pid), "start of mksquashfs")
    wait_until(lambda: not find_processes("mksquashfs", SHARED.pid), "end of mksquashfs")
    wait_until(lambda: not [name for name in list_backups() if "left" in name or ".tmp" in name],
               "nothing is left")


# --- uploads -------------------------------------------------------------------------------------


class Store(http.server.BaseHTTPRequestHandler):
    """Takes parts; what it does depends on the path."""
    protocol_version = "HTTP/1.1"
    parts, failures, delay = {}, {}, 0.0

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def do_PUT(self):  # pylint: disable=invalid-name
        length = int(self.headers["Content-Length"])
        path = self.path.partition("?")[0]
        digest, left = hashlib.md5(), length
        while left:
            piece = self.rfile.read(min(left, 65536))
            digest.update(piece)
            left -= len(piece)
            time.sleep(Store.delay)
        status = 200
        if Store.failures.get(path, 0) > 0:
            Store.failures[path] -= 1
            status = 503
        Store.parts[path] = (length, digest.hexdigest(), self.headers["Transfer-Encoding"])
        self.send_response(status)
        if path != "/no-etag":
            self.send_header("ETag", f'"{digest.hexdigest()}"')
        self.send_header("Content-Length", str(len(self.path)))
        self.end_headers()
        self.wfile.write(self.path.encode())


def serve(context=None):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Store)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def part(number, offset, size, name=None, base=None):
    return {"partNumber": number, "offset": offset, "size": size,
            "url": f"{base or PLAIN}/{name or f'part-{number}'}?{SECRET}"}


def make_archive(size):
    """Random bytes as an archive; what is in it."""
    data = os.urandom(size)
    path = os.path.join(FOLDER, "bytes")
    with open(path, "wb") as file:
        file.write(data)
    SHARED.run(f"cp {path} /var/backups/data")
    return data


@test
def parts_are_sent_and_their_etags_returned():
    data = make_archive(3_000_001)
    bounds = [(2, 1_000_000, 2_000_000), (1, 0, 1_000_000), (3, 3_000_000, 1)]
    body = succeed("upload-parts", archivePath="/var/backups/data",
                   parts=[part(*entry) for entry in bounds])
    expected = [{"partNumber": number,
                 "etag": f'"{hashlib.md5(data[offset:offset + size]).hexdigest()}"'}
                for number, offset, size in sorted(bounds)]
    equal(body["parts"], expected, "parts")
    equal(Store.parts["/part-2"][0::2], (2_000_000, None), "length, not in chunks")
    equal(succeed("upload-parts", archivePath="/var/backups/data", parts=[])["parts"], [], "none")


@test
def tls_is_verified():
    make_archive(100_000)
    succeed("upload-parts", archivePath="/var/backups/data",
            parts=[part(1, 0, 100_000, base=TLS)])
    body = refuse("upload-parts", 500, "BACKUP_CREATE_FAILED", archivePath="/var/backups/data",
                  parts=[part(1, 0, 1, base=TLS.replace("localhost", "127.0.0.1"))])
    assert "s3cret" not in json.dumps(body), body


@test
def a_server_that_fails_once_is_asked_again():
    make_archive(1000)
    Store.failures["/part-1"] = 2
    succeed("upload-parts", archivePath="/var/backups/data", parts=[part(1, 0, 1000)])
    Store.failures["/part-1"] = 3
    body = refuse("upload-parts", 500, "BACKUP_CREATE_FAILED", archivePath="/var/backups/data",
                  parts=[part(1, 0, 1000)])
    assert "503" in body["message"] and "s3cret" not in json.dumps(body), body
    body = refuse("upload-parts", 500, "BACKUP_CREATE_FAILED", archivePath="/var/backups/data",
                  parts=[part(1, 0, 1000, "no-etag")])
    assert "ETag" in body["message"], body


@test
def the_url_is_in_no_argument():
    make_archive(2_000_000)
    Store.delay = 0.05
    results = []
    thread = threading.Thread(target=lambda: results.append(ask("upload-parts", {
        "archivePath": "/var/backups/data", "parts": [part(1, 0, 2_000_000)]})))
    try:
        thread.start()
        wait_until(lambda: find_processes("--upload-file", SHARED.pid), "start of curl")
        equal(find_processes("s3cret42", SHARED.pid), [], "processes with the signature")
        equal(find_processes(str(PLAIN_PORT), SHARED.pid), [], "processes with the URL")
    finally:
        Store.delay = 0
        thread.join()
    equal(results[0][0], 200, f"answer {results}")
    assert "s3cret" not in SHARED.log()


@test
def wrong_parts_are_refused():
    make_archive(100)
    for wrong in ({"url": "http://example.com/x"}, {"url": "file:///etc/passwd"}, {"url": "x"},
                  {"url": PLAIN + '/"x'}, {"offset": 50, "size": 51}):
        body = refuse("upload-parts", 400, "INVALID_BACKUP_CONFIG",
                      archivePath="/var/backups/data", parts=[{**part(1, 0, 1), **wrong}])
        assert "example" not in json.dumps(body), body
    refuse("upload-parts", 400, "INVALID_BACKUP_CONFIG", archivePath="/etc/passwd",
           parts=[part(1, 0, 1)])
    refuse("upload-parts", 400, "INVALID_BACKUP_CONFIG", archivePath="/var/backups/data",
           parts=[part(1, 0, 1), part(1, 1, 1)])
    for wrong in ({"partNumber": 0}, {"size": 0}, {"offset": -1}, {"url": 1}):
        refuse("upload-parts", 400, "VALIDATION_FAILED", archivePath="/var/backups/data",
               parts=[{**part(1, 0, 1), **wrong}])
    refuse("upload-parts", 400, "VALIDATION_FAILED", archivePath="/var/backups/data")


@test
def the_agent_has_nothing_left_open():
    SHARED.wait_until_idle()
    files = len(os.listdir(f"/proc/{SHARED.pid}/fd"))
    assert files <= FILES, f"{files} descriptors, {FILES} at the beginning"


def make_certificate():
    key, certificate = os.path.join(FOLDER, "key"), os.path.join(FOLDER, "certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


FOLDER = tempfile.mkdtemp(prefix="burrow-test-backup-", dir="/tmp")  # where backups may be made of
try:
    CONTEXT, CERTIFICATE = make_certificate()
    PLAIN_PORT = serve().server_address[1]
    PLAIN = f"http://127.0.0.1:{PLAIN_PORT}"
    TLS = f"https://localhost:{serve(CONTEXT).server_address[1]}"
    with Machine(environment={"CURL_CA_BUNDLE": CERTIFICATE}) as SHARED:
        FILES = len(os.listdir(f"/proc/{SHARED.pid}/fd")) + 2
        main()
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
