/* Usage, --help, completion and man page: all from the table of verbs. */
#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "cli/verb/verb.h"

#define FLAG_SIZE   64
#define NAME_COLUMN 16
#define FLAG_COLUMN 24

static const struct verb_option *common_of(const struct verb *verb)
{
    return verb->is_local ? verb_local_options : verb_common_options;
}

/* --- for people ------------------------------------------------------------------------------ */

void verb_write_usage(const struct verb_table *table, struct text *out)
{
    text_format(out, "%s\n\nusage: %s VERB [...]\n\n", table->summary, table->program);
    for (size_t i = 0; table->verbs[i]; i++)
        text_format(out, "  %-*s %s\n", NAME_COLUMN, table->verbs[i]->name,
                    table->verbs[i]->summary);
    text_format(out, "\n%s VERB --help tells more.\n", table->program);
}

static void flag_text(const struct verb_option *option, char ret_flag[static FLAG_SIZE])
{
    char letter[] = "-x, ";

    letter[1] = option->letter;
    (void) snprintf(ret_flag, FLAG_SIZE, "%s--%s%s%s", option->letter ? letter : "    ",
                    option->name, option->value ? " " : "", option->value ? option->value : "");
}

static void document_write_options(const struct verb_option *options, struct text *out)
{
    for (; options && options->name; options++) {
        char flag[FLAG_SIZE];

        flag_text(options, flag);
        text_format(out, "  %-*s %s%s\n", FLAG_COLUMN, flag, options->help,
                    options->is_repeatable ? " (may be given again)" : "");
    }
}

void verb_write_help(const struct verb_table *table, const struct verb *verb, struct text *out)
{
    text_format(out, "%s.\n\nusage: %s %s [OPTION...]%s%s\n\n", verb->summary, table->program,
                verb->name, *verb->arguments ? " " : "", verb->arguments);
    if (verb->details)
        text_format(out, "%s\n\n", verb->details);
    document_write_options(verb->options, out);
    document_write_options(common_of(verb), out);
    if (verb->examples)
        text_format(out, "\nExamples:\n%s\n", verb->examples);
}

/* --- for shells ------------------------------------------------------------------------------ */

static bool is_first_of_name(const struct verb_table *table, size_t index)
{
    const char *name = table->verbs[index]->name;
    size_t length = strcspn(name, " ");

    for (size_t i = 0; i < index; i++) {
        if (strcspn(table->verbs[i]->name, " ") == length &&
            memcmp(table->verbs[i]->name, name, length) == 0)
            return false;
    }
    return true;
}

static void write_first_words(const struct verb_table *table, struct text *out)
{
    for (size_t i = 0; table->verbs[i]; i++) {
        const char *name = table->verbs[i]->name;

        if (is_first_of_name(table, i))
            text_format(out, "%s%.*s", i ? " " : "", (int) strcspn(name, " "), name);
    }
}

static void write_second_words(const struct verb_table *table, const char *first, size_t length,
                               struct text *out)
{
    bool is_next = false;

    for (size_t i = 0; table->verbs[i]; i++) {
        const char *name = table->verbs[i]->name;

        if (strncmp(name, first, length) != 0 || name[length] != ' ')
            continue;
        text_format(out, "%s%s", is_next ? " " : "", name + length + 1);
        is_next = true;
    }
}

static void write_flags(const struct verb_option *options, struct text *out)
{
    for (; options && options->name; options++)
        text_format(out, " --%s", options->name);
}

/* A row for every first half of verbs: what may stand behind it, between the two texts. */
static void write_halves(const struct verb_table *table, const char *before, const char *after,
                         struct text *out)
{
    for (size_t i = 0; table->verbs[i]; i++) {
        const char *name = table->verbs[i]->name;
        size_t length = strcspn(name, " ");

        if (!name[length] || !is_first_of_name(table, i))
            continue;
        text_format(out, "    %.*s) %s", (int) length, name, before);
        write_second_words(table, name, length, out);
        text_append(out, after);
    }
}

void verb_write_bash(const struct verb_table *table, struct text *out)
{
    text_format(out,
                "# bash completion of %s; written by `%s completion bash`\n"
                "_%s() {\n"
                "    local word=${COMP_WORDS[COMP_CWORD]} verb=\"${COMP_WORDS[1]}\"\n"
                "    local second=\"${COMP_WORDS[2]}\" flags= names= halves=\n"
                "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
                "        COMPREPLY=($(compgen -W \"",
                table->program, table->program, table->program);
    write_first_words(table, out);
    text_append(out, "\" -- \"$word\"))\n        return\n    fi\n    case \"$verb\" in\n");
    write_halves(table, "halves=\"", "\" ;;\n", out);
    text_append(out, "    esac\n    if [ -n \"$halves\" ] && [ \"$COMP_CWORD\" -eq 2 ]; then\n"
                     "        COMPREPLY=($(compgen -W \"$halves\" -- \"$word\"))\n"
                     "        return\n    fi\n    case \"$verb $second \" in\n");
    for (size_t i = 0; table->verbs[i]; i++) {
        const struct verb *verb = table->verbs[i];

        text_format(out, "    \"%s \"*) flags=\"", verb->name);
        write_flags(verb->options, out);
        write_flags(common_of(verb), out);
        text_format(out, "\"%s ;;\n", verb->takes_sandboxes ? "; names=1" : "");
    }
    text_format(out,
                "    esac\n"
                "    [ -n \"$names\" ] && names=$(%s ls --names 2>/dev/null)\n"
                "    COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
                "    # Names are others' words, which compgen -W would expand: $(...) and all.\n"
                "    while IFS= read -r second; do\n"
                "        [[ -n $second && $second == \"$word\"* ]] &&\n"
                "            COMPREPLY+=(\"$(printf %%q \"$second\")\")\n"
                "    done <<<\"$names\"\n"
                "}\n"
                "complete -o default -F _%s %s\n",
                table->program, table->program, table->program);
}

/* zsh quotes with '' inside ''. */
static void write_quoted(const char *text, struct text *out)
{
    for (; *text; text++) {
        if (*text == '\'')
            text_append(out, "'\\''");
        else if (*text == ':' || *text == '[' || *text == ']')
            text_format(out, "\\%c", *text);
        else
            text_append_char(out, *text);
    }
}

void verb_write_zsh(const struct verb_table *table, struct text *out)
{
    text_format(out,
                "#compdef %s\n# zsh completion of %s; written by `%s completion zsh`\n"
                "_%s() {\n    local -a verbs\n    local names=\n    verbs=(\n",
                table->program, table->program, table->program, table->program);
    for (size_t i = 0; table->verbs[i]; i++) {
        const struct verb *verb = table->verbs[i];
        size_t length = strcspn(verb->name, " ");

        if (!is_first_of_name(table, i))
            continue;
        text_format(out, "        '%.*s:", (int) length, verb->name);
        write_quoted(verb->summary, out);
        text_append(out, "'\n");
    }
    text_append(out, "    )\n    if (( CURRENT == 2 )); then\n"
                     "        _describe 'verb' verbs\n        return\n    fi\n"
                     "    case \"$words[2]\" in\n");
    write_halves(table, "(( CURRENT == 3 )) && { compadd -- ", "; return; } ;;\n", out);
    text_append(out, "    esac\n    case \"$words[2] $words[3] \" in\n");
    for (size_t i = 0; table->verbs[i]; i++) {
        text_format(out, "    '%s '*) compadd --", table->verbs[i]->name);
        write_flags(table->verbs[i]->options, out);
        write_flags(common_of(table->verbs[i]), out);
        text_format(out, "%s ;;\n", table->verbs[i]->takes_sandboxes ? "; names=1" : "");
    }
    text_format(out,
                "    esac\n    [[ -n $names ]] && compadd -- "
                "${(f)\"$(%s ls --names 2>/dev/null)\"}\n"
                "    _files\n}\n_%s \"$@\"\n",
                table->program, table->program);
}

/* --- man ------------------------------------------------------------------------------------- */

/* roff takes '.' and '\'' at the start of a line, and '\\' and '-' anywhere, for its own. */
static void write_roff(const char *text, struct text *out)
{
    bool is_start = true;

    for (; *text; text++) {
        if (is_start && (*text == '.' || *text == '\''))
            text_append(out, "\\&");
        if (*text == '\\')
            text_append(out, "\\e");
        else if (*text == '-')
            text_append(out, "\\-");
        else
            text_append_char(out, *text);
        is_start = *text == '\n';
    }
}

static void write_man_options(const struct verb_option *options, struct text *out)
{
    for (; options && options->name; options++) {
        text_append(out, ".TP\n");
        if (options->letter)
            text_format(out, "\\fB\\-%c\\fR, ", options->letter);
        text_append(out, "\\fB\\-\\-");
        write_roff(options->name, out);
        text_append(out, "\\fR");
        if (options->value)
            text_format(out, " \\fI%s\\fR", options->value);
        text_append(out, "\n");
        write_roff(options->help, out);
        text_append(out, "\n");
    }
}

static void write_man_verb(const struct verb_table *table, const struct verb *verb,
                           struct text *out)
{
    text_format(out, ".SS %s ", table->program);
    write_roff(verb->name, out);
    text_append(out, " ");
    write_roff(verb->arguments, out);
    text_append(out, "\n");
    write_roff(verb->summary, out);
    text_append(out, ".\n");
    if (verb->details) {
        text_append(out, ".PP\n");
        write_roff(verb->details, out);
        text_append(out, "\n");
    }
    write_man_options(verb->options, out);
    if (verb->examples) {
        text_append(out, ".PP\n.nf\n");
        write_roff(verb->examples, out);
        text_append(out, "\n.fi\n");
    }
}

void verb_write_man(const struct verb_table *table, struct text *out)
{
    text_format(out, ".TH BURROW 1 \"\" \"burrow %s\"\n.SH NAME\n%s \\- ", BURROW_VERSION,
                table->program);
    write_roff(table->summary, out);
    text_format(out, "\n.SH SYNOPSIS\n.B %s\n.I VERB\n[\\fIOPTION\\fR...]\n.SH VERBS\n",
                table->program);
    for (size_t i = 0; table->verbs[i]; i++)
        write_man_verb(table, table->verbs[i], out);
    text_append(out, ".SH COMMON OPTIONS\n");
    write_man_options(verb_common_options, out);
    text_append(out,
                ".SH EXIT STATUS\n"
                "0: done. 1: refused or failed. 2: wrong use. Verbs that run a command pass on "
                "its status, 128 + N for signal N.\n"
                ".SH ENVIRONMENT\n.TP\n\\fBBURROW_URL\\fR\nwhere the daemon is\n.TP\n"
                "\\fBBURROW_API_KEY\\fR\nthe key to use\n");
}
