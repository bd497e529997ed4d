#include "store/store_contract.h"
#include "store/store_sqlite_testing.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS,
    };

    return cmocka_run_group_tests_name("store_sqlite", tests, NULL, NULL);
}
