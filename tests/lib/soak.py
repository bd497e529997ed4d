"""How much of what is long or random runs, and from which seed.

    from soak import FULL, SEED

    ROUNDS = 200 if FULL else 20
    rng = random.Random(SEED)                # and print(f"# BURROW_SEED={SEED}")

Every run does the same, so that a failure is one of the change and not of chance. `make soak` looks
farther: BURROW_FULL=1 for all of it, BURROW_SEED=random for other ways every time, or BURROW_SEED=N
for those of an earlier run.
"""

import os
import random

FULL = os.environ.get("BURROW_FULL") == "1"


def _seed(text):
    return random.SystemRandom().randrange(1 << 32) if text == "random" else int(text)


SEED = _seed(os.environ.get("BURROW_SEED", "20261118"))
