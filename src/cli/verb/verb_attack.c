/* burrow attack: attacks on a running Burrow, and what came of each. */
#include <string.h>

#include "base/auto.h"
#include "cli/attack/drill.h"
#include "cli/verb/verb_client.h"
#include "cli/verb/verbs.h"

static const struct verb_option options[] = {
    {"only", 0, "NAME", "only the attack of that name; --list has them", true},
    {"list", 0, NULL, "print the names, and attack nothing", false},
    {"clean", 0, NULL, "take away what earlier attacks left that were killed", false},
    {NULL, 0, NULL, NULL, false},
};

static int verb_attack_check(const struct verb_call *call, struct error *err)
{
    static const char *const known[] = {"escape", "tenancy", "shares", "door"};

    for (size_t i = 0; i < call->word_count; i++) {
        bool is_known = false;

        for (size_t k = 0; k < ARRAY_COUNT(known); k++)
            is_known |= strcmp(call->words[i], known[k]) == 0;
        if (!is_known)
            return error_set(err, ERR_INVALID, 0,
                             "'%s' is no group of attacks: escape, tenancy, shares or door",
                             call->words[i]);
    }
    return 0;
}

static int verb_attack_run(struct verb_call *call)
{
    struct drill_options options_of_drill = {
        .url = verb_value(call, "url"),
        .key = verb_value(call, "key"),
        .groups = call->words,
        .group_count = call->word_count,
        .is_json = verb_flag(call, "json"),
    };
    struct error err = ERROR_INIT;

    options_of_drill.only = verb_values(call, "only", &options_of_drill.only_count);
    if (verb_attack_check(call, &err) < 0 || drill_check_names(&options_of_drill, &err) < 0)
        return verb_complain(VERB_STATUS_USAGE, &err);
    if (verb_flag(call, "list")) {
        drill_list(&options_of_drill);
        return 0;
    }
    return verb_flag(call, "clean") ? drill_run_clean(&options_of_drill)
                                    : drill_run(&options_of_drill);
}

const struct verb verb_attack = {
    .name = "attack",
    .summary = "Attack this Burrow, and say what it held",
    .arguments = "[escape|tenancy|shares|door...]",
    .options = options,
    .details = "Makes users and sandboxes of its own, attacks with them, and takes them away "
               "again, also when it is\n"
               "interrupted. Needs the administrator's key. Groups: escape (out of a sandbox), "
               "tenancy (one user\n"
               "looks for what is another's), shares (one user takes what all share, while another "
               "is measured),\n"
               "door (without a key, with a wrong one, no longer welcome). `escape` tries most "
               "where the daemon is\n"
               "on this host.\n\n"
               "Exit status: 0 everything held, 1 something did not, 3 not all could be tried or "
               "taken away, 130\n"
               "it was stopped.\n\n"
               "Each attack ends by itself within 30 seconds, and what it takes is bounded; one "
               "that is not held is\n"
               "felt by others as long as it goes on.",
    .examples =
        "  burrow attack\n  burrow attack door tenancy --json\n  burrow attack --only fork_bomb",
    .words_max = 4,
    .run = verb_attack_run,
};
