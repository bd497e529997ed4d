/* The end of the domain: called whenever something that it waits for while closing is over. The
 * domain may be gone afterwards. */
#pragma once

struct domain;

void domain_check_gone(struct domain *domain);
