#include <ctype.h>
#include <stdio.h>

#include "programs/burrow/setting.h"
#include "programs/burrow/settings.h"

static void variable_name(const char *name, char *ret_name, size_t size)
{
    size_t used = (size_t) snprintf(ret_name, size, "BURROW_");

    for (; *name && used + 1 < size; name++)
        ret_name[used++] = *name == '-' ? '_' : (char) toupper((unsigned char) *name);
    ret_name[used] = '\0';
}

void settings_help(struct text *out)
{
    text_append(out, "usage: burrow serve [--config FILE] [--SETTING VALUE]...\n\n"
                     "Each setting is also a variable (BURROW_LISTEN) and a line of the file "
                     "(listen = ...).\n\n");
    for (size_t i = 0; i < settings_table_count; i++) {
        const struct setting *setting = &settings_table[i];
        char flag[SETTING_NAME_SIZE];

        (void) snprintf(flag, sizeof(flag), "--%s %s", setting->name,
                        setting->choices ? setting->choices : setting->value);
        text_format(out, "  %-38s %s", flag, setting->help);
        if (*setting->preset && setting->type != SETTING_BOOLEAN)
            text_format(out, " [%s]", setting->preset);
        text_append(out, "\n");
    }
}

void settings_document(struct text *out)
{
    text_append(out, "# Settings\n\n"
                     "Written by `burrow settings` from the table in "
                     "src/programs/burrow/settings.c; a test compares them.\n\n"
                     "A flag wins over the environment, which wins over the ini file (`--config "
                     "FILE` or `BURROW_CONFIG`, lines `name = value`), which wins over the "
                     "default.\n\n"
                     "| setting | variable | default | meaning |\n|---|---|---|---|\n");
    for (size_t i = 0; i < settings_table_count; i++) {
        const struct setting *setting = &settings_table[i];
        char variable[SETTING_NAME_SIZE];

        variable_name(setting->name, variable, sizeof(variable));
        text_format(out, "| `--%s` | `%s` | %s%s%s | %s", setting->name, variable,
                    *setting->preset ? "`" : "", setting->preset, *setting->preset ? "`" : "",
                    setting->help);
        if (setting->choices) {
            text_append(out, " One of: ");
            for (const char *c = setting->choices; *c; c++)
                text_append(out, *c == '|' ? ", " : (char[]){*c, '\0'});
            text_append(out, ".");
        }
        text_append(out, " |\n");
    }
}
