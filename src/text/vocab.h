/* vocab.h -- a dictionary of words, made from counts (docs/models.md 10.4).
 *
 * Ids: the four specials of batch.h, then words by count descending, ties by string ascending
 * (bytes of UTF-8). madeupword0000 ... pads the dictionary to a multiple of 8. Running text has
 * <eos>, then words by count descending, ties in the order of first appearance, and no padding.
 */
#ifndef TEXT_VOCAB_H
#define TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "text/file_bytes.h"

enum { VOCAB_MULTIPLE = 8 };

typedef struct vocab vocab;

vocab *vocab_create(void);         /* NULL when out of memory */
vocab *vocab_create_running(void); /* for running text */
vocab *vocab_create_symbols(void); /* the same without <eos>: ids from 0 */
void vocab_free(vocab *v);

/* Counts a word `times` more. Ignores a word spelled like a special ("</s>"): in a text it becomes
 * <unk>. In running text <unk> is a normal word, and only "<eos>" is ignored, id 0. False when out
 * of memory. */
bool vocab_count(vocab *v, const char *word, size_t length, int64_t times);

/* Assigns ids to the most frequent words that fit into `size` entries with specials (0: all), then
 * pads. Counting ends here. False when out of memory. */
bool vocab_finish(vocab *v, int64_t size);
/* The same with padding to a multiple of another number; 1: none. */
bool vocab_finish_padded(vocab *v, int64_t size, int multiple);

/* -- fairseq's text form: `word count` lines in the order of ids, padding with count 0 included,
 * specials not */

/* Call after vocab_finish or reading. False when a write failed. */
bool vocab_write(const vocab *v, FILE *out);
/* Parses a text of this form in its order, without padding. SR_FORMAT ("PATH:LINE: ...") for a
 * malformed line, a special or a repeated word. A repeated word with `#fairseq:overwrite` takes the
 * later id. The bytes are UTF-8 without a byte order mark, as from text_read. NULL on failure. */
vocab *vocab_parse(const file_bytes *f, sr_failure *why);
vocab *vocab_read(const char *path, sr_failure *why);

/* Different words counted at least `times` times, in the dictionary or not. */
int64_t vocab_frequent(const vocab *v, int64_t times);
int64_t vocab_size(const vocab *v);    /* with specials and filler */
int64_t vocab_words(const vocab *v);   /* without them */
int64_t vocab_counted(const vocab *v); /* different words counted, in the dictionary or not */
int32_t vocab_unknown(const vocab *v); /* id of <unk>; -1: a dictionary of running text has none */
int32_t vocab_id(const vocab *v, const char *word, size_t length); /* that when absent */
const char *vocab_word(const vocab *v, int64_t id);                /* NULL past the end */

/* Adds the next word of a dictionary in id order, instead of vocab_count and vocab_finish. A
 * repeated word takes the new id. False when out of memory. */
bool vocab_append(vocab *v, const char *word, size_t length, int64_t times);
bool vocab_is_special(const char *word, size_t length);

#endif
