/* A sequence: what has to happen one after the other, as a table that reads like its description.
 *
 *     static const struct sequence_step steps[] = {
 *         {"copy its disk", copy_disk, .when = has_snapshots},
 *         {"put it into the object store", store_disk, .point = "offload.stored"},
 *         {"keep that it is there", keep, .point = "offload.kept"},
 *         {.text = NULL},
 *     };
 *     static const struct sequence_table offload = {"disk.offload", steps, offload_end};
 *
 *     sequence_begin(&mine->sequence, domain, &offload, &sandbox->id, mine);
 *
 * A step starts something and returns; when that is over, its callback calls sequence_next. Most
 * need no callback of their own: sequence_done, sequence_kept, sequence_asked and sequence_hooked
 * have the shapes that providers, stores, agents and hooks ask for.
 *
 * A failure ends the sequence. `end` is called once, whatever happens: with NULL behind the last
 * step, or with the failure, whose message begins with the text of its step. It may free the
 * sequence. A step is not started while the domain closes, which is a failure too.
 *
 * A step may end from inside its start. One thread. */
#pragma once

#include "base/text.h"
#include "domain/domain_internal.h"
#include "domain/inside_call.h"

enum sequence_failure {
    SEQUENCE_ENDS,   /* the default */
    SEQUENCE_WARNS,  /* said in the log, then it goes on */
    SEQUENCE_GOES_ON /* of no interest: it was asked for politely */
};

struct sequence_step {
    const char *text; /* what it does, like a command: "fetch its layers" */
    void (*start)(void *context);
    bool (*when)(const void *context); /* false: it is left out; NULL: never left out */
    const char *point; /* crash and trace point once it has succeeded; may be NULL */
    enum sequence_failure on_failure;
    bool also_closing; /* it finishes what cannot be left as it is */
    bool says_itself;  /* a sequence of its own, whose failures say what it does */
};

struct sequence_table {
    const char *name; /* "noun.verb": each step is a trace point of that name, with its text */
    const struct sequence_step *steps; /* a text of NULL behind the last */
    void (*end)(void *context, const struct error *failure);
};

/* Lives in the caller's struct. Its members are its own. */
struct sequence {
    struct domain *domain;
    const struct sequence_table *table;
    const struct sequence_step *step;
    const struct id *about; /* borrowed: what logs and traces call it by */
    void *context;
};

void sequence_begin(struct sequence *sequence, struct domain *domain,
                    const struct sequence_table *table, const struct id *about, void *context);

/* The step that was started is over. */
void sequence_next(struct sequence *sequence, const struct error *failure);

/* Whether it has got no further than this step: for an `end` that undoes by how far it came. */
bool sequence_is_at(const struct sequence *sequence, void (*start)(void *context));

/* sequence_next as a callback whose context is the sequence. sequence_kept is for commits, and
 * tells followers of their events. */
void sequence_done(void *sequence, const struct error *failure);
void sequence_kept(void *sequence, const struct error *failure,
                   const struct store_receipt *receipt);
void sequence_asked(void *sequence, const struct error *failure,
                    const struct inside_answer *answer);
void sequence_hooked(void *sequence);

/* Its name and steps, a line each. */
void sequence_print(const struct sequence_table *table, struct text *text);
