#!/usr/bin/python3
# timeout: 300
"""TLS against those who do not keep to it: plain text, noise, handshakes that never end, new keys
without end, renegotiation, early data, old versions. Nobody else notices, and nothing is left."""

import os
import random
import socket
import ssl
import subprocess
import sys
from contextlib import suppress

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow, free_port, run_burrow  # noqa: E402
from http_raw import connect, request  # noqa: E402
from program import wait_until  # noqa: E402
from tap import equal, main, test  # noqa: E402
from web_proxy import make_certificate  # noqa: E402

HOST = "localhost"
HEAD = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
SLOW_CLIENTS = 200
NOISE = 60
HEAD_TIMEOUT = "1s"  # and 75 of idleness


class Secure(Burrow):
    """A daemon that speaks TLS, also for previews by path."""

    def __init__(self, *flags):
        super().__init__("--head-timeout", HEAD_TIMEOUT, *flags)
        self.certificate, self.secret = f"{self.folder}/certificate.pem", f"{self.folder}/key.pem"
        make_certificate(self.certificate, self.secret, HOST)
        self.previews = f"127.0.0.1:{free_port()}"
        self.arguments += ["--tls-certificate", self.certificate, "--tls-key", self.secret,
                           "--preview-listen", self.previews]

    def dial(self, address=None, **limits):
        """A connection over TLS; `limits`: minimum_version=, maximum_version=, ciphers=."""
        context = ssl.create_default_context(cafile=self.certificate)
        if ciphers := limits.pop("ciphers", None):
            context.set_ciphers(ciphers)
        for name, value in limits.items():
            setattr(context, name, value)
        connection = connect(address or self.address)
        try:
            connection.socket = context.wrap_socket(connection.socket, server_hostname=HOST)
        except BaseException:
            connection.close()
            raise
        return connection

    def serves(self):
        """As somebody else sees it."""
        with self.dial() as connection:
            connection.send(HEAD)
            equal(connection.response().status, 200, "health")

    def s_client(self, words, *flags):
        """What openssl's own client prints that is told these words, each by itself."""
        done = subprocess.run(["openssl", "s_client", "-connect", self.address, "-servername", HOST, *flags],
                              input=words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              timeout=60)
        return done.stdout.decode(errors="replace")


@test
def plain_text_on_the_port_of_tls_is_no_request():
    with Secure() as server:
        for address in (server.address, server.previews):
            for data in (HEAD, b"\x16\x03\x01", b"\x80\x80\x01\x03\x01", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
                with connect(address) as connection:
                    with suppress(OSError):  # it may be gone at once
                        connection.send(data)
                        connection.socket.shutdown(socket.SHUT_WR)
                        while connection.read_some():
                            pass
                    assert b"HTTP/1.1 2" not in connection.buffer, connection.buffer
        assert '"path":"/health"' not in server.log(), "it was taken for a request"
        server.serves()


@test
def tls_on_a_plain_port_is_a_bad_request():
    with Burrow() as server:
        context = ssl.create_default_context()
        with connect(server.address) as connection:
            try:
                context.wrap_socket(connection.socket, server_hostname=HOST)
                raise AssertionError("a handshake")
            except (ssl.SSLError, OSError):
                pass
        equal(request(server.address, "GET", "/health").status, 200, "health")


def client_hello(server):
    """The first bytes of an honest client."""
    context = ssl.create_default_context(cafile=server.certificate)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


@test
def handshakes_that_do_not_end_are_cut_and_leave_nothing():
    with Secure() as server:
        server.serves()
        before, hello = server.open_files(), client_hello(server)
        crowd = [connect(server.address) for _ in range(SLOW_CLIENTS)]
        try:
            for number, connection in enumerate(crowd):
                # Nothing, a part, all of the first message, or all of it as a beginning of another.
                connection.send((b"", hello[:7], hello[:-1], hello)[number % 4])
            server.serves()
            for connection in crowd:
                try:
                    connection.read_to_end()  # the server ends it
                except ConnectionResetError:
                    pass
        finally:
            for connection in crowd:
                connection.close()
        wait_until(lambda: server.open_files() <= before, "their descriptors are back")


@test
def noise_in_every_place_ends_that_connection_alone():
    random.seed(18)
    with Secure() as server:
        hello = client_hello(server)
        for number in range(NOISE):
            data = bytearray(hello)
            for _ in range(1 + number % 8):
                data[random.randrange(len(data))] = random.randrange(256)
            if number % 3 == 0:
                data += random.randbytes(20000)
            with connect(server.address) as connection:
                with suppress(OSError):  # it may be gone at once
                    connection.send(bytes(data))
                    connection.socket.shutdown(socket.SHUT_WR)
                    connection.read_to_end()
        # Behind a good handshake: records that are none.
        for _ in range(NOISE // 4):
            with server.dial() as connection:
                raw = socket.socket(fileno=os.dup(connection.socket.fileno()))
                with raw, suppress(OSError):
                    raw.sendall(b"\x17\x03\x03\x40\x00" + random.randbytes(0x4000))
                    raw.shutdown(socket.SHUT_WR)
        server.serves()


@test
def nobody_negotiates_anew_or_sends_keys_without_end():
    with Secure() as server:
        told = server.s_client(b"R\n" * 3, "-tls1_2")
        assert "RENEGOTIATING" in told and "no renegotiation" in told, told[-600:]
        server.s_client(b"K\nk\n" * 500, "-tls1_3")
        server.serves()


@test
def old_versions_weak_ciphers_and_early_data_are_refused():
    with Secure() as server:
        for flags in (("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), ("-tls1", "-cipher", "ALL:@SECLEVEL=0"),
                      ("-tls1_2", "-cipher", "aNULL:eNULL:@SECLEVEL=0"),
                      ("-tls1_2", "-cipher", "RC4:3DES:@SECLEVEL=0")):
            told = server.s_client(b"Q\n", *flags)
            assert "Cipher is (NONE)" in told or "no ciphers available" in told or "no cipher match" in told, told
        session = f"{server.folder}/session"
        server.s_client(b"Q\n", "-tls1_3", "-sess_out", session)
        early = f"{server.folder}/early"
        with open(early, "wb") as file:
            file.write(HEAD)
        if os.path.exists(session):
            told = server.s_client(b"Q\n", "-tls1_3", "-sess_in", session, "-early_data", early)
            assert "Early data was accepted" not in told, told
        server.serves()


@test
def a_body_whose_tls_was_cut_is_not_the_whole_one():
    with Secure() as server:
        with server.dial() as connection:
            connection.send(f"POST /burrow/v1/users HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {server.key}\r\n"
                            'Content-Type: application/json\r\nContent-Length: 40\r\n\r\n{"name":"cut"}'.encode())
            connection.socket.unwrap  # no close_notify: the socket is closed as it is
        with server.dial() as connection:
            connection.send(f"GET /burrow/v1/users HTTP/1.1\r\nHost: {HOST}\r\n"
                            f"Authorization: Bearer {server.key}\r\n\r\n".encode())
            assert b'"cut"' not in connection.response().body, "half a request was done"


@test
def certificates_that_cannot_be_used_are_named_at_the_start():
    with Secure() as server:
        server.stop()
        other, garbage = f"{server.folder}/other.pem", f"{server.folder}/garbage.pem"
        make_certificate(other, f"{server.folder}/other-key.pem", "other")
        with open(garbage, "w", encoding="ascii") as file:
            file.write("-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n")
        for certificate, secret, word in ((other, server.secret, "mismatch"),
                                          (garbage, server.secret, garbage),
                                          (server.certificate, garbage, garbage),
                                          (f"{server.folder}/none", server.secret, "none"),
                                          (server.certificate, "", "tls-key")):
            status, out = run_burrow("serve", "--data", server.data, "--listen", "127.0.0.1:0",
                                     "--tls-certificate", certificate, "--tls-key", secret)
            equal(status, 2, out)
            assert word in out, (word, out)
        server.start()

        def is_back():
            with suppress(OSError):
                server.serves()
                return True
        wait_until(is_back, "it serves")


main()
