#include "agent/file/mime.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/file/mime_table.h"
#include "base/auto.h"

/* The longest extension in the table is shorter. */
#define EXTENSION_MAX 16

/* --- by name -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    const char *type;
} names[] = {
    {"CMakeLists.txt", "text/x-cmake"}, {"Dockerfile", "text/x-dockerfile"},
    {"Gemfile", "text/x-ruby"},         {"LICENSE", MIME_TEXT},
    {"Makefile", "text/x-makefile"},    {"README", MIME_TEXT},
    {"Rakefile", "text/x-ruby"},
};

static int compare_extension(const void *key, const void *row)
{
    return strcasecmp(key, ((const __typeof__(extensions[0]) *) row)->extension);
}

const char *mime_of_name(const char *name)
{
    const __typeof__(extensions[0]) *row;
    const char *dot;

    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if (strcmp(names[i].name, name) == 0)
            return names[i].type;
    }
    dot = strrchr(name, '.');
    if (!dot || strnlen(dot, EXTENSION_MAX) == EXTENSION_MAX)
        return NULL;
    row = bsearch(dot + 1, extensions, ARRAY_COUNT(extensions), sizeof(extensions[0]),
                  compare_extension);
    return row ? row->type : NULL;
}

/* --- by content ----------------------------------------------------------------------------- */

#define SIGNATURE(offset, bytes, type)                                                             \
    {                                                                                              \
        offset, sizeof(bytes) - 1, bytes, type                                                     \
    }

static const struct {
    uint16_t offset;
    uint16_t length;
    const char *bytes;
    const char *type;
} signatures[] = {
    SIGNATURE(0,
              "\x7f"
              "ELF",
              "application/x-executable"),
    SIGNATURE(0, "\x89PNG\r\n\x1a\n", "image/png"),
    SIGNATURE(0, "\xff\xd8\xff", "image/jpeg"),
    SIGNATURE(0, "GIF87a", "image/gif"),
    SIGNATURE(0, "GIF89a", "image/gif"),
    SIGNATURE(8, "WEBP", "image/webp"),
    SIGNATURE(8, "WAVE", "audio/x-wav"),
    SIGNATURE(8, "AVI ", "video/x-msvideo"),
    SIGNATURE(0, "BM", "image/bmp"),
    SIGNATURE(0, "II*\0", "image/tiff"),
    SIGNATURE(0, "MM\0*", "image/tiff"),
    SIGNATURE(0, "\0\0\1\0", "image/vnd.microsoft.icon"),
    SIGNATURE(4, "ftypavif", "image/avif"),
    SIGNATURE(4, "ftypheic", "image/heic"),
    SIGNATURE(4, "ftypqt", "video/quicktime"),
    SIGNATURE(4, "ftyp", "video/mp4"),
    SIGNATURE(0, "\x1f\x8b", "application/gzip"),
    SIGNATURE(0, "PK\3\4", "application/zip"),
    SIGNATURE(0, "PK\5\6", "application/zip"),
    SIGNATURE(0, "BZh", "application/x-bzip2"),
    SIGNATURE(0,
              "\xfd"
              "7zXZ\0",
              "application/x-xz"),
    SIGNATURE(0, "\x28\xb5\x2f\xfd", "application/zstd"),
    SIGNATURE(0, "\x04\x22\x4d\x18", "application/x-lz4"),
    SIGNATURE(0, "7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    SIGNATURE(0, "Rar!\x1a\7", "application/vnd.rar"),
    SIGNATURE(257, "ustar", "application/x-tar"),
    SIGNATURE(0, "hsqs", "application/x-squashfs"),
    SIGNATURE(0, "%PDF-", "application/pdf"),
    SIGNATURE(0, "%!PS", "application/postscript"),
    SIGNATURE(0, "{\\rtf", "text/rtf"),
    SIGNATURE(0, "\0asm", "application/wasm"),
    SIGNATURE(0, "\xca\xfe\xba\xbe", "application/x-java-applet"),
    SIGNATURE(0, "MZ", "application/x-dosexec"),
    SIGNATURE(0, "!<arch>\n", "application/x-archive"),
    SIGNATURE(0, "SQLite format 3\0", "application/vnd.sqlite3"),
    SIGNATURE(0, "\x89HDF\r\n\x1a\n", "application/x-hdf5"),
    SIGNATURE(0, "PAR1", "application/vnd.apache.parquet"),
    SIGNATURE(0, "ID3", "audio/mpeg"),
    SIGNATURE(0, "\xff\xfb", "audio/mpeg"),
    SIGNATURE(0, "OggS", "audio/ogg"),
    SIGNATURE(0, "fLaC", "audio/flac"),
    SIGNATURE(0, "\x1a\x45\xdf\xa3", "video/x-matroska"),
    SIGNATURE(0, "wOFF", "font/woff"),
    SIGNATURE(0, "wOF2", "font/woff2"),
    SIGNATURE(0, "OTTO", "font/otf"),
    SIGNATURE(0, "\0\1\0\0\0", "font/ttf"),
    SIGNATURE(0, "DIRC", "application/octet-stream"),
};

/* What text begins with; asked only when the content is text. */
static const struct {
    const char *beginning;
    const char *type;
} texts[] = {
    {"<?xml", "text/xml"},
    {"<?php", "text/x-php"},
    {"<!doctype html", "text/html"},
    {"<html", "text/html"},
    {"<svg", "image/svg+xml"},
    {"#!/bin/sh", "text/x-shellscript"},
    {"#!/bin/bash", "text/x-shellscript"},
    {"#! /bin/sh", "text/x-shellscript"},
    {"#!/usr/bin/env bash", "text/x-shellscript"},
    {"#!/usr/bin/env sh", "text/x-shellscript"},
    {"#!/usr/bin/bash", "text/x-shellscript"},
    {"#!/usr/bin/python", "text/x-script.python"},
    {"#!/usr/bin/env python", "text/x-script.python"},
    {"#!/usr/bin/env node", "application/javascript"},
    {"#!/usr/bin/perl", "text/x-perl"},
    {"#!/usr/bin/env perl", "text/x-perl"},
};

/* Control characters that occur in texts: bell to carriage return, and escape. Bytes above ASCII
 * may be UTF-8 or a code page of old; only the controls of the latter never are text. */
static bool is_text(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = bytes[i];

        if ((byte < 0x20 && !(byte >= 0x07 && byte <= 0x0d) && byte != 0x1b) || byte == 0x7f)
            return false;
    }
    return true;
}

static const char *mime_of_text(const char *bytes, size_t length)
{
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        size_t needed = strlen(texts[i].beginning);

        if (length >= needed && strncasecmp(bytes, texts[i].beginning, needed) == 0)
            return texts[i].type;
    }
    return MIME_TEXT;
}

const char *mime_of_bytes(const void *bytes, size_t length)
{
    if (length > MIME_SNIFF_SIZE)
        length = MIME_SNIFF_SIZE;
    if (!length)
        return MIME_EMPTY;
    for (size_t i = 0; i < ARRAY_COUNT(signatures); i++) {
        /* Two letters are not enough to tell a format from a word. */
        bool weak = signatures[i].length == 2 && signatures[i].bytes[0] < 0x7f &&
                    signatures[i].bytes[0] >= 'A';

        if (signatures[i].offset + (size_t) signatures[i].length <= length &&
            memcmp((const char *) bytes + signatures[i].offset, signatures[i].bytes,
                   signatures[i].length) == 0 &&
            !(weak && is_text(bytes, length)))
            return signatures[i].type;
    }
    return is_text(bytes, length) ? mime_of_text(bytes, length) : MIME_UNKNOWN;
}

/* --- what is text --------------------------------------------------------------------------- */

static const char *const text_types[] = {
    "application/ecmascript",    "application/javascript",
    "application/json",          "application/json-seq",
    "application/rtf",           "application/sql",
    "application/toml",          "application/typescript",
    "application/x-empty",       "application/x-httpd-php",
    "application/x-javascript",  "application/x-sh",
    "application/x-shellscript", "application/x-typescript",
    "application/x-yaml",        "application/xml",
    "application/xml-dtd",       "application/xml-external-parsed-entity",
    "application/yaml",          MIME_EMPTY,
};

static bool ends_in(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);

    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

bool mime_is_text(const char *type)
{
    if (strncmp(type, "text/", 5) == 0 || ends_in(type, "+json") || ends_in(type, "+xml"))
        return true;
    for (size_t i = 0; i < ARRAY_COUNT(text_types); i++) {
        if (strcmp(text_types[i], type) == 0)
            return true;
    }
    return false;
}
