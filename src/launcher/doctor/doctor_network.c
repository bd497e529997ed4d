/* The doctor's look at the network, and at the programs beside us. */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/doctor/doctor_internal.h"
#include "launcher/doctor/router_doctor.h"
#include "launcher/network/nft.h"
#include "launcher/network/router.h"
#include "sys/file/sys_file.h"

#define NETWORK  "network"
#define PROGRAMS "programs"

/* More than the headers of any program of ours. */
#define HEADERS_MAX 64

/* --- network -------------------------------------------------------------------------------- */

static bool look_at_nftables(struct doctor_report *report)
{
    AUTO(nft) struct nft nft = NFT_INIT;
    int r = nft_open(&nft);

    if (r == 0)
        doctor_add(report, NETWORK, DOCTOR_ON, "nftables", NULL, "%s", "");
    else
        doctor_add(report, NETWORK, DOCTOR_WARNING, "nftables",
                   "use a kernel with CONFIG_NF_TABLES_INET, and CAP_NET_ADMIN",
                   "sandboxes can have no network but `none`: %s", strerrordesc_np(-r));
    return r == 0;
}

static void look_at_forwarding(const struct doctor_options *options, struct doctor_report *report)
{
    AUTO(free) char *value = doctor_read(options->proc, "sys/net/ipv4/ip_forward");

    if (value[0] == '1')
        doctor_add(report, NETWORK, DOCTOR_ON, "net.ipv4.ip_forward", NULL, "%s", "");
    else
        doctor_add(report, NETWORK, DOCTOR_OFF, "net.ipv4.ip_forward", NULL,
                   "the launcher switches it on when it makes the router");
}

/* One line per finding, "what is wrong; what to do". */
static void look_at_firewalls(struct doctor_report *report)
{
    const struct router_settings settings = ROUTER_SETTINGS_DEFAULT;
    AUTO(text) struct text findings = TEXT_INIT(ROUTER_DOCTOR_MAX);
    size_t before = report->count;

    router_doctor(settings.name, settings.resolver_file, settings.resolver_fallback, &findings);
    for (const char *line = text_string(&findings); *line;) {
        int length = (int) strcspn(line, "\n");
        const char *semicolon = memmem(line, (size_t) length, "; ", 2);
        int what = semicolon ? (int) (semicolon - line) : length;
        char remedy[DOCTOR_TEXT_SIZE] = "";

        if (semicolon)
            (void) snprintf(remedy, sizeof(remedy), "%.*s", length - what - 2, semicolon + 2);
        doctor_add(report, NETWORK, DOCTOR_WARNING, "the host's network", remedy, "%.*s", what,
                   line);
        line += length + (line[length] == '\n');
    }
    if (report->count == before)
        doctor_add(report, NETWORK, DOCTOR_ON, "the host's network", NULL,
                   "no firewall drops what is forwarded, names can be resolved");
}

void doctor_network(const struct doctor_options *options, struct doctor_report *report)
{
    bool works = look_at_nftables(report);

    look_at_forwarding(options, report);
    if (works)
        look_at_firewalls(report);
}

/* --- programs ------------------------------------------------------------------------------- */

/* Whether the file is an ELF program that needs no other file to run: 1, 0, or -errno. */
static int is_static(int file)
{
    Elf64_Ehdr head;
    ssize_t got = sys_file_pread_full(file, &head, sizeof(head), 0);

    if (got < 0)
        return (int) got;
    if (got != sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > HEADERS_MAX)
        return -ENOEXEC;
    for (unsigned int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;

        got = sys_file_pread_full(file, &part, sizeof(part),
                                  (off_t) (head.e_phoff + i * sizeof(part)));
        if (got != sizeof(part))
            return -ENOEXEC;
        if (part.p_type == PT_INTERP)
            return 0;
    }
    return 1;
}

static void look_at_program(const struct doctor_options *options, const char *name,
                            struct doctor_report *report)
{
    char path[4096];
    AUTO(close) int file = -EBADF;
    int r;

    (void) snprintf(path, sizeof(path), "%s/%s", options->programs, name);
    file = sys_file_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0);
    r = file < 0 ? file : is_static(file);
    if (r == 1)
        doctor_add(report, PROGRAMS, DOCTOR_ON, name, NULL, "%s", path);
    else if (r == 0)
        doctor_add(report, PROGRAMS, DOCTOR_WARNING, name,
                   "use one that was built without "
                   "sanitizers",
                   "%s is not static: it runs only where its libraries are in the image", path);
    else
        doctor_add(report, PROGRAMS, DOCTOR_MISSING, name,
                   "build and install all programs of burrow in one folder", "%s: %s", path,
                   strerrordesc_np(-r));
}

void doctor_programs(const struct doctor_options *options, struct doctor_report *report)
{
    look_at_program(options, "burrow-agent", report);
    look_at_program(options, "burrow-keeper", report);
}
