#include <math.h>

#include "../check.h"
#include "statnet/sort.h"

static void reals_in_order(void **state) {
    (void)state;
    double value[] = {2, -INFINITY, 0.5, 1e300, 2, -3, INFINITY, 1e-300};
    const double want[] = {-INFINITY, -3, 1e-300, 0.5, 2, 2, 1e300, INFINITY};
    sort_reals(value, 8);
    for (int i = 0; i < 8; i++) assert_true(value[i] == want[i]);
    sort_reals(value, 0);
    sort_reals(value, 1);
    assert_true(value[0] == -INFINITY);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reals_in_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
