/* translate: the same hypotheses as beam search with a forward pass for every prefix. The same
 * bytes for any batch size and number of threads. Order, bounds, errors. */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "decode/translate.h"
#include "engine/gemm/gemm.h"
#include "plain_beam.h"
#include "small_model.h"
#include "testing/check.h"

/* -- against whole sentences */

typedef struct whole {
    model *m;
    const model_source *source;
} whole;

static void next_word(void *context, const int32_t *word, int64_t count, double *log_p) {
    const whole *w = context;
    small_forward(w->m, w->source, word, count, NORM_RUNNING, log_p);
}

static void same_as_whole(const small_model *s) {
    enum { COUNT = 9 };
    model *m = small_model_make(s);
    model_source source[COUNT];
    translation got[COUNT];
    sr_failure why = {0};
    translate_options o = translate_options_default();
    o.beam.beam = 4;
    o.beam.max_a = 0.5;
    o.beam.max_b = 4;
    o.max_sentences = 4;
    small_sources(source, COUNT, 11, 21);
    check_ok(translate(m, &o, source, COUNT, got, NULL, &why), &why);
    for (int i = 0; i < COUNT; i++) {
        whole w = {m, &source[i]};
        translation want = plain_beam(&o.beam, beam_longest(&o.beam, source[i].length),
                                      m->target_embedding->dim[0], next_word, &w);
        plain_compare(&got[i], &want, 1e-4);
        translation_free(&got[i]);
        translation_free(&want);
    }
    small_sources_free(source, COUNT);
    model_free(m);
}

static void whole_sentences(void **state) {
    (void)state;
    same_as_whole(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, NULL});
    same_as_whole(&(small_model){"bn", "rmsnorm", "post", 0, 0, 0, 0, NULL});
    same_as_whole(
        &(small_model){"ln", "ln", "pre", 0, 0, 0, 40, NULL}); /* more words in the sources */
    same_as_whole(&(small_model){"ln", "ln", "post", 0, 0, 0, 203, NULL});
    same_as_whole(&(small_model){"ln", "ln", "peri", 0, 0, 0, 0, "ln"});
    same_as_whole(&(small_model){"rmsnorm", "ln", "scaled", 0, 0, 0, 0, "rmsnorm"});
}

/* -- the same bytes */

static bool same_bytes(const translation *a, const translation *b) {
    if (a->count != b->count) return false;
    for (int64_t i = 0; i < a->count; i++) {
        const hypothesis *x = &a->item[i], *y = &b->item[i];
        const size_t words = (size_t)x->length * sizeof *x->token;
        if (x->length != y->length || memcmp(&x->score, &y->score, sizeof x->score) != 0 ||
            memcmp(x->token, y->token, words) != 0 ||
            memcmp(x->source_at, y->source_at, words) != 0 ||
            memcmp(x->log_p, y->log_p, (size_t)x->length * sizeof *x->log_p) != 0)
            return false;
    }
    return true;
}

static void same_in_any_batch(const small_model *s, int64_t beam) {
    enum { COUNT = 200 };
    static const int64_t sizes[] = {7, 64, 0};
    model *m = small_model_make(s);
    model_source source[COUNT];
    translation alone[COUNT], together[COUNT];
    sr_failure why = {0};
    translate_options o = translate_options_default();
    o.beam.beam = beam;
    o.beam.max_a = 0.25;
    o.beam.max_b = 5;
    o.max_sentences = 1;
    small_sources(source, COUNT, 20, 22);
    check_ok(translate(m, &o, source, COUNT, alone, NULL, &why), &why);
    for (int k = 0; k < 6; k++) {
        o.max_sentences = sizes[k / 2];
        o.threads = 1 + k % 2;
        check_ok(translate(m, &o, source, COUNT, together, NULL, &why), &why);
        for (int i = 0; i < COUNT; i++) {
            if (!same_bytes(&alone[i], &together[i]))
                fail_msg("%s: sentence %d differs in batches of %d on %d threads", s->norm, i,
                         (int)o.max_sentences, o.threads);
            translation_free(&together[i]);
        }
    }
    for (int i = 0; i < COUNT; i++) translation_free(&alone[i]);
    small_sources_free(source, COUNT);
    model_free(m);
}

static void any_batch(void **state) {
    (void)state;
    same_in_any_batch(&(small_model){"pn+ls", "pn+ls", "pre", 64, 4, 0, 0, NULL}, 5);
    same_in_any_batch(&(small_model){"bn", "ln", "post", 40, 5, 0, 0, NULL}, 3);
    same_in_any_batch(&(small_model){"ln", "rmsnorm+ls", "pre", 48, 3, 0, 0, NULL}, 1);
    same_in_any_batch(&(small_model){"bn", "ln", "peri", 48, 3, 0, 0, "ln"}, 4);
    same_in_any_batch(&(small_model){"ln", "pn", "scaled", 40, 5, 0, 0, "rmsnorm"}, 3);
}

/* -- batches and results */

typedef struct told {
    int calls, batches, stop_at;
    int64_t first, sentences, words; /* sentences of the first batch */
} told;

static void progress(void *context, int64_t sentences, int64_t words) {
    told *t = context;
    if (!t->batches++) t->first = sentences;
    t->sentences = sentences;
    t->words = words;
}

static bool stop(void *context) {
    told *t = context;
    return t->stop_at && ++t->calls >= t->stop_at;
}

/* beam 2, at most 3 words and </s>: a source of n words takes n + 1 + 2 * 4 positions. */
static void bounded_batches(void **state) {
    (void)state;
    const int32_t word[] = {5, 6, 7, 8, TOKEN_EOS};
    const model_source source[] = {{word + 3, 2}, {word, 5}, {word + 2, 3}};
    model *m = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, NULL});
    translate_options o = translate_options_default();
    translation out[3], again[3];
    told t = {0};
    translate_report r;
    sr_failure why = {0};
    o.beam = (beam_options){.beam = 2, .best = 1, .lenpen = 1, .min_len = 1, .max_b = 3};
    o.progress = progress;
    o.stop = stop;
    o.context = &t;
    o.max_tokens = 13 + 11; /* the two longest; then the third */
    check_ok(translate(m, &o, source, 3, out, &r, &why), &why);
    assert_true(t.batches == 2 && t.first == 2);
    assert_int_equal(t.sentences, 3);
    assert_true(r.sentences == 3 && r.words == t.words && !r.stopped);
    assert_int_equal(r.words,
                     out[0].item[0].length + out[1].item[0].length + out[2].item[0].length);
    o.max_tokens--;
    t = (told){0};
    check_ok(translate(m, &o, source, 3, again, &r, &why), &why);
    assert_true(t.batches == 2 && t.first == 1); /* the longest; then the other two */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(out[i].count, 1);
        assert_true(same_bytes(&out[i], &again[i]));
        translation_free(&again[i]);
    }
    o.max_sentences = 1;
    t = (told){.stop_at = 6};
    check_ok(translate(m, &o, source, 3, again, &r, &why), &why);
    assert_true(r.stopped && r.sentences == 1);
    assert_true(same_bytes(&out[1], &again[1]) && again[0].count == 0 && again[2].count == 0);
    for (int i = 0; i < 3; i++) {
        translation_free(&out[i]);
        translation_free(&again[i]);
    }
    model_free(m);
}

/* -- several threads */

typedef struct seen {
    int threads, calls; /* 1: the test's thread called, 2: another one; number of calls */
    pthread_t own;
} seen;

/* Waits until both threads have called it, at most 5 s. */
static bool meet(void *context) {
    seen *s = context;
    const int one = pthread_equal(pthread_self(), s->own) ? 1 : 2;
    __atomic_or_fetch(&s->threads, one, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&s->calls, 1, __ATOMIC_SEQ_CST);
    for (int ms = 0; ms < 5000 && __atomic_load_n(&s->threads, __ATOMIC_SEQ_CST) != 3; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    return false;
}

/* Two threads work on separate batches; with fewer batches than threads, all work on one. */
static void batches_side_by_side(void **state) {
    (void)state;
    enum { COUNT = 4 };
    model *m = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, NULL});
    model_source source[COUNT];
    translation out[COUNT];
    seen s = {.own = pthread_self()};
    sr_failure why = {0};
    translate_options o = translate_options_default();
    o.beam.max_b = 3;
    o.max_sentences = 1, o.threads = 2, o.stop = meet, o.context = &s;
    small_sources(source, COUNT, 5, 24);
    check_ok(translate(m, &o, source, COUNT, out, NULL, &why), &why);
    assert_int_equal(s.threads, 3);
    for (int i = 0; i < COUNT; i++) translation_free(&out[i]);
    s = (seen){.threads = 2, .own = pthread_self()}; /* the thread to wait for */
    check_ok(translate(m, &o, source, 1, out, NULL, &why), &why);
    assert_true(s.threads == 3 && s.calls > 0);
    translation_free(&out[0]);
    small_sources_free(source, COUNT);
    model_free(m);
}

static const model_decoder *usual;
static int32_t late;

/* Sources with the words 20 to 23 cannot be encoded; one of them fails late. */
static sr_status refuse_some(void *decoder, const model_source *source, int64_t count,
                             sr_failure *why) {
    const int32_t word = source[0].token[0];
    if (word < 20 || word > 23) return usual->start(decoder, source, count, why);
    nanosleep(&(struct timespec){0, word == late ? 60000000 : 20000000}, NULL);
    return sr_fail(why, SR_LIBRARY, "word %d cannot be encoded", word);
}

/* The reported failure is the first failing batch's, whichever thread is faster. */
static void first_failure(void **state) {
    (void)state;
    enum { COUNT = 40 };
    model *m = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, NULL});
    usual = m->row->decoder;
    model_decoder refusing = *usual;
    model_row row = *m->row;
    refusing.start = refuse_some, row.decoder = &refusing, m->row = &row;
    model_source source[COUNT];
    translation out[COUNT];
    int32_t word[COUNT][2];
    translate_options o = translate_options_default();
    o.max_sentences = 1, o.beam.max_b = 3;
    for (int i = 0; i < COUNT; i++) {
        word[i][0] = 8 + i, word[i][1] = TOKEN_EOS;
        source[i] = (model_source){word[i], 2};
    }
    for (int i = 0; i < 6; i++) {
        o.threads = 1 + i / 2, late = 20 + i % 2;
        sr_failure why = {0};
        assert_int_equal(translate(m, &o, source, COUNT, out, NULL, &why), SR_LIBRARY);
        check_failure(&why, SR_LIBRARY, "word 20 cannot");
        for (int k = 0; k < COUNT; k++) assert_true(out[k].count == 0 && !out[k].item);
    }
    model_free(m);
}

/* Positions are a formula: the model's configured length does not limit inputs or outputs. */
static void long_sentences(void **state) {
    (void)state;
    model *brief = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 3, 0, NULL});
    model *roomy = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 900, 0, NULL});
    model_source source[2];
    translation a[2], b[2];
    sr_failure why = {0};
    translate_options o = translate_options_default();
    o.beam.beam = 2;
    o.beam.min_len = o.beam.max_b = 30;
    small_sources(source, 2, 700, 23);
    check_ok(translate(brief, &o, source, 2, a, NULL, &why), &why);
    check_ok(translate(roomy, &o, source, 2, b, NULL, &why), &why);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(a[i].item[0].length, 31);
        assert_true(same_bytes(&a[i], &b[i]));
        translation_free(&a[i]);
        translation_free(&b[i]);
    }
    small_sources_free(source, 2);
    model_free(brief);
    model_free(roomy);
}

/* -- memory for some threads only */

static const model_decoder *true_decoder;
static int decoders_left;

static void *scarce(model *m, const void *beside, int threads, sr_failure *why) {
    if (decoders_left-- > 0) return true_decoder->create(m, beside, threads, why);
    sr_fail(why, SR_MEMORY, "out of memory for decoding");
    return NULL;
}

/* With memory for one or two of four threads, the translations are the same; with none, it
 * fails. */
static void fewer_threads(void **state) {
    (void)state;
    enum { COUNT = 12 };
    model *m = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, NULL});
    model_source source[COUNT];
    translation all[COUNT], some[COUNT];
    sr_failure why = {0};
    translate_options o = translate_options_default();
    o.max_sentences = 1;
    o.threads = 4;
    small_sources(source, COUNT, 9, 24);
    check_ok(translate(m, &o, source, COUNT, all, NULL, &why), &why);
    true_decoder = m->row->decoder;
    model_decoder decoder = *true_decoder;
    model_row row = *m->row;
    decoder.create = scarce;
    row.decoder = &decoder;
    m->row = &row;
    for (int there = 1; there < 4; there++) {
        decoders_left = there;
        check_ok(translate(m, &o, source, COUNT, some, NULL, &why), &why);
        for (int i = 0; i < COUNT; i++) {
            assert_true(same_bytes(&all[i], &some[i]));
            translation_free(&some[i]);
        }
    }
    decoders_left = 0;
    assert_int_equal(translate(m, &o, source, COUNT, some, NULL, &why), SR_MEMORY);
    check_failure(&why, SR_MEMORY, "out of memory for decoding");
    for (int i = 0; i < COUNT; i++) translation_free(&all[i]);
    small_sources_free(source, COUNT);
    model_free(m);
}

/* -- refusals */

/* number: the faulty source; -1: none. */
static void refused(model *m, const translate_options *o, const model_source *bad, int64_t number,
                    sr_status status, const char *text) {
    const int32_t fine[] = {9, TOKEN_EOS};
    const model_source source[] = {{fine, 2}, *bad};
    translation out[2] = {{7, NULL}, {7, NULL}};
    sr_failure why = {0};
    translate_report report;
    assert_int_equal(translate(m, o, source, 2, out, &report, &why), status);
    assert_int_equal(report.refused, number);
    check_failure(&why, status, text);
    for (int i = 0; i < 2; i++) assert_true(out[i].count == 0 && !out[i].item);
}

static void refusals(void **state) {
    (void)state;
    model *m = small_model_make(&(small_model){"ln", "ln", "pre", 0, 0, 0, 0, NULL});
    const int32_t word[] = {9, 8, TOKEN_PAD, TOKEN_EOS, SMALL_WORDS, TOKEN_EOS};
    const model_source fine = {word + 5, 1};
    translate_options o = translate_options_default();
    refused(m, &o, &(model_source){word, 2}, 1, SR_USAGE, "no </s> at the end");
    refused(m, &o, &(model_source){word, 0}, 1, SR_USAGE, "no </s> at the end");
    refused(m, &o, &(model_source){word, 4}, 1, SR_USAGE, "word 2 is token 1 of 131");
    refused(m, &o, &(model_source){word + 4, 2}, 1, SR_USAGE, "word 0 is token 131 of 131");
    o.max_source = 3;
    refused(m, &o, &(model_source){word, 4}, 1, SR_USAGE, "4 words with </s>, more than 3");
    o.max_tokens = 1006;
    refused(m, &o, &fine, 0, SR_USAGE,
            "2 words with </s> may take 1007 positions, max-tokens is 1006");
    o.max_tokens = 0;
    refused(m, &o, &fine, -1, SR_USAGE, "batches of 0 positions");
    o = translate_options_default();
    o.beam.beam = 0;
    refused(m, &o, &fine, -1, SR_USAGE, "a beam of 0");
    o = translate_options_default();
    o.threads = 0;
    refused(m, &o, &fine, -1, SR_USAGE, "threads: 0");
    o = translate_options_default();
    o.beam.max_b = 0;
    refused(m, &o, &fine, 0, SR_USAGE, "a translation of at least 1 words and at most 0");
    m->embedding->value[9 * 32] = NAN;
    refused(m,
            &(translate_options){.beam = beam_options_default(), .max_tokens = 5000, .threads = 1},
            &fine, -1, SR_STATE, "the model's output is not finite");
    model_free(m);
}

int main(void) {
    gemm_setup(2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_sentences), cmocka_unit_test(any_batch),
        cmocka_unit_test(bounded_batches), cmocka_unit_test(batches_side_by_side),
        cmocka_unit_test(first_failure),   cmocka_unit_test(long_sentences),
        cmocka_unit_test(fewer_threads),   cmocka_unit_test(refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
