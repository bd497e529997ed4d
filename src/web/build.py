#!/usr/bin/env python3
"""Make the page into a C source: build.py ESBUILD OUTPUT DEPFILE.

esbuild bundles app.ts with all it imports, and the style sheets. Names of what is bundled get a part of
their hash, so that browsers may keep them for ever; index.html, which names them, is asked for each
time. Every file is kept as it is and packed by gzip: the same bytes for the same sources.
"""

import gzip
import hashlib
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
         ".html": "text/html; charset=utf-8"}
STYLES = ("vendor/xterm.css", "style.css")


def path(name):
    return os.path.join(HERE, name)


def read(name):
    with open(path(name), "rb") as file:
        return file.read()


def bundle(esbuild, *words, text=b""):
    done = subprocess.run([esbuild, "--minify", "--log-level=warning", *words], input=text, stdout=subprocess.PIPE, cwd=HERE, check=True)
    return done.stdout


def files(esbuild):
    """[(name without hash, bytes)]"""
    styles = b"".join(read(name) for name in STYLES)
    return [
        ("app.js", bundle(esbuild, "app.ts", "--bundle", "--format=esm", "--target=es2021")),
        ("style.css", bundle(esbuild, "--loader=css", text=styles)),
        ("icon.svg", read("icon.svg")),
    ]


def hashed(name, data):
    stem, ending = os.path.splitext(name)
    return f"{stem}.{hashlib.sha256(data).hexdigest()[:12]}{ending}"


def array(name, data):
    lines = [", ".join(str(byte) for byte in data[at:at + 64]) for at in range(0, len(data), 64)]
    return f"static const unsigned char {name}[] = {{\n" + ",\n".join(lines) + "};\n"


def row(at, name, data):
    ending = os.path.splitext(name)[1]
    etag = hashlib.sha256(data).hexdigest()[:32]
    return f'    {{"{name}", "{TYPES[ending]}", "\\"{etag}\\"", plain_{at}, sizeof(plain_{at}), packed_{at}, sizeof(packed_{at})}},\n'


def write_source(output, made):
    parts = ['#include "web/web.h"\n', "// clang-format off\n"]
    for at, (_, data) in enumerate(made):
        parts.append(array(f"plain_{at}", data))
        parts.append(array(f"packed_{at}", gzip.compress(data, 9, mtime=0)))
    parts.append("const struct web_file web_files[] = {\n" + "".join(row(at, name, data) for at, (name, data) in enumerate(made)) + "};\n")
    parts.append(f"const size_t web_file_count = {len(made)};\n")
    with open(output, "w", encoding="ascii") as file:
        file.write("\n".join(parts))


def sources():
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(HERE) for name in names
                  if name.endswith((".ts", ".css", ".svg", ".html", ".js", ".py")))


def main(esbuild, output, depfile):
    made = [(hashed(name, data), name, data) for name, data in files(esbuild)]
    page = read("index.html").decode()
    for new, old, _ in made:
        page = page.replace(f"@{old}", new)
    write_source(output, [("index.html", page.encode())] + [(new, data) for new, _, data in made])
    with open(depfile, "w", encoding="utf-8") as file:
        file.write(f"{output}: {' '.join(sources())}\n")


main(*sys.argv[1:])
