/* tree_set.c -- trees as transitions of the arc-standard system (docs/models.md 8).
 *
 * Dictionaries come from the training sentences: words with at least min_count occurrences, every
 * POS tag, every label. Words keep their capitals (Chen and Manning) unless the line step lowers
 * them. Order: count descending, ties by string; nothing pads the dictionary.
 *
 * Training batches: the transitions of the static oracle of all sentences, in random order by
 * (seed, epoch). Evaluation batches: sentence by sentence. The last batch of a pass may be smaller.
 * Batches leave out sentences that are not projective, since they have no transitions. They also
 * leave out evaluation sentences with a label that training lacks. A state is not stored: it
 * follows from the transitions before it in its sentence.
 */
#include "data/sets/tree_set.h"

#include <stdlib.h>

#include "base/containers/hash.h"
#include "base/rng.h"
#include "data/dataset.h"

sr_status tree_set_create(tree_set *s, const data_options *o, sr_failure *why) {
    *s = (tree_set){
        .batch_size = o->batch_size, .min_count = o->min_count, .limit = o->limit, .seed = o->seed};
    if (o->batch_size < 1)
        return sr_fail(why, SR_USAGE, "batch-size %lld is below 1", (long long)o->batch_size);
    s->words = vocab_create();
    s->pos = vocab_create();
    return s->words && s->pos ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for a dictionary");
}

void tree_set_free(tree_set *s) {
    for (int i = 0; i < TREE_SPLITS; i++) {
        tree_bank *b = &s->bank[i];
        treebank_free(&b->bank);
        free(b->word), free(b->pos), free(b->label), free(b->head);
        free(s->split[i].kept), free(s->split[i].start), free(s->split[i].kind);
        line_hashes_free(&s->split[i].lines);
    }
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        tree_buffers *p = &s->slot[i];
        free(p->order.item), free(p->feature), free(p->label);
        arc_free(&p->state);
    }
    vocab_free(s->words), vocab_free(s->pos), vocab_free(s->labels);
    *s = (tree_set){0};
}

/* -- dictionaries and ids */

/* The word after the line step; `made` keeps its text until the next call. */
static sr_status spell(const data_options *o, const tree_field *form, byte_buffer *made,
                       tree_field *to, sr_failure *why) {
    *to = *form;
    if (!o->tokenizer) return SR_OK;
    const sr_status status =
        line_steps_apply(o->tokenizer, 1, SIDE_SOURCE, form->byte, (size_t)form->size, made, why);
    /* a word of blanks alone stays as it is */
    if (status == SR_OK && made->size) *to = (tree_field){made->byte, (int32_t)made->size};
    return status;
}

static sr_status count_words(tree_set *s, const data_options *o, sr_failure *why) {
    const tree_split *p = &s->split[SPLIT_TRAIN];
    const treebank *t = &p->of->bank;
    byte_buffer made = {0};
    sr_status status = SR_OK;
    for (int64_t i = t->start[p->first]; i < t->start[p->first + p->count] && status == SR_OK;
         i++) {
        const tree_word *w = &t->word[i];
        tree_field form;
        status = spell(o, &w->form, &made, &form, why);
        if (status != SR_OK) break;
        const tree_field *pos = tree_pos_of(t, w, s->pos_column), *label = &w->label;
        if (!vocab_count(s->words, form.byte, (size_t)form.size, 1) ||
            !vocab_count(s->pos, pos->byte, (size_t)pos->size, 1) ||
            (s->labels && !vocab_count(s->labels, label->byte, (size_t)label->size, 1)))
            status = sr_fail(why, SR_MEMORY, "out of memory for a dictionary");
    }
    buffer_free(&made);
    return status;
}

static sr_status make_dictionaries(tree_set *s, const data_options *o, sr_failure *why) {
    if (s->split[SPLIT_TRAIN].of->bank.labelled && !(s->labels = vocab_create()))
        return sr_fail(why, SR_MEMORY, "out of memory for a dictionary");
    const sr_status status = count_words(s, o, why);
    if (status != SR_OK) return status;
    const int64_t words = TOKEN_FIRST_WORD + vocab_frequent(s->words, s->min_count);
    if (!vocab_finish_padded(s->words, words, 1) || !vocab_finish_padded(s->pos, 0, 1) ||
        (s->labels && !vocab_finish_padded(s->labels, 0, 1)))
        return sr_fail(why, SR_MEMORY, "out of memory for a dictionary");
    return SR_OK;
}

static sr_status encode_bank(const tree_set *s, const data_options *o, tree_bank *b,
                             sr_failure *why) {
    const treebank *t = &b->bank;
    const size_t bytes = (size_t)(t->words + 1) * sizeof(int32_t);
    byte_buffer made = {0};
    sr_status status = SR_OK;
    b->word = malloc(bytes), b->pos = malloc(bytes), b->label = malloc(bytes);
    b->head = malloc(bytes);
    if (!b->word || !b->pos || !b->label || !b->head)
        return sr_fail(why, SR_MEMORY, "%s: out of memory for its words", t->file.path);
    for (int64_t i = 0; i < t->words; i++) {
        const tree_word *w = &t->word[i];
        const tree_field *pos = tree_pos_of(t, w, s->pos_column), *label = &w->label;
        tree_field form;
        status = spell(o, &w->form, &made, &form, why);
        if (status != SR_OK) break;
        b->word[i] = vocab_id(s->words, form.byte, (size_t)form.size);
        b->pos[i] = vocab_id(s->pos, pos->byte, (size_t)pos->size);
        const int32_t id =
            s->labels ? vocab_id(s->labels, label->byte, (size_t)label->size) : TOKEN_FIRST_WORD;
        b->label[i] = id < TOKEN_FIRST_WORD ? -1 : id - TOKEN_FIRST_WORD;
        b->head[i] = w->head;
    }
    buffer_free(&made);
    return status;
}

/* -- transitions */

/* Appends the oracle's transitions of a sentence that has them all. */
static bool plan_sentence(tree_split *p, arc_state *state, int64_t sentence) {
    const tree_bank *b = p->of;
    const int64_t start = b->bank.start[sentence], at = p->start[p->keeps];
    const int32_t words = (int32_t)(b->bank.start[sentence + 1] - start);
    const int64_t made = arc_oracle_run(state, b->head + start, words, p->kind + at);
    const bool projective = made == 2 * words;
    bool labels = true;
    for (int64_t i = start; i < start + words; i++) labels = labels && b->label[i] >= 0;
    if (made < 0) return false;
    p->crossing += !projective;
    p->unlabelled += projective && !labels;
    if (!projective || !labels) return true;
    p->kept[p->keeps++] = sentence;
    p->start[p->keeps] = at + made;
    return true;
}

/* By the words as the file has them. False when out of memory. */
static bool hash_sentence(tree_split *p, const treebank *t, int64_t sentence) {
    int32_t words;
    const tree_word *w = treebank_sentence(t, sentence, &words);
    uint64_t hash = 0;
    for (int32_t i = 0; i < words; i++)
        hash = hash_join(hash, hash_bytes(w[i].form.byte, (size_t)w[i].form.size));
    return line_hashes_add(&p->lines, hash, words);
}

static sr_status plan_split(tree_split *p, sr_failure *why) {
    const treebank *t = &p->of->bank;
    const int64_t first = t->start[p->first], end = t->start[p->first + p->count];
    arc_state state = {0};
    p->words = end - first;
    for (int64_t i = first; i < end; i++) {
        p->unknown += p->of->word[i] == TOKEN_UNK;
        p->unknown_pos += p->of->pos[i] == TOKEN_UNK;
    }
    p->kept = malloc((size_t)(p->count + 1) * sizeof *p->kept);
    p->start = calloc((size_t)(p->count + 1), sizeof *p->start);
    p->kind = malloc((size_t)(2 * p->words + 1));
    bool made = p->kept && p->start && p->kind;
    for (int64_t i = 0; i < p->count && made; i++)
        made = plan_sentence(p, &state, p->first + i) && hash_sentence(p, t, p->first + i);
    arc_free(&state);
    if (!made)
        return sr_fail(why, SR_MEMORY, "%s: out of memory for its transitions", t->file.path);
    if (p->keeps > 0) return SR_OK;
    return sr_fail(why, SR_FORMAT,
                   "%s: no sentence of %lld has transitions: %lld are not projective, %lld have "
                   "labels that training lacks",
                   t->file.path, (long long)p->count, (long long)p->crossing,
                   (long long)p->unlabelled);
}

static sr_status allocate_buffers(tree_set *s, sr_failure *why) {
    const tree_split *p = &s->split[SPLIT_TRAIN];
    data_trees t;
    tree_set_trees(s, SPLIT_TRAIN, &t);
    const size_t rows = (size_t)s->batch_size, features = (size_t)data_tree_features(&t);
    int32_t longest = 0;
    bool made = true;
    for (int i = 0; i < TREE_SPLITS; i++)
        for (int64_t k = 0; s->split[i].of && k < s->split[i].keeps; k++) {
            int32_t words;
            treebank_sentence(&s->split[i].of->bank, s->split[i].kept[k], &words);
            if (words > longest) longest = words;
        }
    for (int i = 0; i < PREFETCH_SLOTS; i++) {
        tree_buffers *b = &s->slot[i];
        b->order.item = malloc((size_t)p->start[p->keeps] * sizeof *b->order.item);
        b->feature = malloc(rows * features * sizeof *b->feature);
        b->label = malloc(rows * sizeof *b->label);
        /* so that making a batch allocates nothing */
        made =
            made && b->order.item && b->feature && b->label && arc_begin(&b->state, longest, false);
    }
    return made ? SR_OK : sr_fail(why, SR_MEMORY, "out of memory for batches");
}

sr_status tree_set_build(tree_set *s, const data_options *o, sr_failure *why) {
    tree_split *train = &s->split[SPLIT_TRAIN];
    if (s->limit > 0 && s->limit < train->count) train->count = s->limit;
    sr_status status = make_dictionaries(s, o, why);
    for (int i = 0; i < TREE_SPLITS && status == SR_OK; i++)
        if (s->bank[i].bank.sentences) status = encode_bank(s, o, &s->bank[i], why);
    for (int i = 0; i < TREE_SPLITS && status == SR_OK; i++)
        if (s->split[i].of) status = plan_split(&s->split[i], why);
    if (status != SR_OK) return status;
    s->one_root = true;
    for (int64_t i = train->first; i < train->first + train->count; i++) {
        const int64_t *start = train->of->bank.start;
        int roots = 0;
        for (int64_t k = start[i]; k < start[i + 1]; k++) roots += train->of->head[k] == 0;
        s->one_root &= roots <= 1;
    }
    return allocate_buffers(s, why);
}

/* -- batches */

int64_t tree_set_batches(const tree_set *s, data_split split) {
    const tree_split *p = &s->split[split];
    const int64_t count = p->of ? p->start[p->keeps] : 0;
    return count / s->batch_size + (count % s->batch_size > 0);
}

/* The kept sentence with this transition. */
static int64_t find_sentence(const tree_split *p, int64_t transition) {
    int64_t low = 0, high = p->keeps;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (p->start[middle] <= transition)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* The label of a transition's arc, which belongs to the new dependent. */
static int32_t label_of(const arc_state *s, arc_kind kind, const int32_t *label) {
    if (kind == ARC_SHIFT) return ARC_NONE;
    return label[s->stack[s->depth - (kind == ARC_LEFT ? 2 : 1)] - 1];
}

static void make_row(const tree_split *p, const data_trees *t, int64_t transition, arc_state *state,
                     int32_t *feature, int32_t *class) {
    const int64_t k = find_sentence(p, transition), start = t->bank->start[p->kept[k]];
    const int32_t words = (int32_t)(t->bank->start[p->kept[k] + 1] - start);
    const int32_t *label = p->of->label + start;
    arc_begin(state, words, false); /* large enough for the longest */
    for (int64_t i = p->start[k]; i < transition; i++) {
        const arc_kind kind = (arc_kind)p->kind[i];
        arc_apply(state, kind, label_of(state, kind, label));
    }
    const arc_kind kind = (arc_kind)p->kind[transition];
    data_tree_feature(t, start, state, feature);
    *class = arc_class(kind, label_of(state, kind, label), t->arc_labels);
}

void tree_set_batch(tree_set *s, int slot, data_split split, int64_t epoch, int64_t index,
                    batch *b) {
    const tree_split *p = &s->split[split];
    tree_buffers *to = &s->slot[slot];
    data_trees t;
    /* unreached: data_batch checks the number of batches */
    if (!tree_set_trees(s, split, &t)) return;
    const int64_t first = index * s->batch_size, left = p->start[p->keeps] - first;
    const int64_t features = data_tree_features(&t);
    const bool train = split == SPLIT_TRAIN;
    *b = (batch){.task = TASK_TREES,
                 .count = left < s->batch_size ? left : s->batch_size,
                 .label = to->label,
                 .features = features,
                 .feature = to->feature};
    b->tokens = b->count;
    if (train) epoch_order_set(&to->order, s->seed, epoch, p->start[p->keeps], true);
    for (int64_t i = 0; i < b->count; i++)
        make_row(p, &t, train ? to->order.item[first + i] : first + i, &to->state,
                 to->feature + i * features, to->label + i);
}

bool tree_set_trees(const tree_set *s, data_split split, data_trees *t) {
    const tree_split *p = &s->split[split];
    if (!p->of) return false;
    *t = (data_trees){.bank = &p->of->bank,
                      .word = p->of->word,
                      .pos = p->of->pos,
                      .first = p->first,
                      .count = p->count,
                      .labels = s->labels,
                      .arc_labels = s->labels ? (int32_t)vocab_words(s->labels) : 1,
                      .one_root = s->one_root,
                      .rules = tree_rules_for(&s->rules, p->of->bank.format)};
    return true;
}
