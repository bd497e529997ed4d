#include "share/share.h"

#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/list.h"
#include "base/memory.h"
#include "base/number.h"
#include "base/table.h"

#define DESCRIPTORS_RESERVE_MIN 256
#define LIMIT_NAME_MAX          64

#define SHARE_ROW(constant, name_, unit_, own, all, reserve_, descriptors_, what_, remedy_)        \
    [constant] = {.name = (name_),                                                                 \
                  .what = (what_),                                                                 \
                  .remedy = (remedy_),                                                             \
                  .unit = (unit_),                                                                 \
                  .of_one = (own),                                                                 \
                  .of_all = (all),                                                                 \
                  .reserve = (reserve_),                                                           \
                  .descriptors = (descriptors_)},
const struct share_row share_rows[SHARE_ROW_COUNT] = {SHARE_ROWS(SHARE_ROW)};
#undef SHARE_ROW

/* What one owner holds. It is there as long as he holds a claim. */
struct share_account {
    struct table_link by_owner;
    struct list link;
    struct shares *shares;
    struct share_asker asker;
    size_t claims;
    uint64_t descriptors;
    uint64_t held[SHARE_ROW_COUNT];
};

struct shares {
    struct table accounts;
    struct list all;
    uint64_t seed;
    uint64_t descriptor_limit, descriptors;
    uint64_t of_one[SHARE_ROW_COUNT]; /* 0: no limit */
    uint64_t held[SHARE_ROW_COUNT];
    uint64_t refused[SHARE_ROW_COUNT];
};

struct shares *shares_new(uint64_t descriptors)
{
    struct shares *shares = mem_alloc(sizeof(*shares));

    list_init(&shares->all);
    random_bytes(&shares->seed, sizeof(shares->seed));
    shares->descriptor_limit = descriptors;
    for (int row = 0; row < SHARE_ROW_COUNT; row++)
        shares->of_one[row] = share_rows[row].of_one;
    return shares;
}

void shares_free(struct shares *shares)
{
    if (!shares)
        return;
    LIST_EACH (&shares->all, at)
        free(CONTAINER_OF(at, struct share_account, link));
    table_done(&shares->accounts);
    free(shares);
}

/* --- accounts -------------------------------------------------------------------------------- */

static struct share_account *account_find(const struct shares *shares, const struct id *owner)
{
    uint64_t hash = table_hash(shares->seed, owner->text, strlen(owner->text));

    for (struct table_link *at = table_find(&shares->accounts, hash); at; at = table_next(at)) {
        struct share_account *account = CONTAINER_OF(at, struct share_account, by_owner);

        if (strcmp(account->asker.owner.text, owner->text) == 0)
            return account;
    }
    return NULL;
}

/* The account is given what it has none of: claims. Whoever asks must add one or drop it. */
static struct share_account *account_open(struct shares *shares, const struct share_asker *asker)
{
    struct share_account *account = account_find(shares, &asker->owner);

    if (!account) {
        account = mem_alloc(sizeof(*account));
        account->shares = shares;
        account->by_owner.hash =
            table_hash(shares->seed, asker->owner.text, strlen(asker->owner.text));
        table_add(&shares->accounts, &account->by_owner);
        list_append(&shares->all, &account->link);
    }
    if (!asker->is_bare || !*account->asker.owner.text)
        account->asker = *asker; /* he may have become an administrator, or stopped being one */
    return account;
}

static void account_drop_unused(struct share_account *account)
{
    if (account->claims > 0)
        return;
    for (int row = 0; row < SHARE_ROW_COUNT; row++)
        if (account->held[row] > 0)
            return;
    table_remove(&account->shares->accounts, &account->by_owner);
    list_remove(&account->link);
    free(account);
}

/* Both books; `more` may be negative, as unsigned numbers are. */
static void account_add(struct share_account *account, enum share share, uint64_t more)
{
    uint64_t descriptors = more * share_rows[share].descriptors;

    account->held[share] += more;
    account->descriptors += descriptors;
    account->shares->held[share] += more;
    account->shares->descriptors += descriptors;
}

/* --- what refuses ---------------------------------------------------------------------------- */

static const char *share_number(enum share_unit unit, uint64_t value,
                                char text[static NUMBER_TEXT_SIZE])
{
    if (unit == SHARE_BYTES)
        number_format_size(value, text);
    else
        (void) number_format_unsigned(value, text);
    return text;
}

static bool share_fits(uint64_t held, uint64_t more, uint64_t limit)
{
    return held <= limit && more <= limit - held;
}

static int share_refuse_one(const struct share_account *account, enum share share, uint64_t limit,
                            struct error *err)
{
    const struct share_row *row = &share_rows[share];
    char held[NUMBER_TEXT_SIZE], most[NUMBER_TEXT_SIZE];

    return error_set(err, ERR_QUOTA, 0, "%s: %s of at most %s %s are yours already; %s", row->name,
                     share_number(row->unit, account->held[share], held),
                     share_number(row->unit, limit, most), row->what, row->remedy);
}

static int share_refuse_all(enum share share, uint64_t limit, struct error *err)
{
    const struct share_row *row = &share_rows[share];
    char most[NUMBER_TEXT_SIZE];

    return error_set(err, ERR_UNAVAILABLE, 0,
                     "%s: all %s %s that there may be here are taken; try again later", row->name,
                     share_number(row->unit, limit, most), row->what);
}

static int account_check_descriptors(const struct share_account *account,
                                     const struct share_row *row, uint64_t more, struct error *err)
{
    const struct shares *shares = account->shares;
    uint64_t eighth = shares->descriptor_limit / 8;
    uint64_t reserve = eighth > DESCRIPTORS_RESERVE_MIN ? eighth : DESCRIPTORS_RESERVE_MIN;
    uint64_t room = shares->descriptor_limit > reserve ? shares->descriptor_limit - reserve : 0;
    uint64_t wanted = more * row->descriptors;

    if (wanted == 0)
        return 0;
    if (!account->asker.may_use_reserve && !share_fits(account->descriptors, wanted, room / 2))
        return error_set(err, ERR_QUOTA, 0,
                         "descriptors: %llu of at most %llu are yours already; close something",
                         (unsigned long long) account->descriptors,
                         (unsigned long long) (room / 2));
    if (account->asker.may_use_reserve)
        room += reserve / 2; /* the other half is the daemon's, which claims nothing */
    if (!share_fits(shares->descriptors, wanted, room))
        return error_set(err, ERR_UNAVAILABLE, 0,
                         "descriptors: all %llu that there may be here are taken; try again later",
                         (unsigned long long) room);
    return 0;
}

static uint64_t share_limit_of(const struct share_account *account, enum share share)
{
    uint64_t of_one = account->asker.may_use_reserve ? 0 : account->shares->of_one[share];

    return share == SHARE_STORAGE && account->asker.storage_max ? account->asker.storage_max
                                                                : of_one;
}

static int account_check(const struct share_account *account, enum share share, uint64_t more,
                         struct error *err)
{
    const struct share_row *row = &share_rows[share];
    uint64_t of_one = share_limit_of(account, share);
    uint64_t of_all = row->of_all - (account->asker.may_use_reserve ? 0 : row->reserve);

    if (of_one != 0 && !share_fits(account->held[share], more, of_one))
        return share_refuse_one(account, share, of_one, err);
    if (row->of_all != 0 && !share_fits(account->shares->held[share], more, of_all))
        return share_refuse_all(share, of_all, err);
    return account_check_descriptors(account, row, more, err);
}

/* --- claims ---------------------------------------------------------------------------------- */

static void claim_begin(struct share_account *account, enum share share, uint64_t amount,
                        struct share_claim *claim)
{
    account->claims++;
    account_add(account, share, amount);
    *claim = (struct share_claim){.account = account, .share = share, .amount = amount};
}

int share_claim(struct shares *shares, const struct share_asker *asker, enum share share,
                uint64_t amount, struct share_claim *ret_claim, struct error *err)
{
    struct share_account *account;

    if (!shares)
        return 0;
    account = account_open(shares, asker);
    if (account_check(account, share, amount, err) < 0) {
        shares->refused[share]++;
        account_drop_unused(account);
        return -1;
    }
    claim_begin(account, share, amount, ret_claim);
    return 0;
}

void share_claim_anyway(struct shares *shares, const struct share_asker *asker, enum share share,
                        uint64_t amount, struct share_claim *ret_claim)
{
    if (shares)
        claim_begin(account_open(shares, asker), share, amount, ret_claim);
}

int share_claim_resize(struct share_claim *claim, uint64_t amount, struct error *err)
{
    struct share_account *account = claim->account;

    if (!account)
        return 0;
    if (amount > claim->amount &&
        account_check(account, claim->share, amount - claim->amount, err) < 0) {
        account->shares->refused[claim->share]++;
        return -1;
    }
    account_add(account, claim->share, amount - claim->amount);
    claim->amount = amount;
    return 0;
}

void share_claim_set(struct share_claim *claim, uint64_t amount)
{
    if (!claim->account)
        return;
    account_add(claim->account, claim->share, amount - claim->amount);
    claim->amount = amount;
}

void share_release(struct share_claim *claim)
{
    struct share_account *account = claim->account;

    if (!account)
        return;
    account_add(account, claim->share, 0 - claim->amount);
    account->claims--;
    account_drop_unused(account);
    *claim = (struct share_claim) SHARE_CLAIM_NONE;
}

/* What it holds stays in the books, in nobody's memory. */
static void claim_forget(struct share_claim *claim)
{
    if (!claim->account)
        return;
    claim->account->claims--;
    account_drop_unused(claim->account);
}

int share_hold(struct shares *shares, const struct share_asker *asker, enum share share,
               uint64_t amount, struct error *err)
{
    struct share_claim claim = SHARE_CLAIM_NONE;

    if (share_claim(shares, asker, share, amount, &claim, err) < 0)
        return -1;
    claim_forget(&claim);
    return 0;
}

void share_hold_anyway(struct shares *shares, const struct share_asker *asker, enum share share,
                       uint64_t amount)
{
    struct share_claim claim = SHARE_CLAIM_NONE;

    share_claim_anyway(shares, asker, share, amount, &claim);
    claim_forget(&claim);
}

void share_drop(struct shares *shares, const struct id *owner, enum share share, uint64_t amount)
{
    struct share_account *account = shares ? account_find(shares, owner) : NULL;

    if (!account)
        return;
    account_add(account, share,
                0 - (amount < account->held[share] ? amount : account->held[share]));
    account_drop_unused(account);
}

void share_note(struct shares *shares, const struct share_asker *asker)
{
    struct share_account *account = shares ? account_find(shares, &asker->owner) : NULL;

    if (account)
        account->asker = *asker;
}

uint64_t shares_held(const struct shares *shares, const struct id *owner, enum share share)
{
    const struct share_account *account = shares ? account_find(shares, owner) : NULL;

    return account ? account->held[share] : 0;
}

uint64_t shares_held_by_all(const struct shares *shares, enum share share)
{
    return shares->held[share];
}

/* --- limits of the operator's ---------------------------------------------------------------- */

static int share_named(const char *name, enum share *ret_share, struct error *err)
{
    AUTO(text) struct text names = TEXT_INIT(1024);

    for (int row = 0; row < SHARE_ROW_COUNT; row++) {
        if (strcmp(share_rows[row].name, name) == 0) {
            *ret_share = (enum share) row;
            return 0;
        }
        text_format(&names, "%s%s", row ? ", " : "", share_rows[row].name);
    }
    return error_set(err, ERR_INVALID, 0, "there is no share '%s'; there are: %s", name,
                     text_string(&names));
}

/* `entry` is "templates=20" or "spool_bytes=1G". */
static int share_set_limit(struct shares *shares, char *entry, struct error *err)
{
    char *equals = strchr(entry, '=');
    enum share share;

    if (!equals)
        return error_set(err, ERR_INVALID, 0, "'%s' must be NAME=NUMBER", entry);
    *equals = '\0';
    if (share_named(entry, &share, err) < 0)
        return -1;
    if (number_parse_size(equals + 1, INT64_MAX, &shares->of_one[share]) < 0)
        return error_set(err, ERR_INVALID, 0, "%s must be a number, such as 64%s; not '%s'", entry,
                         share_rows[share].unit == SHARE_BYTES ? "M" : "", equals + 1);
    return 0;
}

int shares_set_limits(struct shares *shares, const char *text, struct error *err)
{
    AUTO(free) char *copy = mem_copy_text(text);
    char *rest = copy, *entry;

    while ((entry = strsep(&rest, ",")))
        if (*entry && share_set_limit(shares, entry, err) < 0)
            return -1;
    return 0;
}

/* --- what is seen of it ---------------------------------------------------------------------- */

static uint64_t share_held_by_most(const struct shares *shares, enum share share)
{
    uint64_t most = 0;

    LIST_EACH (&shares->all, at) {
        const struct share_account *account = CONTAINER_OF(at, struct share_account, link);

        if (account->held[share] > most)
            most = account->held[share];
    }
    return most;
}

void shares_write_metrics(const struct shares *shares, struct text *out)
{
    static const struct {
        const char *name, *type, *help;
    } heads[] = {
        {"burrow_share_held", "gauge", "What all owners hold of what they share."},
        {"burrow_share_most", "gauge", "What the owner holds who has most of it."},
        {"burrow_share_limit_of_one", "gauge", "How much of it one user may hold; 0: no limit."},
        {"burrow_share_limit", "gauge", "How much of it there may be; 0: no limit."},
        {"burrow_share_refused_total", "counter", "How often it was refused."},
    };

    for (size_t i = 0; i < ARRAY_COUNT(heads); i++) {
        text_format(out, "# HELP %s %s\n# TYPE %s %s\n", heads[i].name, heads[i].help,
                    heads[i].name, heads[i].type);
        for (int row = 0; row < SHARE_ROW_COUNT; row++) {
            const uint64_t values[ARRAY_COUNT(heads)] = {
                shares->held[row], share_held_by_most(shares, (enum share) row),
                shares->of_one[row], share_rows[row].of_all, shares->refused[row]};

            text_format(out, "%s{share=\"%s\"} %llu\n", heads[i].name, share_rows[row].name,
                        (unsigned long long) values[i]);
        }
    }
    text_format(out,
                "# HELP burrow_share_descriptors Descriptors held by what owners hold.\n"
                "# TYPE burrow_share_descriptors gauge\nburrow_share_descriptors %llu\n",
                (unsigned long long) shares->descriptors);
}

static void share_text_of(const struct share_row *row, uint64_t value, struct text *out)
{
    char number[NUMBER_TEXT_SIZE];

    if (value == 0)
        text_append(out, " – |");
    else
        text_format(out, " %s |", share_number(row->unit, value, number));
}

void shares_write_table(struct text *out)
{
    text_append(out,
                "| share | what | of one user | of all | kept back |\n|---|---|--:|--:|--:|\n");
    for (int i = 0; i < SHARE_ROW_COUNT; i++) {
        const struct share_row *row = &share_rows[i];

        text_format(out, "| `%s` | %s |", row->name, row->what);
        share_text_of(row, row->of_one, out);
        share_text_of(row, row->of_all, out);
        share_text_of(row, row->reserve, out);
        text_append(out, "\n");
    }
}
