#include <string.h>

#include "base/globs.h"
#include "testing/check.h"

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

/* An overlong glob is ignored; the next one still counts. */
static void globs_too_long(void **state) {
    (void)state;
    char globs[3000];
    memset(globs, '*', sizeof globs);
    strcpy(globs + sizeof globs - 6, ",stem");
    assert_true(globs_match(globs, "stem"));
    assert_false(globs_match(globs, "top"));
}

static const char *const names[] = {"stem", "encoder.0.norm1", "encoder.1.norm1", "encoder.final",
                                    "decoder.final"};
enum { NAMES = sizeof names / sizeof names[0] };

static const char *name_of(const void *context, int64_t i) {
    (void)context;
    return names[i];
}

/* context: one letter per site: b has batch statistics, - may not be first or last. */
static bool may(const void *context, int64_t i, bool bn) {
    const char letter = ((const char *)context)[i];
    return bn ? letter == 'b' : letter != '-';
}

static void globs_choose_sites(void **state) {
    (void)state;
    static const struct {
        const char *list, *sites, *chosen, *missed;
    } cases[] = {
        {"first", "bbbbb", "x....", ""},
        {"first", "-abbb", ".x...", ""},
        {"last", "bbbbb", "....x", ""},
        {"last", "bbba-", "...x.", ""},
        {"middle", "bbbbb", "..x..", ""},
        {"middle", "-bbbb", "..x..", ""}, /* the first of two */
        {"middle", "----b", "....x", ""},
        {"middle", "-----", ".....", "middle"},
        {"last-bn", "bbbbb", "..x..", ""}, /* no stack's final norm */
        {"last-bn", "bbaaa", ".x...", ""},
        {"first,last", "bbbbb", "x...x", ""},
        {"last,encoder.*,first", "bbbbb", "xxxxx", ""},
        {"last-bn,stem", "bbbbb", "x.x..", ""},
        {"encoder.[01].*,,stem", "-----", "xxx..", ""},
        {"first,stem", "-----", "x....", "first"},
        {"last-bn", "aaaaa", ".....", "last-bn"},
        {"last-bn,stem,nowhere,neither", "aaaaa", "x....", "nowhere"},
        {"nowhere,last-bn", "aaaaa", ".....", "nowhere"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const globs_sites sites = {NAMES, cases[i].sites, name_of, may};
        bool chosen[NAMES] = {false};
        char missed[GLOBS_WORD], seen[NAMES + 1] = "";
        const bool whole = globs_choose(cases[i].list, &sites, chosen, missed);
        for (int k = 0; k < NAMES; k++) seen[k] = chosen[k] ? 'x' : '.';
        assert_string_equal(seen, cases[i].chosen);
        assert_string_equal(missed, cases[i].missed);
        assert_int_equal(whole, cases[i].missed[0] == 0);
    }
    char missed[GLOBS_WORD];
    const globs_sites none = {NAMES, "bbbbb", name_of, may};
    bool chosen[NAMES] = {false};
    assert_false(globs_choose("", &none, chosen, missed));
    assert_false(globs_choose(",,", &none, chosen, missed));
}

static void globs_know_replicas(void **state) {
    (void)state;
    static const char *const yes[] = {"stem@1", "encoder.0.norm1@12", "a@b@3", "a@900"};
    static const char *const no[] = {"stem",   "stem@", "stem@0", "stem@01", "@1", "stem@1x",
                                     "stem@x", "a@1@",  "a@-1",   "1",       ""};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
        if (!globs_is_replica(yes[i])) fail_msg("'%s' is a replica", yes[i]);
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        if (globs_is_replica(no[i])) fail_msg("'%s' is none", no[i]);
}

static const char *const shared[] = {"stem@1", "stem", "top", "top@0", "top@1", "top@2"};
enum { SHARED = sizeof shared / sizeof shared[0] };

static const char *shared_name(const void *context, int64_t i) {
    (void)context;
    return shared[i];
}

static bool any(const void *context, int64_t i, bool bn) {
    (void)context, (void)i, (void)bn;
    return true;
}

static void globs_choose_replicas(void **state) {
    (void)state;
    static const struct {
        const char *list, *chosen, *missed;
    } cases[] = {
        {"*", ".xxx..", ""},        {"top*", "..xx..", ""},   {"stem?1", "......", "stem?1"},
        {"first", ".x....", ""},    {"last", "...x..", ""},   {"last-bn", "...x..", ""},
        {"*@*", "x..xxx", ""},      {"top@2", ".....x", ""},  {"*@1,stem", "xx..x.", ""},
        {"stem[@]1", "x.....", ""}, {"s*,*@2", ".x...x", ""}, {"stem@*,last", "x..x..", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const globs_sites sites = {SHARED, NULL, shared_name, any};
        bool chosen[SHARED] = {false};
        char missed[GLOBS_WORD], seen[SHARED + 1] = "";
        globs_choose(cases[i].list, &sites, chosen, missed);
        for (int k = 0; k < SHARED; k++) seen[k] = chosen[k] ? 'x' : '.';
        assert_string_equal(seen, cases[i].chosen);
        assert_string_equal(missed, cases[i].missed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_match_names), cmocka_unit_test(globs_too_long),
        cmocka_unit_test(globs_choose_sites), cmocka_unit_test(globs_know_replicas),
        cmocka_unit_test(globs_choose_replicas)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
