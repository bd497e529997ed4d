/* debian.sh, which is made a part of the program when that is built. */
#pragma once

extern const char debian_recipe[];
