#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/auto.h"
#include "sys/file/sys_disk_room.h"
#include "sys/file/sys_file.h"
/* After the headers they need. */
#include <cmocka.h>

static void what_leaves_the_floor_free_is_let_through(void **state)
{
    AUTO(close) int folder = sys_file_open(AT_FDCWD, "/tmp", O_RDONLY | O_DIRECTORY, 0);
    struct statvfs disk;
    uint64_t size, room;

    (void) state;
    assert_true(folder >= 0);
    assert_int_equal(fstatvfs(folder, &disk), 0);
    size = (uint64_t) disk.f_blocks * disk.f_frsize;
    room = (uint64_t) disk.f_bavail * disk.f_frsize;
    if (room < size / SYS_DISK_ROOM_PART) {
        print_message("# skip: the disk of /tmp is nearly full\n");
        skip();
    }
    assert_int_equal(sys_disk_room_check(folder, 1, 0), 0);
    assert_int_equal(sys_disk_room_check(folder, 1, size), -ENOSPC);
    assert_int_equal(sys_disk_room_check(folder, 0, size), 0);
    /* However high the floor is, a part of the disk is all that stays free. */
    assert_int_equal(sys_disk_room_check(folder, UINT64_MAX, 0), 0);
    assert_int_equal(sys_disk_room_check(folder, UINT64_MAX, room), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_leaves_the_floor_free_is_let_through),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
