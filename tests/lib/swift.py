"""A real S3 server for tests: OpenStack Swift with s3api and tempauth, on loopback, in a folder of
its own. It checks signatures and sums.

    with Swift() as swift:
        swift.make_bucket("burrow-test")
        swift.endpoint, swift.access_key, swift.secret_key, swift.region

Five processes (proxy, account, container, object, memcached), started from Debian's packages, gone
with the folder at the end. Nothing outside of the folder is read but /etc/swift/swift.conf, which the
package brings, and nothing is written.
"""

import datetime
import getpass
import hashlib
import hmac
import http.client
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.parse

from program import SLOW, free_port, wait_until
from tap import skip

START_SECONDS = 60.0
STOP_SECONDS = 10.0
LOG_SHOWN = 2000  # characters of each server
SERVERS = ("account", "container", "object", "proxy")

COMMON = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
log_level = ERROR
log_udp_host =
"""

STORAGE = COMMON + """
[pipeline:main]
pipeline = {name}-server

[app:{name}-server]
use = egg:swift#{name}
node_timeout = 60
conn_timeout = 10
container_update_timeout = 60
"""

PROXY = COMMON + """
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck cache bulk s3api tempauth slo symlink proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
node_timeout = 60
conn_timeout = 10
recoverable_node_timeout = 60
error_suppression_limit = 1000000000

[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{cache_port}
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
max_manifest_segments = 10000
[filter:symlink]
use = egg:swift#symlink

[filter:s3api]
use = egg:swift#s3api
location = {region}
max_multi_delete_objects = 1000
max_upload_part_num = 10000

[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = {secret} .admin
user_test_reader = {secret}
"""

# Where each kind of data is: on our one server of that kind.
RINGS = """
import os, sys
from swift.common.ring import RingBuilder
for pair in sys.argv[2:]:
    name, port = pair.split("=")
    builder = RingBuilder(part_power=1, replicas=1, min_part_hours=0)
    builder.add_dev({
        "id": 0, "region": 1, "zone": 1, "weight": 1.0, "device": "disk", "meta": "",
        "ip": "127.0.0.1", "port": int(port),
        "replication_ip": "127.0.0.1", "replication_port": int(port)})
    builder.rebalance()
    builder.get_ring().save(os.path.join(sys.argv[1], name + ".ring.gz"))
"""


def signed_headers(method, url, access_key, secret_key, region):
    """Headers of a request without a body, signed by other code than ours."""
    parts = urllib.parse.urlsplit(url)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    empty = hashlib.sha256(b"").hexdigest()
    headers = {"host": parts.netloc, "x-amz-content-sha256": empty, "x-amz-date": now}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"{method}\n{parts.path}\n{parts.query}\n{lines}\n{names}\n{empty}"
    scope = f"{now[:8]}/{region}/s3/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = ("AWS4" + secret_key).encode()
    for word in (now[:8], region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, "
                                f"SignedHeaders={names}, Signature={signature}")
    return headers


class Swift:
    access_key = "test:tester"
    secret_key = "a-secret-of-the-test"
    region = "us-east-1"

    def __init__(self):
        if not shutil.which("swift-proxy-server"):
            skip("OpenStack Swift (packages swift-proxy, swift-account, ...)")
        self.folder = tempfile.mkdtemp(prefix="burrow-swift-")
        self.processes = []
        names = (*SERVERS, "memcached")
        self.ports = {name: free_port() for name in names}
        self.endpoint = f"http://127.0.0.1:{self.ports['proxy']}"

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self):
        os.makedirs(os.path.join(self.folder, "devices", "disk"))
        # A process of its own: our module has the name of theirs.
        subprocess.run(["/usr/bin/python3", "-I", "-c", RINGS, self.folder,
                        *[f"{name}={self.ports[name]}" for name in SERVERS[:-1]]], check=True)
        self.run("memcached", "/usr/bin/memcached", "-u", getpass.getuser(), "-l", "127.0.0.1",
                 "-p", str(self.ports["memcached"]), "-m", "16")
        for name in SERVERS:
            self.launch(name)
        wait_until(self.is_ready, "start of Swift", START_SECONDS)

    def launch(self, name):
        configuration = os.path.join(self.folder, f"{name}-server.conf")
        template = PROXY if name == "proxy" else STORAGE
        with open(configuration, "w", encoding="ascii") as file:
            file.write(template.format(name=name, port=self.ports[name], folder=self.folder,
                                       user=getpass.getuser(), region=self.region,
                                       secret=self.secret_key,
                                       cache_port=self.ports["memcached"]))
        self.run(name, f"/usr/bin/swift-{name}-server", configuration, "-v")

    def run(self, name, *command):
        with open(os.path.join(self.folder, f"{name}.log"), "ab") as log:
            # pylint: disable=consider-using-with
            self.processes.append(subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def is_ready(self):
        for process in self.processes:
            if process.poll() is not None:
                raise AssertionError(f"Swift ended with {process.returncode}:\n{self.log()}")
        try:
            # The proxy last: it remembers for a minute who did not answer.
            for port in self.ports.values():
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return self.ask("GET", "/") == 200
        except OSError:
            return False

    def request(self, method, path):
        """Status and text of the answer to a signed request without a body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.ports["proxy"], timeout=30)
        try:
            connection.request(method, path, headers=signed_headers(
                method, self.endpoint + path, self.access_key, self.secret_key, self.region))
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def ask(self, method, path):
        return self.request(method, path)[0]

    def fetch(self, path):
        return self.request("GET", path)[1]

    def make_bucket(self, name):
        status = self.ask("PUT", f"/{name}")
        if status != 200:
            raise AssertionError(f"bucket {name}: status {status}:\n{self.log()}")

    def pause(self):
        """The store hangs: it takes connections and does not answer."""
        for process in self.processes:
            process.send_signal(signal.SIGSTOP)

    def resume(self):
        for process in self.processes:
            process.send_signal(signal.SIGCONT)

    def stop(self):
        """Nothing of it stays, neither process nor folder."""
        for process in self.processes:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        for process in self.processes:
            try:
                process.wait(STOP_SECONDS * SLOW)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self):
        """The end of what each printed."""
        texts = []
        for name in SERVERS:
            path = os.path.join(self.folder, f"{name}.log")
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(f"--- {name}\n{file.read()[-LOG_SHOWN:]}")
        return "\n".join(texts)
