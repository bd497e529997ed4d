/* The verbs of the command line, as data: one table makes parsing, --help, completion and man page.
 *
 *     static const struct verb_option options[] = {
 *         {"memory", 'm', "SIZE", "memory of all processes together"},
 *         {"quiet", 'q', NULL, "print nothing but ids"},
 *         {NULL},
 *     };
 *     const struct verb verb_create = {"create", "Make a sandbox", "[NAME]", options, ...};
 *
 * Options may stand anywhere before "--"; "--name=value", "--name value", "-n value", "-nvalue" and
 * joined letters ("-qf") all work. A verb that takes a command ends its options at the first word
 * that is none, when `stops_at_word` says how many words come before it. Pure but for verb_main. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

#define VERB_OPTIONS_MAX 48 /* of one verb, the common ones included */
#define VERB_REPEATS_MAX 64 /* of one option */

struct verb_option {
    const char *name;  /* NULL: the end of the list */
    char letter;       /* 0: none */
    const char *value; /* what to write in its place, for the help; NULL: it takes none */
    const char *help;
    bool is_repeatable; /* each counts; else the last does */
};

struct client;
struct verb_call;

/* What a verb does with a client. Returns the exit status, or -1 with an error that nobody has
 * printed yet. */
typedef int verb_work(struct verb_call *call, struct client *client, struct error *err);

struct verb {
    const char *name;                  /* "create", "key create" */
    const char *summary;               /* one line */
    const char *arguments;             /* "NAME [-- COMMAND [ARGUMENT...]]" */
    const struct verb_option *options; /* NULL: none of its own */
    const char *details;  /* a paragraph or more for --help and the man page; NULL: none */
    const char *examples; /* lines; NULL: none */
    size_t words_min, words_max;
    size_t stops_at_word; /* behind so many words everything is the command; 0: never */
    bool takes_sandboxes; /* its words are names of sandboxes: for completion */
    bool is_local;        /* no client of the API: knows no --url, --key, --json */
    /* One of these. All return the exit status. */
    verb_work *work;                         /* with a client, opened as --url and --key say */
    int (*run)(struct verb_call *call);      /* without */
    int (*run_plain)(int argc, char **argv); /* reads its words by itself */
};

struct verb_call {
    const struct verb *verb;
    const char *values[VERB_OPTIONS_MAX][VERB_REPEATS_MAX];
    size_t counts[VERB_OPTIONS_MAX]; /* how often an option was given */
    const char *const *words;
    size_t word_count;
    const char *const *command; /* what stands behind "--"; NULL at the end */
    size_t command_count;
    bool wants_help;
    const char **storage; /* owned: words and command point into it */
};

/* All verbs of the program, NULL at the end. */
struct verb_table {
    const char *program;
    const char *summary;
    const struct verb *const *verbs;
};

/* The verb that the first words name; `*ret_used` of them. NULL with ERR_INVALID and the nearest
 * one there is. A first half ("key" of "key create") lists the others. */
const struct verb *verb_find(const struct verb_table *table, int argc, char *const *argv,
                             int *ret_used, struct error *err);

/* Read the words behind a verb. Returns 0, or -1 with ERR_INVALID: what is wrong, and what is
 * right. */
int verb_read(const struct verb *verb, int argc, char *const *argv, struct verb_call *ret_call,
              struct error *err);
void verb_call_done(struct verb_call *call);

/* The value of an option (the last one), or NULL; whether a flag was given. The name must be one of
 * the verb's or a common one. */
const char *verb_value(const struct verb_call *call, const char *name);
bool verb_flag(const struct verb_call *call, const char *name);
/* All values of a repeatable one. */
const char *const *verb_values(const struct verb_call *call, const char *name, size_t *ret_count);

/* Documents, all from the table. */
void verb_write_usage(const struct verb_table *table, struct text *out);
void verb_write_help(const struct verb_table *table, const struct verb *verb, struct text *out);
void verb_write_bash(const struct verb_table *table, struct text *out);
void verb_write_zsh(const struct verb_table *table, struct text *out);
void verb_write_man(const struct verb_table *table, struct text *out);

/* The whole program: find the verb, read its words, run it or print its help. `argv` are the words
 * behind the program's name. Returns the exit status; 2 for wrong use, which is explained on
 * stderr.
 */
int verb_main(const struct verb_table *table, int argc, char **argv);

/* Options that every client of the API has: url, key, json, help. */
extern const struct verb_option verb_common_options[];
/* And those that need no API: help. */
extern const struct verb_option verb_local_options[];
