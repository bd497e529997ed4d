/* The crash points of the domain (base/crash_point.h): between every two steps whose order matters.
 * Tests kill the daemon at each of them. */
#pragma once

#include <stddef.h>

#define DOMAIN_CRASH_POINTS(X)                                                                     \
    X("domain.create.made")     /* the sandbox is there, its row is not */                         \
    X("domain.create.kept")     /* the row is there, the answer is not */                          \
    X("domain.destroy.kept")    /* the row is gone, the sandbox is not */                          \
    X("domain.destroy.gone")    /* both are gone, the answer was not given */                      \
    X("domain.sleep.frozen")    /* it is frozen, its row says running */                           \
    X("domain.sleep.saved")     /* it runs, its row has its sessions */                            \
    X("domain.sleep.stopped")   /* it was stopped to sleep, its row says running or frozen */      \
    X("domain.wake.thawed")     /* it runs, its row says frozen */                                 \
    X("domain.stop.stopped")    /* it is stopped, its row says running or frozen */                \
    X("domain.start.started")   /* it runs, its row says stopped or hibernated */                  \
    X("offload.stored")         /* its disk is in the object store, its row does not say so */     \
    X("offload.kept")           /* the row says so, the disk is still here */                      \
    X("offload.dropped")        /* the disk is only there */                                       \
    X("restore.fetched")        /* the disk is here again, the row says it is not */               \
    X("restore.copied")         /* and what it is told apart from later, which has no row */       \
    X("restore.kept")           /* the row says that it is here, nothing runs yet */               \
    X("snapshot.store.stored")  /* its layers are in the object store, its row does not say so */  \
    X("snapshot.store.kept")    /* the row says so */                                              \
    X("snapshot.evict.kept")    /* the row says that it is only there, and it is still here */     \
    X("snapshot.evict.deleted") /* it is only there */                                             \
    X("snapshot.fetch.fetched") /* its layers are on a disk that has no row */                     \
    X("snapshot.fetch.copied")  /* it is here again, its row says it is not */                     \
    X("squash.stored")          /* one layer for many is there, the row names the many */          \
    X("squash.kept")            /* the row names the one */                                        \
    X("snapshot.made")          /* the copy is there, its row is not */                            \
    X("snapshot.kept")          /* the row is there, the answer is not */                          \
    X("snapshot.delete.kept")   /* the row is gone, the copy is not */                             \
    X("snapshot.delete.gone")   /* both are gone, the answer was not given */                      \
    X("fork.copied")            /* a copy in passing is there, no fork is */                       \
    X("fork.one")               /* some forks are there, others are not */                         \
    X("fork.kept")              /* all are there, the answer is not */                             \
    X("rollback.stopped")       /* it is stopped, its row says running */                          \
    X("rollback.saved")         /* the present is kept, the disk is as it was */                   \
    X("rollback.rolled")        /* the disk is the old one, the sandbox is stopped */              \
    X("rollback.started")       /* it runs on the old disk, the answer was not given */            \
    X("turn.queued")            /* the turn has a row, nothing was done for it */                  \
    X("turn.marked")            /* its row says that it is sent, and it is not */                  \
    X("turn.sent")              /* its agent has it */                                             \
    X("turn.asked")             /* its agent asks, the row of that is not there yet */             \
    X("turn.ended")             /* its end is kept, nobody was told */                             \
    X("task.kept")              /* the task has a row, nothing was done for it */                  \
    X("task.sandbox.made")      /* its sandbox is there, its row does not say so */                \
    X("task.sandbox.kept")      /* the row says so */                                              \
    X("task.turn.made")         /* its turn is there, its row does not say so */                   \
    X("task.turn.kept")         /* the row says so */                                              \
    X("task.ended")             /* its end is kept, its sandbox is not cleaned up */               \
    X("team.kept")              /* the team and its members have rows */                           \
    X("team.base.made")         /* the sandbox of its checkout is there, its row is not */         \
    X("team.base.kept")         /* the checkout is there, no member has begun */                   \
    X("schedule.task.made")     /* its task is there, its next time is not */

/* All names, NULL behind the last. */
#define X(name) name,
static const char *const domain_crash_points[] = {DOMAIN_CRASH_POINTS(X) NULL};
#undef X
