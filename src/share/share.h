/* Fair shares: who holds how much of what all users of a daemon share (share.def).
 *
 * Whoever takes something of a row claims it first and releases the claim when it is given back:
 *
 *     struct share_claim claim = SHARE_CLAIM_NONE;
 *     if (share_claim(shares, &asker, SHARE_EVENT_STREAMS, 1, &claim, err) < 0)
 *         return -1;                       // says what is taken, by whom, and what to do
 *     ...
 *     share_release(&claim);
 *
 * Three things can refuse a claim: the owner holds as much as one may (ERR_QUOTA, 429), all
 * together do (ERR_UNAVAILABLE, 503), or the daemon's descriptors are spent (both). A part of
 * everything is a reserve that only administrators and the daemon itself may use, so that whatever
 * tenants do, requests are accepted, sandboxes are planned and an administrator gets in.
 *
 * Not thread-safe: of the loop's thread alone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/id.h"
#include "base/text.h"

#define SHARE_MB (UINT64_C(1) << 20)
#define SHARE_GB (UINT64_C(1) << 30)

enum share_unit { SHARE_COUNT, SHARE_BYTES };

#include "share/share.def"

#define SHARE_CONSTANT(constant, name, unit, own, all, reserve, descriptors, what, remedy) constant,
enum share { SHARE_ROWS(SHARE_CONSTANT) SHARE_ROW_COUNT };
#undef SHARE_CONSTANT

struct share_row {
    const char *name, *what, *remedy;
    enum share_unit unit;
    uint64_t of_one, of_all, reserve;
    uint32_t descriptors;
};

extern const struct share_row share_rows[SHARE_ROW_COUNT];

struct shares; /* the books of one daemon */
struct share_account;

/* For whom something is claimed. An empty id is the daemon itself. */
struct share_asker {
    struct id owner;
    bool may_use_reserve; /* administrators and the daemon: held by the row's end alone */
    uint64_t storage_max; /* of SHARE_STORAGE, whoever he is; 0: no limit of his own */
    bool is_bare;         /* only his id is known: if he has an account, its limits stay */
};

/* A part of one row, in somebody's books; in his memory, never copied. */
struct share_claim {
    struct share_account *account; /* NULL: nothing is held */
    enum share share;
    uint64_t amount;
};

#define SHARE_CLAIM_NONE                                                                           \
    {                                                                                              \
        .account = NULL                                                                            \
    }

/* `descriptors`: how many the daemon may have open; an eighth of them, 256 at least, is the
 * reserve, and nobody gets more than half of the rest. */
struct shares *shares_new(uint64_t descriptors);
/* Claims may be left: they must not be released afterwards. */
void shares_free(struct shares *shares);

/* Another number for what one owner may hold; 0 is no limit but the row's own end. `text` is
 * "event_streams=128,templates=0"; ERR_INVALID names what is wrong and lists the rows. */
int shares_set_limits(struct shares *shares, const char *text, struct error *err);

/* `ret_claim` must hold nothing. `shares` may be NULL, as in tests: then nothing is counted.
 * ERR_QUOTA or ERR_UNAVAILABLE, see above; then it holds nothing. */
int share_claim(struct shares *shares, const struct share_asker *asker, enum share share,
                uint64_t amount, struct share_claim *ret_claim, struct error *err);

/* What is there already, as after a restart: counted, never refused. */
void share_claim_anyway(struct shares *shares, const struct share_asker *asker, enum share share,
                        uint64_t amount, struct share_claim *ret_claim);

/* More or less of what is held; of a claim that holds nothing, nothing. Less is never refused; when
 * more is, it stays as it was. */
int share_claim_resize(struct share_claim *claim, uint64_t amount, struct error *err);
/* What it turned out to be: never refused. */
void share_claim_set(struct share_claim *claim, uint64_t amount);

/* Give back; a claim that holds nothing is fine. */
void share_release(struct share_claim *claim);

/* The same for what is kept as a row that nobody has in memory: whoever keeps it remembers how much
 * it was, and says so when it goes. */
int share_hold(struct shares *shares, const struct share_asker *asker, enum share share,
               uint64_t amount, struct error *err);
void share_hold_anyway(struct shares *shares, const struct share_asker *asker, enum share share,
                       uint64_t amount);
void share_drop(struct shares *shares, const struct id *owner, enum share share, uint64_t amount);

/* He may have other limits from now on. */
void share_note(struct shares *shares, const struct share_asker *asker);

/* What one owner holds of a row; and how much all do. NULL holds nothing. */
uint64_t shares_held(const struct shares *shares, const struct id *owner, enum share share);
uint64_t shares_held_by_all(const struct shares *shares, enum share share);

/* Gauges in Prometheus' format: held by all, by who holds most, limits, and what was refused. */
void shares_write_metrics(const struct shares *shares, struct text *out);

/* The rows as a table in Markdown, for the docs. */
void shares_write_table(struct text *out);
