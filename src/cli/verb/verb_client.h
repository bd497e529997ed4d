/* What the verbs that ask the daemon have in common: a client that is opened and closed around the
 * work, and one way each to print an answer and a complaint. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "cli/client/client.h"
#include "cli/grid.h"
#include "cli/verb/verb.h"

#define VERB_STATUS_FAILURE 1
#define VERB_STATUS_USAGE   2
/* Of verbs that pass on a command's status: what failed was us. */
#define VERB_STATUS_OURS 125

/* Open a client as --url and --key say, do the work, close it. Returns the exit status; an error is
 * printed and becomes `failure_status`. For verbs with a status of their own for that; the others
 * only name their work. */
int verb_with_client(struct verb_call *call, verb_work *work, int failure_status);

/* Print "burrow: message" on stderr; returns `status`. What others wrote is made printable. */
int verb_complain(int status, const struct error *err);

/* A text of an answer; NULL: there is none. Borrowed. */
const char *verb_field(json_t *object, const char *key);

/* A number of it; 0: there is none. */
long long verb_number(json_t *object, const char *key);

/* Set a field when there is a value. */
void verb_set_text(json_t *object, const char *key, const char *text);

/* For verbs that copy the disk of a sandbox: it stands still for that unless the option is there.
 */
#define VERB_FREEZE_OPTION                                                                         \
    {                                                                                              \
        "no-freeze", 0, NULL, "let it go on meanwhile: its files may be of different moments",     \
            false                                                                                  \
    }
void verb_set_freeze(const struct verb_call *call, json_t *object);

/* Print JSON on stdout: indented for a terminal, else on one line. */
void verb_print_json(json_t *value);

/* Print an answer: as JSON when --json says so, else a line with this field, if it is there. Returns
 * 0, for the verb to return. */
int verb_print_field(const struct verb_call *call, json_t *answer, const char *field);

/* A column of a table of JSON objects: its title, the field it shows, and how. */
typedef void verb_cell(struct grid *grid, json_t *object, const char *field);
struct verb_column {
    const char *title; /* NULL: the end */
    const char *field;
    verb_cell *put;
};
#define VERB_COLUMNS_END                                                                           \
    {                                                                                              \
        NULL, NULL, NULL                                                                           \
    }

verb_cell verb_put_text, verb_put_number, verb_put_size, verb_put_yes_no;
verb_cell verb_put_age; /* of a time: how long ago it was */

/* Print a list of objects: as JSON, or as a table. Returns 0. */
int verb_print_list(const struct verb_call *call, json_t *list, const struct verb_column *columns);

/* Print a line per object: its field, or where that is missing, its id. Returns 0. */
int verb_print_lines(json_t *list, const char *field);

/* Print a text on stdout; control characters that others wrote become '?' (tabs and newlines
 * stay). */
void verb_print(const struct text *text);

/* The log of events, of all or of the sandbox that the first word names, as the options `follow` and
 * `after` of the call say; only of one type, or (NULL) of all. */
int verb_print_events(struct verb_call *call, struct client *client, const char *type,
                      struct error *err);

/* Delete what the words name, of one kind ("snapshots"), and print the names. The
 * exit status: what failed is complained about, and the others go all the same. */
int verb_remove_objects(struct verb_call *call, struct client *client, const char *kind);
