/* vectors_beam.c -- beam.h5: beam search over tables of log probabilities, each case alone and as
 * three sentences at once. */
#include "decode/beam.h"
#include "decode/written_words.h"
#include "model_vectors.h"

/* log_p [steps, V, V]: of each word at a step, given the word before. */
typedef struct table {
    written_words now; /* rows of this step */
    const double *log_p;
    int64_t steps, V, step;
} table;

static sr_status score(void *context, int64_t rows, const int32_t *parent, const int32_t *token,
                       int32_t *source_at, sr_failure *why) {
    table *t = context;
    (void)parent;
    if (t->step >= t->steps)
        return sr_fail(why, SR_USAGE, "more than %lld steps", (long long)t->steps);
    for (int64_t r = 0; r < rows; r++) {
        const double *from = t->log_p + (t->step * t->V + token[r]) * t->V;
        memcpy(t->now.log_p + r * t->V, from, (size_t)t->V * sizeof *from);
        source_at[r] = -1;
    }
    t->step++;
    return SR_OK;
}

static beam_options options_of(model_case *c) {
    const bool normalize = case_number_or(c, "normalize", 1) != 0;
    return (beam_options){.beam = case_whole(c, "beam", 1, 1 << 16),
                          .lenpen = normalize ? case_number(c, "lenpen") : 0,
                          .unk_penalty = case_number_or(c, "unkpen", 0),
                          .min_len = case_whole(c, "min_len", 0, INT32_MAX),
                          .max_b = (double)case_whole(c, "max_len", 0, INT32_MAX)};
}

/* Compares the hypotheses in the file's layout: [count, width] tokens, padded with -1, and so
 * on. */
static void compare_hypotheses(model_case *c, const translation *t, int64_t width) {
    const int64_t count = t->count * width;
    double *token = case_alloc(c, count, sizeof *token),
           *sum = case_alloc(c, t->count, sizeof *sum);
    double *log_p = case_alloc(c, count, sizeof *log_p);
    if (!token || !sum || !log_p) return;
    for (int64_t i = 0; i < t->count; i++) {
        const hypothesis *h = &t->item[i];
        if (h->length > width)
            case_fail(c, "hypothesis %lld has %lld words, not %lld at most", (long long)i,
                      (long long)h->length, (long long)width);
        sum[i] = h->score;
        for (int64_t j = 0; j < width; j++) {
            token[i * width + j] = j < h->length ? h->token[j] : -1;
            log_p[i * width + j] = j < h->length ? h->log_p[j] : 0;
        }
    }
    case_compare(c, "tokens", token, count, NULL, 1);
    case_compare(c, "score", sum, t->count, NULL, 1);
    case_compare(c, "positional", log_p, count, NULL, 1);
}

static void search(model_case *c, const beam_options *o, table *t, int64_t sentences,
                   int64_t width) {
    enum { MOST = 3 };
    const int64_t length[MOST] = {1, 1, 1};
    const scorer words = {t, t->V, 2, score, written_log_p, written_largest};
    translation out[MOST];
    sr_failure why = {0};
    t->step = 0;
    t->now = (written_words){t->V, case_alloc(c, sentences * o->beam * t->V, sizeof *t->now.log_p)};
    if (!t->now.log_p) return;
    if (beam_search(o, &words, sentences, length, out, &why) != SR_OK) {
        case_fail(c, "%s", why.text);
        return;
    }
    for (int64_t i = 0; i < sentences; i++) {
        compare_hypotheses(c, &out[i], width);
        translation_free(&out[i]);
    }
}

void check_beam(model_case *c) {
    int64_t dim[4] = {0}, shape[4] = {0};
    const beam_options o = options_of(c);
    const int64_t V = case_whole(c, "vocab", TOKEN_FIRST_WORD, INT32_MAX);
    const double eos = case_number_or(c, "eos", TOKEN_EOS),
                 pad = case_number_or(c, "pad", TOKEN_PAD),
                 unk = case_number_or(c, "unk", TOKEN_UNK);
    table t = {.log_p = case_read(c, "in/lp", 3, dim), .steps = dim[0], .V = V};
    case_read(c, "out/tokens", 2, shape);
    if (eos != TOKEN_EOS || pad != TOKEN_PAD || unk != TOKEN_UNK)
        case_skip(c, "</s> %g, <pad> %g and <unk> %g have other numbers here", eos, pad, unk);
    if (t.log_p && (dim[1] != V || dim[2] != V))
        case_fail(c, "in/lp: %lld x %lld words, not %lld", (long long)dim[1], (long long)dim[2],
                  (long long)V);
    if (case_fine(c)) search(c, &o, &t, 1, shape[1]);
    if (case_fine(c)) search(c, &o, &t, 3, shape[1]);
}
