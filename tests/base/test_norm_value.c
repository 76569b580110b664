/* test_norm_value.c -- the form METHOD(NAME=VALUE;...)+ls: texts with and without it. */
#include <string.h>

#include "base/options/norm_value.h"
#include "testing/check.h"

static bool split(const char *text, norm_value *v) {
    return norm_value_split(text, (int)strlen(text), v);
}

static bool is(const char *part, int length, const char *text) {
    return length == (int)strlen(text) && !strncmp(part ? part : "", text, strlen(text));
}

static void parts(void **state) {
    (void)state;
    static const struct {
        const char *text, *method, *params;
        bool layer_scale;
    } good[] = {{"bn", "bn", "", false},
                {"pn+ls", "pn", "", true},
                {"+ls", "+ls", "", false},
                {"bn()", "bn", "", false},
                {"brn(r_max=3;d_max=5)", "brn", "r_max=3;d_max=5", false},
                {"pn(alpha=0.95)+ls", "pn", "alpha=0.95", true}};
    norm_value v;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (!split(good[i].text, &v)) fail_msg("%s has no form", good[i].text);
        if (!is(v.method, v.method_length, good[i].method) ||
            !is(v.params, v.params_length, good[i].params) || v.layer_scale != good[i].layer_scale)
            fail_msg("%s: other parts", good[i].text);
    }
    static const char *const bad[] = {"brn(r_max=3",          "brn)",           "(r_max=3)",
                                      "brn((r_max=3))",       "pn+ls(alpha=1)", "brn(r_max=3)x",
                                      "brn(r_max=3)(d_max=5)"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (split(bad[i], &v)) fail_msg("%s has a form", bad[i]);
}

static void params(void **state) {
    (void)state;
    norm_value v;
    option_line p;
    const char *at = NULL;
    assert_true(split("un(window=3;filter;k=;;x=1=2)", &v));
    assert_true(norm_value_next(&v, &at, &p) && is(p.key, p.key_length, "window"));
    assert_true(is(p.value, p.value_length, "3"));
    assert_true(norm_value_next(&v, &at, &p) && is(p.key, p.key_length, "filter"));
    assert_null(p.value);
    assert_true(norm_value_next(&v, &at, &p) && p.value && p.value_length == 0);
    assert_true(norm_value_next(&v, &at, &p) && p.key_length == 0 && !p.value);
    assert_true(norm_value_next(&v, &at, &p) && is(p.value, p.value_length, "1=2"));
    assert_false(norm_value_next(&v, &at, &p));
    assert_true(norm_value_find(&v, "window", 6, &p) && is(p.value, p.value_length, "3"));
    assert_false(norm_value_find(&v, "wind", 4, &p));
    assert_true(split("bn", &v));
    at = NULL;
    assert_false(norm_value_next(&v, &at, &p));
}

static void entries(void **state) {
    (void)state;
    assert_int_equal(norm_value_entry("first=brn(r_max=3,4),last=ln"), 20);
    assert_int_equal(norm_value_entry("last=ln"), 7);
    assert_int_equal(norm_value_entry(",last"), 0);
    assert_int_equal(norm_value_entry("a=b(c,d"), 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts), cmocka_unit_test(params),
                                       cmocka_unit_test(entries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
