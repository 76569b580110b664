/* data_counts.h -- counts the records of a data set's splits, and repeated ones. */
#ifndef DATA_DATA_COUNTS_H
#define DATA_DATA_COUNTS_H

#include "data/data.h"

/* Pairs of more than this ratio are odd, as for clean-corpus-n.perl of Moses. */
enum { DATA_RATIO = 9 };

typedef struct data_counts {
    const char *unit;              /* unit of the records: "pairs" */
    int64_t records;               /* images, pairs, sentences, bytes, lines of running text */
    int64_t words[SIDES];          /* without marks; target: of pairs alone */
    int64_t longest[SIDES];        /* words of one sentence */
    int64_t unknown[SIDES];        /* words that are <unk> */
    int64_t classes, fewest, most; /* classes that occur, and the records of one of them; else 0 */
    /* in the file, but in no batch */
    int64_t empty, too_long; /* records with an empty side, with more words than the model takes */
    int64_t cut;             /* sentences that lost their end (max-length) */
    int64_t repeated;        /* records that an earlier one equals */
    int64_t common;          /* records that training has, too; of training 0 */
    int64_t uneven;          /* pairs with a side of more than DATA_RATIO times the words */
} data_counts;

/* Counts a set that was opened with `survey`. Takes time in proportion to its bytes. */
sr_status data_count(dataset *d, data_split split, data_counts *c, sr_failure *why);

#endif
