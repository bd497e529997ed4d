#include "agent/backup/backup_service.h"

#include "agent/backup/backup_upload_request.h"
#include "base/auto.h"

static const struct operation rows[] = {
    {.method = "POST",
     .path = "/api/backup/create",
     .rpc = "backup.createArchive",
     .parameters = {"dir", "archivePath", "sessionId", OPERATION_FIELDS},
     .run = backup_create_run,
     .name = "backup.create",
     .summary = "Archive a folder",
     .starts_work = true},
    {.method = "POST",
     .path = "/api/backup/restore",
     .rpc = "backup.restoreArchive",
     .parameters = {"dir", "archivePath", "sessionId"},
     .run = backup_restore_run,
     .name = "backup.restore",
     .summary = "Give a folder the content of an archive",
     .starts_work = true},
    {.method = "POST",
     .path = "/api/backup/upload-parts",
     .rpc = "backup.uploadParts",
     .parameters = {OPERATION_FIELDS},
     .run = backup_upload_run,
     .name = "backup.upload",
     .summary = "Send parts of an archive to presigned URLs",
     .body_limit = BACKUP_UPLOAD_BODY_MAX,
     .starts_work = true},
};

const struct operation_table backup_operations = {rows, ARRAY_COUNT(rows)};
