/* Backups in JSON: what dialects that speak of them have in common. */
#pragma once

#include "domain/backup/backup.h"
#include "json/json_read.h"
#include "json/json_write.h"

/* {"dir","name","ttl","gitignore" or "useGitignore","excludes","compression"}, all of them
 * optional. ttl is in seconds, or (as text) "3d". Borrows from the body and the pool. */
int backup_body_read(const struct json_place *body, struct pool *pool, struct backup_spec *ret_spec,
                     struct error *err);

/* The handle of one: {"id","dir"}, or its id as text. `*ret_dir` may be NULL. */
int backup_body_read_handle(const struct json_place *body, const char *key, const char **ret_id,
                            const char **ret_dir, struct error *err);

/* {"id","dir","name","sizeBytes","ttl","createdAt","expiresAt","sandboxId"}, and "pauseMs" of one
 * that was made just now. */
void backup_body_write(struct json_writer *json, const struct backup *backup, bool is_new);
