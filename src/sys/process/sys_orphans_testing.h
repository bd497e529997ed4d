/* For tests only: who lost its parent is waited for at once. The first process of a container may
 * take seconds for that, and all the while the dead look alive to those who watch them. */
#pragma once

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* First of all in main: the test goes on in a child, and its end is ours. */
static inline void orphans_adopt(void)
{
    pid_t parent = getpid(), child;
    int status = 0, ended = 0;
    pid_t one;

    if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0 || (child = fork()) < 0)
        return; /* then it takes longer */
    if (child == 0) {
        if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent)
            _exit(127);
        return;
    }
    while ((one = wait(&status)) > 0 && one != child)
        ;
    ended = status;
    /* Those that are left are on their way out, or the runner finds them. */
    while (waitpid(-1, &status, WNOHANG) > 0)
        ;
    exit(one == child && WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended));
}
