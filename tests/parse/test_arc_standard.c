/* The arc-standard system by hand: transitions, positions, the oracle, legal transitions, classes.
 * The oracle's transitions build every projective tree of up to five words and no other. */
#include <string.h>

#include "parse/arc_standard.h"
#include "testing/check.h"

/* "He has good control .": has is the root. */
static const int32_t control[5] = {2, 0, 4, 2, 2};

static void expect_kinds(const int32_t *head, int32_t words, const char *want) {
    uint8_t kind[64];
    arc_state s = {0};
    char got[65] = "";
    const int64_t count = arc_oracle_run(&s, head, words, kind);
    for (int64_t i = 0; i < count; i++) got[i] = "SLR"[kind[i]];
    assert_string_equal(got, want);
    arc_free(&s);
}

/* Chen and Manning, figure 1. */
static void oracle_by_hand(void **state) {
    (void)state;
    expect_kinds(control, 5, "SSLSSLRSRR");
    expect_kinds((const int32_t[]){0}, 1, "SR");
    expect_kinds((const int32_t[]){0, 1, 2}, 3, "SSSRRR");
    expect_kinds((const int32_t[]){3, 3, 0}, 3, "SSSLLR");
    expect_kinds((const int32_t[]){0, 0}, 2, "SRSR"); /* two roots */
    /* 1 belongs to 3 across 2, which belongs to 4: no transition fits once all words are on the
     * stack */
    expect_kinds((const int32_t[]){3, 4, 0, 3}, 4, "SSSS");
    /* 3 belongs to 1, which belongs to 2: 1 still waits for it */
    expect_kinds((const int32_t[]){2, 0, 1}, 3, "SSS");
    /* heads of words after ROOT's child: 2 belongs to 4 across the root 3 */
    expect_kinds((const int32_t[]){3, 4, 0, 3, 3}, 5, "SSSSS");
}

static void expect_places(const arc_state *s, const int32_t *want) {
    int32_t got[ARC_PLACES];
    arc_places(s, got);
    for (int i = 0; i < ARC_PLACES; i++)
        if (got[i] != want[i]) fail_msg("place %d is %d, not %d", i, got[i], want[i]);
}

/* Word 4 gets 3, 2, 1 from the left and 5, 6, 7 from the right. Word 1 has 0 as child, 7 has 8. */
static void places_by_hand(void **state) {
    (void)state;
    arc_state s = {0};
    assert_true(arc_begin(&s, 9, false));
    expect_places(
        &s, (const int32_t[]){0, -1, -1, 1, 2, 3, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1});
    for (int i = 0; i < 4; i++) arc_apply(&s, ARC_SHIFT, ARC_NONE);
    expect_places(
        &s, (const int32_t[]){4, 3, 2, 5, 6, 7, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1});
    arc_apply(&s, ARC_LEFT, 7);
    arc_apply(&s, ARC_LEFT, 8);
    expect_places(
        &s, (const int32_t[]){4, 1, 0, 5, 6, 7, 2, -1, 3, -1, -1, -1, -1, -1, -1, -1, -1, -1});
    for (int i = 5; i < 8; i++) {
        arc_apply(&s, ARC_SHIFT, ARC_NONE);
        if (i == 7) {
            arc_apply(&s, ARC_SHIFT, ARC_NONE);
            arc_apply(&s, ARC_RIGHT, 1);
        }
        arc_apply(&s, ARC_RIGHT, 2);
    }
    expect_places(&s,
                  (const int32_t[]){4, 1, 0, 9, -1, -1, 2, 7, 3, 6, -1, 8, -1, -1, -1, -1, -1, -1});
    arc_apply(&s, ARC_SHIFT, ARC_NONE);
    expect_places(
        &s, (const int32_t[]){9, 4, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 7, 3, 6, -1, 8});
    assert_int_equal(s.head[3], 4);
    assert_int_equal(s.label[3], 7);
    assert_int_equal(s.label[2], 8);
    assert_int_equal(s.head[8], 7);
    assert_int_equal(s.head[4], ARC_NONE);
    arc_free(&s);
}

static void expect_legal(const arc_state *s, bool shift, bool left, bool right) {
    assert_int_equal(arc_legal(s, ARC_SHIFT), shift);
    assert_int_equal(arc_legal(s, ARC_LEFT), left);
    assert_int_equal(arc_legal(s, ARC_RIGHT), right);
}

static void legal_by_hand(void **state) {
    (void)state;
    arc_state s = {0};
    for (int one_root = 0; one_root < 2; one_root++) {
        assert_true(arc_begin(&s, 2, one_root));
        expect_legal(&s, true, false, false);
        arc_apply(&s, ARC_SHIFT, ARC_NONE);
        expect_legal(&s, true, false, !one_root); /* a second root could follow */
        arc_apply(&s, ARC_SHIFT, ARC_NONE);
        expect_legal(&s, false, true, true);
        arc_apply(&s, ARC_RIGHT, 0);
        expect_legal(&s, false, false, true);
        assert_false(arc_done(&s));
        arc_apply(&s, ARC_RIGHT, 0);
        expect_legal(&s, false, false, false);
        assert_true(arc_done(&s));
    }
    arc_free(&s);
}

static void classes(void **state) {
    (void)state;
    int32_t label;
    assert_int_equal(arc_class(ARC_SHIFT, ARC_NONE, 4), 0);
    assert_int_equal(arc_class(ARC_LEFT, 0, 4), 1);
    assert_int_equal(arc_class(ARC_LEFT, 3, 4), 4);
    assert_int_equal(arc_class(ARC_RIGHT, 0, 4), 5);
    assert_int_equal(arc_class(ARC_RIGHT, 3, 4), 8);
    for (int32_t class = 0; class < 9; class ++) {
        const arc_kind kind = arc_kind_of(class, 4, &label);
        assert_int_equal(arc_class(kind, label, 4), class);
    }
    assert_int_equal(arc_kind_of(2, 1, &label), ARC_RIGHT); /* unlabelled */
    assert_int_equal(label, 0);
}

/* -- every tree of up to five words */

static bool has_cycle(const int32_t *head, int32_t words) {
    for (int32_t i = 1; i <= words; i++) {
        int32_t at = i, steps = 0;
        while (at && steps++ <= words) at = head[at - 1];
        if (at) return true;
    }
    return false;
}

/* No two arcs cross, ROOT at 0. */
static bool projective(const int32_t *head, int32_t words) {
    for (int32_t a = 1; a <= words; a++)
        for (int32_t b = 1; b <= words; b++) {
            const int32_t low = a < head[a - 1] ? a : head[a - 1], high = a + head[a - 1] - low;
            const int32_t from = b < head[b - 1] ? b : head[b - 1], to = b + head[b - 1] - from;
            if (low < from && from < high && high < to) return false;
        }
    return true;
}

static void every_small_tree(void **state) {
    (void)state;
    arc_state s = {0};
    int trees = 0, reached = 0;
    for (int32_t words = 1; words <= 5; words++) {
        int64_t all = 1;
        for (int32_t i = 0; i < words; i++) all *= words + 1;
        for (int64_t code = 0; code < all; code++) {
            int32_t head[5];
            int64_t rest = code;
            for (int32_t i = 0; i < words; i++, rest /= words + 1)
                head[i] = (int32_t)(rest % (words + 1));
            if (has_cycle(head, words)) continue;
            const bool whole = arc_oracle_run(&s, head, words, NULL) == 2 * words;
            trees++;
            reached += whole;
            assert_int_equal(whole, projective(head, words));
            for (int32_t i = 0; i < words && whole; i++) assert_int_equal(s.head[i + 1], head[i]);
        }
    }
    assert_int_equal(trees, 1 + 3 + 16 + 125 + 1296); /* (n+1)^(n-1) */
    assert_int_equal(reached, 1 + 3 + 12 + 55 + 273);
    arc_free(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(oracle_by_hand),   cmocka_unit_test(places_by_hand),
        cmocka_unit_test(legal_by_hand),    cmocka_unit_test(classes),
        cmocka_unit_test(every_small_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
