/* GET /v1/sandbox/{id}/pty: the agent's terminal, passed through. Its messages are the bridge's. */
#include <string.h>
#include <strings.h>

#include "api/bridge/bridge_internal.h"
#include "base/auto.h"
#include "base/number.h"

#define SIZE_LARGEST 4096
#define COLUMNS      80
#define ROWS         24
#define TARGET_MAX   (URL_LENGTH_MAX * 3)

static int bridge_terminal_read_size(struct http_request *request, const char *name, int64_t *size)
{
    const char *text = http_request_query(request, name);

    return text && *text ? number_parse(text, 1, SIZE_LARGEST, size) : 0;
}

/* Whoever names no session shares one with all others who name none. NULL: malformed. */
static const char *session_of(struct visit *visit)
{
    const char *session = http_request_header(visit->request, "session-id");

    if (!session || !*session)
        session = http_request_query(visit->request, "session");
    if (session && *session)
        return bridge_name_is_session(session) ? session : NULL;
    return pool_format(&visit->request->pool, "sandbox-%s", visit->sandbox->id.text);
}

static void bridge_terminal_pass_on(struct visit *visit, const char *session, int64_t columns,
                                    int64_t rows)
{
    const char *shell = http_request_query(visit->request, "shell");
    AUTO(text) struct text target = TEXT_INIT(TARGET_MAX);

    text_format(&target, "/ws/pty?cols=%lld&rows=%lld&sessionId=", (long long) columns,
                (long long) rows);
    url_encode(&target, session, strlen(session));
    if (shell && *shell) {
        text_append(&target, "&shell=");
        url_encode(&target, shell, strlen(shell));
    }
    visit_proxy_socket(visit,
                       pool_copy_bytes(&visit->request->pool, text_string(&target), target.length));
}

static void bridge_terminal_ready(struct visit *visit)
{
    struct http_request *request = visit->request;
    const char *upgrade = http_request_header(request, "upgrade");
    int64_t columns = COLUMNS, rows = ROWS;
    const char *session;

    if (!request->is_upgrade || !upgrade || strcasecmp(upgrade, "websocket") != 0) {
        api_fail(request, ERR_INVALID, "WebSocket upgrade required");
        return;
    }
    if (bridge_terminal_read_size(request, "cols", &columns) < 0 ||
        bridge_terminal_read_size(request, "rows", &rows) < 0) {
        api_fail(request, ERR_INVALID, "cols and rows must be valid numbers");
        return;
    }
    session = session_of(visit);
    if (session)
        bridge_terminal_pass_on(visit, session, columns, rows);
    else
        api_fail(request, ERR_INVALID, "Invalid session ID format");
}

void bridge_terminal(struct http_request *request)
{
    bridge_visit(request, VISIT_TERMINAL, bridge_terminal_ready);
}
