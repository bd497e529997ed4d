#!/usr/bin/python3
"""The server as its operator sees it: listeners, TLS, the access log, draining on a signal."""

import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow, free_port, run_burrow  # noqa: E402
from http_raw import Connection, connect, get  # noqa: E402
from net_demo import NetDemo  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402

GET_JSON = b"GET /json HTTP/1.1\r\nHost: a\r\n\r\n"


# --- listeners -----------------------------------------------------------------------------------


@test
def a_unix_socket_serves_like_tcp():
    with Burrow(unix=True) as server:
        equal(get(server.address, "/health").status, 200, "status")
        path = server.address[len("unix:"):]
        equal(os.stat(path).st_mode & 0o777, 0o660, "mode of the socket")
        server.stop()
        assert not os.path.exists(path), "the socket was left behind"


@test
def a_left_over_unix_socket_is_replaced_and_a_live_one_is_not():
    with Burrow(unix=True) as server:
        path = server.address[len("unix:"):]
        status, output = run_burrow("serve", "--data", server.folder + "/other", "--listen",
                                    server.address)
        equal(status, 2, "status beside a live one")
        assert path in output, output
        equal(get(server.address, "/health").status, 200, "the live one goes on")
        server.signal(signal.SIGKILL)
        server.wait()
        assert os.path.exists(path)
        server.start()
        equal(get(server.address, "/health").status, 200, "after a crash")


@test
def several_listeners_serve_side_by_side():
    first, second = free_port(), free_port()
    with Burrow("--listen", f"127.0.0.1:{first},[::1]:{second}", listen=False) as server:
        equal(get(f"127.0.0.1:{first}", "/health").status, 200, "IPv4")
        with socket.create_connection(("::1", second), 5) as raw:
            connection = Connection(raw)
            connection.send(b"GET /health HTTP/1.1\r\nHost: [::1]\r\n\r\n")
            equal(connection.response().status, 200, "IPv6")
        assert f"url  http://127.0.0.1:{first}\n" in server.log(), server.log()
        assert f"url  http://[::1]:{second}\n" in server.log(), server.log()


@test
def port_0_is_announced_as_the_port_it_became():
    with Burrow("--listen", "127.0.0.1:0", listen=False) as server:
        line = [line for line in server.log().splitlines() if line.startswith("url  ")][0]
        equal(get(line.removeprefix("url  http://"), "/health").status, 200, "status")


@test
def a_port_in_use_is_said_with_status_2():
    with Burrow() as server:
        status, output = run_burrow("serve", "--data", server.folder + "/other", "--listen",
                                    server.address)
        equal(status, 2, "status")
        assert f"listen on {server.address}: Address already in use" in output, output


# --- TLS -----------------------------------------------------------------------------------------


def make_certificate(folder):
    certificate, key = f"{folder}/certificate.pem", f"{folder}/key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                    "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                    "-keyout", key, "-out", certificate],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return certificate, key


def tls_burrow():
    server = Burrow()
    certificate, key = make_certificate(server.folder)
    server.arguments += ["--tls-certificate", certificate, "--tls-key", key]
    return server


def tls_connect(server, **limits):
    context = ssl.create_default_context(cafile=f"{server.folder}/certificate.pem")
    for name, value in limits.items():
        setattr(context, name, value)
    host, _, port = server.address.rpartition(":")
    raw = socket.create_connection((host, int(port)), 10)
    try:
        return Connection(context.wrap_socket(raw, server_hostname="localhost"))
    except BaseException:
        raw.close()
        raise


@test
def tls_serves_many_requests_on_one_connection():
    with tls_burrow() as server, tls_connect(server) as connection:
        for _ in range(20):
            connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            equal(connection.response().status, 200, "status")
        assert connection.socket.version() in ("TLSv1.3", "TLSv1.2"), connection.socket.version()


@test
def tls_satisfies_curl_with_the_certificate():
    with tls_burrow() as server:
        port = server.address.rpartition(":")[2]
        done = subprocess.run(["curl", "-sS", "--cacert", f"{server.folder}/certificate.pem",
                               f"https://localhost:{port}/health"],
                              stdout=subprocess.PIPE, timeout=10, check=True)
        equal(json.loads(done.stdout)["ok"], True, "ok")


@test
def tls_below_1_2_is_refused():
    with tls_burrow() as server:
        try:
            tls_connect(server, minimum_version=ssl.TLSVersion.TLSv1,
                        maximum_version=ssl.TLSVersion.TLSv1_1).close()
        except ssl.SSLError:
            return
        raise AssertionError("TLS 1.1 was accepted")


@test
def plain_http_to_a_tls_listener_is_cut_and_others_go_on():
    with tls_burrow() as server:
        with connect(server.address) as plain:
            plain.send(GET_JSON)
            try:
                assert b"HTTP/1.1 2" not in plain.read_to_end()
            except ConnectionResetError:
                pass
        with tls_connect(server) as connection:
            connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            equal(connection.response().status, 200, "status")


@test
def tls_streams_large_bodies_both_ways():
    with NetDemo() as demo:
        certificate, key = make_certificate(demo.folder)
        demo.stop()
        demo.arguments += ["--tls-certificate", certificate, "--tls-key", key]
        demo.address = None
        os.truncate(demo.log_path, 0)
        demo.start()
        with tls_connect(demo) as connection:
            connection.send(b"GET /bytes/20000000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            equal(connection.response().body, b"b" * 20000000, "download")
            connection.send(b"POST /sink HTTP/1.1\r\nHost: localhost\r\n"
                            b"Content-Length: 20000000\r\n\r\n" + b"u" * 20000000)
            equal(json.loads(connection.response().body)["bytes"], 20000000, "upload")


@test
def a_missing_or_foreign_certificate_is_said_with_status_2():
    with Burrow() as server:
        certificate, _ = make_certificate(server.folder)
        other = f"{server.folder}/other"
        os.mkdir(other)
        _, wrong_key = make_certificate(other)
        flags = ("serve", "--data", other, "--listen", "127.0.0.1:0", "--tls-certificate")
        for pair in (("/nonexistent", "--tls-key", "/nonexistent"),
                     (certificate, "--tls-key", wrong_key)):
            status, output = run_burrow(*flags, *pair)
            equal(status, 2, "status")
            assert any(path in output for path in (pair[0], pair[2])), output


# --- the access log ------------------------------------------------------------------------------


def request_lines(server, count):
    """The JSON lines of requests in the log of burrow; everything it logs must be JSON."""
    def lines():
        text = [line for line in server.log().splitlines() if not line.startswith(("url ", "key "))]
        parsed = [json.loads(line) for line in text if not line.startswith("     kept in")]
        return [line for line in parsed if line["message"] == "request"]
    return wait_until(lambda: len(lines()) >= count and lines(), "access log")


def request_line(server, answer):
    """The one of this answer: the log also has those who asked whether the server is ready."""
    number = answer.headers["x-request-id"]
    return wait_until(lambda: next((line for line in request_lines(server, 1)
                                    if line["request"] == number), None), "a line for the answer")


@test
def the_access_log_is_json_with_the_id_of_the_answer():
    with Burrow() as server:
        answers = [get(server.address, path) for path in ("/health", "/nowhere", "/metrics")]
        for answer, path in zip(answers, ("/health", "/nowhere", "/metrics")):
            line = request_line(server, answer)
            equal((line["path"], line["status"], line["method"]), (path, answer.status, "GET"),
                  "line")
            equal(line["sent"], len(answer.body), "bytes sent")
            assert line["peer"].startswith("127.0.0.1:"), line


@test
def a_request_has_one_line_even_when_its_body_is_read_away():
    with NetDemo() as demo, connect(demo.address) as connection:
        connection.send(b"GET /json HTTP/1.1\r\nHost: a\r\nContent-Length: 50000\r\n\r\n")
        connection.response()
        connection.send(b"x" * 50000 + GET_JSON)
        connection.response()
        equal(len(demo.requests(2)), 2, "lines for two requests")


@test
def the_access_log_tells_no_secrets():
    with Burrow() as server:
        get(server.address, "/health?token=query-secret",
            [("Authorization", "Bearer header-secret"), ("Cookie", "cookie-secret")])
        last = get(server.address, "/metrics", [("Authorization", f"Bearer {server.key}")])
        request_line(server, last)
        log = server.log()
        for secret in ("query-secret", "header-secret", "cookie-secret", server.key):
            assert secret not in log, f"{secret} in {log}"


@test
def what_a_client_sends_cannot_forge_log_lines():
    with Burrow() as server:
        with connect(server.address) as connection:
            connection.send(b'GET /%0a{"message":"forged"}%22\xc3\xa9\\ HTTP/1.1\r\n'
                            b"Host: a\r\n\r\n")
            connection.response()
        wait_until(lambda: any(line["status"] in (400, 404) for line in request_lines(server, 1)),
                   "its line")
        assert not any(json.loads(text).get("message") == "forged"
                       for text in server.log().splitlines() if text.startswith("{"))


# --- the end -------------------------------------------------------------------------------------


@test
def draining_completes_requests_under_way_and_closes_the_rest():
    with NetDemo() as demo:
        with connect(demo.address) as idle, connect(demo.address) as download, \
                connect(demo.address) as upload:
            idle.send(GET_JSON)
            idle.response()
            download.send(b"GET /bytes/50000000 HTTP/1.1\r\nHost: a\r\n\r\n")
            head = download.response_head()
            upload.send(b"POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe")
            idle.send(GET_JSON)
            idle.response()  # so the others have been seen, too
            demo.signal()
            assert idle.is_closed_by_peer()
            equal(refused(demo.address), True, "new connections refused")
            upload.send(b"llo")
            answer = upload.response()
            equal((answer.body, answer.headers["connection"]), (b"hello", "close"), "upload")
            equal(len(download.read_body(head.headers)), 50000000, "download")
            assert upload.is_closed_by_peer() and download.is_closed_by_peer()
        equal(demo.wait(), 0, "status")


def refused(address):
    try:
        connect(address).close()
        return False
    except ConnectionRefusedError:
        return True


@test
def burrow_ends_with_0_on_sigterm_and_sigint():
    for number in (signal.SIGTERM, signal.SIGINT):
        with Burrow() as server, connect(server.address) as half:
            half.send(b"GET /health HTTP/1.1\r\nHo")
            get(server.address, "/health")  # so the head above has been seen, too
            server.signal(number)
            wait_until(lambda: "stopping" in server.log(), "the signal")
            half.send(b"st: a\r\n\r\n")
            answer = half.response()
            equal((answer.status, answer.headers["connection"]), (200, "close"), "answer")
            half.close()
            equal(server.wait(), 0, "status")


@test
def draining_gives_up_after_its_timeout():
    with Burrow("--drain-timeout", "300ms") as server, connect(server.address) as half:
        half.send(b"GET /health HTTP/1.1\r\nHo")
        get(server.address, "/health")
        started = time.monotonic()
        server.signal()
        equal(server.wait(), 0, "status")
        assert time.monotonic() - started > 0.25, "it did not wait"


@test
def a_second_signal_ends_it_at_once():
    with Burrow() as server, connect(server.address) as half:
        half.send(b"GET /health HTTP/1.1\r\nHo")
        get(server.address, "/health")
        server.signal()
        wait_until(lambda: "stopping" in server.log(), "the first signal")
        assert server.process.poll() is None, "it did not wait for the request under way"
        server.signal()
        server.expected_status = 1
        equal(server.wait(), 1, "status")


main()
