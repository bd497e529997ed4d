/* What routes of AgentPod ask of the domain that agentpod_test does not ask for: agents, tasks and workflows
 * have tests with a real domain. Whoever comes here all the same ends the test. No header of the domain
 * is included, so that a name is enough. */
#include <stdlib.h>

#define NOT_ASKED_FOR(name)                                                                        \
    void name(void);                                                                               \
    void name(void)                                                                                \
    {                                                                                              \
        abort();                                                                                   \
    }

NOT_ASKED_FOR(conversation_create)
NOT_ASKED_FOR(conversation_find)
NOT_ASKED_FOR(conversation_find_session)
NOT_ASKED_FOR(conversation_place_of)
NOT_ASKED_FOR(domain_claim)
NOT_ASKED_FOR(domain_claim_anyway)
NOT_ASKED_FOR(domain_waits_for)
NOT_ASKED_FOR(port_expose)
NOT_ASKED_FOR(port_find)
NOT_ASKED_FOR(port_opens)
NOT_ASKED_FOR(sandbox_sockets)
NOT_ASKED_FOR(standing_check)
NOT_ASKED_FOR(standing_of_port)
NOT_ASKED_FOR(task_cancel)
NOT_ASKED_FOR(task_create)
NOT_ASKED_FOR(task_list)
NOT_ASKED_FOR(task_read)
NOT_ASKED_FOR(task_state_is_over)
NOT_ASKED_FOR(task_state_text)
NOT_ASKED_FOR(task_wait_begin)
NOT_ASKED_FOR(task_wait_end)
NOT_ASKED_FOR(team_cancel)
NOT_ASKED_FOR(team_create)
NOT_ASKED_FOR(team_read)
NOT_ASKED_FOR(team_state_text)
NOT_ASKED_FOR(team_wait_begin)
NOT_ASKED_FOR(team_wait_end)
NOT_ASKED_FOR(told_event_add)
NOT_ASKED_FOR(turn_create)
NOT_ASKED_FOR(turn_follow)
NOT_ASKED_FOR(turn_follower_close)
NOT_ASKED_FOR(turn_follower_resume)
NOT_ASKED_FOR(turn_read)
NOT_ASKED_FOR(turn_wait_begin)
NOT_ASKED_FOR(workflow_change)
NOT_ASKED_FOR(workflow_check)
NOT_ASKED_FOR(workflow_read)
NOT_ASKED_FOR(workflow_start)
NOT_ASKED_FOR(workflow_state_text)
