#include "launcher/image/image_host.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/encoding/encode.h"
#include "base/encoding/sha256.h"
#include "base/text.h"
#include "launcher/image/image_copy.h"
#include "launcher/image/image_internal.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_tree.h"

AUTO_DEFINE_PTR(closedir, DIR, (void) closedir);

#define SKELETONS ".host"

/* Part of the digest: raise it when the tables below change. */
#define SKELETON_VERSION "1"

/* The package list of a machine with everything is some 10 MB. */
#define STATUS_MAX (64 << 20)

/* What we generate. Ids are those inside the sandbox. */

static const struct {
    const char *path;
    mode_t mode;
    unsigned int owner;
} folders[] = {
    {"dev", 0755, 0},
    {"etc", 0755, 0},
    {"etc/ssl", 0755, 0},
    {"home", 0755, 0},
    {"home/user", 0755, 1000},
    {"media", 0755, 0},
    {"mnt", 0755, 0},
    {"opt", 0755, 0},
    {"proc", 0555, 0},
    {"root", 0700, 0},
    {"run", 0755, 0},
    {"run/lock", 01777, 0},
    {"srv", 0755, 0},
    {"sys", 0555, 0},
    {"tmp", 01777, 0},
    {"usr", 0755, 0},
    {"var", 0755, 0},
    {"var/cache", 0755, 0},
    {"var/lib", 0755, 0},
    {"var/local", 0755, 0},
    {"var/log", 0755, 0},
    {"var/mail", 0755, 0},
    {"var/opt", 0755, 0},
    {"var/spool", 0755, 0},
    {"var/tmp", 01777, 0},
    {"var/usrlocal", 0755, 0},
    {"var/usrlocal/bin", 0755, 0},
    {"var/usrlocal/etc", 0755, 0},
    {"var/usrlocal/include", 0755, 0},
    {"var/usrlocal/lib", 0755, 0},
    {"var/usrlocal/sbin", 0755, 0},
    {"var/usrlocal/share", 0755, 0},
    {"var/usrlocal/src", 0755, 0},
    /* One tenant: whichever user a program runs as, the workspace is its own. */
    {"workspace", 0777, 0},
};

static const struct {
    const char *path;
    const char *target;
} links[] = {
    {"home/user/workspace", "/workspace"},
    {"home/workspace", "/workspace"},
    {"var/run", "/run"},
    {"var/lock", "/run/lock"},
    {"etc/mtab", "../proc/self/mounts"},
    {"etc/os-release", "../usr/lib/os-release"},
};

static const struct {
    const char *path;
    const char *text;
} files[] = {
    {"etc/passwd", "root:*:0:0:root:/root:/bin/bash\n"
                   "daemon:*:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
                   "bin:*:2:2:bin:/bin:/usr/sbin/nologin\n"
                   "sys:*:3:3:sys:/dev:/usr/sbin/nologin\n"
                   "man:*:6:12:man:/var/cache/man:/usr/sbin/nologin\n"
                   "mail:*:8:8:mail:/var/mail:/usr/sbin/nologin\n"
                   "www-data:*:33:33:www-data:/var/www:/usr/sbin/nologin\n"
                   "user:*:1000:1000:user:/home/user:/bin/bash\n"
                   "nobody:*:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", "root:*:0:\ndaemon:*:1:\nbin:*:2:\nsys:*:3:\nadm:*:4:\ntty:*:5:\ndisk:*:6:\n"
                  "mail:*:8:\nman:*:12:\nkmem:*:15:\nsudo:*:27:\nwww-data:*:33:\nshadow:*:42:\n"
                  "utmp:*:43:\nstaff:*:50:\nusers:*:100:\nuser:*:1000:\nnogroup:*:65534:\n"},
    {"etc/hosts", "127.0.0.1 localhost\n"
                  "::1 localhost ip6-localhost ip6-loopback\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
                          "networks: files\nprotocols: files\nservices: files\nethers: files\n"
                          "rpc: files\n"},
    {"etc/shells", "/bin/sh\n/bin/bash\n/bin/dash\n"},
    {"etc/profile", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                    "export PATH\n"
                    "if [ -n \"$BASH_VERSION\" ] && [ -f /etc/bash.bashrc ]; then\n"
                    "    . /etc/bash.bashrc\n"
                    "fi\n"},
    {"etc/bash.bashrc", "[ -z \"$PS1\" ] && return\n"
                        "shopt -s checkwinsize\n"
                        "PS1='\\u:\\w\\$ '\n"},
    {"etc/ssl/openssl.cnf", "openssl_conf = default_conf\n"
                            "[default_conf]\n"
                            "[req]\n"
                            "distinguished_name = req_distinguished_name\n"
                            "[req_distinguished_name]\n"
                            "countryName = Country Name (2 letter code)\n"
                            "organizationName = Organization Name\n"
                            "commonName = Common Name (e.g. server FQDN or YOUR name)\n"},
};

/* What is copied from the host's /etc when it has it, under the rules of image_copy.h. A name that
 * ends in '*' stands for all that begin so. Everything here is made by packages for all users; a
 * file where people keep tokens (gitconfig, npmrc, pip.conf, environment) does not belong here. */
static const char *const copies[] = {
    "ImageMagick-*", /* policies, without which it refuses to run */
    "alternatives",  /* awk, editor, java, ...: links in /usr/bin lead there */
    "bindresvport.blacklist",
    "debian_version",
    "ethertypes",
    "fonts",
    "gai.conf",
    "host.conf",
    "inputrc",
    "java-*", /* the virtual machine's own configuration */
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "locale.alias",
    "localtime",
    "magic",
    "magic.mime",
    "mime.types",
    "networks",
    "perl",
    "protocols",
    "python3",
    "python3.*",
    "rpc",
    "services",
    "ssl/certs",
    "terminfo",
    "timezone",
    "xattr.conf",
};

/* At the top of the root: links into /usr on a merged system, else folders that are mounted. */
static const char *const top_names[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};

static int make_folder(int skeleton, const char *path, mode_t mode, unsigned int owner)
{
    if (mkdirat(skeleton, path, mode) < 0 || fchmodat(skeleton, path, mode, 0) < 0)
        return -errno;
    return fchownat(skeleton, path, owner, owner, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

static int make_file(int skeleton, const char *path, const char *text)
{
    AUTO(close) int file = sys_file_open(skeleton, path, O_WRONLY | O_CREAT | O_EXCL, 0644);

    if (file < 0)
        return file;
    if (fchmod(file, 0644) < 0)
        return -errno;
    return sys_file_write_full(file, text, strlen(text));
}

static int make_resolver(int skeleton, const char *nameserver)
{
    AUTO(text) struct text text = TEXT_INIT(256);

    if (nameserver)
        text_format(&text, "nameserver %s\n", nameserver);
    if (text.overflowed)
        return -EINVAL;
    return make_file(skeleton, "etc/resolv.conf", text_string(&text));
}

static int generate(int skeleton, const struct image_host_options *options)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(folders); i++)
        r = make_folder(skeleton, folders[i].path, folders[i].mode, folders[i].owner);
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(links); i++)
        r = symlinkat(links[i].target, skeleton, links[i].path) < 0 ? -errno : 0;
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(files); i++)
        r = make_file(skeleton, files[i].path, files[i].text);
    return r < 0 ? r : make_resolver(skeleton, options->nameserver);
}

static int copy_etc(int root, int skeleton)
{
    AUTO(close) int from = sys_file_open(root, "etc", O_RDONLY | O_DIRECTORY, 0);
    AUTO(close) int to = sys_file_open(skeleton, "etc", O_RDONLY | O_DIRECTORY, 0);
    struct image_copy copy = {.root = root};
    int r = from < 0 ? from : 0;

    if (to < 0)
        return to;
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(copies); i++)
        r = image_copy_named(&copy, from, to, copies[i]);
    return r;
}

/* The same link as the host has, or an empty folder to mount on. Absent there: absent here. */
static int make_top(int root, int skeleton, const char *name)
{
    char target[64];
    ssize_t length = readlinkat(root, name, target, sizeof(target) - 1);
    struct stat status;

    if (length > 0) {
        target[length] = '\0';
        return symlinkat(target, skeleton, name) < 0 ? -errno : 0;
    }
    if (fstatat(root, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    return S_ISDIR(status.st_mode) ? make_folder(skeleton, name, 0755, 0) : 0;
}

static int fill_skeleton(int root, int skeleton, const struct image_host_options *options)
{
    int r = fchmod(skeleton, 0755) < 0 ? -errno : generate(skeleton, options);

    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(top_names); i++)
        r = make_top(root, skeleton, top_names[i]);
    if (r == 0)
        r = copy_etc(root, skeleton);
    /* All of it must be on disk before the name says that it is complete. */
    if (r == 0 && syncfs(skeleton) < 0)
        r = -errno;
    return r;
}

/* Make it under another name; whoever is first gives it the real one. */
static int build_skeleton(int skeletons, const char *name, int root,
                          const struct image_host_options *options)
{
    char unfinished[SYS_FILE_NAME_SIZE];
    AUTO(close) int skeleton = -EBADF;
    int r = sys_file_temporary_name(unfinished);

    if (r == 0 && mkdirat(skeletons, unfinished, 0700) < 0)
        r = -errno;
    if (r < 0)
        return r;
    r = skeleton = sys_file_open(skeletons, unfinished, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
    if (r >= 0)
        r = fill_skeleton(root, skeleton, options);
    if (r == 0 && renameat2(skeletons, unfinished, skeletons, name, RENAME_NOREPLACE) < 0)
        r = -errno;
    if (r < 0)
        (void) sys_tree_delete(skeletons, unfinished);
    return r == -EEXIST ? 0 : r;
}

static int open_skeleton(int skeletons, const char *name, int root,
                         const struct image_host_options *options)
{
    int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW;
    int r = sys_file_open(skeletons, name, flags, 0);

    if (r != -ENOENT)
        return r;
    r = build_skeleton(skeletons, name, root, options);
    return r < 0 ? r : sys_file_open(skeletons, name, flags, 0);
}

/* The state of the packages; without dpkg, what the system calls itself and when its programs
 * last changed. */
static int add_package_state(int root, struct sha256 *hash)
{
    static const char *const lists[] = {"var/lib/dpkg/status", "usr/lib/os-release"};
    struct stat status = {0};
    int r = -ENOENT;

    for (size_t i = 0; r == -ENOENT && i < ARRAY_COUNT(lists); i++) {
        AUTO(free) char *text = NULL;
        size_t length;

        r = sys_file_read_all(root, lists[i], STATUS_MAX, &text, &length);
        if (r == 0)
            sha256_add(hash, text, length);
        if (r == 0 && i == 0)
            return 0;
    }
    if (r == 0 && fstatat(root, "usr/bin", &status, 0) == 0)
        sha256_add(hash, &status.st_mtim, sizeof(status.st_mtim));
    return r == -ENOENT ? 0 : r;
}

static int make_digest(int root, const struct image_host_options *options,
                       char ret_digest[static IMAGE_DIGEST_SIZE])
{
    struct sha256 hash;
    const char *nameserver = options->nameserver ? options->nameserver : "";
    uint8_t digest[SHA256_SIZE];
    int r;

    sha256_init(&hash);
    sha256_add(&hash, SKELETON_VERSION, sizeof(SKELETON_VERSION));
    sha256_add(&hash, options->with_usr_local ? "l" : "-", 2);
    sha256_add(&hash, nameserver, strlen(nameserver) + 1);
    r = add_package_state(root, &hash);
    sha256_finish(&hash, digest);
    (void) hex_encode(digest, sizeof(digest), ret_digest);
    return r;
}

/* Show a folder of the host. Absent or a link: nothing to show. */
static int add_mount(struct image_view *view, int root, const char *path)
{
    int source = sys_file_open(root, path, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);

    if (source == -ENOENT || source == -ENOTDIR || source == -ELOOP)
        return 0;
    if (source < 0)
        return source;
    view->mounts[view->mount_count++] =
        (struct image_mount){.source = source, .target = path, .read_only = true};
    return 0;
}

_Static_assert(ARRAY_COUNT(top_names) + 2 <= IMAGE_MOUNTS_MAX, "all mounts fit");

static int add_mounts(struct image_view *view, int root, const struct image_host_options *options)
{
    struct stat status;
    int r = add_mount(view, root, "usr");

    /* The mount hides what the host has there, so it needs a place to be. */
    if (r == 0 && options->with_usr_local)
        r = add_mount(view, root, "usr/local");
    else if (r == 0 && fstatat(root, "usr/local", &status, AT_SYMLINK_NOFOLLOW) == 0)
        view->mounts[view->mount_count++] =
            (struct image_mount){.source = -EBADF, .inside = "var/usrlocal", .target = "usr/local"};
    for (size_t i = 0; r == 0 && i < ARRAY_COUNT(top_names); i++)
        r = add_mount(view, root, top_names[i]);
    return r;
}

static int open_skeletons(const struct image_registry *registry)
{
    if (mkdirat(registry->names.folder, SKELETONS, 0700) < 0 && errno != EEXIST)
        return -errno;
    return sys_file_open(registry->names.folder, SKELETONS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

int image_host_prepare(struct image_registry *registry, const struct image_host_options *options,
                       struct error *err)
{
    AUTO(image_view) struct image_view view = IMAGE_VIEW_INIT;
    AUTO(close) int skeletons = open_skeletons(registry), root = -EBADF;
    int r = skeletons;

    if (r >= 0)
        r = root =
            sys_file_open(AT_FDCWD, options->root ? options->root : "/", O_RDONLY | O_DIRECTORY, 0);
    if (r >= 0)
        r = make_digest(root, options, view.digest);
    if (r >= 0)
        r = view.lowers[0] = open_skeleton(skeletons, view.digest, root, options);
    view.lower_count = r >= 0;
    if (r >= 0)
        r = add_mounts(&view, root, options);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "prepare image '" IMAGE_HOST "' in '%s'",
                         registry->names.path);
    image_view_done(&registry->host);
    registry->host = image_view_take(&view);
    return 0;
}

int image_host_identify(const struct image_host_options *options,
                        char ret_digest[static IMAGE_DIGEST_SIZE], struct error *err)
{
    AUTO(close)
    int root =
        sys_file_open(AT_FDCWD, options->root ? options->root : "/", O_RDONLY | O_DIRECTORY, 0);
    int r = root < 0 ? root : make_digest(root, options, ret_digest);

    return r < 0 ? error_set(err, error_code_from_errno(r), r, "look at this machine's packages")
                 : 0;
}

int image_host_prune(struct image_registry *registry, struct error *err)
{
    int skeletons = open_skeletons(registry), r = 0;
    AUTO(closedir) DIR *entries = skeletons < 0 ? NULL : fdopendir(skeletons);
    struct dirent *entry;

    if (!entries) {
        (void) fd_close(skeletons);
        return error_set(err, ERR_INTERNAL, skeletons < 0 ? skeletons : errno, "list skeletons");
    }
    while (r == 0 && (entry = readdir(entries))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, registry->host.digest) != 0)
            r = sys_tree_delete(skeletons, entry->d_name);
    }
    return r < 0 ? error_set(err, error_code_from_errno(r), r, "delete old skeletons") : 0;
}
