"""Images of containers, made by hand: layers from a few words, as OCI layouts or `docker save` archives.

    base = layer(programs("sh", "cat"))
    top = layer([file("etc/motd", b"hello"), gone("bin/cat")])
    write_layout(folder, [base, top], {"Env": ["A=b"]})
"""

import gzip
import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), "unknown")


def entry(name, kind=tarfile.REGTYPE, content=b"", **fields):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(content)
    info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    info.mtime = 1700000000
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def file(name, content=b"", **fields):
    return entry(name, content=content, **fields)


def folder(name, **fields):
    return entry(name, tarfile.DIRTYPE, **fields)


def link(name, target):
    return entry(name, tarfile.SYMTYPE, linkname=target)


def gone(name):
    return file(os.path.join(os.path.dirname(name), f".wh.{os.path.basename(name)}"))


def opaque(name):
    return file(f"{name}/.wh..wh..opq")


def programs(*names):
    """Entries for programs of this machine and the libraries they need, all in /bin and /lib."""
    paths, libraries = {}, {}
    for name in names:
        path = os.path.realpath(shutil.which(name))
        paths[f"bin/{name}"] = path
        said = subprocess.run(["ldd", path], stdout=subprocess.PIPE, check=True).stdout.decode()
        for library in re.findall(r"(/\S+) \(0x", said):
            libraries[library.lstrip("/")] = library
    entries = [folder("bin"), folder("tmp", mode=0o1777), folder("etc")]
    for place, path in {**libraries, **paths}.items():
        with open(path, "rb") as source:
            entries.append(file(place, source.read(), mode=0o755))
    return entries


def layer(entries):
    """The bytes of a tar."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def digest(content):
    return hashlib.sha256(content).hexdigest()


def zstd(content):
    return subprocess.run(["zstd", "-q", "-c"], input=content, stdout=subprocess.PIPE, check=True).stdout


def document(value):
    return json.dumps(value).encode()


def config_of(layers, config, architecture=ARCHITECTURE):
    return document({"architecture": architecture, "os": "linux", "config": config,
                     "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest(one)}" for one in layers]}})


def layout(layers, config=None, pack=gzip.compress, architecture=ARCHITECTURE):
    """{path: bytes} of an OCI layout."""
    files = {"oci-layout": document({"imageLayoutVersion": "1.0.0"})}

    def blob(content):
        files[f"blobs/sha256/{digest(content)}"] = content
        return {"digest": f"sha256:{digest(content)}", "size": len(content)}

    manifest = blob(document({"schemaVersion": 2, "config": blob(config_of(layers, config or {}, architecture)),
                              "layers": [blob(pack(one)) for one in layers]}))
    files["index.json"] = document({"schemaVersion": 2, "manifests": [manifest]})
    return files


def docker_save(layers, config=None):
    """{path: bytes} as Docker up to version 24 saved images."""
    description = config_of(layers, config or {})
    names = [f"{number:064x}/layer.tar" for number in range(len(layers))]
    return {**dict(zip(names, layers)), f"{digest(description)}.json": description,
            "manifest.json": document([{"Config": f"{digest(description)}.json", "RepoTags": ["test:latest"],
                                        "Layers": names}])}


def write_folder(path, files):
    for name, content in files.items():
        place = os.path.join(path, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "wb") as out:
            out.write(content)


def write_archive(path, files, extra=()):
    with open(path, "wb") as out:
        out.write(layer([*(file(name, content) for name, content in files.items()), *extra]))
