#include "testing/check.h"

#include <string.h>

static void first_failure_stays(void **state) {
    (void)state;
    sr_failure why = {0};
    assert_int_equal(sr_fail(&why, SR_IO, "%s: %d", "a.h5", 7), SR_IO);
    assert_int_equal(sr_fail(&why, SR_MEMORY, "later"), SR_MEMORY);
    assert_int_equal(why.status, SR_IO);
    assert_string_equal(why.text, "a.h5: 7");
}

static void controls_are_question_marks(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_fail(&why, SR_FORMAT, "a\n\x1b[2J\x7f\xc2\x9b\xc2\x80\xc2\x9f\xc2\xa0\xc3\xa9\tb");
    assert_string_equal(why.text, "a??[2J???????\xc2\xa0\xc3\xa9\tb");
}

static void null_failure_is_allowed(void **state) {
    (void)state;
    assert_int_equal(sr_fail(NULL, SR_FORMAT, "lost"), SR_FORMAT);
    sr_hint(NULL, "lost");
}

static void hint_needs_a_failure_and_stays(void **state) {
    (void)state;
    sr_failure why = {0};
    sr_hint(&why, "too early");
    assert_string_equal(why.hint, "");
    sr_fail(&why, SR_USAGE, "wrong");
    sr_hint(&why, "try %s", "this");
    sr_hint(&why, "or that");
    assert_string_equal(why.hint, "try this");
}

static void long_texts_are_cut(void **state) {
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    sr_failure why = {0};
    sr_fail(&why, SR_USAGE, "%s", text);
    sr_hint(&why, "%s", text);
    assert_int_equal(strlen(why.text), sizeof why.text - 1);
    assert_int_equal(strlen(why.hint), sizeof why.hint - 1);
}

static void every_status_has_its_word(void **state) {
    (void)state;
    static const char *const want[] = {"ok",     "usage",  "memory", "io",
                                       "format", "exists", "state",  "library"};
    for (int i = SR_OK; i <= SR_LIBRARY; i++)
        assert_string_equal(sr_status_name((sr_status)i), want[i]);
    assert_string_equal(sr_status_name((sr_status)(SR_LIBRARY + 1)), "unknown");
    assert_string_equal(sr_status_name((sr_status)-1), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_failure_stays),     cmocka_unit_test(controls_are_question_marks),
        cmocka_unit_test(null_failure_is_allowed), cmocka_unit_test(hint_needs_a_failure_and_stays),
        cmocka_unit_test(long_texts_are_cut),      cmocka_unit_test(every_status_has_its_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
