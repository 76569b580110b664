/* test_failing_translations.c -- translations in which each allocation fails once. A translation
 * fails with a reason, without hypotheses or leaks, or succeeds with its usual result. */
#define _GNU_SOURCE 1 /* RTLD_NEXT */
#define DEEDS_WITHOUT_HDF5
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "decode/translate.h"
#include "nets/models/transformer_step.h"
#include "small_model.h"
#include "testing/failing_deeds.h"

enum { SENTENCES = 5, WORDS = 400, TARGET_WORDS = 203 }; /* WORDS: exceeds an initial table */

static model *m;
static model_source source[SENTENCES];
static int threads = 1;
static translation got[SENTENCES], whole[SENTENCES];

static translate_options options(void) {
    translate_options o = translate_options_default();
    o.beam.beam = 3;
    o.beam.max_a = 0;
    o.beam.max_b = 5;
    o.max_sentences = 2;
    o.threads = threads;
    return o;
}

static void forget(translation *x) {
    for (int i = 0; i < SENTENCES; i++) translation_free(&x[i]);
    memset(x, 0, sizeof *x * SENTENCES);
}

static sr_status translate_all(sr_failure *why) {
    const translate_options o = options();
    translate_report report;
    forget(got);
    const sr_status status = translate(m, &o, source, SENTENCES, got, &report, why);
    for (int i = 0; i < SENTENCES; i++) {
        if ((got[i].count > 0) != (status == SR_OK))
            complain("translate", "%d hypotheses of sentence %d", (int)got[i].count, i);
        if (status != SR_OK || !whole[i].count) continue;
        if (got[i].item[0].length != whole[i].item[0].length ||
            memcmp(&got[i].item[0].score, &whole[i].item[0].score, sizeof(double)) != 0)
            complain("translate", "another hypothesis of sentence %d", i);
    }
    forget(got);
    return status;
}

static void test_allocations(void **state) {
    (void)state;
    const deed d = {.name = "translate", .run = translate_all, .file = ""};
    deed_fail_all(&d, FAILING_ALLOCATIONS);
}

/* Workers take over the batches of a worker whose decoder cannot be created. */
static void test_threads(void **state) {
    (void)state;
    const deed d = {.name = "translate on threads", .run = translate_all, .file = ""};
    threads = 2;
    deed_fail_each(&d, FAILING_ALLOCATIONS);
    threads = 1;
}

/* -- the arenas of a decoder ------------------------------------------------------------------- */

static sr_status decode(decoding *s, sr_failure *why) {
    static const int32_t parent[] = {0, 0, 1}, token[] = {TOKEN_UNK, 5, 6};
    const model_decoder *d = m->row->decoder;
    int32_t source_at[3];
    sr_status status = d->start(s, source, 2, why);
    for (int i = 0; i < 2 && status == SR_OK; i++)
        status = d->step(s, 3, parent, token, source_at, why);
    return status;
}

static void check_arena(decoding *s, arena *of, const char *name) {
    sr_failure why = {0};
    arena_fail_after(of, -1);
    check_ok(decode(s, &why), &why);
    const int64_t needed = arena_fail_after(of, -1);
    assert_true(needed > 5);
    for (int64_t k = 0; k < needed; k++) {
        why = (sr_failure){0};
        arena_fail_after(of, k);
        if (decode(s, &why) != SR_MEMORY || !strstr(why.text, "memory"))
            fail_msg("%s, %lld of %lld allocations: '%s'", name, (long long)k, (long long)needed,
                     why.text);
    }
    arena_fail_after(of, -1);
    check_ok(decode(s, &why), &why);
}

static void test_arenas(void **state) {
    (void)state;
    sr_failure why = {0};
    decoding *s = m->row->decoder->create(m, NULL, 1, &why);
    assert_non_null(s);
    check_arena(s, s->tape->arena, "tape");
    check_arena(s, s->cache, "cache");
    m->row->decoder->free(s);
}

/* -- caller errors ----------------------------------------------------------------------------- */

static void check_refused(const translate_options *o, const char *wanted) {
    sr_failure why = {0};
    assert_int_equal(translate(m, o, source, SENTENCES, got, NULL, &why), SR_USAGE);
    check_failure(&why, SR_USAGE, wanted);
    assert_int_equal(translate(m, o, source, SENTENCES, got, NULL, NULL), SR_USAGE);
}

static void test_options(void **state) {
    (void)state;
    translate_options o = options();
    o.max_tokens = 0, check_refused(&o, "batches of 0 positions");
    o = options(), o.max_sentences = -1, check_refused(&o, "-1 sentences");
    o = options(), o.max_source = -1, check_refused(&o, "sources of -1 words");
    o = options(), o.beam.best = -1, check_refused(&o, "-1");
    o = options(), o.beam.best = 4, check_refused(&o, "4");
    o = options(), o.beam.min_len = -1, check_refused(&o, "at least -1 words");
    o = options(), o.beam.max_a = -1, check_refused(&o, "-1");
    o = options(), o.beam.max_a = (double)INFINITY, check_refused(&o, "inf");
    o = options(), o.beam.max_b = -1, check_refused(&o, "-1");
    o = options(), o.beam.max_b = (double)INFINITY, check_refused(&o, "inf");
    o = options(), o.beam.unk_penalty = (double)NAN, check_refused(&o, "nan");
    o = options(), o.beam.unk_penalty = -(double)INFINITY, check_refused(&o, "inf");
}

static void test_tokens(void **state) {
    (void)state;
    const translate_options o = options();
    int32_t *token = (int32_t *)source[2].token;
    const int32_t before = token[0], bad[] = {-1, SMALL_WORDS, TOKEN_PAD};
    for (int i = 0; i < 3; i++) {
        char wanted[64];
        token[0] = bad[i];
        snprintf(wanted, sizeof wanted, "word 0 is token %d of %d", bad[i], SMALL_WORDS);
        check_refused(&o, wanted);
    }
    token[0] = before;
}

/* Decodes with a parent row out of range, or a word that is not in the dictionary. */
static void test_steps(void **state) {
    (void)state;
    static const struct {
        int32_t parent, token;
    } wrong[] = {{-1, 5}, {2, 5}, {0, -1}, {0, TARGET_WORDS}};
    const model_decoder *d = m->row->decoder;
    sr_failure why = {0};
    void *s = d->create(m, NULL, 1, &why);
    assert_non_null(s);
    check_ok(d->start(s, source, 2, &why), &why);
    for (int i = 0; i < 4; i++) {
        why = (sr_failure){0};
        assert_int_equal(d->step(s, 1, &wrong[i].parent, &wrong[i].token, NULL, &why), SR_USAGE);
        check_failure(&why, SR_USAGE, "row 0 continues row");
    }
    d->free(s);
}

static int make(void **state) {
    (void)state;
    const small_model size = {"bn+ls", "ln+ls", "peri", 16, 2, 0, TARGET_WORDS, "ln"};
    const translate_options o = options();
    sr_failure why = {0};
    m = small_model_make(&size);
    small_sources(source, SENTENCES - 1, 6, 11);
    small_sources(source + SENTENCES - 1, 1, WORDS, 3);
    check_ok(translate(m, &o, source, SENTENCES, whole, NULL, &why), &why);
    return 0;
}

static int drop(void **state) {
    (void)state;
    forget(whole);
    small_sources_free(source, SENTENCES);
    model_free(m);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options), cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_steps),   cmocka_unit_test(test_arenas),
        cmocka_unit_test(test_threads), cmocka_unit_test(test_allocations),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
