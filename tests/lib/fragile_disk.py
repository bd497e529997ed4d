"""A disk that can lose its power: every write and every flush is in a log, in order, and the disk as
a power cut would leave it can be made for any place in that log.

    with FragileDisk(folder, 3 << 30) as disk:
        disk.path                                   # a file: make a filesystem in it, mount it -o loop
        position = disk.position()                  # everything up to now is before it
        disk.cut(position, random.Random(1), path)  # what may be left: a file

What a disk promises is kept and no more: writes before the last flush are there, of those behind it
each may be there or not, and a long one in part. The server is a process of its own that speaks the
FUSE protocol (linux/fuse.h, 7.31) for one file, which is mounted on top of a file; the kernel caches
nothing of it.
"""

import ctypes
import os
import struct
import subprocess
import sys

PAGE = 4096  # a write of that many bytes happens or does not
WRITE_MAX = 1 << 20
HEADER = struct.Struct("<QQ")  # of a record in the log: offset and length, or FLUSH and nothing
FLUSH = (1 << 64) - 1

GETATTR, OPEN, READ, WRITE, RELEASE, FSYNC, FLUSH_FILE, INIT, FORGET = 3, 14, 15, 16, 18, 20, 25, 26, 2
SILENT = (FORGET, 36, 42)  # requests without an answer: forget, interrupt, batch forget
NOT_HERE = -38  # ENOSYS
BIG_WRITES, MAX_PAGES, DIRECT = 1 << 5, 1 << 22, 1
REQUEST = struct.Struct("<IIQQIIII")
REGULAR = 0o100600


class Server:
    def __init__(self, device, live, log):
        self.device, self.live, self.log = device, live, log

    def run(self):
        while True:
            try:
                request = os.read(self.device, WRITE_MAX + 2 * PAGE)
            except OSError:
                return  # unmounted
            _, kind, number, *_ = REQUEST.unpack_from(request)
            if kind in SILENT:
                continue
            answer = self.answer(kind, memoryview(request)[REQUEST.size:])
            error, body = (answer, b"") if isinstance(answer, int) else (0, answer)
            try:
                os.write(self.device, struct.pack("<IiQ", 16 + len(body), error, number) + body)
            except OSError:
                return

    def answer(self, kind, body):
        if kind == INIT:
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, BIG_WRITES | MAX_PAGES, 16, 12, WRITE_MAX,
                               1, WRITE_MAX // PAGE, 0, 0)
        if kind == GETATTR:
            size = os.fstat(self.live).st_size
            return struct.pack("<QII6Q10I", 3600, 0, 0, 1, size, size // 512, 0, 0, 0, 0, 0, 0,
                               REGULAR, 1, 0, 0, 0, PAGE, 0)
        if kind == OPEN:
            return struct.pack("<QII", 1, DIRECT, 0)
        if kind == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return os.pread(self.live, size, offset)
        if kind == WRITE:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self.write(offset, body[40:40 + size])
        if kind == FSYNC:
            os.write(self.log, HEADER.pack(FLUSH, 0))
            return b""
        return b"" if kind in (RELEASE, FLUSH_FILE) else NOT_HERE

    def write(self, offset, data):
        """In the log as one write of ours: whoever reads its size sees whole records."""
        os.write(self.log, HEADER.pack(offset, len(data)) + data)
        os.pwrite(self.live, data, offset)
        return struct.pack("<II", len(data), 0)


def records(log, end):
    """(offset, data) of all records in the first `end` bytes; data is None for a flush."""
    with open(log, "rb") as file:
        while file.tell() < end:
            offset, length = HEADER.unpack(file.read(HEADER.size))
            yield offset, None if offset == FLUSH else file.read(length)


def pieces(offset, data):
    for at in range(0, len(data), PAGE):
        yield offset + at, data[at:at + PAGE]


class FragileDisk:
    def __init__(self, folder, size):
        self.path, self.size = os.path.join(folder, "disk"), size
        self.live, self.log = os.path.join(folder, "live"), os.path.join(folder, "log")
        self.server = None

    def __enter__(self):
        for path, size in ((self.path, 0), (self.live, self.size), (self.log, 0)):
            with open(path, "wb") as file:
                file.truncate(size)
        device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={device},rootmode=100000,user_id=0,group_id=0,max_read={WRITE_MAX}"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"fragile", self.path.encode(), b"fuse", 0, options.encode()) < 0:
            raise OSError(ctypes.get_errno(), "mount")
        # pylint: disable=consider-using-with
        self.server = subprocess.Popen([sys.executable, os.path.abspath(__file__), str(device),
                                        self.live, self.log], pass_fds=[device])
        os.close(device)
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "--lazy", self.path], check=False)
        self.server.kill()
        self.server.wait()

    def position(self):
        """Between two records: the log grows by whole ones."""
        return os.stat(self.log).st_size

    def positions(self):
        """All of them, up to now."""
        found, end = [0], self.position()
        for _, data in records(self.log, end):
            found.append(found[-1] + HEADER.size + len(data or b""))
        return found

    def cut(self, position, rng, path):
        """The disk after a power cut there; returns how many writes were not flushed, and how many
        of their pages are lost."""
        waiting, lost = [], 0
        with open(path, "wb") as image:
            image.truncate(self.size)
            for offset, data in records(self.log, position):
                if data is not None:
                    waiting.append((offset, data))
                    continue
                for at, flushed in waiting:
                    os.pwrite(image.fileno(), flushed, at)
                waiting = []
            chance = rng.random()
            for offset, data in waiting:
                for at, piece in pieces(offset, data):
                    if rng.random() < chance:
                        lost += 1
                    else:
                        os.pwrite(image.fileno(), piece, at)
        return len(waiting), lost


if __name__ == "__main__":
    Server(int(sys.argv[1]), os.open(sys.argv[2], os.O_RDWR),
           os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND)).run()
