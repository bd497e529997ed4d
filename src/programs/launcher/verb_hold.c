/* burrow-launcher hold: the one process that is always in burrow-sandboxes.service.
 *
 * Sandboxes outlive the launcher, so they cannot live in its unit (launcher/cgroup/cgroup_host.h).
 * They have one of their own, and systemd takes the group of a unit away when nobody is in it: so
 * somebody has to be. It sits in a leaf, because a group with processes passes on no controllers,
 * and is there before the unit counts as started (Type=forking). */
#include <stdio.h>
#include <unistd.h>

#include "launcher/cgroup/cgroup_host.h"
#include "launcher/site.h"
#include "programs/launcher/verb.h"
#include "programs/root/root_verb.h"

int verb_hold(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    pid_t pid;

    if (argc > 1 || !root_verb_is_allowed(argv[0])) {
        (void) fprintf(stderr, "usage: burrow-launcher hold\n");
        return ROOT_VERB_REFUSED;
    }
    if (cgroup_host_step_aside(SITE_CGROUP_DEFAULT, &err) < 0) {
        (void) fprintf(stderr, "burrow-launcher hold: %s\n", err.message);
        return 1;
    }
    pid = fork();
    if (pid < 0)
        perror("burrow-launcher hold: fork");
    if (pid != 0)
        return pid < 0;
    for (;;)
        (void) pause();
}
