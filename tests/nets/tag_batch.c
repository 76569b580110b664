#include "tag_batch.h"

#include <math.h>
#include <string.h>

#include "engine/ops/ops.h"
#include "testing/check.h"

static const int lengths[TAGGED] = {5, 3, 1};
/* Words by sentence; each word determines its characters. */
static const int32_t words[TAGGED][TAGGED_LENGTH] = {{4, 9, 5, TOKEN_UNK, 11}, {6, 4, 7}, {10}};
static const int32_t tags[TAGGED][TAGGED_LENGTH] = {{0, 1, 2, 0, 3}, {2, 3, 0}, {1}};

int tagged_words(int s) {
    return lengths[s];
}

/* Returns 1 to TAGGED_CHARACTERS. */
static int spell(int32_t word, int32_t *character) {
    const int n = 1 + word % TAGGED_CHARACTERS;
    for (int c = 0; c < n; c++) character[c] = 1 + (word * 3 + c * 5) % (TAGGED_ALPHABET - 1);
    return n;
}

void tag_batch_fill(tag_batch *t, int64_t length, int64_t characters) {
    memset(t, 0, sizeof *t);
    for (int i = 0; i < TAGGED * TAGGED_ROOM; i++) t->word[i] = TOKEN_PAD;
    for (int s = 0; s < TAGGED; s++)
        for (int w = 0; w < lengths[s]; w++) {
            const int64_t at = s * length + w;
            t->word[at] = words[s][w];
            t->tag[at] = tags[s][w];
            t->mask[at] = 1;
            spell(words[s][w], t->character + at * characters);
        }
    const int side = TAG_COUNT + 2;
    memset(t->allowed, 1, sizeof t->allowed);
    t->allowed[1 * side + 3] = 0;
    t->b = (batch){.task = TASK_TAGS,
                   .count = TAGGED,
                   .source_length = length,
                   .source = t->word,
                   .source_mask = t->mask,
                   .tokens = TAGGED,
                   .word_length = characters,
                   .character = t->character,
                   .tag = t->tag,
                   .allowed = t->allowed};
}

model_options tagger_options(const char *norm, const char *placement, const char *char_encoder) {
    model_options o = {.name = "tener",
                       .preset = "conll2003-mini",
                       .norm_eps = NAN,
                       .norm_alpha = NAN,
                       .embed_dim = 8,
                       .ffn_dim = 12,
                       .heads = 2,
                       .seed = 5};
    strcpy(o.norm, norm);
    strcpy(o.placement, placement);
    strcpy(o.char_encoder, char_encoder);
    return o;
}

model *tagger_create(const model_options *o) {
    const data_shape shape = {.task = TASK_TAGS,
                              .classes = TAG_COUNT,
                              .characters = TAGGED_ALPHABET,
                              .vocabulary = TAGGED_VOCABULARY,
                              .longest = TAGGED_LENGTH};
    sr_failure why = {0};
    model *m = model_create(o, &shape, &why);
    if (!m) fail_msg("%s", why.text);
    return m;
}

void tagger_run(model *m, tape *t, const batch *b, bool train, double *nll) {
    tape_reset(t, rng_create(7), train, train);
    pass p = {.tape = t, .batch = b, .mode = train ? NORM_TRAIN : NORM_RUNNING};
    tensor *y = m->row->forward(m, &p);
    const sr_failure *why = tape_failure(t);
    if (why) fail_msg("%s", why->text);
    assert_int_equal(y->count, TAGGED);
    for (int s = 0; s < TAGGED; s++) nll[s] = (double)y->value[s];
    if (!train) return;
    params_zero_grad(&m->params);
    tape_backward(t, op_sum(t, y), 1);
}
