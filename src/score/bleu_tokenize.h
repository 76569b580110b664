/* bleu_tokenize.h -- the tokenizers of sacreBLEU. */
#ifndef SCORE_BLEU_TOKENIZE_H
#define SCORE_BLEU_TOKENIZE_H

#include "base/containers/byte_buffer.h"

/* Writes the words of `from`, blanks between them, to `to`. `from` has no blanks at its end; its
 * contents are lost. Sets to->failed when out of memory. */
void bleu_tokenize_13a(byte_buffer *from, byte_buffer *to);
void bleu_tokenize_intl(byte_buffer *from, byte_buffer *to);

#endif
