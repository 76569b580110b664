#include <string.h>

#include "../check.h"
#include "statnet/globs.h"

static void globs_match_names(void **state) {
    (void)state;
    static const struct {
        const char *globs, *name;
        bool fits;
    } cases[] = {
        {"stem", "stem", true},
        {"stem", "stem2", false},
        {"encoder.*", "encoder.0.norm1", true}, /* a dot is a letter like others */
        {"a,encoder.?.norm1", "encoder.0.norm1", true},
        {"encoder.[01].*", "encoder.2.ffn", false},
        {"encoder.[01].*", "encoder.1.ffn", true},
        {"a,b,c", "b", true},
        {"a,b,c", "a,b", false},
        {"ab", "a", false},
        {"", "", false},
        {"", "a", false},
        {",", "", false},
        {",,a", "a", true},
        {"a,", "a", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (globs_match(cases[i].globs, cases[i].name) != cases[i].fits)
            fail_msg("'%s' against '%s'", cases[i].name, cases[i].globs);
}

/* A glob without end is no glob, and the one behind it still counts. */
static void globs_too_long(void **state) {
    (void)state;
    char globs[3000];
    memset(globs, '*', sizeof globs);
    strcpy(globs + sizeof globs - 6, ",stem");
    assert_true(globs_match(globs, "stem"));
    assert_false(globs_match(globs, "top"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(globs_match_names),
                                       cmocka_unit_test(globs_too_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
