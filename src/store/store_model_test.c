/* Random transactions, asked for many in a turn, against a table in memory that does the same. */
#include "store/store_sqlite_testing.h"

#define SEEDS   8
#define TURNS   40
#define IDS     8
#define NAMES   4
#define OWNERS  2
#define CHANGES 4

/* A row is small: which owner, which name (0: none), and a number that changes. */
struct model_row {
    bool is_there;
    uint32_t owner, name;
    int64_t number;
};

struct model {
    struct model_row rows[IDS];
    int64_t events[IDS]; /* sequence of each stream */
    int64_t cursor;      /* last seen */
};

struct planned {
    struct reply *reply;
    enum err_code code;
    size_t event_count;
    int64_t sequences[CHANGES];
};

static const char *name_of(uint32_t number)
{
    static const char *const names[] = {NULL, "one", "two", "three"};

    return names[number];
}

static const char *owner_of(uint32_t number)
{
    static const char *const owners[] = {"ada", "bob"};

    return owners[number];
}

static bool is_taken(const struct model *model, size_t id, const struct model_row *row)
{
    for (size_t i = 0; i < IDS; i++)
        if (i != id && row->name && model->rows[i].is_there && model->rows[i].name == row->name &&
            model->rows[i].owner == row->owner)
            return true;
    return false;
}

static void add_row(struct store_transaction *change, uint32_t type, const char *id,
                    const struct model_row *row)
{
    static void (*const calls[])(struct store_transaction *, enum store_kind,
                                 const struct store_value *) = {store_insert, store_update,
                                                                store_put};
    struct row values = sandbox_row(id, owner_of(row->owner), name_of(row->name));

    values.values[STORE_SANDBOX_UPDATED] = store_integer(row->number);
    calls[type](change, STORE_SANDBOX, values.values);
}

/* One change in both. Returns what the store must say to it. */
static enum err_code change_both(struct model *model, struct store_transaction *change,
                                 struct planned *planned, uint64_t *random)
{
    size_t at = testing_number(random) % IDS;
    uint32_t type = testing_number(random) % 5;
    char id[2] = {(char) ('a' + at), '\0'};
    struct model_row row = {.is_there = true,
                            .owner = testing_number(random) % OWNERS,
                            .name = testing_number(random) % NAMES,
                            .number = testing_number(random)};

    if (type == 3) {
        struct store_condition key = {STORE_SANDBOX_ID, STORE_EQUAL, store_text(id)};

        store_delete(change, STORE_SANDBOX, &key, 1);
        model->rows[at].is_there = false;
        return ERR_NONE;
    }
    if (type == 4) {
        struct store_event event = event_of(id, 1);

        store_add_event(change, &event);
        planned->sequences[planned->event_count++] = ++model->events[at];
        return ERR_NONE;
    }
    add_row(change, type, id, &row);
    if (type == 0 && model->rows[at].is_there)
        return ERR_CONFLICT;
    if (type == 1 && !model->rows[at].is_there)
        return ERR_NOT_FOUND;
    if (is_taken(model, at, &row))
        return ERR_CONFLICT;
    model->rows[at] = row;
    return ERR_NONE;
}

static void plan_one(struct contract *contract, struct model *model, struct planned *planned,
                     uint64_t *random)
{
    struct store_transaction *change = store_begin(contract->store);
    struct model next = *model;
    uint32_t count = testing_number(random) % CHANGES + 1;

    *planned = (struct planned){.reply = reply_new()};
    while (count-- && planned->code == ERR_NONE)
        planned->code = change_both(&next, change, planned, random);
    if (planned->code == ERR_NONE)
        *model = next;
    store_commit(change, on_done, planned->reply);
}

static void expect_planned(struct model *model, struct planned *planned)
{
    if (planned->code != ERR_NONE) {
        expect_code(planned->reply, planned->code);
    } else {
        expect_ok(planned->reply);
        assert_int_equal(planned->reply->event_count, planned->event_count);
        for (size_t i = 0; i < planned->event_count; i++) {
            assert_int_equal(planned->reply->sequences[i], planned->sequences[i]);
            assert_true(planned->reply->cursors[i] > model->cursor);
            model->cursor = planned->reply->cursors[i];
        }
    }
    reply_free(planned->reply);
}

static void expect_same(struct contract *contract, const struct model *model)
{
    AUTO(reply) struct reply *all = find_all(contract, STORE_SANDBOX, STORE_SANDBOX_ID);
    size_t at = 0;

    for (size_t i = 0; i < IDS; i++) {
        char id[2] = {(char) ('a' + i), '\0'};

        if (!model->rows[i].is_there)
            continue;
        expect_text(all, at, STORE_SANDBOX_ID, id);
        expect_text(all, at, STORE_SANDBOX_OWNER, owner_of(model->rows[i].owner));
        expect_text(all, at, STORE_SANDBOX_NAME, name_of(model->rows[i].name));
        expect_integer(all, at, STORE_SANDBOX_UPDATED, model->rows[i].number);
        at++;
    }
    assert_int_equal(all->row_count, at);
}

static void random_transactions_do_what_a_model_does(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct contract *contract;
        struct model model = {.cursor = 0};
        uint64_t random = seed;

        (void) setup(state);
        contract = *state;
        for (int turn = 0; turn < TURNS; turn++) {
            struct planned planned[12];
            size_t count = testing_number(&random) % ARRAY_COUNT(planned) + 1;

            for (size_t i = 0; i < count; i++)
                plan_one(contract, &model, &planned[i], &random);
            TURN_UNTIL(&contract->loop, planned[count - 1].reply->times);
            for (size_t i = 0; i < count; i++)
                expect_planned(&model, &planned[i]);
            expect_same(contract, &model);
            if (testing_number(&random) % 10 == 0)
                reopen(contract);
        }
        (void) teardown(state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_transactions_do_what_a_model_does),
    };

    return cmocka_run_group_tests_name("store_model", tests, NULL, NULL);
}
