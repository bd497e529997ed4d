/* Credentials: secrets of an owner that the egress broker puts into requests. No answer has a value. */
#include <string.h>

#include "api/http/pending.h"
#include "api/native/egress_caller.h"
#include "api/native/handlers.h"
#include "base/auto.h"
#include "domain/egress/egress_credential.h"

static void answer_credential(struct http_request *request,
                              const struct egress_credential *credential)
{
    AUTO(native_answer) struct native_answer answer;

    native_answer_begin_value(&answer);
    egress_credential_write(&answer.json, credential);
    native_answer_send(&answer, request, 200);
}

/* --- shown ----------------------------------------------------------------------------------- */

static void credentials_list_one(void *context, const struct egress_credential *credential)
{
    egress_credential_write(context, credential);
}

void native_list_credentials(struct http_request *request)
{
    AUTO(native_answer) struct native_answer answer;
    struct error err = ERROR_INIT;
    struct caller caller;

    native_answer_begin_list(&answer, "credentials");
    if (egress_caller_of(request, &caller, &err) < 0) {
        http_reply_error(request, &err);
        return;
    }
    egress_credential_each(api_of(request)->domain, &caller, credentials_list_one, &answer.json);
    json_end_array(&answer.json);
    native_answer_send(&answer, request, 200);
}

void native_get_credential(struct http_request *request)
{
    const char *name = http_request_parameter(request, "credential");
    const struct egress_credential *credential = NULL;
    struct error err = ERROR_INIT;
    struct caller caller;

    if (egress_caller_of(request, &caller, &err) == 0)
        credential = egress_credential_find(api_of(request)->domain, &caller, name, &err);
    if (credential)
        answer_credential(request, credential);
    else
        http_reply_error(request, &err);
}

/* --- made and gone --------------------------------------------------------------------------- */

static void credential_put(void *context, const struct error *failure,
                           const struct egress_credential *credential)
{
    struct http_request *request = pending_take_good(context, failure);

    if (request)
        answer_credential(request, credential);
}

static int credential_read_put(struct http_request *request, const struct json_place *body,
                               struct error *err)
{
    struct egress_credential *credential;
    struct caller caller;

    if (egress_caller_of(request, &caller, err) < 0)
        return -1;
    credential = egress_credential_read(body, http_request_parameter(request, "credential"), err);
    if (!credential)
        return -1;
    egress_credential_put(api_of(request)->domain, &caller, credential, credential_put,
                          pending_new(request));
    return 0;
}

void native_put_credential(struct http_request *request)
{
    native_take(request, credential_read_put);
}

static void credential_gone(void *context, const struct error *failure,
                            const struct egress_credential *credential)
{
    (void) credential;
    pending_end(context, failure);
}

void native_delete_credential(struct http_request *request)
{
    struct error err = ERROR_INIT;
    struct caller caller;

    if (egress_caller_of(request, &caller, &err) < 0)
        http_reply_error(request, &err);
    else
        egress_credential_delete(api_of(request)->domain, &caller,
                                 http_request_parameter(request, "credential"), credential_gone,
                                 pending_new(request));
}
