/* burrow-attack-inside: attempts at what a sandbox must not do (attack/attack.h). */
#include "attack/attack.h"

int main(int argc, char **argv)
{
    return attack_main(argc, argv);
}
