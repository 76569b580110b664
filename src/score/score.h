/* score.h -- BLEU of translations in two forms, named in each signature (docs/scores.md).
 *
 *   the form of multi-bleu.perl: tokenized text, bytes, words between ASCII blanks
 *   the form of sacreBLEU 2.x:   raw text, UTF-8, split into words by a tokenizer here
 *
 * A scorer takes one sentence with its references at a time. It keeps the counts of each, for the
 * bootstrap:
 *
 *     bleu_form form = BLEU_FORM;                 // or BLEU_MULTI_FORM
 *     bleu_scorer *s = bleu_create(&form);
 *     for (...) bleu_add(s, hyp, ref, refs, &why);
 *     bleu_counts sum = bleu_sum(s);
 *     bleu_print(s, 2, NULL, line, sizeof line);    // or bleu_print_multi(&sum, line, sizeof line)
 *     bleu_free(s);
 */
#ifndef SCORE_SCORE_H
#define SCORE_SCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "statrec/base.h"

enum {
    BLEU_ORDER = 4,
    BLEU_REFERENCES = 16, /* most references of a sentence */
    BLEU_LINE = 512,      /* bytes that hold any line printed here */
};

typedef enum {
    BLEU_SMOOTH_NONE,
    BLEU_SMOOTH_EXP,
    BLEU_SMOOTH_FLOOR,
    BLEU_SMOOTH_ADD_K,
} bleu_smoothing;

typedef enum { BLEU_TOKENIZE_13A, BLEU_TOKENIZE_INTL, BLEU_TOKENIZE_NONE } bleu_tokenizer;

typedef struct bleu_form {
    bool multi;               /* multi-bleu.perl: no tokenizer, no smoothing */
    bool lowercase;           /* ASCII letters with multi, else Unicode */
    bleu_tokenizer tokenizer; /* for hypotheses and references */
    bleu_smoothing smoothing;
    double smooth_value; /* for floor and add-k */
} bleu_form;

#define BLEU_FORM                                                                                  \
    { .tokenizer = BLEU_TOKENIZE_13A, .smoothing = BLEU_SMOOTH_EXP }
#define BLEU_MULTI_FORM                                                                            \
    { .multi = true }

/* Names for command lines and signatures, in the order of the enums. */
#define BLEU_TOKENIZER_WORDS "13a|intl|none"
#define BLEU_SMOOTHING_WORDS "none|exp|floor|add-k"

/* 0.1 for floor, 1 for add-k, 0 for the others. */
double bleu_smooth_default(bleu_smoothing smoothing);

/* Counts of a sentence or, added up, of a text. */
typedef struct bleu_counts {
    int64_t correct[BLEU_ORDER]; /* n-grams of the hypothesis that a reference has, clipped */
    int64_t total[BLEU_ORDER];   /* n-grams of the hypothesis */
    int64_t hyp_len, ref_len;    /* words; ref_len: of the reference closest in length */
} bleu_counts;

typedef struct bleu_value {
    double bleu;                  /* 0 to 100 */
    double precision[BLEU_ORDER]; /* percent */
    double bp;                    /* brevity penalty */
} bleu_value;

void bleu_counts_add(bleu_counts *sum, const bleu_counts *more);
bleu_value bleu_compute(const bleu_form *form, const bleu_counts *sum);

/* Bytes in memory; no newline. */
typedef struct bleu_text {
    const char *byte;
    size_t size;
} bleu_text;

/* sacreBLEU's warning about a text with at least BLEU_TOKENIZED_LINES lines that end in " .",
 * ignoring blanks after it. Arguments of the format: the name of the text, and the number of these
 * lines. */
bool bleu_seems_tokenized(bleu_text line);
enum { BLEU_TOKENIZED_LINES = 100 };
#define BLEU_TOKENIZED_WARNING                                                                     \
    "%s: %lld lines end in a tokenized period (' .'): BLEU of tokenized text is not comparable; "  \
    "detokenize it"

typedef struct bleu_scorer bleu_scorer;

bleu_scorer *bleu_create(const bleu_form *form); /* NULL when out of memory */
void bleu_free(bleu_scorer *s);
/* Counts a sentence with its references, 1 to BLEU_REFERENCES, the same number for each sentence.
 * SR_FORMAT: not UTF-8, unless the form is multi. */
sr_status bleu_add(bleu_scorer *s, bleu_text hyp, const bleu_text *ref, int refs, sr_failure *why);
bleu_counts bleu_sum(const bleu_scorer *s);

/* The words of a line in a form, one blank between them. malloc'd, NULL when out of memory or the
 * line is not UTF-8. */
char *bleu_words(const bleu_form *form, bleu_text line);

/* An interval of scores of texts whose sentences are drawn from this one. */
typedef struct bleu_interval {
    double low, high;
    int64_t resamples;
    uint64_t seed;
} bleu_interval;

enum { BLEU_RESAMPLES = 1000, BLEU_SEED = 12345 };
/* 95 % by percentiles; fills low and high of *interval. */
sr_status bleu_bootstrap(const bleu_scorer *s, bleu_interval *interval, sr_failure *why);

/* "statrec-bleu|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:0.2.0"; with multi
 * "statrec-multi-bleu|nrefs:1|case:mixed|tok:none|smooth:none|version:0.2.0". NULL: no interval. */
void bleu_signature(const bleu_scorer *s, const bleu_interval *interval, char *text, size_t size);
/* "SIGNATURE = 30.12 62.5/36.4/23.1/15.0 (BP = 1.000 ratio = 1.021 hyp_len = 12 ref_len = 11)";
 * digits: of the score after the point. */
void bleu_print(const bleu_scorer *s, int digits, const bleu_interval *interval, char *text,
                size_t size);
/* multi-bleu.perl's line: "BLEU = 30.12, 62.5/36.4/23.1/15.0 (BP=1.000, ratio=1.021, hyp_len=12,
 * ref_len=11)"; zeros when the references have no word. */
void bleu_print_multi(const bleu_counts *sum, char *text, size_t size);
/* "95 % interval [29.10, 31.20] (1000 resamples, seed 12345)" */
void bleu_print_interval(const bleu_interval *interval, int digits, char *text, size_t size);

#endif
