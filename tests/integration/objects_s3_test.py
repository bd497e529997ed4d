#!/usr/bin/python3
"""The S3 store against a real server: the contract of objects.h, and what only S3 has (wrong keys,
uploads that are aborted, TLS). The tests themselves are in C, see
tests/support/objects_s3_contract.c; this starts what they need."""

# A server in Python, and a thousand keys in it:
# timeout: 600

import os
import socket
import ssl
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

# pylint: disable=wrong-import-position
from program import clean_environment, program
from soak import FULL
from swift import Swift
from tap import main, test

CONTRACT_SECONDS = 400
PIECE = 65536


class TlsFront:
    """TLS as "localhost" in front of a port: decrypts, and passes on what comes."""

    def __init__(self, folder, port):
        self.port_behind = port
        self.certificate = os.path.join(folder, "certificate.pem")
        key = os.path.join(folder, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", key, "-out", self.certificate],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate, key)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        while True:
            try:
                raw, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(raw,), daemon=True).start()

    def serve(self, raw):
        try:
            with self.context.wrap_socket(raw, server_side=True) as front, \
                    socket.create_connection(("127.0.0.1", self.port_behind)) as behind:
                back = threading.Thread(target=self.pump, args=(behind, front), daemon=True)
                back.start()
                self.pump(front, behind)
                back.join()
        except OSError:
            pass  # a client that does not trust us leaves

    @staticmethod
    def pump(source, target):
        try:
            while data := source.recv(PIECE):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@test
def the_contract_holds_against_a_real_server():
    with Swift() as swift, tempfile.TemporaryDirectory(prefix="burrow-test-") as folder, \
            TlsFront(folder, swift.ports["proxy"]) as front:
        environment = clean_environment({
            "BURROW_FULL": "1" if FULL else "0",
            "S3_ENDPOINT": swift.endpoint, "S3_REGION": swift.region,
            "S3_ACCESS_KEY": swift.access_key, "S3_SECRET_KEY": swift.secret_key,
            "S3_TLS_PORT": str(front.port), "S3_CA_FILE": front.certificate})
        ended = subprocess.run([program("objects_s3_contract")], env=environment, text=True,
                               errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               timeout=CONTRACT_SECONDS, check=False)
        if ended.returncode != 0 or "SKIP" in ended.stdout:
            raise AssertionError(f"{ended.stdout}\n{swift.log()}")


@test
def without_a_server_the_contract_is_skipped():
    environment = {name: value for name, value in clean_environment().items()
                   if not name.startswith("S3_")}
    ended = subprocess.run([program("objects_s3_contract")], env=environment, text=True,
                           stdout=subprocess.PIPE, timeout=30, check=True)
    assert "# skip: " in ended.stdout, ended.stdout


main()
