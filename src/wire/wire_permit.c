#include "wire/wire_permit.h"

const char *wire_state_name(enum wire_state state)
{
    static const char *const names[WIRE_STATE_COUNT] = {
        [WIRE_FRESH] = "fresh",
        [WIRE_GREETED] = "greeted",
        [WIRE_SERVING] = "serving",
        [WIRE_DRAINING] = "draining",
    };

    return names[state];
}

enum wire_permission wire_permit(enum wire_state state, unsigned int number)
{
    const struct wire_row *row = wire_message_row(number);

    return row ? row->permissions[state] : WIRE_FORBID;
}

int wire_permit_receive(enum wire_end end, enum wire_state state, enum wire_number number,
                        struct error *err)
{
    const struct wire_row *row = wire_message_row(number);

    if (!row || (row->type == WIRE_REQUEST) != (end == WIRE_LAUNCHER))
        return error_set(err, ERR_FORBIDDEN, 0, "the %s does not take '%s'",
                         end == WIRE_LAUNCHER ? "launcher" : "daemon", wire_message_name(number));
    if (wire_permit(state, number) == WIRE_FORBID)
        return error_set(err, ERR_FORBIDDEN, 0,
                         "'%s' is not permitted while the conversation is %s", row->name,
                         wire_state_name(state));
    return 0;
}

enum wire_state wire_permit_after(enum wire_state state, enum wire_number number)
{
    const struct wire_row *row = wire_message_row(number);

    return row && row->then != WIRE_STAY ? row->then : state;
}
