#include "sys/sys_feature.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static const struct {
    const char *name;
    const char *consequence;
} features[SYS_FEATURE_COUNT] = {
#define X(name, text, without) [name] = {text, without},
    SYS_FEATURES(X)
#undef X
};

/* Written by sys_feature_init before threads start; atomic so that no reader needs to know. */
static _Atomic unsigned int pretended;

static int find_feature(const char *name, size_t length)
{
    for (int i = 0; i < SYS_FEATURE_COUNT; i++) {
        if (strlen(features[i].name) == length && memcmp(features[i].name, name, length) == 0)
            return i;
    }
    return -EINVAL;
}

static void copy_cut(char ret_name[static SYS_FEATURE_NAME_MAX], const char *name, size_t length)
{
    if (length >= SYS_FEATURE_NAME_MAX)
        length = SYS_FEATURE_NAME_MAX - 1;
    memcpy(ret_name, name, length);
    ret_name[length] = '\0';
}

int sys_feature_init(const char *list, char ret_unknown[static SYS_FEATURE_NAME_MAX])
{
    unsigned int missing = 0;
    const char *at = list ? list : "";

    while (*at) {
        size_t length = strcspn(at, ",");
        int feature = find_feature(at, length);

        if (feature < 0) {
            copy_cut(ret_unknown, at, length);
            return -EINVAL;
        }
        missing |= SYS_FEATURE_BIT(feature);
        at += length;
        at += *at == ',';
    }
    atomic_store(&pretended, missing);
    return 0;
}

bool sys_feature_missing(enum sys_feature feature)
{
    return atomic_load_explicit(&pretended, memory_order_relaxed) & SYS_FEATURE_BIT(feature);
}

unsigned int sys_feature_pretend(unsigned int missing)
{
    return atomic_exchange(&pretended, missing);
}

const char *sys_feature_name(enum sys_feature feature)
{
    return features[feature].name;
}

const char *sys_feature_consequence(enum sys_feature feature)
{
    return features[feature].consequence;
}
