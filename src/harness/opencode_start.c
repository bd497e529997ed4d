#include "harness/opencode_start.h"

#include <stdio.h>
#include <string.h>

#include "base/auto.h"
#include "base/memory.h"
#include "harness/opencode_config.h"
#include "harness/opencode_server.h"
#include "json/json_read.h"
#include "json/json_write.h"

#define TEXT(x)      #x
#define AS_TEXT(x)   TEXT(x)
#define EXIT_NO_FILE 127
#define EXIT_NO_RUN  126

/* A folder with plugins in TypeScript has them bundled, for which OpenCode installs a package that it
 * finds in no sandbox without a network: it waits a minute. The image has that package. */
static const char command[] =
    "deps=/app/opencode-deps\n"
    "for folder in \"$PWD/.opencode\" \"$HOME/.config/opencode\"; do\n"
    "  if [ -d \"$folder\" ] && [ -d $deps/node_modules ] && [ ! -e \"$folder/node_modules\" ]; "
    "then\n"
    "    cp -a $deps/node_modules \"$folder/node_modules\"\n"
    "    for file in $deps/package.json $deps/package-lock.json $deps/bun.lock; do\n"
    "      [ ! -e \"$file\" ] || cp -n \"$file\" \"$folder/\"\n"
    "    done\n"
    "  fi\n"
    "done 2>/dev/null\n"
    "exec opencode serve --hostname 127.0.0.1 --port " AS_TEXT(OPENCODE_PORT);

int opencode_start_write(const struct harness_place *place, struct text *body, struct error *err)
{
    AUTO(text) struct text config = TEXT_INIT(OPENCODE_CONFIG_MAX);
    struct json_writer json;

    if (opencode_config_write(place, &config, err) < 0)
        return -1;
    json_document_begin(&json, body);
    json_add_text(&json, "command", command);
    json_add_text(&json, "processId", OPENCODE_PROCESS);
    if (place->folder)
        json_add_text(&json, "cwd", place->folder);
    json_begin_object_at(&json, "env");
    json_add_text(&json, "OPENCODE_CONFIG_CONTENT", text_string(&config));
    json_add_text(&json, "OPENCODE_DISABLE_AUTOUPDATE", "1");
    json_add_text(&json, "OPENCODE_DISABLE_MODELS_FETCH", "1");
    json_add_text(&json, "OPENCODE_DISABLE_LSP_DOWNLOAD", "1");
    json_end_object(&json);
    if (json_document_end(&json) < 0)
        return error_set(err, ERR_TOO_LARGE, 0, "the agent's config and folder are too large");
    return 0;
}

int opencode_process_read(const char *bytes, size_t length, struct opencode_process *ret_process)
{
    AUTO(json) json_t *body = json_read(bytes, length, NULL, NULL);
    const json_t *process = json_object_get(body, "process");
    const char *status = json_string_value(json_object_get(process, "status"));
    const json_t *code = json_object_get(process, "exitCode");

    if (!status)
        return -1;
    *ret_process = (struct opencode_process){
        .is_alive = strcmp(status, "running") == 0 || strcmp(status, "starting") == 0,
        .exit_code = json_is_integer(code) ? (int) json_integer_value(code) : -1,
    };
    return 0;
}

bool opencode_process_is_missing(const struct opencode_process *process)
{
    return process->exit_code == EXIT_NO_FILE || process->exit_code == EXIT_NO_RUN;
}

char *opencode_log_end(const char *bytes, size_t length, size_t most)
{
    static const struct json_limits limits = {
        .size = SIZE_MAX, .depth = 8, .values = 1024, .nul = true};
    AUTO(json) json_t *body = json_read(bytes, length, &limits, NULL);
    const json_t *output = json_object_get(body, "stderr");
    size_t from = 0, size;

    if (!json_string_length(output))
        output = json_object_get(body, "stdout");
    size = json_string_length(output);
    if (!size)
        return NULL;
    if (size > most)
        from = size - most;
    /* Not within a character. */
    while (from < size && ((unsigned char) json_string_value(output)[from] & 0xC0) == 0x80)
        from++;
    return mem_copy_bytes(json_string_value(output) + from, size - from);
}

const char *opencode_last_line(const char *text)
{
    size_t end = strlen(text), begin;

    while (end && strchr("\r\n \t", text[end - 1]))
        end--;
    begin = end;
    while (begin && text[begin - 1] != '\n')
        begin--;
    return text + begin;
}

void opencode_health_version(const char *bytes, size_t length, char *ret_version, size_t size)
{
    AUTO(json) json_t *body = json_read(bytes, length, NULL, NULL);
    const char *version = json_string_value(json_object_get(body, "version"));

    (void) snprintf(ret_version, size, "%s", version ? version : "");
}
