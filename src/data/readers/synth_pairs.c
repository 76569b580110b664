/* synth_pairs.c -- generated translation pairs of known entropy, for machines without data.
 *
 * Grammar of a source sentence (brackets: with the probability in `chance`):
 *     sentence = clause (conjunction clause)*      clauses: geometric, at most CLAUSES_MOST
 *     clause   = phrase verb [phrase] [preposition phrase] [adverb]
 *     phrase   = [determiner] (adjective)* noun    adjectives: 0, 1 or 2
 * A sentence has a hidden topic, which chooses the slice of nouns, verbs and adjectives. So words
 * of one topic come together. The topic also sets the chance of a further clause, so topics differ
 * in length. Topics and words are Zipf-distributed.
 *
 * Target: the same words in the order
 *     clause = phrase [phrase] verb [preposition phrase] [adverb]
 *     phrase = [determiner] noun (adjective)*
 * each word translated on its own: it has one translation, or two. The second is taken with the
 * known probability p(second). Since the classes of the source words fix the order of the target,
 * and different choices make different sentences,
 *     -log p(target | source) = -sum over words of log p(choice),
 * and </s> costs nothing. The entropy of the data set is this sum over the kept validation pairs,
 * divided by their target tokens with </s>. It is the true nll per token on these pairs, the least
 * that a model can be expected to reach. It refers to the true sources even when they are shuffled.
 * It is unknown when --vocab-size cuts words. Label smoothing keeps a model above it:
 * a certain word costs -log(1 - eps + eps / V) then.
 *
 * Words are spelled by class, topic and rank; the target's in capitals, the second translation
 * with a final b. The dictionary holds every word of the grammar, drawn or not.
 * Pair n of a split is a function of (seed, split, n): fewer pairs are the first ones of more.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "base/rng.h"
#include "data/dataset.h"

enum { TRAIN_COUNT = 8000, VALID_COUNT = 500, TOPICS = 10, CLAUSES_MOST = 6 };
/* 4 + 1 + 4 + 5 + 1 words a clause, and a conjunction. */
enum { WORDS_MOST = 16 * CLAUSES_MOST, SPELLING = 24 };

typedef enum { NOUN, VERB, ADJECTIVE, DETERMINER, PREPOSITION, ADVERB, CONJUNCTION, KINDS } kind;

static const struct {
    const char *name;
    bool topical; /* `words` per topic instead of in all */
    int words;
} kinds[KINDS] = {{"noun", true, 20}, {"verb", true, 10}, {"adj", true, 10}, {"det", false, 6},
                  {"prep", false, 8}, {"adv", false, 12}, {"conj", false, 5}};

static const struct {
    double determiner, one_adjective, two_adjectives, object, place, adverb;
    double clause_low, clause_high; /* for a further clause: first and last topic */
} chance = {0.7, 0.35, 0.15, 0.6, 0.35, 0.3, 0.06, 0.4};

static const double word_exponent = 1.0, topic_exponent = 0.5; /* exponents of Zipf's law */

typedef struct word {
    kind kind;
    int topic, rank; /* from 0 */
    bool second;     /* translation taken */
} word;

typedef struct sentence {
    int topic;
    int sources, targets;
    word source[WORDS_MOST], target[WORDS_MOST];
    double nll; /* -log p(target | source) */
} sentence;

/* The less usual translation of two of every four ranks. */
static double second_share(int rank) {
    return rank % 4 == 1 ? 0.25 : rank % 4 == 3 ? 0.4 : 0;
}

/* 0 .. count-1 with p ~ 1 / (i + 1)^exponent. */
static int draw_zipf(rng *r, int count, double exponent) {
    double total = 0;
    for (int i = 0; i < count; i++) total += pow(i + 1, -exponent);
    double left = rng_uniform(r) * total;
    for (int i = 0; i < count - 1; i++)
        if ((left -= pow(i + 1, -exponent)) < 0) return i;
    return count - 1;
}

static bool happens(rng *r, double p) {
    return rng_uniform(r) < p;
}

/* Adds a word of the source; its translation has another position. */
static word add_source(sentence *s, rng *r, kind k) {
    word w = {.kind = k, .topic = s->topic, .rank = draw_zipf(r, kinds[k].words, word_exponent)};
    w.second = happens(r, second_share(w.rank));
    s->source[s->sources++] = w;
    return w;
}

static void add_target(sentence *s, word w) {
    double p = second_share(w.rank);
    s->target[s->targets++] = w;
    s->nll -= log(w.second ? p : 1 - p);
}

static void add_both(sentence *s, rng *r, kind k) {
    add_target(s, add_source(s, r, k));
}

static void add_phrase(sentence *s, rng *r) {
    word adjective[2];
    if (happens(r, chance.determiner)) add_both(s, r, DETERMINER);
    double draw = rng_uniform(r);
    int adjectives = draw < chance.two_adjectives                          ? 2
                     : draw < chance.two_adjectives + chance.one_adjective ? 1
                                                                           : 0;
    for (int i = 0; i < adjectives; i++) adjective[i] = add_source(s, r, ADJECTIVE);
    add_both(s, r, NOUN);
    for (int i = 0; i < adjectives; i++) add_target(s, adjective[i]);
}

static void add_clause(sentence *s, rng *r) {
    add_phrase(s, r);
    word verb = add_source(s, r, VERB);
    if (happens(r, chance.object)) add_phrase(s, r);
    add_target(s, verb);
    if (happens(r, chance.place)) {
        add_both(s, r, PREPOSITION);
        add_phrase(s, r);
    }
    if (happens(r, chance.adverb)) add_both(s, r, ADVERB);
}

static void draw_sentence(sentence *s, rng *r) {
    s->sources = s->targets = 0;
    s->nll = 0;
    s->topic = draw_zipf(r, TOPICS, topic_exponent);
    double share = (double)s->topic / (TOPICS - 1);
    double further = chance.clause_low + share * (chance.clause_high - chance.clause_low);
    add_clause(s, r);
    for (int clauses = 1; clauses < CLAUSES_MOST && happens(r, further); clauses++) {
        add_both(s, r, CONJUNCTION);
        add_clause(s, r);
    }
}

static int spell(word w, int side, char text[SPELLING]) {
    int n = kinds[w.kind].topical
                ? snprintf(text, SPELLING, "%s%d.%02d", kinds[w.kind].name, w.topic, w.rank)
                : snprintf(text, SPELLING, "%s.%02d", kinds[w.kind].name, w.rank);
    if (side == SIDE_SOURCE) return n;
    for (int i = 0; i < n; i++) text[i] = (char)toupper((unsigned char)text[i]);
    if (w.second) strcpy(text + n++, "b");
    return n;
}

/* Appends one line to a text. */
static sr_status put_line(file_bytes *f, int64_t *capacity, const word *w, int count, int side,
                          sr_failure *why) {
    const int64_t wanted = (int64_t)f->size + WORDS_MOST * SPELLING;
    if (!vector_reserve(&f->byte, capacity, wanted, 1))
        return sr_fail(why, SR_MEMORY, "synth-pairs: out of memory for %lld bytes",
                       (long long)wanted);
    for (int i = 0; i < count; i++) {
        f->size += (size_t)spell(w[i], side, (char *)f->byte + f->size);
        f->byte[f->size++] = i + 1 < count ? ' ' : '\n';
    }
    return SR_OK;
}

/* Writes `count` pairs; nll [count] or NULL. */
static sr_status generate_split(uint64_t seed, data_split split, int64_t count, pair_text *t,
                                double *nll, sr_failure *why) {
    rng root = rng_create(seed), uses = rng_split(&root, STREAM_GENERATE);
    rng pairs = rng_split(&uses, split);
    int64_t capacity[SIDES] = {0};
    sr_status status = SR_OK;
    for (t->lines = 0; t->lines < count && status == SR_OK; t->lines++) {
        sentence s;
        rng r = rng_split(&pairs, (uint64_t)t->lines);
        draw_sentence(&s, &r);
        status = put_line(&t->side[0], &capacity[0], s.source, s.sources, SIDE_SOURCE, why);
        if (status == SR_OK)
            status = put_line(&t->side[1], &capacity[1], s.target, s.targets, SIDE_TARGET, why);
        if (nll) nll[t->lines] = s.nll;
    }
    return status;
}

static bool count_spelling(pair_set *s, word w, int side) {
    char text[SPELLING];
    int length = spell(w, side, text);
    return vocab_count(s->dictionary[side], text, (size_t)length, 0);
}

/* Every word that the grammar can make, with count 0. */
static sr_status count_grammar(pair_set *s, sr_failure *why) {
    bool done = true;
    for (int k = 0; k < KINDS; k++)
        for (int topic = 0; topic < (kinds[k].topical ? TOPICS : 1); topic++)
            for (int rank = 0; rank < kinds[k].words; rank++) {
                word w = {.kind = (kind)k, .topic = topic, .rank = rank};
                done = done && count_spelling(s, w, SIDE_SOURCE);
                done = done && count_spelling(s, w, SIDE_TARGET);
                w.second = true;
                if (second_share(rank) > 0) done = done && count_spelling(s, w, SIDE_TARGET);
            }
    return done ? SR_OK : sr_fail(why, SR_MEMORY, "synth-pairs: out of memory for the dictionary");
}

static sr_status generate(pair_set *s, const data_options *o, pair_text text[PAIR_SPLITS],
                          sr_failure *why) {
    double nll[VALID_COUNT];
    int64_t count = o->limit > 0 ? o->limit : TRAIN_COUNT;
    sr_status status = count_grammar(s, why);
    if (status == SR_OK)
        status = generate_split(o->seed, SPLIT_TRAIN, count, &text[SPLIT_TRAIN], NULL, why);
    if (status == SR_OK)
        status = generate_split(o->seed, SPLIT_VALID, VALID_COUNT, &text[SPLIT_VALID], nll, why);
    if (status == SR_OK) status = pair_set_build(s, text, why);
    bool whole = status == SR_OK;
    for (int i = 0; i < SIDES && whole; i++)
        whole = vocab_words(s->dictionary[i]) == vocab_counted(s->dictionary[i]);
    if (!whole) return status;
    const pair_split *valid = &s->split[SPLIT_VALID];
    double sum = 0;
    for (int64_t i = 0; i < valid->count; i++) sum += nll[valid->record[i]];
    s->entropy = sum / (double)valid->tokens;
    return status;
}

sr_status synth_pairs_open(dataset *d, const data_options *o, sr_failure *why) {
    pair_text text[PAIR_SPLITS] = {0};
    sr_status status = pair_set_create(&d->pairs, o, why);
    dataset_note(d, "synth-pairs: generated from seed %llu", (unsigned long long)o->seed);
    if (status == SR_OK) status = generate(&d->pairs, o, text, why);
    for (int i = 0; i < PAIR_SPLITS; i++) pair_text_free(&text[i]);
    if (status != SR_OK) return status;
    dataset_note(d, "; entropy of the validation targets %.4f nats per token", d->pairs.entropy);
    dataset_finish_pairs(d);
    return SR_OK;
}
