"""The servers of the bench: ours, and the peers doing the same work.

All answer the same paths: /json (a small JSON text), /bytes/{count}, /sink (takes a body), /echo
(WebSocket), and /file/{count} through the proxy. All listen on a free loopback port.
"""

import http.client
import os
import shutil
import socket
import subprocess
from pathlib import Path

from frame import process
from frame.failure import RowFailed

ECHO_MODULE = Path("/usr/lib/nginx/modules/ngx_http_echo_module.so")
DEFAULT_JSON = b'{"status":"ok"}'
NGINX_TEMP_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def accepts(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def need_program(name: str, package: str) -> str:
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin")
    if not found:
        raise RowFailed(f"{name} is missing: apt-get install {package}")
    return found


class Server:
    """A running server. Ends with its `with` block."""

    def __init__(self, arguments: list, port: int, cpu: int, directory: Path):
        self.port = port
        self.target = f"127.0.0.1:{port}"
        self.output = directory / "output.log"
        with self.output.open("wb") as output:
            self.child = process.spawn(arguments, cpu, stdout=output, stderr=output,
                                       stdin=subprocess.DEVNULL)
        try:
            process.wait_until(lambda: accepts(port), self.child, str(arguments[0]))
        except RowFailed as error:
            self.stop()
            raise RowFailed(f"{error}: {self.output.read_text(errors='replace')[-500:]}") from error
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        process.stop(self.child)

    def working_pids(self) -> list:
        """The processes that do the work that is measured."""
        return [self.child.pid]

    def cpu_seconds(self) -> float:
        return sum(process.cpu_seconds(pid) for pid in self.working_pids())

    def resident_bytes(self) -> int:
        return sum(process.resident_bytes(pid) for pid in self.working_pids())

    def request(self, method: str, path: str, body: bytes = None) -> bytes:
        """One request, to prepare a row and to see that the server does what the row assumes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body=body)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise RowFailed(f"{method} {path} to {self.child.args[0]}: {error}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise RowFailed(f"{method} {path} to {self.child.args[0]} answered {response.status}")
        return answer


class NetDemo(Server):
    """Our own HTTP, WebSocket and proxy code behind a few routes."""

    def __init__(self, program: Path, directory: Path, cpu: int, proxy_to: str = None):
        port = free_port()
        arguments = [program, "--listen", f"127.0.0.1:{port}", "--log", directory / "access.log"]
        if proxy_to:
            arguments += ["--proxy-to", proxy_to]
        super().__init__(arguments, port, cpu, directory)


class WebSocketPeer(Server):
    """Echo on libwebsockets (bench/peer/websocket_echo.c)."""

    def __init__(self, program: Path, directory: Path, cpu: int):
        port = free_port()
        super().__init__([program, str(port)], port, cpu, directory)


class Nginx(Server):
    """One nginx worker with the settings of Debian's nginx.conf where they matter (sendfile,
    tcp_nopush, unbuffered access log) and none of the limits that would end a benchmark early.
    Only the worker is measured."""

    def __init__(self, directory: Path, cpu: int, locations: str = "", http: str = "",
                 access_log: bool = True):
        self.documents = directory / "www"
        self.documents.mkdir()
        port = free_port()
        config = directory / "nginx.conf"
        config.write_text(self._config(directory, port, locations, http, access_log))
        super().__init__([need_program("nginx", "nginx-light"), "-p", directory, "-c", config,
                          "-e", directory / "error.log"], port, cpu, directory)
        process.wait_until(lambda: process.children_of(self.child.pid), self.child, "nginx worker")

    def working_pids(self) -> list:
        return process.children_of(self.child.pid)

    def add_file(self, path: str, content: bytes):
        file = self.documents / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    @staticmethod
    def _config(directory: Path, port: int, locations: str, http: str, access_log: bool) -> str:
        temp_paths = "".join(f"{name}_temp_path {directory}/{name};" for name in NGINX_TEMP_PATHS)
        return f"""
            {f"load_module {ECHO_MODULE};" if ECHO_MODULE.exists() else ""}
            {"user root;" if os.geteuid() == 0 else ""}
            daemon off;
            worker_processes 1;
            pid {directory}/nginx.pid;
            error_log {directory}/error.log;
            events {{ worker_connections 16384; }}
            http {{
                {temp_paths}
                sendfile on;
                tcp_nopush on;
                access_log {f"{directory}/access.log" if access_log else "off"};
                default_type application/json;
                keepalive_requests 1000000000;
                keepalive_timeout 300s;
                client_max_body_size 1g;
                {http}
                server {{
                    listen 127.0.0.1:{port} backlog=4096;
                    root {directory}/www;
                    {locations}
                }}
            }}
        """
