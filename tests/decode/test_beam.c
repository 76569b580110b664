/* Beam search by hand: every rule with small numbers, and a comparison with all possible
 * sentences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plain_beam.h"
#include "testing/check.h"
#include "written_words.h"

enum { BOS = TOKEN_BOS, EOS = TOKEN_EOS, UNK = TOKEN_UNK, A = 4, B = 5, C = 6, V = 7, ROWS = 1024 };
enum { MANY = 200 }; /* words; most are skipped in blocks */

/* -- a scorer that depends on the previous words */

typedef struct history {
    int32_t word[PLAIN_WORDS];
    int64_t count, sentence;
} history;

typedef struct asked {
    written_words words;
    plain_next_fn *next;
    void *context;
    uint64_t *seed; /* one per sentence: plain_noise instead of next */
    int64_t calls;
    history *row, *before; /* [ROWS] */
} asked;

static void noise_or_next(asked *a, const history *h, double *log_p) {
    if (a->seed)
        plain_noise(a->seed[h->sentence], h->word, h->count, a->words.V, log_p);
    else
        a->next(a->context, h->word, h->count, log_p);
}

static sr_status score(void *context, int64_t rows, const int32_t *parent, const int32_t *token,
                       int32_t *source_at, sr_failure *why) {
    asked *a = context;
    (void)why;
    assert_true(rows > 0 && rows <= ROWS);
    history *spent = a->before;
    a->before = a->row;
    a->row = spent;
    for (int64_t r = 0; r < rows; r++) {
        history *h = &a->row[r];
        *h = a->calls ? a->before[parent[r]] : (history){.sentence = parent[r]};
        if (a->calls)
            h->word[h->count++] = token[r];
        else
            assert_true(token[r] == EOS && parent[r] == r);
        source_at[r] = (int32_t)(100 * h->sentence + h->count);
        noise_or_next(a, h, a->words.log_p + r * a->words.V);
    }
    a->calls++;
    return SR_OK;
}

static asked ask(plain_next_fn *next, void *context, uint64_t *seed, int64_t vocabulary) {
    asked a = {{vocabulary, calloc((size_t)(ROWS * vocabulary), sizeof(double))},
               next,
               context,
               seed,
               0,
               calloc(ROWS, sizeof *a.row),
               calloc(ROWS, sizeof *a.row)};
    assert_true(a.words.log_p && a.row && a.before);
    return a;
}

static void asked_free(asked *a) {
    free(a->words.log_p);
    free(a->row);
    free(a->before);
}

/* One sentence; in `calls` steps unless it is 0. */
static translation search_in(beam_options o, plain_next_fn *next, int64_t source_length,
                             int64_t calls) {
    asked a = ask(next, NULL, NULL, V);
    const scorer words = {&a, V, 2, score, written_log_p, written_largest};
    translation t;
    sr_failure why = {0};
    check_ok(beam_search(&o, &words, 1, &source_length, &t, &why), &why);
    if (calls) assert_int_equal(a.calls, calls);
    asked_free(&a);
    return t;
}

static translation search(beam_options o, plain_next_fn *next, int64_t source_length) {
    return search_in(o, next, source_length, 0);
}

static void check_words(const translation *t, int64_t i, const int32_t *want, int64_t count,
                        double score_wanted) {
    assert_true(i < t->count);
    assert_int_equal(t->item[i].length, count);
    for (int64_t j = 0; j < count; j++) assert_int_equal(t->item[i].token[j], want[j]);
    check_near_double("score", &t->item[i].score, &score_wanted, 1, 1e-12, 0);
}

/* -- rules */

/* log_p = log of the table p [V]. */
static void by_table(const double *p, double *log_p) {
    for (int w = 0; w < V; w++) log_p[w] = log(p[w]);
}

/* A, then B, then </s> are the best single words, though "C </s>" is the better sentence. */
static void greedy_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    (void)context;
    static const double first[V] = {0.02, 0.5, 0.03, 0.01, 0.26, 0.04, 0.25};
    static const double behind_a[V] = {0.1, 0.5, 0.1, 0.09, 0.1, 0.11, 0.1};
    static const double behind_c[V] = {0, 0, 1, 0, 0, 0, 0};
    static const double end[V] = {0.1, 0.5, 0.4, 0, 0, 0, 0};
    by_table(count == 0             ? first
             : word[count - 1] == A ? behind_a
             : word[count - 1] == C ? behind_c
                                    : end,
             log_p);
}

static void greedy(void **state) {
    (void)state;
    beam_options o = beam_options_default();
    o.beam = 1;
    translation t = search(o, greedy_next, 1);
    assert_int_equal(t.count, 1);
    check_words(&t, 0, (int32_t[]){A, B, EOS}, 3, log(0.26 * 0.11 * 0.4) / 3);
    assert_int_equal(t.item[0].source_at[2], 2); /* chosen with the third word */
    translation_free(&t);
    o.beam = 2;
    o.best = 1;
    t = search(o, greedy_next, 1);
    assert_int_equal(t.count, 1);
    check_words(&t, 0, (int32_t[]){C, EOS}, 2, log(0.25) / 2);
    translation_free(&t);
}

/* "A </s>" 0.5 * 0.5, "B C C </s>" 0.4 */
static void lengths_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    (void)context;
    static const double first[V] = {0, 0, 0, 0, 0.5, 0.4, 0.1}, one[V] = {0, 0, 0, 0, 0, 0, 1};
    static const double behind_a[V] = {0, 0, 0.5, 0, 0, 0, 0.5}, end[V] = {0, 0, 1, 0, 0, 0, 0};
    const int32_t last = count ? word[count - 1] : -1;
    by_table(count == 0 ? first : last == A ? behind_a : count < 3 ? one : end, log_p);
}

static void length_penalty(void **state) {
    (void)state;
    beam_options o = beam_options_default();
    const int32_t brief[] = {A, EOS}, wordy[] = {B, C, C, EOS};
    o.beam = 2;
    o.lenpen = 0;
    translation t = search(o, lengths_next, 1);
    check_words(&t, 0, wordy, 4, log(0.4)); /* 0.4 > 0.25 */
    check_words(&t, 1, brief, 2, log(0.25));
    translation_free(&t);
    o.lenpen = 1;
    t = search(o, lengths_next, 1);
    check_words(&t, 0, wordy, 4, log(0.4) / 4);
    check_words(&t, 1, brief, 2, log(0.25) / 2);
    translation_free(&t);
    o.lenpen = -1; /* long ones score lower */
    t = search(o, lengths_next, 1);
    check_words(&t, 0, brief, 2, 2 * log(0.25));
    check_words(&t, 1, wordy, 4, 4 * log(0.4));
    translation_free(&t);
}

/* All words have equal scores. */
static void flat_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    (void)context, (void)word, (void)count;
    for (int w = 0; w < V; w++) log_p[w] = -2;
}

/* Step 0: <s>, </s> (not yet allowed), <unk>, A, ..: lower numbers stay. With B = 3, the candidates
 * of step 1 are the first six words of the first hypothesis; </s> is the second. */
static void ties(void **state) {
    (void)state;
    beam_options o = beam_options_default();
    o.beam = 3;
    o.max_b = 3;
    translation t = search(o, flat_next, 1);
    assert_int_equal(t.count, 3);
    check_words(&t, 0, (int32_t[]){BOS, EOS}, 2, -2);
    check_words(&t, 1, (int32_t[]){BOS, BOS, EOS}, 3, -2);
    check_words(&t, 2, (int32_t[]){BOS, BOS, BOS, EOS}, 4, -2);
    translation_free(&t);
}

/* </s> is very unlikely. */
static void endless_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    static const double p[V] = {0.01, 0.5, 1e-9, 0.01, 0.3, 0.1, 0.08};
    (void)context, (void)word, (void)count;
    by_table(p, log_p);
}

static void longest(void **state) {
    (void)state;
    beam_options o = beam_options_default();
    o.beam = 1;
    o.max_a = 0.5;
    o.max_b = 1.25;
    translation t = search(o, endless_next, 3); /* int(1.5 + 1.25) = 2 */
    check_words(&t, 0, (int32_t[]){A, A, EOS}, 3, log(0.3 * 0.3 * 1e-9) / 3);
    translation_free(&t);
    o.max_a = o.max_b = 0;
    o.min_len = 0;
    t = search(o, endless_next, 3);
    check_words(&t, 0, (int32_t[]){EOS}, 1, log(1e-9));
    translation_free(&t);
}

/* </s> is likely from the start. */
static void hasty_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    static const double p[V] = {0.01, 0.1, 0.6, 0.01, 0.2, 0.05, 0.03};
    (void)context, (void)word, (void)count;
    by_table(p, log_p);
}

static void shortest(void **state) {
    (void)state;
    beam_options o = beam_options_default();
    o.beam = 1;
    o.min_len = 3;
    translation t = search(o, hasty_next, 1);
    check_words(&t, 0, (int32_t[]){A, A, A, EOS}, 4, log(0.2 * 0.2 * 0.2 * 0.6) / 4);
    translation_free(&t);
}

/* B = 2: </s> is the third candidate of step 0 and the best word later. */
static void late_end_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    static const double first[V] = {0, 0, 0.2, 0, 0.5, 0.3, 0}, then[V] = {0, 0, 0.9, 0, 0.1, 0, 0};
    (void)context, (void)word;
    by_table(count == 0 ? first : then, log_p);
}

static void end_in_second_half(void **state) {
    (void)state;
    beam_options o = beam_options_default();
    o.beam = 2;
    o.min_len = 0;
    translation t = search_in(o, late_end_next, 1, 2); /* no step after the second </s> */
    assert_int_equal(t.count, 2);
    check_words(&t, 0, (int32_t[]){A, EOS}, 2, log(0.5 * 0.9) / 2);
    check_words(&t, 1, (int32_t[]){B, EOS}, 2, log(0.3 * 0.9) / 2);
    translation_free(&t);
}

static void unknown_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    static const double first[V] = {0, 0, 0, 0.6, 0.4, 0, 0}, then[V] = {0, 0, 1, 0, 0, 0, 0};
    (void)context, (void)word;
    by_table(count == 0 ? first : then, log_p);
}

static void unknown_penalty(void **state) {
    (void)state;
    beam_options o = beam_options_default();
    o.beam = 2;
    o.unk_penalty = 1;
    translation t = search(o, unknown_next, 1);
    assert_int_equal(t.count, 2);
    check_words(&t, 0, (int32_t[]){A, EOS}, 2, log(0.4) / 2);
    check_words(&t, 1, (int32_t[]){UNK, EOS}, 2, (log(0.6) - 1) / 2);
    translation_free(&t);
    o.unk_penalty = INFINITY; /* fewer finite candidates than B */
    t = search(o, unknown_next, 1);
    assert_int_equal(t.count, 1);
    check_words(&t, 0, (int32_t[]){A, EOS}, 2, log(0.4) / 2);
    translation_free(&t);
}

static void unknown_in_text(void **state) {
    (void)state;
    int32_t token[] = {A, UNK, UNK, EOS}, at[] = {0, 7, -1, 3}, word[4];
    const hypothesis h = {.length = 4, .token = token, .source_at = at};
    assert_int_equal(hypothesis_words(&h, UNKNOWN_KEEP, word), 3);
    assert_memory_equal(word, ((int32_t[]){A, UNK, UNK}), 12);
    assert_int_equal(hypothesis_words(&h, UNKNOWN_DROP, word), 1);
    assert_int_equal(word[0], A);
    assert_int_equal(hypothesis_words(&h, UNKNOWN_COPY, word), 3);
    assert_memory_equal(word, ((int32_t[]){A, -1 - 7, UNK}), 12);
}

/* -- against all sentences and against the plain beam */

static void noise_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    plain_noise(*(uint64_t *)context, word, count, V, log_p);
}

static void many_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    plain_noise(*(uint64_t *)context, word, count, MANY, log_p);
}

typedef struct sentences {
    double score[2048];
    int count;
} sentences;

/* Scores all sentences of at most `longest_wanted` words and </s>. */
static void enumerate(sentences *s, uint64_t seed, int32_t *word, int64_t count, double sum,
                      int64_t longest_wanted) {
    double log_p[V];
    plain_noise(seed, word, count, V, log_p);
    s->score[s->count++] = (sum + log_p[EOS]) / (double)(count + 1);
    for (int32_t w = 0; w < V && count < longest_wanted; w++) {
        if (w == TOKEN_PAD || w == EOS) continue;
        word[count] = w;
        enumerate(s, seed, word, count + 1, sum + log_p[w], longest_wanted);
    }
}

static int falling(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

/* Two sentences of different length with different words; a beam that drops nothing. */
static void all_sentences(void **state) {
    (void)state;
    uint64_t seed[] = {7, 8};
    const int64_t length[] = {2, 3};
    asked a = ask(NULL, NULL, seed, V);
    const scorer words = {&a, V, 2, score, written_log_p, written_largest};
    translation t[2];
    sr_failure why = {0};
    beam_options o = beam_options_default();
    o.beam = 200; /* live and finished ones stay below it */
    o.min_len = 0;
    o.max_a = 1;
    o.max_b = 0;
    check_ok(beam_search(&o, &words, 2, length, t, &why), &why);
    for (int i = 0; i < 2; i++) {
        sentences *all = calloc(1, sizeof *all);
        int32_t word[8];
        assert_non_null(all);
        enumerate(all, seed[i], word, 0, 0, length[i]);
        qsort(all->score, (size_t)all->count, sizeof *all->score, falling);
        assert_int_equal(t[i].count, all->count);
        for (int64_t k = 0; k < all->count; k++) {
            check_near_double("score", &t[i].item[k].score, &all->score[k], 1, 1e-12, 1e-12);
            const hypothesis *h = &t[i].item[k];
            assert_int_equal(h->source_at[h->length - 1], 100 * i + h->length - 1);
        }
        free(all);
        translation_free(&t[i]);
    }
    asked_free(&a);
}

static void compare_with_plain(int beam, double unk_penalty, int64_t vocabulary,
                               plain_next_fn *next) {
    enum { SENTENCES = 12 };
    uint64_t seed[SENTENCES];
    int64_t length[SENTENCES];
    translation got[SENTENCES];
    sr_failure why = {0};
    for (int i = 0; i < SENTENCES; i++) seed[i] = (uint64_t)(100 * beam + i), length[i] = 1 + i;
    beam_options o = {.beam = beam,
                      .lenpen = 0.3 * beam,
                      .unk_penalty = unk_penalty,
                      .min_len = beam % 3,
                      .max_a = 0.7,
                      .max_b = 2};
    asked a = ask(NULL, NULL, seed, vocabulary);
    const scorer words = {&a, vocabulary, beam, score, written_log_p, written_largest};
    check_ok(beam_search(&o, &words, SENTENCES, length, got, &why), &why);
    for (int i = 0; i < SENTENCES; i++) {
        translation want = plain_beam(&o, beam_longest(&o, length[i]), vocabulary, next, &seed[i]);
        plain_compare(&got[i], &want, 1e-12);
        translation_free(&got[i]);
        translation_free(&want);
    }
    asked_free(&a);
}

static void plain_rules(void **state) {
    (void)state;
    for (int beam = 1; beam <= 6; beam++) {
        compare_with_plain(beam, 0.5, V, noise_next);
        compare_with_plain(beam, 0.5, MANY, many_next);
        compare_with_plain(beam, -3, MANY, many_next); /* <unk> gets a bonus */
    }
    compare_with_plain(40, 0.5, MANY, many_next); /* more candidates than a block has words */
}

/* -- errors */

static void impossible_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    (void)context, (void)word;
    for (int w = 0; w < V; w++) log_p[w] = count ? NAN : -1;
}

static void nothing_next(void *context, const int32_t *word, int64_t count, double *log_p) {
    (void)context, (void)word, (void)count;
    for (int w = 0; w < V; w++) log_p[w] = -INFINITY;
}

static void refused(beam_options o, int64_t length, plain_next_fn *next, sr_status status,
                    const char *text) {
    asked a = ask(next, NULL, NULL, V);
    const scorer words = {&a, V, 2, score, written_log_p, written_largest};
    translation t = {.count = 99};
    sr_failure why = {0};
    assert_int_equal(beam_search(&o, &words, 1, &length, &t, &why), status);
    check_failure(&why, status, text);
    assert_true(t.count == 0 && !t.item);
    asked_free(&a);
}

static void refusals(void **state) {
    (void)state;
    const beam_options o = beam_options_default();
    beam_options p = o;
    refused(o, 1, impossible_next, SR_STATE, "sentence 0, word 2: a log probability is NaN");
    refused(o, 0, flat_next, SR_USAGE, "sentence 0 has no words");
    p.beam = 0;
    refused(p, 1, flat_next, SR_USAGE, "a beam of 0");
    p = o, p.best = 6;
    refused(p, 1, flat_next, SR_USAGE, "the best 6 of a beam of 5");
    p = o, p.lenpen = NAN;
    refused(p, 1, flat_next, SR_USAGE, "length penalty nan");
    p = o, p.max_b = 2, p.min_len = 3;
    refused(p, 1, flat_next, SR_USAGE, "at least 3 words and at most 2");
    p = o, p.max_a = -1;
    refused(p, 1, flat_next, SR_USAGE, "at most -1 times");
    translation t = search(o, nothing_next, 1);
    assert_int_equal(t.count, 0);
    translation_free(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy),
        cmocka_unit_test(length_penalty),
        cmocka_unit_test(ties),
        cmocka_unit_test(longest),
        cmocka_unit_test(shortest),
        cmocka_unit_test(end_in_second_half),
        cmocka_unit_test(unknown_penalty),
        cmocka_unit_test(unknown_in_text),
        cmocka_unit_test(all_sentences),
        cmocka_unit_test(plain_rules),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
