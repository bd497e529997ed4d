"""A sandbox with an application on an exposed port, for tests of what is between it and a browser.

    shop = Shop(plane)                      # plane: a ControlPlane
    shop.get("/path").status                # as a client of the preview's host
    shop.seen()["x-forwarded-host"]         # headers, as the application got them
"""

import json

from control_plane import NATIVE
from http_raw import request
from program import wait_until

PORT = 8080

# Says what it was asked, sets cookies, redirects, streams, and speaks WebSocket (echo).
APPLICATION = r'''
import base64, hashlib, http.server, json, socketserver

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, *headers):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/redirect":
            return self.answer(307, b"", ("Location", "/elsewhere"))
        if self.path == "/cookies":
            return self.answer(200, b"ok", ("Set-Cookie", "a=1; Domain=localhost; Path=/"),
                               ("Set-Cookie", "b=2"), ("Referrer-Policy", "unsafe-url"))
        if self.path == "/events":
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for data in (b"data: one\n\n", b"data: two\n\n"):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")
            return None
        if self.headers.get("Upgrade") == "websocket":
            return self.echo()
        length = int(self.headers.get("Content-Length") or 0)
        body = json.dumps({"method": self.command, "path": self.path,
                           "headers": [[n.lower(), v] for n, v in self.headers.items()],
                           "body": self.rfile.read(length).decode()}).encode()
        return self.answer(200, body, ("Content-Type", "application/json"))

    do_POST = do_GET

    def echo(self):
        accept = hashlib.sha1(self.headers["Sec-WebSocket-Key"].encode() +
                              b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", base64.b64encode(accept).decode())
        self.end_headers()
        self.close_connection = True
        while True:
            head = self.rfile.read(2)
            if len(head) < 2:
                return
            length, mask = head[1] & 127, self.rfile.read(4)
            data = bytes(b ^ mask[i % 4] for i, b in enumerate(self.rfile.read(length)))
            self.wfile.write(bytes([head[0], length]) + data)
            self.wfile.flush()

class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

Server(("127.0.0.1", 8080), Handler).serve_forever()
'''


class Shop:
    """A sandbox with an application on an exposed port."""

    def __init__(self, plane, **fields):
        self.plane = plane
        self.box = plane.create(**fields)
        self.id = self.box["id"]
        plane.ask("PUT", f"{NATIVE}/sandboxes/{self.id}/files/workspace/app.py",
                  APPLICATION.encode())
        plane.call("POST", f"{NATIVE}/sandboxes/{self.id}/processes",
                   {"command": "exec python3 app.py"})
        self.exposed = self.expose()
        wait_until(lambda: self.get("/").status == 200, "the application")

    def expose(self, **fields):
        return self.plane.call("POST", f"{NATIVE}/sandboxes/{self.id}/ports",
                               {"port": PORT, **fields})

    @property
    def host(self):
        return self.exposed["url"].split("/")[2]

    def get(self, path, headers=(), method="GET", body=b""):
        return request(self.plane.address, method, path, [("Host", self.host), *headers], body)

    def seen(self, headers=()):
        """What the application sees of a request: {name: [values]}."""
        found = {}
        for name, value in json.loads(self.get("/look", headers).body)["headers"]:
            found.setdefault(name, []).append(value)
        return found
