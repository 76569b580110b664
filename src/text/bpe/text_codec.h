/* text_codec.h -- from a line of text to token ids and back, as in the data set: steps (tokenizing,
 * subwords), then a dictionary. */
#ifndef TEXT_BPE_TEXT_CODEC_H
#define TEXT_BPE_TEXT_CODEC_H

#include "text/line_transform.h"
#include "text/text.h"
#include "text/vocab.h"

enum { CODEC_SIDES = 2, CODEC_STEPS = 4 };

/* A view: dictionaries and steps belong to others. */
typedef struct text_codec {
    const vocab *dictionary[CODEC_SIDES]; /* source, target; the same one if it is joint */
    const line_transform *step;           /* [steps] */
    int steps;
} text_codec;

/* Writes the first `room` token ids of a line, without </s>, and their number in *count. The line's
 * end is ignored. SR_FORMAT when the line is not UTF-8. */
sr_status text_codec_encode(const text_codec *c, int side, const char *line, size_t length,
                            int32_t *id, int64_t room, int64_t *count, sr_failure *why);
/* Ids of the words of the walk's line, the first `room` of them; returns the number of words.
 * *hash, unless NULL: of the ids, of unknown words themselves. */
int64_t text_codec_ids(const vocab *words, text_walk *w, int32_t *id, int64_t room, uint64_t *hash);
/* The line after the steps: subwords between blanks. Replaces *out. */
sr_status text_codec_pieces(const text_codec *c, int side, const char *line, size_t length,
                            byte_buffer *out, sr_failure *why);

/* Joins subwords to words in place: removes every "@@ ", and "@@" at the end. Returns the new
 * length. */
#define CODEC_SEPARATOR "@@"
size_t text_codec_join(char *line, size_t length);

#endif
