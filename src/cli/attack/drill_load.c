#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli/attack/drill_assault.h"

#define NICE_LOWEST   19
#define HEADER_SIZE   64
#define BEFORE_MS     15000
#define SETTLE_MS     300
#define OPENING_MS    10000
#define TEXT_MAX      ((size_t) 4 * 1024 * 1024)
#define FIRST_REFUSAL 400
#define QUOTA_STATUS  429 /* one's own is used up; 503 is that of all */
#define NS_PER_MS     UINT64_C(1000000)

/* One of those that are under way. */
struct load_slot {
    struct drill_talk talk;
    unsigned int number;
    bool is_started, is_second; /* it is what comes then */
};

struct load_run {
    const struct drill_assault *assault;
    const struct drill_step *step;
    struct drill_load *load;
    struct client *client;
    const char *fill;
    struct load_slot *slots; /* owned */
    unsigned int made;
};

/* --- requests -------------------------------------------------------------------------------- */

static void load_fill(const struct load_run *run, const struct load_slot *slot, const char *text,
                      struct text *out)
{
    size_t index = run->assault->boxes ? slot->number % run->assault->boxes : 0;

    for (const char *at = text; *at;) {
        if (strncmp(at, "{box}", 5) == 0) {
            text_format(out, CLIENT_PREFIX "/sandboxes/%s", run->load->boxes[index]);
            at += 5;
        } else if (strncmp(at, "{n}", 3) == 0) {
            text_format(out, "%u", slot->number);
            at += 3;
        } else if (strncmp(at, "{fill}", 6) == 0) {
            text_append(out, run->fill);
            at += 6;
        } else {
            text_append_char(out, *at++);
        }
    }
}

static void slot_start(struct load_run *run, struct load_slot *slot)
{
    const struct drill_step *step = run->step;
    AUTO(text) struct text path = TEXT_INIT(TEXT_MAX), body = TEXT_INIT(TEXT_MAX);
    const char *body_text = slot->is_second ? step->then.body : step->body;
    char number[HEADER_SIZE];
    struct drill_call call = {
        .method = slot->is_second ? step->then.method : step->method,
        .upgrade = step->upgrade,
        .forgets = true,
        .body_promised = step->promised,
    };

    load_fill(run, slot, slot->is_second ? step->then.path : step->path, &path);
    call.path = text_string(&path);
    if (body_text) {
        load_fill(run, slot, body_text, &body);
        call.body = text_string(&body);
        call.body_length = body.length;
    }
    if (step->header && !slot->is_second) {
        (void) snprintf(number, sizeof(number), "drill-%u", slot->number);
        call.headers[0] = step->header;
        call.headers[1] = number;
    }
    slot->talk = (struct drill_talk){.call = &call};
    slot->is_started = true;
    drill_talk_start(&slot->talk, run->client);
}

/* A message begins with the name of what there is no more of: "templates: 256 of at most 256 ...". */
static bool refusal_names(const char *body, const char *limit)
{
    char named[HEADER_SIZE];

    (void) snprintf(named, sizeof(named), strchr(limit, ' ') ? "%s" : "\"%s: ", limit);
    return strstr(body, named) != NULL;
}

static void slot_count(struct load_run *run, struct load_slot *slot)
{
    struct drill_counts *counts = run->load->counts;
    const char *limit = run->assault->limit;

    if (slot->talk.status == 0)
        counts->lost++;
    else if (slot->talk.status < FIRST_REFUSAL)
        counts->good++;
    else
        counts->refused++;
    if (limit && slot->talk.status == QUOTA_STATUS &&
        refusal_names(text_string(&slot->talk.body), limit))
        counts->limit_met++;
}

/* What this one does next. False: nothing any more. */
static bool slot_go_on(struct load_run *run, struct load_slot *slot)
{
    const struct drill_step *step = run->step;

    if (slot->is_started) {
        bool goes_then = step->then.method && !slot->is_second && drill_talk_is_good(&slot->talk);

        slot_count(run, slot);
        if (run->assault->most && run->load->counts->good >= run->assault->most)
            run->load->counts->is_spent = true;
        drill_talk_end(&slot->talk);
        slot->is_second = goes_then;
        if (step->holds)
            return false; /* what was refused is not asked for again */
    }
    if (!slot->is_second) {
        if (run->load->counts->is_spent)
            return false;
        if (step->count && run->made >= step->count)
            return false;
        slot->number = run->made++;
    }
    slot_start(run, slot);
    return true;
}

static bool slot_is_open(const struct load_slot *slot)
{
    return slot->is_started && !slot->talk.is_over && slot->talk.status != 0;
}

/* One step until it is done, has all open that it holds, or the time is over. */
static void step_run(struct load_run *run, const struct drill_step *step, uint64_t milliseconds)
{
    uint64_t end = clock_monotonic_ns(clock_system()) + milliseconds * NS_PER_MS;
    AUTO(free) bool *is_done = mem_alloc_array(step->width, sizeof(bool));

    run->step = step;
    run->slots = mem_alloc_array(step->width, sizeof(struct load_slot));
    run->made = 0;
    while (clock_monotonic_ns(clock_system()) < end) {
        unsigned int settled = 0;

        for (unsigned int i = 0; i < step->width; i++) {
            struct load_slot *slot = &run->slots[i];

            if (!is_done[i] && (!slot->is_started || slot->talk.is_over))
                is_done[i] = !slot_go_on(run, slot);
            settled += is_done[i] || (step->holds && slot_is_open(slot));
        }
        if (settled == step->width)
            return;
        drill_turn(run->client, 100);
    }
}

/* Until the end: what is over is begun again. */
static void load_attack(struct load_run *run)
{
    const struct drill_assault *assault = run->assault;
    uint64_t end =
        clock_monotonic_ns(clock_system()) + (uint64_t) DRILL_LOAD_SECONDS * 1000 * NS_PER_MS;

    if (assault->before.method)
        step_run(run, &assault->before, BEFORE_MS);
    if (assault->second.method)
        step_run(run, &assault->second, BEFORE_MS);
    if (assault->raw) {
        (void) drill_raw_run(run->client, assault->raw, run->load->counts, DRILL_LOAD_SECONDS);
        return;
    }
    if (assault->load.holds) {
        step_run(run, &assault->load,
                 assault->load.upgrade || !assault->load.body ? OPENING_MS : SETTLE_MS);
        for (unsigned int i = 0; i < assault->load.width; i++)
            run->load->counts->good += run->slots[i].is_started && !run->slots[i].talk.is_over;
        run->load->counts->is_ready = true;
        drill_pump(run->client, (uint64_t) DRILL_LOAD_SECONDS * 1000);
        return;
    }
    run->load->counts->is_ready = true;
    while (clock_monotonic_ns(clock_system()) < end && !run->load->counts->is_spent)
        step_run(run, &assault->load, (uint64_t) DRILL_LOAD_SECONDS * 1000);
}

/* --- the process ----------------------------------------------------------------------------- */

static _Noreturn void load_main(const struct drill *drill, const struct drill_assault *assault,
                                struct drill_load *load)
{
    struct client client;
    struct error err = ERROR_INIT;
    AUTO(free) char *fill = mem_alloc(assault->fill + 1);
    struct load_run run = {.assault = assault, .load = load, .client = &client, .fill = fill};

    (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void) setpriority(PRIO_PROCESS, 0, NICE_LOWEST);
    memset(fill, 'x', assault->fill);
    if (client_open(&client, drill->options->url, load->user.key, &err) == 0)
        load_attack(&run);
    _exit(0); /* what is open is closed with it */
}

int drill_load_start(struct drill *drill, const struct drill_assault *assault,
                     struct drill_load *ret_load, struct error *err)
{
    char name[DRILL_NAME_SIZE];

    *ret_load = (struct drill_load){.pid = -1};
    if (drill_user_make(drill, "many", &ret_load->user, err) < 0)
        return -1;
    for (unsigned int i = 0; i < assault->boxes; i++) {
        (void) snprintf(name, sizeof(name), "box-%u", i);
        if (drill_box_make(drill, &ret_load->user, name, ret_load->boxes[i], err) < 0)
            return -1;
    }
    ret_load->counts = mmap(NULL, sizeof(struct drill_counts), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (ret_load->counts == MAP_FAILED)
        return error_set(err, ERR_INTERNAL, errno, "memory for figures");
    ret_load->pid = fork();
    if (ret_load->pid == 0)
        load_main(drill, assault, ret_load);
    return ret_load->pid < 0 ? error_set(err, ERR_INTERNAL, errno, "start the attacker") : 0;
}

int drill_load_stop(struct drill *drill, struct drill_load *load, struct error *err)
{
    if (load->pid > 0) {
        (void) kill(load->pid, SIGKILL);
        while (waitpid(load->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    if (load->counts && load->counts != MAP_FAILED)
        (void) munmap(load->counts, sizeof(struct drill_counts));
    return *load->user.id ? drill_user_remove(&drill->client, load->user.id, err) : 0;
}
