#include "objects/folder/objects_folder_testing.h"
#include "objects/objects_contract.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTRACT_TESTS,
    };

    return cmocka_run_group_tests_name("objects_folder_contract", tests, NULL, NULL);
}
