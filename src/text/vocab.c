/* vocab.c -- a dictionary: words numbered by a map, their counts, and the order of ids; see
 * vocab.h. */
#include "text/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/containers/map.h"
#include "base/containers/vector.h"
#include "batch/batch.h"

typedef struct entry {
    int64_t count;
    int64_t word;     /* its number in the map: order of first appearance */
    const char *text; /* while sorting */
    bool again;       /* appended before: this line has the id */
} entry;

struct vocab {
    const char *const *special; /* [specials], ids 0 .. specials - 1 */
    int32_t specials, unknown;
    bool running; /* a dictionary of running text */
    map words;
    entry *entry; /* [count], by word until vocab_finish sorts them, then by id */
    int64_t count, capacity;
    int32_t *id; /* [words.count], from vocab_finish on, or while words are appended */
    int64_t id_capacity;
    int64_t kept, filler;
    char (*made_up)[24]; /* [filler] */
};

static const char *const of_sentences[TOKEN_FIRST_WORD] = {"<s>", "<pad>", "</s>", "<unk>"};
static const char *const of_running[] = {"<eos>"};

vocab *vocab_create(void) {
    vocab *v = calloc(1, sizeof *v);
    if (v) v->special = of_sentences, v->specials = TOKEN_FIRST_WORD, v->unknown = TOKEN_UNK;
    return v;
}

vocab *vocab_create_running(void) {
    vocab *v = calloc(1, sizeof *v);
    if (v) v->special = of_running, v->specials = 1, v->unknown = -1, v->running = true;
    return v;
}

vocab *vocab_create_symbols(void) {
    vocab *v = calloc(1, sizeof *v);
    if (v) v->unknown = -1, v->running = true;
    return v;
}

void vocab_free(vocab *v) {
    if (!v) return;
    map_free(&v->words);
    free(v->entry);
    free(v->id);
    free(v->made_up);
    free(v);
}

static int32_t find_special(const char *const *special, int32_t count, const char *word,
                            size_t length) {
    for (int32_t i = 0; i < count; i++)
        if (strlen(special[i]) == length && memcmp(special[i], word, length) == 0) return i;
    return -1;
}

bool vocab_is_special(const char *word, size_t length) {
    return find_special(of_sentences, TOKEN_FIRST_WORD, word, length) >= 0;
}

bool vocab_count(vocab *v, const char *word, size_t length, int64_t times) {
    if (find_special(v->special, v->specials, word, length) >= 0) return true;
    if (!vector_reserve(&v->entry, &v->capacity, v->count + 1, sizeof *v->entry)) return false;
    const int64_t i = map_add(&v->words, word, length);
    if (i < 0) return false;
    if (i == v->count) v->entry[v->count++] = (entry){.word = i};
    v->entry[i].count += times;
    return true;
}

bool vocab_append(vocab *v, const char *word, size_t length, int64_t times) {
    if (!vector_reserve(&v->entry, &v->capacity, v->count + 1, sizeof *v->entry) ||
        !vector_reserve(&v->id, &v->id_capacity, v->words.count + 1, sizeof *v->id))
        return false;
    const int64_t known = v->words.count, i = map_add(&v->words, word, length);
    if (i < 0) return false;
    v->entry[v->count++] =
        (entry){.count = times, .word = i, .again = i < known || vocab_is_special(word, length)};
    v->id[i] = (int32_t)(TOKEN_FIRST_WORD + v->kept++);
    return true;
}

static int by_count(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

static int by_count_and_appearance(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->word > y->word) - (x->word < y->word);
}

bool vocab_finish(vocab *v, int64_t size) {
    return vocab_finish_padded(v, size, v->running ? 1 : VOCAB_MULTIPLE);
}

bool vocab_finish_padded(vocab *v, int64_t size, int multiple) {
    if (!vector_reserve(&v->id, &v->id_capacity, v->count, sizeof *v->id)) return false;
    for (int64_t i = 0; i < v->count; i++)
        v->entry[i].text = map_text(&v->words, v->entry[i].word, NULL);
    if (v->count)
        qsort(v->entry, (size_t)v->count, sizeof *v->entry,
              v->running ? by_count_and_appearance : by_count);
    int64_t most = size > v->specials ? size - v->specials : 0;
    v->kept = size > 0 && most < v->count ? most : v->count;
    if (v->running) { /* <unk> must be one of the kept words */
        const int64_t word = map_find(&v->words, "<unk>", strlen("<unk>"));
        v->unknown = -1;
        for (int64_t i = 0; i < v->kept; i++)
            if (v->entry[i].word == word) v->unknown = v->specials + (int32_t)i;
    }
    for (int64_t i = 0; i < v->count; i++)
        v->id[v->entry[i].word] = i < v->kept ? v->specials + (int32_t)i : v->unknown;
    int64_t over = (v->specials + v->kept) % multiple;
    v->filler = over ? multiple - over : 0;
    v->made_up = calloc((size_t)multiple, sizeof *v->made_up);
    if (!v->made_up) return false;
    for (int i = 0; i < v->filler; i++)
        snprintf(v->made_up[i], sizeof v->made_up[i], "madeupword%04d", i);
    return true;
}

int64_t vocab_words(const vocab *v) {
    return v->kept;
}

int64_t vocab_counted(const vocab *v) {
    return v->count;
}

int64_t vocab_frequent(const vocab *v, int64_t times) {
    int64_t n = 0;
    for (int64_t i = 0; i < v->count; i++) n += v->entry[i].count >= times;
    return n;
}

int64_t vocab_size(const vocab *v) {
    return v->specials + v->kept + v->filler;
}

int32_t vocab_unknown(const vocab *v) {
    return v->unknown;
}

int32_t vocab_id(const vocab *v, const char *word, size_t length) {
    const int64_t i = map_find(&v->words, word, length);
    if (i >= 0) return v->id[i];
    if (v->running && find_special(v->special, v->specials, word, length) == 0) return 0;
    return v->unknown;
}

const char *vocab_word(const vocab *v, int64_t id) {
    if (id < 0 || id >= vocab_size(v)) return NULL;
    if (id < v->specials) return v->special[id];
    id -= v->specials;
    return id < v->kept ? map_text(&v->words, v->entry[id].word, NULL) : v->made_up[id - v->kept];
}

/* A word that was appended twice has the id of its last line. The repeated lines are marked. So are
 * words spelled like a special, so that the file can be read again. */
bool vocab_write(const vocab *v, FILE *out) {
    for (int64_t i = 0; i < v->kept; i++) {
        const entry *e = &v->entry[i];
        size_t length;
        const char *word = map_text(&v->words, e->word, &length);
        fwrite(word, 1, length, out);
        fprintf(out, " %lld%s\n", (long long)e->count, e->again ? " #fairseq:overwrite" : "");
    }
    for (int64_t i = 0; i < v->filler; i++) fprintf(out, "%s 0\n", v->made_up[i]);
    return !ferror(out);
}
