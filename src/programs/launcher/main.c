/* burrow-launcher: the program of root's that stays. Wiring only. */
#include "base/auto.h"
#include "programs/launcher/verb.h"
#include "programs/root/root_verb.h"

static const struct root_verb verbs[] = {
    {"hold", "Keep the systemd unit that sandboxes live in", verb_hold},
    {"once", "Serve one conversation on a given socket", verb_launch},
    {"serve", "Start the daemon, and sandboxes for it", verb_launch},
};

int main(int argc, char **argv)
{
    return root_verb_main("burrow-launcher", verbs, ARRAY_COUNT(verbs), argc, argv);
}
