"""A name server whose answers change, for a program in an outpost (outpost.py).

    with NameServer() as names:                     # every program here asks it from now on
        names.answers["turn.test"] = [[PUBLIC], [LOOPBACK]]     # first this, then that for ever
        names.asked["turn.test"]                    # how often its address was asked for

    publish(PUBLIC)                                 # that address is on our loopback

An answer is a list of addresses, IPv4 or IPv6; each kind is told to who asks for it. Times to live
are 0. Whatever is not in `answers` does not exist.
"""

import ipaddress
import os
import socket
import struct
import subprocess
import tempfile
import threading
from collections import Counter

PUBLIC, OTHER_PUBLIC, LOOPBACK = "93.184.216.34", "93.184.216.35", "127.0.0.1"
KINDS = {1: 4, 28: 6}  # A, AAAA: the version of IP
ANSWER, NO_SUCH_NAME = 0x8580, 0x8583
RESOLV_CONF = "/etc/resolv.conf"


def publish(address):
    subprocess.run(["ip", "address", "replace", f"{address}/32", "dev", "lo"], check=True)


class NameServer:
    def __init__(self):
        self.answers, self.asked, self.served = {}, Counter(), Counter()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.file, self.over = None, False

    def __enter__(self):
        self.socket.bind((LOOPBACK, 53))
        self.thread.start()
        # pylint: disable=consider-using-with
        self.file = tempfile.NamedTemporaryFile("w", prefix="burrow-test-")
        self.file.write(f"nameserver {LOOPBACK}\n")
        self.file.flush()
        os.chmod(self.file.name, 0o644)
        subprocess.run(["mount", "--bind", self.file.name, RESOLV_CONF], check=True)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", RESOLV_CONF], check=True)
        self.file.close()
        self.over = True
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as last:
            last.sendto(b"", (LOOPBACK, 53))
        self.thread.join()
        self.socket.close()

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            if self.over:
                return
            if len(query) > 16:
                self.socket.sendto(self.answer(query), client)

    def answer(self, query):
        end = query.index(b"\0", 12) + 5
        kind = struct.unpack("!H", query[end - 4:end - 2])[0]
        name = read_name(query[12:end - 5])
        known = self.answers.get(name)
        if known is None:
            return query[:2] + struct.pack("!5H", NO_SUCH_NAME, 1, 0, 0, 0) + query[12:end]
        # Both kinds are asked for, one with the other: each has its own turn.
        turn = self.served[name, kind]
        self.served[name, kind] += 1
        self.asked[name] += kind == 1
        found = [ipaddress.ip_address(one) for one in known[min(turn, len(known) - 1)]]
        found = [one.packed for one in found if one.version == KINDS.get(kind)]
        rows = [b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(one)) + one for one in found]
        return query[:2] + struct.pack("!5H", ANSWER, 1, len(rows), 0, 0) + query[12:end] + b"".join(rows)


def read_name(labels):
    words = []
    while labels and labels[0]:
        words.append(labels[1:1 + labels[0]].decode("ascii", "replace").lower())
        labels = labels[1 + labels[0]:]
    return ".".join(words)
