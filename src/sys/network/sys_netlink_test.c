#include <arpa/inet.h>
#include <string.h>
#include <sys/ioctl.h>

#include "sys/process/sys_namespace.h"
#include "sys/sys_test.h"

/* The statics are tested too. */
#include "sys/network/sys_netlink.c"

#define NEEDS_NETWORK "network namespaces with veth (root with CAP_NET_ADMIN, /proc)"

static struct in_addr ip(const char *text)
{
    struct in_addr address;

    CHECK_EQUAL(inet_pton(AF_INET, text, &address), 1);
    return address;
}

static void enter_network(void)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0)
        _exit(CHILD_UNABLE);
}

/* What ioctl says of a link, so that netlink does not check itself. */
static short link_flags(const char *name)
{
    AUTO(close) int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {0};

    memcpy(request.ifr_name, name, strlen(name));
    CHECK_EQUAL(ioctl(fd, SIOCGIFFLAGS, &request), 0);
    return request.ifr_flags;
}

static void use_loopback(void)
{
    AUTO(netlink) struct sys_netlink netlink = SYS_NETLINK_INIT;
    int index;

    enter_network();
    CHECK_EQUAL(sys_netlink_open(&netlink), 0);
    CHECK(is_close_on_exec(netlink.fd));
    index = sys_netlink_find(&netlink, "lo");
    CHECK(index > 0);
    CHECK_EQUAL(index, (int) if_nametoindex("lo"));
    CHECK(!(link_flags("lo") & IFF_UP));
    CHECK_EQUAL(sys_netlink_set_up(&netlink, index, true), 0);
    CHECK(link_flags("lo") & IFF_UP);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, index, ip("169.254.1.1"), 32), 0);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, index, ip("169.254.1.1"), 32), -EEXIST);
    CHECK_EQUAL(sys_netlink_set_up(&netlink, index, false), 0);
    CHECK(!(link_flags("lo") & IFF_UP));
    CHECK_EQUAL(sys_netlink_find(&netlink, "none"), -ENODEV);
    CHECK_EQUAL(sys_netlink_find(&netlink, ""), -EINVAL);
    CHECK_EQUAL(sys_netlink_find(&netlink, "a-name-much-too-long"), -EINVAL);
    CHECK_EQUAL(sys_netlink_set_up(&netlink, 4711, true), -ENODEV);
    CHECK_EQUAL(sys_netlink_delete(&netlink, 0), -EINVAL);
    CHECK_EQUAL(sys_netlink_add_address(&netlink, 1, ip("10.0.0.1"), 33), -EINVAL);
}

static void links_go_up_and_down_and_get_addresses(void **state)
{
    (void) state;
    run_in_child(use_loopback, NEEDS_NETWORK);
}

/* A byte over TCP from the sandbox's end to the router's. */
static void check_traffic(int inner)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(4000), .sin_addr = ip("169.254.1.1")};
    AUTO(close) int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    AUTO(close) int client = -EBADF;

    CHECK_EQUAL(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
    CHECK_EQUAL(listen(listener, 1), 0);
    CHECK_EQUAL(sys_namespace_enter(inner, CLONE_NEWNET), 0);
    client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_EQUAL(connect(client, (struct sockaddr *) &address, sizeof(address)), 0);
}

/* The network of a sandbox as the launcher builds it: a router namespace with 169.254.1.1 on lo, a
 * veth whose other end is born in the sandbox's namespace, /32 addresses, an onlink gateway. */
static void build_sandbox_network(void)
{
    AUTO(netlink) struct sys_netlink router = SYS_NETLINK_INIT, sandbox = SYS_NETLINK_INIT;
    AUTO(close) int outer = -EBADF, inner = -EBADF;
    struct sys_netlink_veth veth = {
        .name = "sb0", .index = 1000, .up = true, .peer_name = "eth0", .peer_index = 52};
    struct sys_netlink_route to_sandbox = {
        .destination = ip("10.66.0.2"), .prefix = 32, .index = 1000};
    struct sys_netlink_route gateway = {.gateway = ip("169.254.1.1"), .onlink = true, .index = 52};

    enter_network();
    outer = sys_namespace_open(0, "net");
    CHECK_EQUAL(sys_netlink_open(&router), 0);
    CHECK_EQUAL(unshare(CLONE_NEWNET), 0);
    inner = sys_namespace_open(0, "net");
    CHECK_EQUAL(sys_netlink_open(&sandbox), 0);
    CHECK_EQUAL(sys_namespace_enter(outer, CLONE_NEWNET), 0);
    veth.peer_namespace = inner;
    switch (sys_netlink_add_veth(&router, &veth)) {
    case 0:
        break;
    case -EOPNOTSUPP:
        _exit(CHILD_UNABLE); /* no veth in this kernel */
    default:
        CHECK(!"veth");
    }
    CHECK_EQUAL(sys_netlink_add_veth(&router, &veth), -EEXIST);
    CHECK_EQUAL(sys_netlink_find(&router, "sb0"), 1000);
    CHECK_EQUAL(sys_netlink_find(&router, "eth0"), -ENODEV);
    CHECK_EQUAL(sys_netlink_find(&sandbox, "eth0"), 52);
    CHECK(link_flags("sb0") & IFF_UP);
    CHECK_EQUAL(sys_netlink_set_up(&router, sys_netlink_find(&router, "lo"), true), 0);
    CHECK_EQUAL(
        sys_netlink_add_address(&router, sys_netlink_find(&router, "lo"), ip("169.254.1.1"), 32),
        0);
    CHECK_EQUAL(sys_netlink_add_route(&router, &to_sandbox), 0);
    CHECK_EQUAL(sys_netlink_add_route(&router, &to_sandbox), -EEXIST);
    CHECK_EQUAL(sys_netlink_add_address(&sandbox, 52, ip("10.66.0.2"), 32), 0);
    CHECK_EQUAL(sys_netlink_add_route(&sandbox, &gateway), -ENETDOWN);
    CHECK_EQUAL(sys_netlink_set_up(&sandbox, 52, true), 0);
    gateway.onlink = false;
    CHECK_EQUAL(sys_netlink_add_route(&sandbox, &gateway), -ENETUNREACH);
    gateway.onlink = true;
    CHECK_EQUAL(sys_netlink_add_route(&sandbox, &gateway), 0);
    gateway.prefix = 33;
    CHECK_EQUAL(sys_netlink_add_route(&sandbox, &gateway), -EINVAL);
    check_traffic(inner);
    CHECK_EQUAL(sys_netlink_delete(&router, 1000), 0);
    CHECK_EQUAL(sys_netlink_delete(&router, 1000), -ENODEV);
    CHECK_EQUAL(sys_netlink_find(&sandbox, "eth0"), -ENODEV);
}

static void a_sandbox_network_can_be_built(void **state)
{
    (void) state;
    run_in_child(build_sandbox_network, NEEDS_NETWORK);
}

static void requests_that_do_not_fit_are_not_sent(void **state)
{
    char many[REQUEST_SIZE] = {0};
    struct sys_netlink netlink = SYS_NETLINK_INIT;
    struct request request = sys_netlink_begin(RTM_NEWLINK, 0, many, REQUEST_SIZE - NLMSG_HDRLEN);

    (void) state;
    assert_false(request.overflowed);
    attribute_number(&request, 1, 1);
    assert_true(request.overflowed);
    close_nested(&request, open_nested(&request, 2));
    assert_int_equal(request.length, REQUEST_SIZE);
    assert_int_equal(send_request(&netlink, &request), -EMSGSIZE);
}

/* Append a message to a made-up reply. */
static void add_message(struct sys_netlink_reply *reply, uint16_t type, uint32_t sequence,
                        const void *body, size_t length)
{
    struct nlmsghdr header = {
        .nlmsg_len = (uint32_t) (NLMSG_HDRLEN + length), .nlmsg_type = type, .nlmsg_seq = sequence};

    memcpy(reply->bytes + reply->length, &header, sizeof(header));
    memcpy(reply->bytes + reply->length + NLMSG_HDRLEN, body, length);
    reply->length += NLMSG_ALIGN(header.nlmsg_len);
}

static void count_answer(void *context, const char *body, size_t length)
{
    (void) body;
    (void) length;
    ++*(int *) context;
}

static void answers_are_matched_with_their_request(void **state)
{
    static struct sys_netlink_reply reply;
    struct nlmsgerr refused = {.error = -EPERM}, done = {0};
    int answers = 0;

    (void) state;
    reply.length = 0;
    assert_int_equal(read_reply(&reply, 5, count_answer, &answers), 0);
    add_message(&reply, NLMSG_ERROR, 4, &refused, sizeof(refused));
    add_message(&reply, RTM_NEWLINK, 5, "body", 4);
    assert_int_equal(read_reply(&reply, 5, count_answer, &answers), 0);
    assert_int_equal(answers, 1);
    add_message(&reply, NLMSG_ERROR, 5, &done, sizeof(done));
    assert_int_equal(read_reply(&reply, 5, NULL, NULL), 1);
    assert_int_equal(read_reply(&reply, 4, NULL, NULL), -EPERM);
}

static void malformed_answers_are_refused(void **state)
{
    static struct sys_netlink_reply reply;
    uint32_t wrong;

    (void) state;
    reply.length = 0;
    add_message(&reply, NLMSG_ERROR, 5, "12", 2);
    assert_int_equal(read_reply(&reply, 5, NULL, NULL), -EBADMSG);
    wrong = 8;
    memcpy(reply.bytes, &wrong, sizeof(wrong));
    assert_int_equal(read_reply(&reply, 5, NULL, NULL), -EBADMSG);
    wrong = 1000;
    memcpy(reply.bytes, &wrong, sizeof(wrong));
    assert_int_equal(read_reply(&reply, 5, NULL, NULL), -EBADMSG);
    reply.length = 10;
    assert_int_equal(read_reply(&reply, 5, NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_go_up_and_down_and_get_addresses),
        cmocka_unit_test(a_sandbox_network_can_be_built),
        cmocka_unit_test(requests_that_do_not_fit_are_not_sent),
        cmocka_unit_test(answers_are_matched_with_their_request),
        cmocka_unit_test(malformed_answers_are_refused),
    };

    return cmocka_run_group_tests_name("sys_netlink", tests, NULL, NULL);
}
