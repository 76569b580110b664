/* vocab.c -- see vocab.h. A hash table with open addressing over words that are stored once. */
#include "text/vocab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "batch/batch.h"

typedef struct entry {
    char *word; /* NUL-terminated */
    size_t length;
    uint64_t hash;
    int64_t count;
    int32_t id;
} entry;

struct vocab {
    const char *const *special; /* [specials], ids 0 .. specials - 1 */
    int32_t specials, unknown;
    bool running; /* of running text */
    entry *word;  /* [count], in order of first appearance until vocab_finish sorts them */
    int64_t count, capacity;
    int64_t *slot;  /* [slots], number in word or -1 */
    uint64_t slots; /* a power of two, at least twice count */
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
    for (int64_t i = 0; i < v->count; i++) free(v->word[i].word);
    free(v->word);
    free(v->slot);
    free(v->made_up);
    free(v);
}

/* The table's order is never seen from outside. */
static uint64_t hash_of(const char *word, size_t length) {
    const uint64_t h = hash_bytes(word, length);
    return h ^ h >> 29;
}

/* The slot where the word is or would be. */
static uint64_t find_slot(const vocab *v, const char *word, size_t length, uint64_t hash) {
    for (uint64_t s = hash & (v->slots - 1);; s = (s + 1) & (v->slots - 1)) {
        if (v->slot[s] < 0) return s;
        const entry *e = &v->word[v->slot[s]];
        if (e->hash == hash && e->length == length && memcmp(e->word, word, length) == 0) return s;
    }
}

static void fill_slots(vocab *v) {
    for (uint64_t s = 0; s < v->slots; s++) v->slot[s] = -1;
    for (int64_t i = 0; i < v->count; i++) {
        const entry *e = &v->word[i];
        v->slot[find_slot(v, e->word, e->length, e->hash)] = i;
    }
}

static bool grow(vocab *v) {
    int64_t capacity = v->capacity ? 2 * v->capacity : 1024;
    entry *word = realloc(v->word, (size_t)capacity * sizeof *word);
    if (word) v->word = word;
    int64_t *slot = realloc(v->slot, 2 * (size_t)capacity * sizeof *slot);
    if (slot) v->slot = slot;
    if (!word || !slot) return false;
    v->capacity = capacity;
    v->slots = 2 * (uint64_t)capacity;
    fill_slots(v);
    return true;
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

/* A new entry, in the slot that was found for it. NULL when out of memory. */
static entry *add_entry(vocab *v, uint64_t slot, const char *word, size_t length, uint64_t hash) {
    char *copy = malloc(length + 1);
    if (!copy) return NULL;
    memcpy(copy, word, length);
    copy[length] = 0;
    v->slot[slot] = v->count++;
    v->word[v->slot[slot]] = (entry){.word = copy, .length = length, .hash = hash};
    return &v->word[v->slot[slot]];
}

bool vocab_count(vocab *v, const char *word, size_t length, int64_t times) {
    if (find_special(v->special, v->specials, word, length) >= 0) return true;
    if (v->count == v->capacity && !grow(v)) return false;
    uint64_t hash = hash_of(word, length), s = find_slot(v, word, length, hash);
    if (v->slot[s] < 0 && !add_entry(v, s, word, length, hash)) return false;
    v->word[v->slot[s]].count += times;
    return true;
}

bool vocab_append(vocab *v, const char *word, size_t length, int64_t times) {
    if (v->count == v->capacity && !grow(v)) return false;
    uint64_t hash = hash_of(word, length);
    entry *e = add_entry(v, find_slot(v, word, length, hash), word, length, hash);
    if (!e) return false;
    e->count = times;
    e->id = (int32_t)(TOKEN_FIRST_WORD + v->kept++);
    return true;
}

static int by_count(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->word, y->word);
}

/* Until they get one, the id is the place of the first appearance. */
static int by_count_and_place(const void *a, const void *b) {
    const entry *x = a, *y = b;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

static void sort_words(vocab *v) {
    for (int64_t i = 0; i < v->count; i++) v->word[i].id = (int32_t)i;
    if (v->count)
        qsort(v->word, (size_t)v->count, sizeof *v->word,
              v->running ? by_count_and_place : by_count);
    if (v->slots) fill_slots(v);
}

static const entry *find_entry(const vocab *v, const char *word, size_t length) {
    if (!v->slots) return NULL;
    int64_t i = v->slot[find_slot(v, word, length, hash_of(word, length))];
    return i < 0 ? NULL : &v->word[i];
}

/* Of running text, where <unk> has to be a word that is kept. */
static void find_unknown(vocab *v) {
    const entry *e = find_entry(v, "<unk>", strlen("<unk>"));
    v->unknown = e && e - v->word < v->kept ? v->specials + (int32_t)(e - v->word) : -1;
}

bool vocab_finish(vocab *v, int64_t size) {
    return vocab_finish_padded(v, size, v->running ? 1 : VOCAB_MULTIPLE);
}

bool vocab_finish_padded(vocab *v, int64_t size, int multiple) {
    sort_words(v);
    int64_t most = size > v->specials ? size - v->specials : 0;
    v->kept = size > 0 && most < v->count ? most : v->count;
    if (v->running) find_unknown(v);
    for (int64_t i = 0; i < v->count; i++)
        v->word[i].id = i < v->kept ? v->specials + (int32_t)i : v->unknown;
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
    for (int64_t i = 0; i < v->count; i++) n += v->word[i].count >= times;
    return n;
}

int64_t vocab_size(const vocab *v) {
    return v->specials + v->kept + v->filler;
}

int32_t vocab_unknown(const vocab *v) {
    return v->unknown;
}

int32_t vocab_id(const vocab *v, const char *word, size_t length) {
    const entry *e = find_entry(v, word, length);
    if (e) return e->id;
    if (v->running && find_special(v->special, v->specials, word, length) == 0) return 0;
    return v->unknown;
}

const char *vocab_word(const vocab *v, int64_t id) {
    if (id < 0 || id >= vocab_size(v)) return NULL;
    if (id < v->specials) return v->special[id];
    id -= v->specials;
    return id < v->kept ? v->word[id].word : v->made_up[id - v->kept];
}

/* A word that was appended twice is at its last place: every line of it but the first says so, or it
 * could not be read again. */
bool vocab_write(const vocab *v, FILE *out) {
    bool *written = calloc((size_t)v->kept + 1, sizeof *written);
    if (!written) return false;
    for (int64_t i = 0; i < v->kept; i++) {
        const entry *e = &v->word[i];
        const int64_t last = find_entry(v, e->word, e->length) - v->word;
        fwrite(e->word, 1, e->length, out);
        fprintf(out, " %lld%s\n", (long long)e->count, written[last] ? " #fairseq:overwrite" : "");
        written[last] = true;
    }
    free(written);
    for (int64_t i = 0; i < v->filler; i++) fprintf(out, "%s 0\n", v->made_up[i]);
    return !ferror(out);
}

int64_t vocab_times(const vocab *v, int64_t id) {
    return id >= v->specials && id < v->specials + v->kept ? v->word[id - v->specials].count : 0;
}
