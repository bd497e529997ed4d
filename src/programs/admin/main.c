/* burrow-admin: what root does to an installation, one verb and gone. It is apart from
 * burrow-launcher so that what stays and is root has none of this code. Wiring only. */
#include "base/auto.h"
#include "programs/admin/verb.h"
#include "programs/root/root_verb.h"

static const struct root_verb verbs[] = {
    {"bind", "Register folders that sandboxes may be shown, read-only", verb_bind},
    {"doctor", "Print what this machine has of what sandboxes need", verb_doctor},
    {"image", "Register folders that sandboxes start from", verb_image},
};

int main(int argc, char **argv)
{
    return root_verb_main("burrow-admin", verbs, ARRAY_COUNT(verbs), argc, argv);
}
