/* The provider `local`: sandboxes on this machine, made by a burrow-launcher at the other end of
 * one socket.
 *
 * Opening agrees on a version, takes over every sandbox that is there, and subscribes to exits. A
 * stock of ready sandboxes, each used once, is kept beside the request path: a create that names no
 * other image, no binds and does not insist on its id is answered with one of them, told its host
 * name, limits, network and environment as it is handed out. The stock has the limits that were
 * asked for last, since whoever asks for the same again need not wait for them. It is filled again
 * one by one when calls have been quiet for a moment; when that fails, later and later.
 *
 * A launcher that closes the conversation or breaks its rules makes the provider lost. */
#pragma once

#include "base/log.h"
#include "base/text.h"
#include "net/loop.h"
#include "provider/provider.h"

#define PROVIDER_LOCAL_IMAGE         "host"
#define PROVIDER_LOCAL_STOCK_DEFAULT 8
#define PROVIDER_LOCAL_STOCK_MAX     256

struct provider_local_options {
    struct loop *loop;   /* borrowed */
    struct log *log;     /* borrowed, may be NULL */
    int conversation;    /* SOCK_SEQPACKET, taken, also on failure */
    const char *agents;  /* folder of the agents' sockets, as the launcher named it */
    const char *program; /* version of this program, for people; NULL: BURROW_VERSION */
    const char *image;   /* for specs that name none; NULL: PROVIDER_LOCAL_IMAGE */
    size_t stock;        /* ready sandboxes to keep; 0: none */
};

/* A provider to be opened; NULL with ERR_INVALID or ERR_INTERNAL. All texts are copied. */
struct provider *provider_local_new(const struct provider_local_options *options,
                                    struct error *err);

/* Sandboxes that are ready to be handed out now. */
size_t provider_local_ready(const struct provider *provider);

/* Give up those, and keep none ready until provider_local_fill. What is handed out stays. */
void provider_local_drain(struct provider *provider);

/* Make what is missing, now also after failures, and keep it so. */
void provider_local_fill(struct provider *provider);

/* The plan that this spec becomes, for people (`burrow run --plan`); no provider is needed. -1 with
 * ERR_INVALID: the spec is wrong. Pure. */
int provider_local_print_plan(const struct provider_spec *spec, struct text *text,
                              struct error *err);
