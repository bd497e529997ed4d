/* The inspection: what rows promise against what is really there. `burrow fsck`.
 *
 *     sandboxes, snapshots ──► the provider: disks, snapshots
 *     what they name ──► rows of layers
 *     layers, backups, workspaces ──► objects: there, of that size and sum; deep: every byte is
 * read objects ──► rows
 *
 * It looks and changes nothing. What is missing or other than it was is lost; what is there and
 * belongs to nobody is garbage, which is no loss: recovery, the collector or the owner of the thing
 * takes it away.
 *
 * Others go on meanwhile, so what looks lost is looked at again before it is told: snapshots are
 * asked for twice, and a row whose disk or object is missing is read once more. Those are there
 * before their rows and go after them, so a row that is still there then has lost it.
 * Snapshots of something that is under way have no row, either; they are judged only when nothing
 * is.
 *
 * Memory is bounded: pages of rows and of keys, a few objects at once, in pieces. */
#pragma once

#include "domain/domain.h"

#define FINDING_DETAIL_MAX 256

enum finding_kind { FINDING_LOST, FINDING_GARBAGE };

struct finding {
    enum finding_kind kind;
    const char *what; /* "sandbox", "disk", "snapshot", "layer", "backup", "workspace", "object" */
    const char *name; /* id, "<owner>/<id>" of a layer, key of an object */
    const char *detail;
};

struct inspected {
    uint64_t sandboxes, snapshots, layers, backups, workspaces, objects; /* looked at */
    uint64_t bytes;                                                      /* read, of a deep one */
    uint64_t lost, garbage;
};

/* Borrowed for the call. */
typedef void inspection_found(void *context, const struct finding *finding);
typedef void inspection_done(void *context, const struct error *failure,
                             const struct inspected *inspected);

/* Answered once, from the loop, behind all findings. What is not here (somewhere to run sandboxes,
 * an object store) is not looked at. ERR_UNAVAILABLE: one is under way already, or what has to be
 * asked does not answer; findings that were told before hold. */
void inspection_run(struct domain *domain, bool is_deep, inspection_found *found,
                    inspection_done *done, void *context);
