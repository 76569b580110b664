/* Generated pairs: a lexicon counted along the known word order reaches the stated entropy. Without
 * the source, or with a wrong one, no model comes near it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data_files.h"

enum { LONGEST = 128, PAIRS = 8000 };

typedef struct pair {
    int source[LONGEST], target[LONGEST]; /* without </s> */
    int sources, targets;
} pair;

typedef struct corpus {
    dataset *d;
    pair *pair[2];
    int count[2];
    int vocabulary;
} corpus;

static int copy_row(const int32_t *row, const uint8_t *mask, int64_t padded, int out[LONGEST]) {
    int n = 0;
    for (int64_t i = 0; i < padded && mask[i] && row[i] != TOKEN_EOS; i++) {
        assert_true(n < LONGEST);
        out[n++] = row[i];
    }
    return n;
}

static corpus read_corpus(const data_options *o) {
    corpus c = {.d = open_data(o)};
    c.vocabulary = (int)data_get_shape(c.d)->vocabulary;
    for (int s = 0; s < 2; s++) {
        c.pair[s] = calloc(PAIRS, sizeof *c.pair[s]);
        assert_non_null(c.pair[s]);
        for (int64_t k = 0; k < data_batches(c.d, (data_split)s); k++) {
            batch b;
            sr_failure why = {0};
            check_ok(data_batch(c.d, (data_split)s, 0, k, &b, &why), &why);
            for (int64_t i = 0; i < b.count; i++) {
                pair *p = &c.pair[s][c.count[s]++];
                int64_t at = i * b.source_length, to = i * b.target_length;
                p->sources =
                    copy_row(b.source + at, b.source_mask + at, b.source_length, p->source);
                p->targets =
                    copy_row(b.target_out + to, b.target_mask + to, b.target_length, p->target);
            }
        }
    }
    return c;
}

static void free_corpus(corpus *c) {
    free(c->pair[0]), free(c->pair[1]);
    data_close(c->d);
}

static data_options options_of(void) {
    return default_options("synth-pairs", "");
}

static bool is_kind(const corpus *c, int token, const char *name) {
    return strncmp(data_word(c->d, SIDE_SOURCE, token), name, strlen(name)) == 0;
}

/* Moves one phrase, starting at source word *at: adjectives follow the noun. */
static void order_phrase(const corpus *c, const pair *p, int *at, int *out, int *n) {
    if (*at < p->sources && is_kind(c, p->source[*at], "det")) out[(*n)++] = (*at)++;
    int first = *at;
    while (*at < p->sources && is_kind(c, p->source[*at], "adj")) (*at)++;
    int adjectives = *at - first;
    if (*at < p->sources) out[(*n)++] = (*at)++;
    for (int i = 0; i < adjectives; i++) out[(*n)++] = first + i;
}

/* out[j] = the source position that target position j translates, from the grammar alone. */
static int order_words(const corpus *c, const pair *p, int out[LONGEST]) {
    int n = 0, at = 0;
    while (at < p->sources) {
        order_phrase(c, p, &at, out, &n);
        int verb = at < p->sources ? at++ : -1;
        bool object = at < p->sources &&
                      (is_kind(c, p->source[at], "det") || is_kind(c, p->source[at], "adj") ||
                       is_kind(c, p->source[at], "noun"));
        if (object) order_phrase(c, p, &at, out, &n);
        if (verb >= 0) out[n++] = verb;
        if (at < p->sources && is_kind(c, p->source[at], "prep")) {
            out[n++] = at++;
            order_phrase(c, p, &at, out, &n);
        }
        if (at < p->sources && is_kind(c, p->source[at], "adv")) out[n++] = at++;
        if (at < p->sources) out[n++] = at++; /* conjunction */
    }
    return n;
}

/* Counts [vocabulary, vocabulary] of successors or translations. */
typedef struct table {
    int size;
    int *count; /* [size, size] */
    int *total; /* [size] */
} table;

static table make_table(int size) {
    table t = {size, calloc((size_t)size * (size_t)size, sizeof(int)),
               calloc((size_t)size, sizeof(int))};
    assert_true(t.count && t.total);
    return t;
}

static void free_table(table *t) {
    free(t->count), free(t->total);
}

static void add_count(table *t, int given, int token) {
    t->count[given * t->size + token]++;
    t->total[given]++;
}

/* -log of (count + strength * prior) / (total + strength). */
static double smoothed_nll(const table *t, int given, int token, double prior, double strength) {
    double up = t->count[given * t->size + token] + strength * prior;
    return -log(up / (t->total[given] + strength));
}

static int target_at(const pair *p, int j) {
    return j < p->targets ? p->target[j] : TOKEN_EOS;
}

/* The source word of target position j, </s> after the last; <unk> if the order has none. */
static int source_of(const pair *p, const int *order, int n, int j) {
    if (j < n && j < p->targets) return p->source[order[j]];
    return j == n && j == p->targets ? TOKEN_EOS : TOKEN_UNK;
}

/* Returns nll per validation token of a lexicon counted on the training pairs. *aligned: fraction
 * of pairs whose length agrees with the grammar's order. */
static double lexicon_nll(const corpus *c, double *aligned) {
    table t = make_table(c->vocabulary);
    double nll = 0;
    int tokens = 0, agree = 0;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < c->count[s]; i++) {
            const pair *p = &c->pair[s][i];
            int order[LONGEST], n = order_words(c, p, order);
            agree += s && n == p->targets;
            for (int j = 0; j <= p->targets; j++) {
                int from = source_of(p, order, n, j), to = target_at(p, j);
                if (s == 0) add_count(&t, from, to);
                if (s == 1) nll += smoothed_nll(&t, from, to, 1.0 / c->vocabulary, 0.5), tokens++;
            }
        }
    free_table(&t);
    *aligned = (double)agree / c->count[1];
    return nll / tokens;
}

/* nll per validation token, predicted from the previous word, or without context. */
static double target_nll(const corpus *c, bool bigram) {
    table one = make_table(c->vocabulary), two = make_table(c->vocabulary);
    double nll = 0;
    int tokens = 0;
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < c->count[s]; i++) {
            const pair *p = &c->pair[s][i];
            for (int j = 0, before = TOKEN_EOS; j <= p->targets; before = target_at(p, j), j++) {
                int to = target_at(p, j);
                if (s == 0) {
                    add_count(&one, 0, to), add_count(&two, before, to);
                    continue;
                }
                double unigram = smoothed_nll(&one, 0, to, 1.0 / c->vocabulary, 1);
                nll += bigram ? smoothed_nll(&two, before, to, exp(-unigram), 20) : unigram;
                tokens++;
            }
        }
    free_table(&one), free_table(&two);
    return nll / tokens;
}

static void has_its_default_sizes(void **state) {
    (void)state;
    data_options o = options_of();
    corpus c = read_corpus(&o);
    assert_int_equal(c.count[0], 8000);
    assert_int_equal(c.count[1], 500);
    assert_in_range(c.vocabulary, 1000, 2000);
    check_equals(data_unknown_share(c.d, SPLIT_VALID), 0);
    assert_false(data_has_split(c.d, SPLIT_TEST));
    check_above(data_entropy(c.d), 0.1);
    check_below(data_entropy(c.d), 0.4);
    assert_non_null(strstr(data_describe(c.d), "entropy of the validation targets 0."));
    free_corpus(&c);
}

static void a_lexicon_reaches_the_entropy(void **state) {
    (void)state;
    data_options o = options_of();
    for (o.seed = 1; o.seed <= 3; o.seed++) {
        corpus c = read_corpus(&o);
        double aligned, nll = lexicon_nll(&c, &aligned);
        print_message("seed %d: entropy %.4f, lexicon %.4f\n", (int)o.seed, data_entropy(c.d), nll);
        check_equals(aligned, 1);
        check_above(nll, data_entropy(c.d) - 0.01);
        check_below(nll, data_entropy(c.d) + 0.06);
        free_corpus(&c);
    }
}

static void targets_alone_are_far_from_it(void **state) {
    (void)state;
    data_options o = options_of();
    corpus c = read_corpus(&o);
    double unigram = target_nll(&c, false), bigram = target_nll(&c, true);
    print_message("unigram %.3f, bigram %.3f, entropy %.3f\n", unigram, bigram, data_entropy(c.d));
    check_below(bigram, unigram);
    check_above(bigram, data_entropy(c.d) + 2);
    free_corpus(&c);
}

static void shuffled_sources_tell_nothing(void **state) {
    (void)state;
    data_options o = options_of();
    corpus plain = read_corpus(&o);
    o.shuffle_sources = true;
    corpus c = read_corpus(&o);
    double aligned, nll = lexicon_nll(&c, &aligned);
    print_message("lexicon on shuffled sources %.3f (lengths agree in %.2f)\n", nll, aligned);
    check_above(nll, data_entropy(c.d) + 2);
    check_below(aligned, 0.3);
    check_equals(data_entropy(c.d), data_entropy(plain.d));
    free_corpus(&plain), free_corpus(&c);
}

/* The translations of one source word, counted on training: the second has its stated frequency. */
static void second_translations_have_their_share(void **state) {
    (void)state;
    static const char *const words[] = {"verb0.00", "verb0.01", "det.01", "det.03", "conj.03"};
    static const double want[] = {0, 0.25, 0.25, 0.4, 0.4};
    data_options o = options_of();
    corpus c = read_corpus(&o);
    for (int w = 0; w < 5; w++) {
        int all = 0, second = 0;
        for (int i = 0; i < c.count[0]; i++) {
            const pair *p = &c.pair[0][i];
            int order[LONGEST], n = order_words(&c, p, order);
            for (int j = 0; j < n; j++) {
                if (strcmp(data_word(c.d, SIDE_SOURCE, p->source[order[j]]), words[w]) != 0)
                    continue;
                const char *t = data_word(c.d, SIDE_SOURCE, p->target[j]);
                all++, second += t[strlen(t) - 1] == 'b';
            }
        }
        double share = (double)second / all, deviation = sqrt(want[w] * (1 - want[w]) / all);
        assert_true(all > 200);
        check_within_inclusive(share, want[w], 4 * deviation);
    }
    free_corpus(&c);
}

/* Nearly all words of either side occur often enough in training to be learnt. */
static void every_word_is_seen(void **state) {
    (void)state;
    data_options o = options_of();
    corpus c = read_corpus(&o);
    int *seen = calloc((size_t)c.vocabulary, sizeof *seen), rare = 0, words = 0;
    assert_non_null(seen);
    for (int i = 0; i < c.count[0]; i++) {
        for (int j = 0; j < c.pair[0][i].sources; j++) seen[c.pair[0][i].source[j]]++;
        for (int j = 0; j < c.pair[0][i].targets; j++) seen[c.pair[0][i].target[j]]++;
    }
    for (int t = TOKEN_FIRST_WORD; t < c.vocabulary; t++) {
        if (strncmp(data_word(c.d, SIDE_SOURCE, t), "madeup", 6) == 0) continue;
        words++, rare += seen[t] < 5;
    }
    print_message("%d words, %d seen fewer than 5 times\n", words, rare);
    check_below(rare, 0.02 * words);
    free(seen);
    free_corpus(&c);
}

/* Mean length of the sources with a noun of the topic. */
static double topic_length(const corpus *c, const char *noun, int *pairs) {
    double sum = 0;
    *pairs = 0;
    for (int i = 0; i < c->count[0]; i++) {
        const pair *p = &c->pair[0][i];
        bool mine = false;
        for (int j = 0; j < p->sources; j++) mine = mine || is_kind(c, p->source[j], noun);
        if (mine) sum += p->sources, *pairs += 1;
    }
    return sum / *pairs;
}

static void topics_differ_in_length(void **state) {
    (void)state;
    data_options o = options_of();
    corpus c = read_corpus(&o);
    int first, last, longest = 0;
    double low = topic_length(&c, "noun0.", &first), high = topic_length(&c, "noun9.", &last);
    for (int i = 0; i < c.count[0]; i++)
        if (c.pair[0][i].sources > longest) longest = c.pair[0][i].sources;
    print_message("topic 0: %d pairs of %.1f words; topic 9: %d of %.1f; longest %d\n", first, low,
                  last, high, longest);
    assert_true(first > last && last > 300);
    check_above(high, 1.4 * low);
    assert_true(longest > 40);
    free_corpus(&c);
}

static void is_a_pure_function(void **state) {
    (void)state;
    data_options o = options_of();
    o.limit = 600, o.max_tokens = 256;
    check_pure(&o, SPLIT_TRAIN);
    check_pure(&o, SPLIT_VALID);
}

static void options_change_what_they_should(void **state) {
    (void)state;
    data_options o = options_of();
    o.limit = 100;
    dataset *d = open_data(&o);
    double entropy = data_entropy(d);
    assert_non_null(strstr(data_describe(d), "training 100 pairs"));
    check_equals(data_unknown_share(d, SPLIT_VALID), 0); /* every word of the grammar is known */
    data_close(d);
    o.vocab_size = 200;
    d = open_data(&o);
    assert_true(isnan(data_entropy(d)));
    check_above(data_unknown_share(d, SPLIT_VALID), 0.05);
    data_close(d);
    o.vocab_size = 0, o.max_tokens = 16; /* long pairs are dropped from training alone */
    d = open_data(&o);
    check_equals(data_entropy(d), entropy);
    assert_non_null(strstr(data_describe(d), "too long"));
    data_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(has_its_default_sizes),
        cmocka_unit_test(a_lexicon_reaches_the_entropy),
        cmocka_unit_test(targets_alone_are_far_from_it),
        cmocka_unit_test(shuffled_sources_tell_nothing),
        cmocka_unit_test(second_translations_have_their_share),
        cmocka_unit_test(every_word_is_seen),
        cmocka_unit_test(topics_differ_in_length),
        cmocka_unit_test(is_a_pure_function),
        cmocka_unit_test(options_change_what_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
