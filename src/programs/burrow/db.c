/* burrow db check, burrow db rotate-keys: care of the daemon's database while no daemon runs. */
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "cli/verb/verb_client.h"
#include "programs/burrow/command.h"
#include "programs/burrow/data_folder.h"
#include "store/store_sqlite.h"
#include "sys/file/sys_file.h"

#define DATA_DEFAULT "/var/lib/burrow/daemon"
#define PATH_SIZE    4096

static const struct verb_option options[] = {
    {"data", 0, "FOLDER", "the daemon's own data (" DATA_DEFAULT ")", false},
    {NULL, 0, NULL, NULL, false},
};

static const char *data_of(const struct verb_call *call)
{
    const char *data = verb_value(call, "data");

    return data ? data : DATA_DEFAULT;
}

/* Root works on the files of another user: as that user, so that what is made is theirs. */
static int become_owner(const char *folder, struct error *err)
{
    struct stat status;

    if (stat(folder, &status) < 0)
        return error_set(err, error_code_from_errno(errno), errno, "%s", folder);
    if (geteuid() != 0 || status.st_uid == 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setresgid(status.st_gid, status.st_gid, status.st_gid) < 0 ||
        setresuid(status.st_uid, status.st_uid, status.st_uid) < 0)
        return error_set(err, ERR_FORBIDDEN, errno, "become the owner of %s", folder);
    return 0;
}

/* --- check ----------------------------------------------------------------------------------- */

static void problem_found(void *context, const char *problem)
{
    (void) context;
    (void) printf("problem: %s\n", problem);
}

/* NULL: without one, which is said. */
static struct keyring *open_ring(const char *data)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, data, O_RDONLY | O_DIRECTORY, 0);
    struct error err = ERROR_INIT;
    struct keyring *ring = NULL;

    if (folder >= 0 && faccessat(folder, DATA_FOLDER_KEYRING, F_OK, 0) == 0)
        ring = keyring_open(folder, DATA_FOLDER_KEYRING, &err);
    if (!ring)
        (void) fprintf(stderr, "burrow: whether secrets open is not checked: %s\n",
                       *err.message ? err.message : "there is no key ring");
    return ring;
}

static int db_check(const struct verb_call *call, struct error *err)
{
    AUTO(keyring) struct keyring *ring = NULL;
    struct store_sqlite_report report = {.version = 0};
    const char *data = data_of(call);
    char path[PATH_SIZE];

    (void) snprintf(path, sizeof(path), "%s/" DATA_FOLDER_DATABASE, data);
    if (become_owner(data, err) < 0)
        return -1;
    ring = open_ring(data);
    if (store_sqlite_check(call->word_count ? call->words[0] : path, ring, problem_found, NULL,
                           &report, err) < 0)
        return -1;
    (void) printf("schema %d, %zu problems, %zu secrets, %zu of them sealed with an older key\n",
                  report.version, report.problems, report.secrets, report.old_secrets);
    return report.problems ? VERB_STATUS_FAILURE : 0;
}

static int run_check(struct verb_call *call)
{
    struct error err = ERROR_INIT;
    int status = db_check(call, &err);

    return status < 0 ? verb_complain(VERB_STATUS_FAILURE, &err) : status;
}

/* --- rotate-keys ----------------------------------------------------------------------------- */

struct rotation {
    struct loop loop;
    struct store *store;
    struct error *err;
    int result;
};

static void closed(void *context, const struct error *failure, const struct store_receipt *receipt)
{
    struct rotation *rotation = context;

    (void) receipt;
    if (failure && rotation->result == 0) {
        *rotation->err = *failure;
        rotation->result = -1;
    }
}

static void resealed(void *context, const struct error *failure,
                     const struct store_receipt *receipt)
{
    struct rotation *rotation = context;

    (void) receipt;
    if (failure) {
        *rotation->err = *failure;
        rotation->result = -1;
    }
    store_close(TAKE_PTR(rotation->store), closed, rotation);
}

static int reseal(const char *data, const struct keyring *ring, struct error *err)
{
    struct rotation rotation = {.err = err};
    struct store_sqlite_options store = {.loop = &rotation.loop, .keyring = ring};
    char path[PATH_SIZE];
    int r = loop_init(&rotation.loop, NULL);

    if (r < 0)
        return error_set(err, ERR_INTERNAL, r, "start the loop");
    (void) snprintf(path, sizeof(path), "%s/" DATA_FOLDER_DATABASE, data);
    store.path = path;
    rotation.store = store_sqlite_new(&store, err);
    if (rotation.store)
        store_reseal(rotation.store, resealed, &rotation);
    else
        rotation.result = -1;
    loop_run(&rotation.loop);
    loop_done(&rotation.loop);
    return rotation.result;
}

/* The folder is locked like a daemon's: one that runs would go on with the old key. */
static int rotate(const struct verb_call *call, struct error *err)
{
    AUTO(data_folder) struct data_folder folder = DATA_FOLDER_INIT;
    AUTO(keyring) struct keyring *ring = NULL;
    const char *data = data_of(call);

    if (become_owner(data, err) < 0 || data_folder_open(&folder, data, err) < 0)
        return -1;
    ring = keyring_open(folder.fd, DATA_FOLDER_KEYRING, err);
    if (!ring || keyring_rotate(ring, folder.fd, DATA_FOLDER_KEYRING, err) < 0 ||
        reseal(data, ring, err) < 0)
        return -1;
    (void) puts("all secrets are sealed with a new key; older keys stay in the ring for backups");
    return 0;
}

static int run_rotate(struct verb_call *call)
{
    struct error err = ERROR_INIT;

    return rotate(call, &err) < 0 ? verb_complain(VERB_STATUS_FAILURE, &err) : 0;
}

const struct verb verb_db_check = {
    .name = "db check",
    .summary = "Look at every page of the daemon's database",
    .arguments = "[FILE]",
    .options = options,
    .details = "FILE is a copy of `burrow db backup`; without it the database itself, while no "
               "daemon runs.\nThe exit status is 1 when something is wrong.",
    .words_max = 1,
    .is_local = true,
    .run = run_check,
};

const struct verb verb_db_rotate_keys = {
    .name = "db rotate-keys",
    .summary = "Seal all secrets with a new key, while no daemon runs",
    .arguments = "",
    .options = options,
    .is_local = true,
    .run = run_rotate,
};
