#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "base/fault.h"
#include "sys/sys_test.h"

/* The statics are tested too. */
#include "sys/network/sys_netlink_batch.c"

#define NEEDS_NETWORK "network namespaces (root with CAP_NET_ADMIN)"

static void messages_and_nested_attributes_are_laid_out_as_netlink_wants(void **state)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    struct sys_netlink_attribute attribute = {0};
    const char *bytes;
    size_t nest, length;
    uint32_t sequence = 6;

    (void) state;
    sys_netlink_batch_message(&batch, 100, 0, "body", 4);
    nest = sys_netlink_batch_open(&batch, 7);
    sys_netlink_batch_text(&batch, 1, "ab");
    sys_netlink_batch_be32(&batch, 2, 0x01020304);
    sys_netlink_batch_close(&batch, nest);
    sys_netlink_batch_message(&batch, 101, NLM_F_ACK, NULL, 0);
    end_message(&batch);
    assert_int_equal(header_at(&batch, 0).nlmsg_len, 16 + 4 + 4 + 8 + 8);
    assert_int_equal(batch.message, 40);
    assert_int_equal(header_at(&batch, 40).nlmsg_len, 16);
    assert_int_equal(number_messages(&batch, &sequence).answers, 1);
    assert_int_equal(header_at(&batch, 0).nlmsg_seq, 7);
    assert_int_equal(header_at(&batch, 40).nlmsg_seq, 8);
    bytes = batch.data + 20;
    length = 20;
    assert_true(sys_netlink_attribute_next(&bytes, &length, &attribute));
    assert_int_equal(attribute.type, 7);
    assert_int_equal(attribute.length, 16);
    assert_int_equal(length, 0);
    bytes = attribute.value;
    length = attribute.length;
    assert_true(sys_netlink_attribute_next(&bytes, &length, &attribute));
    assert_string_equal(attribute.value, "ab");
    assert_true(sys_netlink_attribute_next(&bytes, &length, &attribute));
    assert_int_equal(sys_netlink_attribute_be32(&attribute), 0x01020304);
    assert_false(sys_netlink_attribute_next(&bytes, &length, &attribute));
}

static void a_batch_that_grows_too_long_is_not_sent(void **state)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    static const char block[32 << 10];
    uint32_t sequence = 0;

    (void) state;
    sys_netlink_batch_message(&batch, 100, NLM_F_ACK, NULL, 0);
    for (int i = 0; i < 5; i++)
        sys_netlink_batch_attribute(&batch, 1, block, sizeof(block));
    assert_true(batch.overflowed);
    assert_true(batch.length <= SYS_NETLINK_BATCH_MAX);
    assert_int_equal(sys_netlink_batch_run(&batch, -1, &sequence, NULL, NULL), -EMSGSIZE);
}

static void attributes_that_lie_about_their_length_end_the_walk(void **state)
{
    struct nlattr header = {.nla_len = 9, .nla_type = 1};
    char bytes[8];
    const char *at = bytes;
    size_t length = sizeof(bytes);
    struct sys_netlink_attribute attribute = {0};

    (void) state;
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, &header, sizeof(header));
    assert_false(sys_netlink_attribute_next(&at, &length, &attribute));
    header.nla_len = 3;
    memcpy(bytes, &header, sizeof(header));
    assert_false(sys_netlink_attribute_next(&at, &length, &attribute));
    length = 3;
    assert_false(sys_netlink_attribute_next(&at, &length, &attribute));
    header.nla_len = 6;
    memcpy(bytes, &header, sizeof(header));
    length = 6;
    assert_true(sys_netlink_attribute_next(&at, &length, &attribute));
    assert_int_equal(attribute.length, 2);
    assert_int_equal(sys_netlink_attribute_u32(&attribute), 0);
    assert_int_equal(length, 0);
}

static void add_answer(struct netlink_batch_reply *reply, uint16_t type, uint32_t sequence,
                       const void *body, size_t length)
{
    struct nlmsghdr header = {
        .nlmsg_len = (uint32_t) (NLMSG_HDRLEN + length), .nlmsg_type = type, .nlmsg_seq = sequence};

    memcpy(reply->bytes + reply->length, &header, sizeof(header));
    memcpy(reply->bytes + reply->length + NLMSG_HDRLEN, body, length);
    reply->length += NLMSG_ALIGN(header.nlmsg_len);
}

static void count_answer(void *context, uint16_t type, const char *body, size_t length)
{
    (void) type;
    (void) body;
    (void) length;
    ++*(int *) context;
}

static void the_refusal_of_the_earliest_message_counts(void **state)
{
    static struct netlink_batch_reply reply;
    struct wait wait = {.first = UINT32_MAX, .count = 3, .answers = 3};
    struct nlmsgerr busy = {.error = -EBUSY}, denied = {.error = -EPERM}, fine = {0};
    int answers = 0;

    (void) state;
    reply.length = 0;
    add_answer(&reply, NLMSG_ERROR, 1, &busy, sizeof(busy));
    add_answer(&reply, NLMSG_ERROR, 0, &denied, sizeof(denied)); /* the second, after the wrap */
    add_answer(&reply, NLMSG_ERROR, 77, &busy, sizeof(busy));    /* of somebody else */
    add_answer(&reply, RTM_NEWLINK, 1, "body", 4);
    assert_int_equal(read_reply(&reply, &wait, count_answer, &answers), 0);
    assert_int_equal(wait.refusal, -EPERM);
    assert_int_equal(wait.answers, 1);
    assert_int_equal(answers, 1);
    reply.length = 0;
    add_answer(&reply, NLMSG_ERROR, UINT32_MAX, &fine, sizeof(fine));
    assert_int_equal(read_reply(&reply, &wait, NULL, NULL), 0);
    assert_int_equal(wait.answers, 0);
    reply.length = 0;
    add_answer(&reply, NLMSG_ERROR, 1, "12", 2);
    assert_int_equal(read_reply(&reply, &wait, NULL, NULL), -EBADMSG);
    memcpy(reply.bytes, &(uint32_t){1000}, sizeof(uint32_t));
    assert_int_equal(read_reply(&reply, &wait, NULL, NULL), -EBADMSG);
}

static void set_link(struct sys_netlink_batch *batch, int index)
{
    struct ifinfomsg link = {.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};

    sys_netlink_batch_message(batch, RTM_NEWLINK, NLM_F_ACK, &link, sizeof(link));
}

static void run_batches(void)
{
    AUTO(netlink_batch) struct sys_netlink_batch batch = SYS_NETLINK_BATCH_INIT;
    AUTO(close) int fd = -EBADF;
    uint32_t sequence = 0;

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
    fd = sys_netlink_batch_socket(NETLINK_ROUTE, 0);
    CHECK(is_close_on_exec(fd));
    set_link(&batch, 1);
    set_link(&batch, 1);
    CHECK_EQUAL(sys_netlink_batch_run(&batch, fd, &sequence, NULL, NULL), 0);
    CHECK_EQUAL(sequence, 2);
    set_link(&batch, 4711);
    CHECK_EQUAL(sys_netlink_batch_run(&batch, fd, &sequence, NULL, NULL), -ENODEV);
    sys_netlink_batch_done(&batch);
    set_link(&batch, 1);
    fault_arm(FAULT_SYSTEM_CALL, 1, ENOBUFS);
    CHECK_EQUAL(sys_netlink_batch_run(&batch, fd, &sequence, NULL, NULL), -ENOBUFS);
    (void) fault_disarm(FAULT_SYSTEM_CALL);
    fault_arm(FAULT_SYSTEM_CALL, 1, EINTR);
    CHECK_EQUAL(sys_netlink_batch_run(&batch, fd, &sequence, NULL, NULL), 0);
    CHECK(fault_disarm(FAULT_SYSTEM_CALL));
}

static void several_messages_go_in_one_send(void **state)
{
    (void) state;
    run_in_child(run_batches, NEEDS_NETWORK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_and_nested_attributes_are_laid_out_as_netlink_wants),
        cmocka_unit_test(a_batch_that_grows_too_long_is_not_sent),
        cmocka_unit_test(attributes_that_lie_about_their_length_end_the_walk),
        cmocka_unit_test(the_refusal_of_the_earliest_message_counts),
        cmocka_unit_test(several_messages_go_in_one_send),
    };

    return cmocka_run_group_tests_name("sys_netlink_batch", tests, NULL, NULL);
}
