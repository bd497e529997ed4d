"""A git server on loopback: git http-backend behind a small HTTP server.

    with GitServer(folder) as server:
        server.add("name")                      # a bare repository with a few commits
        server.url("name")                      # http://127.0.0.1:PORT/name.git
        server.password = ("user", "secret")    # from now on asked for
        server.stalls = True                    # takes requests and never answers
"""

import base64
import http.server
import os
import subprocess
import threading

BACKEND = "/usr/lib/git-core/git-http-backend"
IDENTITY = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}


def git(*arguments, folder=None):
    """Run git; its output."""
    return subprocess.run(["git", *arguments], cwd=folder, check=True, text=True,
                          env={"PATH": os.environ["PATH"], **IDENTITY},
                          capture_output=True).stdout.strip()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass

    def is_admitted(self):
        if not self.server.owner.password:
            return True
        expected = base64.b64encode(":".join(self.server.owner.password).encode()).decode()
        return self.headers.get("Authorization") == f"Basic {expected}"

    def answer(self):
        owner = self.server.owner
        owner.requests.append((self.command, self.path, self.headers.get("Authorization")))
        if owner.stalls:
            owner.stalled.set()
            owner.stopped.wait(60)
            return
        if owner.redirect_to:
            self.send_response(301)
            self.send_header("Location", owner.redirect_to + self.path)
            self.end_headers()
        elif not self.is_admitted():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.end_headers()
        else:
            self.run_backend()

    do_GET = do_POST = answer

    def run_backend(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            raise AssertionError("this server takes no chunks")
        environment = {
            "PATH": os.environ["PATH"], **IDENTITY, "GIT_PROJECT_ROOT": self.server.owner.folder,
            "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path, "QUERY_STRING": query,
            "REQUEST_METHOD": self.command, "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "REMOTE_ADDR": "127.0.0.1"}
        output = subprocess.run([BACKEND], input=body, env=environment, check=False,
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        head, _, content = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if line)
        self.send_response(int(headers.pop("Status", "200").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


class GitServer:
    # pylint: disable=too-many-instance-attributes
    def __init__(self, folder):
        self.folder = folder
        self.password = None
        self.redirect_to = None
        self.stalls = False
        self.stalled, self.stopped = threading.Event(), threading.Event()
        self.requests = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.owner = self
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()

    def url(self, name, credentials=""):
        return f"http://{credentials}127.0.0.1:{self.port}/{name}.git"

    def path(self, name):
        return os.path.join(self.folder, name + ".git")

    def add(self, name):
        """Three commits on main, one more on topic, a tag, and a submodule that does not exist."""
        work = os.path.join(self.folder, name + ".work")
        git("init", "-q", "-b", "main", work)
        for number in (1, 2, 3):
            with open(os.path.join(work, "file"), "w", encoding="ascii") as file:
                file.write(f"version {number}\n")
            git("add", "file", folder=work)
            git("commit", "-q", "-m", f"commit {number}", folder=work)
        with open(os.path.join(work, ".gitmodules"), "w", encoding="ascii") as file:
            file.write('[submodule "sub"]\n\tpath = sub\n\turl = http://127.0.0.1:1/none.git\n')
        commit = git("rev-parse", "HEAD", folder=work)
        git("update-index", "--add", "--cacheinfo", f"160000,{commit},sub", folder=work)
        git("add", ".gitmodules", folder=work)
        git("commit", "-q", "-m", "submodule", folder=work)
        git("tag", "v1", folder=work)
        git("checkout", "-q", "-b", "topic", folder=work)
        git("commit", "-q", "--allow-empty", "-m", "topic", folder=work)
        git("checkout", "-q", "main", folder=work)
        git("clone", "-q", "--bare", work, self.path(name))
        git("config", "uploadpack.allowFilter", "true", folder=self.path(name))
