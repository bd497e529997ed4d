#include "cli/verb/verb.h"

#include <stdint.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "base/spelling.h"

#define NAME_SIZE 64

const struct verb_option verb_common_options[] = {
    {"json", 0, NULL, "print JSON, for programs", false},
    {"url", 0, "URL", "where the daemon is (BURROW_URL, http://127.0.0.1:8787)", false},
    {"key", 0, "KEY", "the key to use (BURROW_API_KEY, or what `make run` stored)", false},
    {"help", 'h', NULL, "print this", false},
    {NULL, 0, NULL, NULL, false},
};

const struct verb_option verb_local_options[] = {
    {"help", 'h', NULL, "print this", false},
    {NULL, 0, NULL, NULL, false},
};

/* --- the nearest name ------------------------------------------------------------------------ */

/* --- finding a verb -------------------------------------------------------------------------- */

/* How many words of `argv` are exactly the name; 0: it is another. */
static int words_of(const struct verb *verb, int argc, char *const *argv)
{
    const char *at = verb->name;
    int used = 0;

    while (*at) {
        size_t length = strcspn(at, " ");

        if (used == argc || strlen(argv[used]) != length || memcmp(argv[used], at, length) != 0)
            return 0;
        used++;
        at += length + (at[length] == ' ');
    }
    return used;
}

static bool begins_with_word(const struct verb *verb, const char *word)
{
    size_t length = strlen(word);

    return strncmp(verb->name, word, length) == 0 && verb->name[length] == ' ';
}

static int refuse_half(const struct verb_table *table, const char *word, struct error *err)
{
    AUTO(text) struct text list = TEXT_INIT(ERROR_MESSAGE_MAX);

    for (size_t i = 0; table->verbs[i]; i++) {
        if (begins_with_word(table->verbs[i], word))
            text_format(&list, "%s%s", list.length ? ", " : "",
                        table->verbs[i]->name + strlen(word) + 1);
    }
    if (!list.length)
        return 0;
    return error_set(err, ERR_INVALID, 0, "%s what? One of: %s", word, text_string(&list));
}

const struct verb *verb_find(const struct verb_table *table, int argc, char *const *argv,
                             int *ret_used, struct error *err)
{
    const char *names[VERB_OPTIONS_MAX * 4];
    const char *nearest;
    size_t count = 0;

    if (argc == 0) {
        (void) error_set(err, ERR_INVALID, 0, "say what to do: %s --help lists it", table->program);
        return NULL;
    }
    for (size_t i = 0; table->verbs[i]; i++) {
        *ret_used = words_of(table->verbs[i], argc, argv);
        if (*ret_used)
            return table->verbs[i];
        if (count < ARRAY_COUNT(names))
            names[count++] = table->verbs[i]->name;
    }
    if (refuse_half(table, argv[0], err) < 0)
        return NULL;
    nearest = spelling_nearest(argv[0], names, count);
    if (nearest)
        (void) error_set(err, ERR_INVALID, 0, "there is no verb '%s'; did you mean '%s'?", argv[0],
                         nearest);
    else
        (void) error_set(err, ERR_INVALID, 0, "there is no verb '%s'; %s --help lists them",
                         argv[0], table->program);
    return NULL;
}

/* --- options --------------------------------------------------------------------------------- */

static const struct verb_option *common_of(const struct verb *verb)
{
    return verb->is_local ? verb_local_options : verb_common_options;
}

static size_t count_options(const struct verb_option *options)
{
    size_t count = 0;

    while (options && options[count].name)
        count++;
    return count;
}

/* A verb's own come first, the common ones behind. */
static const struct verb_option *option_at(const struct verb *verb, size_t index)
{
    size_t own = count_options(verb->options);

    return index < own ? &verb->options[index] : &common_of(verb)[index - own];
}

static size_t option_count(const struct verb *verb)
{
    return count_options(verb->options) + count_options(common_of(verb));
}

static size_t find_option(const struct verb *verb, const char *name, size_t length, char letter)
{
    for (size_t i = 0; i < option_count(verb); i++) {
        const struct verb_option *option = option_at(verb, i);

        if (name ? strlen(option->name) == length && memcmp(option->name, name, length) == 0
                 : option->letter == letter)
            return i;
    }
    return SIZE_MAX;
}

static int refuse_option(const struct verb *verb, const char *name, struct error *err)
{
    const char *names[VERB_OPTIONS_MAX];
    const char *nearest;
    size_t count = option_count(verb);

    for (size_t i = 0; i < count; i++)
        names[i] = option_at(verb, i)->name;
    nearest = spelling_nearest(name, names, count);
    if (nearest)
        return error_set(err, ERR_INVALID, 0, "%s has no option --%s; did you mean --%s?",
                         verb->name, name, nearest);
    return error_set(err, ERR_INVALID, 0, "%s has no option --%s", verb->name, name);
}

static int keep_value(struct verb_call *call, size_t index, const char *value, struct error *err)
{
    const struct verb_option *option = option_at(call->verb, index);
    size_t at = option->is_repeatable ? call->counts[index] : 0;

    if (at == VERB_REPEATS_MAX)
        return error_set(err, ERR_INVALID, 0, "--%s is given more than %d times", option->name,
                         VERB_REPEATS_MAX);
    call->values[index][at] = value;
    call->counts[index] = at + 1;
    return 0;
}

struct verb_reading {
    struct verb_call *call;
    int argc;
    char *const *argv;
    int at;
};

static int take_value(struct verb_reading *reading, size_t index, const char *here,
                      struct error *err)
{
    const struct verb_option *option = option_at(reading->call->verb, index);

    if (!here) {
        if (reading->at + 1 >= reading->argc)
            return error_set(err, ERR_INVALID, 0, "--%s needs a value: %s", option->name,
                             option->value);
        here = reading->argv[++reading->at];
    }
    return keep_value(reading->call, index, here, err);
}

/* "--name", "--name=value" */
static int read_long(struct verb_reading *reading, const char *word, struct error *err)
{
    size_t length = strcspn(word, "=");
    size_t index = find_option(reading->call->verb, word, length, 0);
    char name[NAME_SIZE];

    if (index == SIZE_MAX) {
        size_t size = length < sizeof(name) - 1 ? length : sizeof(name) - 1;

        memcpy(name, word, size);
        name[size] = '\0';
        return refuse_option(reading->call->verb, name, err);
    }
    if (option_at(reading->call->verb, index)->value)
        return take_value(reading, index, word[length] ? word + length + 1 : NULL, err);
    if (word[length])
        return error_set(err, ERR_INVALID, 0, "--%.*s takes no value", (int) length, word);
    return keep_value(reading->call, index, "", err);
}

/* "-q", "-qf", "-m512M", "-m 512M" */
static int read_letters(struct verb_reading *reading, const char *letters, struct error *err)
{
    for (; *letters; letters++) {
        size_t index = find_option(reading->call->verb, NULL, 0, *letters);

        if (index == SIZE_MAX)
            return error_set(err, ERR_INVALID, 0, "%s has no option -%c", reading->call->verb->name,
                             *letters);
        if (option_at(reading->call->verb, index)->value)
            return take_value(reading, index, letters[1] ? letters + 1 : NULL, err);
        if (keep_value(reading->call, index, "", err) < 0)
            return -1;
    }
    return 0;
}

static int check_words(const struct verb_call *call, struct error *err)
{
    const struct verb *verb = call->verb;

    if (call->wants_help)
        return 0;
    if (call->word_count < verb->words_min)
        return error_set(err, ERR_INVALID, 0, "%s needs more: %s %s", verb->name, verb->name,
                         verb->arguments);
    if (call->word_count > verb->words_max)
        return error_set(err, ERR_INVALID, 0, "'%s' is too much: %s %s",
                         call->words[verb->words_max], verb->name, verb->arguments);
    return 0;
}

static int read_words(struct verb_reading *reading, const char **words, const char **command,
                      struct error *err)
{
    struct verb_call *call = reading->call;
    const struct verb *verb = call->verb;

    for (; reading->at < reading->argc; reading->at++) {
        const char *word = reading->argv[reading->at];
        int r = 0;

        if (strcmp(word, "--") == 0) {
            reading->at++;
            break;
        }
        if (strncmp(word, "--", 2) == 0)
            r = read_long(reading, word + 2, err);
        else if (word[0] == '-' && word[1])
            r = read_letters(reading, word + 1, err);
        else if (verb->stops_at_word && call->word_count == verb->stops_at_word)
            break;
        else
            words[call->word_count++] = word;
        if (r < 0)
            return -1;
    }
    for (; reading->at < reading->argc; reading->at++)
        command[call->command_count++] = reading->argv[reading->at];
    return 0;
}

int verb_read(const struct verb *verb, int argc, char *const *argv, struct verb_call *ret_call,
              struct error *err)
{
    size_t room = (size_t) argc + 1;
    struct verb_reading reading = {.call = ret_call, .argc = argc, .argv = argv};

    *ret_call = (struct verb_call){.verb = verb};
    if (option_count(verb) > VERB_OPTIONS_MAX)
        return error_set(err, ERR_INTERNAL, 0, "%s has more options than there is room for",
                         verb->name);
    ret_call->storage = mem_alloc_array(2 * room, sizeof(*ret_call->storage));
    ret_call->words = ret_call->storage;
    ret_call->command = ret_call->storage + room;
    if (read_words(&reading, ret_call->storage, ret_call->storage + room, err) < 0)
        return -1;
    ret_call->wants_help = verb_flag(ret_call, "help");
    return check_words(ret_call, err);
}

void verb_call_done(struct verb_call *call)
{
    free(call->storage);
    *call = (struct verb_call){.verb = NULL};
}

static size_t known_option(const struct verb_call *call, const char *name)
{
    return find_option(call->verb, name, strlen(name), 0);
}

const char *verb_value(const struct verb_call *call, const char *name)
{
    size_t index = known_option(call, name);

    return index != SIZE_MAX && call->counts[index] ? call->values[index][call->counts[index] - 1]
                                                    : NULL;
}

bool verb_flag(const struct verb_call *call, const char *name)
{
    return verb_value(call, name) != NULL;
}

const char *const *verb_values(const struct verb_call *call, const char *name, size_t *ret_count)
{
    size_t index = known_option(call, name);

    *ret_count = index != SIZE_MAX ? call->counts[index] : 0;
    return index != SIZE_MAX ? call->values[index] : NULL;
}
