"""broker-demo (tests/support/broker_demo.c): the egress broker alone, with a policy from a file, and a
sandbox's network of its own.

    with BrokerDemo("route anthropic base=http://127.0.0.1:9/v1 local", hosts={"up.test": "127.0.0.1"}) as demo:
        demo.policy("...")                          # another from now on
        with demo.connect(8790) as sock: ...        # a socket inside
        status, headers, body = demo.ask("GET", "/anthropic/models")
        demo.told("ended", lambda line: line["status"] == 200)      # waits for a line of what the domain was told

`hosts` is its /etc/hosts, with nothing else that resolves; names may change their address meanwhile.
"""

import contextlib
import ctypes
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import threading

from program import Program, wait_until

CLONE_NEWNET = 0x40000000
PROXY = ("127.66.0.1", 8790)
TIMEOUT_SECONDS = 60
_libc = ctypes.CDLL(None, use_errno=True)


def enter_network(fd):
    if _libc.setns(fd, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


class BrokerDemo(Program):
    def __init__(self, policy="", *flags, hosts=None, ca=None):
        super().__init__("broker-demo")
        self.policy_path = os.path.join(self.folder, "policy")
        self.hosts_path = os.path.join(self.folder, "hosts")
        self.resolv_path = os.path.join(self.folder, "resolv")
        self.policy(policy)
        self.hosts(hosts or {})
        with open(self.resolv_path, "w", encoding="ascii") as file:
            file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        self.arguments = ["--policy", self.policy_path, *(["--ca", ca] if ca else []), *flags]
        self.inside = None

    def policy(self, text):
        with open(self.policy_path, "w", encoding="utf-8") as file:
            file.write(text + "\n")

    def hosts(self, names):
        with open(self.hosts_path, "w", encoding="ascii") as file:
            file.writelines(f"{address} {name}\n" for name, all_of in names.items() for address in all_of.split())

    def launch(self):
        mounts = (f'mount --bind "{self.hosts_path}" /etc/hosts && mount --bind "{self.resolv_path}" /etc/resolv.conf'
                  ' && exec "$@"')
        with open(self.log_path, "ab") as log:
            # pylint: disable=consider-using-with
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--propagation", "private", "sh", "-c", mounts, "sh", self.path(), *self.arguments],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment)

    def is_ready(self):
        match = re.search(r"^ready (\d+) (\d+)$", self.log(), re.MULTILINE)
        if match and self.inside is None:
            self.inside = os.open(f"/proc/{match[1]}/fd/{match[2]}", os.O_RDONLY)
        return match

    def kill(self):
        if self.inside is not None:
            os.close(self.inside)
            self.inside = None
        super().kill()

    # --- what the domain was told

    def lines(self, kind=None):
        parsed = [json.loads(line) for line in self.log().splitlines() if line.startswith("{") and line.endswith("}")]
        return [line for line in parsed if kind in (None, line["told"])]

    def told(self, kind, matches=lambda line: True):
        return wait_until(lambda: next((line for line in self.lines(kind) if matches(line)), None), f"{kind} to be told")

    def asked(self):
        return self.lines("asked")

    def cut(self):
        self.signal(signal.SIGUSR1)
        self.told("cut")

    def authority(self):
        return self.told("authority")["certificate"]

    # --- from inside

    def inside_socket(self, family=socket.AF_INET):
        """A socket of the sandbox's network. A thread of its own goes there, so that no other does."""
        made = []

        def make():
            enter_network(self.inside)
            made.append(socket.socket(family))

        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        made[0].settimeout(TIMEOUT_SECONDS)
        return made[0]

    def connect(self, port=8790, address="127.66.0.1"):
        sock = self.inside_socket()
        sock.connect((address, port))
        return sock

    def http(self, sock=None):
        connection = http.client.HTTPConnection(*PROXY, timeout=TIMEOUT_SECONDS)
        connection.sock = sock or self.connect()
        return connection

    def ask(self, method, target, body=None, headers=None, port=8790):
        """One request on a connection of its own."""
        connection = self.http(self.connect(port))
        with contextlib.closing(connection):
            connection.request(method, target, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()

    def raw(self, data, port=8790, address="127.66.0.1"):
        """What comes back for these bytes until the other side ends."""
        with self.connect(port, address) as sock:
            with contextlib.suppress(ConnectionError):
                sock.sendall(data)
            return drain(sock)

    def tunnel(self, target):
        """A socket behind a CONNECT, or the answer that was no 200."""
        sock = self.connect()
        sock.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n".encode())
        head = read_head(sock)
        if b" 200 " not in head.split(b"\r\n")[0]:
            return None, head + drain(sock)
        return sock, head

    def context(self):
        """TLS that trusts what is in this sandbox's bundle: its authority."""
        context = ssl.create_default_context(cadata=self.authority())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    def secure(self, target, name=None, context=None, port=None):
        """TLS through a CONNECT, or through the door at 443."""
        sock = self.connect(port) if port else self.tunnel(target)[0]
        if sock is None:
            return None
        return (context or self.context()).wrap_socket(sock, server_hostname=name or target.rpartition(":")[0])


def read_head(sock):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = sock.recv(1)
        if not byte:
            break
        head += byte
    return head


def drain(sock):
    got = b""
    with contextlib.suppress(ConnectionError):
        while piece := sock.recv(65536):
            got += piece
    return got


def certificates(folder, *names):
    """An authority, and one certificate of it for all of these names: (authority, certificate with key)."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, cwd=folder, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    alternatives = ",".join(("IP:" if re.fullmatch(r"[0-9.]+", name) else "DNS:") + name for name in names)
    with open(os.path.join(folder, "ext"), "w", encoding="ascii") as file:
        file.write(f"subjectAltName={alternatives}\n")
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key",
            "-out", "ca.pem", "-subj", "/CN=test authority", "-days", "2")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "leaf.key",
            "-out", "leaf.csr", "-subj", "/CN=test")
    openssl("x509", "-req", "-in", "leaf.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-out", "leaf.pem", "-days", "2", "-extfile", "ext")
    with open(os.path.join(folder, "both.pem"), "w", encoding="ascii") as both:
        for name in ("leaf.pem", "leaf.key"):
            with open(os.path.join(folder, name), encoding="ascii") as part:
                both.write(part.read())
    return os.path.join(folder, "ca.pem"), os.path.join(folder, "both.pem")
