"""An internet for the machine, which QEMU gives none: a network namespace with a web server and a name server.

    open_world(machine)                    # and the machine's resolv.conf names its name server
    WEB, NAME                              # the server's address, and a name for it
    close_world(machine)                   # everything as it was

The web server answers with the address of whoever asks. The same file is run inside the machine, where
it serves.
"""

import os
import socket
import socketserver
import struct
import threading

# Behind a gateway: who is on a link of the host is a neighbour, and no part of the internet.
WEB, NAMES, NAME = "25.0.113.10", "25.0.113.53", "server.example"
HOST, GATEWAY = "25.7.7.2", "25.7.7.1"
HOST6, WEB6 = "2001:db8::1", "2001:db8::10"
UNIT, PLACE = "burrow-test-world", "/run/burrow-test-world.py"
RESOLV = "/run/burrow-test-resolv.conf"

OPEN = f"""
set -e
ip netns add world
ip link add world-host type veth peer name eth0 netns world
ip address add {HOST}/24 dev world-host
ip address add {HOST6}/64 dev world-host nodad
ip link set world-host up
ip -n world link set lo up
ip -n world address add {GATEWAY}/24 dev eth0
ip -n world address add {WEB}/32 dev lo
ip -n world address add {NAMES}/32 dev lo
ip -n world address add {WEB6}/64 dev eth0 nodad
ip -n world link set eth0 up
ip route add 25.0.113.0/24 via {GATEWAY}
cp --no-dereference --preserve=all /etc/resolv.conf {RESOLV}
echo nameserver {NAMES} >/etc/resolv.conf
systemd-run -q --unit {UNIT} -p NetworkNamespacePath=/run/netns/world python3 {PLACE}
"""
CLOSE = f"""
systemctl stop {UNIT}
ip netns delete world
ip link delete world-host 2>/dev/null
rm -f /etc/resolv.conf {PLACE}
mv {RESOLV} /etc/resolv.conf
"""


def open_world(machine):
    with open(os.path.abspath(__file__), "rb") as file:
        machine.send(PLACE, file.read())
    machine.good(OPEN)
    machine.good(f"curl -s --retry 60 --retry-all-errors --retry-delay 1 --fail http://{WEB}/")


def close_world(machine):
    machine.run(CLOSE)


# --- inside ---------------------------------------------------------------------------------------


class Web(socketserver.StreamRequestHandler):
    def handle(self):
        while self.rfile.readline().strip():
            pass
        text = self.client_address[0].removeprefix("::ffff:").encode() + b"\n"
        self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))


class WebServer(socketserver.ThreadingTCPServer):
    address_family, allow_reuse_address = socket.AF_INET6, True


class Names(socketserver.BaseRequestHandler):
    def handle(self):
        """One A record for whatever A is asked; nothing else is known."""
        question, reply = self.request
        end = question.index(b"\0", 12) + 5
        is_address = question[end - 4:end - 2] == b"\0\1"
        answer = question[:2] + struct.pack(">HHHHH", 0x8180, 1, int(is_address), 0, 0) + question[12:end]
        if is_address:
            answer += struct.pack(">HHHIH", 0xC00C, 1, 1, 60, 4) + socket.inet_aton(WEB)
        reply.sendto(answer, self.client_address)


def serve():
    threading.Thread(target=socketserver.ThreadingUDPServer((NAMES, 53), Names).serve_forever).start()
    WebServer(("::", 80), Web).serve_forever()


if __name__ == "__main__":
    serve()
