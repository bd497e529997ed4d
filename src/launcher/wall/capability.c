#include "launcher/wall/capability.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/auto.h"

#define CAPABILITY_BIT(number) (UINT64_C(1) << (number))
#define CAPABILITY_END         64 /* of the kernel's two words */

static const struct capability_row rows[] = {
    {"chown", CAP_CHOWN, true, "install and unpack files for other users of the sandbox"},
    {"dac_override", CAP_DAC_OVERRIDE, true, "root reads and writes the sandbox's files"},
    {"dac_read_search", CAP_DAC_READ_SEARCH, false, "dac_override does it; this opens handles too"},
    {"fowner", CAP_FOWNER, true, "root changes modes and times of the sandbox's files"},
    {"fsetid", CAP_FSETID, true, "installers keep set-id bits; they gain nothing when run"},
    {"kill", CAP_KILL, true, "root ends other users' processes"},
    {"setgid", CAP_SETGID, true, "su, services that change their user"},
    {"setuid", CAP_SETUID, true, "su, services that change their user"},
    {"setpcap", CAP_SETPCAP, true, "services that give up even more"},
    {"linux_immutable", CAP_LINUX_IMMUTABLE, false, "files that cannot be deleted"},
    {"net_bind_service", CAP_NET_BIND_SERVICE, true, "servers on ports below 1024"},
    {"net_broadcast", CAP_NET_BROADCAST, false, "unused by the kernel"},
    {"net_admin", CAP_NET_ADMIN, false, "addresses, routes, packet filter: ours; much kernel code"},
    {"net_raw", CAP_NET_RAW, false, "forged packets"},
    {"ipc_lock", CAP_IPC_LOCK, false, "locked memory beyond the limit"},
    {"ipc_owner", CAP_IPC_OWNER, false, "nothing needs it"},
    {"sys_module", CAP_SYS_MODULE, false, "the kernel"},
    {"sys_rawio", CAP_SYS_RAWIO, false, "the machine"},
    {"sys_chroot", CAP_SYS_CHROOT, true, "package builders, servers that confine themselves"},
    {"sys_ptrace", CAP_SYS_PTRACE, false, "would open PID 1; own processes need it not"},
    {"sys_pacct", CAP_SYS_PACCT, false, "the kernel"},
    {"sys_admin", CAP_SYS_ADMIN, false, "mounts, namespaces and hundreds of other things"},
    {"sys_boot", CAP_SYS_BOOT, false, "reboot would end the sandbox behind our back"},
    {"sys_nice", CAP_SYS_NICE, false, "would change PID 1 and run before everybody"},
    {"sys_resource", CAP_SYS_RESOURCE, false, "would lift limits, quotas and namespace shares"},
    {"sys_time", CAP_SYS_TIME, false, "the clock is everybody's"},
    {"sys_tty_config", CAP_SYS_TTY_CONFIG, false, "terminals that others share"},
    {"mknod", CAP_MKNOD, false, "no use in a user namespace; pipes need it not"},
    {"lease", CAP_LEASE, false, "holds up others' opens"},
    {"audit_write", CAP_AUDIT_WRITE, false, "the host's log"},
    {"audit_control", CAP_AUDIT_CONTROL, false, "the host's log"},
    {"setfcap", CAP_SETFCAP, false, "file capabilities are inert here"},
    {"mac_override", CAP_MAC_OVERRIDE, false, "the host's rules"},
    {"mac_admin", CAP_MAC_ADMIN, false, "the host's rules"},
    {"syslog", CAP_SYSLOG, false, "the host's kernel log"},
    {"wake_alarm", CAP_WAKE_ALARM, false, "the machine"},
    {"block_suspend", CAP_BLOCK_SUSPEND, false, "the machine"},
    {"audit_read", CAP_AUDIT_READ, false, "the host's log"},
    {"perfmon", CAP_PERFMON, false, "counters reveal other tenants"},
    {"bpf", CAP_BPF, false, "programs in the kernel"},
    {"checkpoint_restore", CAP_CHECKPOINT_RESTORE, false, "choosing process ids"},
};

const struct capability_row *capability_rows(size_t *ret_count)
{
    *ret_count = ARRAY_COUNT(rows);
    return rows;
}

uint64_t capability_kept(void)
{
    uint64_t kept = 0;

    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (rows[i].kept)
            kept |= CAPABILITY_BIT(rows[i].number);
    return kept;
}

uint64_t capability_bit(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return CAPABILITY_BIT(rows[i].number);
    return 0;
}

/* Also those that a newer kernel has beyond our table: it ends them with EINVAL. Who may not drop
 * any may still be without this one. */
static int reduce_bounding_set(uint64_t kept)
{
    for (unsigned int number = 0; number < CAPABILITY_END; number++) {
        int error;

        if (kept & CAPABILITY_BIT(number) || prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0)
            continue;
        error = errno;
        if (error == EINVAL)
            return 0;
        if (prctl(PR_CAPBSET_READ, number, 0, 0, 0) != 0)
            return -error;
    }
    return 0;
}

static int reduce_own_sets(uint64_t kept)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, sets) < 0)
        return -errno;
    for (unsigned int word = 0; word < _LINUX_CAPABILITY_U32S_3; word++) {
        sets[word].permitted &= (uint32_t) (kept >> (32 * word));
        sets[word].effective = sets[word].permitted;
        sets[word].inheritable = 0;
    }
    return syscall(SYS_capset, &header, sets) < 0 ? -errno : 0;
}

int capability_confine(uint64_t kept)
{
    /* The bounding set first: dropping from it needs CAP_SETPCAP. */
    int result = reduce_bounding_set(kept);

    if (result < 0)
        return result;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0)
        return -errno;
    return reduce_own_sets(kept);
}
