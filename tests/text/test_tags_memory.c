/* Every allocation of entity types and tag dictionaries fails once: reported each time, no
 * leaks. */
#include <stdio.h>
#include <string.h>

#include "testing/check.h"
#include "testing/failing_malloc.h"
#include "text/tag_set.h"

static sr_status make(sr_failure *why) {
    tag_types types = {0};
    tag_column c = tag_column_start("f", TAG_ANY);
    sr_status status = SR_OK;
    for (int i = 0; status == SR_OK && i < 40; i++) {
        char tag[16];
        tag_mark m;
        snprintf(tag, sizeof tag, "B-%d", i);
        status = tag_column_add(&c, &types, i, tag, strlen(tag), &m, why);
    }
    types.trained = (int32_t)types.names.count;
    tag_set *s = status == SR_OK ? tag_set_create(TAG_BIOES, &types, NULL) : NULL;
    if (status == SR_OK && !s) status = sr_fail(why, SR_MEMORY, "no memory");
    tag_set_free(s);
    tag_types_free(&types);
    return status;
}

static void survives(void **state) {
    (void)state;
    if (!failing_malloc_there()) skip();
    sr_status status = SR_MEMORY;
    for (long n = 0; status != SR_OK; n++) {
        sr_failure why = {0};
        failing_malloc_begin(n);
        status = make(&why);
        const long left = failing_malloc_end();
        assert_int_equal(left, 0);
        if (status != SR_OK) assert_int_equal(why.status, SR_MEMORY);
        assert_true(n < 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(survives)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
