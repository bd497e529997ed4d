/* A drill: one run of `burrow attack`, attacks on a running Burrow by users that it makes for that.
 *
 * It is done by two processes. One makes the attacks and tells what came of each, a line of JSON
 * into a pipe; it may be ended at any moment. The other (drill_run.c) prints, and takes away all
 * that was made, whatever became of the first: everything belongs to users whose names begin with
 * the drill's mark.
 *
 * Groups are tables: each row is an attack with its name, and a function that makes it and tells.
 * Attacks are bounded, in number, bytes and time, so that they do no harm where they succeed. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/attack/drill_talk.h"
#include "cli/client/client.h"

#define DRILL_NAME_SIZE 64
#define DRILL_KEY_SIZE  128
#define DRILL_PREFIX    "burrow-attack-" /* of the names of users that drills make */

/* Values of the fields in results, and of nothing else. */
enum drill_verdict {
    DRILL_HELD,    /* the attack was refused, or did not do what it was for */
    DRILL_BROKEN,  /* it succeeded */
    DRILL_UNTRIED, /* this Burrow, or the place where the drill runs, has not what it needs */
};

struct drill_user {
    char name[DRILL_NAME_SIZE];
    char id[DRILL_NAME_SIZE];
    char key[DRILL_KEY_SIZE];
};

struct drill_options {
    const char *url, *key;
    const char *const *groups; /* words */
    size_t group_count;
    const char *const *only; /* names */
    size_t only_count;
    bool is_json;
};

struct drill {
    const struct drill_options *options;
    struct client client; /* with the administrator's key */
    char mark[DRILL_NAME_SIZE];
    int results; /* descriptor of the pipe */
    unsigned int serial;
    void *world; /* of the group that is being made: its own */
};

struct drill_row;

/* One group. */
struct drill_group {
    const char *name, *summary;
    const struct drill_row *rows; /* of a table; ends with a NULL name. NULL: see `list` */
    /* For attacks that are in no table: print their names; is there one of that name? */
    void (*list)(void);
    bool (*knows)(const char *name);
    /* Make those attacks that are wanted. -1 with an error when it cannot be done at all. */
    int (*make)(struct drill *drill, const struct drill_group *group, struct error *err);
};

struct drill_row {
    const char *name, *what;
    /* Of groups whose attacks are functions: make it and tell. -1 as above. */
    int (*make)(struct drill *drill, const struct drill_row *row, struct error *err);
};

extern const struct drill_group drill_escape, drill_tenancy, drill_door, drill_shares;

/* Whether an attack of that name is wanted. */
bool drill_wants(const struct drill *drill, const char *name);

/* Whether the daemon is on this host: its URL says so. */
bool drill_is_here(const struct drill *drill);

/* One attack is over. */
void drill_tell(struct drill *drill, const char *group, const char *name,
                enum drill_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The same with figures for --json, which are taken over; NULL: none. */
void drill_tell_figures(struct drill *drill, const char *group, const char *name,
                        enum drill_verdict verdict, json_t *figures, const char *told);

/* Every row's function, in order. */
int drill_make_rows(struct drill *drill, const struct drill_group *group, struct error *err);

/* --- users and what is theirs ------------------------------------------------------------------ */

/* A user with a key of the scope `write`; the quotas are the daemon's own. */
int drill_user_make(struct drill *drill, const char *name, struct drill_user *ret_user,
                    struct error *err);

/* Away with them, and all of theirs. */
int drill_user_remove(struct client *client, const char *id, struct error *err);

/* A small sandbox of a user; its id goes to `ret_id`. */
int drill_box_make(struct drill *drill, const struct drill_user *user, const char *name,
                   char ret_id[static DRILL_NAME_SIZE], struct error *err);

/* Ask with a key (NULL: the administrator's) and insist on success. The answer is the caller's; an
 * empty one is an empty object. NULL with an error. */
json_t *drill_want(struct drill *drill, const char *key, const char *method, const char *path,
                   const char *body, struct error *err);

/* A text of an answer copied out; -1 with an error when it is not there. */
int drill_copy_field(json_t *answer, const char *field, char *ret, size_t size, struct error *err);

/* Take away all users of drills whose names begin with `mark`. Returns how many there were, or -1 with
 * the first error, having tried all. */
int drill_clean(struct client *client, const char *mark, struct error *err);

/* --- the whole of it --------------------------------------------------------------------------- */

#define DRILL_STATUS_HELD   0
#define DRILL_STATUS_BROKEN 1 /* something is not held */
#define DRILL_STATUS_FAILED 3 /* not all could be done, or taken away */

/* Run it, print, and take away what it made. The exit status: one of the above, or 130 when it was
 * stopped. */
int drill_run(const struct drill_options *options);

/* Take away what earlier drills left that were killed. The exit status. */
int drill_run_clean(const struct drill_options *options);

/* That there is each of the attacks that are wanted by name: 0, or -1 with ERR_INVALID. */
int drill_check_names(const struct drill_options *options, struct error *err);

/* Print names and what they are. */
void drill_list(const struct drill_options *options);
