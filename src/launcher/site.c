#include "launcher/site.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "launcher/image/image_host.h"
#include "launcher/network/network_namespace.h"
#include "launcher/network/router_rules.h"
#include "launcher/wall/capability.h"
#include "sys/file/sys_file.h"
#include "sys/file/sys_memfd.h"
#include "sys/process/sys_namespace.h"

#define PROGRAM_MAX ((size_t) 64 << 20)

/* --- folders --------------------------------------------------------------------------------- */

int site_folder(const char *path, struct error *err)
{
    struct stat status;
    int r;

    if (*path != '/')
        return error_set(err, ERR_INVALID, 0, "folder '%s' must be an absolute path", path);
    r = sys_file_make_directories(AT_FDCWD, path, 0755);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "make folder '%s'", path);
    if (stat(path, &status) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "look at folder '%s'", path);
    if (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)))
        return error_set(err, ERR_FORBIDDEN, 0,
                         "folder '%s' must belong to root and be writable by root alone: the "
                         "daemon could exchange what is in it (chown root, chmod 755)",
                         path);
    return 0;
}

static int join(char *ret_path, size_t size, const char *folder, const char *name,
                struct error *err)
{
    int length = snprintf(ret_path, size, "%s/%s", folder, name);

    if (length < 0 || (size_t) length >= size)
        return error_set(err, ERR_INVALID, 0, "the path '%s' is too long", folder);
    return 0;
}

/* --- programs -------------------------------------------------------------------------------- */

static int own_folder(char ret_path[static PATH_MAX], struct error *err)
{
    ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
    char *slash;

    if (length < 0)
        return error_set(err, ERR_INTERNAL, errno, "find where this program is");
    ret_path[length] = '\0';
    slash = strrchr(ret_path, '/');
    if (slash)
        *slash = '\0';
    return 0;
}

int site_load_program(const char *folder, const char *name, int *ret_image, struct error *err)
{
    AUTO(free) char *bytes = NULL;
    AUTO(close) int image = -EBADF;
    char path[PATH_MAX], beside[PATH_MAX];
    size_t length = 0;
    int r;

    if (!folder && own_folder(beside, err) < 0)
        return -1;
    folder = folder ? folder : beside;
    if (join(path, sizeof(path), folder, name, err) < 0)
        return -1;
    r = sys_file_read_all(AT_FDCWD, path, PROGRAM_MAX, &bytes, &length);
    if (r < 0)
        return error_set(err, error_code_from_errno(r), r, "read the program '%s'", path);
    image = sys_memfd_from_bytes(name, SYS_MEMFD_PROGRAM, bytes, length);
    r = image < 0 ? image : process_limit_hide_image(image);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "seal the program '%s'", path);
    *ret_image = TAKE_FD(image);
    return 0;
}

static int load_programs(struct site *site, const char *given, struct error *err)
{
    if (site_load_program(given, "burrow-agent", &site->host.agent, err) < 0)
        return -1;
    return site_load_program(given, "burrow-keeper", &site->keeper, err);
}

/* --- parts ----------------------------------------------------------------------------------- */

int site_open_ids(const char *run, struct id_range_table **ret_ids, struct error *err)
{
    struct id_range_options options = {.folder = SITE_IDS_FOLDER, .user = run};
    AUTO(id_range_table) struct id_range_table *ids = NULL;
    char earlier[PATH_MAX];

    if (site_folder(run, err) < 0 || site_folder(SITE_RUN_DEFAULT, err) < 0 ||
        join(earlier, sizeof(earlier), run, "ids", err) < 0 ||
        id_range_table_open(&options, &ids, err) < 0)
        return -1;
    /* Launchers of earlier versions had a table in each run folder. */
    if (strcmp(earlier, SITE_IDS_FOLDER) != 0 && id_range_import(ids, earlier, err) < 0)
        return -1;
    *ret_ids = TAKE_PTR(ids);
    return 0;
}

static int open_disks(struct site *site, const struct site_options *options, struct error *err)
{
    struct disk_pool_options pool = {.size = options->pool_size};
    struct cgroup_host_options groups = {.name = options->cgroup, .parent = options->cgroup_parent};
    char path[PATH_MAX];

    if (site_folder(options->data, err) < 0 || site_folder(options->run, err) < 0)
        return -1;
    if (join(path, sizeof(path), options->data, "pool", err) < 0 ||
        disk_pool_open(path, &pool, &site->host.pool, err) < 0)
        return -1;
    if (site_open_ids(options->run, &site->host.ids, err) < 0)
        return -1;
    if (join(site->network_folder, sizeof(site->network_folder), options->run, "network", err) < 0)
        return -1;
    if (strlen(options->network) >= sizeof(site->network_name))
        return error_set(err, ERR_INVALID, 0, "the network's name '%s' is too long",
                         options->network);
    (void) snprintf(site->network_name, sizeof(site->network_name), "%s", options->network);
    if (cgroup_host_open(&groups, &site->cgroups, err) < 0)
        return -1;
    site->host.cgroups = site->cgroups;
    site->home = sys_namespace_open(0, "net");
    site->host.home = site->home;
    site->host.network_ahead = &site->network_ahead;
    return site->home < 0 ? error_set(err, ERR_INTERNAL, site->home, "open our network namespace")
                          : 0;
}

static int open_images(struct site *site, const struct site_options *options, struct error *err)
{
    char path[PATH_MAX], resolver[INET_ADDRSTRLEN];
    struct in_addr address = router_rules_address(0);
    struct image_host_options image = {
        .nameserver = inet_ntop(AF_INET, &address, resolver, sizeof(resolver))};

    if (join(path, sizeof(path), options->data, "images", err) < 0 ||
        image_registry_open(path, &site->host.images, err) < 0 ||
        image_host_prepare(site->host.images, &image, err) < 0)
        return -1;
    return bind_registry_open(options->data, options->run, &site->binds, err);
}

static int open_walls(struct site *site, struct error *err)
{
    int r = seccomp_filter_init(&site->filter, SECCOMP_WALLS_ALL);

    if (r == 0)
        r = process_limits_plan(&site->limits, 0);
    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "prepare the walls");
    site->host.filter = &site->filter;
    site->host.limits = &site->limits;
    site->host.capabilities = capability_kept();
    return 0;
}

int site_open(struct site *site, const struct site_options *options, struct error *err)
{
    *site = (struct site){.host.agent = -EBADF,
                          .keeper = -EBADF,
                          .home = -EBADF,
                          .network_ahead = -EBADF,
                          .host_mounts = options->host};
    if (open_disks(site, options, err) == 0 &&
        (options->only_disks ||
         (open_images(site, options, err) == 0 && open_walls(site, err) == 0 &&
          load_programs(site, options->programs, err) == 0)))
        return 0;
    site_close(site);
    return -1;
}

void site_close(struct site *site)
{
    router_free(site->router);
    bind_registry_free(site->binds);
    image_registry_free(site->host.images);
    id_range_table_free(site->host.ids);
    cgroup_host_free(site->cgroups);
    disk_pool_free(site->host.pool);
    site->host.agent = fd_close(site->host.agent);
    site->keeper = fd_close(site->keeper);
    site->network_ahead = fd_close(site->network_ahead);
    site->home = fd_close(site->home);
}

void site_make_network_ahead(struct site *site)
{
    if (site->network_ahead < 0)
        (void) network_namespace_make(site->home, &site->network_ahead);
}

int site_router(struct site *site, struct router **ret_router, struct error *err)
{
    struct router_settings settings = ROUTER_SETTINGS_DEFAULT;

    settings.name = site->network_name;
    settings.state_folder = site->network_folder;
    settings.host = site->host_mounts;
    if (!site->router && router_open(&settings, &site->router, err) < 0)
        return -1;
    *ret_router = site->router;
    return 0;
}
