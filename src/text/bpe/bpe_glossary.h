/* bpe_glossary.h -- words and parts of words that match an expression and stay unsplit. */
#ifndef TEXT_BPE_BPE_GLOSSARY_H
#define TEXT_BPE_BPE_GLOSSARY_H

#include "text/bpe/bpe_internal.h"
#include "text/bpe/pattern.h"

typedef struct bpe_glossary bpe_glossary;

/* A part of a word. */
typedef struct bpe_segment {
    const char *text;
    size_t length;
    bool kept; /* it matches a glossary */
} bpe_segment;

bpe_glossary *bpe_glossary_create(const char *const *expression, int count, sr_failure *why);
void bpe_glossary_free(bpe_glossary *g);
/* The parts of a word, valid until the next call. */
sr_status bpe_glossary_cut(bpe_glossary *g, const char *word, size_t length,
                           const bpe_segment **segment, int64_t *count, sr_failure *why);

#endif
