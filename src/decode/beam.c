/* beam.c -- beam search as in fairseq's sequence generator (docs/models.md 2.8).
 *
 * Live hypotheses of a sentence: at most B, each with its sum s of log probabilities. Step t = 0,
 * 1, ... extends every live hypothesis (index b in its sentence) by every next word w:
 *
 *   s' = s + log p(w)      <pad>: -inf      <unk>: less unk_penalty
 *                          t < min_len: </s> -inf      t = longest: all but </s> -inf
 *
 * The best 2B candidates are taken, of equal ones the lower b V + w. Candidates among the first B
 * that end in </s> are finished, with the score s'/(t+1)^lenpen, until the sentence has B. The best
 * B other candidates live on. A </s> in the second half of the candidates is lost. A sentence ends
 * when B hypotheses are finished, at t = longest, or when nothing lives on.
 *
 * Candidates of -inf do not count: with fewer than B left the beam is narrower, as in fairseq's
 * current generator. Deviation: beam.h.
 *
 * A hypothesis is a path of nodes from its last word backwards, so that none is copied.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/vector.h"
#include "decode/beam.h"
#include "nets/models.h"

typedef struct node {
    int64_t before; /* number of the node of the word before, -1: none */
    double log_p;
    int32_t token, source_at;
} node;

/* A live hypothesis. */
typedef struct row {
    int64_t sentence, node;
    double sum;
} row;

typedef struct candidate {
    int64_t row;
    double sum, log_p;
    int32_t token;
} candidate;

typedef struct search {
    const beam_options *o;
    const scorer *scorer;
    int64_t sentences, t;
    const int64_t *source_length;
    translation *out;
    node *node;
    int64_t nodes, capacity;
    row *live, *next; /* [sentences beam] each */
    int64_t rows, next_rows, active;
    int32_t *parent, *token, *source_at; /* [sentences beam] each */
    int64_t blocks;                      /* blocks of words */
    double *top;                         /* [sentences beam, blocks] largest log p of each */
    int64_t *first;                      /* [sentences + 1] rows of each unfinished sentence */
    candidate *best;                     /* [sentences, 2 beam] */
    int64_t *found;                      /* [sentences] of them; -1: a NaN */
    sr_failure *why;
} search;

/* -- options */

beam_options beam_options_default(void) {
    return (beam_options){.beam = 5, .lenpen = 1, .min_len = 1, .max_b = 200};
}

int64_t beam_longest(const beam_options *o, int64_t source_length) {
    const double longest = o->max_a * (double)source_length + o->max_b;
    return longest < INT32_MAX ? (int64_t)longest : INT32_MAX;
}

sr_status beam_options_check(const beam_options *o, sr_failure *why) {
    if (o->beam < 1 || o->beam > 1 << 16)
        return sr_fail(why, SR_USAGE, "a beam of %lld hypotheses is not between 1 and 65536",
                       (long long)o->beam);
    if (o->best < 0 || o->best > o->beam)
        return sr_fail(why, SR_USAGE, "the best %lld of a beam of %lld hypotheses",
                       (long long)o->best, (long long)o->beam);
    if (!isfinite(o->lenpen))
        return sr_fail(why, SR_USAGE, "length penalty %g is not a number", o->lenpen);
    if (isnan(o->unk_penalty) || o->unk_penalty == -INFINITY)
        return sr_fail(why, SR_USAGE, "penalty %g of <unk>", o->unk_penalty);
    if (o->min_len < 0) return sr_fail(why, SR_USAGE, "at least %lld words", (long long)o->min_len);
    if (!(o->max_a >= 0 && isfinite(o->max_a) && o->max_b >= 0 && isfinite(o->max_b)))
        return sr_fail(why, SR_USAGE, "at most %g times the source's words and %g", o->max_a,
                       o->max_b);
    return SR_OK;
}

static sr_status check_lengths(const search *s) {
    for (int64_t i = 0; i < s->sentences; i++) {
        const int64_t longest = beam_longest(s->o, s->source_length[i]);
        if (s->source_length[i] < 1)
            return sr_fail(s->why, SR_USAGE, "sentence %lld has no words", (long long)i);
        if (longest < s->o->min_len)
            return sr_fail(s->why, SR_USAGE, "sentence %lld: at least %lld words and at most %lld",
                           (long long)i, (long long)s->o->min_len, (long long)longest);
    }
    return SR_OK;
}

/* -- finished hypotheses */

void translation_free(translation *t) {
    for (int64_t i = 0; i < t->count; i++) free(t->item[i].log_p);
    free(t->item);
    *t = (translation){0};
}

static sr_status finish(search *s, const candidate *c) {
    const row *from = &s->live[c->row];
    translation *out = &s->out[from->sentence];
    hypothesis *h = &out->item[out->count];
    *h = (hypothesis){.length = s->t + 1};
    h->log_p = malloc((size_t)h->length * (sizeof *h->log_p + 2 * sizeof *h->token));
    if (!h->log_p)
        return sr_fail(s->why, SR_MEMORY, "out of memory for a hypothesis of %lld words",
                       (long long)s->t + 1);
    h->token = (int32_t *)(h->log_p + h->length); /* in the same block */
    h->source_at = h->token + h->length;
    out->count++;
    h->score = c->sum / pow((double)h->length, s->o->lenpen);
    node last = {from->node, c->log_p, c->token, s->source_at[c->row]};
    for (int64_t i = s->t;; i--) {
        h->token[i] = last.token;
        h->log_p[i] = last.log_p;
        h->source_at[i] = last.source_at;
        if (last.before < 0) return SR_OK;
        last = s->node[last.before];
    }
}

/* Sorts best first, equal ones in the order of finishing, and keeps the wanted number. */
static void rank(const beam_options *o, translation *t) {
    for (int64_t i = 1; i < t->count; i++)
        for (int64_t k = i; k > 0 && t->item[k].score > t->item[k - 1].score; k--) {
            const hypothesis moved = t->item[k];
            t->item[k] = t->item[k - 1];
            t->item[k - 1] = moved;
        }
    const int64_t best = o->best ? o->best : o->beam;
    for (; t->count > best; t->count--) free(t->item[t->count - 1].log_p);
}

int64_t hypothesis_words(const hypothesis *h, unknown_words how, int32_t *word) {
    int64_t count = 0;
    for (int64_t i = 0; i < h->length; i++) {
        const bool unknown = h->token[i] == TOKEN_UNK;
        if (h->token[i] == TOKEN_EOS || (unknown && how == UNKNOWN_DROP)) continue;
        const bool copied = unknown && how == UNKNOWN_COPY && h->source_at[i] >= 0;
        word[count++] = copied ? -1 - h->source_at[i] : h->token[i];
    }
    return count;
}

/* -- candidates */

/* log p(w) under the rules of step t. */
static double allowed(const search *s, int64_t longest, int32_t w, double log_p) {
    if (w == TOKEN_PAD) return -INFINITY;
    if (w == TOKEN_EOS) return s->t < s->o->min_len ? -INFINITY : log_p;
    if (s->t >= longest) return -INFINITY;
    return w == TOKEN_UNK ? log_p - s->o->unk_penalty : log_p;
}

/* Inserts into the best `count` of at most 2B, after equal ones: candidates come in the order of
 * b V + w. */
static int64_t insert(const search *s, candidate *best, int64_t count, candidate c) {
    const int64_t most = 2 * s->o->beam;
    if (count == most && !(c.sum > best[count - 1].sum)) return count;
    int64_t k = count < most ? count++ : most - 1;
    for (; k > 0 && c.sum > best[k - 1].sum; k--) best[k] = best[k - 1];
    best[k] = c;
    return count;
}

/* The candidates of row r among the words of a block join the best. */
static int64_t add_words(const search *s, int64_t r, int64_t block, candidate *best,
                         int64_t count) {
    const row *live = &s->live[r];
    const int64_t longest = beam_longest(s->o, s->source_length[live->sentence]);
    const int64_t from = block * WORDS_TOGETHER, left = s->scorer->vocabulary - from;
    const int64_t words = left < WORDS_TOGETHER ? left : WORDS_TOGETHER;
    double log_p[WORDS_TOGETHER];
    s->scorer->log_p(s->scorer->context, r, from, words, log_p);
    for (int64_t i = 0; i < words; i++) {
        if (block > 0 && count == 2 * s->o->beam && !(live->sum + log_p[i] > best[count - 1].sum))
            continue; /* no rule raises words after the first block */
        const double p = allowed(s, longest, (int32_t)(from + i), log_p[i]);
        if (live->sum + p > -INFINITY)
            count = insert(s, best, count, (candidate){r, live->sum + p, p, (int32_t)(from + i)});
    }
    return count;
}

/* The best candidates of rows first .. end-1, all of one sentence; -> how many, -1: a NaN. Skips
 * blocks whose words are all too small. The first block, with <pad>, </s> and <unk>, always counts:
 * the penalty of <unk> may be negative. */
static int64_t select_best(const search *s, int64_t first, int64_t end, candidate *best) {
    const int64_t most = 2 * s->o->beam;
    int64_t count = 0;
    for (int64_t r = first; r < end; r++) {
        double *top = s->top + r * s->blocks;
        s->scorer->largest(s->scorer->context, r, top);
        for (int64_t b = 0; b < s->blocks; b++) {
            if (isnan(top[b])) return -1;
            if (b == 0 || count < most || s->live[r].sum + top[b] > best[most - 1].sum)
                count = add_words(s, r, b, best, count);
        }
    }
    return count;
}

static sr_status live_on(search *s, const candidate *c) {
    const row *from = &s->live[c->row];
    if (!vector_reserve(&s->node, &s->capacity, s->nodes + 1, sizeof *s->node))
        return sr_fail(s->why, SR_MEMORY, "out of memory for hypotheses");
    s->node[s->nodes] = (node){from->node, c->log_p, c->token, s->source_at[c->row]};
    s->parent[s->next_rows] = (int32_t)c->row;
    s->token[s->next_rows] = c->token;
    s->next[s->next_rows++] = (row){from->sentence, s->nodes++, c->sum};
    return SR_OK;
}

/* -- the search */

/* One step of the i-th unfinished sentence. */
static sr_status extend(search *s, int64_t i) {
    const int64_t sentence = s->live[s->first[i]].sentence, B = s->o->beam, kept = s->next_rows;
    const translation *out = &s->out[sentence];
    if (s->found[i] < 0)
        return sr_fail(s->why, SR_STATE, "sentence %lld, word %lld: a log probability is NaN",
                       (long long)sentence, (long long)s->t + 1);
    sr_status status = SR_OK;
    for (int64_t k = 0; k < s->found[i] && status == SR_OK; k++) {
        const candidate *c = &s->best[i * 2 * B + k];
        if (c->token != TOKEN_EOS) {
            if (s->next_rows - kept < B) status = live_on(s, c);
        } else if (k < B && out->count < B) {
            status = finish(s, c);
        }
    }
    if (out->count == B) s->next_rows = kept;
    return status;
}

static sr_status step(search *s) {
    sr_status status =
        s->scorer->score(s->scorer->context, s->rows, s->parent, s->token, s->source_at, s->why);
    s->active = 0;
    for (int64_t r = 0; r < s->rows; r++)
        if (r == 0 || s->live[r].sentence != s->live[r - 1].sentence) s->first[s->active++] = r;
    s->first[s->active] = s->rows;
    const int64_t sentences = status == SR_OK ? s->active : 0;
#pragma omp parallel for num_threads(s->scorer->threads) schedule(static)
    for (int64_t i = 0; i < sentences; i++)
        s->found[i] = select_best(s, s->first[i], s->first[i + 1], s->best + i * 2 * s->o->beam);
    s->next_rows = 0;
    for (int64_t i = 0; i < s->active && status == SR_OK; i++) status = extend(s, i);
    row *spent = s->live;
    s->live = s->next;
    s->next = spent;
    s->rows = s->next_rows;
    s->t++;
    return status;
}

/* Starts every sentence with one empty hypothesis. */
static sr_status begin(search *s) {
    const int64_t B = s->o->beam, most = s->sentences * B;
    if (s->sentences > INT32_MAX / B)
        return sr_fail(s->why, SR_USAGE, "%lld sentences with a beam of %lld at once",
                       (long long)s->sentences, (long long)B);
    s->live = malloc((size_t)most * sizeof *s->live);
    s->next = malloc((size_t)most * sizeof *s->next);
    s->parent = malloc((size_t)(3 * most) * sizeof *s->parent);
    s->blocks = (s->scorer->vocabulary + WORDS_TOGETHER - 1) / WORDS_TOGETHER;
    s->top = malloc((size_t)(most * s->blocks) * sizeof *s->top);
    s->first = malloc((size_t)(2 * s->sentences + 1) * sizeof *s->first);
    s->best = malloc((size_t)(2 * most) * sizeof *s->best);
    bool whole = s->live && s->next && s->parent && s->top && s->first && s->best;
    for (int64_t i = 0; i < s->sentences && whole; i++) {
        s->out[i].item = malloc((size_t)B * sizeof *s->out[i].item);
        whole = s->out[i].item != NULL;
    }
    if (!whole)
        return sr_fail(s->why, SR_MEMORY, "out of memory for %lld hypotheses of %lld words each",
                       (long long)most, (long long)s->scorer->vocabulary);
    s->found = s->first + s->sentences + 1;
    s->token = s->parent + most;
    s->source_at = s->token + most;
    for (int64_t i = 0; i < s->sentences; i++) {
        s->live[i] = (row){i, -1, 0};
        s->parent[i] = (int32_t)i;
        s->token[i] = TOKEN_EOS;
    }
    s->rows = s->sentences;
    return SR_OK;
}

sr_status beam_search(const beam_options *o, const scorer *words, int64_t count,
                      const int64_t *source_length, translation *out, sr_failure *why) {
    search s = {.o = o,
                .scorer = words,
                .sentences = count,
                .source_length = source_length,
                .out = out,
                .why = why};
    memset(out, 0, (size_t)count * sizeof *out);
    sr_status status = beam_options_check(o, why);
    if (status == SR_OK) status = check_lengths(&s);
    if (status == SR_OK && count > 0) status = begin(&s);
    while (status == SR_OK && s.rows > 0) status = step(&s);
    for (int64_t i = 0; i < count; i++) {
        rank(o, &out[i]);
        if (status != SR_OK) translation_free(&out[i]);
    }
    free(s.node);
    free(s.live);
    free(s.next);
    free(s.parent);
    free(s.top);
    free(s.first);
    free(s.best);
    return status;
}
