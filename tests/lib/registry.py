"""Registries of images for tests: Debian's docker-registry on loopback, and what stands before it.

    with Registry() as registry:                        # or auth="htpasswd", auth="token"
        registry.push("some/tool", "1", [layer], config)
        f"{registry.address}/some/tool:1"

    with Front(registry) as front:                      # passes requests on, and remembers them
        front.rule = lambda request: request.answer(404)    # ... or not

Nothing outside of a folder of their own is written.
"""

import base64
import crypt
import gzip
import http.client
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import urllib.parse

from burrow import free_port
from images import ARCHITECTURE, config_of, digest, document
from program import Program
from tap import skip

PROGRAM = "docker-registry"
USER, PASSWORD = "friend", "open: sesame"
BASIC = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
SERVICE, ISSUER = "registry of a test", "token server of a test"
OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker."
TYPES = {  # kind: (manifest, config, layer, index)
    "oci": (OCI + "manifest.v1+json", OCI + "config.v1+json", OCI + "layer.v1.tar+gzip", OCI + "index.v1+json"),
    "docker": (DOCKER + "distribution.manifest.v2+json", DOCKER + "container.image.v1+json",
               DOCKER + "image.rootfs.diff.tar.gzip", DOCKER + "distribution.manifest.list.v2+json"),
}


def reference_of(content):
    return f"sha256:{digest(content)}"


def unpadded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


class Tokens:
    """A key, its certificate, and tokens that the registry takes for those of its token server."""

    def __init__(self, folder):
        self.key, self.certificate = f"{folder}/token.key", f"{folder}/token.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", self.key, "-out",
                        self.certificate, "-days", "2", "-subj", "/CN=tokens"], check=True, capture_output=True)

    def make(self, path, actions):
        with open(self.certificate, encoding="ascii") as file:
            chain = "".join(line.strip() for line in file if "-----" not in line)
        now = int(time.time())
        head = {"typ": "JWT", "alg": "RS256", "x5c": [chain]}
        body = {"iss": ISSUER, "sub": USER, "aud": SERVICE, "exp": now + 600, "nbf": now - 60, "iat": now,
                "jti": str(time.monotonic_ns()), "access": [{"type": "repository", "name": path, "actions": actions}]}
        text = f"{unpadded(document(head))}.{unpadded(document(body))}"
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), check=True,
                                   capture_output=True).stdout
        return f"{text}.{unpadded(signature)}"


class Registry(Program):
    def __init__(self, auth=None, realm=None):
        if not shutil.which(PROGRAM):
            skip("docker-registry")
        super().__init__(PROGRAM)
        self.expected_status = -15  # it does not mind SIGTERM
        self.address = f"127.0.0.1:{free_port()}"
        self.auth, self.tokens = auth, None
        settings = {"version": "0.1", "log": {"level": "error", "accesslog": {"disabled": True}},
                    "storage": {"filesystem": {"rootdirectory": f"{self.folder}/storage"}},
                    "http": {"addr": self.address}}
        if auth == "htpasswd":
            secret = crypt.crypt(PASSWORD, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))
            with open(f"{self.folder}/passwords", "w", encoding="ascii") as file:
                file.write(f"{USER}:{secret}\n")
            settings["auth"] = {"htpasswd": {"realm": "of a test", "path": f"{self.folder}/passwords"}}
        if auth == "token":
            self.tokens = Tokens(self.folder)
            settings["auth"] = {"token": {"realm": realm, "service": SERVICE, "issuer": ISSUER,
                                          "rootcertbundle": self.tokens.certificate}}
        with open(f"{self.folder}/config.yml", "wb") as file:
            file.write(document(settings))  # JSON is YAML
        self.arguments = ["serve", f"{self.folder}/config.yml"]

    def path(self):
        return shutil.which(PROGRAM)

    def is_ready(self):
        try:
            return self.call("GET", "/v2/")[0] in (200, 401)
        except OSError:
            return False

    def call(self, method, path, body=b"", **headers):
        """(status, headers, body) of one request of a friend."""
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            if self.auth == "htpasswd":
                headers["Authorization"] = BASIC
            if self.auth == "token" and path != "/v2/":
                name = path.split("/v2/")[1].rsplit("/blobs/", 1)[0].rsplit("/manifests/", 1)[0]
                headers["Authorization"] = f"Bearer {self.tokens.make(name, ['pull', 'push'])}"
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def put_blob(self, path, content):
        status, headers, body = self.call("POST", f"/v2/{path}/blobs/uploads/")
        assert status == 202, body
        place = urllib.parse.urlsplit(headers["Location"])
        status, _, body = self.call("PUT", f"{place.path}?{place.query}&digest={reference_of(content)}", content,
                                    **{"Content-Type": "application/octet-stream"})
        assert status == 201, body
        return {"digest": reference_of(content), "size": len(content)}

    def put_manifest(self, path, tag, value, kind):
        content = document({"schemaVersion": 2, "mediaType": kind, **value})
        status, _, body = self.call("PUT", f"/v2/{path}/manifests/{tag or reference_of(content)}", content,
                                    **{"Content-Type": kind})
        assert status == 201, body
        return {"mediaType": kind, "digest": reference_of(content), "size": len(content)}

    def push(self, path, tag, layers, config=None, kind="oci", architecture=ARCHITECTURE, pack=gzip.compress):
        """The descriptor of its manifest."""
        manifest_type, config_type, layer_type, _ = TYPES[kind]
        blobs = [{"mediaType": layer_type, **self.put_blob(path, pack(one))} for one in layers]
        described = self.put_blob(path, config_of(layers, config or {}, architecture))
        return self.put_manifest(path, tag, {"config": {"mediaType": config_type, **described}, "layers": blobs},
                                 manifest_type)

    def push_index(self, path, tag, manifests, kind="oci"):
        """`manifests`: [(architecture, descriptor)]"""
        return self.put_manifest(path, tag, {"manifests": [
            {**one, "platform": {"architecture": architecture, "os": "linux"}} for architecture, one in manifests]},
            TYPES[kind][3])


class Request(http.server.BaseHTTPRequestHandler):
    """One request at a Front; rules answer it with these, which return True."""
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    @property
    def authorization(self):
        return self.headers.get("Authorization")

    @property
    def is_blob(self):
        return "/blobs/" in self.path

    def answer(self, status, body=b"", cut=None, **headers):
        """`cut`: so many bytes come, then the connection breaks."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        self.close_connection = self.close_connection or cut is not None
        return True

    def fetch(self, keep_range=True):
        """(status, headers, body) of the registry behind."""
        connection = http.client.HTTPConnection(self.server.owner.registry.address, timeout=30)
        try:
            left_out = {"connection"} if keep_range else {"connection", "range"}
            connection.request("GET", self.path, headers={name: value for name, value in self.headers.items()
                                                          if name.lower() not in left_out})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def pass_on(self, change=None, cut=None, keep_range=True):
        status, headers, body = self.fetch(keep_range)
        kept = {name: value for name, value in headers.items()
                if name.lower() not in ("content-length", "connection", "date", "transfer-encoding")}
        return self.answer(status, change(body) if change else body, cut, **kept)

    def do_GET(self):  # pylint: disable=invalid-name
        owner = self.server.owner
        with owner.lock:
            owner.requests.append((self.path, self.authorization, self.headers.get("Range")))
        if not (owner.rule and owner.rule(self)):
            self.pass_on()


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """Who hangs up early is part of the tests; others are told as ever."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Front:
    """Before a registry; or a server of its own, when there is none and a rule answers all."""

    def __init__(self, registry=None, rule=None, tls=None):
        self.registry, self.rule = registry, rule
        self.requests, self.lock = [], threading.Lock()
        self.server = Server(("127.0.0.1", 0), Request)
        self.server.owner = self
        if tls:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def blobs(self):
        """Digests of blobs that were asked for, each once."""
        return sorted({path.rsplit(":", 1)[1] for path, _, _ in self.requests if "/blobs/" in path})


def token_rule(tokens, password=PASSWORD):
    """What a token server answers. `password` None: everybody gets one."""
    wanted = None if password is None else "Basic " + base64.b64encode(f"{USER}:{password}".encode()).decode()

    def answer(request):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(request.path).query))
        if wanted and request.authorization != wanted:
            return request.answer(401)
        if query.get("service") != SERVICE:
            return request.answer(400)
        _, path, actions = query["scope"].split(":")
        return request.answer(200, json.dumps({"token": tokens.make(path, actions.split(","))}).encode())
    return answer


def write_secret(folder, text):
    """A file that its owner alone can read."""
    path = os.path.join(folder, "secret")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    return path
