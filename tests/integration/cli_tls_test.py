#!/usr/bin/python3
"""The burrow command line over TLS and over a unix socket: which daemon it believes.

# timeout: 600
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))

from burrow import Burrow, run_burrow  # noqa: E402
from program import admin_key  # noqa: E402
from tap import equal, main, test  # noqa: E402


def key_of(server):
    return admin_key(server.log())


def users(url, key, **environment):
    return run_burrow("user", "ls", "--url", url, "--key", key, environment=environment)


class Secure(Burrow):
    """A daemon with a certificate for localhost that nobody has signed."""

    def __init__(self):
        super().__init__()
        self.certificate = os.path.join(self.folder, "certificate.pem")
        secret = os.path.join(self.folder, "secret.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
                        "-keyout", secret, "-out", self.certificate], check=True,
                       stderr=subprocess.DEVNULL)
        self.arguments += ["--tls-certificate", self.certificate, "--tls-key", secret]
        self.port = self.address.rpartition(":")[2]


@test
def a_daemon_is_believed_that_proves_its_name():
    with Secure() as server:
        status, output = users(f"https://localhost:{server.port}", key_of(server),
                               SSL_CERT_FILE=server.certificate)
        equal(status, 0, output)
        assert "admin" in output, output


@test
def a_daemon_that_proves_nothing_or_another_name_gets_no_key():
    with Secure() as server:
        for url, trusted in ((f"https://localhost:{server.port}", "/dev/null"),
                             (f"https://127.0.0.1:{server.port}", server.certificate)):
            status, output = users(url, key_of(server), SSL_CERT_FILE=trusted)
            equal(status, 1, output)
            assert "proves no identity that is trusted here" in output, output
        assert '"path":"/burrow/v1/users"' not in server.log(), "nothing was asked"


@test
def a_unix_socket_is_a_url_too():
    with Burrow(unix=True) as server:
        status, output = users(server.address, key_of(server))
        equal(status, 0, output)
        assert "admin" in output, output


main()
