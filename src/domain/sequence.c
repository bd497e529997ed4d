#include "domain/sequence.h"

#include "base/crash_point.h"
#include "base/trace.h"
#include "domain/event/event.h"

/* A failure of the step at hand ends all of it. */
static void sequence_fail(struct sequence *sequence, const struct error *failure)
{
    struct error err = *failure; /* it may be part of what `end` frees */

    TRACE_WITH("sequence.failed", sequence->step->text);
    if (!sequence->step->says_itself)
        error_prefix(&err, "%s", sequence->step->text);
    sequence->table->end(sequence->context, &err);
}

/* The next step that is not left out, from the one at hand on. */
static void sequence_go_on(struct sequence *sequence)
{
    struct error err = ERROR_INIT;

    TRACE_FOR(NULL, sequence->about);
    while (sequence->step->text && sequence->step->when && !sequence->step->when(sequence->context))
        sequence->step++;
    if (!sequence->step->text)
        sequence->table->end(sequence->context, NULL);
    else if (!sequence->step->also_closing && !domain_is_open(sequence->domain, &err))
        sequence_fail(sequence, &err);
    else {
        TRACE_WITH(sequence->table->name, sequence->step->text);
        sequence->step->start(sequence->context);
    }
}

void sequence_begin(struct sequence *sequence, struct domain *domain,
                    const struct sequence_table *table, const struct id *about, void *context)
{
    *sequence = (struct sequence){
        .domain = domain, .table = table, .step = table->steps, .about = about, .context = context};
    sequence_go_on(sequence);
}

void sequence_next(struct sequence *sequence, const struct error *failure)
{
    const struct sequence_step *step = sequence->step;

    if (failure && step->on_failure == SEQUENCE_ENDS) {
        sequence_fail(sequence, failure);
        return;
    }
    if (failure && step->on_failure == SEQUENCE_WARNS)
        LOG_WARNING(sequence->domain->options.log, "a step failed, and it goes on without",
                    log_text("sequence", sequence->table->name), log_text("step", step->text),
                    log_text("of", sequence->about->text), log_text("error", failure->message));
    if (!failure && step->point)
        CRASH_POINT(step->point);
    sequence->step++;
    sequence_go_on(sequence);
}

bool sequence_is_at(const struct sequence *sequence, void (*start)(void *context))
{
    return sequence->step->start == start;
}

/* --- as callbacks ---------------------------------------------------------------------------- */

void sequence_done(void *sequence, const struct error *failure)
{
    sequence_next(sequence, failure);
}

void sequence_kept(void *sequence, const struct error *failure, const struct store_receipt *receipt)
{
    struct sequence *kept = sequence;

    if (!failure)
        event_kept(kept->domain, receipt);
    sequence_next(kept, failure);
}

void sequence_asked(void *sequence, const struct error *failure, const struct inside_answer *answer)
{
    (void) answer;
    sequence_next(sequence, failure);
}

void sequence_hooked(void *sequence)
{
    sequence_next(sequence, NULL);
}

/* --- as text --------------------------------------------------------------------------------- */

void sequence_print(const struct sequence_table *table, struct text *text)
{
    text_format(text, "%s:\n", table->name);
    for (const struct sequence_step *step = table->steps; step->text; step++)
        text_format(text, "    %s%s%s\n", step->text, step->when ? ", if need be" : "",
                    step->on_failure == SEQUENCE_ENDS ? "" : ", if it can");
}
