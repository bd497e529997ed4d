"""Real web servers as proxies in front of a daemon, set up as docs/operations.md says.

    with Nginx(plane) as proxy:                 # TLS on a free port of 127.0.0.1
        connection = proxy.connect("burrow.test")               # http_raw.Connection
        connection = proxy.connect("burrow.test", "127.0.0.9")  # as a client of that address
        proxy.address                           # for those who dial themselves

    need(Nginx)                                 # first in a test: skips where it is not installed

The configuration is the block of the document itself, with names, ports and certificate of the test.
"""

import os
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import suppress

from http_raw import SLOW, TIMEOUT_SECONDS, Connection
from program import ROOT, STOP_SECONDS, Program, free_port
from tap import skip

DOCUMENT = os.path.join(ROOT, "docs/operations.md")
API, PREVIEWS = "burrow.test", "preview.test"


def need(kind):
    if not shutil.which(kind.program):
        skip(f"the program {kind.program} (apt install {kind.program})")


def block(language):
    """The first block of that language in the document."""
    with open(DOCUMENT, encoding="utf-8") as file:
        return re.search(rf"^```{language}\n(.*?)^```$", file.read(), re.MULTILINE | re.DOTALL)[1]


def replaced(text, *pairs):
    """Each pattern must be there: the document and this file speak of the same."""
    for pattern, by in pairs:
        text, count = re.subn(pattern, by, text)
        assert count, f"{DOCUMENT} has no {pattern!r} any more"
    return text


class WebProxy(Program):
    program = None

    def __init__(self, plane, *changes):
        super().__init__(self.program)
        os.chmod(self.folder, 0o755)
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.certificate, self.secret = f"{self.folder}/certificate.pem", f"{self.folder}/key.pem"
        make_certificate(self.certificate, self.secret, API, f"*.{PREVIEWS}")
        os.chmod(self.secret, 0o644)  # of a test; caddy and nginx read it as who they are
        self.file = f"{self.folder}/configuration"
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(self.configuration(plane.address, changes))
        self.environment |= {"HOME": self.folder, "XDG_DATA_HOME": self.folder,
                             "XDG_CONFIG_HOME": self.folder}

    def path(self):
        return shutil.which(self.program)

    def is_ready(self):
        try:
            self.connect(API).close()
            return True
        except OSError:
            return False

    def connect(self, host, source="127.0.0.1"):
        """A connection over TLS from that address, which must be proven to be `host`."""
        context = ssl.create_default_context(cafile=self.certificate)
        raw = socket.create_connection(("127.0.0.1", self.port), TIMEOUT_SECONDS * SLOW, (source, 0))
        try:
            return Connection(context.wrap_socket(raw, server_hostname=host))
        except BaseException:
            raw.close()
            raise

    def configuration(self, upstream, changes):
        """For subclasses: the text of the file."""
        raise NotImplementedError


class Nginx(WebProxy):
    program = "nginx"

    def __init__(self, plane, *changes):
        super().__init__(plane, *changes)
        self.arguments = ["-p", self.folder, "-c", self.file, "-e", "stderr"]

    def kill(self):
        """A master that is killed leaves its workers; one that is asked takes them along."""
        if self.process and self.process.poll() is None:
            self.signal()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_SECONDS)
        super().kill()

    def configuration(self, upstream, changes):
        folder = self.folder
        places = "\n".join(f"{kind}_temp_path {folder}/{kind};" for kind in
                           ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        server = replaced(block("nginx"), ("burrow.example.org", API),
                          (r"preview\.example\.org", PREVIEWS), (r"127\.0\.0\.1:8787", upstream),
                          ("listen 443 ssl;", f"listen {self.address} ssl;\n"
                           f"ssl_certificate {self.certificate};\nssl_certificate_key {self.secret};"),
                          *changes)
        return (f"daemon off;\npid {folder}/pid;\nerror_log stderr;\nuser nobody nogroup;\n"
                f"events {{ }}\nhttp {{\naccess_log off;\n{places}\n{server}\n}}\n")


class Caddy(WebProxy):
    program = "caddy"

    def __init__(self, plane, *changes):
        super().__init__(plane, *changes)
        self.arguments = ["run", "--config", self.file, "--adapter", "caddyfile"]

    def configuration(self, upstream, changes):
        site = replaced(block("caddyfile"), ("burrow.example.org", f"{API}:{self.port}"),
                        (r"\*\.preview\.example\.org", f"*.{PREVIEWS}:{self.port}"),
                        (r"127\.0\.0\.1:8787", upstream),
                        (r"tls .*", f"tls {self.certificate} {self.secret}"), *changes)
        return f"{{\nadmin off\nauto_https disable_redirects\ngrace_period 1s\ndefault_bind 127.0.0.1\n}}\n{site}"


def make_certificate(certificate, secret, *names):
    """A certificate for these names that nobody has signed."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2",
                    "-subj", f"/CN={names[0]}", "-addext",
                    "subjectAltName=" + ",".join(f"DNS:{name}" for name in names),
                    "-keyout", secret, "-out", certificate], check=True, stderr=subprocess.DEVNULL)
