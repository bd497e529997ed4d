"""The agent that most tests of a file ask, for what several files share.

    from shared import SHARED

    @test
    def something_is_answered():
        SHARED.run("true")                  # whatever the agent can

    with Agent() as AGENT:
        SHARED.stand_for(AGENT)
        main()
"""


class Shared:
    def __init__(self):
        self._agent = None

    def stand_for(self, agent):
        self._agent = agent

    def __getattr__(self, name):
        return getattr(self._agent, name)


SHARED = Shared()
