/* parse_split.h -- parses the sentences of a split with a model. */
#ifndef TASK_PARSE_SPLIT_H
#define TASK_PARSE_SPLIT_H

#include "data/sets/tree_data.h"
#include "task/task.h"

typedef struct parsed_split {
    data_trees of;
    int64_t first_word, words; /* words of the split in its bank */
    int32_t *head, *label;     /* [words] */
} parsed_split;

/* Greedy parsing. *stopped: by `stop`. Nothing to free on failure or when stopped. */
sr_status parse_split(const task_decoding *d, parsed_split *p, bool *stopped, sr_failure *why);
void parsed_split_free(parsed_split *p);

#endif
