/* decode_options.h -- options of commands that decode: rows of an option table over a struct whose
   first member is decode_values. */
#ifndef CLI_DECODE_OPTIONS_H
#define CLI_DECODE_OPTIONS_H

#include "base/options/options.h"
#include "task/translator.h"

typedef struct decode_values {
    option_text unknown;
    int64_t beam, min_len, max_tokens;
    double lenpen, unk_penalty, max_a, max_b;
} decode_values;

#define DECODE_AT(field) offsetof(decode_values, field)
#define DECODE_ROWS(group)                                                                         \
    INT_OPTION(group, "beam", DECODE_AT(beam), "5", 1, 1000, "hypotheses",                         \
               "set the beam size; 1: greedy"),                                                    \
        REAL_OPTION(group, "lenpen", DECODE_AT(lenpen), "1", -10, 10, "",                          \
                    "divide log probabilities by length^X, </s> counted"),                         \
        REAL_OPTION(group, "unk-penalty", DECODE_AT(unk_penalty), "0", -1e9, 1e9, "nats",          \
                    "subtract X from the log probability of <unk>"),                               \
        INT_OPTION(group, "min-len", DECODE_AT(min_len), "1", 0, 100000, "tokens",                 \
                   "write at least N tokens before </s>"),                                         \
        REAL_OPTION(group, "max-len-a", DECODE_AT(max_a), "0", 0, 1000, "",                        \
                    "write at most X * source length + max-len-b tokens"),                         \
        REAL_OPTION(group, "max-len-b", DECODE_AT(max_b), "200", 0, 100000, "tokens",              \
                    "add X to that limit; source lengths count </s>"),                             \
        CHOICE_OPTION(                                                                             \
            group, "unknown", DECODE_AT(unknown), "keep", "keep|drop|copy|forbid",                 \
            "keep or drop <unk>, copy the source word with the most attention, or forbid <unk>"),  \
        INT_OPTION(                                                                                \
            group, "max-tokens", DECODE_AT(max_tokens), "16384", 16, 1 << 30, "positions",         \
            "limit each thread's batch: the sum of source length + beam * longest hypothesis")

/* Sets up a translator by the values. */
void decode_choose(const decode_values *v, translator *t);

#endif
