/* What an archive leaves out: excludes of a client, and what git would ignore.
 *
 * An exclude is one or more names with wildcards, as mksquashfs -wildcards has them:
 * "node_modules",
 * "*.log", "a/b*". It names the last names of a path, at any depth; a folder that is named is left
 * out with all that is in it. What gitignore writes for any depth ("**" as a step, "/" in front)
 * may stand there and means nothing. '*' does not match hidden files. Extended patterns like
 * "@(a|b)" are refused, here alone; a pattern that would name everything is, too.
 *
 * gitignore, when asked for: all .gitignore files on the way, as git reads them (nested, negated,
 * anchored, for folders only), and .git/info/exclude; the last rule of the innermost file counts.
 * As in git they end at the folder of another work tree, one with ".git" in it, which has rules of
 * its own, and what is in ".git" is never ignored. Unlike git these rules know no index: a file
 * that is tracked and ignored is left out.
 *
 * Paths are given as from the first folder that was entered. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/auto.h"
#include "base/error.h"

/* The largest file of rules, and the memory that all rules of a path take. */
#define IGNORE_FILE_MAX   ((size_t) 1 << 20)
#define IGNORE_MEMORY_MAX ((size_t) 64 << 20)

struct ignore_rules;

struct ignore_rules *ignore_rules_new(bool gitignore);

/* Accepts NULL. */
void ignore_rules_free(struct ignore_rules *rules);

AUTO_DEFINE_PTR(ignore_rules, struct ignore_rules, ignore_rules_free);

/* Add a client's exclude. 0, or -1 with ERR_INVALID and the reason. */
int ignore_rules_exclude(struct ignore_rules *rules, const char *pattern, struct error *err);

/* We are in a folder now, which lies at `path` ("" at first) and is open as `folder`. Reads its
 * rules if gitignore was asked for. 0, or -1 with `err`: ERR_TOO_LARGE, or a file that cannot be
 * read. */
int ignore_rules_enter(struct ignore_rules *rules, int folder, const char *path, struct error *err);
void ignore_rules_leave(struct ignore_rules *rules);

/* The folder entered last is the top of the archive, from which excludes count. */
void ignore_rules_begin(struct ignore_rules *rules);

/* Whether the folder has ".git" in it. */
bool ignore_rules_is_work_tree(int folder);

/* Whether to leave out what is at `path`, in the folder that was entered last. */
bool ignore_rules_match(const struct ignore_rules *rules, const char *path, bool is_folder);
