/* test_bpe_transform.c -- a line transform learns its merges from both sides, from all training
 * lines and no others, and only pairs that occur twice. */
#include <string.h>

#include "testing/check.h"
#include "text/bpe/bpe_step.h"

static void expect_pieces(const line_transform *s, const char *line, const char *want) {
    byte_buffer out = {0};
    sr_failure why = {0};
    check_ok(s->apply(s->self, 0, line, strlen(line), &out, &why), &why);
    assert_string_equal(out.byte, want);
    buffer_free(&out);
}

static file_bytes text_of(const char *text) {
    return (file_bytes){.byte = (uint8_t *)(uintptr_t)text, .size = strlen(text), .path = "text"};
}

/* ab occurs twice in the source, cd in the target; ef once; gh only after the training lines. */
static void what_is_learnt(void **state) {
    (void)state;
    const file_bytes text[2] = {text_of("ab ef\nab\ngh\ngh gh\n"), text_of("cd\ncd\ngh\ngh\n")};
    sr_failure why = {0};
    line_transform s = bpe_step("", 10, &why);
    assert_null(bpe_step_codes(&s));
    check_ok(s.begin(s.self, text, 2, 2, &why), &why);
    expect_pieces(&s, "ab cd ef gh", "ab cd e@@ f g@@ h");
    assert_non_null(bpe_step_codes(&s));
    s.free(s.self);
}

/* Learns the requested number of merges: the most frequent pair. */
static void how_many(void **state) {
    (void)state;
    const file_bytes text[2] = {text_of("ab ab ab cd\n"), text_of("cd\n")};
    sr_failure why = {0};
    line_transform s = bpe_step("", 1, &why);
    check_ok(s.begin(s.self, text, 2, 1, &why), &why);
    expect_pieces(&s, "ab cd", "ab c@@ d");
    s.free(s.self);
}

/* Fewer lines than requested; a second start changes nothing. */
static void begun_again(void **state) {
    (void)state;
    const file_bytes text[2] = {text_of("ab ab cd\n"), text_of("cd\n")},
                     other[2] = {text_of("ef ef ef\n"), text_of("")};
    sr_failure why = {0};
    line_transform s = bpe_step("", 10, &why);
    check_ok(s.begin(s.self, text, 2, 99, &why), &why);
    check_ok(s.begin(s.self, other, 2, 1, &why), &why);
    expect_pieces(&s, "ab cd ef", "ab cd e@@ f");
    s.free(s.self);
}

static void no_file(void **state) {
    (void)state;
    sr_failure why = {0};
    line_transform s = bpe_step("nowhere.codes", 0, &why);
    const file_bytes text[2] = {text_of("ab ab\n"), text_of("cd\n")};
    assert_int_equal(s.begin(s.self, text, 2, 1, &why), SR_IO);
    check_failure(&why, SR_IO, "nowhere.codes");
    s.free(s.self);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_learnt), cmocka_unit_test(how_many),
                                       cmocka_unit_test(begun_again), cmocka_unit_test(no_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
